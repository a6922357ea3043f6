//! Sums of products with a truth, and what they become.

use einc_core::search::one_hot::chosen;

const INPUTS: &str = "input k: i64[900] = unbound\ninput x: f64[900] = unbound\ninput X: f64[900, 5] = unbound\ninput m: f64[70, 5] = unbound\n";
const OUTPUTS: &str = "output y\noutput k\noutput x\noutput X\noutput m";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(chosen, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn points_of_other_groups_are_passed_over() {
    becomes(
        "y: f64[70] = [g: 70 | n: 900] sum f64(k[n] == g) * x[n]",
        "hidden y.own: f64[70] = [g: 70 | n: 900] sum where(k[n] == g, x[n], 0.0_f64)\n\
         hidden y.odd_own: i64[70] = [g: 70 | n: 900] sum where(k[n] == g, i64(not(abs(x[n]) < inf_f64)), 0)\n\
         hidden y.odd: i64[] = [| n: 900] sum i64(not(abs(x[n]) < inf_f64))\n\
         y: f64[70] = [g: 70] where(y.odd_own[g] < y.odd[], nan_f64, y.own[g])",
    );
    becomes(
        "y: f64[70, 5] = [g: 70, d: 5 | n: 900] sum X[n, d] * (where(k[n] == g, x[n], 0.0_f64) * x[n])",
        "hidden y.own: f64[70, 5] = [g: 70, d: 5 | n: 900] sum where(k[n] == g, X[n, d] * (x[n] * x[n]), 0.0_f64)\n\
         hidden y.odd_own: i64[70, 5] = [g: 70, d: 5 | n: 900] sum where(k[n] == g, i64(not(and(abs(x[n]) < inf_f64, abs(X[n, d]) < inf_f64))), 0)\n\
         hidden y.odd: i64[5] = [d: 5 | n: 900] sum i64(not(and(abs(x[n]) < inf_f64, abs(X[n, d]) < inf_f64)))\n\
         y: f64[70, 5] = [g: 70, d: 5] where(y.odd_own[g, d] < y.odd[d], nan_f64, y.own[g, d])",
    );
    becomes(
        "y: f64[70] = [g: 70 | n: 900] mean f64(k[n] == g) * x[n]",
        "hidden y.own: f64[70] = [g: 70 | n: 900] mean where(k[n] == g, x[n], 0.0_f64)\n\
         hidden y.odd_own: i64[70] = [g: 70 | n: 900] sum where(k[n] == g, i64(not(abs(x[n]) < inf_f64)), 0)\n\
         hidden y.odd: i64[] = [| n: 900] sum i64(not(abs(x[n]) < inf_f64))\n\
         y: f64[70] = [g: 70] where(y.odd_own[g] < y.odd[], nan_f64, y.own[g])",
    );
}

#[test]
fn what_is_the_same_for_all_points_stands_outside() {
    // Rounding differs.
    crate::becomes(
        chosen,
        (INPUTS, OUTPUTS),
        "y: f64[70, 5] = [g: 70, d: 5 | n: 900] sum f64(k[n] == g) * x[n] / m[g, d] * m[0, d]",
        "hidden y.own: f64[70, 5] = [g: 70, d: 5 | n: 900] sum where(k[n] == g, x[n], 0.0_f64)\n\
         hidden y.odd_own: i64[70, 5] = [g: 70, d: 5 | n: 900] sum where(k[n] == g, i64(not(abs(x[n]) < inf_f64)), 0)\n\
         hidden y.odd: i64[] = [| n: 900] sum i64(not(abs(x[n]) < inf_f64))\n\
         y: f64[70, 5] = [g: 70, d: 5] where(y.odd_own[g, d] < y.odd[], nan_f64, y.own[g, d]) / m[g, d] * m[0, d]",
    );
}

#[test]
fn rows_that_data_name_are_read() {
    becomes(
        "y: f64[900, 5] = [n: 900, d: 5 | g: 70] sum f64(k[n] == g) * m[g, d]",
        "hidden y.own: f64[900, 5] = [n: 900, d: 5 | g: 70] sum where(k[n] == g, m[g, d], 0.0_f64)\n\
         hidden y.odd_own: i64[900, 5] = [n: 900, d: 5 | g: 70] sum where(k[n] == g, i64(not(abs(m[g, d]) < inf_f64)), 0)\n\
         hidden y.odd: i64[5] = [d: 5 | g: 70] sum i64(not(abs(m[g, d]) < inf_f64))\n\
         y: f64[900, 5] = [n: 900, d: 5] where(y.odd_own[n, d] < y.odd[d], nan_f64, y.own[n, d])",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // No group, few groups, a factor that is finite in any case, factors of each group and point, a place that may be none.
        "y: f64[70] = [g: 70 | n: 900] sum f64(x[n] > 0.0_f64) * x[n]",
        "y: f64[7] = [g: 7 | n: 900] sum f64(k[n] == g) * x[n]",
        "y: f64[70] = [g: 70 | n: 900] sum f64(k[n] == g) * f64(k[n])",
        "y: f64[70, 5] = [g: 70, d: 5 | n: 900] sum f64(k[n] == g) * (X[n, d] - m[g, d])",
        "y: f64[70] = [g: 70 | n: 900] sum f64(k[n] == g) * x[k[n]]",
    ] {
        becomes(statement, statement);
    }
}
