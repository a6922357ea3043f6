//! Sums of products whose terms a guard chooses, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::schedule;
use ein_plan::{DType, Kernel, LoopKind};
use reference::{array, chunks, operands};

/// Each with the bounds that the loops make use of.
const KERNELS: [(&str, &str); 11] = [
    (
        "(f32[270, 270], f32[270, 6]) [i: 270, j: 6 | k: 270] f32 = sum a0[i, k] * a1[k, j] if k <= i",
        " bounded k by [i]",
    ),
    (
        "(f64[300, 260], f64[260, 15]) [i: 300, j: 15 | k: 260] f64 = sum a0[i, k] * a1[k, j] if k > i - 20",
        " bounded k by [i]",
    ),
    (
        "(f32[15, 300], f32[300, 300]) [i: 15, j: 300 | k: 300] f32 = sum a0[i, k] * a1[j, k] if k < j",
        " bounded k by [j]",
    ),
    (
        "(f64[260, 270], f64[20, 270]) [i: 260, j: 20 | k: 270] f64 = sum a0[i, k] * a1[j, k] if and(k <= i, k <= j + 7)",
        " bounded k by [i]",
    ),
    (
        "(f32[270, 270], f32[270, 14]) [i: 270, j: 14 | k: 270] f32 = sum a0[i, k] * a1[k, j] if and(k <= i + 5, k > i - 30)",
        " bounded k by [i]",
    ),
    (
        "(f32[270, 4], f32[290, 4]) [i: 270, k: 290 | j: 4] f32 = sum a0[i, j] * a1[k, j] if k <= i",
        " bounded k by [i]",
    ),
    (
        "(f32[2, 270, 260], f32[2, 260, 13]) [b: 2, i: 270, j: 13 | k: 260] f32 = sum a0[b, i, k] * a1[b, k, j] / 4.0 if k <= i",
        " bounded k by [i]",
    ),
    (
        "(f32[60, 70], f32[70, 40], bool[60, 70]) [i: 60, j: 40 | k: 70] f32 = sum a0[i, k] * a1[k, j] if a2[i, k]",
        "",
    ),
    (
        "(f32[60, 70], f32[70, 40], bool[40]) [i: 60, j: 40 | k: 70] f32 = sum a0[i, k] * a1[k, j] if and(a2[j], 2 * k < 100)",
        "",
    ),
    (
        "(f32[60, 70], f32[70, 40]) [i: 60, j: 40 | k: 70] f32 = sum a0[i, k] * a1[k, j] if a1[k, j] > 0.5",
        "",
    ),
    (
        "(f32[270], f32[270, 6]) [i: 270, j: 6 | k: 270] f32 = sum a0[i - k] * a1[k, j] if k <= i",
        " bounded k by [i]",
    ),
];

fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::Bool => f64::from(u8::from((at % 7).is_multiple_of(3))),
        _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
    }
}

fn ranges_of(kernel: &Kernel) -> Vec<(u64, u64)> {
    kernel.indices.iter().map(|i| (0, i.extent)).collect()
}

#[test]
fn sums_are_those_of_the_definition() {
    for (text, bounds) in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let mut ranges = ranges_of(&kernel);
        let loops = schedule(&kernel, &ranges, &chunks(&owned));
        assert!(matches!(loops.kind, LoopKind::Matmul(_)), "{kernel}");
        assert!(
            loops.text(&kernel).contains(bounds),
            "{}",
            loops.text(&kernel)
        );
        reference::check(&kernel, &ranges, &owned);
        let last = kernel.output_rank as usize - 1;
        ranges[last] = (2, ranges[last].1 - 3);
        reference::check(&kernel, &ranges, &owned);
    }
}

#[test]
fn what_is_not_finite_makes_no_term_that_is_left_out_a_number() {
    for (text, _) in [KERNELS[0], KERNELS[7], KERNELS[8]] {
        let kernel: Kernel = text.parse().unwrap();
        for (at, value) in [(0, f64::INFINITY), (39, f64::NAN)] {
            for operand in 0..2 {
                let mut owned = operands(&kernel, number);
                let column = &owned[operand].columns[0];
                let (dtype, shape) = (column.dtype(), column.shape().to_vec());
                let changed = |e| if e == at { value } else { number(dtype, e) };
                owned[operand].columns[0] = array(dtype, &shape, changed);
                reference::check(&kernel, &ranges_of(&kernel), &owned);
            }
        }
    }
}

#[test]
fn other_guarded_sums_are_left_to_other_loops() {
    for text in [
        // A condition of indices of both factors, a factor that is computed, few points, a scan, integers, a vector.
        "(f32[300, 300], f32[300]) [i: 300 | k: 300] f32 = sum a0[i, k] * a1[k] if k <= i",
        "(f32[60, 70], f32[70, 40]) [i: 60, j: 40 | k: 70] f32 = sum a0[i, k] * a1[k, j] if k <= i + j",
        "(f32[60, 70], f32[70, 40]) [i: 60, j: 40 | k: 70] f32 = sum a0[i, k] * exp(a1[k, j]) if k <= i",
        "(f32[9, 9], f32[9, 9]) [i: 9, j: 9 | k: 9] f32 = sum a0[i, k] * a1[k, j] if k <= i",
        "(f32[90, 90], f32[90, 90]) [i: 90, j: 90 | k: 90] f32 = sum a0[j, k] * a1[k, j] if k <= i",
        "(i64[60, 70], i64[70, 40]) [i: 60, j: 40 | k: 70] i64 = sum a0[i, k] * a1[k, j] if k <= i",
    ] {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let loops = schedule(&kernel, &ranges_of(&kernel), &chunks(&owned));
        assert!(!matches!(loops.kind, LoopKind::Matmul(_)), "{kernel}");
        reference::check(&kernel, &ranges_of(&kernel), &owned);
    }
}
