//! Iterative programs on 1 to 5 sites, built and under both MPIs, against plain loops; what moves is what was stated.

use einc_tests::{Finished, Tensor, einc, einc_command, launchers, mpirun, run};
use std::process::Command;

const KMEANS: &str = "dim N; dim D; dim K = 4
input X: f64[N, D]
repeat t < 30 until changed / N <= 1e-3 {
  state c[k < K, d] = X[k,d]
  state near[n]: i64 = -1
  dist[n,k]  = sum[d] (X[n,d] - c[k,d])^2
  next near[n] = argmin[k] dist[n,k]
  changed    = sum[n] i64(next near[n] != near[n])
  count[next near[n]]: f64[K]       += 1
  total[next near[n], d]: f64[K, D] += X[n,d]
  next c[k,d] = where(count[k] > 0, total[k,d] / count[k], c[k,d])
}
output c
output near
output t
";

const SOLVERS: &str = "dim N
input A: f64[N, N]; input b: f64[N]
repeat k < N until sqrt(rr) < 1e-10 {
  state x[i] = zeros
  state r[i] = b[i]
  state p[i] = b[i]
  state rr   = b[i] * b[i]
  q[i]  = A[i,j] * p[j]
  alpha = rr / (sum[i] p[i] * q[i])
  next x[i] = x[i] + alpha * p[i]
  next r[i] = r[i] - alpha * q[i]
  next rr   = next r[i] * next r[i]
  next p[i] = next r[i] + next rr / rr * p[i]
}
repeat m < 500 until abs(next lambda - lambda) < 1e-12 {
  state v[i] = 1 / sqrt(N)
  state lambda = 0.0
  w[i] = A[i,j] * v[j]
  next v[i] = w[i] / norm[j] w[j]
  next lambda = v[i] * w[i]
}
output x; output lambda
";

const SMO: &str = "dim M; dim D
input X: f64[M, D]; input y: f64[M]
const C = 1.0; const g = 0.5; const tol = 1e-3
fn row(X[i, d], r, g) -> k[i] { k[i] = exp(-g * sum[d] (X[i,d] - X[r,d])^2) }
fn snap(a, C) = where(a < 1e-9 * C, 0, where(a > C * (1 - 1e-9), C, a))
repeat t < 1_000_000 until gap <= 2 * tol {
  state a[i] = zeros
  state f[i] = -y[i]
  free[i] = 0 < a[i] < C
  hi = argmin[i] where(free[i] or (y[i] > 0 and a[i] == 0) or (y[i] < 0 and a[i] == C), f[i], inf)
  lo = argmax[i] where(free[i] or (y[i] > 0 and a[i] == C) or (y[i] < 0 and a[i] == 0), f[i], -inf)
  gap = f[lo] - f[hi]
  kh = row(X, hi, g)
  kl = row(X, lo, g)
  s  = y[lo] * y[hi]
  L  = max(0, where(s < 0, a[lo] - a[hi], a[lo] + a[hi] - C))
  H  = min(C, where(s < 0, a[lo] - a[hi] + C, a[lo] + a[hi]))
  al = snap(clip(a[lo] - y[lo] * gap / (2 - 2 * kh[lo]), L, H), C)
  ah = snap(a[hi] - s * (al - a[lo]), C)
  next a[i] = where(i == lo, al, where(i == hi, ah, a[i]))
  next f[i] = f[i] + (al - a[lo]) * y[lo] * kl[i] + (ah - a[hi]) * y[hi] * kh[i]
}
output a
output t
";

