//! Steps that are taken together: their results against plain loops, how a plan shows them, and what a run tells of its steps.
//!
//! Must not know how blocks are made.

use crate::families::{in_process, inputs};
use einc_tests::{Tensor, einc, launchers, mpirun, run};
use std::path::Path;
use std::process::Command;

/// So many that every site's part is worth a sweep.
const ROWS: usize = 1103;
const COLUMNS: usize = 257;

const PROGRAM: &str = "use std.nn
dim N
dim D
input X: f64[N, D]
input g: f64[D]
top[n]    = max[d] X[n,d]
e[n,d]    = exp(X[n,d] - top[n])
total[n]  = sum[d] e[n,d]
p[n,d]    = e[n,d] / total[n]
y         = nn.layer_norm(X, g, g)
best[n]   = argmax[d] p[n,d]
spread[n] = logsumexp[d] y[n,d]
output p
output y
output best
output spread
";

/// The same without what is cut along the columns, so that rows are whole on any number of sites.
const SOFTMAX: &str = "dim N
dim D
input X: f64[N, D]
top[n]    = max[d] X[n,d]
e[n,d]    = exp(X[n,d] - top[n])
total[n]  = sum[d] e[n,d]
p[n,d]    = e[n,d] / total[n]
best[n]   = argmax[d] p[n,d]
output p
output best
";

/// Sums of rows that share only what they read.
const NORM: &str = "dim N
dim D
input X: f64[N, D]
m[n]   = mean[d] X[n,d]
v[n]   = mean[d] (X[n,d] - m[n])^2
y[n,d] = (X[n,d] - m[n]) * rsqrt(v[n] + 1e-5)
output y
";

fn write(folder: &Path, program: &str) -> std::path::PathBuf {
    let source = folder.join("rows.ein");
    std::fs::write(&source, program).unwrap();
    source
}

#[test]
fn rows_are_what_loops_say() {
    let folder = tempfile::tempdir().unwrap();
    let (x, g) = (
        Tensor::noise(&[ROWS, COLUMNS], 1),
        Tensor::noise(&[COLUMNS], 2),
    );
    let arguments = inputs(folder.path(), &[("X", &x), ("g", &g)]);
    let (mut p, mut y, mut best, mut spread) = (vec![], vec![], vec![], vec![]);
    for row in x.data.chunks(COLUMNS) {
        let top = row.iter().copied().fold(f64::MIN, f64::max);
        let total: f64 = row.iter().map(|x| (x - top).exp()).sum();
        p.extend(row.iter().map(|x| (x - top).exp() / total));
        best.push(row.iter().position(|x| *x == top).unwrap() as f64);
        let mean = row.iter().sum::<f64>() / COLUMNS as f64;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / COLUMNS as f64;
        let scale = 1.0 / (variance + 1e-5).sqrt();
        let normal = row
            .iter()
            .zip(&g.data)
            .map(|(x, g)| g * (x - mean) * scale + g);
        let normal: Vec<f64> = normal.collect();
        spread.push(normal.iter().map(|y| y.exp()).sum::<f64>().ln());
        y.extend(normal);
    }
    in_process(
        &write(folder.path(), PROGRAM),
        &arguments,
        &["p", "y", "best", "spread"],
        |output, how| {
            for (name, want) in [("p", &p), ("y", &y), ("best", &best), ("spread", &spread)] {
                let got = output(name);
                assert_eq!(got.data.len(), want.len(), "{name}, {how}");
                for (at, (got, want)) in got.data.iter().zip(want).enumerate() {
                    let close = (got - want).abs() <= 1e-11 * (1.0 + want.abs());
                    assert!(close, "{name}[{at}] is {got}, not {want}, {how}");
                }
            }
        },
    );
}

/// Products whose other factor is small, and what is done to their elements.
const LAYERS: &str = "dim N
dim D
dim H = 96
input X: f64[N, D]
input A: f64[D, H]
input B: f64[H, 33]
h[n,k] = tanh(X[n,d] * A[d,k]) + 0.25
z[n,l] = (h[n,k] * B[k,l])^2
output h
output z
";

