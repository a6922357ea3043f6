//! The examples that are whole methods, against references in plain loops.
#![allow(
    clippy::needless_range_loop,
    reason = "references are loops over indices"
)]

use einc_tests::everywhere::{dims, everywhere, inputs};
use einc_tests::{Tensor, root};
use std::path::Path;

/// `--input` arguments for tensors that are written as `f64`.
fn inputs_f64(folder: &Path, tensors: &[(&str, &Tensor)]) -> Vec<String> {
    let mut arguments = vec![];
    for (name, tensor) in tensors {
        let file = folder.join(format!("{name}.npy"));
        tensor.write_f64(&file);
        arguments.extend(["--input".to_string(), format!("{name}={}", file.display())]);
    }
    arguments
}

fn data(name: &str) -> Tensor {
    Tensor::read(&root().join(format!("examples/data/{name}.npy")))
}

fn scalar(value: f64) -> Tensor {
    Tensor::from_fn(&[], |_| value)
}

fn product(a: &Tensor, b: &Tensor) -> Tensor {
    let (inner, columns) = (a.shape[1], b.shape[1]);
    Tensor::from_fn(&[a.shape[0], columns], |n| {
        let (i, j) = (n / columns, n % columns);
        (0..inner).map(|k| a.at(&[i, k]) * b.at(&[k, j])).sum()
    })
}

#[test]
fn a_chain_equals_its_products_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let (i, k, j) = (9, 14, 11);
    let shapes = [[i, k], [k, j], [j, 1], [1, j], [j, i], [j, i]];
    let names = ["A", "B", "C", "D", "E", "F"];
    let given: Vec<Tensor> = (20..)
        .zip(shapes)
        .map(|(seed, shape)| Tensor::noise(&shape, seed))
        .collect();
    let [a, b, c, d, e, f] = given.as_slice() else {
        unreachable!()
    };
    let (t1, t2) = (product(a, b), product(c, d));
    let rest = [&t1, &t2, &t2, f];
    let expected = rest
        .iter()
        .fold(product(&t1, e), |left, right| product(&left, right));
    let pairs: Vec<(&str, &Tensor)> = names.into_iter().zip(&given).collect();
    let arguments = [
        inputs(folder.path(), &pairs),
        dims(&[("I", i), ("K", k), ("J", j)]),
    ]
    .concat();
    let largest = expected.data.iter().fold(1.0f64, |m, x| m.max(x.abs()));
    everywhere("chain.ein", &arguments, &["O"], |output, how| {
        let found = output("O");
        assert_eq!(found.shape, expected.shape);
        for (x, y) in found.data.iter().zip(&expected.data) {
            assert!((x - y).abs() <= 1e-5 * largest, "{how}: {x}, not {y}");
        }
    });
}

#[test]
fn a_ccsd_term_equals_its_sum() {
    let folder = tempfile::tempdir().unwrap();
    let (o, u) = (3, 4);
    let (v, t) = (
        Tensor::noise(&[o, o, u, u], 30),
        Tensor::noise(&[u, u, o, o], 31),
    );
    let z = |a: usize, b: usize, i: usize, j: usize| {
        let mut sum = 0.0;
        for (k, l) in (0..o).flat_map(|k| (0..o).map(move |l| (k, l))) {
            for (c, d) in (0..u).flat_map(|c| (0..u).map(move |d| (c, d))) {
                sum += 0.5 * v.at(&[k, l, c, d]) * t.at(&[a, c, i, k]) * t.at(&[d, b, l, j]);
            }
        }
        sum
    };
    let expected = Tensor::from_fn(&[u, u, o, o], |n| {
        let (j, i, b, a) = (n % o, n / o % o, n / o / o % u, n / o / o / u);
        z(a, b, i, j) - z(b, a, i, j) - z(a, b, j, i) + z(b, a, j, i)
    });
    let arguments = [
        inputs_f64(folder.path(), &[("v", &v), ("t2", &t)]),
        dims(&[("O", o), ("U", u)]),
    ]
    .concat();
    everywhere("ccsd.ein", &arguments, &["r"], |output, how| {
        output("r").assert_close(&expected, 1e-11, how);
    });
}

