//! Matrices in compressed form and packed sequences that a program goes through by hand, against sums that are written here, on 1 to 5 sites and
//! on the device that interprets loops.

use einc_tests::everywhere::SITES;
use einc_tests::{Tensor, einc_command, run};

const PROGRAM: &str = "
dim N = 140
dim E = 1400
starts[r < N+1] = min(div(r * r, 14), E)
col[e < E] = (e * 7919 + 3) % N
v[e < E] = f64(e % 13) / 13.0 - 0.5
x[i < N] = f64(i % 7) - 3
y[i < N] = sum[e] where(starts[i] <= e and e < starts[i+1], v[e] * x[col[e]], 0.0)
far[i < N] = max[e] where(starts[i] <= e and e < starts[i+1], abs(x[i] - x[col[e]]), -inf)
near[i < N] = sum[e] where(starts[i] - 20 < e and e <= starts[i+1], v[e] * x[i], 0.0)
some[i < N] = f64(any[e] (starts[i] <= e and e < starts[i+1] and v[e] > 0.4))
output y; output far; output near; output some
loss = sum[i] y[i] * y[i]
g = grad(loss, v)
output g
";

fn starts(row: i64) -> i64 {
    (row * row / 14).min(1400)
}

/// The values of an output of one dimension.
fn expected(name: &str) -> Vec<f64> {
    let v = |e: i64| (e % 13) as f64 / 13.0 - 0.5;
    let x = |i: i64| (i % 7) as f64 - 3.0;
    let col = |e: i64| (e * 7919 + 3) % 140;
    let rows = |row: i64| starts(row)..starts(row + 1);
    let y = |row: i64| rows(row).map(|e| v(e) * x(col(e))).sum::<f64>();
    match name {
        "y" => (0..140).map(y).collect(),
        "far" => (0..140)
            .map(|i| {
                let far = rows(i).map(|e| (x(i) - x(col(e))).abs());
                far.fold(f64::NEG_INFINITY, f64::max)
            })
            .collect(),
        "near" => (0..140)
            .map(|i| {
                let near = (starts(i) - 19).max(0)..(starts(i + 1) + 1).min(1400);
                near.map(|e| v(e) * x(i)).sum()
            })
            .collect(),
        "some" => (0..140)
            .map(|i| f64::from(u8::from(rows(i).any(|e| v(e) > 0.4))))
            .collect(),
        "g" => {
            let mut g = vec![0.0; 1400];
            for i in 0..140 {
                let y = y(i);
                rows(i).for_each(|e| g[e as usize] = 2.0 * y * x(col(e)));
            }
            g
        }
        other => panic!("{other}"),
    }
}

#[test]
fn rows_of_compressed_matrices_are_gone_through_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("p.ein");
    std::fs::write(&program, PROGRAM).unwrap();
    let ways = SITES.map(|sites| vec!["--sites", sites]);
    let reference = vec!["--device", "reference"];
    for way in ways.into_iter().chain([reference]) {
        let mut command = einc_command(&["run"]);
        command.arg(&program).args(&way);
        let file = |name: &str| folder.path().join(format!("{name}.npy"));
        let names = ["y", "far", "near", "some", "g"];
        for name in names {
            command
                .arg("--save")
                .arg(format!("{name}={}", file(name).display()));
        }
        run(&mut command).success();
        for name in names {
            let found = Tensor::read(&file(name)).data;
            let wanted = expected(name);
            assert_eq!(found.len(), wanted.len(), "{name}");
            for (at, (x, y)) in found.iter().zip(&wanted).enumerate() {
                let close = x == y || (x - y).abs() <= 1e-9 * y.abs().max(1.0);
                assert!(close, "{name}[{at}] is {x}, expected {y}, {way:?}");
            }
        }
    }
}
