//! Products of two lists that have a list: their text, and their values.

use super::{assert_same, assert_same_of, needed, places, program};
use ein_plan::source::Listing;
use einc_core::einsum::{Program, verify::verify};
use einc_core::lists::with_lists;
use std::collections::BTreeMap;

const SIDE: u64 = 60;

/// The program over lists of seven elements of `A` and nine of `B`, of which each row and column is counted.
fn over_counted_lists(program: &Program) -> Program {
    over_lists_of(7, program)
}

fn over_lists_of(count: u64, program: &Program) -> Program {
    let listing = |name: &str| {
        let mut dims = vec![vec![0; SIDE as usize]; 2];
        for place in places(name, count, SIDE * SIDE) {
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
    hidden A.at1: u32[7] = listed("A", f32, 1, unbound)
    input x: f32[60] = unbound
    hidden A.starts0: u32[61] = listed("A", f32, starts, unbound)
    hidden A.ends: i64[60] = [x: 60] A.starts0[x + 1]
    hidden C.places: i64[7] = [p: 7] listed_places(A.ends[:1], A.at1[:1], A.ends[:1], A.at1[:1], 60, p)
    hidden C.values: f32[7] = [e: 7] listed_sums(A.ends[:1], A.at1[:1], A.values[:1], A.ends[:1], A.at1[:1], A.values[:1], C.places[:1], 60, e)
    hidden C.at0: u32[7] = [e: 7] floordiv(C.places[e], 60)
    hidden C.at1: u32[7] = [e: 7] rem(C.places[e], 60)
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
        let has_list = lists.tensors.iter().any(|tensor| tensor.name == "C.places");
        assert_eq!(has_list, is_over, "{lists}");
        assert_same((&dense, &lists), &[SIDE, SIDE], statement);
    }
}

#[test]
fn a_product_of_many_elements_is_computed_by_row() {
    let text = |statement: &str| {
        format!(
            "input A: f32[60, 60] = unbound\ninput B: f32[60, 60] = unbound\ninput d: f32[60] = unbound\n{statement}\noutput C"
        )
    };
    let product = "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[i, k] * B[j, k] * d[i]";
    let lists = over_lists_of(130, &needed(&text(product)));
    insta::assert_snapshot!(lists, @r#"
    hidden A.values: f32[130] = listed("A", f32, values, unbound)
    hidden A.at1: u32[130] = listed("A", f32, 1, unbound)
    hidden B.values: f32[132] = listed("B", f32, values, unbound)
    hidden B.at0: u32[132] = listed("B", f32, 0, unbound)
    hidden B.at1: u32[132] = listed("B", f32, 1, unbound)
    input d: f32[60] = unbound
    hidden A.starts0: u32[61] = listed("A", f32, starts, unbound)
    hidden A.ends: i64[60] = [x: 60] A.starts0[x + 1]
    hidden B.count: i64[60] = [x: 60 | f: 132] sum 1 if x == B.at1[f]
    hidden B.ends: i64[60] = [x: 60 | y: 60] sum B.count[y] if y <= x
    hidden B.order: i64[132] = [f: 132] argsort(B.at1[:1], f)
    hidden B.along: u32[132] = [f: 132] B.at0[B.order[f]]
    hidden B.terms: f32[132] = [f: 132] B.values[B.order[f]]
    hidden C.product: f32[60, 60] = [i: 60, j: 60] listed_product(A.ends[:1], A.at1[:1], A.values[:1], B.ends[:1], B.along[:1], B.terms[:1], j)
    C: f32[60, 60] = [i: 60, j: 60] d[i] * C.product[i, j]
    output C
    "#);
    for statement in [
        product,
        "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum A[k, i] * d[k] * B[k, j]",
        "C: f32[60, 60] = [j: 60, i: 60 | k: 60] sum B[i, k] * A[k, j]",
        "C: f32[60, 60] = [i: 60, j: 60 | k: 60] sum tanh(A[i, k]) * (B[k, j] / 2.0)",
    ] {
        let dense = needed(&text(statement));
        let lists = over_lists_of(130, &dense);
        let text = lists.to_string();
        assert!(
            text.contains("listed_product(") && !text.contains("listed_places("),
            "{text}"
        );
        assert_same_of((&dense, &lists), (&[SIDE, SIDE], 130), statement);
    }
}
