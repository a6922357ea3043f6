//! Rows and elements of lists that data name: their text, and their values.

use super::{assert_same, needed, over_lists};

#[test]
fn reductions_of_named_rows_are_rows_of_reductions() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[60, 60] = unbound\ninput p: u32[4] = unbound\ninput c: f32[4] = unbound\ninput U: f32[60, 3] = unbound\n\
         y: f32[4, 3] = [k: 4, h: 3 | j: 60] sum A[p[k], j] * c[k] * U[j, h]\noutput y",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input p: u32[4] = unbound
    input c: f32[4] = unbound
    input U: f32[60, 3] = unbound
    hidden A.rows: f32[60, 3] = [e: 60, h: 3 | e1: 5] sum A.values[e1] * U[A.at1[e1], h] if e == A.at0[e1]
    y: f32[4, 3] = [k: 4, h: 3] c[k] * A.rows[p[k], h]
    output y
    "#);
}

#[test]
fn named_elements_are_looked_for() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[60, 60] = unbound\ninput p: u32[4] = unbound\ninput q: u32[4] = unbound\n\
         y: f32[4] = [k: 4] A[p[k], q[k]] * 2.0\nz: f32[4] = [k: 4] A[p[k] + 1, q[k]] else 0.0\noutput y\noutput z",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input p: u32[4] = unbound
    input q: u32[4] = unbound
    hidden y.key: i64[4] = [k: 4] within(p[k], 60) * 60 + within(q[k], 60)
    hidden A.key: i64[5] = [e: 5] A.at0[e] * 60 + A.at1[e]
    hidden y.place: i64[4] = [i0: 4] find(A.key[:1], y.key[i0])
    y: f32[4] = [k: 4] A.values[y.place[k]] else 0.0 * 2.0
    hidden z.key: i64[4] = [k: 4] let $0 = p[k] + 1 in where(and(and(and($0 >= 0, $0 < 60), q[k] >= 0), q[k] < 60), $0 * 60 + q[k], -1)
    hidden z.place: i64[4] = [i0: 4] find(A.key[:1], z.key[i0])
    z: f32[4] = [k: 4] A.values[z.place[k]] else 0.0
    output y
    output z
    "#);
}

#[test]
fn named_rows_and_elements_have_the_values() {
    for statement in [
        "y: f32[4, 3] = [k: 4, h: 3 | j: 60] sum A[p[k], j] * U[j, h] * c[k]",
        "y: f32[4] = [k: 4 | j: 60] max A[p[k], j] * c[0]",
        "y: f32[4] = [k: 4 | i: 60] sum A[i, p[k]] * A[i, i]",
        "y: f32[60, 3] = [j: 60, h: 3 | k: 4] sum A[p[k], j] * c[k] * U[q[k], h]",
        "y: f32[] = [| k: 4, i: 60, h: 3] sum A[i, p[k]] * U[i, h]",
        "y: f32[60] = [j: 60 | k: 4] sum A[p[k] + q[k], j] * U[j, 1] * c[k]",
        "y: f32[4] = [k: 4] A[p[k], q[k]] * c[k]",
        "y: f32[4, 4] = [k: 4, h: 4] A[p[k], q[h]]",
        "y: f32[4] = [k: 4] A[i64(p[k]) - 3, q[k] * 30] else 0.0",
        "y: f32[4] = [k: 4] A[q[k], k + i64(p[k])]",
        "y: f32[] = [| k: 4] sum A[p[k], q[k]] if k > 1",
        "y: f32[] = [] A[5, 7] + A[0, 0]",
    ] {
        let text = format!(
            "input A: f32[60, 60] = unbound\ninput p: u32[4] = unbound\ninput q: u32[4] = unbound\n\
             input c: f32[4] = unbound\ninput U: f32[60, 3] = unbound\n{statement}\noutput y"
        );
        let dense = needed(&text);
        let lists = over_lists(&dense.to_string(), 7);
        let reads_all = lists.to_string().contains("input A");
        assert!(!reads_all || statement.contains("if"), "{lists}");
        assert_same((&dense, &lists), &[60, 60], statement);
    }
}
