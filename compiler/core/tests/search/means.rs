//! Means of what is found by sorting, and the sums that they become.

use einc_core::search::means::as_sums;

const INPUTS: &str =
    "input x: f64[1100] = unbound\ninput v: f64[1100] = unbound\ninput n: f64[2, 1100] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput v\noutput n";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(as_sums, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn means_are_sums() {
    becomes(
        "y: f64[1100] = [i: 1100 | j: 1100] mean f64(x[j] <= v[i])",
        "hidden y.sum: f64[1100] = [i: 1100 | j: 1100] sum f64(x[j] <= v[i])\n\
         y: f64[1100] = [i: 1100] y.sum[i] / 1100.0_f64",
    );
    becomes(
        "y: f64[] = [| i: 1100, j: 1100] mean f64(x[j] > v[i])",
        "hidden y.sum: f64[] = [| i: 1100, j: 1100] sum f64(x[j] > v[i])\n\
         y: f64[] = [] y.sum[] / 1210000.0_f64",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Nothing is compared, few points, points that are left out.
        "y: f64[2] = [i: 2 | j: 1100] mean n[i, j]",
        "y: f64[1100] = [i: 1100 | j: 20] mean f64(x[j] <= v[i])",
        "y: f64[1100] = [i: 1100 | j: 1100] mean f64(x[j] <= v[i]) if j < 900",
    ] {
        becomes(statement, statement);
    }
}
