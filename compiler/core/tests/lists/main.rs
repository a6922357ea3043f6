//! Sums over inputs of which a file lists few elements: their text as sums over lists, and their values.
#![allow(clippy::unwrap_used)]

use ein_plan::source::Listing;
use ein_plan::{DType, ListColumn, Scalar, Source};
use einc_core::einsum::interpret::{Values, interpret};
use einc_core::einsum::{Definition, Program, Tensor, parse::parse, verify::verify};
use einc_core::lists::with_lists;
use std::collections::BTreeMap;

mod ascending;
mod chains;
mod computed;
mod forms;
mod gathered;
mod meeting;
mod ordered;
mod products;
mod random;
mod starts;
mod terms;
mod touched;
mod united;
mod views;
mod windows;

fn program(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(verify(&program), Ok(()), "{text}");
    program
}

/// A program without inputs that it does not read.
fn needed(text: &str) -> Program {
    let program = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    program.needed()
}

/// Files that list so many elements of `A`, and two more of `B`.
fn listing(count: u64) -> BTreeMap<String, Listing> {
    let listing = |count: u64| Listing {
        count,
        of_dims: vec![],
    };
    BTreeMap::from([
        ("A".to_owned(), listing(count)),
        ("B".to_owned(), listing(count + 2)),
    ])
}

