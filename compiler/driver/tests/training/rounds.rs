//! Independent subnets and local SGD against plain loops in double precision: a net of three layers, every site's steps on its own rows and
//! neurons, put together by index.
//!
//! ```text
//! 3 sites, rounds of 4 steps, momentum that travels: losses of all steps and params at the end
//! ```

use crate::{attempt, attempt_in, close};
use ein_exec::session::Begin;
use ein_plan::{DType, Source};
use einc_core::pipeline::{self, report::PlanRounds};
use einc_driver::bind::Purpose;
use einc_driver::settings::Settings;
use einc_driver::{load, session};
use std::collections::BTreeMap;
use std::path::PathBuf;

const ROWS: usize = 29;
/// Features, neurons, neurons, outputs.
const SIZES: [usize; 4] = [5, 7, 6, 3];
const EPS: f64 = 1e-5;

/// A rule and what it remembers.
#[derive(Clone, Copy, PartialEq)]
enum Rule {
    Sgd,
    Momentum,
    Adam,
}

/// A way to train.
#[derive(Clone, Copy)]
struct Way {
    rule: Rule,
    /// Whether states begin anew with every round; `None`: they stay at their sites.
    reset: Option<bool>,
    local_steps: usize,
    parts: usize,
    sites: usize,
    batch: usize,
    epochs: usize,
}

/// A generated tensor, as the language promises it.
fn made(source: &Source, name: &str, shape: &[u64]) -> Vec<f64> {
    let ranges: Vec<(u64, u64)> = shape.iter().map(|n| (0, *n)).collect();
    let dtype = match source {
        Source::Permutation => DType::I64,
        _ => DType::F64,
    };
    let array = ein_kernels::generate(source, dtype, name, 0, shape, &ranges);
    (0..array.data().len())
        .map(|at| array.data().get(at).as_f64())
        .collect()
}

fn text(strategy: &str, way: &Way) -> String {
    let [d, h, k, c] = SIZES;
    let rule = match way.rule {
        Rule::Sgd => "sgd(lr: 0.3)",
        Rule::Momentum => "momentum(lr: 0.1)",
        Rule::Adam => "adam(lr: 0.02)",
    };
    format!(
        "dim N = {ROWS}\ninput X: f64[N, {d}] = uniform(-1, 1)\ninput y: f64[N, {c}] = uniform(-1, 1)\n\
         param W1: f64[{d}, {h}] = uniform(-1, 1)\nparam W2: f64[{h}, {k}] = uniform(-1, 1)\nparam W3: f64[{k}, {c}] = uniform(-1, 1)\n\
         param g: f64[{k}] = uniform(0.5, 1.5)\nparam s: f64[{k}] = uniform(-1, 1)\nparam b: f64[{c}] = uniform(-1, 1)\n\
         h[n,i] = tanh(X[n,d] * W1[d,i])\na[n,j] = h[n,i] * W2[i,j]\nmu[j] = mean[n] a[n,j]\nvar[j] = mean[n] (a[n,j] - mu[j])^2\n\
         t[n,j] = tanh((a[n,j] - mu[j]) * rsqrt(var[j] + 1e-5) * g[j] + s[j])\nz[n,c] = t[n,j] * W3[j,c] + b[c]\n\
         loss = mean[n] (sum[c] (z[n,c] - y[n,c])^2)\n\
         train {{ loss: loss; data: (X, y) over N by {} shuffle; epochs: {}; optimizer: {rule}; strategy: {strategy} }}\n\
         output W1; output W2; output W3; output g; output s; output b\n",
        way.batch, way.epochs
    )
}

