//! Sums that are taken before others: out of running sums, and in front of scatters.

use einc_core::einsum::Program;
use einc_core::search::{factors::factored, scatters::summed};

const INPUTS: &str = "input w: f32[9] = unbound\ninput x: f32[9] = unbound\ninput I: f32[8, 4] = unbound\n\
    input W: f32[8, 3] = unbound\ninput at: i64[4] = unbound\n";
const OUTPUTS: &str = "output y\noutput w\noutput x\noutput I\noutput W\noutput at";

/// Asserts what a pass makes of a statement that reads the inputs.
#[track_caller]
fn becomes(rewrite: fn(&Program) -> Program, statement: &str, expected: &str) {
    crate::becomes(rewrite, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn factors_and_choices_stand_outside_of_a_running_sum() {
    becomes(
        factored,
        "y: f32[9] = [n: 9 | m: 9] sum w[n] * x[m] if m <= n",
        "hidden y.sum: f32[9] = [n: 9 | m: 9] sum x[m] if m <= n\n\
        y: f32[9] = [n: 9] w[n] * y.sum[n]",
    );
    becomes(
        factored,
        "y: f32[9] = [n: 9 | m: 9] sum where(w[n] == 0.0, x[m], x[m] * x[m] / w[n]) if n <= m",
        "hidden y.sum: f32[9] = [n: 9 | m: 9] sum x[m] * x[m] if n <= m\n\
        hidden y.sum.1: f32[9] = [n: 9 | m: 9] sum x[m] if n <= m\n\
        y: f32[9] = [n: 9] where(w[n] == 0.0, y.sum.1[n], y.sum[n] / w[n])",
    );
}

#[test]
fn what_may_be_a_sum_of_nothing_has_no_factor() {
    for statement in [
        "y: f32[9] = [n: 9 | m: 9] sum x[m] / w[n] if m < n",
        "y: f32[9] = [n: 9 | m: 9] sum exp(x[m] - w[n]) if m <= n",
        "y: f32[9] = [n: 9 | m: 9] sum w[n] * x[m]",
    ] {
        becomes(factored, statement, statement);
    }
}

#[test]
fn what_has_no_say_in_the_place_is_summed_before_the_scatter() {
    becomes(
        summed,
        "y: f32[9] = [p: 9 | k: 4, r: 3, c: 8] sum I[c, k] * W[c, r] if 2 * k + r == p",
        "hidden y.terms: f32[3, 4] = [r: 3, k: 4 | c: 8] sum I[c, k] * W[c, r]\n\
        y: f32[9] = [p: 9 | k: 4, r: 3] sum y.terms[r, k] if 2 * k + r == p",
    );
    // A value that goes to several places is computed once.
    becomes(
        summed,
        "y: f32[9] = [p: 9 | k: 4, r: 3] sum x[k] / 100.0 if at[k] + r == p",
        "hidden y.terms: f32[4] = [k: 4] x[k] / 100.0\n\
        y: f32[9] = [p: 9 | k: 4, r: 3] sum y.terms[k] if at[k] + r == p",
    );
    for statement in [
        "y: f32[9] = [p: 9 | k: 4, r: 3] sum x[k] if at[k] + r == p",
        "y: f32[9] = [p: 9 | k: 4, r: 3] sum x[k] * w[p] if at[k] + r == p",
        // All indices have a say, or the value depends on none that has not.
        "y: f32[9] = [p: 9 | k: 4, c: 8] sum I[c, k] if at[k] + c == p",
        "y: f32[9] = [p: 9 | k: 4, c: 8] sum x[k] if at[k] == p",
        // There is nothing to scatter but the one sum.
        "y: f32[9] = [p: 9 | c: 8] sum I[c, 0] if at[1] == p",
        // Where the guard does not hold, the value may have no place.
        "y: f32[9] = [p: 9 | k: 4, c: 8] sum I[c, at[k]] if at[k] == p",
    ] {
        becomes(summed, statement, statement);
    }
}
