//! Sums over the rows of a list, from where each row begins.

use super::{listing, needed};
use einc_core::lists::with_formats;

/// The statements over a list of 40 elements.
fn over(statement: &str) -> String {
    let text = format!(
        "input A: f32[12, 20] = load(\"a.mtx\")\ninput x: f32[20] = unbound\ninput u: f32[20, 3] = unbound\n{statement}\noutput y\n"
    );
    with_formats(&needed(&text), &listing(40)).to_string()
}

#[test]
fn a_product_goes_from_start_to_start() {
    insta::assert_snapshot!(over("y: f32[12] = [i: 12 | j: 20] sum A[i, j] * x[j]"), @r#"
    hidden A.values: f32[40] = listed("A", f32, values, load("a.mtx"))
    hidden A.at1: u32[40] = listed("A", f32, 1, load("a.mtx"))
    input x: f32[20] = unbound
    hidden A.starts0: u32[13] = listed("A", f32, starts, load("a.mtx"))
    y: f32[12] = [i: 12 | e: 40] sum A.values[e] * x[A.at1[e]] if and(A.starts0[i] <= e, e < A.starts0[i + 1])
    output y
    "#);
}

#[test]
fn other_sums_read_the_row_of_each_element() {
    for statement in [
        // A row for each element, terms that are computed, and as many rows as elements or more.
        "y: f32[12, 3] = [i: 12, k: 3 | j: 20] sum A[i, j] * u[j, k]",
        "y: f32[12] = [i: 12 | j: 20] sum where(A[i, j] != 0.0_f32, A[i, j] * exp(x[j]), 0.0_f32)",
    ] {
        let found = over(statement);
        assert!(!found.contains("starts"), "{found}");
    }
    let many = "input A: f32[40, 20] = load(\"a.mtx\")\ninput x: f32[20] = unbound\n\
                y: f32[40] = [i: 40 | j: 20] sum A[i, j] * x[j]\noutput y\n";
    let found = with_formats(&needed(many), &listing(40)).to_string();
    assert!(!found.contains("starts"), "{found}");
}