/// A param's name, its shape and the layer of neurons of each dimension.
type Laid = (&'static str, [usize; 2], [Option<usize>; 2]);

fn layout() -> Vec<Laid> {
    let [d, h, k, c] = SIZES;
    vec![
        ("W1", [d, h], [None, Some(0)]),
        ("W2", [h, k], [Some(0), Some(1)]),
        ("W3", [k, c], [Some(1), None]),
        ("g", [1, k], [None, Some(1)]),
        ("s", [1, k], [None, Some(1)]),
        ("b", [1, c], [None, None]),
    ]
}

/// Matrices by name.
type Params = BTreeMap<&'static str, Vec<f64>>;

fn begin() -> Params {
    let layout = layout();
    let params = layout.iter().map(|(name, [rows, columns], _)| {
        let source = match *name {
            "g" => Source::Uniform { lo: 0.5, hi: 1.5 },
            _ => Source::Uniform { lo: -1.0, hi: 1.0 },
        };
        let shape = match *rows {
            1 => vec![*columns as u64],
            rows => vec![rows as u64, *columns as u64],
        };
        (*name, made(&source, name, &shape))
    });
    params.collect()
}

/// The loss on some rows of a net of so many neurons, and the gradients.
#[allow(clippy::needless_range_loop)] // the loops are the formulas
fn gradient(
    p: &Params,
    (h, k): (usize, usize),
    rows: &[usize],
    x: &[f64],
    y: &[f64],
) -> (f64, Params) {
    let [d, _, _, c] = SIZES;
    let n = rows.len();
    let mut hidden = vec![0.0; n * h];
    let mut a = vec![0.0; n * k];
    for r in 0..n {
        for i in 0..h {
            let sum: f64 = (0..d)
                .map(|f| x[rows[r] * d + f] * p["W1"][f * h + i])
                .sum();
            hidden[r * h + i] = sum.tanh();
        }
        for j in 0..k {
            a[r * k + j] = (0..h).map(|i| hidden[r * h + i] * p["W2"][i * k + j]).sum();
        }
    }
    let m = n as f64;
    let mu: Vec<f64> = (0..k)
        .map(|j| (0..n).map(|r| a[r * k + j]).sum::<f64>() / m)
        .collect();
    let var: Vec<f64> = (0..k)
        .map(|j| (0..n).map(|r| (a[r * k + j] - mu[j]).powi(2)).sum::<f64>() / m)
        .collect();
    let normal = |r: usize, j: usize| (a[r * k + j] - mu[j]) / (var[j] + EPS).sqrt();
    let t = |r: usize, j: usize| (normal(r, j) * p["g"][j] + p["s"][j]).tanh();
    let mut grads: Params = p
        .iter()
        .map(|(name, values)| (*name, vec![0.0; values.len()]))
        .collect();
    let mut loss = 0.0;
    // By the normalised values.
    let mut dnormal = vec![0.0; n * k];
    for r in 0..n {
        for q in 0..c {
            let z: f64 = (0..k).map(|j| t(r, j) * p["W3"][j * c + q]).sum::<f64>() + p["b"][q];
            let error = z - y[rows[r] * c + q];
            loss += error * error / m;
            let dz = 2.0 * error / m;
            grads.get_mut("b").unwrap()[q] += dz;
            for j in 0..k {
                let out = t(r, j);
                grads.get_mut("W3").unwrap()[j * c + q] += dz * out;
                let before = dz * p["W3"][j * c + q] * (1.0 - out * out);
                grads.get_mut("s").unwrap()[j] += before;
                grads.get_mut("g").unwrap()[j] += before * normal(r, j);
                dnormal[r * k + j] += before * p["g"][j];
            }
        }
    }
    for j in 0..k {
        let root = (var[j] + EPS).sqrt();
        let mean: f64 = (0..n).map(|r| dnormal[r * k + j]).sum::<f64>() / m;
        let along: f64 = (0..n)
            .map(|r| dnormal[r * k + j] * normal(r, j))
            .sum::<f64>()
            / m;
        for r in 0..n {
            let da = (dnormal[r * k + j] - mean - normal(r, j) * along) / root;
            for i in 0..h {
                let unit = hidden[r * h + i];
                grads.get_mut("W2").unwrap()[i * k + j] += da * unit;
                let dh = da * p["W2"][i * k + j] * (1.0 - unit * unit);
                for f in 0..d {
                    grads.get_mut("W1").unwrap()[f * h + i] += dh * x[rows[r] * d + f];
                }
            }
        }
    }
    (loss, grads)
}

/// One step of a rule; `count` updates were made before with these states.
fn step(rule: Rule, params: &mut Params, states: &mut [Params; 2], grads: &Params, count: usize) {
    for (name, values) in params.iter_mut() {
        for (at, w) in values.iter_mut().enumerate() {
            let g = grads[name][at];
            let mut state = |which: usize| states[which].get_mut(name).unwrap()[at];
            match rule {
                Rule::Sgd => *w -= 0.3 * g,
                Rule::Momentum => {
                    let m = 0.9 * state(0) + g;
                    states[0].get_mut(name).unwrap()[at] = m;
                    *w -= 0.1 * m;
                }
                Rule::Adam => {
                    let m = 0.9 * state(0) + 0.1 * g;
                    let v = 0.999 * state(1) + 0.001 * g * g;
                    states[0].get_mut(name).unwrap()[at] = m;
                    states[1].get_mut(name).unwrap()[at] = v;
                    let t = count as i32 + 1;
                    let (m, v) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
                    *w -= 0.02 * m / (v.sqrt() + 1e-8);
                }
            }
        }
    }
}

/// The neurons of every layer and part in a round.
fn deal(way: &Way, round: usize) -> Vec<Vec<Vec<usize>>> {
    let layers = [("W1", SIZES[1]), ("W2", SIZES[2])];
    let deal = layers.map(|(name, size)| {
        let order = made(
            &Source::Permutation,
            &format!("train.1.round.{round}.{name}"),
            &[size as u64],
        );
        let mut parts = vec![];
        let mut at = 0;
        for part in 0..way.parts {
            let length = size / way.parts + usize::from(part < size % way.parts);
            let mut own: Vec<usize> = order[at..at + length].iter().map(|n| *n as usize).collect();
            own.sort_unstable();
            parts.push(own);
            at += length;
        }
        parts
    });
    deal.into()
}

/// The positions of a part's block in a whole param, in order.
fn positions(name: &str, deal: &[Vec<Vec<usize>>], part: usize) -> Vec<usize> {
    let layout = layout();
    let (_, shape, layers) = layout.iter().find(|(own, ..)| *own == name).unwrap();
    let list = |dim: usize| match layers[dim] {
        Some(layer) => deal[layer][part].clone(),
        None => (0..shape[dim]).collect(),
    };
    let columns = list(1);
    list(0)
        .iter()
        .flat_map(|row| columns.iter().map(move |column| row * shape[1] + column))
        .collect()
}

/// The losses of all steps, and the params at the end.
fn reference(way: &Way) -> (Vec<f64>, Params) {
    let uniform = Source::Uniform { lo: -1.0, hi: 1.0 };
    let x = made(&uniform, "X", &[ROWS as u64, SIZES[0] as u64]);
    let y = made(&uniform, "y", &[ROWS as u64, SIZES[3] as u64]);
    let mut params = begin();
    let zeros = |like: &Params| -> Params {
        like.iter()
            .map(|(name, values)| (*name, vec![0.0; values.len()]))
            .collect()
    };
    let mut states = [zeros(&params), zeros(&params)];
    let mut stay: Vec<[Params; 2]> = vec![states.clone(); way.sites];
    let all = way.batch * way.sites;
    let mut steps: Vec<Vec<usize>> = vec![];
    for epoch in 0..way.epochs {
        let order = made(
            &Source::Permutation,
            &format!("train.1.epoch.{epoch}"),
            &[ROWS as u64],
        );
        let order: Vec<usize> = order.iter().map(|row| *row as usize).collect();
        steps.extend(
            order
                .chunks(all)
                .filter(|rows| rows.len() >= way.sites)
                .map(<[usize]>::to_vec),
        );
    }
    let mut losses = vec![];
    for (round, chunk) in steps.chunks(way.local_steps).enumerate() {
        let deal = deal(way, round);
        let mut ends: Vec<(Params, [Params; 2])> = vec![];
        let mut of_steps = vec![0.0; chunk.len()];
        for (site, at_home) in stay.iter_mut().enumerate() {
            let part = site % way.parts;
            let take = |whole: &Params| -> Params {
                let block = |(name, values): (&&'static str, &Vec<f64>)| {
                    (
                        *name,
                        positions(name, &deal, part)
                            .iter()
                            .map(|at| values[*at])
                            .collect(),
                    )
                };
                whole.iter().map(block).collect()
            };
            let mut own = take(&params);
            let mut kept = match way.reset {
                Some(true) => [zeros(&own), zeros(&own)],
                Some(false) => [take(&states[0]), take(&states[1])],
                None => at_home.clone(),
            };
            let sizes = (deal[0][part].len(), deal[1][part].len());
            for (at, rows) in chunk.iter().enumerate() {
                let start: usize = (0..site)
                    .map(|s| rows.len() / way.sites + usize::from(s < rows.len() % way.sites))
                    .sum();
                let count = rows.len() / way.sites + usize::from(site < rows.len() % way.sites);
                let mine = &rows[start..start + count];
                let (loss, grads) = gradient(&own, sizes, mine, &x, &y);
                of_steps[at] += loss * count as f64 / rows.len() as f64;
                let before = if way.reset == Some(true) {
                    at
                } else {
                    round * way.local_steps + at
                };
                step(way.rule, &mut own, &mut kept, &grads, before);
            }
            if way.reset.is_none() {
                *at_home = kept.clone();
            }
            ends.push((own, kept));
        }
        losses.extend(of_steps);
        // Every element is the mean over the sites that had it.
        let together = |whole: &mut Params, of: &dyn Fn(usize) -> Params| {
            for (name, values) in whole.iter_mut() {
                let mut sums = vec![(0.0, 0usize); values.len()];
                for site in 0..way.sites {
                    let own = of(site);
                    for (at, value) in positions(name, &deal, site % way.parts)
                        .iter()
                        .zip(&own[name])
                    {
                        sums[*at].0 += value;
                        sums[*at].1 += 1;
                    }
                }
                for (value, (sum, count)) in values.iter_mut().zip(sums) {
                    if count > 0 {
                        *value = sum / count as f64;
                    }
                }
            }
        };
        together(&mut params, &|site| ends[site].0.clone());
        if way.reset == Some(false) {
            for (which, state) in states.iter_mut().enumerate() {
                together(state, &|site| ends[site].1[which].clone());
            }
        }
    }
    for w in params.get_mut("W3").unwrap() {
        *w /= way.parts as f64;
    }
    (losses, params)
}

fn check(strategy: &str, way: Way) {
    let text = text(strategy, &way);
    let found =
        attempt(&text, way.sites as u32).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let (losses, params) = reference(&way);
    let what = format!("{strategy} on {}", way.sites);
    close(&found.losses, &losses, &format!("losses, {what}"));
    for (name, values) in params {
        close(&found.outputs[name], &values, &format!("{name}, {what}"));
    }
}

fn way(rule: Rule, reset: Option<bool>, sites: usize) -> Way {
    Way {
        rule,
        reset,
        local_steps: 3,
        parts: sites,
        sites,
        batch: 3,
        epochs: 3,
    }
}

#[test]
fn subnets_learn_what_loops_learn() {
    for sites in 1..=4 {
        check("ist(local_steps: 3)", way(Rule::Sgd, Some(false), sites));
        check(
            "ist(local_steps: 3)",
            way(Rule::Momentum, Some(false), sites),
        );
        check(
            "ist(local_steps: 3, state: reset)",
            way(Rule::Momentum, Some(true), sites),
        );
    }
    check("ist(local_steps: 3)", way(Rule::Adam, Some(false), 3));
    check(
        "ist(local_steps: 3, state: reset)",
        way(Rule::Adam, Some(true), 2),
    );
}

#[test]
fn sites_with_the_same_part_average_it() {
    for (sites, parts) in [(4, 2), (5, 2), (3, 1)] {
        let way = Way {
            parts,
            ..way(Rule::Momentum, Some(false), sites)
        };
        check(&format!("ist(local_steps: 3, parts: {parts})"), way);
    }
}

#[test]
fn local_sgd_averages_params_and_may_average_states() {
    for sites in 1..=4 {
        for (average, reset) in [("params", None), ("params_and_state", Some(false))] {
            let way = Way {
                parts: 1,
                ..way(Rule::Momentum, reset, sites)
            };
            check(&format!("local_sgd(steps: 3, average: {average})"), way);
        }
    }
}

/// On one site rounds are ordinary training, to the last bit.
#[test]
fn alone_a_site_trains_as_ever() {
    for rule in [Rule::Sgd, Rule::Momentum, Rule::Adam] {
        let way = way(rule, Some(false), 1);
        let sync = attempt(&text("sync", &way), 1).unwrap();
        for strategy in ["ist(local_steps: 4)", "local_sgd(steps: 4)"] {
            let found = attempt(&text(strategy, &way), 1).unwrap();
            assert_eq!(found.losses, sync.losses, "{strategy}");
            assert_eq!(found.outputs, sync.outputs, "{strategy}");
        }
    }
}

/// The digits, two or three layers, with what is written after the net.
fn digits(hidden: &[&str], rest: &str) -> String {
    let mut text = "use std.nn\ndim N\ndim V\ninput X: f32[N, 64] = load(\"data/digits_train_x.npy\")\n\
         input y: i64[N] = load(\"data/digits_train_y.npy\")\ninput Xv: f32[V, 64] = load(\"data/digits_test_x.npy\")\n\
         input yv: i64[V] = load(\"data/digits_test_y.npy\")\n"
        .to_owned();
    let mut body = String::new();
    let (mut size, mut value) = ("64", "X".to_owned());
    for (layer, next) in hidden.iter().enumerate() {
        text += &format!(
            "param W{layer}: f32[{size}, {next}] = he_normal\nparam n{layer}: nn.ist_norm({next})\n"
        );
        body += &format!(
            "a{layer}[n,j] = {value}[n,i] * W{layer}[i,j]\ns{layer} = n{layer}(a{layer})\nh{layer}[n,j] = relu(s{layer}[n,j])\n"
        );
        (size, value) = (next, format!("h{layer}"));
    }
    text += &format!("param V0: f32[{size}, 10] = he_normal\nparam c: f32[10] = zeros\n{body}");
    text + &format!(
        "z[n,q] = {value}[n,j] * V0[j,q] + c[q]\nloss = mean[n] nn.cross_entropy(z, y)[n]\n\
         accuracy = mean[n] f32(argmax[q] z[n,q] == y[n])\n{rest}\noutput accuracy\n"
    )
}

fn examples() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"))
}

