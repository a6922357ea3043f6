//! Sums over inputs of which a file lists few elements: their text as sums over lists, and their values.
#![allow(clippy::unwrap_used)]

use ein_plan::{ListColumn, Scalar, Source};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{
    Definition, Program, Tensor, is_sparse, parse::parse, verify::verify, with_lists,
};
use std::collections::BTreeMap;

fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&program), Ok(()), "{text}");
    program
}

/// The program over lists of `count` elements of `A`, verified.
fn over_lists(text: &str, count: u64) -> Program {
    let result = with_lists(&program(text), &BTreeMap::from([("A".to_owned(), count)]));
    assert_eq!(verify(&result), Ok(()), "{result}");
    assert_eq!(program(&result.to_string()), result);
    result
}

/// A small number that depends on a name and an element.
fn number(name: &str, at: u64) -> i64 {
    let seed = name
        .bytes()
        .fold(7, |seed: u64, byte| seed * 31 + u64::from(byte));
    (seed.wrapping_mul(at + 11) >> 3) as i64 % 7 - 3
}

/// Places of the elements of `A` that are not 0, ascending.
fn places(count: u64, elements: u64) -> Vec<u64> {
    (0..count).map(|n| n * elements / count + n % 2).collect()
}

/// Values of every input, dense or of a list of `A` of that shape.
fn input(tensor: &Tensor, shape: &[u64], count: u64) -> Values {
    let elements: u64 = shape.iter().product();
    let listed = places(count, elements);
    let number = |name: &str, at: u64| Scalar::Float(number(name, at) as f64);
    let data = match &tensor.definition {
        Definition::Source(Source::Listed { column, .. }) => match column {
            ListColumn::Values => listed.iter().map(|at| number("A", *at)).collect(),
            ListColumn::Positions(dim) => {
                let inner: u64 = shape[*dim as usize + 1..].iter().product();
                let position = |at: &u64| Scalar::Int((at / inner % shape[*dim as usize]) as i64);
                listed.iter().map(position).collect()
            }
        },
        _ => {
            let elements: u64 = tensor.shape.iter().product();
            let value = |at: u64| match tensor.name == "A" && !listed.contains(&at) {
                true => Scalar::Float(0.0),
                false => number(&tensor.name, at),
            };
            (0..elements).map(value).collect()
        }
    };
    Values {
        shape: tensor.shape.clone(),
        data,
    }
}

