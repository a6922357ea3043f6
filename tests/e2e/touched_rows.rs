//! Steps that change few rows of a table: trainings and loops against a reference written by hand, on any number of sites.

use einc_tests::{Tensor, einc_command, run};
use std::path::Path;

const ROWS: usize = 9001;
const WIDTH: usize = 9;
const BATCH: usize = 50;
const BATCHES: usize = 3;
const EPOCHS: usize = 2;

const TABLE: &str = r#"
dim N
dim V = 9001
dim H = 9
input a: i64[N] = load("a.npy")
input b: i64[N] = load("b.npy")
input x: f64[N, H] = load("x.npy")
input y: f64[N] = load("y.npy")
param W: f64[V, H] = zeros
p[n] = (sum[h] W[a[n], h] * x[n, h]) + (sum[h] W[a[n], h] * W[b[n], h])
loss = mean[n] (p[n] - y[n])^2
"#;

/// The rule of an optimizer: the new value of an element, of its gradient and of its state.
type Rule = fn(f64, f64, &mut f64) -> f64;

/// The inputs: which rows a batch reads, most of them twice, factors and wanted sums.
struct Data {
    a: Vec<usize>,
    b: Vec<usize>,
    x: Tensor,
    y: Tensor,
}

impl Data {
    fn new() -> Data {
        let count = BATCH * BATCHES;
        let rows = |step: usize| (0..count).map(move |n| (n * n * step + n / 7) % 131 * 68);
        Data {
            a: rows(3).collect(),
            b: rows(5).collect(),
            x: Tensor::noise(&[count, WIDTH], 1),
            y: Tensor::noise(&[count], 2),
        }
    }

    fn write(&self, folder: &Path) {
        for (name, rows) in [("a.npy", &self.a), ("b.npy", &self.b)] {
            Tensor::from_fn(&[rows.len()], |n| rows[n] as f64).write_i64(&folder.join(name));
        }
        self.x.write_f64(&folder.join("x.npy"));
        self.y.write_f64(&folder.join("y.npy"));
    }

    /// The table after training.
    fn trained(&self, rule: Rule) -> Tensor {
        let mut table = vec![[0.0; WIDTH]; ROWS];
        let mut states = vec![[0.0; WIDTH]; ROWS];
        for batch in (0..EPOCHS).flat_map(|_| 0..BATCHES) {
            let mut gradient = vec![[0.0; WIDTH]; ROWS];
            for n in batch * BATCH..(batch + 1) * BATCH {
                let (a, b) = (self.a[n], self.b[n]);
                let x = |h: usize| self.x.at(&[n, h]);
                let p: f64 = (0..WIDTH).map(|h| table[a][h] * (x(h) + table[b][h])).sum();
                let error = 2.0 * (p - self.y.at(&[n])) / BATCH as f64;
                for h in 0..WIDTH {
                    gradient[a][h] += error * (x(h) + table[b][h]);
                    gradient[b][h] += error * table[a][h];
                }
            }
            for (row, gradient) in gradient.iter().enumerate() {
                for h in 0..WIDTH {
                    table[row][h] = rule(table[row][h], gradient[h], &mut states[row][h]);
                }
            }
        }
        Tensor::from_fn(&[ROWS, WIDTH], |at| table[at / WIDTH][at % WIDTH])
    }
}

#[test]
fn optimizers_that_leave_params_alone_write_the_touched_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let data = Data::new();
    data.write(folder.path());
    let rules: [(&str, Rule); 3] = [
        ("sgd(lr: 0.3)", |w, g, _| w - 0.3 * g),
        ("adagrad(lr: 0.1)", |w, g, v| {
            *v += g * g;
            w - 0.1 * g / (v.sqrt() + 1e-10)
        }),
        // This one touches all.
        ("momentum(lr: 0.1)", |w, g, m| {
            *m = 0.9 * *m + g;
            w - 0.1 * *m
        }),
    ];
    for (optimizer, rule) in rules {
        let text = format!(
            "{TABLE}train {{ loss: loss; data: (a, b, x, y) over N by {BATCH}; epochs: {EPOCHS}; optimizer: {optimizer} }}\noutput W\n"
        );
        std::fs::write(at("p.ein"), text).unwrap();
        run(einc_command(&["build", "p.ein", "-o", "p"]).current_dir(&folder)).success();
        let wanted = data.trained(rule);
        let trained = |command: &mut std::process::Command, how: &str| {
            let command = command.args(["--save", "W=w.npy"]).current_dir(&folder);
            run(command).success();
            let found = Tensor::read(&at("w.npy"));
            found.assert_close(&wanted, 1e-12, &format!("{optimizer} {how}"));
        };
        trained(
            &mut einc_command(&["run", "p.ein", "--formats", "dense"]),
            "dense",
        );
        for sites in ["1", "2", "3", "4", "5"] {
            let built = &mut std::process::Command::new(at("p"));
            trained(built.args(["--sites", sites]), &format!("on {sites} sites"));
        }
        let plan =
            run(einc_command(&["plan", "p.ein", "--kernels"]).current_dir(&folder)).success();
        let is_patched = plan.stdout.contains("loops r") && plan.stdout.contains(": patched\n");
        assert_eq!(is_patched, optimizer != "momentum(lr: 0.1)", "{plan}");
    }
}

/// A table that a loop carries is changed where it lies.
#[test]
fn rounds_of_a_loop_write_the_touched_rows() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let rows = Tensor::from_fn(&[40], |n| (n * n % 23 * 3000) as f64);
    rows.write_i64(&at("tok.npy"));
    let text = r#"
dim N
input tok: i64[N] = load("tok.npy")
repeat k < 7 {
  state S[i < 70001] = 1.0
  next S[i] = S[i] + 0.5 * (sum[n] where(tok[n] == i, S[tok[n]] * (k + 1), 0))
}
output S
"#;
    std::fs::write(at("p.ein"), text).unwrap();
    let mut wanted = vec![1.0f64; 70001];
    for k in 0..7 {
        let old = wanted.clone();
        for n in 0..40 {
            let row = n * n % 23 * 3000;
            wanted[row] += 0.5 * old[row] * f64::from(k + 1);
        }
    }
    let wanted = Tensor::from_fn(&[70001], |at| wanted[at]);
    for sites in ["1", "2", "3", "5"] {
        let command = &mut einc_command(&["run", "p.ein", "--sites", sites, "--save", "S=s.npy"]);
        run(command.current_dir(&folder)).success();
        Tensor::read(&at("s.npy")).assert_close(&wanted, 1e-5, sites);
    }
    let plan = run(einc_command(&["plan", "p.ein", "--kernels"]).current_dir(&folder)).success();
    assert!(plan.stdout.contains(": patched\n"), "{plan}");
}
