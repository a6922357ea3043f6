//! Independent subnets and local SGD as plain loops in double precision: every site's steps on its own rows and neurons, put together by index.
//!
//! Two nets: three layers with a normalisation, and convolutions with a residual block. Their gradients are written out.
//!
//! ```text
//! 3 sites, rounds of 4 steps, momentum that travels: losses of all steps and params at the end
//! ```

use ein_plan::{DType, Source};
use std::collections::BTreeMap;

pub(crate) const ROWS: usize = 29;
const EPS: f64 = 1e-5;

/// A rule and what it remembers.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Rule {
    Sgd,
    Momentum,
    Adam,
    AdamW,
    Lamb,
    Lars,
}

/// A way to train.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) rule: Rule,
    /// True if states begin anew with every round; `None`: they stay at their sites.
    pub(crate) reset: Option<bool>,
    pub(crate) local_steps: usize,
    pub(crate) parts: usize,
    pub(crate) sites: usize,
    pub(crate) batch: usize,
    pub(crate) epochs: usize,
}

/// Tensors by name.
pub(crate) type Params = BTreeMap<&'static str, Vec<f64>>;

/// A param: its name, its shape, the layer of neurons of each dimension, and between which numbers it begins.
struct Laid(&'static str, Vec<usize>, Vec<Option<usize>>, (f64, f64));

/// Of params, neurons of each layer, rows, data and targets: the loss and the gradients.
type Gradient = fn(&Params, &[usize], &[usize], &[f64], &[f64]) -> (f64, Params);

/// A net.
pub(crate) struct Net {
    /// Its program, up to the `train` block.
    program: String,
    /// Numbers of an example and of its target.
    sizes: (usize, usize),
    params: Vec<Laid>,
    /// The layers: what names them, and how many neurons they have.
    layers: Vec<(&'static str, usize)>,
    /// The param behind the last layer.
    last: &'static str,
    /// The loss on some rows, and the gradients, of params with so many neurons in each layer.
    gradient: Gradient,
}

/// Features, neurons, neurons, outputs.
const SIZES: [usize; 4] = [5, 7, 6, 3];

/// Two hidden layers, the second one normalised.
pub(crate) fn dense() -> Net {
    let [d, h, k, c] = SIZES;
    let around = (-1.0, 1.0);
    Net {
        program: format!(
            "dim N = {ROWS}\ninput X: f64[N, {d}] = uniform(-1, 1)\ninput y: f64[N, {c}] = uniform(-1, 1)\n\
             param W1: f64[{d}, {h}] = uniform(-1, 1)\nparam W2: f64[{h}, {k}] = uniform(-1, 1)\nparam W3: f64[{k}, {c}] = uniform(-1, 1)\n\
             param g: f64[{k}] = uniform(0.5, 1.5)\nparam s: f64[{k}] = uniform(-1, 1)\nparam b: f64[{c}] = uniform(-1, 1)\n\
             h[n,i] = tanh(X[n,d] * W1[d,i])\na[n,j] = h[n,i] * W2[i,j]\nmu[j] = mean[n] a[n,j]\nvar[j] = mean[n] (a[n,j] - mu[j])^2\n\
             t[n,j] = tanh((a[n,j] - mu[j]) * rsqrt(var[j] + 1e-5) * g[j] + s[j])\nz[n,c] = t[n,j] * W3[j,c] + b[c]\n\
             loss = mean[n] (sum[c] (z[n,c] - y[n,c])^2)\n\
             output W1; output W2; output W3; output g; output s; output b\n"
        ),
        sizes: (d, c),
        params: vec![
            Laid("W1", vec![d, h], vec![None, Some(0)], around),
            Laid("W2", vec![h, k], vec![Some(0), Some(1)], around),
            Laid("W3", vec![k, c], vec![Some(1), None], around),
            Laid("g", vec![k], vec![Some(1)], (0.5, 1.5)),
            Laid("s", vec![k], vec![Some(1)], around),
            Laid("b", vec![c], vec![None], around),
        ],
        layers: vec![("W1", h), ("W2", k)],
        last: "W3",
        gradient: dense_gradient,
    }
}

/// Channels, filters, filters inside of the block, outputs.
const CHANNELS: [usize; 4] = [2, 7, 5, 3];
/// Height, width, and side of a kernel.
const IMAGE: (usize, usize, usize) = (4, 3, 3);

/// Filters as neurons: a convolution, a residual block of two, the mean over the image.
pub(crate) fn convolutions() -> Net {
    let [d, f, k, c] = CHANNELS;
    let (height, width, side) = IMAGE;
    let around = (-0.5, 0.5);
    Net {
        program: format!(
            "use std.nn\ndim N = {ROWS}\ninput X: f64[N, {d}, {height}, {width}] = uniform(-1, 1)\ninput y: f64[N, {c}] = uniform(-1, 1)\n\
             param A: f64[{f}, {d}, {side}, {side}] = uniform(-0.5, 0.5)\nparam B: f64[{k}, {f}, {side}, {side}] = uniform(-0.5, 0.5)\n\
             param C: f64[{f}, {k}, {side}, {side}] = uniform(-0.5, 0.5)\nparam D: f64[{f}, {c}] = uniform(-0.5, 0.5)\n\
             param b: f64[{c}] = uniform(-0.5, 0.5)\na = nn.conv2d(X, A)\nm = nn.conv2d(a, B)\nr[n,f,i,j] = tanh(m[n,f,i,j])\n\
             o = nn.conv2d(r, C)\ns[n,f,i,j] = tanh(a[n,f,i,j] + o[n,f,i,j])\ng[n,f] = mean[i,j] s[n,f,i,j]\n\
             z[n,c] = g[n,f] * D[f,c] + b[c]\nloss = mean[n] (sum[c] (z[n,c] - y[n,c])^2)\n\
             output A; output B; output C; output D; output b\n"
        ),
        sizes: (d * height * width, c),
        params: vec![
            Laid(
                "A",
                vec![f, d, side, side],
                vec![Some(0), None, None, None],
                around,
            ),
            Laid(
                "B",
                vec![k, f, side, side],
                vec![Some(1), Some(0), None, None],
                around,
            ),
            Laid(
                "C",
                vec![f, k, side, side],
                vec![Some(0), Some(1), None, None],
                around,
            ),
            Laid("D", vec![f, c], vec![Some(0), None], around),
            Laid("b", vec![c], vec![None], around),
        ],
        layers: vec![("A", f), ("B", k)],
        last: "D",
        gradient: convolutions_gradient,
    }
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

fn uniform((lo, hi): (f64, f64), name: &str, count: usize) -> Vec<f64> {
    made(&Source::Uniform { lo, hi }, name, &[count as u64])
}

impl Net {
    /// The program that trains it.
    pub(crate) fn text(&self, strategy: &str, way: &Way) -> String {
        let rule = match way.rule {
            Rule::Sgd => "sgd(lr: 0.3)",
            Rule::Momentum => "momentum(lr: 0.1)",
            Rule::Adam => "adam(lr: 0.02)",
            Rule::AdamW => "adamw(lr: 0.02, weight_decay: 0.1)",
            Rule::Lamb => "lamb(lr: 0.02, weight_decay: 0.1)",
            Rule::Lars => "lars(lr: 5, weight_decay: 0.1, trust: 0.01)",
        };
        format!(
            "{}train {{ loss: loss; data: (X, y) over N by {} shuffle; epochs: {}; optimizer: {rule}; strategy: {strategy} }}\n",
            self.program, way.batch, way.epochs
        )
    }

    fn begin(&self) -> Params {
        let params = self.params.iter().map(|Laid(name, shape, _, range)| {
            (*name, uniform(*range, name, shape.iter().product()))
        });
        params.collect()
    }

    /// The neurons of every layer and part in a round.
    fn deal(&self, way: &Way, round: usize) -> Vec<Vec<Vec<usize>>> {
        let deal = self.layers.iter().map(|(name, size)| {
            let stream = format!("train.1.round.{round}.{name}");
            let order = made(&Source::Permutation, &stream, &[*size as u64]);
            let mut parts = vec![];
            let mut at = 0;
            for part in 0..way.parts {
                let length = size / way.parts + usize::from(part < size % way.parts);
                let mut own: Vec<usize> =
                    order[at..at + length].iter().map(|n| *n as usize).collect();
                own.sort_unstable();
                parts.push(own);
                at += length;
            }
            parts
        });
        deal.collect()
    }

    /// The positions of a part's block in a whole param, in order.
    fn positions(&self, name: &str, deal: &[Vec<Vec<usize>>], part: usize) -> Vec<usize> {
        let found = self.params.iter().find(|Laid(own, ..)| *own == name);
        let Laid(_, shape, layers, _) = found.unwrap();
        let mut positions = vec![0];
        for (extent, layer) in shape.iter().zip(layers) {
            let own: Vec<usize> = match layer {
                Some(layer) => deal[*layer][part].clone(),
                None => (0..*extent).collect(),
            };
            let further = positions
                .iter()
                .flat_map(|before| own.iter().map(move |at| before * extent + at));
            positions = further.collect();
        }
        positions
    }

    /// The losses of all steps, and the params at the end.
    pub(crate) fn reference(&self, way: &Way) -> (Vec<f64>, Params) {
        let x = uniform((-1.0, 1.0), "X", ROWS * self.sizes.0);
        let y = uniform((-1.0, 1.0), "y", ROWS * self.sizes.1);
        let mut params = self.begin();
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
            let deal = self.deal(way, round);
            let mut ends: Vec<(Params, [Params; 2])> = vec![];
            let mut of_steps = vec![0.0; chunk.len()];
            for (site, at_home) in stay.iter_mut().enumerate() {
                let part = site % way.parts;
                let take = |whole: &Params| -> Params {
                    let block = |(name, values): (&&'static str, &Vec<f64>)| {
                        (
                            *name,
                            self.positions(name, &deal, part)
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
                let sizes: Vec<usize> = deal.iter().map(|layer| layer[part].len()).collect();
                for (at, rows) in chunk.iter().enumerate() {
                    let start: usize = (0..site)
                        .map(|s| rows.len() / way.sites + usize::from(s < rows.len() % way.sites))
                        .sum();
                    let count = rows.len() / way.sites + usize::from(site < rows.len() % way.sites);
                    let mine = &rows[start..start + count];
                    let (loss, grads) = (self.gradient)(&own, &sizes, mine, &x, &y);
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
                        for (at, value) in self
                            .positions(name, &deal, site % way.parts)
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
        for w in params.get_mut(self.last).unwrap() {
            *w /= way.parts as f64;
        }
        (losses, params)
    }
}

/// The loss on some rows of a net of so many neurons, and the gradients.
#[allow(clippy::needless_range_loop)] // the loops are the formulas
fn dense_gradient(
    p: &Params,
    neurons: &[usize],
    rows: &[usize],
    x: &[f64],
    y: &[f64],
) -> (f64, Params) {
    let ([d, _, _, c], &[h, k]) = (SIZES, neurons) else {
        unreachable!("there are two layers");
    };
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
        if rule == Rule::Lamb {
            lamb(
                values,
                states.each_mut().map(|state| state.get_mut(name).unwrap()),
                &grads[name],
                count,
            );
            continue;
        }
        // The norms are those of what a site has of the param.
        let norm = |values: &[f64]| values.iter().map(|x| x * x).sum::<f64>().sqrt();
        let (wn, gn) = (norm(values), norm(&grads[name]));
        let trusted = if wn > 0.0 && gn > 0.0 {
            0.01 * wn / (gn + 0.1 * wn)
        } else {
            1.0
        };
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
                Rule::Lars => {
                    let a = 0.9 * state(0) + 5.0 * trusted * (g + 0.1 * *w);
                    states[0].get_mut(name).unwrap()[at] = a;
                    *w -= a;
                }
                Rule::Adam | Rule::AdamW => {
                    let m = 0.9 * state(0) + 0.1 * g;
                    let v = 0.999 * state(1) + 0.001 * g * g;
                    states[0].get_mut(name).unwrap()[at] = m;
                    states[1].get_mut(name).unwrap()[at] = v;
                    let t = count as i32 + 1;
                    let (m, v) = (m / (1.0 - 0.9f64.powi(t)), v / (1.0 - 0.999f64.powi(t)));
                    let decay = if rule == Rule::AdamW { 0.1 * *w } else { 0.0 };
                    *w -= 0.02 * (m / (v.sqrt() + 1e-8) + decay);
                }
                Rule::Lamb => unreachable!("it needs norms"),
            }
        }
    }
}

/// LAMB (arXiv 1904.00962, algorithm 2): the norms are those of what a site has of the param.
fn lamb(w: &mut [f64], [m, v]: [&mut Vec<f64>; 2], g: &[f64], count: usize) {
    let t = count as i32 + 1;
    let mut u = vec![0.0; w.len()];
    for at in 0..w.len() {
        m[at] = 0.9 * m[at] + 0.1 * g[at];
        v[at] = 0.999 * v[at] + 0.001 * g[at] * g[at];
        let (m, v) = (
            m[at] / (1.0 - 0.9f64.powi(t)),
            v[at] / (1.0 - 0.999f64.powi(t)),
        );
        u[at] = m / (v.sqrt() + 1e-6) + 0.1 * w[at];
    }
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let ratio = match (norm(w), norm(&u)) {
        (a, b) if a > 0.0 && b > 0.0 => a / b,
        _ => 1.0,
    };
    w.iter_mut()
        .zip(&u)
        .for_each(|(w, u)| *w -= 0.02 * ratio * u);
}

/// Counts the pairs of a convolution that keeps the size: of one image, the numbers of an output, an input and a weight that go together.
fn meetings(to: usize, from: usize) -> Vec<(usize, usize, usize)> {
    let (height, width, side) = IMAGE;
    let mut found = vec![];
    for (f, c) in (0..to).flat_map(|f| (0..from).map(move |c| (f, c))) {
        for (i, j) in (0..height).flat_map(|i| (0..width).map(move |j| (i, j))) {
            for (r, s) in (0..side).flat_map(|r| (0..side).map(move |s| (r, s))) {
                let (y, x) = (
                    (i + r).wrapping_sub(side / 2),
                    (j + s).wrapping_sub(side / 2),
                );
                if y < height && x < width {
                    let at =
                        |channel: usize, y: usize, x: usize| (channel * height + y) * width + x;
                    let weight = ((f * from + c) * side + r) * side + s;
                    found.push((at(f, i, j), at(c, y, x), weight));
                }
            }
        }
    }
    found
}

fn convolution(x: &[f64], w: &[f64], (to, from): (usize, usize)) -> Vec<f64> {
    let mut y = vec![0.0; to * IMAGE.0 * IMAGE.1];
    for (out, input, weight) in meetings(to, from) {
        y[out] += x[input] * w[weight];
    }
    y
}

/// Adds to the gradient of the weights; returns that of the image.
fn back(dy: &[f64], x: &[f64], w: &[f64], dw: &mut [f64], (to, from): (usize, usize)) -> Vec<f64> {
    let mut dx = vec![0.0; x.len()];
    for (out, input, weight) in meetings(to, from) {
        dw[weight] += dy[out] * x[input];
        dx[input] += dy[out] * w[weight];
    }
    dx
}

fn convolutions_gradient(
    p: &Params,
    neurons: &[usize],
    rows: &[usize],
    x: &[f64],
    y: &[f64],
) -> (f64, Params) {
    let ([d, _, _, c], &[f, k]) = (CHANNELS, neurons) else {
        unreachable!("there are two layers");
    };
    let area = IMAGE.0 * IMAGE.1;
    let mut grads: Params = p
        .iter()
        .map(|(name, values)| (*name, vec![0.0; values.len()]))
        .collect();
    let mut loss = 0.0;
    for row in rows {
        let image = &x[row * d * area..(row + 1) * d * area];
        let a = convolution(image, &p["A"], (f, d));
        let r: Vec<f64> = convolution(&a, &p["B"], (k, f))
            .iter()
            .map(|m| m.tanh())
            .collect();
        let o = convolution(&r, &p["C"], (f, k));
        let s: Vec<f64> = a.iter().zip(&o).map(|(a, o)| (a + o).tanh()).collect();
        let g: Vec<f64> = s
            .chunks(area)
            .map(|s| s.iter().sum::<f64>() / area as f64)
            .collect();
        let mut dg = vec![0.0; f];
        for q in 0..c {
            let z: f64 = (0..f).map(|at| g[at] * p["D"][at * c + q]).sum::<f64>() + p["b"][q];
            let error = z - y[row * c + q];
            loss += error * error / rows.len() as f64;
            let dz = 2.0 * error / rows.len() as f64;
            grads.get_mut("b").unwrap()[q] += dz;
            for at in 0..f {
                grads.get_mut("D").unwrap()[at * c + q] += dz * g[at];
                dg[at] += dz * p["D"][at * c + q];
            }
        }
        let sums: Vec<f64> = (0..f * area)
            .map(|at| dg[at / area] / area as f64 * (1.0 - s[at] * s[at]))
            .collect();
        let dr = back(&sums, &r, &p["C"], grads.get_mut("C").unwrap(), (f, k));
        let dm: Vec<f64> = dr
            .iter()
            .zip(&r)
            .map(|(dr, r)| dr * (1.0 - r * r))
            .collect();
        let mut da = back(&dm, &a, &p["B"], grads.get_mut("B").unwrap(), (k, f));
        da.iter_mut().zip(&sums).for_each(|(da, sum)| *da += sum);
        back(&da, image, &p["A"], grads.get_mut("A").unwrap(), (f, d));
    }
    (loss, grads)
}
