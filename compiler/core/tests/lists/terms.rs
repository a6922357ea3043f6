//! Sums that lists make up in part: their text as sums of terms, and their values.

use super::{assert_same, over_lists, program};

#[test]
fn each_term_is_a_sum_of_its_own() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[60, 60] = unbound\ninput m: f32[60] = unbound\ninput x: f32[60] = unbound\n\
         y: f32[60] = [i: 60 | k: 60] sum (A[i, k] - m[i]) * x[k]\noutput y",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input m: f32[60] = unbound
    input x: f32[60] = unbound
    hidden y.term: f32[60] = [i: 60 | e: 5] sum A.values[e] * x[A.at1[e]] if i == A.at0[e]
    hidden y.term.1: f32[] = [| k: 60] sum x[k]
    y: f32[60] = [i: 60] y.term[i] - m[i] * y.term.1[]
    output y
    "#);
    // A matrix and its transpose; a number where nothing is listed; a value there that has one index less.
    insta::assert_snapshot!(over_lists(
        "input A: f32[60, 60] = unbound\ninput x: f32[60] = unbound\n\
         y: f32[60] = [i: 60 | k: 60] sum (A[i, k] - A[k, i]) * x[k]\n\
         z: f32[60] = [i: 60 | k: 60] sum exp(A[i, k]) * x[k]\n\
         w: f32[60] = [i: 60 | k: 60] sum abs(A[i, k] - x[k])\noutput y\noutput z\noutput w",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
    input x: f32[60] = unbound
    hidden y.term: f32[60] = [i: 60 | e: 5] sum A.values[e] * x[A.at1[e]] if i == A.at0[e]
    hidden y.term.1: f32[60] = [i: 60 | e: 5] sum A.values[e] * x[A.at0[e]] if i == A.at1[e]
    y: f32[60] = [i: 60] y.term[i] - y.term.1[i]
    hidden z.term: f32[60] = [i: 60 | e: 5] sum (exp(A.values[e]) - 1.0) * x[A.at1[e]] if i == A.at0[e]
    hidden z.term.1: f32[] = [| k: 60] sum x[k]
    z: f32[60] = [i: 60] z.term[i] + 1.0 * z.term.1[]
    hidden w.term: f32[60] = [i: 60 | e: 5] sum let $0 = x[A.at1[e]] in where(A.values[e] != 0.0, abs(A.values[e] - $0) - abs(0.0 - $0), 0.0) if i == A.at0[e]
    hidden w.term.1: f32[] = [| k: 60] sum abs(0.0 - x[k])
    w: f32[60] = [i: 60] w.term[i] + w.term.1[]
    output y
    output z
    output w
    "#);
}

#[test]
fn sums_of_terms_are_the_sums() {
    for statement in [
        "y: f32[12] = [i: 12 | k: 20] mean (A[i, k] - d[i]) * x[k]",
        "y: f32[12, 3] = [i: 12, h: 3 | k: 20] sum (A[i, k] - x[k]) * U[k, h] / (d[i] + 9.0)",
        "y: f32[3] = [h: 3 | i: 12, k: 20] sum (A[i, k] * x[k] - 2.0) * U[k, h] if k < 7",
        "y: f32[20] = [k: 20 | i: 12] sum -(x[k] - A[i, k] * d[i]) + B[i, k] * d[i]",
        "y: f32[] = [| i: 12, k: 20] sum cos(A[i, k]) * d[i] - exp(B[i, k] / 9.0) / (x[k] + 9.0)",
        "y: f32[12] = [i: 12 | k: 20] sum max(A[i, k], x[k]) * x[k]",
        "y: f32[12] = [i: 12 | k: 20] logsumexp A[i, k] * x[k]",
        "y: f32[] = [| i: 12, k: 20] sum (A[i, k] + where(i == k, 1.0, 0.0)) * x[k] - d[i]",
        "y: f32[12] = [i: 12 | k: 20, h: 3] sum (A[i, k] - x[k]) * d[i]",
    ] {
        let text = format!(
            "input A: f32[12, 20] = unbound\ninput B: f32[12, 20] = unbound\ninput U: f32[20, 3] = unbound\n\
             input d: f32[12] = unbound\ninput x: f32[20] = unbound\n{statement}\noutput y"
        );
        let dense = program_of(&text);
        let lists = over_lists_of(&text);
        assert!(!lists.contains("input A"), "{lists}");
        assert_same((&dense, &program(&lists)), &[12, 20], statement);
    }
}

/// The program, without inputs that it does not read.
fn program_of(text: &str) -> einc_core::einsum::Program {
    super::needed(text)
}

/// The text of the program over lists.
fn over_lists_of(text: &str) -> String {
    over_lists(&program_of(text).to_string(), 7).to_string()
}
