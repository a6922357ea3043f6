//! Matrix operations by blocks against the same ones whole.
//!
//! Must not know how blocks are cut.
//!
//! ```text
//! cholesky of 1100 rows by blocks = cholesky of the whole, to rounding
//! ```

use super::*;
use crate::einsum::interpret::{Values, interpret};
use crate::einsum::verify::verify;
use ein_plan::Scalar;

/// A well-conditioned symmetric matrix without pattern.
fn matrix(n: u64) -> Values {
    let element = |i: u64, j: u64| match i == j {
        true => 3.0,
        false => ((i * j + i + j) as f64).sin() / n as f64,
    };
    let data = (0..n * n).map(|at| Scalar::Float(element(at / n, at % n)));
    Values {
        shape: vec![n, n],
        data: data.collect(),
    }
}

/// Returns the values of a call and of its program in blocks, for these operands.
fn both(operands: &str, call: &str) -> [Values; 2] {
    let program = parse(&format!("{operands}\n{call}\noutput Y")).expect("the text is a program");
    let count = program.tensors.len() - 1;
    let tensor = &program.tensors[count];
    let Definition::Statement { kernel, operands } = &tensor.definition else {
        panic!("{program}");
    };
    let library = kernel.library().expect("the call is an operation");
    let of = Writer {
        n: library.matrix(kernel, 0).0,
        dtype: "f64",
        number: "_f64",
        rows_first: library.arguments[0].whole == [0, 1],
        outputs: outputs(&library),
        prefix: "A.blocks".into(),
        side: "b.blocks".into(),
    };
    let text = of.text(kernel, &library).expect("there are blocks of it");
    let part = parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut whole = Program::default();
    whole.tensors.extend_from_slice(&program.tensors[..count]);
    let arguments = library.arguments.iter();
    let known: Vec<TensorId> = arguments.map(|a| operands[a.operand as usize]).collect();
    splice(&mut whole, part, &known, tensor);
    let mut output = program.outputs[0].clone();
    output.tensor = TensorId(whole.tensors.len() as u32 - 1);
    whole.outputs.push(output);
    assert_eq!(verify(&whole), Ok(()), "{whole}");
    [&program, &whole].map(|program| {
        let values = |tensor: &Tensor| match tensor.name.as_str() {
            "A" => matrix(tensor.shape[0]),
            "G" => general(tensor.shape[0]),
            _ => side(&tensor.shape),
        };
        interpret(program, &values)
            .expect("the program has values")
            .swap_remove(0)
    })
}

fn equal(operands: &str, call: &str) {
    let [expected, found] = both(operands, call);
    assert_eq!(expected.shape, found.shape);
    for (a, b) in expected.data.iter().zip(&found.data) {
        let (a, b) = (a.as_f64(), b.as_f64());
        assert!(
            (a - b).abs() < 1e-11 * a.abs().max(1.0),
            "{call}: {b} is not {a}"
        );
    }
}

#[test]
fn blocks_give_what_the_call_gives() {
    for text in [
        "cholesky(A[:1, :2], r, c)",
        "inv(A[:1, :2], r, c)",
        "inv(A[:2, :1], r, c)",
    ] {
        for (n, order) in [(13u64, "r: 13, c: 13"), (18, "c: 18, r: 18")] {
            equal(
                &format!("input A: f64[{n}, {n}] = unbound"),
                &format!("Y: f64[{n}, {n}] = [{order}] {text}"),
            );
        }
    }
}

/// With leading blocks that are singular.
#[test]
fn elimination_by_blocks_has_the_pivots_of_whole_columns() {
    for n in [7u64, 12, 20] {
        let matrix = format!("input G: f64[{n}, {n}] = unbound");
        for call in ["solve(G[:1, :2], b[:1], i)", "solve(G[:2, :1], b[:1], i)"] {
            equal(
                &format!("{matrix}\ninput b: f64[{n}] = unbound"),
                &format!("Y: f64[{n}] = [i: {n}] {call}"),
            );
        }
        equal(
            &format!("{matrix}\ninput b: f64[3, {n}, 2] = unbound"),
            &format!("Y: f64[2, {n}, 3] = [q: 2, i: {n}, p: 3] solve(G[:1, :2], b[p, :1, q], i)"),
        );
        equal(
            &matrix,
            &format!("Y: f64[{n}, {n}] = [i: {n}, p: {n}] solve(G[:1, :2], G[p, :1], i)"),
        );
    }
}

/// Ones beside the diagonal that runs the other way, and little else.
fn general(n: u64) -> Values {
    let element = |i: u64, j: u64| match (i + j + 1) % n {
        0 => 2.0 + i as f64,
        1 => 1.0,
        _ if i + j < n / 2 => 0.0,
        _ => ((i * j + 2 * i + j) as f64).sin(),
    };
    let data = (0..n * n).map(|at| Scalar::Float(element(at / n, at % n)));
    Values {
        shape: vec![n, n],
        data: data.collect(),
    }
}

fn side(shape: &[u64]) -> Values {
    let count: u64 = shape.iter().product();
    let data = (0..count).map(|at| Scalar::Float(((7 * at + 3) as f64).cos()));
    Values {
        shape: shape.to_vec(),
        data: data.collect(),
    }
}

#[test]
fn only_large_single_matrices_are_expanded() {
    let program = |shape: &str, rest: &str| {
        let text = format!("input A: f64[{shape}] = unbound\nY: f64[{shape}] = {rest}\noutput Y");
        parse(&text).expect("the text is a program")
    };
    let large = program("600, 600", "[i: 600, j: 600] inv(A[:1, :2], i, j)");
    assert_eq!(
        expand(&large, &[]).expect("it is expanded").rules[0].rule,
        INVERSE
    );
    assert!(expand(&large, &[INVERSE.to_string()]).is_none());
    let small = program("60, 60", "[i: 60, j: 60] inv(A[:1, :2], i, j)");
    assert!(expand(&small, &[]).is_none());
    let many = program(
        "2, 600, 600",
        "[p: 2, i: 600, j: 600] inv(A[p, :1, :2], i, j)",
    );
    assert!(expand(&many, &[]).is_none());
}