const DESCENT: &str = "dim N; dim P = 4; dim B = N / P
input Q: f64[N, N]
const C = 32.0
assert N % P == 0
repeat t < 10_000 until worst < 1e-6 {
  state a[i] = zeros
  state g[i] = full(-1)
  viol[i] = abs(a[i] - clip(a[i] - g[i], 0, C))
  worst   = max[i] viol[i]
  i1[b < P] = b * B + argmax[r < B] viol[b * B + r]
  d[b]    = clip(a[i1[b]] - g[i1[b]] / Q[i1[b], i1[b]], 0, C) - a[i1[b]]
  slope   = g[i1[b]] * d[b]
  curve   = d[b] * Q[i1[b], i1[c]] * d[c]
  theta   = min(1, -slope / curve)
  da[i1[b]]: f64[N] += theta * d[b]
  next a[i] = a[i] + da[i]
  next g[i] = g[i] + theta * Q[i, i1[b]] * d[b]
}
output a
";

const POINTS: &str = "dim N
input v: f64[N]; input w: f64[N, 3]
repeat t < 40 {
  state a[i]    = v[i]
  state seen[i] = v[i] > 1e300
  at    = (7 * t) % N
  worst = argmax[i] where(seen[i], -inf, w[i,0])
  next a[i]    = where(i == at, v[worst], where(i == worst, a[at], a[i]))
  next seen[i] = where(i == worst, true, seen[i])
  picked[t]: f64[40]  = a[at]
  row[t,d]: f64[40,3] = w[worst, d]
  was[t]: f64[40]     = f64(seen[at])
  place[t]: i64[40]   = worst
}
output a; output picked; output row; output was; output place; output v
";

/// Runs a program every way there is and hands the outputs of each run to `check`.
fn everywhere(
    text: &str,
    inputs: &[(&str, &Tensor)],
    saved: &[&str],
    check: impl Fn(&dyn Fn(&str) -> Tensor, &str),
) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("model.ein");
    std::fs::write(&source, text).unwrap();
    let mut arguments = vec![];
    for (name, tensor) in inputs {
        let file = folder.path().join(format!("{name}.npy"));
        tensor.write_f64(&file);
        arguments.extend(["--input".to_string(), format!("{name}={}", file.display())]);
    }
    let program = folder.path().join("program");
    let mut build = vec![
        "build",
        source.to_str().unwrap(),
        "-o",
        program.to_str().unwrap(),
    ];
    build.extend(arguments.iter().map(String::as_str));
    einc(&build).success();
    let outcome = |how: &str, command: &mut Command| {
        let out = folder.path().join(how.replace(' ', "_"));
        std::fs::create_dir(&out).unwrap();
        let file = |name: &str| out.join(format!("{name}.npy"));
        command.args(&arguments).arg("--stats");
        for name in saved {
            command
                .arg("--save")
                .arg(format!("{name}={}", file(name).display()));
        }
        moved_as_stated(&run(command).success());
        check(&|name| Tensor::read(&file(name)), how);
    };
    for sites in ["1", "2", "3", "4", "5"] {
        let mut command = einc_command(&["run"]);
        outcome(
            &format!("run on {sites}"),
            command.arg(&source).args(["--sites", sites]),
        );
    }
    outcome("alone on 3", Command::new(&program).args(["--sites", "3"]));
    for launcher in launchers() {
        for ranks in [2, 5] {
            outcome(
                &format!("{launcher} on {ranks}"),
                &mut mpirun(launcher, ranks, &program),
            );
        }
    }
}

/// Every line of the program moves what its plan says, over all rounds.
fn moved_as_stated(finished: &Finished) {
    let lines = finished.stderr.lines().chain(finished.stdout.lines());
    let stated = |line: &&str| line.contains(": moved ") && line.contains(" (stated ");
    for line in lines.filter(stated) {
        let (moved, stated) = line.split_once(" (stated ").unwrap();
        let stated = stated.strip_suffix(')').unwrap();
        assert!(moved.ends_with(&format!("moved {stated}")), "{finished}");
    }
}

fn points(folder_seed: u64, rows: usize, columns: usize, centres: usize) -> Tensor {
    let noise = Tensor::noise(&[rows, columns], folder_seed);
    Tensor::from_fn(&[rows, columns], |at| {
        noise.data[at] * 0.4 + ((at / columns) % centres) as f64
    })
}

