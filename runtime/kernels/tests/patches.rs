//! Results whose neighbours are far apart in what is read, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Fault, Options, run};
use ein_plan::{DType, Kernel};
use reference::{array, chunks, operands};

const KERNELS: [&str; 15] = [
    "(f32[83, 41]) [j: 41, i: 83] f32 = a0[i, j]",
    "(f64[83, 41]) [j: 41, i: 83] f64 = a0[i, j] * a0[i, j]",
    "(i64[83, 41]) [j: 41, i: 83] i64 = a0[i, j] + i",
    "(i32[83, 41], i32[41]) [j: 41, i: 83] i32 = a0[i, j] + a1[j]",
    "(bool[83, 41]) [j: 41, i: 83] bool = not(a0[i, j])",
    "(bf16[83, 41]) [j: 41, i: 83] bf16 = a0[i, j]",
    "(f32[83, 41], f32[41, 83]) [j: 41, i: 83] f32 = a0[i, j] - a1[j, i]",
    "(f32[83, 41], f32[83]) [j: 41, i: 83] f32 = a0[i, j] * a1[i] + a0[82 - i, 40 - j]",
    "(f64[83, 41]) [j: 41, i: 83] f64 = a0[i, j] + (a0[i + 1, j - 1] else 1.0_f64)",
    "(f32[83, 41]) [j: 41, i: 83] f32 = a0[rem(i + 5, 83), j]",
    "(f32[83, 82]) [j: 41, i: 83] f32 = a0[i, 2 * j]",
    "(f32[83, 41], i64[83]) [j: 41, i: 83] f32 = a0[a1[i], j] if j > 3",
    "(f64[9, 7, 41]) [j: 41, h: 9, w: 7] f64 = a0[h, w, j]",
    "(f64[9, 77, 5]) [p: 5, h: 9, w: 77] f64 = a0[h, w, p]",
    "(f32[83, 5, 41]) [j: 41, p: 5, i: 83] f32 = a0[i, p, j]",
];

/// Small whole numbers, of which none is outside as a position.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::Bool => (at % 3 % 2) as f64,
        _ => ((at * 37 + at / 3) % 61) as f64,
    }
}

#[test]
fn values() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let mut cut = whole.clone();
        for range in &mut cut {
            *range = (range.1 / 3, range.1 - range.1 / 3);
        }
        for ranges in [whole, cut] {
            reference::check(&kernel, &ranges, &owned);
        }
    }
}

#[test]
fn the_lowest_faulty_point_is_found() {
    let kernel: Kernel = "(f32[83, 41], i64[41, 83]) [j: 41, i: 83] f32 = a0[a1[j, i], j]"
        .parse()
        .unwrap();
    let mut owned = operands(&kernel, number);
    // In the order of patches, the second one comes first.
    let faulty = |at: usize| if at == 70 || at == 83 + 2 { 83.0 } else { 0.0 };
    owned[1].columns = vec![array(DType::I64, &[41, 83], faulty)];
    let ranges = [(0, 41), (0, 83)];
    let error = run(&kernel, &ranges, &chunks(&owned), &Options::default()).unwrap_err();
    assert_eq!(error.point, [0, 70]);
    assert!(matches!(
        error.fault,
        Fault::OutOfRange { position: 83, .. }
    ));
}
