//! Kernel ridge regression on parts of the data and the partitioners, in `examples/methods`, against plain loops.
//!
//! Must not know the machines, which use what is here.
#![allow(
    clippy::needless_range_loop,
    reason = "references are loops over indices"
)]

use einc_tests::everywhere::{dims, everywhere};
use einc_tests::{Tensor, einc_command, launchers, mpirun, root, run};
use std::path::Path;

/// `--input` arguments for tensors that are written as `f64`.
pub fn inputs(folder: &Path, tensors: &[(&str, &Tensor)]) -> Vec<String> {
    let mut arguments = vec![];
    for (name, tensor) in tensors {
        let file = folder.join(format!("{name}.npy"));
        tensor.write_f64(&file);
        arguments.extend(["--input".to_string(), format!("{name}={}", file.display())]);
    }
    arguments
}

type Check<'a> = &'a dyn Fn(&dyn Fn(&str) -> Tensor, &str);

/// Runs a program in process on 1, 2 and 4 sites and hands its outputs to `check`.
pub fn in_process(
    source: &Path,
    arguments: &[String],
    saved: &[&str],
    check: impl Fn(&dyn Fn(&str) -> Tensor, &str),
) {
    on(&[1, 2, 4], &[], source, (arguments, saved), &check);
}

/// Runs a program on 1 to 4 sites of one process and on 2 ranks of every launcher, and hands its outputs to `check`.
pub fn on_sites_and_ranks(
    source: &Path,
    arguments: &[String],
    saved: &[&str],
    check: impl Fn(&dyn Fn(&str) -> Tensor, &str),
) {
    let (sites, launchers) = ([1, 2, 3, 4], launchers());
    on(&sites, &launchers, source, (arguments, saved), &check);
}

fn on(
    sites: &[u32],
    launchers: &[&str],
    source: &Path,
    (arguments, saved): (&[String], &[&str]),
    check: Check<'_>,
) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(format!("{name}.npy"));
    let saves = saved.iter().flat_map(|name| {
        let file = format!("{name}={}", file(name).display());
        ["--save".to_string(), file]
    });
    let arguments: Vec<String> = arguments.iter().cloned().chain(saves).collect();
    let check = |how: &str| check(&|name| Tensor::read(&file(name)), how);
    for sites in sites {
        let mut command = einc_command(&["run"]);
        command.arg(source).args(["--sites", &sites.to_string()]);
        run(command.args(&arguments)).success();
        check(&format!("{sites} sites"));
    }
    if launchers.is_empty() {
        return;
    }
    let program = folder.path().join("program");
    run(einc_command(&["build"]).arg(source).arg("-o").arg(&program)).success();
    for launcher in launchers {
        run(mpirun(launcher, 2, &program).args(&arguments)).success();
        check(&format!("{launcher} on 2"));
    }
}

/// The program of a method.
pub fn method(name: &str) -> std::path::PathBuf {
    root().join(format!("examples/methods/{name}.ein"))
}

/// A row of numbers.
pub type Row = Vec<f64>;

/// The rows of a matrix.
pub fn rows(tensor: &Tensor) -> Vec<Row> {
    tensor
        .data
        .chunks(tensor.shape[1])
        .map(<[f64]>::to_vec)
        .collect()
}

