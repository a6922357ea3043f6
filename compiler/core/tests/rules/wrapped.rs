//! Reads around the end of a dimension against the affine reads that they become.
//!
//! Must not know placements.
//!
//! ```text
//! z = x[rem(i + 1, 6)]   and   z = where(i + 1 < 6, x[i + 1] else 0, x[i + 1 - 6] else 0):   the same values
//! ```

use crate::support::{self, Kind, compiled, difference};
use einc_core::einsum::Program;
use einc_core::einsum::parse::parse;
use einc_core::pipeline::{Options, compile};
use einc_core::rules::wrapped::expand;

const OPERANDS: &str = "input x: f32[6] = unbound\ninput u: f32[6, 5] = unbound\n\
    input n: i64[6] = unbound\ninput b: bool[5] = unbound\n";

/// A program over the operands without reads around an end; nothing if it has none.
fn expanded(statements: &str) -> (Program, Option<Program>) {
    support::expanded(&format!("{OPERANDS}{statements}"), expand)
}

#[test]
fn a_read_becomes_one_on_either_side() {
    let (_, found) = expanded(
        "z: f32[6] = [i: 6] x[rem(i + 1, 6)]\n\
         y: f32[6, 5] = [i: 6, j: 5] u[rem(i + 5, 6), rem(j - 1, 5)]\noutput z\noutput y",
    );
    insta::assert_snapshot!(found.unwrap());
}

#[test]
fn the_values_are_the_same() {
    for statements in [
        "z: f32[6] = [i: 6] x[rem(i + 1, 6)]\noutput z",
        "z: f32[6] = [i: 6] x[rem(i - 4, 6)] + x[rem(2 - i, 6)]\noutput z",
        "z: f32[9] = [i: 9] x[rem(i, 6)]\noutput z",
        "z: f32[6, 5] = [i: 6, j: 5] u[rem(i + 1, 6), rem(j + 4, 5)] - u[i, rem(j + 1, 5)]\noutput z",
        "z: f32[5] = [j: 5 | i: 6] sum u[rem(i + j, 6), rem(i + 1, 5)] if i > 1\noutput z",
        "z: i64[6] = [i: 6] n[rem(i + 13, 6)]\noutput z",
        "z: f32[5] = [j: 5] where(b[rem(j + 2, 5)], 1.0, 2.0)\noutput z",
        // It passes two ends; it stays at one end, at both, or somewhere else.
        "z: f32[18] = [i: 18] x[rem(i, 6)]\noutput z",
        "z: f32[6] = [i: 6] x[max(i - 1, 0)] + x[min(i + 2, 5)]\noutput z",
        "z: f32[6, 5] = [i: 6, j: 5] u[min(max(i - 2, 0), 5), rem(j + 1, 5)]\noutput z",
        "z: f32[9] = [i: 9 | r: 3] sum x[min(max(i + r - 2, 0), 5)]\noutput z",
        "z: f32[6] = [i: 6] x[max(2 * i - 6, 3)]\noutput z",
        // Something else is read outside of the other dimension.
        "z: f32[6, 5] = [i: 6, j: 5] u[rem(i + 1, 6), j + 1] else 3.0\noutput z",
    ] {
        let (program, found) = expanded(statements);
        let difference = difference(&program, &found.unwrap(), 1, Kind::Finite, true);
        assert_eq!(difference, None, "{statements}");
    }
}

#[test]
fn other_reads_stay() {
    for statements in [
        // It goes around more than twice, or ends outside.
        "z: f32[19] = [i: 19] x[rem(i + 6, 6)]\noutput z",
        "z: f32[9] = [i: 9] x[max(i - 1, 0)] else 2.0\noutput z",
        // It never goes around.
        "z: f32[4] = [i: 4] x[rem(i + 1, 6)]\noutput z",
        // Another dimension is longer than what goes around.
        "z: f32[6] = [i: 6] x[rem(i + 1, 5)]\noutput z",
        // Data say where.
        "z: f32[6] = [i: 6] x[rem(n[i] + 1, 6)]\noutput z",
        // A position outside of the other dimension stops the run.
        "z: f32[6] = [i: 6] u[rem(i + 1, 6), n[i]]\noutput z",
    ] {
        assert_eq!(expanded(statements).1, None, "{statements}");
    }
}

/// Of a periodic stencil only the edges of neighbours travel, the first and the last site's among them.
#[test]
fn edges_travel() {
    let program = "input u: f32[4096, 4096] = unbound\n\
        z: f32[4096, 4096] = [i: 4096, j: 4096] u[rem(i + 1, 4096), j] + u[rem(i + 4095, 4096), j] \
        + u[i, rem(j + 1, 4096)] + u[i, rem(j + 4095, 4096)] + u[i, j]\noutput z";
    for sites in [2, 3, 4, 5] {
        let found = compiled(program, sites);
        assert_eq!(found.chosen.rewrites[0].rule, "wrapped-read");
        assert!(
            found.cost.transfer <= u128::from(2 * 4096 * sites),
            "{}",
            found.plan
        );
    }
    assert!(compiled(program, 1).chosen.rewrites.is_empty());
    let mut options = Options::new(4);
    options.criteria.disabled_rules = vec!["wrapped-read".into()];
    let whole = compile(&parse(program).unwrap(), &options, &|| false).unwrap();
    assert!(whole.cost.transfer > 1_000_000, "{}", whole.plan);
}