#[test]
fn k_means() {
    let (rows, columns, centres) = (61, 3, 4);
    let x = points(7, rows, columns, centres);
    let mut c: Vec<f64> = x.data[..centres * columns].to_vec();
    let mut near = vec![usize::MAX; rows];
    let mut rounds = 0;
    while rounds < 30 {
        rounds += 1;
        let distance = |n: usize, k: usize| -> f64 {
            (0..columns)
                .map(|d| (x.at(&[n, d]) - c[k * columns + d]).powi(2))
                .sum()
        };
        let closest = |n: usize| {
            (0..centres)
                .reduce(|best, k| {
                    if distance(n, k) < distance(n, best) {
                        k
                    } else {
                        best
                    }
                })
                .unwrap()
        };
        let next: Vec<usize> = (0..rows).map(closest).collect();
        let changed = next.iter().zip(&near).filter(|(a, b)| a != b).count();
        near = next;
        let mut sums = vec![0.0; centres * columns];
        let mut counts = vec![0.0; centres];
        for n in 0..rows {
            counts[near[n]] += 1.0;
            for d in 0..columns {
                sums[near[n] * columns + d] += x.at(&[n, d]);
            }
        }
        for k in (0..centres).filter(|k| counts[*k] > 0.0) {
            for d in 0..columns {
                c[k * columns + d] = sums[k * columns + d] / counts[k];
            }
        }
        if changed as f64 / rows as f64 <= 1e-3 {
            break;
        }
    }
    let expected = [
        (
            "c",
            Tensor {
                shape: vec![centres, columns],
                data: c,
            },
        ),
        ("near", Tensor::from_fn(&[rows], |n| near[n] as f64)),
        (
            "t",
            Tensor {
                shape: vec![],
                data: vec![f64::from(rounds)],
            },
        ),
    ];
    everywhere(KMEANS, &[("X", &x)], &["c", "near", "t"], |read, how| {
        for (name, expected) in &expected {
            read(name).assert_close(expected, 1e-9, &format!("{how}: {name}"));
        }
    });
}

/// A symmetric, positive definite matrix.
fn positive(n: usize, seed: u64) -> Tensor {
    let noise = Tensor::noise(&[n, n], seed);
    Tensor::from_fn(&[n, n], |at| {
        let (i, j) = (at / n, at % n);
        let product: f64 = (0..n).map(|k| noise.at(&[i, k]) * noise.at(&[j, k])).sum();
        product + if i == j { 3.0 } else { 0.0 }
    })
}

#[test]
fn conjugate_gradients_and_power_iteration() {
    let n = 23;
    let (a, b) = (positive(n, 3), Tensor::noise(&[n], 5));
    let times = |v: &[f64]| -> Vec<f64> {
        (0..n)
            .map(|i| (0..n).map(|j| a.at(&[i, j]) * v[j]).sum())
            .collect()
    };
    let mut v = vec![1.0 / (n as f64).sqrt(); n];
    let mut lambda = 0.0;
    for _ in 0..500 {
        let w = times(&v);
        let norm = w.iter().map(|w| w * w).sum::<f64>().sqrt();
        let next: f64 = v.iter().zip(&w).map(|(v, w)| v * w).sum();
        v = w.iter().map(|w| w / norm).collect();
        let last = (next - lambda).abs() < 1e-12;
        lambda = next;
        if last {
            break;
        }
    }
    everywhere(
        SOLVERS,
        &[("A", &a), ("b", &b)],
        &["x", "lambda"],
        |read, how| {
            // The solution is judged by what it solves.
            let product = times(&read("x").data);
            let product = Tensor {
                shape: vec![n],
                data: product,
            };
            product.assert_close(&b, 1e-8, how);
            assert!(
                (read("lambda").data[0] - lambda).abs() < 1e-9 * lambda,
                "{how}"
            );
        },
    );
}

