//! Every example on 1 to 4 sites in process, alone and under both MPIs, against a reference in plain loops.

use einc_tests::everywhere::{dims, everywhere, inputs, with_ranks};
use einc_tests::{Tensor, einc, root};
use std::f64::consts::PI;

#[test]
fn digits_learns_at_least_98_of_100() {
    with_ranks(
        2..=2,
        "digits.ein",
        &[],
        &["accuracy", "test"],
        |output, how| {
            let (accuracy, test) = (output("accuracy").data[0], output("test").data[0]);
            assert!(
                accuracy >= 0.99 && test >= 0.98,
                "{how}: {accuracy}, {test}"
            );
        },
    );
}

/// Independent subnets: what a site learns does not depend on how the sites talk.
#[test]
fn subnets_learn_digits_on_threads_and_ranks() {
    for example in ["ist/digits2.ein", "ist/digits3.ein"] {
        let first = std::cell::RefCell::new(std::collections::BTreeMap::new());
        with_ranks(2..=4, example, &[], &["accuracy", "test"], |output, how| {
            let (accuracy, test) = (output("accuracy").data[0], output("test").data[0]);
            assert!(
                accuracy >= 0.98 && test >= 0.97,
                "{example}, {how}: {accuracy}, {test}"
            );
            let sites = how.rsplit(' ').next().unwrap_or_default().to_owned();
            let mut first = first.borrow_mut();
            let known = *first.entry(sites).or_insert(test);
            assert!(
                (test - known).abs() < 3e-3,
                "{example}, {how}: {test}, {known}"
            );
        });
    }
}

/// All runs agree, and have learned; the steps themselves are compared with plain loops in compiler/driver/tests/training.
#[test]
fn logistic_tells_zeros_from_the_rest() {
    let first = std::cell::RefCell::new(None);
    with_ranks(
        2..=2,
        "logistic.ein",
        &[],
        &["loss", "accuracy"],
        |output, how| {
            let (loss, accuracy) = (output("loss").data[0], output("accuracy").data[0]);
            assert!(accuracy >= 0.99 && loss < 0.06, "{how}: {loss}, {accuracy}");
            let mut first = first.borrow_mut();
            let known = *first.get_or_insert(loss);
            assert!((loss - known).abs() <= 1e-5, "{how}: {loss}, {known}");
        },
    );
}

#[test]
fn digits_knn_classifies_356_of_360() {
    let data = |name: &str| Tensor::read(&root().join(format!("examples/data/digits_{name}.npy")));
    let (x, y, xt, yt) = (
        data("train_x"),
        data("train_y"),
        data("test_x"),
        data("test_y"),
    );
    let mut correct = 0.0;
    for m in 0..xt.shape[0] {
        let distance = |n: usize| -> f64 {
            (0..64)
                .map(|d| (xt.at(&[m, d]) - x.at(&[n, d])).powi(2))
                .sum()
        };
        let mut best = (f64::INFINITY, 0);
        for n in 0..x.shape[0] {
            let candidate = distance(n);
            if candidate < best.0 {
                best = (candidate, n);
            }
        }
        correct += f64::from(u8::from(y.at(&[best.1]) == yt.at(&[m])));
    }
    everywhere(
        "digits_knn.ein",
        &[],
        &["correct", "accuracy"],
        |output, how| {
            assert_eq!(output("correct").data, [correct], "{how}");
            output("accuracy").assert_close(
                &Tensor {
                    shape: vec![],
                    data: vec![correct / 360.0],
                },
                1e-7,
                how,
            );
        },
    );
    assert_eq!(correct, 356.0);
}

#[test]
fn matmul_equals_three_loops() {
    let folder = tempfile::tempdir().unwrap();
    let (i, k, j) = (37, 29, 23);
    let (a, b) = (Tensor::noise(&[i, k], 1), Tensor::noise(&[k, j], 2));
    let expected = Tensor::from_fn(&[i, j], |n| {
        (0..k).map(|q| a.at(&[n / j, q]) * b.at(&[q, n % j])).sum()
    });
    let arguments = [
        inputs(folder.path(), &[("A", &a), ("B", &b)]),
        dims(&[("I", i), ("K", k), ("J", j)]),
    ]
    .concat();
    everywhere("matmul.ein", &arguments, &["C"], |output, how| {
        output("C").assert_close(&expected, 1e-5, how);
    });
}

