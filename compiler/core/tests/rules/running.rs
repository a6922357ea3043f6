//! Running reductions against the blocks that they become.
//!
//! Must not know placements.
//!
//! ```text
//! y[i] = sum[j <= i] x[j]   and   y[i] = (sum of the blocks before i's) + (sum within i's block):   the same values
//! ```

use crate::support::{self, Kind, compiled, difference};
use einc_core::einsum::Program;
use einc_core::einsum::parse::parse;
use einc_core::pipeline::{Options, compile};
use einc_core::rules::running::expand;

const OPERANDS: &str = "input x: f64[70] = unbound\ninput u: f64[3, 70, 2] = unbound\n\
    input n: i64[70] = unbound\ninput w: f64[2] = unbound\n";

/// A program over the operands with its running reductions by blocks; nothing if it has none.
fn expanded(statements: &str) -> (Program, Option<Program>) {
    support::expanded(&format!("{OPERANDS}{statements}"), expand)
}

#[test]
fn a_running_sum_is_one_of_blocks() {
    let (_, found) = expanded(
        "y: f64[70] = [i: 70 | j: 70] sum x[j] if j <= i\n\
         z: f64[3, 70] = [b: 3, i: 70 | k: 2, j: 70] max u[b, j, k] * w[k] if and(j > i, n[j] > 1)\n\
         output y\noutput z",
    );
    insta::assert_snapshot!(found.unwrap());
}

#[test]
fn the_values_are_the_same() {
    for statements in [
        "y: f64[70] = [i: 70 | j: 70] sum x[j] if j <= i\noutput y",
        "y: f64[70] = [i: 70 | j: 70] sum x[j] * x[j] if j < i\noutput y",
        "y: f64[70] = [i: 70 | j: 70] max x[j] if i <= j\noutput y",
        "y: f64[70] = [i: 70 | j: 70] min x[j] if i < j\noutput y",
        "y: f64[70] = [i: 70 | j: 70] sum abs(x[j]) if and(j <= i, n[j] > 2)\noutput y",
        "y: i64[70] = [i: 70 | j: 70] sum n[j] - j if j <= i\noutput y",
        "y: i64[70] = [i: 70 | j: 70] prod n[j] - 2 if j <= i\noutput y",
        "y: f64[70, 3] = [i: 70, b: 3 | k: 2, j: 70] sum u[b, j, k] * w[k] if i <= j\noutput y",
        "y: f64[2, 3, 70] = [k: 2, b: 3, q: 70 | r: 70] sum u[b, r, k] if r < q\noutput y",
        "y: f64[65] = [i: 65 | j: 65] sum x[j + 5] if j <= i\noutput y",
    ] {
        let (program, found) = expanded(statements);
        let difference = difference(&program, &found.unwrap(), 1, Kind::Finite, true);
        assert_eq!(difference, None, "{statements}");
    }
}

#[test]
fn other_reductions_stay() {
    for statements in [
        // Short, or of unlike lengths.
        "y: f64[60] = [i: 60 | j: 60] sum x[j] if j <= i\noutput y",
        "y: f64[70] = [i: 70 | j: 64] sum x[j] if j <= i\noutput y",
        // Its terms are of the result, too.
        "y: f64[70] = [i: 70 | j: 70] sum x[j] * x[i] if j <= i\noutput y",
        // A read may be outside.
        "y: f64[70] = [i: 70 | j: 70] sum x[n[j]] if j <= i\noutput y",
        // The place of an extreme is no extreme.
        "y: i64[70] = [i: 70 | j: 70] argmax x[j] if j <= i\noutput y",
        "y: f64[70] = [i: 70] x[i]\noutput y",
    ] {
        assert_eq!(expanded(statements).1, None, "{statements}");
    }
}

/// Of a running sum only what is at the seams travels, and a total for each block.
#[test]
fn totals_travel() {
    let program = "input x: f32[1000003] = unbound\n\
        y: f32[1000003] = [i: 1000003 | j: 1000003] sum x[j] if j <= i\noutput y";
    for sites in [2, 3, 4, 5, 8] {
        let found = compiled(program, sites);
        assert_eq!(found.chosen.rewrites[0].rule, "running-by-blocks");
        let block = 1000;
        assert!(
            found.cost.transfer <= u128::from(6 * block * sites),
            "{}",
            found.plan
        );
    }
    assert!(compiled(program, 1).chosen.rewrites.is_empty());
    let mut options = Options::new(4);
    options.criteria.disabled_rules = vec!["running-by-blocks".into()];
    let whole = compile(&parse(program).unwrap(), &options, &|| false).unwrap();
    assert!(whole.cost.transfer > 1_000_000, "{}", whole.plan);
}
