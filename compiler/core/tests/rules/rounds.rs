//! Programs with blocks: what is rewritten stays in its block or moves out of it, and means what it meant.

use crate::support::{Kind, difference, program, rewrite};
use einc_core::einsum::{Program, verify::verify};

/// Checks all alternatives; gives the best.
fn best(text: &str) -> Program {
    let program = program(text);
    let logic = rewrite(&program);
    assert!(logic.alternatives.iter().any(|a| a.program == program));
    for alternative in &logic.alternatives {
        let other = &alternative.program;
        assert_eq!(verify(other), Ok(()), "{program}\n{other}");
        for seed in 0..3 {
            let found = difference(&program, other, seed, Kind::Finite, false);
            assert_eq!(found, None, "{program}\n{other}");
        }
    }
    for pair in logic.alternatives.windows(2) {
        assert!(pair[0].work <= pair[1].work);
    }
    logic.alternatives[0].program.clone()
}

/// The block that computes a tensor.
fn block(program: &Program, name: &str) -> Option<String> {
    let tensor = program.tensors.iter().find(|t| t.name == name);
    let tensor = tensor.unwrap_or_else(|| panic!("no {name} in\n{program}"));
    tensor.block.map(|block| program.block(block).name.clone())
}

#[test]
fn a_product_is_ordered_anew_in_its_block() {
    let best = best(
        "A: f64[9, 8] = unbound\nB: f64[8, 9] = unbound\nx.0: f64[9] = unbound\nrepeat t < 5 {\n  carry x.0 -> x.1\n  \
         x: f64[9] = state 0 of t\n  x.1: f64[9] = [i: 9 | j: 8, k: 9] sum A[i, j] * B[j, k] * x[k]\n}\n\
         x.2: f64[9] = last 0 of t\noutput x.2",
    );
    assert_eq!(block(&best, "x.1.1"), Some("t".into()), "{best}");
    assert_eq!(block(&best, "x.1"), Some("t".into()));
}

#[test]
fn what_no_longer_depends_on_the_round_moves_out() {
    let best = best(
        "A: f64[9, 8] = unbound\nB: f64[8, 9] = unbound\nc: f64[9] = unbound\nx.0: f64[9] = unbound\nrepeat t < 5 {\n  carry x.0 -> x.1\n  \
         x: f64[9] = state 0 of t\n  x.1: f64[9] = [i: 9 | j: 8, k: 9] sum A[i, j] * B[j, k] * c[k] * x[i]\n}\n\
         x.2: f64[9] = last 0 of t\noutput x.2",
    );
    assert_eq!(block(&best, "x.1"), Some("t".into()), "{best}");
    let parts = best.tensors.iter().filter(|t| t.name.starts_with("x.1."));
    let blocks: Vec<_> = parts.map(|t| t.block).collect();
    assert!(
        !blocks.is_empty() && blocks.iter().all(Option::is_none),
        "{best}"
    );
}

#[test]
fn nothing_moves_into_a_block() {
    let text = "A: f64[9, 9] = unbound\nB: f64[9, 9] = unbound\nx.0: f64[9] = unbound\n\
        C: f64[9, 9] = [i: 9, k: 9 | j: 9] sum A[i, j] * B[j, k]\nrepeat t < 1000 until done {\n  carry x.0 -> x.1\n  \
        x: f64[9] = state 0 of t\n  y: f64[9] = [i: 9 | k: 9] sum C[i, k] * x[k]\n  \
        s: f64[] = [| i: 9] norm y[i]\n  x.1: f64[9] = [i: 9] y[i] / s[]\n  done: bool[] = [] s[] < 0.001_f64\n}\n\
        x.2: f64[9] = last 0 of t\noutput x.2";
    let best = best(text);
    assert_eq!(block(&best, "C"), None, "{best}");
}

#[test]
fn blocks_in_blocks_are_parts_of_their_own() {
    let best = best(
        "A: f64[7, 6] = unbound\nB: f64[6, 7] = unbound\nx.0: f64[7] = unbound\nn: i64[] = full(3)\nrepeat t < n {\n  \
         carry x.0 -> x.1\n  collected: f64[7] = [i: 7 | j: 6, k: 7] sum A[i, j] * B[j, k] * x[k]\n  x: f64[7] = state 0 of t\n  \
         repeat u < 4 {\n    carry x -> y.1\n    collect y.1 at 1\n    y: f64[7] = state 0 of u\n    \
         r: f64[7] = gumbel\n    y.1: f64[7] = [i: 7 | j: 6, k: 7] sum A[i, j] * B[j, k] * (y[k] + r[k])\n  }\n  \
         ys: f64[7, 4] = collected 0 of u\n  x.1: f64[7] = [i: 7 | s: 4] sum ys[i, s] * collected[i]\n}\n\
         x.2: f64[7] = last 0 of t\noutput x.2"
            .replace("  collected: f64[7] = [i: 7 | j: 6, k: 7] sum A[i, j] * B[j, k] * x[k]\n  x: f64[7] = state 0 of t\n", "  x: f64[7] = state 0 of t\n  collected: f64[7] = [i: 7 | j: 6, k: 7] sum A[i, j] * B[j, k] * x[k]\n")
            .as_str(),
    );
    assert_eq!(block(&best, "y.1"), Some("u".into()), "{best}");
    assert_eq!(block(&best, "collected"), Some("t".into()));
    assert_eq!(block(&best, "collected.1"), Some("t".into()), "{best}");
}