#[test]
fn nearest_equals_its_formula() {
    let folder = tempfile::tempdir().unwrap();
    let (n, d) = (101, 13);
    let (x, q, a) = (
        Tensor::noise(&[n, d], 3),
        Tensor::noise(&[d], 4),
        Tensor::noise(&[d, d], 5),
    );
    let distance = Tensor::from_fn(&[n], |row| {
        let diff = |e: usize| x.at(&[row, e]) - q.at(&[e]);
        (0..d)
            .map(|e| (0..d).map(|c| diff(c) * a.at(&[c, e])).sum::<f64>() * diff(e))
            .sum()
    });
    let best = (0..n)
        .min_by(|a, b| distance.data[*a].total_cmp(&distance.data[*b]))
        .unwrap();
    let arguments = [
        inputs(folder.path(), &[("X", &x), ("q", &q), ("A", &a)]),
        dims(&[("N", n), ("D", d)]),
    ]
    .concat();
    everywhere(
        "nearest.ein",
        &arguments,
        &["best", "dist"],
        |output, how| {
            output("dist").assert_close(&distance, 1e-5, how);
            assert_eq!(output("best").data, [best as f64], "{how}");
        },
    );
}

#[test]
fn attention_equals_softmax_of_masked_scores() {
    let folder = tempfile::tempdir().unwrap();
    let (b, h, t, d) = (2, 3, 11, 5);
    let shape = [b, h, t, d];
    let (q, k, v) = (
        Tensor::noise(&shape, 6),
        Tensor::noise(&shape, 7),
        Tensor::noise(&shape, 8),
    );
    let expected = Tensor::from_fn(&shape, |n| {
        let (e, row, head, batch) = (n % d, n / d % t, n / d / t % h, n / d / t / h);
        let weight = |s: usize| {
            let score: f64 = (0..d)
                .map(|c| q.at(&[batch, head, row, c]) * k.at(&[batch, head, s, c]))
                .sum();
            (score / (d as f64).sqrt()).exp()
        };
        let total: f64 = (0..=row).map(weight).sum();
        (0..=row)
            .map(|s| weight(s) * v.at(&[batch, head, s, e]))
            .sum::<f64>()
            / total
    });
    let arguments = [
        inputs(folder.path(), &[("Q", &q), ("K", &k), ("V", &v)]),
        dims(&[("B", b), ("H", h), ("T", t), ("D", d)]),
    ]
    .concat();
    everywhere("attention.ein", &arguments, &["out"], |output, how| {
        output("out").assert_close(&expected, 1e-5, how);
    });
}

#[test]
fn conv_equals_seven_loops() {
    let folder = tempfile::tempdir().unwrap();
    let (n, c, f, h) = (2, 3, 5, 14);
    let (i, k) = (
        Tensor::noise(&[n, c, h, h], 9),
        Tensor::noise(&[f, c, 3, 3], 10),
    );
    let half = h / 2;
    let expected = Tensor::from_fn(&[n, f, half, half], |number| {
        let (x, y, filter, image) = (
            number % half,
            number / half % half,
            number / half / half % f,
            number / half / half / f,
        );
        let mut sum = 0.0;
        for channel in 0..c {
            for r in 0..3 {
                for s in 0..3 {
                    let (row, column) = ((2 * y + r).wrapping_sub(1), (2 * x + s).wrapping_sub(1));
                    if row < h && column < h {
                        sum +=
                            i.at(&[image, channel, row, column]) * k.at(&[filter, channel, r, s]);
                    }
                }
            }
        }
        sum
    });
    let arguments = [
        inputs(folder.path(), &[("I", &i), ("K", &k)]),
        dims(&[("N", n), ("C", c), ("F", f), ("H", h)]),
    ]
    .concat();
    everywhere("conv.ein", &arguments, &["O"], |output, how| {
        output("O").assert_close(&expected, 1e-5, how);
    });
}

#[test]
fn ffnn_step_descends_as_its_formulas_say() {
    let folder = tempfile::tempdir().unwrap();
    let (n, d, h, l) = (17, 7, 11, 3);
    let (x, y) = (Tensor::noise(&[n, d], 11), Tensor::noise(&[n, l], 12));
    let (w1, w2) = (Tensor::noise(&[d, h], 13), Tensor::noise(&[h, l], 14));
    let before = Tensor::from_fn(&[n, h], |at| {
        let (n, h) = (at / h, at % h);
        (0..d).map(|d| x.at(&[n, d]) * w1.at(&[d, h])).sum()
    });
    let a1 = Tensor::from_fn(&[n, h], |at| before.data[at].max(0.0));
    let a2 = Tensor::from_fn(&[n, l], |at| {
        let (n, l) = (at / l, at % l);
        let sum: f64 = (0..h).map(|h| a1.at(&[n, h]) * w2.at(&[h, l])).sum();
        1.0 / (1.0 + (-sum).exp())
    });
    let terms = (0..n * l).map(|at| {
        let (y, a) = (y.data[at], a2.data[at]);
        -(y * (a + 1e-7).ln() + (1.0 - y) * (1.0 - a + 1e-7).ln())
    });
    let loss = Tensor::from_fn(&[], |_| terms.clone().sum::<f64>() / (n * l) as f64);
    let d2 = Tensor::from_fn(&[n, l], |at| (a2.data[at] - y.data[at]) / (n * l) as f64);
    let d1 = Tensor::from_fn(&[n, h], |at| {
        let (n, h) = (at / h, at % h);
        let back: f64 = (0..l).map(|l| d2.at(&[n, l]) * w2.at(&[h, l])).sum();
        if before.data[at] > 0.0 { back } else { 0.0 }
    });
    let w1_next = Tensor::from_fn(&[d, h], |at| {
        let (d, h) = (at / h, at % h);
        w1.data[at] - 0.01 * (0..n).map(|n| x.at(&[n, d]) * d1.at(&[n, h])).sum::<f64>()
    });
    let w2_next = Tensor::from_fn(&[h, l], |at| {
        let (h, l) = (at / l, at % l);
        w2.data[at] - 0.01 * (0..n).map(|n| a1.at(&[n, h]) * d2.at(&[n, l])).sum::<f64>()
    });
    let given = [("X", &x), ("Y", &y), ("W1", &w1), ("W2", &w2)];
    let arguments = [
        inputs(folder.path(), &given),
        dims(&[("N", n), ("D", d), ("H", h), ("L", l)]),
    ]
    .concat();
    let saved = ["loss", "W1_next", "W2_next"];
    everywhere("ffnn_step.ein", &arguments, &saved, |output, how| {
        output("loss").assert_close(&loss, 1e-5, how);
        output("W1_next").assert_close(&w1_next, 1e-5, how);
        output("W2_next").assert_close(&w2_next, 1e-5, how);
    });
}

