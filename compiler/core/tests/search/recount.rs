//! Running reductions that count their points from elsewhere, and the kernels that they become.

use einc_core::search::recount::recounted;

const INPUTS: &str = "input x: i64[70] = unbound\ninput u: i64[70, 3] = unbound\ninput w: i64[90] = unbound\ninput t: i64[139] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput u\noutput w\noutput t";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(recounted, (INPUTS, OUTPUTS), statement, expected);
}

#[track_caller]
fn stays(statement: &str) {
    becomes(statement, statement);
}

#[test]
fn points_are_counted_by_the_place_that_is_read() {
    becomes(
        "y: i64[70] = [i: 70 | j: 70] sum x[i + j] if j < 70 - i",
        "y: i64[70] = [i: 70 | j: 70] sum x[j] if i <= j",
    );
    becomes(
        "y: i64[70, 3] = [i: 70, k: 3 | j: 70] max u[i + j, k] if i + j <= 69",
        "y: i64[70, 3] = [i: 70, k: 3 | j: 70] max u[j, k] if i <= j",
    );
    // Backwards, to the place itself or to the one before it, of which the product reads both.
    becomes(
        "y: i64[70] = [i: 70 | j: 70] sum x[i - j] if j <= i",
        "y: i64[70] = [i: 70 | j: 70] sum x[j] if j <= i",
    );
    becomes(
        "y: i64[70] = [i: 70 | j: 70] sum x[i - j - 1] * x[i - j] if j < i",
        "y: i64[70] = [i: 70 | j: 70] sum x[j] * x[j + 1] if j < i",
    );
    // A gradient's condition that always holds.
    becomes(
        "y: i64[70] = [i: 70 | j: 70] sum x[i - j] if and(i - j >= 0, j < 70 - (i - j))",
        "y: i64[70] = [i: 70 | j: 70] sum x[j] if j <= i",
    );
    // A value, too, that is none of a read.
    becomes(
        "y: i64[70] = [i: 70 | j: 90] sum w[i + j] * (i + j) if j < 90 - i",
        "y: i64[70] = [i: 70 | j: 90] sum w[j] * j if i <= j",
    );
    // Other conditions stay.
    becomes(
        "y: i64[70] = [i: 70 | j: 70] sum x[j] if and(j < 70 - i, x[j] > 3)",
        "y: i64[70] = [i: 70 | j: 70] sum let $0 = x[69 - j] in $0 if and(i <= j, $0 > 3)",
    );
}

#[test]
fn points_are_counted_from_the_end() {
    becomes(
        "y: i64[70] = [i: 70 | j: 70] sum x[j] if j < 70 - i",
        "y: i64[70] = [i: 70 | j: 70] sum x[69 - j] if i <= j",
    );
    becomes(
        "y: i64[70] = [i: 70 | j: 70] min x[j] if i + j > 69",
        "y: i64[70] = [i: 70 | j: 70] min x[69 - j] if j < i",
    );
}

#[test]
fn other_reductions_stay() {
    // It is one already.
    stays("y: i64[70] = [i: 70 | j: 70] sum x[j] if j <= i");
    // The number of a value would be another one.
    stays("y: i64[70] = [i: 70 | j: 70] argmax x[i + j] if j < 70 - i");
    // Points of a window, of another line, and beyond what the index had.
    stays("y: i64[70] = [i: 70 | j: 5] sum x[i - j] if j <= i");
    stays("y: i64[70] = [i: 70 | j: 70] sum x[j] if 2 * j < i");
    stays("y: i64[70] = [i: 70 | j: 70] sum w[i + j] if j < 80 - i");
    // The terms are others for each result.
    stays("y: i64[70] = [i: 70 | j: 70] sum x[i + j] * i if j < 70 - i");
    // The condition would be asked of places that are outside.
    stays("y: i64[70] = [i: 70 | j: 70] sum w[i - j] if and(j <= i, t[i - j + 69] > 3)");
    // Few results.
    stays("y: i64[9] = [i: 9 | j: 9] sum x[i + j] if j < 9 - i");
}
