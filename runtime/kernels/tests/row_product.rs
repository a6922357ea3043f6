//! Sums of products of two looked-up rows, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Fault, Options, run, schedule};
use ein_plan::{DType, Kernel, LoopKind};
use reference::{array, chunks, operands};

const KERNELS: [&str; 6] = [
    "(f32[50, 37], i64[700], i64[700]) [e: 700 | h: 37] f32 = sum a0[a1[e], h] * a0[a2[e], h]",
    "(f64[50, 600], i64[90], f64[90, 600]) [e: 90 | h: 600] f64 = sum a0[a1[e], h] * a2[e, h]",
    "(f32[50, 4, 8], i64[90]) [e: 90 | k: 4, h: 8] f32 = sum a0[a1[e], k, h] * a0[a1[e], k, h]",
    "(f32[50, 33], i64[90], i64[90], f32[50, 33]) [e: 90 | h: 33] f32 = sum let $0 = a0[a1[e], h] - a3[a2[e], h] in $0 * $0",
    "(f32[50, 70], i64[9, 8], f32[70]) [i: 9, j: 8 | h: 70] f32 = sum a0[a1[i, j], h] * a2[h]",
    "(f64[70, 50], i64[90], f64[90, 5]) [e: 90 | h: 5] f64 = sum a0[a1[e], h + 3] * a2[e, h]",
];

/// Whole numbers from 20 to 49, and others.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::I64 => ((at * 17 + 3) % 30 + 20) as f64,
        _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
    }
}

#[test]
fn sums_are_those_of_the_definition() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let mut part = whole.clone();
        part[0] = (3, 5);
        for ranges in [whole, part] {
            let loops = schedule(&kernel, &ranges, &chunks(&owned));
            assert_eq!(loops.kind, LoopKind::RowProduct, "{kernel}");
            reference::check(&kernel, &ranges, &owned);
        }
    }
}

#[test]
fn a_row_outside_is_the_fault_that_the_loops_find() {
    let kernel: Kernel = KERNELS[0].parse().unwrap();
    let mut owned = operands(&kernel, number);
    owned[2].columns[0] = array(DType::I64, &[700], |e| if e == 412 { 50.0 } else { 7.0 });
    let ranges = [(0, 700), (0, 37)];
    let error = run(&kernel, &ranges, &chunks(&owned), &Options::default()).unwrap_err();
    let fault = Fault::OutOfRange {
        operand: 0,
        dimension: 0,
        position: 50,
        extent: 50,
    };
    assert_eq!((error.fault, error.point), (fault, vec![412, 0]));
}

#[test]
fn other_sums_are_left_to_other_loops() {
    for text in [
        // No looked-up row, a looked-up column, a part of a list a term, three factors, a row of integers.
        "(f32[90, 64], f32[90, 64]) [e: 90 | h: 64] f32 = sum a0[e, h] * a1[e, h]",
        "(f32[64, 50], i64[90], f32[90, 64]) [e: 90 | h: 64] f32 = sum a0[h, a1[e]] * a2[e, h]",
        "(f32[50, 64], i64[90, 64], f32[90, 64]) [e: 90 | h: 64] f32 = sum a0[a1[e, h], h] * a2[e, h]",
        "(f32[50, 64], i64[90], f32[90, 64]) [e: 90 | h: 64] f32 = sum a0[a1[e], h] * a2[e, h] * a2[e, h]",
        "(i64[50, 64], i64[90], i64[90, 64]) [e: 90 | h: 64] i64 = sum a0[a1[e], h] * a2[e, h]",
    ] {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let loops = schedule(&kernel, &ranges, &chunks(&owned));
        assert_ne!(loops.kind, LoopKind::RowProduct, "{kernel}");
    }
}
