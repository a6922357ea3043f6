//! Sums of all points between two values, and the difference of two that they become.

use einc_core::search::between::from_below;

const INPUTS: &str =
    "input x: f64[1100] = unbound\ninput v: f64[1101] = unbound\ninput n: i64[2, 1100] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput v\noutput n";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(from_below, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn whole_sums_are_differences() {
    becomes(
        "y: i64[1100] = [i: 1100 | j: 1100] sum i64(and(x[j] >= v[i], x[j] < v[i + 1]))",
        "hidden y.upper: i64[1100] = [i: 1100 | j: 1100] sum 1 if x[j] < v[i + 1]\n\
         hidden y.lower: i64[1100] = [i: 1100 | j: 1100] sum 1 if x[j] < v[i]\n\
         y: i64[1100] = [i: 1100] where(v[i] <= v[i + 1], y.upper[i] - y.lower[i], 0)",
    );
    becomes(
        "y: i64[2, 1100] = [b: 2, i: 1100 | j: 1100] sum where(and(v[i] < x[j], and(x[j] < v[i + 1], n[b, j] > 0)), n[b, j], 0)",
        "hidden y.upper: i64[2, 1100] = [b: 2, i: 1100 | j: 1100] sum n[b, j] if and(n[b, j] > 0, x[j] < v[i + 1])\n\
         hidden y.lower: i64[2, 1100] = [b: 2, i: 1100 | j: 1100] sum n[b, j] if and(n[b, j] > 0, x[j] <= v[i])\n\
         y: i64[2, 1100] = [b: 2, i: 1100] where(v[i] < v[i + 1], y.upper[b, i] - y.lower[b, i], 0)",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // A difference of large sums has not the digits of a small one.
        "y: f64[1100] = [i: 1100 | j: 1100] sum x[j] if and(x[j] >= v[i], x[j] < v[i + 1])",
        // Few points are looked at one by one.
        "y: i64[1100] = [i: 1100 | j: 20] sum i64(and(x[j] >= v[i], x[j] < v[i + 1]))",
        // Both bound a point from below.
        "y: i64[1100] = [i: 1100 | j: 1100] sum i64(and(x[j] >= v[i], x[j] > v[i + 1]))",
    ] {
        becomes(statement, statement);
    }
}
