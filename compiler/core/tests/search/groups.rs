//! Reductions of the points of groups: what they read of their group, the points of others, and what is the same for all groups.

use einc_core::einsum::Program;
use einc_core::search::{group_values::at_places, invariant, other_points::counted};

const INPUTS: &str = "input x: f64[9] = unbound\ninput m: f64[4] = unbound\ninput at: i64[9] = unbound\ninput B: i32[2, 9] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput m\noutput at\noutput B";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(pass: fn(&Program) -> Program, statement: &str, expected: &str) {
    crate::keeps(pass, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn values_of_a_group_are_read_at_places() {
    becomes(
        at_places,
        "y: f64[4] = [g: 4 | n: 9] sum where(at[n] == g, (x[n] - m[g]) * (x[n] - m[g]), 0.0_f64)",
        "y: f64[4] = [g: 4 | n: 9] sum let $0 = x[n] - m[at[n]] else 0.0_f64 in $0 * $0 if at[n] == g",
    );
    becomes(
        at_places,
        "y: f64[4] = [g: 4 | n: 9] max x[n] * f64(g) if and(at[n] == g, x[n] < m[-g + 3])",
        "y: f64[4] = [g: 4 | n: 9] max x[n] * f64(at[n]) if and(at[n] == g, x[n] < m[-at[n] + 3] else 0.0_f64)",
    );
}

#[test]
fn points_of_other_groups_are_counted() {
    becomes(
        counted,
        "y: f64[4] = [g: 4 | n: 9] max where(at[n] == g, x[n], 0.5_f64)",
        "hidden y.own: f64[4] = [g: 4 | n: 9] max x[n] if at[n] == g\n\
         hidden y.count: i64[4] = [g: 4 | n: 9] sum 1 if at[n] == g\n\
         y: f64[4] = [g: 4] where(y.count[g] < 9, max(y.own[g], 0.5_f64), y.own[g])",
    );
    becomes(
        counted,
        "y: i32[2, 4] = [b: 2, g: 4 | n: 9] min where(i64(B[b, n]) == g, B[b, n], i32(g))",
        "hidden y.own: i32[2, 4] = [b: 2, g: 4 | n: 9] min B[b, n] if i64(B[b, n]) == g\n\
         hidden y.count: i64[2, 4] = [b: 2, g: 4 | n: 9] sum 1 if i64(B[b, n]) == g\n\
         y: i32[2, 4] = [b: 2, g: 4] where(y.count[b, g] < 9, min(y.own[b, g], i32(g)), y.own[b, g])",
    );
    becomes(
        counted,
        "y: f64[4] = [g: 4 | n: 9] mean where(at[n] == g, x[n] - m[g], 0.0_f64)",
        "hidden y.own: f64[4] = [g: 4 | n: 9] sum x[n] - m[g] if at[n] == g\n\
         y: f64[4] = [g: 4] y.own[g] / 9.0_f64",
    );
    becomes(
        counted,
        "y: f64[4] = [g: 4 | n: 9] sum where(at[n] == g, x[n], m[g])",
        "hidden y.own: f64[4] = [g: 4 | n: 9] sum x[n] if at[n] == g\n\
         hidden y.count: i64[4] = [g: 4 | n: 9] sum 1 if at[n] == g\n\
         y: f64[4] = [g: 4] where(y.count[g] < 9, y.own[g] + f64(9 - y.count[g]) * m[g], y.own[g])",
    );
    // Values that are the greatest of their group.
    becomes(
        counted,
        "y: f64[4] = [g: 4 | n: 9] sum where(where(at[n] == g, x[n], -inf_f64) == m[g], 1.0_f64, 0.0_f64)",
        "hidden y.own: f64[4] = [g: 4 | n: 9] sum where(x[n] == m[g], 1.0_f64, 0.0_f64) if at[n] == g\n\
         hidden y.count: i64[4] = [g: 4 | n: 9] sum 1 if at[n] == g\n\
         y: f64[4] = [g: 4] where(y.count[g] < 9, y.own[g] + f64(9 - y.count[g]) * where(-inf_f64 == m[g], 1.0_f64, 0.0_f64), y.own[g])",
    );
    becomes(
        counted,
        "y: bool[2, 4] = [b: 2, g: 4 | n: 9] any and(i64(B[b, n]) == g, x[n] < m[g])",
        "hidden y.count: i64[2, 4] = [b: 2, g: 4 | n: 9] sum 1 if and(i64(B[b, n]) == g, x[n] < m[g])\n\
         y: bool[2, 4] = [b: 2, g: 4] y.count[b, g] > 0",
    );
    becomes(
        counted,
        "y: bool[4] = [g: 4 | n: 9] all or(at[n] != g, n < 5)",
        "hidden y.count: i64[4] = [g: 4 | n: 9] sum 1 if and(at[n] == g, n >= 5)\n\
         y: bool[4] = [g: 4] y.count[g] == 0",
    );
}

#[test]
fn what_is_the_same_along_an_index_is_reduced_once() {
    becomes(
        invariant::once,
        "y: i32[4, 2] = [g: 4, b: 2 | n: 9] sum B[b, n] if n > 2",
        "hidden y.once: i32[2] = [b: 2 | n: 9] sum B[b, n] if n > 2\n\
         y: i32[4, 2] = [g: 4, b: 2] y.once[b]",
    );
    // Narrow values are computed in wide ones.
    becomes(
        invariant::once,
        "y: f16[4] = [g: 4 | n: 9] sum f32(B[1, n])",
        "hidden y.once: f32[] = [| n: 9] sum f32(B[1, n])\n\
         y: f16[4] = [g: 4] y.once[]",
    );
    becomes(
        invariant::once,
        "y: f64[4] = [g: 4 | n: 9] max x[n]",
        "hidden y.once: f64[] = [| n: 9] max x[n]\n\
         y: f64[4] = [g: 4] y.once[]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Already gone through once, a group that is no datum, a condition on the group alone.
        "y: f64[4] = [g: 4 | n: 9] sum x[n] if at[n] == g",
        "y: f64[4] = [g: 4 | n: 9] sum x[n] * m[g] if n == g",
        "y: f64[4] = [g: 4 | n: 9] sum where(m[g] < 0.5_f64, x[n] * m[g], 0.0_f64)",
    ] {
        becomes(at_places, statement, statement);
    }
    for statement in [
        "y: f64[4] = [g: 4 | n: 9] max where(at[n] == g, x[n], x[n] + 1.0_f64)",
        "y: f64[4] = [g: 4 | n: 9] mean where(at[n] == g, x[n], 1.0_f64)",
        "y: f64[4] = [g: 4 | n: 9] max where(m[g] < x[n], x[n], 0.0_f64)",
    ] {
        becomes(counted, statement, statement);
    }
    becomes(
        invariant::once,
        "y: f64[4] = [g: 4] x[1]",
        "y: f64[4] = [g: 4] x[1]",
    );
}