fn on_digits(hidden: &[&str], strategy: &str, sites: u32) -> f64 {
    let rest = format!(
        "train {{ loss: loss; data: (X, y) over N by 32 shuffle; steps: 200; optimizer: momentum(lr: 0.3); strategy: {strategy}\n\
         schedule: poly(power: 1); validate: accuracy on (Xv, yv) every 200 steps }}"
    );
    let text = digits(hidden, &rest);
    let run =
        attempt_in(examples(), &text, sites, &|_| {}).unwrap_or_else(|error| panic!("{error:?}"));
    *run.validated.last().unwrap()
}

/// Section 5.4 of the design paper: .991 and .992 at the end.
#[test]
fn digits_are_learnt_by_subnets() {
    for (hidden, sites) in [(&["512"][..], 4), (&["256", "256"], 4), (&["512"], 3)] {
        let found = on_digits(hidden, "ist(local_steps: 10, state: reset)", sites);
        assert!(found >= 0.98, "{hidden:?} on {sites}: {found}");
    }
    let found = on_digits(
        &["512"],
        "local_sgd(steps: 10, average: params_and_state)",
        4,
    );
    assert!(found >= 0.975, "local SGD: {found}");
}

/// What is estimated for one site is the same under every strategy, to the last bit; and the statistics are those of the rows, one layer behind the
/// other.
#[test]
fn statistics_are_estimated_whatever_the_strategy() {
    let rest = |strategy: &str| {
        format!(
            "train {{ loss: loss; data: (X, y) over N by 64 shuffle; steps: 20; optimizer: sgd(lr: 0.3); strategy: {strategy} }}\n\
             const rows = 1437\noutput h1; output a1; output s1"
        )
    };
    let text = digits(&["8", "6"], &rest("sync(statistics: 1437)"));
    let sync = attempt_in(examples(), &text, 1, &|_| {}).unwrap();
    let alone = attempt_in(
        examples(),
        &digits(&["8", "6"], &rest("ist(local_steps: 5, statistics: 1437)")),
        1,
        &|_| {},
    )
    .unwrap();
    assert_eq!(sync.outputs, alone.outputs);
    // With all rows, what is printed is normalised: the corners of `s1` are those of `a1`, moved and scaled.
    assert!(sync.outputs["accuracy"][0] > 0.3);
}

