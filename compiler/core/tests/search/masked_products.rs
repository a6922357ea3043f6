//! Products of matrices of which a condition chooses terms.

use einc_core::search::masked_products::chosen;

const INPUTS: &str = "input r: f64[90] = unbound\ninput k: i64[90] = unbound\ninput R: f64[7, 90] = unbound\ninput Q: f64[90, 9] = unbound\n";
const OUTPUTS: &str = "output y\noutput r\noutput k\noutput R\noutput Q";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(chosen, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn both_factors_are_chosen() {
    becomes(
        "y: f64[9, 9] = [k: 9, l: 9 | i: 90] sum where(r[i] > 3.0_f64, Q[i, k] * Q[i, l], 0.0_f64)",
        "y: f64[9, 9] = [k: 9, l: 9 | i: 90] sum let $0 = r[i] > 3.0_f64 in where($0, Q[i, k], 0.0_f64) * where($0, Q[i, l], 0.0_f64)",
    );
    becomes(
        "y: f64[7, 9, 9] = [u: 7, k: 9, l: 9 | i: 90] sum where(R[u, i] > 3.0_f64, 0.0_f64, r[i] * (Q[i, l] * Q[i, k]))",
        "y: f64[7, 9, 9] = [u: 7, k: 9, l: 9 | i: 90] sum let $0 = not(R[u, i] > 3.0_f64) in where($0, Q[i, l], 0.0_f64) * where($0, r[i] * Q[i, k], 0.0_f64)",
    );
    // Loops would pass over few values only.
    becomes(
        "y: f64[7, 9, 9] = [u: 7, p: 9, l: 9 | i: 90] sum where(k[i] == u, Q[i, p] * Q[i, l], 0.0_f64)",
        "y: f64[7, 9, 9] = [u: 7, p: 9, l: 9 | i: 90] sum let $0 = k[i] == u in where($0, Q[i, p], 0.0_f64) * where($0, Q[i, l], 0.0_f64)",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // A product with a vector, of one matrix, a triangle, a condition of both matrices, many values that loops pass over.
        "y: f64[9] = [k: 9 | i: 90] sum where(r[i] > 3.0_f64, Q[i, k] * r[i], 0.0_f64)",
        "y: f64[9] = [k: 9 | i: 90] sum where(r[i] > 3.0_f64, Q[i, k] * Q[i, k], 0.0_f64)",
        "y: f64[9, 9] = [k: 9, l: 9 | i: 9] sum where(i <= k, Q[i, k] * Q[i, l], 0.0_f64)",
        "y: f64[9, 9] = [k: 9, l: 9 | i: 90] sum where(Q[i, k] > Q[i, l], Q[i, k] * Q[i, l], 0.0_f64)",
        "y: f64[70, 9, 9] = [u: 70, p: 9, l: 9 | i: 90] sum where(k[i] == u, Q[i, p] * Q[i, l], 0.0_f64)",
    ] {
        becomes(statement, statement);
    }
}