#[test]
fn products_in_a_sweep_are_what_loops_say() {
    let folder = tempfile::tempdir().unwrap();
    let (x, a, b) = (
        Tensor::noise(&[ROWS, COLUMNS], 1),
        Tensor::noise(&[COLUMNS, 96], 2),
        Tensor::noise(&[96, 33], 3),
    );
    let arguments = inputs(folder.path(), &[("X", &x), ("A", &a), ("B", &b)]);
    let (mut h, mut z) = (vec![], vec![]);
    for row in x.data.chunks(COLUMNS) {
        let times = |row: &[f64], by: &Tensor, k: usize| -> f64 {
            (0..row.len()).map(|d| row[d] * by.at(&[d, k])).sum()
        };
        let hidden: Vec<f64> = (0..96).map(|k| times(row, &a, k).tanh() + 0.25).collect();
        z.extend((0..33).map(|l| times(&hidden, &b, l).powi(2)));
        h.extend(hidden);
    }
    in_process(
        &write(folder.path(), LAYERS),
        &arguments,
        &["h", "z"],
        |output, how| {
            for (name, want) in [("h", &h), ("z", &z)] {
                close(&output(name).data, want, name, how);
            }
        },
    );
    let text = planned(&folder.path().join("rows.ein"), "1");
    assert!(step(&text, "h").contains("in sweep 0"), "{text}");
    assert!(step(&text, "z").contains("in sweep 0"), "{text}");
}

/// Attention to the last keys up to a query's own, and what of it is left for the first query.
const WINDOW: &str = "dim B = 2
dim T
dim D = 24
const W = 90
input Q: f64[B, T, D]
input K: f64[B, T, D]
input V: f64[B, T, D]
score[b,t,s]  = where(s <= t and t - s < W, Q[b,t,d] * K[b,s,d] / 4, -inf)
top[b,t]      = max[s] score[b,t,s]
weight[b,t,s] = exp(score[b,t,s] - top[b,t])
total[b,t]    = sum[s] weight[b,t,s]
out[b,t,d]    = weight[b,t,s] * V[b,s,d] / total[b,t]
output out
";

#[test]
fn attention_of_a_window_is_what_loops_say() {
    const KEYS: usize = 413;
    let folder = tempfile::tempdir().unwrap();
    let shape = [2, KEYS, 24];
    let [q, k, mut v] = [1, 2, 3].map(|seed| Tensor::noise(&shape, seed));
    let check = |v: &Tensor| {
        let arguments = inputs(folder.path(), &[("Q", &q), ("K", &k), ("V", v)]);
        let mut out = vec![];
        for (b, t) in (0..2).flat_map(|b| (0..KEYS).map(move |t| (b, t))) {
            let chosen = (t + 1).saturating_sub(90)..t + 1;
            let score = |s: usize| -> f64 {
                let products = (0..24).map(|d| q.at(&[b, t, d]) * k.at(&[b, s, d]));
                products.sum::<f64>() / 4.0
            };
            let scores: Vec<f64> = chosen.clone().map(score).collect();
            let top = scores.iter().copied().fold(f64::MIN, f64::max);
            let weights: Vec<f64> = scores.iter().map(|x| (x - top).exp()).collect();
            let total: f64 = weights.iter().sum();
            out.extend((0..24).map(|d| {
                // Outside the window a 0 meets what is no number, if it does.
                let all = 0..KEYS;
                let outside = all.filter(|s| !chosen.contains(s));
                let zeros: f64 = outside.map(|s| 0.0 * v.at(&[b, s, d])).sum();
                let terms = chosen.clone().zip(&weights);
                terms.map(|(s, w)| w * v.at(&[b, s, d])).sum::<f64>() / total + zeros
            }));
        }
        let source = write(folder.path(), WINDOW);
        in_process(&source, &arguments, &["out"], |output, how| {
            let got = output("out").data;
            let nan = |data: &[f64]| -> Vec<bool> { data.iter().map(|x| x.is_nan()).collect() };
            assert_eq!(nan(&got), nan(&out), "{how}");
            let numbers = |data: &[f64]| -> Vec<f64> {
                data.iter().copied().filter(|x| !x.is_nan()).collect()
            };
            close(&numbers(&got), &numbers(&out), "out", how);
        });
    };
    check(&v);
    v.data[KEYS * 24 - 1] = f64::NAN;
    check(&v);
    let source = folder.path().join("rows.ein").display().to_string();
    let text = einc(&["plan", &source, "--dim", "T=413"]).success().stdout;
    for name in ["score", "weight", "out"] {
        assert!(step(&text, name).contains("in sweep 0"), "{text}");
    }
}

