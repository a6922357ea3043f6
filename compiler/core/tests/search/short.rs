//! Reductions over short windows, and the expressions that they become.

use einc_core::search::{overlaps::parted, short::written};

const INPUTS: &str = "input x: f32[9] = unbound\ninput u: f32[4, 7] = unbound\n\
    input v: f32[3, 4, 7] = unbound\ninput n: i64[9] = unbound\ninput k: i32[9] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput u\noutput v\noutput n\noutput k";

/// Asserts what a statement becomes, and that its values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(written, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn short_windows_are_written_out() {
    becomes(
        "y: f32[4] = [i: 4 | r: 2] max x[2 * i + r]",
        "y: f32[4] = [i: 4] max(x[2 * i], x[2 * i + 1])",
    );
    becomes(
        "y: f32[4, 4] = [b: 4, i: 4 | r: 2] mean u[b, i + 2 * r]",
        "y: f32[4, 4] = [b: 4, i: 4] (u[b, i] + u[b, i + 2]) / 2.0",
    );
    // Weights of a window in two dimensions, and what lies outside.
    becomes(
        "y: f32[3, 6] = [i: 3, j: 6 | r: 2, s: 2] sum (u[i + r, j + s - 1] else 0.0) * v[r, s, 3]",
        "y: f32[3, 6] = [i: 3, j: 6] u[i, j - 1] else 0.0 * v[0, 0, 3] + u[i, j] else 0.0 * v[0, 1, 3] \
            + u[i + 1, j - 1] else 0.0 * v[1, 0, 3] + u[i + 1, j] else 0.0 * v[1, 1, 3]",
    );
    // What stands outside has the type of the tensor, which may be no position's.
    becomes(
        "y: f32[9] = [i: 9 | r: 2] sum f32(k[i + r - 1] else 0_i32)",
        "y: f32[9] = [i: 9] f32(k[i - 1] else 0_i32) + f32(k[i] else 0_i32)",
    );
    // A condition that holds everywhere, one that says what is inside, and one that does not.
    becomes(
        "y: f32[9] = [i: 9 | r: 2] sum x[i - r] if and(i - r >= 0, i - r <= 8)",
        "y: f32[9] = [i: 9] x[i] + x[i - 1] else 0.0",
    );
    becomes(
        "y: f32[8] = [i: 8 | r: 2] max x[i + r] if n[i] > r",
        "y: f32[8] = [i: 8] max(where(n[i] > 0, x[i], -inf), where(n[i] > 1, x[i + 1], -inf))",
    );
}

#[test]
fn choices_by_the_reduced_index_are_written_out() {
    becomes(
        "y: f32[4] = [i: 4 | p: 2] sum where(p == 0, -u[i, p] * x[i], u[i, p] * x[i + 4])",
        "y: f32[4] = [i: 4] -u[i, 0] * x[i] + u[i, 1] * x[i + 4]",
    );
    becomes(
        "y: f32[4] = [i: 4 | p: 3] max where(p < 1, u[i, p], where(p != 2, x[i], u[p, i]))",
        "y: f32[4] = [i: 4] max(max(u[i, 0], x[i]), u[2, i])",
    );
    // Places that data say, and a choice by an index of the result.
    for statement in [
        "y: f32[4] = [i: 4 | p: 2] sum where(p == 0, u[i, p], x[n[i]])",
        "y: f32[4] = [i: 4 | p: 2] sum where(i == 0, u[i, p], 1.0)",
    ] {
        becomes(statement, statement);
    }
}

#[test]
fn other_reductions_stay() {
    for statement in [
        // A product of matrices, and one of which only one factor is a window.
        "y: f32[4, 3] = [i: 4, b: 3 | c: 7] sum u[i, c] * v[b, 0, c]",
        "y: f32[3, 4, 5] = [b: 3, a: 4, i: 5 | r: 3] sum u[a, i + r] * v[b, 1, r]",
        // More values than are written out, and those of a whole dimension.
        "y: f32[4] = [i: 4 | b: 3, r: 4, c: 7] sum v[b, r, c] * x[i + r]",
        "y: f32[4] = [i: 4 | c: 7] max u[i, c]",
        // Places that data say, and a reduction that is no function of two values.
        "y: f32[8] = [i: 8 | r: 2] sum x[n[i + r]]",
        "y: f32[8] = [i: 8 | r: 2] logsumexp x[i + r]",
    ] {
        becomes(statement, statement);
    }
}

#[test]
fn values_that_meet_are_written_out() {
    let statement = "y: f32[13] = [p: 13 | r: 4, c: 7] sum u[r, c] if 2 * r + c == p";
    let both = |program: &_| written(&parted(program));
    let expected = "hidden y.phases: f32[2, 7] = [c': 2, r: 7] \
        u[r, c'] else 0.0 + u[r - 1, c' + 2] else 0.0 + u[r - 2, c' + 4] else 0.0 + u[r - 3, c' + 6] else 0.0\n\
        y: f32[13] = [p: 13 | c': 2, r: 7] sum y.phases[c', r] if 2 * r + c' == p";
    crate::becomes(both, (INPUTS, OUTPUTS), statement, expected);
}
