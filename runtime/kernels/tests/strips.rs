//! Reductions in strips of many lanes, against the naive evaluator: columns of elements as they lie and of computed ones, rows of computed ones and
//! of ones that lie backwards, in one part and in several; and reductions into few results, of which a strip has several rows.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_plan::{DType, Kernel};
use reference::operands;

const KERNELS: [&str; 22] = [
    "(f32[9, 9001]) [j: 9001 | i: 9] f32 = sum a0[i, j]",
    "(f32[70, 5000]) [j: 5000 | i: 70] f32 = sum a0[i, j]",
    "(f64[70, 5000]) [j: 5000 | i: 70] f64 = mean a0[i, j]",
    "(f32[11, 4097]) [j: 4097 | i: 11] f32 = max a0[i, j]",
    "(f64[70, 5000]) [j: 5000 | i: 70] f64 = min a0[i, j]",
    "(f32[6, 3000]) [j: 3000 | i: 6] f32 = prod a0[i, j]",
    "(f32[70, 5000]) [j: 5000 | i: 70] f32 = norm a0[i, j]",
    "(f64[13, 5000]) [j: 5000 | i: 13] f64 = norm a0[i, j]",
    "(f32[70, 5000]) [j: 5000 | i: 70] f32 = logsumexp a0[i, j]",
    "(f32[70, 5000]) [j: 5000 | i: 70] i64 = argmax a0[i, j]",
    "(i64[70, 5000]) [j: 5000 | i: 70] i64 = sum a0[i, j]",
    "(i32[7, 5000]) [j: 5000 | i: 7] i32 = max a0[i, j]",
    "(f32[70, 5000], f32[5000]) [j: 5000 | i: 70] f32 = sum where(a0[i, j] > a1[j], a0[i, j] * a1[j], 0.0)",
    "(f32[7, 5000]) [j: 5000 | i: 7] f32 = sum a0[i, j] if a0[i, j] > 0.0",
    "(f32[5, 7, 3000]) [k: 5, j: 3000 | i: 7] f32 = sum a0[k, i, j]",
    "(f32[20, 5001], f32[20, 5001]) [i: 20 | j: 5001] f32 = sum where(a0[i, j] > 0.0, a0[i, j] * a1[i, j], 0.0)",
    "(f32[20, 5001]) [i: 20 | j: 5001] f32 = sum a0[i, j] if a0[i, j] > 0.0",
    "(f64[20, 5001]) [i: 20 | j: 5001] i64 = argmax a0[i, j] * a0[i, j]",
    "(f32[20, 3000]) [i: 20 | j: 3000] i64 = argmin a0[i, 2999 - j]",
    "(f32[3, 3, 3000]) [i: 3, h: 3 | j: 3000] f64 = max a0[i, h, j] * 0.5",
    "(f32[40, 600]) [i: 40 | j: 600] f32 = norm a0[i, j] * 2.0",
    "(f32[17, 1100]) [i: 17 | j: 1100] f32 = logsumexp a0[i, j] * 2.0",
];

/// Reductions into 8 to 256 results.
const FEW: [&str; 16] = [
    "(f32[1003, 30]) [j: 30 | i: 1003] f32 = sum a0[i, j] * a0[i, j]",
    "(f32[1003, 30]) [j: 30 | i: 1003] f32 = max a0[i, j]",
    "(f64[1003, 30], f64[1003]) [j: 30 | i: 1003] f64 = max a0[i, j] + a1[i]",
    "(f64[1003, 30], f64[1003]) [j: 30 | i: 1003] i64 = argmax a0[i, j] + a1[i]",
    "(f32[90, 11, 30]) [j: 30 | h: 90, i: 11] i64 = argmin a0[h, i, j] * a0[h, 0, j]",
    "(f32[90, 30, 11]) [j: 30 | h: 90, i: 11] f32 = norm a0[h, j, i] * 2.0",
    "(f32[90, 11, 30], f32[30], f32[11]) [j: 30 | h: 90, i: 11] f32 = sum a0[h, i, j] * exp(a1[j]) + exp(a2[i])",
    "(f64[77, 16, 16]) [k: 16, j: 16 | i: 77] f64 = mean a0[i, k, j] - a0[i, j, k]",
    "(f32[77, 250]) [j: 250 | i: 77] f32 = logsumexp a0[i, j] * 2.0",
    "(f32[300, 40]) [j: 40 | i: 300] f32 = sum a0[i, j] if a0[i, j] > 0.0",
    "(f32[300, 40]) [j: 40 | i: 300] f32 = mean a0[i, j] if i > 3 * j",
    "(i64[300, 40], f32[50]) [j: 40 | i: 300] f32 = sum a1[a0[i, j]] else 2.0",
    "(i32[300, 40]) [j: 40 | i: 300] i32 = max a0[i, j] - a0[i, 0]",
    "(f32[300, 40]) [j: 40 | i: 300] f32 = sum (a0[i - j, j] else 0.5) * a0[i, j]",
    "(f64[20001, 9]) [j: 9 | i: 20001] f64 = sum a0[i, j] * a0[20000 - i, j]",
    "(f32[7, 1, 33]) [j: 33 | i: 7, h: 1] i64 = argmax a0[i, h, j] * 0.5",
];

/// Small numbers of both signs, in no order.
fn number(dtype: DType, at: usize) -> f64 {
    let number = ((at.wrapping_mul(2_654_435_761) >> 7) % 1999) as f64 - 999.0;
    match dtype {
        DType::I64 | DType::I32 => number,
        _ => number / 512.0,
    }
}

fn check(text: &str, part: impl Fn((u64, u64)) -> (u64, u64)) {
    let kernel: Kernel = text
        .parse()
        .unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let owned = operands(&kernel, number);
    let whole = kernel.indices.iter().map(|i| (0, i.extent));
    let ranges: Vec<(u64, u64)> = whole.map(part).collect();
    reference::check(&kernel, &ranges, &owned);
}

#[test]
fn wide_strips_give_what_the_definition_gives() {
    for text in KERNELS.iter().chain(&FEW) {
        check(text, |whole| whole);
    }
}

#[test]
fn so_do_strips_of_part_of_the_points() {
    for text in FEW {
        check(text, |(_, extent)| (extent / 5, extent - 2 * (extent / 5)));
    }
}
