//! Products of two lists that have a list: their text, and their values.

use super::{assert_same, needed, places, program};
use ein_plan::source::Listing;
use einc_core::einsum::{Program, verify::verify};
use einc_core::lists::with_lists;
use std::collections::BTreeMap;

const SIDE: u64 = 60;

/// The program over lists of seven elements of `A` and nine of `B`, of which each row and column is counted.
fn over_counted_lists(program: &Program) -> Program {
    let listing = |name: &str| {
        let mut dims = vec![vec![0; SIDE as usize]; 2];
        for place in places(name, 7, SIDE * SIDE) {
            dims[0][(place / SIDE) as usize] += 1;
            dims[1][(place % SIDE) as usize] += 1;
        }
        (name.to_owned(), Listing::of(dims))
    };
    let result = with_lists(program, &BTreeMap::from(["A", "B"].map(listing)));
    assert_eq!(verify(&result), Ok(()), "{result}");
    assert_eq!(super::program(&result.to_string()), result);
    result
}

#[test]
fn elements_meet_rows() {
    let text = "input A: f32[60, 60] = unbound\ninput x: f32[60] = unbound\n\
        C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * A[k, j]\n\
        y: f32[60] = [i: 60 | j: 60] sum tanh(C[i, j]) * x[j]\noutput y";
    insta::assert_snapshot!(over_counted_lists(&program(text)), @r#"
    hidden A.values: f32[7] = listed("A", f32, values, unbound)
    hidden A.at0: u32[7] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[7] = listed("A", f32, 1, unbound)
    input x: f32[60] = unbound
    hidden A.count: i64[60] = [x: 60 | f: 7] sum 1 if x == A.at0[f]
    hidden A.ends: i64[60] = [x: 60 | y: 60] sum A.count[y] if y <= x
    hidden C.meets: i64[7] = [e: 7] A.ends[A.at1[e]] - A.ends[A.at1[e] - 1] else 0
    hidden C.upto: i64[7] = [e: 7 | y: 7] sum C.meets[y] if y <= e
    hidden C.first: i64[7] = [p: 7 | e: 7] max e if p == C.upto[e] - C.meets[e]
    hidden C.one: i64[7] = [p: 7 | q: 7] max C.first[q] if q <= p
    hidden C.other: i64[7] = [p: 7] p + A.ends[A.at1[C.one[p]] else 0] else 0 - C.upto[C.one[p]] else 0
    hidden C.key: i64[7] = [p: 7] where(p < C.upto[6], A.at0[C.one[p]] else 0 * 60 + A.at1[C.other[p]] else 0, 3599)
    hidden C.product: f32[7] = [p: 7] where(p < C.upto[6], A.values[C.one[p]] else 0.0 * A.values[C.other[p]] else 0.0, 0.0)
    hidden C.order: i64[7] = [p: 7] argsort(C.key[:1], p)
    hidden C.sorted: i64[7] = [p: 7] C.key[C.order[p]] else 0
    hidden C.begins: i64[7] = [p: 7] where(C.sorted[p] == C.sorted[p - 1] else -1, 0, 1)
    hidden C.number: i64[7] = [p: 7 | q: 7] sum C.begins[q] if q <= p
    hidden C.element: i64[7] = [p: 7] C.number[p] - 1
    hidden C.values: f32[7] = [e: 7 | p: 7] sum C.product[C.order[p]] else 0.0 if e == C.element[p]
    hidden C.most: i64[7] = [e: 7 | p: 7] max C.sorted[p] if e == C.element[p]
    hidden C.at: i64[7] = [e: 7] where(C.most[e] < 0, 3599, C.most[e])
    hidden C.at0: u32[7] = [e: 7] floordiv(C.at[e], 60)
    hidden C.at1: u32[7] = [e: 7] rem(C.at[e], 60)
    y: f32[60] = [i: 60 | e: 7] sum tanh(C.values[e]) * x[C.at1[e]] if and(i == C.at0[e], C.values[e] != 0.0)
    output y
    "#);
}

#[test]
fn products_have_their_values() {
    for (statement, is_over) in [
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * A[k, j]",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * A[j, k]",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[k, i] * A[k, j]",
            true,
        ),
        (
            "C: f32[60, 60] = [j: 60, i: 60 | k: 60] sum A[i, k] * A[j, k]",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum tanh(A[i, k]) * (A[k, j] / 2.0)",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * B[k, j]",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum B[i, k] * A[j, k]",
            true,
        ),
        // Conditions and parts of the extents are left to other statements.
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[k, i] * d[k] * A[j, k]",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * A[k, j] if i < j",
            false,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * A[k, j] * d[i]",
            true,
        ),
        (
            "C: f32[60, 60] = [i: 60, j: 60 | k: 50] sum A[i, k] * A[k, j]",
            false,
        ),
    ] {
        let text = format!(
            "input A: f32[60, 60] = unbound\ninput B: f32[60, 60] = unbound\ninput d: f32[60] = unbound\n{statement}\n\
             S: f32[60] = [i: 60 | j: 60] sum cos(C[i, j]) * d[j]\nm: f32[60] = [j: 60 | i: 60] max C[i, j]\n\
             t: f32[] = [| i: 60, j: 60] sum C[i, j] * A[i, j]\noutput C\noutput S\noutput m\noutput t"
        );
        let dense = needed(&text);
        let lists = over_counted_lists(&dense);
        let has_list = lists
            .tensors
            .iter()
            .any(|tensor| tensor.name == "C.product");
        assert_eq!(has_list, is_over, "{lists}");
        assert_same((&dense, &lists), &[SIDE, SIDE], statement);
    }
}
