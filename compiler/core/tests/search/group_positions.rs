//! Positions of the extremes of groups, and the scatters that they become.

use einc_core::search::group_positions::scattered;

const INPUTS: &str =
    "input at: i64[90] = unbound\ninput x: f32[90] = unbound\ninput A: f32[90, 3] = unbound\n";
const OUTPUTS: &str = "output y\noutput at\noutput x\noutput A";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(scattered, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn extremes_are_scattered() {
    becomes(
        "y: i64[70] = [k: 70 | n: 90] argmax where(at[n] == k, x[n], -inf)",
        "hidden y.best: f32[70] = [k: 70 | n: 90] max x[n] if at[n] == k\n\
         hidden y.position: i64[70] = [k: 70 | n: 90] min n if and(at[n] == k, or(x[n] == y.best[at[n]] else 0.0, x[n] != x[n]))\n\
         y: i64[70] = [k: 70] where(y.best[k] == -inf, 0, y.position[k])",
    );
    becomes(
        "y: i64[70, 3] = [k: 70, d: 3 | n: 90] argmin where(and(at[n] == k, n != 4), A[n, d], inf)",
        "hidden y.best: f32[70, 3] = [k: 70, d: 3 | n: 90] min A[n, d] if and(at[n] == k, n != 4)\n\
         hidden y.position: i64[70, 3] = [k: 70, d: 3 | n: 90] min n if and(and(at[n] == k, n != 4), or(A[n, d] == y.best[at[n], d] else 0.0, A[n, d] != A[n, d]))\n\
         y: i64[70, 3] = [k: 70, d: 3] where(y.best[k, d] == inf, 0, y.position[k, d])",
    );
}

/// Terms of several tensors.
#[test]
fn extremes_of_products_are_scattered() {
    becomes(
        "y: i64[70] = [k: 70 | n: 90] argmax where(at[n] == k, A[n, 1] * x[n], -inf)",
        "hidden y.best: f32[70] = [k: 70 | n: 90] max A[n, 1] * x[n] if at[n] == k\n\
         hidden y.position: i64[70] = [k: 70 | n: 90] min let $0 = A[n, 1] * x[n] in n if and(at[n] == k, or($0 == y.best[at[n]] else 0.0, $0 != $0))\n\
         y: i64[70] = [k: 70] where(y.best[k] == -inf, 0, y.position[k])",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Another value where there is none, few places, no place, points that are left out.
        "y: i64[70] = [k: 70 | n: 90] argmax where(at[n] == k, x[n], 0.0)",
        "y: i64[4] = [k: 4 | n: 90] argmax where(at[n] == k, x[n], -inf)",
        "y: i64[70] = [k: 70 | n: 90] argmax where(at[n] < k, x[n], -inf)",
        "y: i64[70] = [k: 70 | n: 90] argmax where(at[n] == k, x[n], -inf) if n < 200",
    ] {
        becomes(statement, statement);
    }
}
