//! Reductions of all points below a value, or above it, and the sorting that they become.

use einc_core::search::ranked::sorted;

const INPUTS: &str = "input x: f64[1100] = unbound\ninput v: f64[1100] = unbound\ninput B: i64[2, 1100] = unbound\ninput n: i64[1100] = unbound\n";
const OUTPUTS: &str = "output y\noutput x\noutput v\noutput B\noutput n";

/// Asserts what statements become, and that their values stay.
#[track_caller]
fn becomes(statement: &str, expected: &str) {
    crate::keeps(sorted, (INPUTS, OUTPUTS), statement, expected);
}

#[test]
fn points_are_sorted() {
    becomes(
        "y: i64[1100] = [i: 1100 | j: 1100] sum i64(x[j] < v[i])",
        "hidden y.point: f64[1100] = [j: 1100] x[j]\n\
         hidden y.value: f64[1100] = [i: 1100] v[i]\n\
         hidden y.weight: i64[1100] = [j: 1100] where(x[j] == x[j], 1, 0)\n\
         hidden y.all: f64[2200] = [p: 2200] where(p < 1100, y.value[p] else 0.0_f64, y.point[p - 1100] else 0.0_f64)\n\
         hidden y.order: i64[2200] = [p: 2200] argsort(y.all[:1], p)\n\
         hidden y.part: i64[2200] = [p: 2200] y.weight[y.order[p] - 1100] else 0\n\
         hidden y.below: i64[2200] = [p: 2200 | q: 2200] sum y.part[q] if q <= p\n\
         hidden y.found: i64[1100] = [i: 1100 | p: 2200] sum y.below[p] if i == y.order[p]\n\
         y: i64[1100] = [x0: 1100] where(y.value[x0] == y.value[x0], y.found[x0], 0)",
    );
    becomes(
        "y: i64[2, 1100] = [b: 2, i: 1100 | j: 1100] sum where(j != 7, 2 * j, 0) if B[b, j] >= n[i]",
        "hidden y.point: i64[2, 1100] = [b: 2, j: 1100] B[b, j]\n\
         hidden y.value: i64[2, 1100] = [b: 2, i: 1100] n[i]\n\
         hidden y.weight: i64[2, 1100] = [b: 2, j: 1100] where(j != 7, 2 * j, 0)\n\
         hidden y.all: i64[2, 2200] = [b0: 2, p: 2200] where(p < 1100, y.value[b0, p] else 0, y.point[b0, p - 1100] else 0)\n\
         hidden y.order: i64[2, 2200] = [b0: 2, p: 2200] argsort(y.all[b0, :1], p)\n\
         hidden y.part: i64[2, 2200] = [b0: 2, p: 2200] y.weight[b0, y.order[b0, p] - 1100] else 0\n\
         hidden y.above: i64[2, 2200] = [b0: 2, p: 2200 | q: 2200] sum y.part[b0, q] if q >= p\n\
         hidden y.found: i64[2, 1100] = [b0: 2, i: 1100 | p: 2200] sum y.above[b0, p] if i == y.order[b0, p]\n\
         y: i64[2, 1100] = [x0: 2, x1: 1100] y.found[x0, x1]",
    );
}

#[test]
fn others_stay() {
    for statement in [
        // Few points, a value of both, a walk, a choice between two numbers, a position.
        "y: i64[1100] = [i: 1100 | j: 70] sum i64(x[j] < v[i])",
        "y: i64[1100] = [i: 1100 | j: 1100] sum i64(v[j] * v[i] < 0.5_f64)",
        "y: f64[1100] = [i: 1100 | j: 1100] sum x[j] if j <= i",
        "y: i64[1100] = [i: 1100 | j: 1100] sum where(x[j] < v[i], 1, 2)",
        "y: i64[1100] = [i: 1100 | j: 1100] argmax x[j] if x[j] <= v[i]",
    ] {
        becomes(statement, statement);
    }
}