/// What is made of every element is read by nothing but numbers of the whole.
const NUMBERS: &str = "dim N
dim D
input X: f64[N, D]
input G: f64[N, D]
m[n,d] = 0.9 * X[n,d] + 0.1 * tanh(G[n,d])
u[n,d] = m[n,d] / (abs(G[n,d]) + 0.5)
length = norm[n,d] u[n,d]
total  = sum[n,d] abs(u[n,d])
top    = max[n,d] m[n,d]
middle = mean[n,d] exp(u[n,d])
output m
output length
output total
output top
output middle
";

#[test]
fn numbers_of_all_rows_are_gathered_in_a_sweep() {
    let folder = tempfile::tempdir().unwrap();
    let (x, g) = (
        Tensor::noise(&[ROWS, COLUMNS], 1),
        Tensor::noise(&[ROWS, COLUMNS], 2),
    );
    let arguments = inputs(folder.path(), &[("X", &x), ("G", &g)]);
    let pairs = || x.data.iter().zip(&g.data);
    let m: Vec<f64> = pairs().map(|(x, g)| 0.9 * x + 0.1 * g.tanh()).collect();
    let u = m.iter().zip(&g.data).map(|(m, g)| m / (g.abs() + 0.5));
    let u: Vec<f64> = u.collect();
    let want = [
        ("m", m.clone()),
        ("length", vec![u.iter().map(|u| u * u).sum::<f64>().sqrt()]),
        ("total", vec![u.iter().map(|u| u.abs()).sum::<f64>()]),
        ("top", vec![m.iter().copied().fold(f64::MIN, f64::max)]),
        (
            "middle",
            vec![u.iter().map(|u| u.exp()).sum::<f64>() / u.len() as f64],
        ),
    ];
    in_process(
        &write(folder.path(), NUMBERS),
        &arguments,
        &["m", "length", "total", "top", "middle"],
        |output, how| {
            for (name, want) in &want {
                close(&output(name).data, want, name, how);
            }
        },
    );
    let text = planned(&folder.path().join("rows.ein"), "1");
    for name in ["length", "total", "top", "middle"] {
        assert!(step(&text, name).contains("in sweep 0"), "{text}");
    }
    assert!(step(&text, "u").contains("in sweep 0, passes"), "{text}");
}

/// A product whose other factor no cache holds is no part of a sweep: every block of rows would read all of it.
#[test]
fn large_products_are_taken_whole() {
    let folder = tempfile::tempdir().unwrap();
    let program = "dim N
dim D
input X: f32[N, D]
input A: f32[D, 20_000]
h[n,k] = relu(X[n,d] * A[d,k])
output h
";
    let text = planned(&write(folder.path(), program), "1");
    assert!(!text.contains("in sweep"), "{text}");
}

fn close(got: &[f64], want: &[f64], name: &str, how: &str) {
    assert_eq!(got.len(), want.len(), "{name}, {how}");
    for (at, (got, want)) in got.iter().zip(want).enumerate() {
        let close = (got - want).abs() <= 1e-10 * (1.0 + want.abs());
        assert!(close, "{name}[{at}] is {got}, not {want}, {how}");
    }
}

