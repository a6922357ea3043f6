//! Sums of products with a computed factor that lacks a reduced index.

use einc_core::search::inner_sums::first;

const INPUTS: &str =
    "input g: f64[9, 30] = unbound\ninput s: f64[9, 8] = unbound\ninput V: f64[8, 30] = unbound\n";
const OUTPUTS: &str = "output y\noutput g\noutput s\noutput V";

/// Asserts what statements become.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::becomes(first, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn what_a_computed_factor_lacks_is_summed_first() {
    becomes(
        "y: f64[9] = [t: 9 | u: 8, d: 30] sum -(g[t, d] * exp(s[t, u]) * V[u, d])",
        "hidden y.inner: f64[9, 8] = [t: 9, u: 8 | d: 30] sum g[t, d] * V[u, d]\n\
         y: f64[9] = [t: 9 | u: 8] sum -(exp(s[t, u]) * y.inner[t, u])",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Factors that have all reduced indices, that are read, that are cheap; one factor beside the computed one; other reductions.
        "y: f64[9, 30] = [t: 9, d: 30 | u: 8] sum exp(s[t, u]) * V[u, d]",
        "y: f64[9] = [t: 9 | u: 8, d: 30] sum g[t, d] * s[t, u] * V[u, d]",
        "y: f64[9] = [t: 9 | u: 8, d: 30] sum g[t, d] * (s[t, u] + 1.0_f64) * V[u, d]",
        "y: f64[9] = [t: 9 | d: 30] sum exp(s[t, 0]) * g[t, d]",
        "y: f64[9] = [t: 9 | u: 8, d: 30] max g[t, d] * exp(s[t, u]) * V[u, d]",
    ] {
        becomes(statement, statement);
    }
}
