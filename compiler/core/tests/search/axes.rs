//! Running reductions along several axes, and the statements that they become.

use einc_core::search::axes::by_axis;

const INPUTS: &str = "input A: i64[20, 15] = unbound\ninput B: i64[9, 8, 7] = unbound\n";
const OUTPUTS: &str = "output y\noutput A\noutput B";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(by_axis, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn each_axis_is_a_statement() {
    becomes(
        "y: i64[20, 15] = [i: 20, j: 15 | p: 20, q: 15] sum A[p, q] if and(p <= i, q <= j)",
        "hidden y.axis: i64[20, 15] = [p: 20, j: 15 | q: 15] sum A[p, q] if q <= j\n\
         y: i64[20, 15] = [i: 20, j: 15 | p: 20] sum y.axis[p, j] if p <= i",
    );
    becomes(
        "y: i64[20, 15] = [i: 20, j: 15 | p: 20, q: 15] max A[p, q] if and(q > j, and(p < i, A[p, q] != 3))",
        "hidden y.axis: i64[20, 15] = [i: 20, q: 15 | p: 20] max A[p, q] if and(p < i, A[p, q] != 3)\n\
         y: i64[20, 15] = [i: 20, j: 15 | q: 15] max y.axis[i, q] if q > j",
    );
    becomes(
        "y: i64[9, 8, 7] = [i: 9, j: 8, k: 7 | p: 9, q: 8, r: 7] sum B[p, q, r] if and(p <= i, and(q <= j, r <= k))",
        "hidden y.axis: i64[9, 8, 7] = [p: 9, q: 8, k: 7 | r: 7] sum B[p, q, r] if r <= k\n\
         hidden y.axis.1: i64[9, 8, 7] = [p: 9, j: 8, k: 7 | q: 8] sum y.axis[p, q, k] if q <= j\n\
         y: i64[9, 8, 7] = [i: 9, j: 8, k: 7 | p: 9] sum y.axis.1[p, j, k] if p <= i",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // One axis, places that two results share, a tensor in between that is larger, a choice.
        "y: i64[20] = [i: 20 | p: 20, q: 15] sum A[p, q] if p <= i",
        "y: i64[20, 15] = [i: 20, j: 15 | p: 20, q: 15] sum A[p, q] if and(p <= i, q <= i + j)",
        "y: i64[3, 15] = [i: 3, j: 15 | p: 20, q: 15] sum A[p, q] if and(p <= i, q <= j)",
    ] {
        becomes(statement, statement);
    }
}
