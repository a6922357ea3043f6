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
fn means_of_products_and_running_means_are_sums() {
    becomes(
        "y: f64[2, 2] = [i: 2, j: 2 | k: 1100] mean n[i, k] * n[j, k]",
        "hidden y.sum: f64[2, 2] = [i: 2, j: 2 | k: 1100] sum n[i, k] * n[j, k]\n\
         y: f64[2, 2] = [i: 2, j: 2] y.sum[i, j] / 1100.0_f64",
    );
    becomes(
        "y: f64[1100] = [i: 1100 | j: 1100] mean x[j] if j <= i",
        "hidden y.sum: f64[1100] = [i: 1100 | j: 1100] sum x[j] if j <= i\n\
         hidden y.count: f64[1100] = [i: 1100 | j: 1100] sum 1.0_f64 if j <= i\n\
         y: f64[1100] = [i: 1100] y.sum[i] / y.count[i]",
    );
}

#[test]
fn norms_without_squares_are_sums_and_largest_values() {
    becomes(
        "y: f64[2] = [i: 2 | j: 1100] norm1 n[i, j] - x[j]",
        "y: f64[2] = [i: 2 | j: 1100] sum abs(n[i, j] - x[j])",
    );
    becomes(
        "y: f64[2] = [i: 2 | j: 1100] norminf n[i, j] - x[j]",
        "y: f64[2] = [i: 2 | j: 1100] max abs(n[i, j] - x[j])",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // One tensor, points that are left out, no point perhaps.
        "y: f64[2] = [i: 2 | j: 1100] mean n[i, j]",
        "y: f64[2] = [i: 2 | j: 1100] norminf n[i, j] if n[i, j] > 0.0_f64",
        "y: f64[2] = [i: 2 | j: 1100] mean n[i, j] if x[j] > 0.0_f64",
        "y: f64[1100] = [i: 1100 | j: 1100] mean f64(x[j] <= v[i]) if j < 900",
    ] {
        becomes(statement, statement);
    }
}

#[test]
fn means_of_groups_are_sums_over_counts() {
    becomes(
        "y: f64[9] = [i: 9 | j: 1100] mean x[j] if i64(v[j]) == i",
        "hidden y.sum: f64[9] = [i: 9 | j: 1100] sum x[j] if i64(v[j]) == i\n\
         hidden y.count: f64[9] = [i: 9 | j: 1100] sum 1.0_f64 if i64(v[j]) == i\n\
         y: f64[9] = [i: 9] y.sum[i] / y.count[i]",
    );
}
