//! How long checking and planning an array of equal modules takes: it is one block in the IR, so 48 cost what 2 do (at most 1.3 times
//! as much). Perceptron blocks and transformer encoders, evaluated and trained.
#![allow(clippy::unwrap_used, missing_docs)]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use einc_core::pipeline::{Compiled, Options, compile};
use einc_core::sema::{self, Analysis, Bindings, SourceFile, Sources};
use einc_diag::FileId;
use std::time::Duration;

const PERCEPTRON: &str = "
module block(D)(x[.., D]) -> y[.., D] {
  param w: f32[D, D] = he_normal
  param b: f32[D] = zeros
  y[..,h] = relu(x[..,d] * w[d,h] + b[h])
}
dim L
dim N = 4096
dim D = 512
input X: f32[N, D]
input t: f32[N, D]
param net: block(D)[L]
repeat l < L { state h = X; next h = net[l](h) }
loss = mean[n,d] (h[n,d] - t[n,d])^2
";

const ENCODER: &str = "
module linear(D, H)(x[.., D]) -> y[.., H] {
  param w: f32[D, H] = normal(0, 0.02)
  param b: f32[H]    = zeros
  y[..,h] = x[..,d] * w[d,h] + b[h]
}
module layer_norm(D)(x[.., D]) -> y[.., D] {
  param g: f32[D] = ones
  param b: f32[D] = zeros
  m[..]   = mean[d] x[..,d]
  v[..]   = mean[d] (x[..,d] - m[..])^2
  y[..,d] = g[d] * (x[..,d] - m[..]) * rsqrt(v[..] + 1e-5) + b[d]
}
module attention(D, H)(x[n, t, D]) -> y[n, t, D] {
  dim E = D / H
  param wq: f32[D, H, E] = normal(0, 0.02)
  param wk: f32[D, H, E] = normal(0, 0.02)
  param wv: f32[D, H, E] = normal(0, 0.02)
  param wo: f32[H, E, D] = normal(0, 0.02)
  q[n,h,t,e] = x[n,t,d] * wq[d,h,e]
  k[n,h,t,e] = x[n,t,d] * wk[d,h,e]
  v[n,h,t,e] = x[n,t,d] * wv[d,h,e]
  z[n,h,t,s] = q[n,h,t,e] * k[n,h,s,e] / sqrt(E)
  a[n,h,t,s] = exp(z[n,h,t,s] - logsumexp[r] z[n,h,t,r])
  y[n,t,d]   = a[n,h,t,s] * v[n,h,s,e] * wo[h,e,d]
}
module encoder(D, H)(x[n, t, D]) -> y[n, t, D] {
  param att: attention(D, H)
  param n1: layer_norm(D);  param n2: layer_norm(D)
  param up: linear(D, 4*D); param down: linear(4*D, D)
  a = att(n1(x))
  h[n,t,d] = x[n,t,d] + a[n,t,d]
  u = up(n2(h))
  f[n,t,k] = gelu(u[n,t,k])
  o = down(f)
  y[n,t,d] = h[n,t,d] + o[n,t,d]
}
dim L
dim N = 64
dim D = 768
input X: f32[N, 128, D]
input t: f32[N, 128, D]
param enc: encoder(D, 12)[L]
repeat l < L { state h = X; next h = enc[l](h) }
loss = mean[n,i,d] (h[n,i,d] - t[n,i,d])^2
";

const EVALUATE: &str = "output loss\n";

const TRAIN: &str = "
optimizer momentum(lr, mu = 0.9) for w[..], g[..] {
  state m[..] = zeros
  next m[..] = mu * m[..] + g[..]
  next w[..] = w[..] - lr * next m[..]
}
train { loss: loss; data: (X, t) over N by 16; steps: 4; optimizer: momentum(lr: 0.1) }
";

/// Checks a text.
fn check(text: &str, modules: i64) -> Analysis {
    let sources = Sources {
        files: vec![SourceFile {
            name: "modules.ein".into(),
            text: text.into(),
            ast: einc_syntax::parse(FileId(0), text).ast,
        }],
        ..Sources::default()
    };
    let mut bindings = Bindings {
        require_sizes: true,
        ..Bindings::default()
    };
    bindings.dims.insert("L".into(), modules);
    sema::check(&sources, &bindings)
}

/// Checks a text and plans what it does in a step, or at all.
fn plan(text: &str, modules: i64, sites: u32) -> Compiled {
    let analysis = check(text, modules);
    let step = analysis.training.as_ref();
    let step = step.and_then(|training| training.blocks[0].step.values().next());
    let program = step.or(analysis.program.as_ref());
    let program = program.unwrap_or_else(|| panic!("{:#?}", analysis.diagnostics));
    compile(program, &Options::new(sites), &|| false).unwrap()
}

fn modules(c: &mut Criterion) {
    let cases = [
        ("perceptron", PERCEPTRON, EVALUATE),
        ("perceptron trained", PERCEPTRON, TRAIN),
        ("encoder", ENCODER, EVALUATE),
        ("encoder trained", ENCODER, TRAIN),
    ];
    for (name, model, rest) in cases {
        let text = format!("{model}{rest}");
        for sites in [1, 4, 8] {
            let mut group = c.benchmark_group(format!("{name} at {sites}"));
            group
                .sample_size(10)
                .warm_up_time(Duration::from_millis(1))
                .measurement_time(Duration::from_secs(1));
            for modules in [2, 48] {
                group.bench_function(BenchmarkId::from_parameter(modules), |b| {
                    b.iter(|| plan(&text, modules, sites));
                });
            }
            group.finish();
        }
    }
}

/// A program of 1,000 lines without modules is checked in tens of milliseconds.
fn lines(c: &mut Criterion) {
    let mut text = String::from("dim L\ndim N = 100\ninput x0: f32[N, N]\ninput w: f32[N, N]\n");
    for (n, next) in (0..996).zip(1..) {
        text += &format!("x{next}[i,j] = x{n}[i,k] * w[k,j] + relu(x{n}[i,j]) / sqrt(f32(N))\n");
    }
    text += "output x996\n";
    c.bench_function("check 1,000 lines", |b| b.iter(|| check(&text, 1)));
}

criterion_group!(benches, modules, lines);
criterion_main!(benches);
