//! The gradient step of the TRA paper (section 6.3), by `grad` and written out: the same numbers, and plans that are as
//! good.

use crate::{inputs, program, run};
use einc_core::pipeline::{Options, compile};

/// The example with sizes, and the same with `grad`.
fn texts(sizes: [u64; 4]) -> [String; 2] {
    let mut text = include_str!("../../../../examples/ffnn_step.ein").to_owned();
    for ((name, old), size) in [
        ("N", "10_000"),
        ("D", "1_600"),
        ("H", "100_000"),
        ("L", "10"),
    ]
    .into_iter()
    .zip(sizes)
    {
        let (old, new) = (
            format!("dim {name} = {old}\n"),
            format!("dim {name} = {size}\n"),
        );
        assert!(text.contains(&old), "{text}");
        text = text.replace(&old, &new);
    }
    let step = |line: &&str| {
        ["d2[", "d1[", "W1_next[", "W2_next["]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut by_grad: String = text
        .lines()
        .filter(|line| !step(line))
        .map(|line| format!("{line}\n"))
        .collect();
    by_grad += "W1_next[d,h] = W1[d,h] - lr * grad(loss, W1)[d,h]\n\
                W2_next[h,l] = W2[h,l] - lr * grad(loss, W2)[h,l]\n";
    [text, by_grad]
}

#[test]
fn one_step_by_grad_is_the_one_written_out() {
    let [hand, by_grad] = texts([12, 7, 9, 3]);
    let (hand, by_grad) = (program(&hand), program(&by_grad));
    let inputs = inputs("", &hand);
    let (expected, found) = (run(&hand, &inputs), run(&by_grad, &inputs));
    assert_eq!(expected.len(), 3);
    for (expected, found) in expected.iter().zip(&found) {
        assert_eq!(expected.len(), found.len());
        for (a, b) in expected.iter().zip(found) {
            // The one written out leaves out the 1e-7 in the logarithms.
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()), "{a} is not {b}");
        }
    }
}

#[test]
fn plans_of_gradients_move_no_more_than_those_of_what_is_written_out() {
    for sizes in [
        [10_000, 160, 500, 10],
        [100, 500, 2_000, 1_000],
        [1_000, 100, 10_000, 10],
    ] {
        for sites in [2, 4, 5] {
            let options = Options {
                sites,
                deterministic: false,
                criteria: Default::default(),
            };
            let [hand, by_grad] = texts(sizes)
                .map(|text| compile(&program(&text), &options, &|| false).unwrap().cost);
            assert!(
                by_grad.floats <= hand.floats + hand.floats / 100
                    && by_grad.transfer <= hand.transfer + hand.transfer / 100,
                "{sizes:?} on {sites}: {} floats and {} transferred, written out {} and {}",
                by_grad.floats,
                by_grad.transfer,
                hand.floats,
                hand.transfer
            );
        }
    }
}
