//! Diagonals that are read beside other indices, and the tensors that they become.

use einc_core::search::diagonals::named;

const INPUTS: &str = "input z: f64[80, 80] = unbound\ninput u: f64[9, 8, 80] = unbound\ninput s: f64[9, 9] = unbound\n";
const OUTPUTS: &str = "output y\noutput z\noutput u\noutput s";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(named, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn diagonals_are_tensors() {
    becomes(
        "y: f64[80, 80] = [i: 80, j: 80] z[i, j] - z[i, i] * z[j, j]",
        "hidden y.diagonal: f64[80] = [i: 80] z[i, i]\n\
         hidden y.diagonal.1: f64[80] = [j: 80] z[j, j]\n\
         y: f64[80, 80] = [i: 80, j: 80] z[i, j] - y.diagonal[i] * y.diagonal.1[j]",
    );
    becomes(
        "y: f64[80] = [i: 80 | j: 80] sum z[j, j] * z[i, j]",
        "hidden y.diagonal: f64[80] = [j: 80] z[j, j]\n\
         y: f64[80] = [i: 80 | j: 80] sum y.diagonal[j] * z[i, j]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // The diagonal alone, another place, a small tensor, a place that a condition leaves out.
        "y: f64[80] = [i: 80] z[i, i]",
        "y: f64[] = [| i: 80] sum z[i, i] * z[i, i]",
        "y: f64[79, 80] = [i: 79, j: 80] z[i, i + 1] + z[i, j]",
        "y: f64[9, 9] = [i: 9, j: 9] s[i, j] - s[i, i]",
        "y: f64[99, 80] = [i: 99, j: 80] where(i < 80, z[i, i], 0.0_f64) * z[0, j]",
    ] {
        becomes(statement, statement);
    }
}
