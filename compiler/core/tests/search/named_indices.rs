//! Reduced indices that data name, and what is read there instead.

use einc_core::search::named_indices::read_there;

const INPUTS: &str = "input from: i64[90] = unbound\ninput to: i64[90] = unbound\ninput m: f64[60, 3] = unbound\ninput w: f64[90] = unbound\n";
const OUTPUTS: &str = "output y\noutput from\noutput to\noutput m\noutput w";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(read_there, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn named_rows_are_read() {
    becomes(
        "y: f64[50, 3] = [i: 50, d: 3 | v: 60, e: 90] sum m[v, d] * w[e] if and(to[e] == v, from[e] == i)",
        "y: f64[50, 3] = [i: 50, d: 3 | e: 90] sum m[to[e], d] else 0.0_f64 * w[e] if and(and(to[e] >= 0, to[e] < 60), from[e] == i)",
    );
    becomes(
        "y: f64[50] = [i: 50 | v: 60, e: 90, d: 3] max m[v, d] if where(v == to[e], from[e] == i, false)",
        "y: f64[50] = [i: 50 | e: 90, d: 3] max m[to[e], d] else 0.0_f64 if and(and(to[e] >= 0, to[e] < 60), from[e] == i)",
    );
    // Two of them, one after the other.
    becomes(
        "y: f64[] = [| v: 60, d: 3, e: 90] sum m[v, d] if and(to[e] == v, from[e] == d)",
        "y: f64[] = [| e: 90] sum m[to[e], from[e]] else 0.0_f64 if and(and(and(from[e] >= 0, from[e] < 3), to[e] >= 0), to[e] < 60)",
    );
    // Elements that are their own places stop the run outside.
    becomes(
        "hidden place: i64[60] = [v: 60] v\n\
         y: f64[50] = [i: 50 | v: 60, e: 90] sum m[v, 1] if where(place[to[e]] == v, from[e] == i, false)",
        "hidden place: i64[60] = [v: 60] v\n\
         y: f64[50] = [i: 50 | e: 90] sum m[place[to[e]], 1] else 0.0_f64 if from[e] == i",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Nothing else is reduced; an output index; a number of positions; a place that follows from the indices.
        "y: f64[90] = [e: 90 | v: 60] sum m[v, 1] if to[e] == v",
        "y: f64[60] = [v: 60 | e: 90, d: 3] sum m[v, d] if to[e] == v",
        "y: f64[] = [| v: 60, e: 90] mean m[v, 1] if to[e] == v",
        "y: f64[] = [| v: 60, e: 90] sum m[v, 1] if e - 3 == v",
    ] {
        becomes(statement, statement);
    }
    // A read that stops the run outside.
    let statement = "y: f64[] = [| v: 60, e: 90] sum m[v, from[e]] if to[e] == v";
    crate::becomes(read_there, (INPUTS, OUTPUTS), statement, statement);
}
