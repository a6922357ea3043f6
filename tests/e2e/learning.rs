//! Examples that learn, against what their data allow: references are fitted here by other means.
//!
//! Must not know the rules of the optimizers, which have golden vectors of their own.

#![allow(
    clippy::needless_range_loop,
    reason = "references are loops over indices"
)]

use crate::families::in_process;
use einc_tests::{Tensor, einc, root};
use std::cell::RefCell;
use std::path::PathBuf;

fn example(name: &str) -> PathBuf {
    root().join("examples").join(name)
}

fn data(name: &str) -> Tensor {
    Tensor::read(&root().join(format!("examples/data/{name}.npy")))
}

fn arguments(list: &[&str]) -> Vec<String> {
    list.iter().map(|argument| argument.to_string()).collect()
}

#[test]
fn a_convolutional_network_reads_digits() {
    in_process(&example("cnn.ein"), &[], &["test"], |output, how| {
        let accuracy = output("test").data[0];
        assert!(accuracy >= 0.985, "{how}: {accuracy}");
    });
}

/// The least root mean square error on the rows that were not seen: least squares for the traits of people and of items in turn.
fn alternating_least_squares(traits: usize, keep: f64, rounds: usize) -> f64 {
    let read = |part: &str| {
        let of = |name: &str| data(&format!("ratings_{part}_{name}")).data;
        let pairs = of("user").into_iter().zip(of("item"));
        pairs
            .zip(of("stars"))
            .map(|((user, item), stars)| ([user as usize, item as usize], stars))
            .collect::<Vec<_>>()
    };
    let (train, test) = (read("train"), read("test"));
    let mu = train.iter().map(|rating| rating.1).sum::<f64>() / train.len() as f64;
    let size = traits + 2;
    // A person's row is their traits, 1, their bias; an item's its traits, its bias, 1.
    let start = |rows: usize, one: usize, seed: u64| -> Vec<Vec<f64>> {
        let noise = Tensor::noise(&[rows, size], seed);
        (0..rows)
            .map(|row| {
                (0..size)
                    .map(|t| match t {
                        _ if t == one => 1.0,
                        _ if t >= traits => 0.0,
                        _ => noise.at(&[row, t]),
                    })
                    .collect()
            })
            .collect()
    };
    let mut sides = [start(200, traits, 1), start(120, traits + 1, 2)];
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    for _ in 0..rounds {
        for side in [0, 1] {
            let one = traits + side;
            for row in 0..sides[side].len() {
                let mut a = vec![vec![0.0; size]; size];
                let mut b = vec![0.0; size];
                for (pair, stars) in train.iter().filter(|rating| rating.0[side] == row) {
                    let other = &sides[1 - side][pair[1 - side]];
                    let rest = stars - mu - other[one];
                    for i in 0..size {
                        b[i] += other[i] * rest;
                        for j in 0..size {
                            a[i][j] += other[i] * other[j];
                        }
                    }
                }
                for i in 0..size {
                    a[i][i] += keep;
                    if i == one {
                        a[i].fill(0.0);
                        a[i][i] = 1.0;
                        b[i] = 0.0;
                    } else {
                        a[i][one] = 0.0;
                    }
                }
                let mut new = crate::families::solve(a, b);
                new[one] = 1.0;
                sides[side][row] = new;
            }
        }
    }
    let squares = test
        .iter()
        .map(|(pair, stars)| (mu + dot(&sides[0][pair[0]], &sides[1][pair[1]]) - stars).powi(2));
    (squares.sum::<f64>() / test.len() as f64).sqrt()
}

#[test]
fn matrix_factorisation_comes_near_the_noise() {
    let reference = alternating_least_squares(4, 0.8, 20);
    assert!((0.3..0.345).contains(&reference), "{reference}");
    let saved = ["rmse_test", "rmse_mean"];
    in_process(&example("matfac.ein"), &[], &saved, |output, how| {
        let found = output("rmse_test").data[0];
        assert!(found <= 0.345, "{how}: {found}");
        assert!(
            (found - reference).abs() < 0.02,
            "{how}: {found}, {reference}"
        );
        assert!(output("rmse_mean").data[0] > 0.9, "{how}");
    });
}

/// The least mean loss of logistic regression on the words, by Newton's steps with a slight pull to 0, as some words are rare.
fn least_loss_of_words() -> f64 {
    let (x, y) = (data("words_train_x"), data("words_train_y"));
    let (rows, fields) = (x.shape[0], x.shape[1]);
    let size = 181;
    let mut w = vec![0.0; size];
    let places = |row: usize| {
        let words = (0..fields).map(move |field| row * fields + field);
        words.map(|at| x.data[at] as usize).chain([180])
    };
    let mut loss = f64::INFINITY;
    for _ in 0..12 {
        let mut a = vec![vec![0.0; size]; size];
        let mut b = vec![0.0; size];
        (0..size).for_each(|i| a[i][i] = 1e-3);
        loss = 0.0;
        for row in 0..rows {
            let z: f64 = places(row).map(|place| w[place]).sum();
            let p = 1.0 / (1.0 + (-z).exp());
            loss += if y.data[row] > 0.5 {
                -p.ln()
            } else {
                -(1.0 - p).ln()
            };
            for i in places(row) {
                b[i] += y.data[row] - p;
                for j in places(row) {
                    a[i][j] += p * (1.0 - p);
                }
            }
        }
        for (w, step) in w.iter_mut().zip(crate::families::solve(a, b)) {
            *w += step;
        }
    }
    loss / rows as f64
}