#[test]
fn a_convolution_of_signals_equals_four_loops() {
    let folder = tempfile::tempdir().unwrap();
    let (n, c, f, l, k) = (3, 2, 5, 13, 4);
    let (x, w) = (Tensor::noise(&[n, c, l], 32), Tensor::noise(&[f, c, k], 33));
    let expected = Tensor::from_fn(&[n, f, l], |at| {
        let (i, f, n) = (at % l, at / l % 5, at / l / 5);
        let mut sum = 0.0;
        for c in 0..c {
            for q in 0..k {
                let from = (i + q).wrapping_sub(k / 2);
                sum += if from < l {
                    x.at(&[n, c, from]) * w.at(&[f, c, q])
                } else {
                    0.0
                };
            }
        }
        sum
    });
    let arguments = [
        inputs(folder.path(), &[("x", &x), ("w", &w)]),
        dims(&[("N", n), ("C", c), ("F", f), ("L", l), ("K", k)]),
    ]
    .concat();
    everywhere("conv1d.ein", &arguments, &["y"], |output, how| {
        output("y").assert_close(&expected, 1e-5, how);
    });
}

#[test]
fn statistics_of_sequences() {
    let folder = tempfile::tempdir().unwrap();
    let (n, t) = (5, 11);
    let s = Tensor::noise(&[n, t], 34);
    let lengths = [0, 1, 5, 11, 7];
    let len = Tensor::from_fn(&[n], |at| lengths[at] as f64);
    let file = folder.path().join("len.npy");
    len.write_i64(&file);
    let row = |n: usize| -> Vec<f64> { (0..t).map(|t| s.at(&[n, t])).collect() };
    let q = Tensor::from_fn(&[n, t], |at| {
        let (n, t) = (at / t, at % t);
        let total: f64 = (0..lengths[n]).map(|u| s.at(&[n, u]).exp()).sum();
        if t < lengths[n] {
            s.at(&[n, t]).exp() / total
        } else {
            0.0
        }
    });
    let mean = s.data.iter().sum::<f64>() / (n * t) as f64;
    let var = s.data.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n * t) as f64;
    let run = Tensor::from_fn(&[n, t], |at| row(at / t)[..=at % t].iter().sum());
    let rank = Tensor::from_fn(&[n, t], |at| {
        let own = s.data[at];
        let before = |(u, x): (usize, &f64)| *x < own || (*x == own && u < at % t);
        row(at / t)
            .iter()
            .enumerate()
            .filter(|(u, x)| before((*u, x)))
            .count() as f64
    });
    let med = Tensor::from_fn(&[n], |n| {
        let mut row = row(n);
        row.sort_by(f64::total_cmp);
        row[t / 2]
    });
    let mut arguments = inputs(folder.path(), &[("s", &s)]);
    arguments.extend(["--input".into(), format!("len={}", file.display())]);
    arguments.extend(dims(&[("N", n), ("T", t)]));
    let saved = ["q", "var", "run", "rank", "med"];
    everywhere("statistics.ein", &arguments, &saved, |output, how| {
        output("q").assert_close(&q, 1e-5, how);
        output("var").assert_close(&scalar(var), 1e-5, how);
        output("run").assert_close(&run, 1e-5, how);
        assert_eq!(output("rank"), rank, "{how}");
        output("med").assert_close(&med, 1e-6, how);
    });
}

