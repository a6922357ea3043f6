//! Random kernels of all node kinds against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod cases;
mod reference;

use cases::{Case, case, chunks};
use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, Options, combine, run};
use ein_plan::{DType, Kernel, Reduction, Scalar};
use proptest::prelude::*;
use reference::{Value, close, interpret};

/// Products that leave the range of `f64` on the way depend on the order; all others are compared.
fn comparable(kernel: &Kernel, scale: f64) -> bool {
    kernel.reduction != Some(Reduction::Prod) || scale < 1e3
}

fn check(seed: u64, faults: bool) {
    let Case {
        kernel,
        ranges,
        operands,
    } = case(seed, faults);
    let got = run(&kernel, &ranges, &chunks(&operands), &Options::default());
    match (got, interpret(&kernel, &ranges, &operands)) {
        (Ok(got), Ok(want)) => {
            assert_eq!(got.len(), 1);
            let data = got[0].data();
            assert_eq!(data.len(), want.len(), "seed {seed}");
            for (at, (value, scale)) in want.iter().enumerate() {
                let agrees = match *value {
                    Value::I(x) => match data.get(at) {
                        Scalar::Int(y) => x == y,
                        other => panic!("seed {seed}: {other:?}"),
                    },
                    value => close(data.dtype(), data.get(at).as_f64(), value.f(), *scale),
                };
                assert!(
                    agrees || !comparable(&kernel, *scale),
                    "seed {seed}, element {at}: {:?}, not {value:?} of {:?}\n{kernel:#?}\n{ranges:?}",
                    data.get(at),
                    data.dtype(),
                );
            }
        }
        (Err(got), Err((fault, point))) => {
            let at: Vec<i64> = got.point.iter().map(|p| *p as i64).collect();
            assert_eq!((got.fault, at), (fault, point), "seed {seed}\n{kernel:#?}");
        }
        (got, want) => panic!("seed {seed}: {got:?}\nnot {want:?}\n{kernel:#?}\n{ranges:?}"),
    }
}

/// A reduction in pieces along its first index, combined and finished, against the reduction at one go.
fn check_pieces(seed: u64) {
    let Case {
        mut kernel,
        ranges,
        operands,
    } = case(seed, false);
    let Some(reduction) = kernel.reduction else {
        return;
    };
    let value = kernel.graph.dtype(kernel.root);
    let at = kernel.output_rank as usize;
    kernel.finish = false;
    let want = interpret(&kernel, &ranges, &operands).unwrap();
    kernel.output = reduction.carrier(value);
    let mut total: Option<Vec<Array>> = None;
    for part in 0..3 {
        let (start, n) = ein_plan::piece(ranges[at].1, 3, part);
        let mut ranges = ranges.clone();
        ranges[at] = (ranges[at].0 + start, n);
        let next = run(&kernel, &ranges, &chunks(&operands), &Options::default()).unwrap();
        match &mut total {
            None => total = Some(next),
            Some(total) => combine(reduction, total, &next),
        }
    }
    let columns = total.unwrap();
    for (e, (value, scale)) in want.iter().enumerate() {
        let c = |column: usize| columns[column].data().get(e).as_f64();
        let got = match reduction {
            Reduction::ArgMax | Reduction::ArgMin => c(1),
            Reduction::Mean => c(0) / c(1),
            Reduction::LogSumExp => c(0) + c(1).ln(),
            Reduction::Norm => c(0) * c(1).sqrt(),
            _ => c(0),
        };
        let dtype = columns[0].dtype();
        let agrees = if let Value::I(x) = value {
            match (reduction.is_arg(), columns[0].data().get(e)) {
                (true, _) => got == *x as f64,
                (_, Scalar::Int(y)) => *x == y,
                _ => false,
            }
        } else {
            close(dtype, got, value.f(), scale * 4.0)
        };
        assert!(
            agrees || !comparable(&kernel, *scale),
            "seed {seed}, element {e}: {got}, not {value:?}\n{kernel:#?}\n{ranges:?}"
        );
    }
}