#[test]
fn a_run_that_was_stopped_ends_as_if_it_was_not() {
    for strategy in [
        "ist(local_steps: 3)",
        "ist(local_steps: 3, state: reset)",
        "ist(local_steps: 3, parts: 2)",
        "local_sgd(steps: 3)",
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ckpt");
        let text = |epochs: usize| {
            let way = Way {
                epochs,
                ..way(Rule::Momentum, None, 3)
            };
            let saves = format!("checkpoint: \"{}\" every 6 steps", path.display());
            text(&format!("{strategy}; {saves}"), &way)
        };
        let whole = attempt(&text(4), 3).unwrap();
        let _ = std::fs::remove_dir_all(&path);
        attempt(&text(2), 3).unwrap();
        let resumed = attempt_in(".".into(), &text(4), 3, &|session| {
            session.keeping.begin = Begin::Resume
        })
        .unwrap();
        assert_eq!(resumed.losses, whole.losses[6..], "{strategy}");
        assert_eq!(resumed.outputs, whole.outputs, "{strategy}");
        // Rounds are shared out over the sites that there are.
        let other = attempt_in(".".into(), &text(5), 2, &|session| {
            session.keeping.begin = Begin::Resume
        });
        let error = other.err().unwrap();
        assert!(error.message.contains("the number of sites"), "{error:?}");
    }
}