#[test]
fn experts_take_the_rows_that_the_gate_gives_them() {
    let folder = tempfile::tempdir().unwrap();
    let (n, d, f, e) = (13, 4, 6, 3);
    let (x, gate) = (Tensor::noise(&[n, d], 35), Tensor::noise(&[d, e], 36));
    let (w1, w2) = (Tensor::noise(&[e, d, f], 37), Tensor::noise(&[e, f, d], 38));
    let z = product(&x, &gate);
    let p = Tensor::from_fn(&[n, e], |at| {
        let total: f64 = (0..e).map(|k| z.at(&[at / e, k]).exp()).sum();
        z.data[at].exp() / total
    });
    let to: Vec<usize> = (0..n)
        .map(|n| {
            (0..e)
                .rev()
                .max_by(|a, b| p.at(&[n, *a]).total_cmp(&p.at(&[n, *b])))
                .unwrap()
        })
        .collect();
    let out = Tensor::from_fn(&[n, d], |at| {
        let (n, column) = (at / d, at % d);
        let hidden = |f: usize| {
            (0..d)
                .map(|c| x.at(&[n, c]) * w1.at(&[to[n], c, f]))
                .sum::<f64>()
                .max(0.0)
        };
        p.at(&[n, to[n]])
            * (0..f)
                .map(|f| hidden(f) * w2.at(&[to[n], f, column]))
                .sum::<f64>()
    });
    let balance: f64 = (0..e)
        .map(|e| {
            let share = to.iter().filter(|to| **to == e).count() as f64 / n as f64;
            share * (0..n).map(|n| p.at(&[n, e])).sum::<f64>() / n as f64
        })
        .sum();
    let given = [("X", &x), ("gate", &gate), ("w1", &w1), ("w2", &w2)];
    let arguments = [
        inputs(folder.path(), &given),
        dims(&[("N", n), ("D", d), ("F", f), ("E", e)]),
    ]
    .concat();
    everywhere(
        "moe.ein",
        &arguments,
        &["O", "to", "balance"],
        |output, how| {
            output("O").assert_close(&out, 1e-5, how);
            assert_eq!(
                output("to").data,
                to.iter().map(|e| *e as f64).collect::<Vec<_>>(),
                "{how}"
            );
            output("balance").assert_close(&scalar(e as f64 * balance), 1e-5, how);
        },
    );
}

#[test]
fn ranks_and_shortest_paths_of_graphs() {
    let folder = tempfile::tempdir().unwrap();
    let v = 60;
    let noise = Tensor::noise(&[v, v], 39);
    let distances = Tensor::from_fn(&[v, v], |at| match noise.data[at] {
        _ if at / v == at % v => 0.0,
        x if x > 0.8 => 1.0 + x,
        _ => f64::INFINITY,
    });
    let (src, dst) = (data("graph_src").data, data("graph_dst").data);
    let edges: Vec<(usize, usize)> = src
        .iter()
        .zip(&dst)
        .map(|(a, b)| (*a as usize, *b as usize))
        .collect();
    let mut degree = vec![0.0; v];
    edges.iter().for_each(|(a, _)| degree[*a] += 1.0);
    let mut rank = vec![1.0 / v as f64; v];
    let mut rounds = 0.0;
    for _ in 0..100 {
        let mut into = vec![0.0; v];
        edges
            .iter()
            .for_each(|(a, b)| into[*b] += rank[*a] / degree[*a]);
        let dangling: f64 = (0..v).filter(|n| degree[*n] == 0.0).map(|n| rank[n]).sum();
        let next: Vec<f64> = into
            .iter()
            .map(|x| 0.15 / v as f64 + 0.85 * (x + dangling / v as f64))
            .collect();
        let change: f64 = next.iter().zip(&rank).map(|(a, b)| (a - b).abs()).sum();
        rank = next;
        rounds += 1.0;
        if change < 1e-10 {
            break;
        }
    }
    let mut paths = distances.clone();
    for m in 0..v {
        for i in 0..v {
            for j in 0..v {
                let way = paths.at(&[i, m]) + paths.at(&[m, j]);
                paths.data[i * v + j] = paths.data[i * v + j].min(way);
            }
        }
    }
    let arguments = inputs_f64(folder.path(), &[("D0", &distances)]);
    everywhere(
        "graphs.ein",
        &arguments,
        &["r", "k", "d", "f"],
        |output, how| {
            let expected = Tensor::from_fn(&[v], |n| rank[n]);
            output("r").assert_close(&expected, 1e-12, how);
            assert_eq!(output("k").data, [rounds], "{how}");
            output("d").assert_close(&paths, 1e-12, how);
            output("f").assert_close(&paths, 1e-12, how);
        },
    );
}