#[test]
fn weights_that_are_gathered_are_fitted() {
    let least = least_loss_of_words();
    let saved = ["loss", "accuracy"];
    in_process(&example("embedding.ein"), &[], &saved, |output, how| {
        let (loss, accuracy) = (output("loss").data[0], output("accuracy").data[0]);
        assert!(accuracy >= 0.84, "{how}: {accuracy}");
        assert!(
            loss >= least - 1e-6 && loss <= least + 0.005,
            "{how}: {loss}, {least}"
        );
    });
}

#[test]
fn an_optimizer_of_ones_own_learns() {
    let source = example("own_optimizer/digits.ein");
    in_process(&source, &[], &["test"], |output, how| {
        let accuracy = output("test").data[0];
        assert!(accuracy >= 0.98, "{how}: {accuracy}");
    });
}

/// Means of three seeds at 100 epochs, on one site; the seeds are shared out over two tests so that they run side by side.
fn all_hold_at_100_epochs(batch: &str) {
    let optimizers = ["momentum", "lars", "lars_ema", "adamw", "lamb"];
    let mut sums = [0.0; 5];
    for seed in ["0", "1", "2"] {
        let batch = format!("B={batch}");
        let file = "examples/large_batch/digits.ein";
        let command = [
            "run", file, "--dim", &batch, "--dim", "E=100", "--seed", seed,
        ];
        let printed = einc(&command).success().stdout;
        for (sum, name) in sums.iter_mut().zip(optimizers) {
            let value = printed
                .lines()
                .find_map(|line| line.strip_prefix(&format!("{name} = ")))
                .and_then(|value| value.parse::<f64>().ok());
            *sum += value.unwrap_or_else(|| panic!("no {name} in {printed}"));
        }
    }
    for (sum, name) in sums.into_iter().zip(optimizers) {
        let least = if matches!(name, "lamb" | "lars_ema") {
            0.983
        } else {
            0.98
        };
        assert!(sum / 3.0 >= least, "{name} at batch {batch}: {}", sum / 3.0);
    }
}

#[test]
fn a_batch_of_512_holds_at_100_epochs() {
    all_hold_at_100_epochs("512");
}

#[test]
fn the_full_batch_holds_at_100_epochs() {
    all_hold_at_100_epochs("1437");
}

#[test]
fn large_batches_do_not_depend_on_the_number_of_sites() {
    let first = RefCell::new(None);
    let source = example("large_batch/digits.ein");
    let few = arguments(&["--dim", "B=512", "--dim", "E=10"]);
    let saved = ["loss_lamb", "loss_lars"];
    in_process(&source, &few, &saved, |output, how| {
        let losses = [output("loss_lamb").data[0], output("loss_lars").data[0]];
        let known = *first.borrow_mut().get_or_insert(losses);
        for (loss, known) in losses.iter().zip(known) {
            assert!(
                (loss - known).abs() <= 1e-4 * known,
                "{how}: {loss}, {known}"
            );
        }
    });
}

/// The mean loss on the last tenth of the text of a guess from how often each byte occurs before it.
fn loss_of_frequencies(window: usize) -> f64 {
    let text = data("text").data;
    let known = text.len() / 10 * 9;
    let mut count = [0.0f64; 128];
    text[..known]
        .iter()
        .for_each(|byte| count[*byte as usize] += 1.0);
    let windows = (text.len() - known - 1) / window;
    let unseen = &text[known + 1..known + 1 + windows * window];
    let loss = |byte: &f64| -((count[*byte as usize] + 1.0) / (known + 128) as f64).ln();
    unseen.iter().map(loss).sum::<f64>() / unseen.len() as f64
}

#[test]
fn a_language_model_learns_and_writes() {
    let source = example("charlm.ein");
    // Longer than the window, which then moves.
    let sizes = ["--dim", "T=32", "--dim", "D=32", "--dim", "G=40"];
    let small = |more: &[&str]| arguments(&[&sizes[..], more].concat());
    let unigram = loss_of_frequencies(32);
    let saved = ["test", "unigram", "sample"];
    let learns = small(&["--set", "steps=150"]);
    in_process(&source, &learns, &saved, |output, how| {
        let loss = output("test").data[0];
        assert!((output("unigram").data[0] - unigram).abs() < 1e-3, "{how}");
        assert!(loss < unigram - 0.3, "{how}: {loss}, {unigram}");
        assert_eq!(output("sample").shape, [40], "{how}");
    });
    // A few steps, the test and what is written have the same bits everywhere.
    let first = RefCell::new(None);
    let same = small(&["--set", "steps=3", "--deterministic"]);
    in_process(&source, &same, &saved, |output, how| {
        let found = (output("test").data[0], output("sample").data);
        let mut first = first.borrow_mut();
        assert_eq!(*first.get_or_insert(found.clone()), found, "{how}");
    });
}

/// The states of LAMB are `m` and `v`, and `u` is a name within its rule.
#[test]
fn params_may_be_called_as_what_a_rule_names() {
    let folder = tempfile::tempdir().unwrap();
    let program = |names: [&str; 3]| {
        let params = names.map(|name| format!("param {name}: f64[4] = 0.5\n"));
        let terms = names.map(|name| format!("sum[i] ({name}[i] - i)^2"));
        let total = names.map(|name| format!("(sum[i] {name}[i])")).join(" + ");
        format!(
            "{}loss = ({}) + ({}) + ({})\ntrain {{ loss: loss; steps: 5; optimizer: lamb(lr: 0.1) }}\n\
             total = {total}\noutput total\n",
            params.concat(),
            terms[0],
            terms[1],
            terms[2]
        )
    };
    let printed = [["u", "v", "m"], ["first", "second", "third"]].map(|names| {
        let source = folder.path().join("program.ein");
        std::fs::write(&source, program(names)).unwrap();
        einc(&["run", source.to_str().unwrap()]).success().stdout
    });
    assert_eq!(printed[0], printed[1]);
}