/// The squared distance of two points.
pub fn square(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// The position of the least value; the first of equal ones.
pub fn least(values: impl IntoIterator<Item = f64>) -> usize {
    let mut best = (0, f64::INFINITY);
    for (at, value) in values.into_iter().enumerate() {
        if value < best.1 {
            best = (at, value);
        }
    }
    best.0
}

/// A tensor of one dimension.
pub fn vector(values: &[f64]) -> Tensor {
    Tensor::from_fn(&[values.len()], |n| values[n])
}

// Partitions.

/// K-means from the first rows: the part of each row, and the centres.
pub fn k_means(x: &[Row], parts: usize) -> (Vec<usize>, Vec<Row>) {
    let mut centres = x[..parts].to_vec();
    let mut near = vec![usize::MAX; x.len()];
    for _ in 0..100 {
        let new: Vec<usize> = x
            .iter()
            .map(|x| least(centres.iter().map(|c| square(x, c))))
            .collect();
        let changed = near.iter().zip(&new).filter(|(a, b)| a != b).count();
        near = new;
        centres = means(x, &near, &centres);
        if changed as f64 / x.len() as f64 <= 1e-3 {
            break;
        }
    }
    (near, centres)
}

/// The mean of each part's rows; where there are none, what was given.
pub fn means(x: &[Row], part: &[usize], otherwise: &[Row]) -> Vec<Row> {
    let of = |p: usize| {
        let members: Vec<&Row> = x
            .iter()
            .zip(part)
            .filter(|m| *m.1 == p)
            .map(|m| m.0)
            .collect();
        if members.is_empty() {
            return otherwise[p].clone();
        }
        let sum = |d: usize| members.iter().map(|m| m[d]).sum::<f64>();
        (0..x[0].len())
            .map(|d| sum(d) / members.len() as f64)
            .collect()
    };
    (0..otherwise.len()).map(of).collect()
}

/// Rows in their order, each to the nearest centre with room.
pub fn first_come(x: &[Row], centres: &[Row], room: usize) -> Vec<usize> {
    let mut sizes = vec![0; centres.len()];
    let mut part = vec![];
    for x in x {
        let distance = |(p, c): (usize, &Row)| {
            if sizes[p] < room {
                square(x, c)
            } else {
                f64::INFINITY
            }
        };
        let to = least(centres.iter().enumerate().map(distance));
        sizes[to] += 1;
        part.push(to);
    }
    part
}

/// Balanced K-means: the farthest of too many members goes to the nearest centre with room.
pub fn balanced(x: &[Row], near: &[usize], centres: &[Row], room: usize) -> Vec<usize> {
    let mut part = near.to_vec();
    for j in 0..centres.len() {
        loop {
            let size = |p: usize| part.iter().filter(|q| **q == p).count();
            if size(j) <= room {
                break;
            }
            let away = |n: usize| {
                if part[n] == j {
                    -square(&x[n], &centres[j])
                } else {
                    f64::INFINITY
                }
            };
            let far = least((0..x.len()).map(away));
            let to = least(centres.iter().enumerate().map(|(p, c)| {
                if size(p) < room {
                    square(&x[far], c)
                } else {
                    f64::INFINITY
                }
            }));
            part[far] = to;
        }
    }
    part
}

// Kernel ridge regression.

/// Solves a small system by elimination with pivots.
pub fn solve(mut a: Vec<Row>, mut b: Row) -> Row {
    let n = b.len();
    for k in 0..n {
        let pivot = k + least((k..n).map(|i| -a[i][k].abs()));
        a.swap(k, pivot);
        b.swap(k, pivot);
        for i in k + 1..n {
            let factor = a[i][k] / a[k][k];
            for j in k..n {
                a[i][j] -= factor * a[k][j];
            }
            b[i] -= factor * b[k];
        }
    }
    for k in (0..n).rev() {
        let known: f64 = (k + 1..n).map(|j| a[k][j] * b[j]).sum();
        b[k] = (b[k] - known) / a[k][k];
    }
    b
}

struct Waves {
    x: Vec<Row>,
    y: Row,
    z: Vec<Row>,
    t: Row,
    arguments: Vec<String>,
    _folder: tempfile::TempDir,
}

const WIDTHS: [f64; 5] = [0.3, 0.5, 0.8, 1.2, 2.0];

/// A small problem of regression; the number of rows does not divide by that of parts.
fn waves() -> Waves {
    let folder = tempfile::tempdir().unwrap();
    let (n, m, d) = (41, 11, 3);
    let (x, z) = (Tensor::noise(&[n, d], 60), Tensor::noise(&[m, d], 61));
    let f = |r: &Row| (3.0 * r[0]).sin() + r[1] * r[2];
    let y: Row = rows(&x).iter().map(f).collect();
    let t: Row = rows(&z).iter().map(f).collect();
    let tensors = [
        ("X", &x),
        ("y", &vector(&y)),
        ("Z", &z),
        ("t", &vector(&t)),
        ("widths", &vector(&WIDTHS)),
    ];
    Waves {
        arguments: inputs(folder.path(), &tensors),
        x: rows(&x),
        y,
        z: rows(&z),
        t,
        _folder: folder,
    }
}

impl Waves {
    /// The errors of all pairs of lam and s, where `choose` makes one guess of those of the parts for point `m`.
    fn errors(
        &self,
        part: &[usize],
        parts: usize,
        choose: &dyn Fn(usize, &[f64]) -> f64,
    ) -> Tensor {
        Tensor::from_fn(&[30], |g| {
            let (lam, s) = (10f64.powf(1.5 * (g / 5) as f64 - 8.0), WIDTHS[g % 5]);
            let kernel = |a: &Row, b: &Row| (-square(a, b) / (2.0 * s * s)).exp();
            let models: Vec<(Vec<usize>, Row)> = (0..parts)
                .map(|p| {
                    let own: Vec<usize> = (0..self.x.len()).filter(|n| part[*n] == p).collect();
                    let edge = lam * own.len() as f64;
                    let entry = |i: usize, j: usize| {
                        kernel(&self.x[i], &self.x[j]) + if i == j { edge } else { 0.0 }
                    };
                    let a = own
                        .iter()
                        .map(|i| own.iter().map(|j| entry(*i, *j)).collect())
                        .collect();
                    let a = solve(a, own.iter().map(|i| self.y[*i]).collect());
                    (own, a)
                })
                .collect();
            let error = |m: usize| {
                let guess = |(own, a): &(Vec<usize>, Row)| -> f64 {
                    own.iter()
                        .zip(a)
                        .map(|(i, a)| a * kernel(&self.z[m], &self.x[*i]))
                        .sum()
                };
                let guesses: Row = models.iter().map(guess).collect();
                (choose(m, &guesses) - self.t[m]).powi(2)
            };
            (0..self.z.len()).map(error).sum::<f64>() / self.z.len() as f64
        })
    }

    fn check(&self, name: &str, sizes: &[(&str, usize)], expected: &Tensor) {
        let arguments = [self.arguments.clone(), dims(sizes)].concat();
        on_sites_and_ranks(
            &method(name),
            &arguments,
            &["mse", "best", "error"],
            |output, how| {
                let how = format!("{name}, {how}");
                output("mse").assert_close(expected, 1e-5, &how);
                let best = output("best").data[0] as usize;
                let smallest = expected.data.iter().copied().fold(f64::INFINITY, f64::min);
                assert!((expected.data[best] - smallest).abs() < 1e-5, "{how}");
                output("error").assert_close(&Tensor::from_fn(&[], |_| smallest), 1e-5, &how);
            },
        );
    }
}

fn average(_: usize, guesses: &[f64]) -> f64 {
    guesses.iter().sum::<f64>() / guesses.len() as f64
}

#[test]
fn kernel_ridge_regression_of_all_rows_and_of_even_parts() {
    let problem = waves();
    let n = problem.x.len();
    problem.check("dkrr", &[], &problem.errors(&vec![0; n], 1, &average));
    let part: Vec<usize> = (0..n).map(|i| i / 14).collect();
    problem.check("dc_krr", &[("P", 3)], &problem.errors(&part, 3, &average));
}

#[test]
fn kernel_ridge_regression_of_clusters() {
    let problem = waves();
    let (near, centres) = k_means(&problem.x, 3);
    let full = first_come(&problem.x, &centres, 14);
    let recomputed = means(&problem.x, &full, &centres);
    for (family, part, centres, sizes) in [
        ("kkrr", &near, &centres, vec![("P", 3), ("R", 41)]),
        ("bkrr", &full, &recomputed, vec![("P", 3)]),
    ] {
        let nearest = |m: usize, guesses: &[f64]| {
            guesses[least(centres.iter().map(|c| square(&problem.z[m], c)))]
        };
        let oracle = |m: usize, guesses: &[f64]| {
            guesses[least(guesses.iter().map(|v| (v - problem.t[m]).powi(2)))]
        };
        problem.check(family, &sizes, &problem.errors(part, 3, &average));
        problem.check(
            &format!("{family}2"),
            &sizes,
            &problem.errors(part, 3, &nearest),
        );
        problem.check(
            &format!("{family}3"),
            &sizes,
            &problem.errors(part, 3, &oracle),
        );
    }
}

#[test]
fn k_means_of_an_example_are_those_of_plain_loops() {
    let folder = tempfile::tempdir().unwrap();
    let x = Tensor::noise(&[47, 3], 80);
    let (near, centres) = k_means(&rows(&x), 5);
    let arguments = [inputs(folder.path(), &[("X", &x)]), dims(&[("K", 5)])].concat();
    everywhere("kmeans.ein", &arguments, &["near", "c"], |output, how| {
        let found = output("near").data;
        assert!(
            found.iter().zip(&near).all(|(a, b)| *a == *b as f64),
            "{how}"
        );
        let centres = Tensor::from_fn(&[5, 3], |n| centres[n / 3][n % 3]);
        output("c").assert_close(&centres, 1e-12, how);
    });
}

#[test]
fn linear_solvers_solve() {
    let folder = tempfile::tempdir().unwrap();
    let n = 13;
    let (g, b) = (Tensor::noise(&[n, n], 81), Tensor::noise(&[n], 82));
    let entry = |i: usize, j: usize| {
        let product: f64 = (0..n).map(|l| g.at(&[l, i]) * g.at(&[l, j])).sum();
        product / n as f64 + f64::from(u8::from(i == j))
    };
    let a: Vec<Row> = (0..n)
        .map(|i| (0..n).map(|j| entry(i, j)).collect())
        .collect();
    let mut v = vec![1.0; n];
    let mut lambda = 0.0;
    for _ in 0..20_000 {
        v = a
            .iter()
            .map(|row| row.iter().zip(&v).map(|(a, v)| a * v).sum())
            .collect();
        lambda = v.iter().map(|v| v * v).sum::<f64>().sqrt();
        v.iter_mut().for_each(|v| *v /= lambda);
    }
    let expected = vector(&solve(a, b.data.clone()));
    let arguments = [
        inputs(folder.path(), &[("G", &g), ("b", &b)]),
        dims(&[("N", n)]),
    ]
    .concat();
    everywhere(
        "linear_solvers.ein",
        &arguments,
        &["x", "lambda"],
        |output, how| {
            output("x").assert_close(&expected, 1e-8, how);
            output("lambda").assert_close(&Tensor::from_fn(&[], |_| lambda), 1e-7, how);
        },
    );
}

#[test]
fn partitioners_on_the_worked_example_of_the_thesis() {
    let folder = tempfile::tempdir().unwrap();
    let partition = std::fs::read_to_string(method("partition")).unwrap();
    std::fs::write(folder.path().join("partition.ein"), partition).unwrap();
    let source = folder.path().join("worked.ein");
    let text = "use \"partition.ein\"\ninput D: f64[4, 8]\ndist[n,p] = D[p,n]\nnear[n] = argmin[p] dist[n,p]\n\
                first = partition.fcfs(dist, 2)\nmoved = partition.bkm(dist, near, 2)\n\
                output near\noutput first\noutput moved\n";
    std::fs::write(&source, text).unwrap();
    let distances = [
        [5, 7, 3, 8, 2, 0, 8, 0],
        [4, 1, 6, 3, 7, 3, 9, 4],
        [1, 2, 8, 4, 4, 7, 6, 1],
        [3, 0, 4, 1, 6, 1, 4, 9],
    ];
    let distances = Tensor::from_fn(&[4, 8], |n| f64::from(distances[n / 8][n % 8]));
    let arguments = inputs(folder.path(), &[("D", &distances)]);
    on_sites_and_ranks(
        &source,
        &arguments,
        &["near", "first", "moved"],
        |output, how| {
            assert_eq!(
                output("near").data,
                [2., 3., 0., 3., 0., 0., 3., 0.],
                "{how}"
            );
            assert_eq!(
                output("first").data,
                [2., 3., 0., 3., 0., 1., 2., 1.],
                "{how}"
            );
            assert_eq!(
                output("moved").data,
                [2., 3., 1., 3., 2., 0., 1., 0.],
                "{how}"
            );
        },
    );
}

#[test]
fn an_lstm_learns_to_read_digits() {
    let source = root().join("examples/lstm.ein");
    on_sites_and_ranks(&source, &[], &["test"], |output, how| {
        let accuracy = output("test").data[0];
        assert!(accuracy >= 0.95, "{how}: {accuracy}");
    });
}