/// Gauss and Jordan with pivots.
fn inverse(m: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = m.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|i| {
            (0..2 * n)
                .map(|j| {
                    if j < n {
                        m[i][j]
                    } else {
                        f64::from(u8::from(j - n == i))
                    }
                })
                .collect()
        })
        .collect();
    for column in 0..n {
        let pivot = (column..n)
            .max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))
            .unwrap();
        rows.swap(column, pivot);
        let own: Vec<f64> = rows[column]
            .iter()
            .map(|x| x / rows[column][column])
            .collect();
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = row[column];
            for (x, y) in row.iter_mut().zip(&own) {
                *x = if i == column { *y } else { *x - factor * y };
            }
        }
    }
    rows.into_iter().map(|row| row[n..].to_vec()).collect()
}

fn solve(m: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    inverse(m)
        .iter()
        .map(|row| row.iter().zip(y).map(|(a, b)| a * b).sum())
        .collect()
}

#[test]
fn an_inverse_by_blocks_is_the_inverse() {
    let folder = tempfile::tempdir().unwrap();
    let (n, m) = (3, 8);
    let size = 2 * (n + m);
    let noise = Tensor::noise(&[size, size], 40);
    // A strong diagonal, so that every corner has an inverse.
    let matrix = Tensor::from_fn(&[size, size], |at| {
        noise.data[at] + if at / size == at % size { 8.0 } else { 0.0 }
    });
    let rows: Vec<Vec<f64>> = matrix.data.chunks(size).map(<[f64]>::to_vec).collect();
    let expected = Tensor::from_fn(&[size, size], |at| at as f64);
    let expected = Tensor {
        data: inverse(&rows).concat(),
        ..expected
    };
    let arguments = [
        inputs_f64(folder.path(), &[("M", &matrix)]),
        dims(&[("n", n), ("m", m)]),
    ]
    .concat();
    everywhere("block_inverse.ein", &arguments, &["I"], |output, how| {
        output("I").assert_close(&expected, 1e-12, how);
    });
}

#[test]
fn ridge_regression_in_one_model_and_in_four() {
    let (x, y, z) = (data("ridge_x"), data("ridge_y"), data("ridge_z"));
    let (part, centre) = (data("ridge_part").data, data("ridge_centre"));
    let (n, m) = (x.shape[0], z.shape[0]);
    let point = |t: &Tensor, at: usize| [t.at(&[at, 0]), t.at(&[at, 1])];
    let square = |a: [f64; 2], b: [f64; 2]| (a[0] - b[0]).powi(2) + (a[1] - b[1]).powi(2);
    let kernel = |a, b| (-square(a, b) / 2.0).exp();
    let model = |rows: &[usize]| -> Vec<f64> {
        let matrix: Vec<Vec<f64>> = (rows.iter().enumerate())
            .map(|(i, a)| {
                let row = rows.iter().enumerate().map(|(j, b)| {
                    let ridge = if i == j {
                        1e-3 * rows.len() as f64
                    } else {
                        0.0
                    };
                    kernel(point(&x, *a), point(&x, *b)) + ridge
                });
                row.collect()
            })
            .collect();
        let values: Vec<f64> = rows.iter().map(|r| y.data[*r]).collect();
        solve(&matrix, &values)
    };
    let predict = |rows: &[usize], weights: &[f64], at: usize| -> f64 {
        let terms = rows.iter().zip(weights);
        terms
            .map(|(r, w)| w * kernel(point(&z, at), point(&x, *r)))
            .sum()
    };
    let all: Vec<usize> = (0..n).collect();
    let weights = model(&all);
    let pred = Tensor::from_fn(&[m], |at| predict(&all, &weights, at));
    let models: Vec<(Vec<usize>, Vec<f64>)> = (0..4)
        .map(|p| {
            let rows: Vec<usize> = (0..n).filter(|n| part[*n] == f64::from(p)).collect();
            let weights = model(&rows);
            (rows, weights)
        })
        .collect();
    let pred2 = Tensor::from_fn(&[m], |at| {
        let near = |p: &usize| square(point(&z, at), point(&centre, *p));
        let own = (0..4).min_by(|a, b| near(a).total_cmp(&near(b))).unwrap();
        predict(&models[own].0, &models[own].1, at)
    });
    everywhere("ridge.ein", &[], &["pred", "pred2"], |output, how| {
        output("pred").assert_close(&pred, 1e-9, how);
        output("pred2").assert_close(&pred2, 1e-9, how);
    });
}

