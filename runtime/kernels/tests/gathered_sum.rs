//! Reductions of rows of which data say which ones they are, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Fault, Options, run, schedule};
use ein_plan::{DType, Kernel, LoopKind};
use reference::{array, chunks, operands};

const KERNELS: [&str; 7] = [
    "(i64[40, 7], f32[50, 37]) [n: 40, d: 37 | l: 7] f32 = mean a1[a0[n, l], d]",
    "(i64[40, 7], f64[50, 64], f64[40, 7]) [n: 40, d: 64 | l: 7] f64 = sum a2[n, l] * a1[a0[n, l], d]",
    "(i64[40, 7], f32[50, 4, 8], f32[40]) [n: 40, h: 4, d: 8 | l: 7] f32 = sum a2[n] * a1[a0[n, l], h, d] * 0.5_f32",
    "(i64[9, 5, 7], f32[50, 33]) [b: 9, n: 5, d: 33 | l: 7] f32 = max a1[a0[b, n, l], d]",
    "(i64[40, 2, 3], i64[50, 16]) [n: 40, d: 16 | k: 2, l: 3] i64 = sum a1[a0[n, k, l], d]",
    "(i64[40, 7], f32[50, 37]) [n: 40, d: 30 | l: 7] f32 = min a1[a0[n, l], d + 7]",
    "(i32[40, 7], f32[50, 37]) [n: 40, d: 37 | l: 7] f32 = mean a1[i64(a0[n, l]), d]",
];

/// Whole numbers from 20 to 49, and others.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::I64 | DType::I32 => ((at * 17 + 3) % 30 + 20) as f64,
        _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
    }
}

#[test]
fn sums_are_those_of_the_definition() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let loops = schedule(&kernel, &whole, &chunks(&owned));
        assert_eq!(loops.kind, LoopKind::GatheredSum, "{kernel}");
        reference::check(&kernel, &whole, &owned);
        let mut part = whole;
        part[0] = (3, 4);
        reference::check(&kernel, &part, &owned);
    }
}

#[test]
fn a_row_outside_is_the_fault_that_the_loops_find() {
    let kernel: Kernel = KERNELS[0].parse().unwrap();
    let mut owned = operands(&kernel, number);
    owned[0].columns[0] = array(DType::I64, &[40, 7], |e| if e == 41 { 50.0 } else { 7.0 });
    let ranges = [(0, 40), (0, 37), (0, 7)];
    let error = run(&kernel, &ranges, &chunks(&owned), &Options::default()).unwrap_err();
    let fault = Fault::OutOfRange {
        operand: 1,
        dimension: 0,
        position: 50,
        extent: 50,
    };
    assert_eq!((error.fault, error.point), (fault, vec![5, 0, 6]));
}

#[test]
fn other_sums_are_left_to_other_loops() {
    for text in [
        // A short row, few rows, a row times a row, a number of the term alone, a guard, a reduction of more than one number.
        "(i64[40, 7], f32[50, 4]) [n: 40, d: 4 | l: 7] f32 = sum a1[a0[n, l], d]",
        "(i64[4, 7], f32[50, 64]) [n: 4, d: 64 | l: 7] f32 = sum a1[a0[n, l], d]",
        "(i64[40, 7], f32[50, 64], f32[40, 64]) [n: 40, d: 64 | l: 7] f32 = sum a2[n, d] * a1[a0[n, l], d]",
        "(i64[40, 7], f32[50, 64], f32[7]) [n: 40, d: 64 | l: 7] f32 = sum a2[l] * a1[a0[n, l], d]",
        "(i64[40, 7], f32[50, 64]) [n: 40, d: 64 | l: 7] f32 = sum a1[a0[n, l], d] if l < n",
        "(i64[40, 7], f32[50, 64]) [n: 40, d: 64 | l: 7] f32 = norm a1[a0[n, l], d]",
    ] {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let loops = schedule(&kernel, &ranges, &chunks(&owned));
        assert_ne!(loops.kind, LoopKind::GatheredSum, "{kernel}");
    }
}