/// What `einc plan` says of a program on so many sites.
fn planned(text: &str, sites: u32) -> PlanRounds {
    let program = load::load_text("test", "test.ein", text.into(), None, PathBuf::from("."));
    let settings = Settings {
        sites: Some(sites),
        ..Settings::default()
    };
    let checked = session::check(&program, &settings, Purpose::Plan).unwrap();
    let training = checked
        .training
        .unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
    pipeline::rounds(&training, &training.blocks[0]).unwrap()
}

/// Figure 2 of the paper: 1,000 features, three hidden layers of 4,000, 200 labels, batches of 512, rounds of 10 steps; millions of floats a step, by
/// its formula with the inner layers alone in the sum.
#[test]
fn volumes_are_those_of_the_formula() {
    let net = |optimizer: &str, strategy: &str| {
        format!(
            "use std.nn\ndim N = 65536\ninput X: f32[N, 1000]\ninput y: i64[N]\nparam W1: f32[1000, 4000] = he_normal\n\
             param W2: f32[4000, 4000] = he_normal\nparam W3: f32[4000, 4000] = he_normal\nparam W4: f32[4000, 200] = he_normal\nparam c: f32[200] = zeros\n\
             param n1: nn.ist_norm(4000); param n2: nn.ist_norm(4000); param n3: nn.ist_norm(4000)\n\
             a[n,i] = X[n,d] * W1[d,i]\ns = n1(a)\nb[n,j] = relu(s[n,i]) * W2[i,j]\nt = n2(b)\ne[n,k] = relu(t[n,j]) * W3[j,k]\nu = n3(e)\n\
             z[n,q] = relu(u[n,k]) * W4[k,q] + c[q]\nloss = mean[n] nn.cross_entropy(z, y)[n]\n\
             train {{ loss: loss; data: (X, y) over N by 512; epochs: 1; optimizer: {optimizer}; strategy: {strategy} }}\noutput loss\n"
        )
    };
    let (f, l, inner) = (4.0e6, 0.8e6, 32.0e6);
    let (hidden, labels) = (12_000.0, 200.0);
    for (sites, paper, parallel) in [
        (2, 2.08, 73.6),
        (4, 1.28, 147.2),
        (8, 0.88, 294.4),
        (16, 0.68, 588.8),
    ] {
        let n = f64::from(sites);
        let rounds = planned(&net("sgd(lr: 1)", "ist(local_steps: 10)"), sites);
        let weights = rounds
            .tensors
            .iter()
            .filter(|tensor| tensor.name.starts_with('W'));
        let fetched: f64 = weights.clone().map(|tensor| tensor.fetched).sum();
        assert!((fetched / 1e6 - paper).abs() < 1e-9, "{sites}: {fetched}");
        let all: f64 = weights.clone().map(|tensor| tensor.data_parallel).sum();
        assert!((all / 1e6 - parallel).abs() < 1e-9, "{sites}: {all}");
        // A site's block, section 2, with what travels.
        for (optimizer, k) in [
            ("sgd(lr: 1)", 1.0),
            ("momentum(lr: 1)", 2.0),
            ("lamb(lr: 1)", 3.0),
        ] {
            let rounds = planned(&net(optimizer, "ist(local_steps: 10)"), sites);
            let found: f64 = rounds.tensors.iter().map(|tensor| tensor.fetched).sum();
            let block = k * ((f + l + 2.0 * hidden) / n + inner / (n * n) + labels);
            assert!(
                (found - n * block / 10.0).abs() < 1e-3,
                "{optimizer} on {sites}: {found}"
            );
            let rounds = planned(&net(optimizer, "ist(local_steps: 10, state: reset)"), sites);
            let found: f64 = rounds.tensors.iter().map(|tensor| tensor.fetched).sum();
            assert!(
                (found - n * block / k / 10.0).abs() < 1e-3,
                "{optimizer} on {sites}, reset: {found}"
            );
        }
        let flops: u64 = weights.map(|tensor| tensor.flops).sum();
        let wanted = 512.0 * (4.0 * f + 6.0 * l) / n + 6.0 * 512.0 * inner / (n * n);
        assert_eq!(flops as f64, wanted, "{sites}");
    }
}