/// Compiled groups give the bits of the strip machine, and the same faults.
fn check_fusion(seed: u64, faults: bool) {
    let Case {
        kernel,
        ranges,
        operands,
    } = case(seed, faults);
    let with = |fusion| {
        let options = Options {
            fusion,
            ..Options::default()
        };
        run(&kernel, &ranges, &chunks(&operands), &options)
    };
    match (with(Fusion::Always), with(Fusion::Never)) {
        (Ok(fused), Ok(plain)) => {
            for (fused, plain) in fused.iter().zip(&plain) {
                for at in 0..plain.data().len() {
                    // Which of two NaNs is the result of an operation on both is not said anywhere.
                    let same = match (fused.data().get(at), plain.data().get(at)) {
                        (Scalar::Float(x), Scalar::Float(y)) => {
                            x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan()
                        }
                        (x, y) => x == y,
                    };
                    assert!(
                        same,
                        "seed {seed}, element {at}: {fused:?}, not {plain:?}\n{kernel:#?}"
                    );
                }
            }
        }
        (fused, plain) => assert_eq!(fused.err(), plain.err(), "seed {seed}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn kernels_agree_with_the_naive_evaluator(seed in any::<u64>()) {
        check(seed, false);
    }

    #[test]
    fn faults_are_found_at_the_lowest_point(seed in any::<u64>()) {
        check(seed, true);
    }

    #[test]
    fn reductions_in_pieces_give_the_same(seed in any::<u64>()) {
        check_pieces(seed);
    }

    #[test]
    fn compiled_groups_give_the_same_bits(seed in any::<u64>(), faults in any::<bool>()) {
        check_fusion(seed, faults);
    }
}

/// The smaller of 0 and -0 is divided by: its sign decides.
#[test]
fn zeros_of_both_signs_are_told_apart() {
    check(1_451_682_021_623_699_665, false);
}

/// Neighbours over one index or several, whole and in part, with what differs between lanes and what does not.
#[test]
fn long_strips_give_the_bits_of_short_ones() {
    for text in [
        "(f32[301, 1030], f32[301, 1030]) [n: 301, d: 1030] f32 = a0[n, d] - a1[n, d]",
        "(f64[301, 1030], f64[301, 1030]) [n: 301, d: 1030] f64 = a0[n, d] - a1[n, d]",
        "(f32[301, 1030], f32[1030]) [n: 301, d: 1030] f32 = a0[n, d] * a1[d] + a1[d]",
        "(f32[301, 26, 130], f32[130]) [n: 301, d: 13, k: 130] f32 = a0[n, 2 * d, k] * a1[k] + a1[k]",
        "(f32[301, 1030], f32[301]) [n: 301, d: 1030] f32 = max(a0[n, d], a1[n])",
        "(f32[301, 1030], f32[]) [n: 301, d: 1030] f32 = a0[n, d] * exp(a1[])",
        "(f32[301, 1031], f32[301, 1030]) [n: 301, d: 1030] f32 = a0[n, d + 1] * a1[n, d]",
        "(f32[1030, 301], f32[301, 1030]) [n: 301, d: 1030] f32 = a0[d, n] + a1[n, d]",
        "(f32[301, 1030], f32[301, 1030]) [n: 301, d: 1030] f32 = where(a0[n, d] > a1[n, d], a0[n, d], -a1[n, d])",
        "(f32[301, 1030], f32[301, 1030]) [n: 301, d: 1030] f16 = a0[n, d] * a1[n, d]",
        "(bf16[301, 1030], f32[301, 1030]) [n: 301, d: 1030] f32 = a0[n, d] * a1[n, d]",
    ] {
        let kernel: Kernel = text.parse().unwrap();
        for rows in [(0, 301), (7, 290)] {
            let operands: Vec<Array> = (kernel.operands.iter().enumerate())
                .map(|(number, operand)| {
                    let cut = operand.shape.first() == Some(&301);
                    let mut shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
                    if cut {
                        shape[0] = rows.1 as usize;
                    }
                    let value =
                        |at: usize| ((at * 7919 + number * 104_729) % 4001) as f64 / 1000.0 - 2.0;
                    let values = (0..shape.iter().product()).map(value);
                    let data = match operand.columns[0] {
                        DType::F64 => Data::F64(values.collect()),
                        DType::BF16 => Data::BF16(values.map(half::bf16::from_f64).collect()),
                        _ => Data::F32(values.map(|x| x as f32).collect()),
                    };
                    Array::new(shape, data).unwrap()
                })
                .collect();
            let chunks: Vec<Chunk<'_>> = (kernel.operands.iter().zip(&operands))
                .map(|(operand, array)| {
                    let mut start = vec![0; operand.shape.len()];
                    if operand.shape.first() == Some(&301) {
                        start[0] = rows.0;
                    }
                    Chunk {
                        columns: vec![array],
                        start,
                    }
                })
                .collect();
            let others = kernel.indices[1..].iter().map(|index| (0, index.extent));
            let ranges: Vec<(u64, u64)> = [rows].into_iter().chain(others).collect();
            let [short, long] = [Fusion::Never, Fusion::Always].map(|fusion| {
                let options = Options {
                    fusion,
                    ..Options::default()
                };
                run(&kernel, &ranges, &chunks, &options).unwrap()
            });
            assert_eq!(
                short[0].data().bytes(),
                long[0].data().bytes(),
                "{text}, rows {rows:?}"
            );
        }
    }
}
