//! Texts of real networks with their training, every layer written out, and of long and tangled programs: what planning is timed on.
//!
//! Must not know how they are planned.
//!
//! ```text
//! encoders(BERT_BASE)   12 layers of attention, 110 million params, a step of AdamW
//! ```

use std::fmt::Write;

/// The sizes of a transformer.
#[derive(Clone, Copy, Debug)]
pub struct Encoders {
    pub layers: usize,
    pub width: u64,
    pub heads: u64,
    pub rows: u64,
    pub sequence: u64,
    pub words: u64,
    /// True if a position sees only itself and those before it.
    pub causal: bool,
}

/// BERT-base.
pub const BERT_BASE: Encoders = Encoders {
    layers: 12,
    width: 768,
    heads: 12,
    rows: 32,
    sequence: 512,
    words: 30_522,
    causal: false,
};

/// GPT-2 XL.
pub const GPT2_XL: Encoders = Encoders {
    layers: 48,
    width: 1600,
    heads: 25,
    rows: 8,
    sequence: 1024,
    words: 50_257,
    causal: true,
};

/// A training step of a transformer by AdamW, the loss over every position.
pub fn encoders(sizes: Encoders) -> String {
    let Encoders {
        layers,
        width,
        heads,
        rows,
        sequence,
        words,
        causal,
    } = sizes;
    let masked = match causal {
        true => "where(s <= t, q[n,h,t,e] * k[n,h,s,e] / sqrt(E), -inf)",
        false => "q[n,h,t,e] * k[n,h,s,e] / sqrt(E)",
    };
    let mut text = format!(
        "\
module linear(D, F)(x[.., D]) -> y[.., F] {{
  param w: f32[D, F] = normal(0, 0.02)
  param b: f32[F] = zeros
  y[..,f] = x[..,d] * w[d,f] + b[f]
}}
module norm(D)(x[.., D]) -> y[.., D] {{
  param gain: f32[D] = ones
  param shift: f32[D] = zeros
  m[..] = mean[d] x[..,d]
  z[..,d] = x[..,d] - m[..]
  v[..] = mean[d] z[..,d]^2
  y[..,d] = gain[d] * z[..,d] * rsqrt(v[..] + 1e-5) + shift[d]
}}
module attention(D, H)(x[n, t, D]) -> y[n, t, D] {{
  dim E = D / H
  param wq: f32[D, H, E] = normal(0, 0.02)
  param wk: f32[D, H, E] = normal(0, 0.02)
  param wv: f32[D, H, E] = normal(0, 0.02)
  param wo: f32[H, E, D] = normal(0, 0.02)
  q[n,h,t,e] = x[n,t,d] * wq[d,h,e]
  k[n,h,t,e] = x[n,t,d] * wk[d,h,e]
  v[n,h,t,e] = x[n,t,d] * wv[d,h,e]
  z[n,h,t,s] = {masked}
  top[n,h,t] = stop(max[s] z[n,h,t,s])
  p[n,h,t,s] = exp(z[n,h,t,s] - top[n,h,t])
  total[n,h,t] = sum[s] p[n,h,t,s]
  a[n,h,t,s] = p[n,h,t,s] / total[n,h,t]
  o[n,h,t,e] = a[n,h,t,s] * v[n,h,s,e]
  y[n,t,d] = o[n,h,t,e] * wo[h,e,d]
}}
module layer(D, H)(x[n, t, D]) -> y[n, t, D] {{
  param look: attention(D, H)
  param n1: norm(D)
  param n2: norm(D)
  param up: linear(D, 4 * D)
  param down: linear(4 * D, D)
  a = look(n1(x))
  h[n,t,d] = x[n,t,d] + a[n,t,d]
  u = up(n2(h))
  g[n,t,k] = gelu(u[n,t,k])
  f = down(g)
  y[n,t,d] = h[n,t,d] + f[n,t,d]
}}
dim N = {all}
dim T = {sequence}
dim V = {words}
dim D = {width}
input tok: i32[N, T]
input goal: i32[N, T]
param word: f32[V, D] = normal(0, 0.02)
param place: f32[T, D] = normal(0, 0.02)
param last: norm(D)
param head: linear(D, V)
",
        all = rows * 1000
    );
    for layer in 0..layers {
        let _ = writeln!(text, "param l{layer}: layer(D, {heads})");
    }
    text += "x0[n,t,d] = word[tok[n,t],d] + place[t,d]\n";
    for layer in 0..layers {
        let _ = writeln!(text, "x{} = l{layer}(x{layer})", layer + 1);
    }
    let _ = write!(
        text,
        "\
scores = head(last(x{layers}))
high[n,t] = stop(max[v] scores[n,t,v])
sums[n,t] = sum[v] exp(scores[n,t,v] - high[n,t])
loss = mean[n,t] (log(sums[n,t]) - (scores[n,t,goal[n,t]] - high[n,t]))
{}",
        training("(tok, goal)", rows)
    );
    text
}

