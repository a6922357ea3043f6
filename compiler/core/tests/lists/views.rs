//! Lists that are read at moved places: their text, and their values.

use super::{assert_same, needed, over_lists};

#[test]
fn places_are_moved() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[12, 20] = unbound\ninput x: f32[20] = unbound\n\
         y: f32[11] = [i: 11 | k: 20] sum A[i + 1, k] * x[k]\n\
         z: f32[11] = [i: 11 | k: 20] max A[i + 1, k]\noutput y\noutput z",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input x: f32[20] = unbound
    hidden A.part.values: f32[5] = [e: 5] where(A.at0[e] - 1 >= 0, A.values[e], 0.0)
    hidden A.part.at0: u32[5] = [e: 5] let $0 = A.at0[e] - 1 in where($0 >= 0, $0, 0)
    hidden A.part.at1: u32[5] = [e: 5] where(A.at0[e] - 1 >= 0, A.at1[e], 0)
    y: f32[11] = [i: 11 | e: 5] sum A.part.values[e] * x[A.part.at1[e]] if and(i == A.part.at0[e], A.part.values[e] != 0.0)
    hidden z.listed: f32[11] = [i: 11 | e: 5] max let $0 = A.part.values[e] != 0.0 in A.part.values[e] if and(and(i == A.part.at0[e], $0), $0)
    hidden z.count: i64[11] = [i: 11 | e: 5] sum let $0 = A.part.values[e] != 0.0 in 1 if and(and(i == A.part.at0[e], $0), $0)
    z: f32[11] = [i: 11] where(z.count[i] < 20, max(z.listed[i], 0.0), z.listed[i])
    output y
    output z
    "#);
    // A row, a diagonal, and every other column from behind.
    insta::assert_snapshot!(over_lists(
        "input A: f32[12, 20] = unbound\nr: f32[20] = [k: 20] A[3, k]\nt: f32[] = [| i: 12] sum A[i, i]\n\
         y: f32[12] = [i: 12 | k: 20] sum A[i, 19 - 2 * k] else 0.0\noutput r\noutput t\noutput y",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    hidden A.part.values: f32[5] = [e: 5] where(A.at0[e] == 3, A.values[e], 0.0)
    hidden A.part.at0: u32[5] = [e: 5] where(A.at0[e] == 3, A.at1[e], 0)
    hidden r.values: f32[5] = [e: 5] A.part.values[e]
    r: f32[20] = [k: 20 | e: 5] sum r.values[e] if and(k == A.part.at0[e], A.part.values[e] != 0.0)
    hidden A.part.values.1: f32[5] = [e: 5] where(and(A.at1[e] < 12, A.at0[e] == A.at1[e]), A.values[e], 0.0)
    t: f32[] = [| e: 5] sum A.part.values.1[e] if A.part.values.1[e] != 0.0
    hidden A.part.values.2: f32[5] = [e: 5] where(rem(19 - A.at1[e], 2) == 0, A.values[e], 0.0)
    hidden A.part.at0.2: u32[5] = [e: 5] where(rem(19 - A.at1[e], 2) == 0, A.at0[e], 0)
    y: f32[12] = [i: 12 | e: 5] sum A.part.values.2[e] if and(i == A.part.at0.2[e], A.part.values.2[e] != 0.0)
    output r
    output t
    output y
    "#);
}

#[test]
fn moved_places_have_the_values() {
    for statement in [
        "y: f32[8] = [i: 8 | k: 20] sum A[i + 4, k] * x[k]",
        "y: f32[20] = [k: 20 | i: 12] max A[i - 3, k] else 0.0",
        "y: f32[12] = [i: 12 | k: 20] mean A[11 - i, 19 - k] * x[k]",
        "y: f32[12, 12] = [i: 12, j: 12] A[j, 3 * i] else 0.0",
        "y: f32[7] = [k: 7 | i: 4] sum (A[3 * i + 2, 3 * k - 1] else 0.0) * d[i]",
        "y: f32[20] = [k: 20] A[5, k] * x[k] - A[0, k]",
        "y: f32[12] = [i: 12] A[i, 7] + A[i, i] * A[0, 0]",
        "y: f32[] = [| i: 11, k: 19] sum (A[i + 1, k + 1] - A[i, k]) * x[k]",
        "y: f32[12] = [i: 12 | k: 20] sum A[i, k] * (A[i, k + 1] else 0.0) * (A[i - 1, k] else 0.0)",
    ] {
        let text = format!(
            "input A: f32[12, 20] = unbound\ninput d: f32[12] = unbound\ninput x: f32[20] = unbound\n{statement}\noutput y"
        );
        let dense = needed(&text);
        let lists = over_lists(&dense.to_string(), 7);
        let reads_all = lists.to_string().contains("input A");
        assert!(!reads_all, "{lists}");
        assert_same((&dense, &lists), &[12, 20], statement);
    }
}