/// Filters are neurons too; what is added in a residual block is of one layer.
#[test]
fn filters_of_convolutions_are_dealt() {
    let net_at = |rate: &str, strategy: &str| {
        format!(
            "use std.nn\ndim N = 24\ninput X: f32[N, 1, 6, 6] = uniform(-1, 1)\ninput y: f32[N, 3] = uniform(-1, 1)\n\
             param A: f32[8, 1, 3, 3] = he_normal\nparam B: f32[6, 8, 3, 3] = he_normal\nparam C: f32[8, 6, 3, 3] = he_normal\n\
             param D: f32[8, 10] = he_normal\nparam E: f32[10, 3] = he_normal\nparam c: f32[3] = zeros\n\
             a = nn.conv2d(X, A)\nb = nn.conv2d(a, B)\nr[n,f,i,j] = relu(b[n,f,i,j])\nd = nn.conv2d(r, C)\n\
             s[n,f,i,j] = relu(a[n,f,i,j] + d[n,f,i,j])\ng[n,f] = mean[i,j] s[n,f,i,j]\nh[n,k] = relu(g[n,f] * D[f,k])\n\
             z[n,q] = h[n,k] * E[k,q] + c[q]\nloss = mean[n,q] (z[n,q] - y[n,q])^2\n\
             train {{ loss: loss; data: (X, y) over N by 4 shuffle; epochs: 4; optimizer: momentum(lr: {rate}); strategy: {strategy} }}\n\
             output A; output B; output C; output D; output E; output c\n"
        )
    };
    let net = |strategy: &str| net_at("0.02", strategy);
    let dims = |strategy: &str| -> BTreeMap<String, Vec<usize>> {
        let tensors = planned(&net(strategy), 2).tensors.into_iter();
        tensors
            .map(|tensor| (tensor.name, tensor.neurons))
            .filter(|(name, _)| name.len() == 1)
            .collect()
    };
    let expected = |list: [(&str, &[usize]); 6]| {
        list.map(|(name, dims)| (name.to_owned(), dims.to_vec()))
            .into()
    };
    assert_eq!(
        dims("ist(local_steps: 2)"),
        expected([
            ("A", &[0]),
            ("B", &[0, 1]),
            ("C", &[0, 1]),
            ("D", &[0, 1]),
            ("E", &[0]),
            ("c", &[])
        ])
    );
    let dense = expected([
        ("A", &[]),
        ("B", &[]),
        ("C", &[]),
        ("D", &[1]),
        ("E", &[0]),
        ("c", &[]),
    ]);
    assert_eq!(dims("ist(local_steps: 2, layers: dense)"), dense);
    assert_eq!(dims("ist(local_steps: 2, neurons: [h])"), dense);
    let sync = attempt(&net("sync"), 1).unwrap();
    for strategy in ["ist(local_steps: 3)", "ist(local_steps: 3, layers: dense)"] {
        let alone = attempt(&net(strategy), 1).unwrap();
        assert_eq!(
            (alone.losses, alone.outputs),
            (sync.losses.clone(), sync.outputs.clone())
        );
        // What nobody changes is dealt and put back as it was; the last sums are those of a part.
        let still = attempt(&net_at("0", "sync"), 1).unwrap().outputs;
        for sites in [2, 3, 4] {
            let found = attempt(&net_at("0", strategy), sites).unwrap().outputs;
            for (name, values) in &still {
                let parts = if name == "E" { f64::from(sites) } else { 1.0 };
                let wanted: Vec<f64> = values.iter().map(|value| value / parts).collect();
                close(
                    &found[name],
                    &wanted,
                    &format!("{name}, {strategy} on {sites}"),
                );
            }
            let moving = attempt(&net(strategy), sites).unwrap();
            assert!(
                moving.losses.iter().all(|loss| *loss < 1.0),
                "{:?}",
                moving.losses
            );
        }
    }
}

