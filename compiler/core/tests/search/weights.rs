//! Factors that depend on the same few indices.

use einc_core::search::weights::multiplied;

const INPUTS: &str = "input m: f64[90] = unbound\ninput y: f64[90] = unbound\ninput X: f64[90, 20] = unbound\ninput Y: f64[90, 20] = unbound\n";
const OUTPUTS: &str = "output g\noutput m\noutput y\noutput X\noutput Y";

/// Asserts what statements become.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::becomes(multiplied, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn common_factors_are_one() {
    becomes(
        "g: f64[20] = [d: 20 | n: 90] sum X[n, d] * m[n] * y[n]",
        "hidden g.weight: f64[90] = [n: 90] m[n] * y[n]\n\
         g: f64[20] = [d: 20 | n: 90] sum X[n, d] * g.weight[n]",
    );
    becomes(
        "g: f64[20, 20] = [d: 20, e: 20 | n: 90] sum m[n] * (X[n, d] * (Y[n, e] * y[n]))",
        "hidden g.weight: f64[90] = [n: 90] m[n] * y[n]\n\
         g: f64[20, 20] = [d: 20, e: 20 | n: 90] sum X[n, d] * Y[n, e] * g.weight[n]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Two factors, none of the same indices, as many points as there are in all, a computed factor.
        "g: f64[20] = [d: 20 | n: 90] sum X[n, d] * m[n]",
        "g: f64[90, 20] = [n: 90, d: 20 | p: 90] sum X[p, d] * m[p] * y[n]",
        "g: f64[90] = [n: 90 | d: 20] sum X[n, d] * Y[n, d] * m[n]",
        "g: f64[20] = [d: 20 | n: 90] sum X[n, d] * m[n] * exp(y[n])",
    ] {
        becomes(statement, statement);
    }
}
