//! Short windows over a list.

use super::{input, listing, needed};
use einc_core::einsum::interpret::interpret;
use einc_core::lists::with_formats;

/// The statements of the program in which `A` lists 9 elements; its values are those of the dense one.
fn over(statements: &str) -> String {
    let dense = needed(&format!(
        "input A: f32[12, 20] = unbound\ninput x: f32[20] = unbound\n{statements}\noutput y"
    ));
    let lists = with_formats(&dense, &listing(9));
    let of = |program| interpret(program, &|tensor| input(tensor, &[12, 20], 9)).unwrap();
    for (x, y) in of(&dense)[0].data.iter().zip(&of(&lists)[0].data) {
        let (x, y) = (x.as_f64(), y.as_f64());
        let near = (x - y).abs() <= 1e-4 * (1.0 + x.abs());
        assert!(near, "{x} or {y}\n{dense}\n{lists}");
    }
    lists.to_string()
}

#[test]
fn each_of_its_values_has_a_term() {
    insta::assert_snapshot!(over(
        "y: f32[12] = [i: 12 | r: 2, j: 20] sum A[i + r - 1, j] else 0.0 * x[j]"
    ), @r#"
    hidden A.values: f32[9] = listed("A", f32, values, unbound)
    hidden A.at0: u32[9] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[9] = listed("A", f32, 1, unbound)
    input x: f32[20] = unbound
    hidden A.part.values: f32[9] = [e: 9] where(A.at0[e] - -1 < 12, A.values[e], 0.0)
    hidden A.part.at0: u32[9] = [e: 9] let $0 = A.at0[e] - -1 in where($0 < 12, $0, 0)
    hidden A.part.at1: u32[9] = [e: 9] where(A.at0[e] - -1 < 12, A.at1[e], 0)
    hidden y.term: f32[12] = [i: 12 | e: 9] sum A.part.values[e] * x[A.part.at1[e]] if and(i == A.part.at0[e], A.part.values[e] != 0.0)
    hidden y.term.1: f32[12] = [i: 12 | e: 9] sum A.values[e] * x[A.at1[e]] if i == A.at0[e]
    y: f32[12] = [i: 12] y.term[i] + y.term.1[i]
    output y
    "#);
    let both =
        over("y: f32[12] = [i: 12 | r: 3, s: 2, j: 20] sum A[i + r - 1, j - s] else 0.0 * x[j]");
    assert!(
        both.contains("listed(") && !both.contains("input A"),
        "{both}"
    );
}

#[test]
fn others_stay() {
    // A long one, and one of which the largest value is taken.
    for statement in [
        "y: f32[2] = [i: 2 | r: 10, j: 20] sum A[i + r, j] * x[j]",
        "y: f32[12] = [i: 12 | j: 20, s: 3] max A[i, j + s] else 0.0 * x[j]",
    ] {
        let kept = over(statement);
        assert!(
            kept.contains("input A") && kept.contains(statement),
            "{kept}"
        );
    }
}