/// What `einc plan` shows.
fn planned(source: &Path, sites: &str) -> String {
    let mut command = vec!["plan".to_string(), source.display().to_string()];
    for (name, size) in [("N", ROWS), ("D", COLUMNS)] {
        command.extend(["--dim".into(), format!("{name}={size}")]);
    }
    command.extend(["--sites".into(), sites.to_string()]);
    einc(&command).success().stdout
}

/// The line of a step.
fn step(plan: &str, name: &str) -> String {
    let mut lines = plan.lines();
    let found = lines.find(|line| line.split_whitespace().nth(1) == Some(name));
    found
        .unwrap_or_else(|| panic!("no step `{name}` in\n{plan}"))
        .to_owned()
}

/// A rule with states and norms over a large param, whose gradient is given.
const RULE: &str = "dim N
dim D
input G: f64[N, D]
param W: f64[N, D] = zeros
loss = sum[n,d] W[n,d] * G[n,d]
train {
  loss:      loss
  steps:     3
  optimizer: lamb(lr: 0.01, weight_decay: 0.1)
}
out[n,d] = W[n,d]
output out
";

#[test]
fn a_rule_with_states_is_a_sweep_and_what_loops_say() {
    let folder = tempfile::tempdir().unwrap();
    let (g, w) = (
        Tensor::noise(&[ROWS, COLUMNS], 1),
        Tensor::noise(&[ROWS, COLUMNS], 2),
    );
    let arguments = inputs(folder.path(), &[("G", &g), ("W", &w)]);
    let mut w = w.data;
    let (mut m, mut v) = (vec![0.0; w.len()], vec![0.0; w.len()]);
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    for step in 1..4 {
        let mut u = vec![];
        for (at, g) in g.data.iter().enumerate() {
            m[at] = 0.9 * m[at] + 0.1 * g;
            v[at] = 0.999 * v[at] + 0.001 * g * g;
            let (mh, vh) = (
                m[at] / (1.0 - 0.9f64.powi(step)),
                v[at] / (1.0 - 0.999f64.powi(step)),
            );
            u.push(mh / (vh.sqrt() + 1e-6) + 0.1 * w[at]);
        }
        let ratio = norm(&w) / norm(&u);
        w.iter_mut()
            .zip(&u)
            .for_each(|(w, u)| *w -= 0.01 * ratio * u);
    }
    in_process(
        &write(folder.path(), RULE),
        &arguments,
        &["out"],
        |output, how| close(&output("out").data, &w, "out", how),
    );
    let text = planned(&folder.path().join("rows.ein"), "1");
    for name in ["lamb.m.W_next", "lamb.v.W_next", "lamb.W.u"] {
        assert!(step(&text, name).contains("in sweep 0"), "{text}");
    }
    for name in ["lamb.W.mh", "lamb.W.vh"] {
        assert!(step(&text, name).contains("in sweep 0, passes"), "{text}");
    }
}

#[test]
fn a_plan_shows_what_passes_and_does_not_count_it() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), SOFTMAX);
    for sites in ["1", "2", "4"] {
        let text = planned(&source, sites);
        let line = |name: &str| step(&text, name);
        assert!(line("e").contains("in sweep 0, passes"), "{text}");
        assert!(line("p").contains("in sweep 0"), "{text}");
        assert!(!line("p").contains("passes"), "{text}");
    }
    let source = write(folder.path(), NORM);
    for sites in ["1", "2", "4"] {
        let text = planned(&source, sites);
        for name in ["m", "v"] {
            assert!(step(&text, name).contains("in sweep 0, passes"), "{text}");
        }
        assert!(step(&text, "y").contains("in sweep 0"), "{text}");
    }
}

