//! Values beside a list that are computed of few elements.

use super::{input, listing, program};
use einc_core::einsum::interpret::interpret;
use einc_core::lists::with_formats;

/// The program in which `A` lists 90 elements; its values are those of the dense one.
fn over(text: &str) -> String {
    let text = format!(
        "input A: f32[40, 20] = unbound\ninput x: f32[20] = unbound\ninput d: f32[20] = unbound\ninput u: f32[40] = unbound\n{text}\n\
         output x\noutput d\noutput u"
    );
    let dense = program(&text);
    let lists = with_formats(&dense, &listing(90));
    let of = |program| interpret(program, &|tensor| input(tensor, &[40, 20], 90)).unwrap();
    for (a, b) in of(&dense).iter().zip(&of(&lists)) {
        for (x, y) in a.data.iter().zip(&b.data) {
            let (x, y) = (x.as_f64(), y.as_f64());
            let near = (x - y).abs() <= 1e-4 * (1.0 + x.abs());
            assert!(near, "{x} or {y}\n{dense}\n{lists}");
        }
    }
    let lines = lists.to_string();
    let lines = lines
        .lines()
        .filter(|line| !line.contains("put ") && !line.contains("= listed"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn values_of_a_column_are_computed_once_a_column() {
    insta::assert_snapshot!(over(
        "y: f32[40] = [i: 40 | j: 20] sum A[i, j] * (x[j] / (d[j] * d[j] + 1.0))\noutput y"
    ), @r#"
    hidden y.beside: f32[20] = [j: 20] x[j] / (d[j] * d[j] + 1.0)
    y: f32[40] = [i: 40 | e: 90] sum A.values[e] * y.beside[A.at1[e]] if and(A.starts0[i] <= e, e < A.starts0[i + 1])
    "#);
    // In a branch, too. A value of both indices and a number times an element stay, and of the rows there are too many.
    insta::assert_snapshot!(over(
        "y: f32[40] = [i: 40 | j: 20] sum where(A[i, j] > 0.0, exp(x[j]) + u[i], 0.0)\n\
         z: f32[20] = [j: 20 | i: 40] sum A[i, j] * exp(u[i]) * (2.0 * x[j])\noutput y\noutput z"
    ), @r#"
    hidden y.beside: f32[20] = [j: 20] exp(x[j])
    y: f32[40] = [i: 40 | e: 90] sum where(A.values[e] > 0.0, y.beside[A.at1[e]] + u[A.at0[e]], 0.0) if i == A.at0[e]
    z: f32[20] = [j: 20 | e: 90] sum A.values[e] * exp(u[A.at0[e]]) * (2.0 * x[A.at1[e]]) if j == A.at1[e]
    "#);
}
