//! Look-ups at the owner against the reads that they replace.
//!
//! Must not know placements.
//!
//! ```text
//! z = x[tok[n]]   and   z = max[d] x[d] if d == within(tok[n], 6):   the same values, and the same stop outside
//! ```

use crate::support::{self, compiled};
use ein_plan::{DType, Scalar};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Program, Tensor};
use einc_core::rules::lookup::expand;

const OPERANDS: &str = "input x: f32[6, 4] = unbound\ninput c: f32[9] = unbound\n\
    input tok: i64[5] = unbound\ninput col: i64[3] = unbound\n";

/// A program over the operands with all look-ups at the owner; nothing if there is none.
fn expanded(statements: &str) -> (Program, Option<Program>) {
    support::expanded(&format!("{OPERANDS}{statements}"), expand)
}

fn run(program: &Program, largest: i64) -> Result<Vec<Values>, String> {
    let values = |tensor: &Tensor| {
        let count: u64 = tensor.shape.iter().product();
        let number = |at: u64| match tensor.dtype {
            DType::I64 => Scalar::Int((at as i64 * 7 + 2) % (largest + 1)),
            _ => Scalar::Float((at as f64 - 7.0) / 4.0),
        };
        Values {
            shape: tensor.shape.clone(),
            data: (0..count).map(number).collect(),
        }
    };
    let found = interpret(program, &|tensor| values(tensor));
    found.map_err(|fault| format!("{fault:?}"))
}

#[test]
fn reads_become_reductions() {
    let (_, found) = expanded(
        "z: f32[5] = [n: 5] c[tok[n]] + 1.0\n\
         y: f32[3, 4] = [m: 3, h: 4 | n: 5] sum x[tok[n], h] * x[col[m], h]\n\
         w: f32[3] = [m: 3] x[col[m], tok[m]]\noutput z\noutput y\noutput w",
    );
    insta::assert_snapshot!(found.unwrap());
}

#[test]
fn the_values_are_the_same_and_so_is_the_stop() {
    for statements in [
        "z: f32[5] = [n: 5] c[tok[n]] + 1.0\noutput z",
        "z: f32[3, 4] = [m: 3, h: 4 | n: 5] sum x[tok[n], h] * x[col[m], h]\noutput z",
        "z: f32[3] = [m: 3] x[col[m], tok[m]]\noutput z",
        "z: f32[3, 3] = [m: 3, h: 3] x[col[m], h + 1]\noutput z",
        "z: f32[3] = [m: 3] c[tok[col[m]] + 1]\noutput z",
    ] {
        let (program, found) = expanded(statements);
        let found = found.unwrap();
        assert_eq!(run(&program, 2), run(&found, 2), "{statements}");
        // The last position that fits, and one too many.
        assert!(run(&program, 40).is_err() && run(&found, 40).is_err());
    }
}

#[test]
fn reads_under_conditions_are_left_out_where_they_were() {
    for statements in [
        // Where a branch is taken, or another one; where a guard holds; where something is inside.
        "z: f32[5] = [n: 5] where(n < 2, c[tok[n]], 0.0)\noutput z",
        "z: f32[5] = [n: 5] where(tok[n] > 8, 0.0, c[tok[n]])\noutput z",
        "z: f32[5] = [n: 5] where(n < 4, 1.0, c[tok[n]])\noutput z",
        "z: f32[] = [ | n: 5] sum c[tok[n]] if n < 2\noutput z",
        "z: f32[5] = [n: 5] c[tok[n]] else 0.5\noutput z",
        // Under a condition that may stop the run by itself.
        "z: f32[5] = [n: 5] where(n < 2, where(c[tok[n]] > 0.0, x[tok[n], 0], 1.0), 0.0) + x[n, 1]\noutput z",
        "z: f32[3, 4] = [m: 3, h: 4] x[tok[m] - 1, h + 1] else c[m]\noutput z",
        "z: f32[5] = [n: 5] where(tok[n] < 20, c[tok[n] - 12] else 0.5, c[tok[n] - 31])\noutput z",
    ] {
        let (program, found) = expanded(statements);
        let found = found.unwrap();
        for last in [2, 8, 9, 40] {
            let runs = [&program, &found].map(|program| run(program, last).ok());
            assert_eq!(runs[0], runs[1], "{statements} {last}");
        }
    }
}