#[test]
fn a_run_moves_what_its_plan_states() {
    let finished = einc(&["run", "examples/digits_knn.ein", "--sites", "3", "--stats"]).success();
    let moved: Vec<_> = finished
        .stderr
        .lines()
        .filter(|line| line.contains(": moved ") && line.contains(" (stated "))
        .collect();
    assert!(moved.len() >= 2, "{finished}");
    for line in moved {
        let (measured, stated) = line
            .split_once(": moved ")
            .unwrap()
            .1
            .split_once(" (stated ")
            .unwrap();
        assert_eq!(measured, stated.trim_end_matches(')'), "{finished}");
    }
    assert!(
        finished.stderr.contains("stated peak bytes = "),
        "{finished}"
    );
}

/// The parity of the turned state is cos θ₁ cos θ₂ + sin θ₁ sin θ₂ cos(φ₁ + φ₂).
#[test]
fn quantum_has_the_parity_of_its_closed_form() {
    let (turn, phase) = ([0.3f64, 1.1], 0.4f64 + 0.9);
    let cosines: f64 = turn.iter().map(|t| t.cos()).product();
    let sines: f64 = turn.iter().map(|t| t.sin()).product();
    let names = ["parity", "slope", "probability"];
    with_ranks(2..=3, "quantum.ein", &[], &names, |output, how| {
        let parity = Tensor::from_fn(&[], |_| cosines + sines * phase.cos());
        output("parity").assert_close(&parity, 1e-5, how);
        let slope = Tensor::from_fn(&[2], |_| -sines * phase.sin());
        output("slope").assert_close(&slope, 1e-5, how);
        // Both basis states turn by themselves; their amplitudes meet with the phase of both qubits between them.
        let expected = Tensor::from_fn(&[2, 2], |number| {
            let bits = [number / 2, number % 2];
            // <b|R|0> = cos(θ/2) or sin(θ/2), <b|R|1> = −sin(θ/2) or cos(θ/2).
            let of = |basis: usize| -> f64 {
                let factors = (0..2).map(|q| match (bits[q], basis) {
                    (0, 0) | (1, 1) => (turn[q] / 2.0).cos(),
                    (0, _) => -(turn[q] / 2.0).sin(),
                    _ => (turn[q] / 2.0).sin(),
                });
                factors.product()
            };
            let (zeros, ones) = (of(0), of(1));
            0.5 * (zeros * zeros + ones * ones) + zeros * ones * phase.cos()
        });
        output("probability").assert_close(&expected, 1e-5, how);
    });
}

/// A sum of waves, each of which decays and travels by itself.
#[test]
fn spectral_is_exact_for_waves() {
    let n = 60;
    let size = dims(&[("N", n)]);
    with_ranks(2..=3, "spectral.ein", &size, &["u", "p"], |output, how| {
        let x = |j: usize| j as f64 * 2.0 * PI / n as f64;
        let moved = |j: usize, m: f64| ((-0.04 * m * m).exp(), m * (x(j) - 3.0));
        let u = Tensor::from_fn(&[n], |j| {
            let ((a, s), (b, t)) = (moved(j, 3.0), moved(j, 5.0));
            a * s.cos() + 0.5 * b * t.sin() + 0.25
        });
        output("u").assert_close(&u, 1e-12, how);
        let p = Tensor::from_fn(&[n], |j| {
            (3.0 * x(j)).cos() / 10.0 + 0.5 * (5.0 * x(j)).sin() / 26.0 + 0.25
        });
        output("p").assert_close(&p, 1e-12, how);
    });
}
