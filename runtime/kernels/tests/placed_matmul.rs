//! Products of the points that read a factor, or add, at the same place, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Fault, Options, run, schedule};
use ein_plan::{DType, Kernel, LoopKind};
use reference::{array, chunks, operands};

const GATHERED: [&str; 6] = [
    "(f32[70, 64], f32[5, 64, 160], i64[70]) [n: 70, f: 160 | d: 64] f32 = sum a0[n, d] * a1[a2[n], d, f]",
    "(f32[30, 64], f32[5, 64, 200], i64[30, 2]) [n: 30, k: 2, f: 200 | d: 64] f32 = sum a0[n, d] * a1[a2[n, k], d, f]",
    "(f64[30, 2, 128], f64[3, 9, 128, 8], i64[30, 2], f64[30, 2]) [n: 30, k: 2, f: 9, g: 8 | d: 128] f64 = sum a3[n, k] * exp(a0[n, k, d]) * a1[2 - min(a2[n, k], 2), f, d, g] / 3.0_f64",
    "(f32[60, 130], f32[2, 130, 140, 3], i64[60], i64[60]) [n: 60, f: 140 | d: 130] f32 = sum a0[n, d] * a1[min(a2[n], 1), d, f, min(a3[n], 2)]",
    "(f32[30, 2, 90], f32[5, 90, 140], i64[30, 2]) [n: 30, f: 140 | k: 2, d: 90] f32 = sum a0[n, k, d] * a1[a2[n, k], d, f]",
    "(f32[60, 100, 5], f32[5, 140, 100], i64[60]) [n: 60, f: 140 | d: 100] f32 = sum a1[a2[n], f, d] * a0[n, d, a2[n]] * f32(n)",
];

const SCATTERED: [&str; 4] = [
    "(f32[400, 40], f32[400, 18], i64[400]) [e: 5, d: 40, f: 18 | n: 400] f32 = sum a0[n, d] * a1[n, f] if a2[n] == e",
    "(f64[150, 2, 20], f64[150, 36], i64[150, 2]) [e: 4, d: 20, f: 36 | n: 150, k: 2] f64 = sum a0[n, k, d] * exp(a1[n, f]) * 0.5_f64 if e == a2[n, k]",
    "(f32[600, 20], i64[600], i64[600]) [e: 2, g: 3, i: 20, j: 20 | n: 600] f32 = sum a0[n, i] * a0[n, j] if and(a1[n] == g, a2[n] == e)",
    "(f32[99, 40, 7], f32[99, 9, 7], i64[99]) [e: 5, d: 40, f: 9 | n: 99, t: 7] f32 = sum a0[n, d, t] * a1[n, f, t] if a2[n] == e",
];

/// Whole numbers below 5, and others.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::I64 => ((at * 17 + at / 3) % 5) as f64,
        _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
    }
}

#[test]
fn sums_are_those_of_the_definition() {
    let kinds = [
        (&GATHERED[..], LoopKind::GatheredMatmul),
        (&SCATTERED[..], LoopKind::ScatteredMatmul),
    ];
    for (texts, kind) in kinds {
        for text in texts {
            let kernel: Kernel = text.parse().unwrap();
            let owned = operands(&kernel, number);
            let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
            let mut part = whole.clone();
            part[0] = (1, whole[0].1 - 1);
            for ranges in [whole, part] {
                let loops = schedule(&kernel, &ranges, &chunks(&owned));
                assert_eq!(loops.kind, kind, "{kernel}");
                reference::check(&kernel, &ranges, &owned);
            }
        }
    }
}

#[test]
fn a_part_of_the_points_is_read_where_it_begins() {
    let kernel: Kernel = GATHERED[0].parse().unwrap();
    let mut owned = operands(&kernel, number);
    for operand in [0, 2] {
        let mut shape = owned[operand].columns[0].shape().to_vec();
        shape[0] = 40;
        let dtype = kernel.operands[operand].columns[0];
        owned[operand].columns[0] = array(dtype, &shape, |at| number(dtype, at + 7));
        owned[operand].start[0] = 25;
    }
    reference::check(&kernel, &[(25, 40), (0, 160), (0, 64)], &owned);
}

#[test]
fn a_place_outside_is_the_fault_that_the_loops_find() {
    let kernel: Kernel = GATHERED[0].parse().unwrap();
    for outside in [5, -1, i64::MAX] {
        let mut owned = operands(&kernel, number);
        owned[2].columns[0] = array(DType::I64, &[70], |e| match e {
            41 => outside as f64,
            _ => 2.0,
        });
        let ranges = [(0, 70), (0, 160), (0, 64)];
        let error = run(&kernel, &ranges, &chunks(&owned), &Options::default()).unwrap_err();
        let fault = Fault::OutOfRange {
            operand: 1,
            dimension: 0,
            position: outside,
            extent: 5,
        };
        assert_eq!((error.fault, error.point), (fault, vec![41, 0, 0]));
    }
}

#[test]
fn terms_that_are_all_added_at_one_place_are_no_products_of_places() {
    let text = "(f32[400, 40], f32[400, 18]) [e: 5, d: 40, f: 18 | n: 400] f32 = sum a0[n, d] * a1[n, f] if 3 == e";
    let kernel: Kernel = text.parse().unwrap();
    let owned = operands(&kernel, number);
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let loops = schedule(&kernel, &ranges, &chunks(&owned));
    assert_ne!(loops.kind, LoopKind::ScatteredMatmul);
    reference::check(&kernel, &ranges, &owned);
}
