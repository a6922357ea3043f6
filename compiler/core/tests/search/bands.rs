//! Reductions over the points near an index, and the windows that they become.

use einc_core::search::bands::windowed;

const INPUTS: &str =
    "input x: f64[90] = unbound\ninput m: f64[90, 90] = unbound\ninput n: i64[90] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput m\noutput n";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(windowed, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn bands_are_windows() {
    becomes(
        "y: f64[90] = [i: 90 | j: 90] sum where(and(i - 5 <= j, j <= i), x[j], 0.0_f64)",
        "y: f64[90] = [i: 90 | j: 6] sum x[i + j - 5] else 0.0_f64",
    );
    becomes(
        "y: f64[90] = [i: 90 | j: 90] max where(abs(i - j) < 3, x[j], -inf_f64)",
        "y: f64[90] = [i: 90 | j: 5] max x[i + j - 2] else -inf_f64",
    );
    becomes(
        "y: f64[90] = [i: 90 | j: 90] sum where(abs(i - j) < 3, x[j], 0.0_f64) / 5.0_f64",
        "y: f64[90] = [i: 90 | j: 5] sum x[i + j - 2] else 0.0_f64 / 5.0_f64 if and(i + j - 2 >= 0, i + j - 2 < 90)",
    );
    // Strides, and other conditions.
    becomes(
        "y: f64[40] = [i: 40 | j: 90] sum where(and(and(2 * i <= j, j < 2 * i + 4), x[j] > 0.5_f64), x[j] * x[j], 0.0_f64)",
        "y: f64[40] = [i: 40 | j: 4] sum let $0 = x[2 * i + j] else 0.0_f64 in $0 * $0 if $0 > 0.5_f64",
    );
    // A band of a matrix, and one in each of two indices.
    becomes(
        "y: f64[90] = [i: 90 | j: 90] sum where(abs(i - j) <= 1, m[i, j] * x[j], 0.0_f64)",
        "y: f64[90] = [i: 90 | j: 3] sum m[i, i + j - 1] else 0.0_f64 * x[i + j - 1] else 0.0_f64 if and(i + j - 1 >= 0, i + j - 1 < 90)",
    );
    becomes(
        "y: f64[9, 9] = [i: 9, j: 9 | p: 90, q: 90] sum where(and(abs(i - p) <= 1, abs(q - j) <= 2), m[p, q], 0.0_f64)",
        "y: f64[9, 9] = [i: 9, j: 9 | p: 3, q: 5] sum m[i + p - 1, j + q - 2] else 0.0_f64",
    );
    // Values of the index itself, and integers that data choose.
    becomes(
        "y: i64[90] = [i: 90 | j: 90] sum where(and(j > i - 3, j < i + 3), j * n[j], 0)",
        "y: i64[90] = [i: 90 | j: 5] sum (i + j - 2) * n[i + j - 2] else 0 if and(i + j - 2 >= 0, i + j - 2 < 90)",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // The window is more than half of the index.
        "y: f64[90] = [i: 90 | j: 90] sum where(and(i - 50 <= j, j <= i), x[j], 0.0_f64)",
        // All before a point.
        "y: f64[90] = [i: 90 | j: 90] sum where(j <= i, x[j], 0.0_f64)",
        // The same few points for all.
        "y: f64[90] = [i: 90 | j: 90] sum where(and(4 <= j, j <= 9), x[i] * x[j], 0.0_f64)",
        // Bounds that data say.
        "y: f64[90] = [i: 90 | j: 90] sum where(and(n[i] <= j, j <= n[i] + 2), x[j], 0.0_f64)",
        // A position is a result.
        "y: i64[90] = [i: 90 | j: 90] argmax where(abs(i - j) < 3, x[j], -inf_f64)",
    ] {
        becomes(statement, statement);
    }
    // The columns that a mask chooses of a row are computed alone.
    let product = "hidden s: f64[90, 90] = [i: 90, j: 90] x[i] * m[i, j]\n";
    let rows = "y: f64[90] = [i: 90 | j: 90] sum where(abs(i - j) < 3, s[i, j], 0.0_f64)";
    let rows = format!("{product}{rows}");
    becomes(&rows, &rows);
}