/// Expectation and maximisation in the plane, covariances inverted by their formula.
#[test]
fn a_mixture_of_gaussians_is_fitted() {
    let x = data("blobs");
    let (n, k) = (x.shape[0], 3);
    let mut mu: Vec<[f64; 2]> = (0..k).map(|c| [x.at(&[c, 0]), x.at(&[c, 1])]).collect();
    let mut cov = vec![[[1.0, 0.0], [0.0, 1.0]]; k];
    let mut w = vec![1.0 / k as f64; k];
    let mut ll = f64::NEG_INFINITY;
    for _ in 0..200 {
        let mut r = vec![vec![0.0; k]; n];
        let mut total = 0.0;
        for at in 0..n {
            let lp: Vec<f64> = (0..k)
                .map(|c| {
                    let [[a, b], [_, d]] = cov[c];
                    let det = a * d - b * b;
                    let u = [x.at(&[at, 0]) - mu[c][0], x.at(&[at, 1]) - mu[c][1]];
                    let m = (d * u[0] * u[0] - 2.0 * b * u[0] * u[1] + a * u[1] * u[1]) / det;
                    w[c].ln() - 0.5 * det.ln() - 0.5 * m - (2.0 * std::f64::consts::PI).ln()
                })
                .collect();
            let most = lp.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let log = most + lp.iter().map(|l| (l - most).exp()).sum::<f64>().ln();
            (0..k).for_each(|c| r[at][c] = (lp[c] - log).exp());
            total += log / n as f64;
        }
        let old = mu.clone();
        for c in 0..k {
            let nk: f64 = r.iter().map(|r| r[c]).sum();
            let mean = |d: usize| (0..n).map(|at| r[at][c] * x.at(&[at, d])).sum::<f64>() / nk;
            mu[c] = [mean(0), mean(1)];
            // The program measures spread about the means that the round began with.
            let spread = |d: usize, e: usize| {
                let terms = (0..n).map(|at| {
                    r[at][c] * (x.at(&[at, d]) - old[c][d]) * (x.at(&[at, e]) - old[c][e])
                });
                terms.sum::<f64>() / nk + if d == e { 1e-6 } else { 0.0 }
            };
            cov[c] = [[spread(0, 0), spread(0, 1)], [spread(1, 0), spread(1, 1)]];
            w[c] = nk / n as f64;
        }
        let change = (total - ll).abs();
        ll = total;
        if change < 1e-8 {
            break;
        }
    }
    let means = Tensor::from_fn(&[k, 2], |at| mu[at / 2][at % 2]);
    let weights = Tensor::from_fn(&[k], |c| w[c]);
    everywhere(
        "gaussian_mixture.ein",
        &[],
        &["mu", "w", "ll"],
        |output, how| {
            output("mu").assert_close(&means, 1e-7, how);
            output("w").assert_close(&weights, 1e-7, how);
            output("ll").assert_close(&scalar(ll), 1e-9, how);
        },
    );
}
