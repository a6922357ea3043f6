//! Every rule of `std.optim` once more, in plain loops over double precision, written from the papers' formulas.
//!
//! ```text
//! lamb, w [1, 2, 2], g [0.1, -0.2, 0.2], t 1, lr 0.1 → w [0.82566963, 2.16915305, 1.82394271]
//! ```

use std::collections::BTreeMap;

/// A rule with its settings; what is not set has the library's default.
#[derive(Clone, Debug)]
pub struct Rule {
    pub name: &'static str,
    pub rate: f64,
    pub settings: BTreeMap<&'static str, f64>,
}

/// What a rule remembers of one parameter.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Rule {
    pub fn new(name: &'static str, rate: f64, settings: &[(&'static str, f64)]) -> Rule {
        Rule {
            name,
            rate,
            settings: settings.iter().copied().collect(),
        }
    }

    /// The rule as it stands in a `train` block.
    pub fn text(&self) -> String {
        let mut text = format!("{}(lr: {}", self.name, self.rate);
        for (name, value) in &self.settings {
            let flag = ["adapt", "bias_correction"].contains(name);
            match flag {
                true => text += &format!(", {name}: {}", *value != 0.0),
                false => text += &format!(", {name}: {value}"),
            }
        }
        text + ")"
    }

    fn setting(&self, name: &str, default: f64) -> f64 {
        self.settings.get(name).copied().unwrap_or(default)
    }

    /// Step number `t` (from 1) of one parameter; `all` is the norm of all gradients together.
    pub fn step(&self, w: &mut [f64], g: &[f64], memory: &mut Memory, t: i32, all: f64) {
        let n = w.len();
        memory.first.resize(n, 0.0);
        memory.second.resize(n, 0.0);
        let (lr, m, v) = (self.rate, &mut memory.first, &mut memory.second);
        let decay = |default| self.setting("weight_decay", default);
        let adapt = self.setting("adapt", 1.0) != 0.0;
        match self.name {
            "sgd" => {
                for i in 0..n {
                    w[i] -= lr * (g[i] + decay(0.0) * w[i]);
                }
            }
            "momentum" => {
                let mu = self.setting("mu", 0.9);
                for i in 0..n {
                    m[i] = mu * m[i] + (g[i] + decay(0.0) * w[i]);
                    w[i] -= lr * m[i];
                }
            }
            "nesterov" => {
                let mu = self.setting("mu", 0.9);
                for i in 0..n {
                    let d = g[i] + decay(0.0) * w[i];
                    m[i] = mu * m[i] + d;
                    w[i] -= lr * (d + mu * m[i]);
                }
            }
            "adagrad" => {
                for i in 0..n {
                    let d = g[i] + decay(0.0) * w[i];
                    v[i] += d * d;
                    w[i] -= lr * d / (v[i].sqrt() + self.setting("eps", 1e-10));
                }
            }
            "rmsprop" => {
                let rho = self.setting("rho", 0.99);
                for i in 0..n {
                    let d = g[i] + decay(0.0) * w[i];
                    v[i] = rho * v[i] + (1.0 - rho) * d * d;
                    w[i] -= lr * d / (v[i].sqrt() + self.setting("eps", 1e-8));
                }
            }
            "adam" | "adamw" => {
                let (b1, b2) = (self.setting("beta1", 0.9), self.setting("beta2", 0.999));
                let inside = if self.name == "adam" { decay(0.0) } else { 0.0 };
                let outside = if self.name == "adamw" {
                    decay(0.01)
                } else {
                    0.0
                };
                for i in 0..n {
                    let d = g[i] + inside * w[i];
                    m[i] = b1 * m[i] + (1.0 - b1) * d;
                    v[i] = b2 * v[i] + (1.0 - b2) * d * d;
                    let (mh, vh) = (m[i] / (1.0 - b1.powi(t)), v[i] / (1.0 - b2.powi(t)));
                    w[i] -= lr * (mh / (vh.sqrt() + self.setting("eps", 1e-8)) + outside * w[i]);
                }
            }
            "lars" => {
                let (mu, wd) = (self.setting("mu", 0.9), decay(0.0));
                let (wn, gn) = (norm(w), norm(g));
                let ratio = match (adapt, wn > 0.0 && gn > 0.0) {
                    (false, _) => self.setting("plain", 1.0),
                    (true, true) => self.setting("trust", 1e-3) * wn / (gn + wd * wn),
                    (true, false) => 1.0,
                };
                for i in 0..n {
                    m[i] = mu * m[i] + lr * ratio * (g[i] + wd * w[i]);
                    w[i] -= m[i];
                }
            }
            "lars_ema" => {
                let b1 = self.setting("beta1", 0.9);
                for i in 0..n {
                    m[i] = b1 * m[i] + (1.0 - b1) * (g[i] + decay(0.0) * w[i]);
                }
                let ratio = if adapt { ratio(norm(w), norm(m)) } else { 1.0 };
                for i in 0..n {
                    w[i] -= lr * ratio * m[i];
                }
            }
            "lamb" | "lamb_apex" | "nlamb" | "nnlamb" => {
                let look_ahead = self.name.starts_with('n');
                let (beta1, eps) = if look_ahead {
                    (0.975, 1e-8)
                } else {
                    (0.9, 1e-6)
                };
                let (b1, b2) = (self.setting("beta1", beta1), self.setting("beta2", 0.999));
                let apex = self.name == "lamb_apex";
                let scale = if apex {
                    (all / self.setting("max_norm", 1.0)).max(1.0)
                } else {
                    1.0
                };
                let corrected = self.setting("bias_correction", 1.0) != 0.0;
                let one = |b: f64, t: i32| if corrected { 1.0 - b.powi(t) } else { 1.0 };
                let mut u = vec![0.0; n];
                for i in 0..n {
                    let g = g[i] / scale;
                    m[i] = b1 * m[i] + (1.0 - b1) * g;
                    v[i] = b2 * v[i] + (1.0 - b2) * g * g;
                    let mh = match look_ahead {
                        true => b1 * m[i] / one(b1, t + 1) + (1.0 - b1) * g / one(b1, t),
                        false => m[i] / one(b1, t),
                    };
                    let vh = match self.name {
                        "nnlamb" => b2 * v[i] / one(b2, t + 1) + (1.0 - b2) * g * g / one(b2, t),
                        "nlamb" => b2 * v[i] / one(b2, t),
                        _ => v[i] / one(b2, t),
                    };
                    u[i] = mh / (vh.sqrt() + self.setting("eps", eps)) + decay(0.01) * w[i];
                }
                let (wn, un) = (norm(w), norm(&u));
                let bounded = wn
                    .max(self.setting("lower", 0.0))
                    .min(self.setting("upper", f64::INFINITY));
                let plain = !adapt || apex && decay(0.01) == 0.0 || wn == 0.0 || un == 0.0;
                let ratio = if plain { 1.0 } else { bounded / un };
                for i in 0..n {
                    w[i] -= lr * ratio * u[i];
                }
            }
            other => panic!("there is no rule {other} here"),
        }
    }
}

/// The l2 norm.
pub fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

fn ratio(a: f64, b: f64) -> f64 {
    if a > 0.0 && b > 0.0 { a / b } else { 1.0 }
}
