//! For every condition of every row an instance where it fails, and the rule does not fire.

use crate::support::{program, rewrite_only};
use einc_core::rules;
use std::collections::BTreeSet;

/// Rows of conditions: rule, and a program where one fails.
const BARRED: &[(&str, &str)] = &[
    // Element types differ: what a narrow type stores is rounded.
    (
        "common-subexpression",
        "x: f32[3] = unbound\na: f32[3] = [i: 3] x[i] * x[i]\nb: f16[3] = [i: 3] x[i] * x[i]\noutput a\noutput b",
    ),
    (
        "common-subexpression",
        "x: f32[3] = normal(0.0, 1.0)\ny: f32[3] = normal(0.0, 1.0)\nu: f32[3] = [i: 3] x[i] - y[i]\noutput u",
    ),
    (
        "transpose-read",
        "x: f32[3, 2] = unbound\nt: bf16[2, 3] = [j: 2, i: 3] x[i, j]\noutput t",
    ),
    (
        "transpose-read",
        "x: f32[3, 3] = unbound\nc: i64[3] = unbound\nt: f32[3, 3] = [j: 3, i: 3] x[c[i], j]\noutput t",
    ),
    (
        "read-through",
        "x: f64[3, 2] = unbound\nz: f64[3, 2] = [i: 3, j: 2] x[i, j] * x[i, j]\nu: f64[2, 3] = [j: 2, i: 3] exp(z[i, j])\noutput u",
    ),
    (
        "read-through",
        "x: f32[3, 3] = unbound\nz: bf16[3, 3] = [i: 3, j: 3] x[i, j] + x[j, i]\nu: f32[3] = [i: 3] z[i, i]\noutput u",
    ),
    (
        "read-through",
        "x: f64[3] = unbound\nc: i64[3] = unbound\nz: f64[3, 3] = [i: 3, j: 3] x[c[i]] + x[c[j]]\nu: f64[3] = [i: 3] z[i, i]\noutput u",
    ),
    (
        "read-through",
        "x: f64[0, 0] = unbound\nz: f64[0, 0] = [i: 0, j: 0] x[i, j] + x[j, i]\nu: f64[0] = [i: 0] z[i, i]\noutput u",
    ),
    // Integers wrap, so that max does not go through sums.
    (
        "merge-products",
        "x: i64[3, 2] = unbound\nt: i64[3] = [i: 3 | k: 2] max x[i, k] + x[i, k]\nu: i64[] = [| i: 3] max t[i] + t[i]\noutput u",
    ),
    (
        "merge-products",
        "x: f64[3, 2] = unbound\nt: f64[3] = [i: 3 | k: 2] prod x[i, k]\nu: f64[] = [| i: 3] sum t[i] * t[i]\noutput u",
    ),
    (
        "merge-products",
        "x: f64[3, 2] = unbound\nt: f64[3] = [i: 3 | k: 2] sum x[i, k] * x[i, k]\nu: f64[] = [| i: 3] sum 1.0_f64 / t[i]\noutput u",
    ),
    (
        "merge-products",
        "x: f64[3, 0] = unbound\ny: f64[3] = unbound\nt: f64[3] = [i: 3 | k: 0] sum x[i, k]\nu: f64[] = [| i: 3] sum t[i] * y[i]\noutput u",
    ),
    (
        "merge-products",
        "x: f32[3, 2] = unbound\ny: f32[3] = unbound\nt: f16[3] = [i: 3 | k: 2] sum x[i, k] * x[i, k]\nu: f32[] = [| i: 3] sum t[i] * y[i]\noutput u",
    ),
    (
        "contraction-order",
        "x: i32[3, 2] = unbound\ny: i32[2, 5] = unbound\nz: i32[5] = unbound\nu: i32[3] = [i: 3 | k: 2, l: 5] max x[i, k] + y[k, l] + z[l]\noutput u",
    ),
    (
        "contraction-order",
        "x: f64[3, 0] = unbound\ny: f64[0, 5] = unbound\nz: f64[5] = unbound\nu: f64[3] = [i: 3 | k: 0, l: 5] sum x[i, k] * y[k, l] * z[l]\noutput u",
    ),
    (
        "contraction-order",
        "x: f64[3, 2] = unbound\ny: f64[2] = unbound\nu: f64[3] = [i: 3 | k: 2] sum x[i, k] * y[k]\noutput u",
    ),
    (
        "pull-factor",
        "x: f64[3] = unbound\ny: f64[2] = unbound\nu: f64[3] = [i: 3 | k: 2] max x[i] * y[k]\noutput u",
    ),
    (
        "pull-factor",
        "x: i64[3] = unbound\ny: i64[2] = unbound\nu: i64[3] = [i: 3 | k: 2] max x[i] + y[k]\noutput u",
    ),
    (
        "pull-factor",
        "x: f64[3] = unbound\ny: f64[0] = unbound\nu: f64[3] = [i: 3 | k: 0] sum x[i] * y[k]\noutput u",
    ),
    (
        "pull-factor",
        "x: f64[3, 2] = unbound\ny: f64[2] = unbound\nu: f64[3] = [i: 3 | k: 2] sum x[i, k] * y[k]\noutput u",
    ),
    (
        "factor",
        "x: i64[3] = unbound\ny: i64[3] = unbound\nz: i64[3] = unbound\nu: i64[3] = [i: 3] max(x[i] + y[i], x[i] + z[i])\noutput u",
    ),
    (
        "factor",
        "x: i64[3, 3] = unbound\ny: i64[3, 3] = unbound\nz: i64[3, 3] = unbound\nu: i64[3, 3] = [i: 3, j: 3] x[i, j] * y[i, j] + x[j, i] * z[i, j]\noutput u",
    ),
    (
        "factor",
        "x: f64[3] = unbound\ny: f64[3] = unbound\nz: f64[3] = unbound\nu: f64[3] = [i: 3] x[i] * y[i] + x[i] * z[i]\noutput u",
    ),
    (
        "factor",
        "x: f64[3] = unbound\ny: f64[2] = unbound\nu: f64[3, 2] = [i: 3, j: 2] max(y[j], y[j] + x[i])\noutput u",
    ),
    (
        "factor",
        "x: i64[3] = unbound\ny: i64[3] = unbound\nz: i64[3] = unbound\nu: i64[3] = [i: 3] max(x[i] * y[i], x[i] * z[i])\noutput u",
    ),
    (
        "factor",
        "x: i64[0] = unbound\ny: i64[0] = unbound\nz: i64[0] = unbound\nu: i64[0] = [i: 0] x[i] * y[i] + x[i] * z[i]\noutput u",
    ),
    (
        "distribute",
        "x: f64[3] = unbound\ny: f64[3] = unbound\nu: f64[3] = [i: 3] x[i] * (x[i] + y[i])\noutput u",
    ),
    (
        "distribute",
        "x: f64[3] = unbound\ny: f64[3] = unbound\nu: f64[] = [| i: 3] sum x[i] / (x[i] + y[i])\noutput u",
    ),
    (
        "distribute",
        "x: i32[3] = unbound\ny: i32[3] = unbound\nu: i32[] = [| i: 3] max x[i] + max(x[i], y[i])\noutput u",
    ),
    (
        "distribute",
        "x: f64[0] = unbound\ny: f64[0] = unbound\nu: f64[] = [| i: 0] sum x[i] * (x[i] + y[i])\noutput u",
    ),
    (
        "split-sum",
        "x: f64[3] = unbound\ny: f64[2] = unbound\nu: f64[3] = [i: 3 | k: 2] max x[i] + y[k]\noutput u",
    ),
    (
        "split-sum",
        "x: f64[3] = unbound\ny: f64[0] = unbound\nu: f64[3] = [i: 3 | k: 0] sum x[i] + y[k]\noutput u",
    ),
    (
        "split-sum",
        "x: f64[3] = unbound\ny: f64[2] = unbound\nu: f64[3] = [i: 3 | k: 2] prod x[i] / y[k]\noutput u",
    ),
    // What is taken away from each other is near: the sums are far larger than the differences.
    (
        "split-sum",
        "x: f64[3] = unbound\ny: f64[2] = unbound\nu: f64[3] = [i: 3 | k: 2] sum x[i] - y[k]\noutput u",
    ),
    (
        "join-sums",
        "x: f64[3, 2] = unbound\ny: f64[3, 4] = unbound\np: f64[3] = [i: 3 | k: 2] sum x[i, k]\nq: f64[3] = [i: 3 | l: 4] sum y[i, l]\nu: f64[3] = [i: 3] p[i] + q[i]\noutput u",
    ),
    (
        "join-sums",
        "x: f64[3, 2] = unbound\np: f64[3] = [i: 3 | k: 2] max x[i, k]\nq: f64[3] = [i: 3 | k: 2] max exp(x[i, k])\nu: f64[3] = [i: 3] p[i] + q[i]\noutput u",
    ),
    (
        "join-sums",
        "x: f64[3, 0] = unbound\np: f64[3] = [i: 3 | k: 0] sum x[i, k]\nq: f64[3] = [i: 3 | k: 0] sum exp(x[i, k])\nu: f64[3] = [i: 3] p[i] + q[i]\noutput u",
    ),
    (
        "nested-reductions",
        "x: f64[3, 2] = unbound\np: f64[3] = [i: 3 | k: 2] max x[i, k]\nu: f64[] = [| i: 3] min p[i]\noutput u",
    ),
    (
        "nested-reductions",
        "x: f64[3, 2] = unbound\np: f64[3] = [i: 3 | k: 2] mean x[i, k]\nu: f64[] = [| i: 3] mean p[i]\noutput u",
    ),
    (
        "nested-reductions",
        "x: i64[3, 0] = unbound\np: i64[3] = [i: 3 | k: 0] max x[i, k]\nu: i64[] = [| i: 3] max p[i]\noutput u",
    ),
    (
        "reduce-filter",
        "x: f64[3, 2] = unbound\nc: bool[3, 2] = unbound\nu: f64[3] = [i: 3 | k: 2] sum where(c[i, k], x[i, k], 0.0_f64)\noutput u",
    ),
    (
        "reduce-filter",
        "x: f64[3, 2] = unbound\nc: bool[3] = unbound\nu: f64[3] = [i: 3 | k: 2] mean where(c[i], x[i, k], 0.0_f64)\noutput u",
    ),
    (
        "reduce-filter",
        "x: f64[3, 0] = unbound\nc: bool[3] = unbound\nu: f64[3] = [i: 3 | k: 0] sum where(c[i], x[i, k], 1.0_f64)\noutput u",
    ),
    // 0 * x is not 0, and 0 does not leave a maximum as it is.
    (
        "identity-element",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3] max(x[i] * 0.0_f64, 0.0_f64)\noutput u",
    ),
    (
        "identity-element",
        "x: i64[3] = unbound\nu: i64[3] = [i: 3] max(x[i], -9223372036854775807) + 1\noutput u",
    ),
    // 0 - x is not -0.
    (
        "identity-element",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3] 0.0_f64 - x[i]\noutput u",
    ),
    // 0 * inf is NaN, and inf * 0.
    (
        "fold-constants",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3] x[i] * 1e200_f64 * 1e200_f64\noutput u",
    ),
    (
        "fold-constants",
        "x: f32[3] = unbound\nu: f32[3] = [i: 3] x[i] * 1e-30_f32 * 1e-30_f32\noutput u",
    ),
    (
        "fold-constants",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3] x[i] + 1e308_f64 + 1e308_f64\noutput u",
    ),
    (
        "fold-constants",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3] x[i] * 3.0_f64 / 7.0_f64\noutput u",
    ),
    (
        "fold-constants",
        "x: f64[3] = unbound\ny: f64[3] = unbound\nu: f64[3] = [i: 3] x[i] * 3.0_f64 * y[i]\noutput u",
    ),
    (
        "unused-index",
        "x: f64[3, 2] = unbound\nu: f64[3] = [i: 3 | k: 2] sum x[i, k]\noutput u",
    ),
    (
        "unused-index",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3 | k: 2] prod x[i]\noutput u",
    ),
    (
        "unused-index",
        "x: f64[3] = unbound\nu: f64[3] = [i: 3 | k: 0] sum x[i]\noutput u",
    ),
];

#[test]
fn a_condition_that_fails_bars_the_rule() {
    for (rule, text) in BARRED {
        let logic = rewrite_only(&program(text), &[rule]);
        assert!(
            !logic.explored.fired.contains_key(rule),
            "{rule} fires\n{text}"
        );
    }
    let barred: BTreeSet<&str> = BARRED.iter().map(|(rule, _)| *rule).collect();
    let all: BTreeSet<&str> = rules::logic().iter().map(|row| row.name).collect();
    assert_eq!(barred, all);
}