/// The program over lists, verified.
fn over_lists(text: &str, count: u64) -> Program {
    let result = with_lists(&program(text), &listing(count));
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

/// Small numbers, which all types hold; whole ones are rows among the first six, or outside.
fn small_input(tensor: &Tensor) -> Values {
    let elements: u64 = tensor.shape.iter().product();
    let value = |at: u64| {
        let number = number(&tensor.name, at);
        match tensor.dtype {
            DType::I64 => Scalar::Int(2 * number),
            DType::U32 => Scalar::Int(number + 3),
            _ => Scalar::Float(number as f64 / 4.0),
        }
    };
    Values {
        shape: tensor.shape.clone(),
        data: (0..elements).map(value).collect(),
    }
}

/// Places of the elements of a tensor that are not 0, ascending.
fn places(name: &str, count: u64, elements: u64) -> Vec<u64> {
    let (count, every) = if name == "B" {
        (count + 2, 3)
    } else {
        (count, 2)
    };
    (0..count)
        .map(|n| n * elements / count + n % every)
        .collect()
}

/// Values of every input, dense or of a list of `A` or `B` of that shape.
fn input(tensor: &Tensor, shape: &[u64], count: u64) -> Values {
    let elements: u64 = shape.iter().product();
    let name = match &tensor.definition {
        Definition::Source(Source::Listed { tensor, .. }) => tensor,
        _ => &tensor.name,
    };
    let listed = places(name, count, elements);
    let number = |name: &str, at: u64| Scalar::Float(number(name, at) as f64);
    let data = match &tensor.definition {
        Definition::Source(Source::Listed { column, .. }) => match column {
            ListColumn::Values => listed.iter().map(|at| number(name, *at)).collect(),
            ListColumn::Positions(dim) => {
                let inner: u64 = shape[*dim as usize + 1..].iter().product();
                let position = |at: &u64| Scalar::Int((at / inner % shape[*dim as usize]) as i64);
                listed.iter().map(position).collect()
            }
            ListColumn::Starts => {
                let inner: u64 = shape[1..].iter().product();
                let before = |row: u64| listed.iter().filter(move |at| **at < row * inner).count();
                let start = |row: u64| Scalar::Int(before(row) as i64);
                (0..=shape[0]).map(start).collect()
            }
        },
        _ => {
            let elements: u64 = tensor.shape.iter().product();
            let is_listed = matches!(&*tensor.name, "A" | "B");
            let value = |at: u64| match is_listed && !listed.contains(&at) {
                true => Scalar::Float(0.0),
                false if tensor.dtype == DType::U32 => {
                    Scalar::Int(self::number(&tensor.name, at) + 3)
                }
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

/// Both programs give the same, of inputs of a shape of which `A` lists seven elements.
fn assert_same(programs: (&Program, &Program), shape: &[u64], about: &str) {
    assert_same_of(programs, (shape, 7), about);
}

/// So for lists of so many elements.
fn assert_same_of(
    (dense, lists): (&Program, &Program),
    (shape, count): (&[u64], u64),
    about: &str,
) {
    let of = |program: &Program| interpret(program, &|tensor| input(tensor, shape, count)).unwrap();
    for (a, b) in of(dense).iter().zip(&of(lists)) {
        for (x, y) in a.data.iter().zip(&b.data) {
            let (x, y) = (x.as_f64(), y.as_f64());
            let near = (x - y).abs() <= 1e-4 * (1.0 + x.abs());
            assert!(near, "{about}: {x} or {y}\n{dense}\n{lists}");
        }
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
    hidden A.at0: u32[5] = listed("A", f32, 0, load("a.mtx"))
    hidden A.at1: u32[5] = listed("A", f32, 1, load("a.mtx"))
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
    hidden A.at0: u32[5] = listed("A", f32, 0, unbound)
    hidden A.at1: u32[5] = listed("A", f32, 1, unbound)
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
            "input A: f32[12, 20] = unbound\ninput X: f32[7, 9] = unbound\ninput d: f32[7] = unbound\n\
          C: f32[7, 9] = [i: 7, j: 9 | k: 20] sum A[i, k] / (d[i] + 9.0) * X[i, j]\noutput C",
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

/// Statements with one list of five elements of `A: f32[12, 20]`, as text.
fn listed(statements: &str) -> String {
    let inputs = [
        ("A", "12, 20"),
        ("U", "12, 3"),
        ("V", "20, 3"),
        ("d", "12"),
        ("b", "20"),
    ];
    let read = inputs
        .iter()
        .filter(|(name, _)| statements.contains(&format!("{name}[")));
    let read: String = read
        .map(|(name, shape)| format!("input {name}: f32[{shape}] = unbound\n"))
        .collect();
    let program = over_lists(&format!("{read}{statements}"), 5).to_string();
    let lines = program
        .lines()
        .filter(|line| !line.starts_with("input") && !line.contains("listed("));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn reductions_whose_value_is_neutral_where_nothing_is_listed() {
    insta::assert_snapshot!(listed(
        "r: f32[20] = [j: 20 | i: 12] min where(A[i, j] != 0.0, d[i] + A[i, j], inf)\n\
         n: i64[12] = [i: 12 | j: 20] sum i64(A[i, j] > 0.5)\n\
         q: f32[] = [ | i: 12, j: 20] norm A[i, j] * A[i, j]\n\
         m: f32[12] = [i: 12 | j: 20] mean A[i, j] + b[j] if A[i, j] != 0.0\n\
         output r\noutput n\noutput q\noutput m"
    ), @r#"
    r: f32[20] = [j: 20 | e: 5] min where(A.values[e] != 0.0, d[A.at0[e]] + A.values[e], inf) if j == A.at1[e]
    n: i64[12] = [i: 12 | e: 5] sum i64(A.values[e] > 0.5) if i == A.at0[e]
    q: f32[] = [| e: 5] norm A.values[e] * A.values[e]
    m: f32[12] = [i: 12 | e: 5] mean A.values[e] + b[A.at1[e]] if and(i == A.at0[e], A.values[e] != 0.0)
    output r
    output n
    output q
    output m
    "#);
}

#[test]
fn reductions_are_completed_with_what_is_not_listed() {
    insta::assert_snapshot!(listed(
        "m: f32[12] = [i: 12 | j: 20] mean A[i, j]\n\
         v: f32[12] = [i: 12 | j: 20] sum (A[i, j] - m[i]) * (A[i, j] - m[i])\n\
         h: f32[20] = [j: 20 | i: 12] max A[i, j]\n\
         n: i64[12] = [i: 12 | j: 15] sum i64(A[i, j] == 0.0)\n\
         a: bool[] = [ | i: 12, j: 20] any A[i, j] == 0.0\noutput v\noutput h\noutput n\noutput a"
    ), @r#"
    hidden m.listed: f32[12] = [i: 12 | e: 5] sum A.values[e] if i == A.at0[e]
    m: f32[12] = [i: 12] m.listed[i] / f32(20)
    hidden v.listed: f32[12] = [i: 12 | e: 5] sum let $0 = A.values[e] - m[A.at0[e]] in $0 * $0 if i == A.at0[e]
    hidden v.count: i64[12] = [i: 12 | e: 5] sum 1 if i == A.at0[e]
    v: f32[12] = [i: 12] let $0 = 0.0 - m[i] in where(v.count[i] < 20, v.listed[i] + f32(20 - v.count[i]) * ($0 * $0), v.listed[i])
    hidden h.listed: f32[20] = [j: 20 | e: 5] max A.values[e] if j == A.at1[e]
    hidden h.count: i64[20] = [j: 20 | e: 5] sum 1 if j == A.at1[e]
    h: f32[20] = [j: 20] where(h.count[j] < 12, max(h.listed[j], 0.0), h.listed[j])
    hidden n.listed: i64[12] = [i: 12 | e: 5] sum i64(A.values[e] == 0.0) if and(i == A.at0[e], 15 > A.at1[e])
    hidden n.count: i64[12] = [i: 12 | e: 5] sum 1 if and(i == A.at0[e], 15 > A.at1[e])
    n: i64[12] = [i: 12] where(n.count[i] < 15, n.listed[i] + (15 - n.count[i]) * 1, n.listed[i])
    hidden a.listed: bool[] = [| e: 5] any A.values[e] == 0.0
    hidden a.count: i64[] = [| e: 5] sum 1
    a: bool[] = [] where(a.count[] < 240, or(a.listed[], true), a.listed[])
    output v
    output h
    output n
    output a
    "#);
}

#[test]
fn a_tensor_has_a_list_where_it_is_one_number_elsewhere() {
    // A softmax over what is listed, as attention over the edges of a graph is.
    insta::assert_snapshot!(listed(
        "s: f32[12, 20] = [i: 12, j: 20] where(A[i, j] != 0.0, d[i] * b[j], -inf)\n\
         m: f32[12] = [i: 12 | j: 20] max s[i, j]\n\
         w: f32[12, 20] = [i: 12, j: 20] exp(s[i, j] - m[i])\n\
         z: f32[12] = [i: 12 | j: 20] sum w[i, j]\n\
         y: f32[12, 3] = [i: 12, h: 3 | j: 20] sum w[i, j] / z[i] * V[j, h]\noutput y"
    ), @r#"
    hidden s.values: f32[5] = [e: 5] where(A.values[e] != 0.0, d[A.at0[e]] * b[A.at1[e]], -inf)
    m: f32[12] = [i: 12 | e: 5] max s.values[e] if i == A.at0[e]
    hidden w.values: f32[5] = [e: 5] exp(s.values[e] - m[A.at0[e]])
    z: f32[12] = [i: 12 | e: 5] sum w.values[e] if i == A.at0[e]
    y: f32[12, 3] = [i: 12, h: 3 | e: 5] sum w.values[e] / z[A.at0[e]] * V[A.at1[e], h] if i == A.at0[e]
    output y
    "#);
    // Further dimensions are those of every place; a transposed tensor has the list of what it transposes.
    insta::assert_snapshot!(listed(
        "w: f32[20, 3, 12] = [j: 20, h: 3, i: 12] A[i, j] * U[i, h]\n\
         y: f32[20, 3] = [j: 20, h: 3 | i: 12] sum w[j, h, i] * d[i]\noutput y"
    ), @r#"
    hidden w.values: f32[5, 3] = [e: 5, h: 3] A.values[e] * U[A.at0[e], h]
    y: f32[20, 3] = [j: 20, h: 3 | e: 5] sum w.values[e, h] * d[A.at0[e]] if j == A.at1[e]
    output y
    "#);
    // A tensor that is given out is made of the values at its places.
    insta::assert_snapshot!(listed("S: f32[12, 20] = [i: 12, j: 20 | k: 3] sum A[i, j] * U[i, k] * V[j, k]\noutput S"), @r#"
    hidden S.place: f32[5] = [e: 5 | k: 3] sum U[A.at0[e], k] * V[A.at1[e], k]
    hidden S.values: f32[5] = [e: 5] A.values[e] * S.place[e]
    S: f32[12, 20] = [i: 12, j: 20 | e: 5] sum S.values[e] if and(i == A.at0[e], j == A.at1[e])
    output S
    "#);
}

#[test]
fn what_depends_on_the_place_alone_is_computed_once() {
    // A sum over a place and a further index is a sum of one number a place, which several statements read.
    insta::assert_snapshot!(listed(
        "g: f32[12] = [i: 12 | j: 20, h: 3] sum -(A[i, j] * U[i, h] * V[j, h] / (d[i] * d[i]))\n\
         k: f32[20] = [j: 20 | i: 12, h: 3] sum U[i, h] * A[i, j] * V[j, h]\noutput g\noutput k"
    ), @r#"
    hidden g.place: f32[5] = [e: 5 | h: 3] sum U[A.at0[e], h] * V[A.at1[e], h]
    g: f32[12] = [i: 12 | e: 5] sum let $0 = d[A.at0[e]] in -(A.values[e] * g.place[e] / ($0 * $0)) if i == A.at0[e]
    k: f32[20] = [j: 20 | e: 5] sum A.values[e] * g.place[e] if j == A.at1[e]
    output g
    output k
    "#);
    // Numbers that lines of eight and more elements are multiplied by are tensors.
    insta::assert_snapshot!(listed(
        "y: f32[12, 9] = [i: 12, h: 9 | j: 20] sum A[i, j] / (d[i] + b[j]) * f32(h + j)\noutput y"
    ), @r#"
    hidden y.factor: f32[5] = [e: 5] A.values[e] / (d[A.at0[e]] + b[A.at1[e]])
    y: f32[12, 9] = [i: 12, h: 9 | e: 5] sum y.factor[e] * f32(h + A.at1[e]) if i == A.at0[e]
    output y
    "#);
}

#[test]
fn tensors_are_computed_at_the_places_that_are_read() {
    // Of a product, a list reads as many sums as it has places. A tensor that is computed there may itself read such a tensor.
    insta::assert_snapshot!(listed(
        "p: f32[12, 20] = [i: 12, j: 20 | k: 3] sum U[i, k] * V[j, k]\n\
         c: f32[12, 20] = [i: 12, j: 20] p[i, j] + d[i] + b[j]\n\
         loss: f32[] = [ | i: 12, j: 20] sum where(A[i, j] != 0.0, (A[i, j] - c[i, j]) * (A[i, j] - c[i, j]), 0.0)\noutput loss"
    ), @r#"
    hidden p.values: f32[5] = [e: 5 | k: 3] sum U[A.at0[e], k] * V[A.at1[e], k]
    hidden c.values: f32[5] = [e: 5] p.values[e] + d[A.at0[e]] + b[A.at1[e]]
    loss: f32[] = [| e: 5] sum let $0 = A.values[e] - c.values[e] in where(A.values[e] != 0.0, $0 * $0, 0.0)
    output loss
    "#);
}

#[test]
fn what_needs_all_elements_keeps_them() {
    for statement in [
        // A value elsewhere that all indices are needed for, or that is NaN; a sum of indices; another value outside.
        "C: f32[12] = [i: 12 | k: 20] sum tanh(A[i, k] + f32(i * k))",
        "C: f32[12] = [i: 12 | k: 20] max A[i, k] + f32(k)",
        "C: f32[12] = [i: 12 | k: 20] sum A[i, k] / A[i, k]",
        "C: i64[12] = [i: 12 | k: 20] argmax A[i, k] if A[i, k] > 0.0",
        "C: f32[12] = [i: 12 | k: 5] sum A[i, k + i] * f32(k)",
        "C: f32[12] = [i: 12 | k: 22] sum A[i, k] else 2.0",
        "C: f32[12, 20] = [i: 12, k: 20] exp(A[i, k])",
        "C: bool[12, 20] = [i: 12, k: 20] A[i, k] > 0.0",
    ] {
        let text = format!("input A: f32[12, 20] = unbound\n{statement}\noutput C");
        assert_eq!(over_lists(&text, 5), program(&text));
    }
}
