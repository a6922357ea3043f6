//! Named conditions, and the reductions in which they are written.

use einc_core::search::named_conditions::written;

const INPUTS: &str = "input k: i64[900] = unbound\ninput x: f64[900] = unbound\n";
const OUTPUTS: &str = "output y\noutput k\noutput x";

/// Asserts what a pass makes of a condition and of the statement that reads it, and that its values stay.
#[track_caller]
fn becomes(condition: &str, statement: &str, expected: &str) {
    let statement = format!("{condition}\n{statement}");
    crate::keeps(written, (INPUTS, OUTPUTS), &statement, expected);
}

#[test]
fn conditions_of_groups_are_written_where_they_are_read() {
    becomes(
        "hidden M: bool[900, 70] = [n: 900, g: 70] k[n] == g",
        "y: f64[70] = [g: 70 | n: 900] sum where(M[n, g], x[n], 0.0_f64)",
        "y: f64[70] = [g: 70 | n: 900] sum where(k[n] == g, x[n], 0.0_f64)",
    );
    becomes(
        "hidden M: f64[900, 70] = [n: 900, g: 70] f64(k[n] == g)",
        "y: f64[70, 70] = [g: 70, h: 70 | n: 900] sum M[n, g] * M[n, h]",
        "y: f64[70, 70] = [g: 70, h: 70 | n: 900] sum f64(k[n] == g) * f64(k[n] == h)",
    );
    becomes(
        "hidden M: f64[900, 70] = [n: 900, g: 70] where(k[n] == g, 1.0_f64, 0.0_f64)",
        "y: f64[70] = [g: 70 | n: 900] sum M[n, g] * x[n]",
        "y: f64[70] = [g: 70 | n: 900] sum where(k[n] == g, 1.0_f64, 0.0_f64) * x[n]",
    );
}

#[test]
fn comparisons_are_written_where_they_are_read() {
    becomes(
        "hidden M: bool[900, 900] = [i: 900, j: 900] j <= i",
        "y: f64[900] = [i: 900 | j: 900] sum where(M[i, j], x[j], 0.0_f64)",
        "y: f64[900] = [i: 900 | j: 900] sum where(j <= i, x[j], 0.0_f64)",
    );
}

#[test]
fn others_stay() {
    for (condition, statement) in [
        // Truths of data, few groups, a place that data say.
        (
            "hidden M: bool[900, 70] = [n: 900, g: 70] x[n] > f64(g)",
            "y: f64[70] = [g: 70 | n: 900] sum where(M[n, g], x[n], 0.0_f64)",
        ),
        (
            "hidden M: f64[900, 7] = [n: 900, g: 7] f64(k[n] == g)",
            "y: f64[7] = [g: 7 | n: 900] sum M[n, g] * x[n]",
        ),
        (
            "hidden M: bool[900, 70] = [n: 900, g: 70] k[n] == g",
            "y: f64[70] = [g: 70 | n: 900] sum where(M[k[n], g], x[n], 0.0_f64)",
        ),
    ] {
        becomes(condition, statement, &format!("{condition}\n{statement}"));
    }
}
