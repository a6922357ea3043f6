//! Reductions over long windows, and the steps that they become.

use einc_core::search::long_windows::stepped;

const INPUTS: &str = "input x: f64[300] = unbound\ninput u: f32[60, 70] = unbound\n\
    input w: f32[9] = unbound\ninput v: f32[50, 9] = unbound\ninput k: i32[300] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput u\noutput w\noutput v\noutput k";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(stepped, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn long_windows_go_in_steps() {
    // Of the largest value, parts may overlap.
    becomes(
        "y: f64[200] = [n: 200 | j: 100] max x[n + j]",
        "hidden y.of8: f64[292] = [n: 292] max(max(max(max(max(max(max(x[n], x[n + 1]), x[n + 2]), x[n + 3]), x[n + 4]), x[n + 5]), x[n + 6]), x[n + 7])\n\
         hidden y.of64: f64[236] = [n: 236] max(max(max(max(max(max(max(y.of8[n], y.of8[n + 8]), y.of8[n + 16]), y.of8[n + 24]), y.of8[n + 32]), y.of8[n + 40]), y.of8[n + 48]), y.of8[n + 56])\n\
         y: f64[200] = [n: 200] max(y.of64[n], y.of64[n + 36])",
    );
    // Parts of a sum lie side by side; values outside, a window that goes back.
    becomes(
        "y: f64[300] = [n: 300 | j: 35] sum x[n - j] else 0.0_f64",
        "y: f64[300] = [n: 300 | j: 35] sum x[n - j] else 0.0_f64",
    );
    // Results and neighbours that are apart.
    becomes(
        "y: i32[100] = [n: 100 | j: 64] min k[n + 3 * j]",
        "y: i32[100] = [n: 100 | j: 64] min k[n + 3 * j]",
    );
    becomes(
        "y: f64[80] = [n: 80 | j: 60] mean x[3 * n + j] * x[3 * n + j + 1]",
        "y: f64[80] = [n: 80 | j: 60] mean x[3 * n + j] * x[3 * n + j + 1]",
    );
}

#[test]
fn windows_of_windows_are_taken_apart() {
    becomes(
        "y: f32[50, 60] = [a: 50, b: 60 | i: 9, j: 9] max u[a + i, b + j]",
        "hidden y.line: f32[50, 68] = [a: 50, b: 68 | i: 9] max u[a + i, b]\n\
         y: f32[50, 60] = [a: 50, b: 60 | j: 9] max y.line[a, b + j]",
    );
    becomes(
        "y: f32[50, 60] = [a: 50, b: 60 | i: 9, j: 9] sum w[i] * v[a, j] * u[a + i, b + j]",
        "hidden y.line: f32[50, 68] = [a: 50, b: 68 | i: 9] sum w[i] * u[a + i, b]\n\
         y: f32[50, 60] = [a: 50, b: 60 | j: 9] sum v[a, j] * y.line[a, b + j]",
    );
}

#[test]
fn other_reductions_stay() {
    for statement in [
        // Weights of both indices, an order of neighbours, too few of them, too few points.
        "y: f32[50, 60] = [a: 50, b: 60 | i: 9, j: 9] sum v[i, j] * u[a + i, b + j]",
        "y: f64[200] = [n: 200 | j: 100] sum x[n + j] * x[j]",
        "y: i64[200] = [n: 200 | j: 100] argmax x[n + j]",
        "y: f64[200] = [n: 200 | j: 32] max x[n + j]",
        "y: f64[100] = [n: 100 | j: 40] max x[n + j]",
        // Each place is one of a few neighbours.
        "y: f64[5] = [n: 5 | j: 40, i: 40] max x[40 * n + j]",
    ] {
        becomes(statement, statement);
    }
}