#[test]
fn sequential_minimal_optimisation() {
    let (rows, columns) = (37, 2);
    let x = points(11, rows, columns, 2);
    let y = Tensor::from_fn(&[rows], |n| if n % 2 == 0 { 1.0 } else { -1.0 });
    let kernel = |i: usize, j: usize| {
        let square = (0..columns).map(|d| (x.at(&[i, d]) - x.at(&[j, d])).powi(2));
        (-0.5 * square.sum::<f64>()).exp()
    };
    everywhere(SMO, &[("X", &x), ("y", &y)], &["a", "t"], |read, how| {
        // What is optimal is known by the conditions of optimality, to twice the tolerance.
        let a = read("a").data;
        assert!(read("t").data[0] < 1e5, "{how}");
        let balance: f64 = a.iter().zip(&y.data).map(|(a, y)| a * y).sum();
        assert!(
            balance.abs() < 1e-9 && a.iter().all(|a| (0.0..=1.0).contains(a)),
            "{how}"
        );
        let f = |i: usize| {
            (0..rows)
                .map(|j| a[j] * y.data[j] * kernel(i, j))
                .sum::<f64>()
                - y.data[i]
        };
        let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
        for (i, a) in a.iter().take(rows).enumerate() {
            let free = 0.0 < *a && *a < 1.0;
            if free || (y.data[i] > 0.0) == (*a == 0.0) {
                high = high.min(f(i));
            }
            if free || (y.data[i] > 0.0) == (*a == 1.0) {
                low = low.max(f(i));
            }
        }
        assert!(low - high <= 2.1e-3, "{how}: {low} {high}");
    });
}

#[test]
fn block_greedy_coordinate_descent() {
    let n = 12;
    let q = positive(n, 9);
    everywhere(DESCENT, &[("Q", &q)], &["a"], |read, how| {
        // In a box, each coordinate is where its slope is 0, or at the end that its slope points to.
        let a = read("a").data;
        for i in 0..n {
            let slope: f64 = (0..n).map(|j| q.at(&[i, j]) * a[j]).sum::<f64>() - 1.0;
            let step = a[i] - (a[i] - slope).clamp(0.0, 32.0);
            assert!(step.abs() < 2e-6, "{how}: {i} {step}");
        }
    });
}

/// Elements and rows that a scalar names move alone, bit for bit, and what changes at single points changes in place.
#[test]
fn single_points() {
    let n = 53;
    let (noise, w) = (Tensor::noise(&[n], 3), Tensor::noise(&[n, 3], 4));
    let odd = [
        f64::INFINITY,
        f64::NAN,
        -0.0,
        f64::NEG_INFINITY,
        0.0,
        5e-324,
    ];
    let v = Tensor::from_fn(&[n], |i| match i % 4 {
        0 => odd[i / 4 % odd.len()],
        _ => noise.data[i],
    });
    let mut a = v.data.clone();
    let mut seen: Vec<bool> = v.data.iter().map(|v| *v > 1e300).collect();
    let (mut picked, mut row, mut was, mut place) = (vec![], vec![], vec![], vec![]);
    for t in 0..40 {
        let at = 7 * t % n;
        let value = |i: usize| match seen[i] {
            true => f64::NEG_INFINITY,
            false => w.at(&[i, 0]),
        };
        let worst = (1..n).fold(0, |best, i| if value(i) > value(best) { i } else { best });
        picked.push(a[at]);
        row.extend((0..3).map(|d| w.at(&[worst, d])));
        was.push(f64::from(u8::from(seen[at])));
        place.push(worst as f64);
        let old = a[at];
        a[worst] = old;
        a[at] = v.data[worst];
        seen[worst] = true;
    }
    let expected = [
        ("a", a),
        ("picked", picked),
        ("row", row),
        ("was", was),
        ("place", place),
        ("v", v.data.clone()),
    ];
    let names = expected.each_ref().map(|(name, _)| *name);
    everywhere(POINTS, &[("v", &v), ("w", &w)], &names, |read, how| {
        for (name, expected) in &expected {
            let found = read(name).data;
            let same =
                |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            let equal = found.len() == expected.len() && found.iter().zip(expected).all(same);
            assert!(equal, "{how}: {name}: {found:?}\nexpected {expected:?}");
        }
    });
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("points.ein");
    std::fs::write(&source, POINTS).unwrap();
    let plan = [
        "plan",
        source.to_str().unwrap(),
        "--sites",
        "4",
        "--dim",
        "N=40000",
    ];
    let text = einc(&plan).success().stdout;
    assert_eq!(text.matches("local update in place").count(), 2, "{text}");
    let report: einc_core::pipeline::report::PlanReport = serde_json::from_str(
        &einc(&[&plan[..], &["--format", "json"]].concat())
            .success()
            .stdout,
    )
    .unwrap();
    // A round moves a few elements, not a tensor.
    assert!(report.loops[0].transfer_per_round < 1000, "{text}");
}