/// A second block with fewer parts, and one in which all train the whole net, go on where the first one ended.
#[test]
fn blocks_with_fewer_parts_follow() {
    let train = |strategy: &str, steps: usize| {
        format!(
            "train {{ loss: loss; data: (X, y) over N by 32 shuffle; steps: {steps}; optimizer: sgd(lr: 0.5); strategy: {strategy}; validate: accuracy on (Xv, yv) every 10 steps }}\n"
        )
    };
    let text = digits(
        &["128", "128"],
        &[
            train("ist(local_steps: 10)", 100),
            train("ist(local_steps: 10, parts: 2)", 30),
            train("sync", 20),
        ]
        .concat(),
    );
    let run = attempt_in(examples(), &text, 4, &|_| {}).unwrap();
    let (first, others) = (
        run.losses[95..100].iter().sum::<f64>() / 5.0,
        &run.losses[100..],
    );
    assert!(
        others.iter().all(|loss| *loss < 3.0 * first.max(0.1)),
        "{first}: {others:?}"
    );
    assert!(run.validated.last().unwrap() > &0.97, "{:?}", run.validated);
}

/// A net of 4.1 MB on eight sites of 3.5 MB; one site of that size is refused.
#[test]
fn a_net_larger_than_a_site_is_trained() {
    let memory = 3_500_000;
    let text = "use std.nn\ndim N = 64\ninput X: f32[N, 2000] = uniform(-1, 1)\ninput y: i64[N] = 1\nparam W: f32[2000, 512] = he_normal\n\
                param n1: nn.ist_norm(512)\nparam V: f32[512, 4] = he_normal\nparam c: f32[4] = zeros\na[n,k] = X[n,d] * W[d,k]\nt = n1(a)\n\
                z[n,q] = relu(t[n,k]) * V[k,q] + c[q]\nloss = mean[n] nn.cross_entropy(z, y)[n]\n\
                train { loss: loss; data: (X, y) over N by 4; epochs: 4; optimizer: sgd(lr: 0.1); strategy: ist(local_steps: 2) }\noutput loss\n";
    let program = load::load_text("test", "test.ein", text.into(), None, PathBuf::from("."));
    let mut settings = Settings::default();
    settings.criteria.memory = Some(memory);
    let refused = session::plan(&program, &settings, 1, Purpose::Run, None);
    assert_eq!(refused.err().unwrap().diagnostics[0].code, "E0996");
    let (prepared, _) = session::plan(&program, &settings, 8, Purpose::Run, None).unwrap();
    let session::Prepared::Session(session) = prepared else {
        unreachable!("the program trains");
    };
    let options = ein_exec::Options {
        threads: 8,
        ..ein_exec::Options::default()
    };
    let report = ein_exec::train_in_process(&session, 8, &options, &|_| Ok(())).unwrap();
    assert!(
        report.peak_bytes.iter().all(|held| *held <= memory),
        "{:?}",
        report.peak_bytes
    );
    assert!(report.printed[0].values.data().get(0).as_f64() < 1.0);
}
