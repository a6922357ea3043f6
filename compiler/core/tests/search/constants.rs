//! Reads of tensors that hold one number everywhere.

use einc_core::search::constants::read;

const INPUTS: &str =
    "input x: f64[9] = unbound\ninput t: i64[9] = unbound\ninput one: f64[9] = full(1.0)\n";
const OUTPUTS: &str = "output y\noutput x\noutput t\noutput one";
const SEED: &str = "hidden seed: f64[9] = full(1.0)\n";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(read, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn numbers_stand_where_they_are_read() {
    becomes(
        &format!("{SEED}y: f64[9] = [n: 9] seed[n] * x[n]"),
        "y: f64[9] = [n: 9] 1.0_f64 * x[n]",
    );
    becomes(
        "hidden third: f32[9] = full(0.1)\ny: f32[8] = [n: 8] third[n + 1]",
        "y: f32[8] = [n: 8] 0.1",
    );
}

#[test]
fn others_are_read() {
    // A user may give another input; a read that may be outside, and one that is there.
    let statement = "y: f64[9] = [n: 9] one[n] * x[n]";
    becomes(statement, statement);
    for statement in [
        "y: f64[9] = [n: 9] seed[t[n]] * x[n]",
        "y: f64[9] = [n: 9] x[n] * seed[n - 1] else 0.0_f64",
    ] {
        let statement = format!("{SEED}{statement}");
        becomes(&statement, &statement);
    }
}
