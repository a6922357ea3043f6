//! Sums over pairs of points, and the sums for each first point that they become.

use einc_core::search::pairs::each_first;

const INPUTS: &str = "input a: i64[200] = unbound\ninput b: i64[300] = unbound\ninput v: i64[200] = unbound\ninput w: i64[300] = unbound\n";
const OUTPUTS: &str = "output y\noutput a\noutput b\noutput v\noutput w";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(each_first, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn second_points_are_summed_first() {
    becomes(
        "y: i64[] = [| i: 200, j: 300] sum i64(a[i] == b[j])",
        "hidden y.each: i64[200] = [i: 200 | j: 300] sum 1 if a[i] == b[j]\n\
         y: i64[] = [| i: 200] sum y.each[i]",
    );
    becomes(
        "y: i64[] = [| i: 200, j: 300] sum where(and(a[i] + 1 == b[j], and(i < 40, w[j] > 1)), -(v[i] * w[j]) * 3, 0)",
        "hidden y.each: i64[200] = [i: 200 | j: 300] sum w[j] if and(a[i] + 1 == b[j], w[j] > 1)\n\
         y: i64[] = [| i: 200] sum -(v[i] * 3 * y.each[i]) if i < 40",
    );
    becomes(
        "y: i64[3] = [k: 3 | i: 200, j: 300] sum v[i] * k if a[i] * k == b[j]",
        "hidden y.each: i64[3, 200] = [k: 3, i: 200 | j: 300] sum 1 if a[i] * k == b[j]\n\
         y: i64[3] = [k: 3 | i: 200] sum v[i] * k * y.each[k, i]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Few points for a comparison that is none of equals, both points in one factor or side, a place of the result.
        "y: i64[] = [| i: 200, j: 300] sum v[i] if a[i] < b[j]",
        "y: i64[] = [| i: 200, j: 300] sum v[i] + w[j] if a[i] == b[j]",
        "y: i64[] = [| i: 200, j: 300] sum v[i] if a[i] * w[j] == b[j]",
        "y: i64[9] = [k: 9 | i: 200, j: 300] sum v[i] if and(k == v[i], a[i] == b[j])",
    ] {
        becomes(statement, statement);
    }
}