#[test]
fn what_may_not_take_place_stays() {
    for statements in [
        // Where one of two conditions holds.
        "z: f32[5] = [n: 5] let $0 = c[tok[n]] in where(n < 2, $0, where(n > 3, $0 + 1.0, 0.0))\noutput z",
        // As many elements as the table has.
        "z: f32[5, 9] = [n: 5, m: 9] c[rem(tok[n] + m, 9)]\noutput z",
    ] {
        assert_eq!(expanded(statements).1, None, "{statements}");
    }
}

#[test]
fn few_rows_of_a_large_table_travel() {
    let program = "input x: f32[100000000] = unbound\ninput tok: i64[64] = unbound\n\
        z: f32[64] = [n: 64] x[tok[n]]\noutput z";
    for sites in [2, 3, 4, 5, 64] {
        let found = compiled(program, sites);
        // The positions go to everybody, and each site's addends to where they are added up.
        assert!(
            found.cost.transfer <= u128::from(2 * 64 * sites),
            "{}",
            found.plan
        );
        assert_eq!(found.chosen.rewrites[0].rule, "lookup-at-owner");
        let loops = ein_plan::print::WithLoops(&found.plan).to_string();
        assert!(loops.contains("lookup [d0]"), "{loops}");
    }
    // One site has all rows, and reads them.
    let alone = compiled(program, 1);
    assert!(alone.chosen.rewrites.is_empty());
    // Of few rows and many reads, the table moves.
    let small = program.replace("100000000", "100");
    assert!(compiled(&small, 4).chosen.rewrites.is_empty());
}

/// The gradient of an embedding beside a product: the product is cut, the scatter's work is what it adds up.
#[test]
fn a_scatter_leaves_products_their_sites() {
    let program = "input X: f32[1000, 64] = unbound\ninput tok: i64[1000] = unbound\n\
        input A: f32[256, 256] = unbound\ninput B: f32[256, 256] = unbound\n\
        G: f32[100000, 64] = [v: 100000, d: 64 | t: 1000] sum X[t, d] if v == tok[t]\n\
        C: f32[256, 256] = [i: 256, j: 256 | k: 256] sum A[i, k] * B[k, j]\noutput G\noutput C";
    let found = compiled(program, 4);
    let work = ein_plan::work::of_step;
    let steps = found.plan.steps.iter();
    let most: u64 = steps.map(|step| work(&found.plan, step)).sum();
    // Of 33,554,432 and 64,000 operations a quarter, and at most a quarter more.
    assert!(most <= 33_618_432 / 4 * 5 / 4, "{most}: {}", found.plan);
}

/// The loss of a classifier looks up one class of each row. Where the classes are cut, their owners look: what moves is the rows of the
/// input, and a few numbers of each row.
#[test]
fn classes_stay_cut_under_their_loss() {
    let program = "input X: f32[512, 100] = unbound\ninput W: f32[100, 67001] = unbound\ninput y: i64[512] = unbound\n\
        z: f32[512, 67001] = [n: 512, c: 67001 | h: 100] sum X[n, h] * W[h, c]\n\
        total: f32[512] = [n: 512 | c: 67001] sum exp(z[n, c])\n\
        loss: f32[] = [ | n: 512] sum log(total[n]) - z[n, y[n]]\n\
        dz: f32[512, 67001] = [n: 512, c: 67001] exp(z[n, c]) / total[n] - where(c == y[n], 1.0, 0.0)\n\
        dW: f32[100, 67001] = [h: 100, c: 67001 | n: 512] sum X[n, h] * dz[n, c]\noutput loss\noutput dW";
    for sites in [2, 4, 5] {
        let found = compiled(program, sites);
        assert!(
            found.cost.transfer <= u128::from(sites * (512 * 100 + 8 * 512)),
            "{}",
            found.plan
        );
    }
}