/// The train block of a loss: AdamW, written out.
fn training(data: &str, rows: u64) -> String {
    format!(
        "\
optimizer adam_w(lr, b1 = 0.9, b2 = 0.999, decay = 0.01) for w[..], g[..] {{
  state m[..] = zeros
  state v[..] = zeros
  next m[..] = b1 * m[..] + (1 - b1) * g[..]
  next v[..] = b2 * v[..] + (1 - b2) * g[..]^2
  next w[..] = w[..] - lr * (next m[..] / (sqrt(next v[..]) + 1e-8) + decay * w[..])
}}
train {{ loss: loss; data: {data} over N by {rows}; steps: 4; optimizer: adam_w(lr: 0.001) }}
"
    )
}

/// A training step of a residual network of bottleneck blocks on images of 224 by 224 (He et al. 2016): `[3, 4, 6, 3]` is ResNet-50.
pub fn resnet(blocks: [usize; 4], rows: u64) -> String {
    let mut net = Images {
        text: format!(
            "dim N = {}\ninput x0: f32[N, 3, 224, 224]\ninput y: i32[N]\n",
            rows * 1000
        ),
        made: 0,
    };
    let stem = net.conv(("x0", 3, 224), 64, 7, 2);
    let stem = net.normed(&stem, 64, None);
    let pooled = net.name();
    let _ = writeln!(
        net.text,
        "{pooled}[n,c,i<56,j<56] = max[r<3,s<3] ({stem}[n,c,2*i+r-1,2*j+s-1] else -inf)"
    );
    let (mut x, mut channels, mut side) = (pooled, 64, 56);
    for (stage, count) in blocks.into_iter().enumerate() {
        let narrow = 64 << stage;
        for block in 0..count {
            let stride = if stage > 0 && block == 0 { 2 } else { 1 };
            let next = side / stride;
            let skip = match block {
                0 => {
                    let skip = net.conv((&x, channels, side), 4 * narrow, 1, stride);
                    net.norm(&skip, 4 * narrow)
                }
                _ => x.clone(),
            };
            let a = net.conv((&x, channels, side), narrow, 1, 1);
            let a = net.normed(&a, narrow, None);
            let b = net.conv((&a, narrow, side), narrow, 3, stride);
            let b = net.normed(&b, narrow, None);
            let c = net.conv((&b, narrow, next), 4 * narrow, 1, 1);
            x = net.normed(&c, 4 * narrow, Some(&skip));
            (channels, side) = (4 * narrow, next);
        }
    }
    let _ = write!(
        net.text,
        "\
param w: f32[{channels}, 1000] = normal(0, 0.02)
param b: f32[1000] = zeros
mean_of[n,c] = mean[i,j] {x}[n,c,i,j]
scores[n,k] = mean_of[n,c] * w[c,k] + b[k]
high[n] = stop(max[k] scores[n,k])
sums[n] = sum[k] exp(scores[n,k] - high[n])
loss = mean[n] (log(sums[n]) - (scores[n,y[n]] - high[n]))
{}",
        training("(x0, y)", rows)
    );
    net.text
}

/// The text of a network of images, while it is written.
struct Images {
    text: String,
    made: usize,
}

impl Images {
    fn name(&mut self) -> String {
        self.made += 1;
        format!("x{}", self.made)
    }

