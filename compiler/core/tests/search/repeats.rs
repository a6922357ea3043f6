//! Values that repeat along an index, and the tables that they become.

use einc_core::search::repeats::once;

const INPUTS: &str = "input x: f64[16, 8, 40] = unbound\ninput w: f64[8, 40] = unbound\n\
    input v: f64[40] = unbound\ninput n: i64[40] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput w\noutput v\noutput n";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(once, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn functions_of_a_few_indices_are_tables() {
    becomes(
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] let $0 = f64(t) * exp(f64(e)) in x[b, t, e] * cos($0) - x[b, t, 39 - e] * sin($0)",
        "hidden y.table: f64[8, 40] = [t: 8, e: 40] sin(f64(t) * exp(f64(e)))\n\
        hidden y.table.1: f64[8, 40] = [t: 8, e: 40] cos(f64(t) * exp(f64(e)))\n\
        y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] x[b, t, e] * y.table.1[t, e] - x[b, t, 39 - e] * y.table[t, e]",
    );
    // Of tensors of the table's own size, and of what a condition leaves.
    becomes(
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] where(e < t, x[b, t, e], exp(w[t, e]))",
        "hidden y.table: f64[8, 40] = [t: 8, e: 40] exp(w[t, e])\n\
        y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] where(e < t, x[b, t, e], y.table[t, e])",
    );
    // What is cheap by itself, but a good part of the statement, and more values than it is made of, but no more than the result.
    becomes(
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] x[b, t, e] * (w[t, e] + v[e])",
        "hidden y.table: f64[8, 40] = [t: 8, e: 40] w[t, e] + v[e]\n\
        y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] x[b, t, e] * y.table[t, e]",
    );
    becomes(
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] x[b, t, e] * exp(v[t] * v[e])",
        "hidden y.table: f64[8, 40] = [t: 8, e: 40] exp(v[t] * v[e])\n\
        y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] x[b, t, e] * y.table[t, e]",
    );
    // In a sum, of what indices say.
    becomes(
        "y: f64[16, 8] = [b: 16, k: 8 | e: 40] sum x[b, 0, e] * cos(f64(k * e))",
        "hidden y.table: f64[8, 40] = [k: 8, e: 40] cos(f64(k * e))\n\
        y: f64[16, 8] = [b: 16, k: 8 | e: 40] sum x[b, 0, e] * y.table[k, e]",
    );
}

#[test]
fn other_values_stay_where_they_are() {
    for statement in [
        // As many values as points, or hardly fewer.
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] exp(x[b, t, e])",
        "y: f64[7, 40, 40] = [b: 7, t: 40, e: 40] x[b, 0, e] * exp(f64(t * e))",
        // A value that stays the same along the innermost loop.
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] x[b, t, e] * exp(f64(t))",
        // What is cheap beside the rest, and a factor of a product of matrices.
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] exp(exp(exp(x[b, t, e]))) * (w[t, e] + v[e])",
        "y: f64[16, 8] = [b: 16, t: 8 | e: 40] sum x[b, 0, e] * exp(w[t, e])",
        // A place that may be outside, and few points.
        "y: f64[16, 8, 40] = [b: 16, t: 8, e: 40] where(e > 0, x[b, t, e] * exp(v[e - 1]), x[b, t, e])",
        "y: f64[8, 40] = [t: 8, e: 40] w[t, e] * exp(v[e])",
    ] {
        becomes(statement, statement);
    }
}