#[test]
fn a_product_gathers_and_scatters() {
    insta::assert_snapshot!(over_lists(
        "input A: f32[12, 20] = load(\"a.mtx\")\ninput X: f32[20, 3] = unbound\n\
         C: f32[12, 3] = [i: 12, j: 3 | k: 20] sum A[i, k] * X[k, j]\noutput C",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, load("a.mtx"))
    hidden A.at0: i64[5] = listed("A", f32, 0, load("a.mtx"))
    hidden A.at1: i64[5] = listed("A", f32, 1, load("a.mtx"))
    input X: f32[20, 3] = unbound
    C: f32[12, 3] = [i: 12, j: 3 | e: 5] sum A.values[e] * X[A.at1[e], j] if i == A.at0[e]
    output C
    "#);
    // An index that both sum over is read from the list; others stay.
    insta::assert_snapshot!(over_lists(
        "input A: f32[12, 20] = unbound\ninput X: f32[12, 20, 3] = unbound\n\
         s: f32[] = [ | i: 12, j: 3, k: 20] sum 2.0 * (A[i, k] * X[i, k, j]) if j < 2\noutput s",
        5
    ), @r#"
    hidden A.values: f32[5] = listed("A", f32, values, unbound)
    hidden A.at0: i64[5] = listed("A", f32, 0, unbound)
    hidden A.at1: i64[5] = listed("A", f32, 1, unbound)
    input X: f32[12, 20, 3] = unbound
    s: f32[] = [| e: 5, j: 3] sum 2.0 * (A.values[e] * X[A.at0[e], A.at1[e], j]) if j < 2
    output s
    "#);
}

#[test]
fn sums_over_lists_are_the_sums() {
    for (text, shape) in [
        (
            "input A: f32[12, 20] = unbound\ninput X: f32[20, 3] = unbound\n\
          C: f32[12, 3] = [i: 12, j: 3 | k: 20] sum A[i, k] * X[k, j]\noutput C",
            vec![12, 20],
        ),
        (
            "input A: f32[12, 20] = unbound\ninput X: f32[12, 3] = unbound\n\
          C: f32[3, 20] = [j: 3, k: 20 | i: 12] sum -X[i, j] * A[i, k] / 2.0\noutput C",
            vec![12, 20],
        ),
        (
            "input A: f32[12, 20] = unbound\ninput X: f32[12, 20, 3] = unbound\n\
          s: f32[] = [ | i: 12, j: 3, k: 20] sum 2.0 * (A[i, k] * X[i, k, j]) if j < i\noutput s",
            vec![12, 20],
        ),
        (
            "input A: f32[160] = unbound\ninput X: f32[160, 3] = unbound\n\
          y: f32[3] = [j: 3 | k: 160] sum A[k] * X[k, j]\noutput y",
            vec![160],
        ),
        (
            "input A: f32[4, 6, 8] = unbound\ninput U: f32[6, 3] = unbound\ninput V: f32[8, 3] = unbound\n\
          M: f32[4, 3] = [i: 4, r: 3 | j: 6, k: 8] sum A[i, j, k] * U[j, r] * V[k, r] * f32(i + 1)\noutput M",
            vec![4, 6, 8],
        ),
        // Indices that run over a part of the dimension, and beyond it.
        (
            "input A: f32[12, 20] = unbound\ninput X: f32[9, 3] = unbound\n\
          C: f32[7, 3] = [i: 7, j: 3 | k: 9] sum A[i, k] * X[k, j]\noutput C",
            vec![12, 20],
        ),
        (
            "input A: f32[12, 20] = unbound\n\
          C: f32[15] = [i: 15 | k: 22] sum (A[i, k] else 0.0) * f32(k + 1)\noutput C",
            vec![12, 20],
        ),
        (
            "input A: f32[12, 20] = unbound\n\
          d: f32[12] = [i: 12 | k: 20] sum A[i, k]\nC: f32[20] = [k: 20 | i: 12] sum A[i, k] * d[i]\noutput C",
            vec![12, 20],
        ),
    ] {
        let (dense, lists) = (program(text), over_lists(text, 5));
        assert!(
            lists.tensors.iter().all(|tensor| tensor.name != "A"),
            "{lists}"
        );
        let of =
            |program: &Program| interpret(program, &|tensor| input(tensor, &shape, 5)).unwrap();
        assert_eq!(of(&dense), of(&lists), "{lists}");
    }
}

#[test]
fn what_needs_all_elements_keeps_them() {
    for statement in [
        // No factor, twice a factor, no sum of products, no place of its own, no sum at all.
        "C: f32[12] = [i: 12 | k: 20] sum A[i, k] + 1.0",
        "C: f32[12] = [i: 12 | k: 20] sum A[i, k] * A[i, k]",
        "C: f32[12] = [i: 12 | k: 20] sum exp(A[i, k])",
        "C: f32[12] = [i: 12 | k: 20] sum 1.0 / A[i, k]",
        "C: f32[12] = [i: 12 | k: 20] max A[i, k]",
        "C: f32[12] = [i: 12 | k: 12] sum A[i, i] * f32(k)",
        "C: f32[12] = [i: 12 | k: 20] sum A[i, k - 1] else 0.0",
        "C: f32[12] = [i: 12 | k: 22] sum A[i, k] else 2.0",
        "C: f32[12, 20] = [i: 12, k: 20] A[i, k] * 2.0",
    ] {
        let text = format!("input A: f32[12, 20] = unbound\n{statement}\noutput C");
        assert_eq!(over_lists(&text, 5), program(&text));
    }
}

#[test]
fn few_enough() {
    assert!(is_sparse(&[1000, 1000], 31_250));
    assert!(!is_sparse(&[1000, 1000], 31_251));
    assert!(is_sparse(&[u64::MAX, 8], 1 << 40));
    assert!(!is_sparse(&[], 0));
}
