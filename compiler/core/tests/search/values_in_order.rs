//! Values in ascending order, with and without their positions.

use einc_core::search::values_in_order::sorted;

const INPUTS: &str = "input x: f32[7] = unbound\ninput A: i32[3, 5] = unbound\n";

/// Asserts what statements become where `y` and others are read, and that values stay.
#[track_caller]
fn becomes(statements: &str, outputs: &str, expected: &str) {
    let outputs = format!("{outputs}\noutput x\noutput A");
    crate::keeps(sorted, (INPUTS, &outputs), statements, expected);
}

#[test]
fn values_are_sorted_by_themselves() {
    becomes(
        "hidden order: i64[7] = [i: 7] argsort(x[:1], i)\n\
         y: f32[7] = [i: 7] x[order[i]]",
        "output y",
        "y: f32[7] = [i: 7] sort(x[:1], i)",
    );
    becomes(
        "hidden order: i64[5, 3] = [i: 5, p: 3] argsort(A[p, :1], i)\n\
         y: i32[5, 3] = [i: 5, p: 3] A[p, order[i, p]]",
        "output y",
        "y: i32[5, 3] = [i: 5, p: 3] sort(A[p, :1], i)",
    );
}

#[test]
fn positions_that_are_read_stay() {
    let order = "hidden order: i64[7] = [i: 7] argsort(x[:1], i)\n";
    for (statement, outputs) in [
        ("y: f32[7] = [i: 7] x[order[i]]", "output y\noutput order"),
        ("y: f32[7] = [i: 7] x[order[i]] * f32(order[i])", "output y"),
        ("y: f32[7] = [i: 7] x[order[-i + 6]]", "output y"),
        ("y: f32[6] = [i: 6] x[order[i]]", "output y"),
        ("y: i32[7] = [i: 7] A[1, order[i]] else 0_i32", "output y"),
    ] {
        let statements = format!("{order}{statement}");
        becomes(&statements, outputs, &statements);
    }
}
