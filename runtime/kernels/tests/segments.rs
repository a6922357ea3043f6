//! Reductions of segments against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Fault, Options, run, schedule};
use ein_plan::{DType, Kernel, LoopKind};
use reference::{Owned, array, chunks, operands};

const KERNELS: [&str; 11] = [
    "(i64[31], f32[200], i64[200], f32[40]) [i: 30 | e: 200] f32 = sum a1[e] * a3[a2[e]] if and(a0[i] <= e, e < a0[i + 1])",
    "(u32[31], f32[200], u32[200], f32[40]) [i: 30 | e: 200] f32 = sum a1[e] * a3[a2[e]] if and(a0[i] <= e, e < a0[i + 1])",
    "(u32[31], f64[200], i32[200], f64[40]) [i: 30 | e: 200] f64 = max 3.0_f64 * a3[i64(a2[e])] * a1[e] if and(a0[i] <= e, e < a0[i + 1])",
    "(i64[31], i64[200], i64[200], i64[40]) [i: 30 | e: 200] i64 = prod a1[e] * a3[a2[e]] if and(e >= a0[i], a0[i + 1] > e)",
    "(i64[31], f32[200], i64[200], f32[40]) [i: 30 | e: 200] f32 = max abs(a3[i] - a3[a2[e]]) if and(a0[i] <= e, e < a0[i + 1])",
    "(i64[31], f32[200], i64[200], f32[40, 5]) [i: 30, k: 5 | e: 200] f32 = sum a1[e] * a3[a2[e], k] if and(a0[i] <= e, e < a0[i + 1])",
    "(i64[31], f32[200], i64[200], f32[40]) [i: 30 | e: 200] f32 = sum a1[e] if and(and(a0[i] <= e, e < a0[i + 1]), a1[e] > 0.0_f32)",
    "(i64[31], f32[200], i64[200], f32[40]) [i: 30 | e: 200] f32 = mean a1[e] if and(a0[i] < e, e <= a0[i + 1])",
    "(i64[31], f32[200], i64[200], f32[40]) [i: 30 | e: 200, d: 3] f32 = logsumexp a1[e] * f32(d) if and(a0[i] <= e, e < a0[i + 1])",
    "(i64[31], bool[200]) [i: 30, k: 2 | e: 200] bool = any a1[e] if and(a0[i] - k <= e, e < a0[i + 1])",
    "(i64[31], f32[200]) [i: 30 | e: 200] f32 = sum a1[e] if and(a0[i] <= e, e < a0[i] + 9)",
];

/// Where 31 segments of 200 points begin, some of them empty, and other numbers.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::I64 | DType::U32 | DType::I32 => ((at * 17 + 3) % 30) as f64,
        DType::Bool => f64::from(u8::from(at.is_multiple_of(13))),
        _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
    }
}

fn start(at: usize) -> f64 {
    (at / 3 * 3 * 20 / 3).min(200) as f64
}

fn owned(kernel: &Kernel, start: impl Fn(usize) -> f64) -> Vec<Owned> {
    let mut owned = operands(kernel, number);
    let dtype = kernel.operands[0].columns[0];
    owned[0].columns[0] = array(dtype, &[31], start);
    owned
}

#[test]
fn segments_are_reduced_as_the_definition_says() {
    let shifted = |at: usize| start(at) + 7.0;
    let backwards = |at: usize| start(30 - at);
    let outside = |at: usize| start(at) * 3.0 - 150.0;
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let starts: [&dyn Fn(usize) -> f64; 4] = [&start, &shifted, &backwards, &outside];
        let is_unsigned = kernel.operands[0].columns[0] == DType::U32;
        for start in &starts[..if is_unsigned { 3 } else { 4 }] {
            let owned = owned(&kernel, start);
            let loops = schedule(&kernel, &whole, &chunks(&owned));
            assert!(matches!(loops.kind, LoopKind::Segments(_)), "{kernel}");
            reference::check(&kernel, &whole, &owned);
            // Some of the rows, and some of the points.
            let mut part = whole.clone();
            part[0] = (4, 9);
            reference::check(&kernel, &part, &owned);
            let reduced = kernel.output_rank as usize;
            (part[0], part[reduced]) = ((0, 30), (15, 101));
            reference::check(&kernel, &part, &owned);
        }
    }
}

#[test]
fn a_place_outside_is_the_fault_that_the_loops_find() {
    for text in &KERNELS[..2] {
        let kernel: Kernel = text.parse().unwrap();
        let mut owned = owned(&kernel, start);
        let dtype = kernel.operands[2].columns[0];
        owned[2].columns[0] = array(dtype, &[200], |e| if e == 47 { 40.0 } else { 7.0 });
        let ranges = [(0, 30), (0, 200)];
        let error = run(&kernel, &ranges, &chunks(&owned), &Options::default()).unwrap_err();
        let fault = Fault::OutOfRange {
            operand: 3,
            dimension: 0,
            position: 40,
            extent: 40,
        };
        assert_eq!((error.fault, error.point), (fault, vec![8, 47]), "{text}");
    }
}

#[test]
fn there_is_nothing_to_choose_from_in_an_empty_segment() {
    let text =
        "(i64[31], f32[200]) [i: 30 | e: 200] i64 = argmax a1[e] if and(a0[i] <= e, e < a0[i + 1])";
    let kernel: Kernel = text.parse().unwrap();
    let filled = owned(&kernel, |at| 6.0 * at as f64);
    let ranges = [(0, 30), (0, 200)];
    let loops = schedule(&kernel, &ranges, &chunks(&filled));
    assert!(matches!(loops.kind, LoopKind::Segments(_)), "{kernel}");
    reference::check(&kernel, &ranges, &filled);
    let empty = owned(&kernel, start);
    let error = run(&kernel, &ranges, &chunks(&empty), &Options::default()).unwrap_err();
    assert_eq!(
        (error.fault, error.point),
        (Fault::NothingToChoose, vec![0])
    );
}