#[test]
fn a_trace_has_a_track_a_site_and_a_slice_a_step() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), SOFTMAX);
    let x = Tensor::noise(&[ROWS, COLUMNS], 1);
    let arguments = inputs(folder.path(), &[("X", &x)]);
    let read = |name: &str, sites: usize| {
        let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
        for site in 0..sites {
            assert!(
                text.contains(&format!(r#""tid":{site},"args":{{"name":"site {site}"}}"#)),
                "{text}"
            );
        }
        assert!(
            text.contains(r#""cat":"sweep""#) && text.contains("rows.ein:"),
            "{text}"
        );
        assert!(!text.contains(r#""ts":-"#), "{text}");
        // Every slice is a line of its own.
        text.matches(r#""ph":"X""#).count()
    };
    let file = |name: &str| folder.path().join(name).display().to_string();
    let mut command = vec![
        "run".to_string(),
        source.display().to_string(),
        "--stats".into(),
    ];
    command.extend(arguments.iter().cloned());
    command.extend([
        "--sites".into(),
        "3".into(),
        "--profile".into(),
        file("a.json"),
    ]);
    let stats = einc(&command).success().stderr;
    assert!(
        stats.contains("stats: step ") && stats.contains("Gflop/s"),
        "{stats}"
    );
    assert!(read("a.json", 3) >= 6);

    let program = folder.path().join("rows");
    run(einc_tests::einc_command(&["build"])
        .arg(&source)
        .arg("-o")
        .arg(&program))
    .success();
    run(Command::new(&program)
        .args(&arguments)
        .args(["--profile", &file("b.json")]))
    .success();
    assert!(read("b.json", 1) >= 2);
    for launcher in launchers() {
        run(mpirun(launcher, 2, &program)
            .args(&arguments)
            .args(["--profile", &file("c.json")]))
        .success();
        assert!(read("c.json", 2) >= 4);
    }
    let wrong = run(Command::new(&program)
        .args(&arguments)
        .args(["--profile", "/nowhere/t.json"]));
    let told = wrong.fails_with(1).stderr;
    assert!(told.contains("/nowhere/t.json"), "{told}");
}

/// A rank that is stopped for a while: the other says for whom it waits, once, and the run ends well.
#[test]
fn a_stalled_rank_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("rounds.ein");
    let text = "dim N = 1200
input X: f64[N, N] = normal(0, 1)
repeat t < 9000 {
  state v[i] = X[i,0]
  w[i] = sum[j] X[i,j] * v[j]
  next v[i] = w[i] / sqrt(sum[k] w[k]^2)
}
length = sum[i] v[i]^2
output length
";
    std::fs::write(&source, text).unwrap();
    let program = folder.path().join("rounds");
    run(einc_tests::einc_command(&["build"])
        .arg(&source)
        .arg("-o")
        .arg(&program))
    .success();
    for launcher in launchers() {
        // It has worked for two fifths of a second when the rounds have begun.
        let script = format!(
            "case \"$OMPI_COMM_WORLD_RANK$PMI_RANK\" in 1) (
  until [ \"$(cut -d' ' -f14 /proc/$$/stat)\" -ge 40 ]; do sleep 0.02; done
  kill -STOP $$; sleep 2.5; kill -CONT $$) & esac
exec {0}/rounds --stall 0.4 --profile {0}/t.json\n",
            folder.path().display()
        );
        let stopped = folder.path().join("stopped.sh");
        std::fs::write(&stopped, script).unwrap();
        let mut command = mpirun(launcher, 2, Path::new("/bin/sh"));
        let told = run(command.arg(&stopped)).success();
        let length = told.stdout.trim().strip_prefix("length = ");
        let length: f64 = length.and_then(|x| x.parse().ok()).unwrap_or(0.0);
        assert!((length - 1.0).abs() < 1e-12, "{told}");
        // The stopped rank, when it goes on, may find that it has waited too.
        let line = told
            .stderr
            .lines()
            .find(|line| line.contains("site 0 has waited 0.4 s for"));
        let line = line.unwrap_or_else(|| panic!("{launcher}: {told}"));
        assert!(line.contains("rounds.ein:"), "{told}");
    }
}