    /// A convolution of a tensor with these channels and side.
    fn conv(&mut self, of: (&str, u64, u64), out: u64, kernel: u64, stride: u64) -> String {
        let (x, channels, side) = of;
        let y = self.name();
        let next = side / stride;
        let (r, s) = match kernel {
            1 => (format!("{stride}*i"), format!("{stride}*j")),
            _ => {
                let pad = kernel / 2;
                (format!("{stride}*i+r-{pad}"), format!("{stride}*j+s-{pad}"))
            }
        };
        let _ = match kernel {
            1 => writeln!(
                self.text,
                "param w{y}: f32[{out}, {channels}] = normal(0, 0.02)\n\
                 {y}[n,f,i<{next},j<{next}] = {x}[n,c,{r},{s}] * w{y}[f,c]"
            ),
            _ => writeln!(
                self.text,
                "param w{y}: f32[{out}, {channels}, {kernel}, {kernel}] = normal(0, 0.02)\n\
                 {y}[n,f,i<{next},j<{next}] = ({x}[n,c,{r},{s}] else 0) * w{y}[f,c,r,s]"
            ),
        };
        y
    }

    /// Normalised over everything but the channels.
    fn norm(&mut self, x: &str, channels: u64) -> String {
        let y = self.name();
        let _ = write!(
            self.text,
            "\
param g{y}: f32[{channels}] = ones
param b{y}: f32[{channels}] = zeros
m{y}[c] = mean[n,i,j] {x}[n,c,i,j]
z{y}[n,c,i,j] = {x}[n,c,i,j] - m{y}[c]
v{y}[c] = mean[n,i,j] z{y}[n,c,i,j]^2
{y}[n,c,i,j] = g{y}[c] * z{y}[n,c,i,j] * rsqrt(v{y}[c] + 1e-5) + b{y}[c]
"
        );
        y
    }

    /// Normalised, with something added, and cut off below 0.
    fn normed(&mut self, x: &str, channels: u64, add: Option<&str>) -> String {
        let normed = self.norm(x, channels);
        let y = self.name();
        let add = add.map_or(String::new(), |add| format!(" + {add}[n,c,i,j]"));
        let _ = writeln!(self.text, "{y}[n,c,i,j] = relu({normed}[n,c,i,j]{add})");
        y
    }
}

/// A chain of layers, all different params, of widths that do not divide: `count` statements.
pub fn chain(count: usize) -> String {
    let mut text = String::from("input x0: f32[4096, 512]\n");
    for at in 0..count / 2 {
        let [from, to] = [at, at + 1].map(|at| 512 + (at * 7919 % 11) * 96);
        let _ = write!(
            text,
            "input w{at}: f32[{from}, {to}]\ny{at}[i,j] = x{at}[i,k] * w{at}[k,j]\nx{}[i,j] = relu(y{at}[i,j])\n",
            at + 1
        );
    }
    let _ = writeln!(text, "output x{}", count / 2);
    text
}

/// Products, sums and functions of square matrices made earlier, the newest more often than the others.
pub fn tangle(count: usize, mut seed: u64) -> String {
    let mut below = |n: usize| {
        // Knuth's MMIX generator.
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize % n
    };
    let mut text = String::from("dim N = 2048\n");
    for at in 0..8 {
        let _ = writeln!(text, "input x{at}: f32[N, N]");
    }
    let mut read = vec![false; count + 8];
    for at in 8..count + 8 {
        let mut pick = || {
            let back = 1 + below(at).min(below(at)).min(below(24));
            read[at - back] = true;
            at - back
        };
        let (a, b) = (pick(), pick());
        let _ = match below(4) {
            0 | 1 => writeln!(text, "x{at}[i,j] = x{a}[i,k] * x{b}[k,j]"),
            2 => writeln!(text, "x{at}[i,j] = x{a}[i,j] + x{b}[j,i]"),
            _ => writeln!(text, "x{at}[i,j] = tanh(x{a}[i,j]) * x{b}[i,j]"),
        };
    }
    for (at, read) in read.iter().enumerate().skip(8) {
        if !read {
            let _ = writeln!(text, "output x{at}");
        }
    }
    text
}