#[test]
fn a_loop_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("model.ein");
    std::fs::write(&source, SOLVERS).unwrap();
    let plan = |format: &str| {
        let source = source.to_str().unwrap();
        let size = ["--sites", "2", "--dim", "N=400", "--format", format];
        einc(&[&["plan", source], &size[..]].concat())
            .success()
            .stdout
    };
    let dot = plan("dot");
    assert_eq!(dot.matches("subgraph cluster_").count(), 2, "{dot}");
    let lines = |end: &str| {
        dot.lines()
            .filter(|line| line.trim_end().ends_with(end))
            .count()
    };
    assert_eq!((lines("{"), lines("}")), (3, 3), "{dot}");
    assert!(dot.contains("[style=dashed, constraint=false]"), "{dot}");
    let page = plan("html");
    assert_eq!(
        page.matches("<section class=\"loop\">").count(),
        2,
        "{page}"
    );
    assert!(page.contains("carried: k.x (from "), "{page}");
}

#[test]
fn a_loop_is_shown_with_what_a_round_costs() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("model.ein");
    std::fs::write(&source, SOLVERS).unwrap();
    let plan = |more: &[&str]| {
        let base = [
            "plan",
            source.to_str().unwrap(),
            "--sites",
            "4",
            "--dim",
            "N=400",
        ];
        einc(&[&base, more].concat()).success().stdout
    };
    let text = plan(&[]);
    let line = text
        .lines()
        .find(|line| line.contains("repeat k < "))
        .unwrap();
    assert!(line.contains("= 100 rounds expected"), "{text}");
    let report: einc_core::pipeline::report::PlanReport =
        serde_json::from_str(&plan(&["--format", "json"])).unwrap();
    assert_eq!(report.loops.len(), 2);
    let of = |number: usize| {
        let steps = report.steps.iter();
        let within = &report.loops[number];
        let inside = steps.filter(|step| (within.first..within.end).contains(&step.step));
        inside.map(|step| step.transfer * step.times).sum::<u64>()
    };
    assert_eq!(
        (of(0), of(1)),
        (report.loops[0].transfer, report.loops[1].transfer)
    );
    let all = report.steps.iter().map(|step| step.transfer * step.times);
    assert_eq!(all.sum::<u64>(), report.cost.transfer);
}

/// A run whose steps are timed takes no other loops than one that is not looked at.
#[test]
fn rounds_in_one_piece_have_one_time() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("p.ein");
    let text = "input x: f64[4] = 1\nrepeat t < 1000 {\n  state s[i] = x[i]\n  next s[i] = s[i] / 2\n}\noutput s\n";
    std::fs::write(&source, text).unwrap();
    let times = |more: &[&str]| {
        let arguments = [&["run", source.to_str().unwrap(), "--stats"], more].concat();
        let said = einc(&arguments).success().stderr;
        let lines = said.lines().filter(|line| line.starts_with("stats: step "));
        let lines: Vec<String> = lines.map(String::from).collect();
        let often = lines.iter().filter(|line| line.contains(": 1000 times"));
        (often.count(), lines.len())
    };
    let (often, all) = times(&[]);
    assert!(often == 0 && all > 0, "{often} of {all}");
    let (often, _) = times(&["--check-nan"]);
    assert!(often > 0, "{often}");
}
