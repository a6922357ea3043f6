//! Results that no cache holds are written past the caches, and have the bits of the others.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, Member, Operand, Options, fused_rows, run};
use ein_plan::Kernel;

/// Rows and columns of which single precision takes more than 32 MiB, no line of the result whole at a row's end.
const N: usize = 1021;
const D: usize = 8219;

fn array(shape: &[usize], seed: usize) -> Array {
    let n = shape.iter().product();
    let value = |at: usize| ((at + 1) * (seed * 7919 + 104_729) % 4001) as f32 / 1000.0 - 2.0;
    Array::new(shape.to_vec(), Data::F32((0..n).map(value).collect())).unwrap()
}

fn chunk(array: &Array) -> Chunk<'_> {
    Chunk {
        columns: vec![array],
        start: vec![0; array.shape().len()],
    }
}

fn kernel(body: &str) -> Kernel {
    let whole = format!("f32[{N}, {D}]");
    let text = format!("({whole}, {whole}, f32[{N}], f32[{D}]) [i: {N}, j: {D}] f32 = {body}");
    text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn options(fusion: Fusion) -> Options {
    Options {
        fusion,
        ..Options::default()
    }
}

const BODIES: [&str; 6] = [
    "0.5_f32 * a0[i, j] + a2[i]",
    "where(a0[i, j] > a3[j], a1[i, j] - a2[i], a0[i, j] * a3[j])",
    "relu(a0[i, j]) * a1[i, j] + a3[j]",
    "exp(a0[i, j] - a2[i])",
    "gelu(a0[i, j])",
    "0.5_f32 * a1[i, j] * (1.0_f32 + erf(0.70710677_f32 * a1[i, j]))",
];

#[test]
fn one_result() {
    let (a, b) = (array(&[N, D], 1), array(&[N, D], 2));
    let (column, row) = (array(&[N], 3), array(&[D], 4));
    let operands = [chunk(&a), chunk(&b), chunk(&column), chunk(&row)];
    let ranges = [(0, N as u64), (0, D as u64)];
    for body in BODIES {
        let [far, plain] = [Fusion::Always, Fusion::Never]
            .map(|fusion| run(&kernel(body), &ranges, &operands, &options(fusion)).unwrap());
        assert!(far[0].data().bytes() == plain[0].data().bytes(), "{body}");
        // A few rows stay in a cache.
        let few = [(7, 3), (0, D as u64)];
        let few = run(&kernel(body), &few, &operands, &options(Fusion::Always)).unwrap();
        let bytes = 4 * D;
        let there = &far[0].data().bytes()[7 * bytes..10 * bytes];
        assert!(few[0].data().bytes() == there, "{body}, three rows");
    }
}

#[test]
fn several_results_of_a_sweep() {
    let (a, b) = (array(&[N, D], 1), array(&[N, D], 2));
    let (column, row) = (array(&[N], 3), array(&[D], 4));
    let kernels = BODIES.map(kernel);
    let given = || [&a, &b, &column, &row].map(|array| Operand::Given(chunk(array)));
    let members: Vec<Member<'_>> = (kernels.iter().enumerate())
        .map(|(number, kernel)| {
            let mut operands = given();
            // The second one reads the first one's result.
            if number == 1 {
                operands[0] = Operand::Made(0);
            }
            Member {
                kernel,
                ranges: vec![(0, N as u64), (0, D as u64)],
                operands: operands.to_vec(),
                kept: true,
                memo: None,
            }
        })
        .collect();
    let [far, plain] = [Fusion::Always, Fusion::Never]
        .map(|fusion| fused_rows(&members, 1, &options(fusion)).unwrap());
    for (number, (far, plain)) in far.iter().zip(&plain).enumerate() {
        let bytes =
            |columns: &Option<Vec<Array>>| columns.as_ref().unwrap()[0].data().bytes().to_vec();
        assert!(bytes(far) == bytes(plain), "result {number}");
    }
}
