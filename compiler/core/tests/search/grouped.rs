//! Reductions of groups that carry more than one number.

use einc_core::search::grouped::by_one_number;

const INPUTS: &str = "input x: f64[1100] = unbound\ninput to: i64[1100] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput to";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(by_one_number, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn truths_are_extremes() {
    becomes(
        "y: bool[9] = [i: 9 | e: 1100] any x[e] > 0.5_f64 if to[e] == i",
        "hidden y.most: i32[9] = [i: 9 | e: 1100] max where(x[e] > 0.5_f64, 1_i32, 0_i32) if to[e] == i\n\
         y: bool[9] = [i: 9] y.most[i] > 0_i32",
    );
    becomes(
        "y: bool[9, 2] = [i: 9, k: 2 | e: 1099] all x[e + k] < 0.9_f64 if to[e] == i",
        "hidden y.least: i32[9, 2] = [i: 9, k: 2 | e: 1099] min where(x[e + k] < 0.9_f64, 1_i32, 0_i32) if to[e] == i\n\
         y: bool[9, 2] = [i: 9, k: 2] y.least[i, k] > 0_i32",
    );
}

#[test]
fn the_largest_value_comes_first() {
    becomes(
        "y: f64[9] = [i: 9 | e: 1100] norm x[e] if to[e] == i",
        "hidden y.most: f64[9] = [i: 9 | e: 1100] max abs(x[e]) if to[e] == i\n\
         hidden y.scale: f64[9] = [i: 9] where(and(y.most[i] > 0.0_f64, y.most[i] < inf_f64), y.most[i], 1.0_f64)\n\
         hidden y.rest: f64[9] = [i: 9 | e: 1100] sum let $0 = x[e] / y.scale[to[e]] else 1.0_f64 in $0 * $0 if to[e] == i\n\
         y: f64[9] = [i: 9] y.scale[i] * sqrt(y.rest[i])",
    );
    becomes(
        "y: f64[9] = [i: 9 | e: 1100] logsumexp x[e] if and(to[e] == i, x[e] > 0.1_f64)",
        "hidden y.most: f64[9] = [i: 9 | e: 1100] max x[e] if and(to[e] == i, x[e] > 0.1_f64)\n\
         hidden y.scale: f64[9] = [i: 9] where(and(y.most[i] > -inf_f64, y.most[i] < inf_f64), y.most[i], 0.0_f64)\n\
         hidden y.rest: f64[9] = [i: 9 | e: 1100] sum exp(x[e] - y.scale[to[e]] else 1.0_f64) if and(to[e] == i, x[e] > 0.1_f64)\n\
         y: f64[9] = [i: 9] log(y.rest[i]) + y.scale[i]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Few points; no group; the value depends on the group; a number that is carried alone.
        "y: bool[9] = [i: 9 | e: 50] any x[e] > 0.5_f64 if to[e] == i",
        "y: bool[9] = [i: 9 | e: 1100] any x[e] > 0.5_f64 if to[e] > i",
        "y: f64[9] = [i: 9 | e: 1100] mean x[e] * x[i] if to[e] == i",
        "y: f64[9] = [i: 9 | e: 1100] max x[e] if to[e] == i",
    ] {
        becomes(statement, statement);
    }
}
