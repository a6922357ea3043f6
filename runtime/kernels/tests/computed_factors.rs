//! Products of matrices of which a factor is computed, against the naive evaluator: elements that are neighbours along the rows or along the
//! columns of a block.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::schedule;
use ein_plan::{DType, Kernel, LoopKind};
use reference::{chunks, operands};

const PRODUCTS: [&str; 6] = [
    "(f32[70, 90], f32[90, 33]) [i: 70, j: 33 | k: 90] f32 = sum max(a0[i, k], 0.0_f32) * a1[k, j]",
    "(f32[90, 70], f32[90, 33]) [i: 70, j: 33 | k: 90] f32 = sum max(a0[k, i], 0.0_f32) * a1[k, j]",
    "(f64[70, 90], f64[90, 33]) [i: 70, j: 33 | k: 90] f64 = sum a0[i, k] * (a1[k, j] - 0.5_f64)",
    "(f64[70, 90], f64[33, 90]) [i: 70, j: 33 | k: 90] f64 = sum a0[i, k] * (a1[j, k] - 0.5_f64)",
    "(f32[5, 40, 50], f32[5, 50, 30]) [b: 5, i: 40, j: 30 | k: 50] f32 = sum (a0[b, i, k] + 1.0_f32) * (a1[b, k, j] - 0.5_f32)",
    "(i64[60], f32[20, 50], f32[50, 30]) [n: 60, j: 30 | k: 50] f32 = sum a1[a0[n], k] * a2[k, j]",
];

/// Whole numbers below 20, and others.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::I64 => ((at * 17 + 3) % 20) as f64,
        _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
    }
}

#[test]
fn products_are_those_of_the_definition() {
    for text in PRODUCTS {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let loops = schedule(&kernel, &whole, &chunks(&owned));
        assert!(matches!(loops.kind, LoopKind::Matmul(_)), "{kernel}");
        reference::check(&kernel, &whole, &owned);
        let mut part = whole;
        part[0] = (3, 2);
        reference::check(&kernel, &part, &owned);
    }
}
