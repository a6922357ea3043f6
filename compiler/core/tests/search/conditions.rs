//! Conditions that go into guards, where the loops pass over an index then.

use einc_core::rules::conditions::conditioned;

const INPUTS: &str =
    "input at: i64[900] = unbound\ninput x: f32[900] = unbound\ninput A: f32[900, 900] = unbound\n";
const OUTPUTS: &str = "output y\noutput at\noutput x\noutput A";

/// Asserts what a pass makes of a statement that reads the inputs.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::becomes(conditioned, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn what_names_or_compares_a_place_is_a_guard() {
    becomes(
        "y: f32[70] = [k: 70 | n: 900] sum where(at[n] == k, x[n], 0.0)",
        "y: f32[70] = [k: 70 | n: 900] sum x[n] if at[n] == k",
    );
    becomes(
        "y: f32[70] = [k: 70 | n: 900] max where(at[n] == k, where(x[n] < 3.0, x[n], -inf), -inf)",
        "y: f32[70] = [k: 70 | n: 900] max x[n] if and(at[n] == k, x[n] < 3.0)",
    );
    becomes(
        "y: i64[70] = [k: 70 | n: 900] sum i64(at[n] == k)",
        "y: i64[70] = [k: 70 | n: 900] sum 1 if at[n] == k",
    );
    becomes(
        "y: f32[900] = [n: 900 | m: 900] sum where(m > n, 0.0, x[m])",
        "y: f32[900] = [n: 900 | m: 900] sum x[m] if m <= n",
    );
    becomes(
        "y: f32[900] = [n: 900 | m: 900] prod x[m] if where(m <= n, x[m] != 0.0, false)",
        "y: f32[900] = [n: 900 | m: 900] prod x[m] if and(m <= n, x[m] != 0.0)",
    );
}

#[test]
fn products_of_matrices_have_the_condition_in_the_guard() {
    becomes(
        "y: f32[900, 70] = [i: 900, j: 70 | k: 900] sum where(k <= i, A[i, k] * A[k, j], 0.0)",
        "y: f32[900, 70] = [i: 900, j: 70 | k: 900] sum A[i, k] * A[k, j] if k <= i",
    );
    // Both factors are computed, so it is not known before whether they are finite; few terms; a vector.
    for statement in [
        "y: f32[900] = [i: 900 | k: 900] sum where(k <= i, A[i, k] * x[k], 0.0)",
        "y: f32[900, 70] = [i: 900, j: 70 | k: 900] sum where(k <= i, exp(A[i, k]) * exp(A[k, j]), 0.0)",
        "y: f32[9, 9] = [i: 9, j: 9 | k: 9] sum where(k <= i, A[i, k] * A[k, j], 0.0)",
    ] {
        becomes(statement, statement);
    }
}

/// A value that may stop the run is computed where both conditions hold, before and after.
#[test]
fn values_that_may_stop_the_run_stay_guarded() {
    becomes(
        "y: f32[70] = [k: 70 | n: 900] sum where(at[n] == k, x[at[n]], 0.0) if n < 4",
        "y: f32[70] = [k: 70 | n: 900] sum x[at[n]] if and(n < 4, at[n] == k)",
    );
}

#[test]
fn what_passes_over_nothing_stays() {
    for statement in [
        // The other number is none that leaves a sum as it is.
        "y: f32[70] = [k: 70 | n: 900] sum where(at[n] == k, x[n], 1.0)",
        // Every place has values of its own.
        "y: f32[900] = [n: 900 | m: 900] sum where(m <= n, A[n, m], 0.0)",
        // A mean counts its points.
        "y: f32[70] = [k: 70 | n: 900] mean where(at[n] == k, x[n], 0.0)",
        // The second condition may fault where the first one is false.
        "y: f32[70] = [k: 70 | n: 900] sum where(at[at[n]] == k, x[n], 0.0) if n < 4",
        // Floats that are not greater need not be less or equal.
        "y: f32[900] = [n: 900 | m: 900] sum where(x[m] > x[n], 0.0, x[m])",
    ] {
        becomes(statement, statement);
    }
}
