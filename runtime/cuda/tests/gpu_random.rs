//! Random kernels of all node kinds on the emulated GPU, against the naive evaluator that the processor's kernels are compared with.
//!
//! ```text
//! 144 kernels   ->   six units   ->   every result, or the first faulty point, as the evaluator has it
//! ```
#![allow(clippy::unwrap_used, missing_docs)]

mod machines;

#[path = "../../kernels/tests/cases/mod.rs"]
#[allow(dead_code)]
mod cases;
#[path = "../../kernels/tests/reference/mod.rs"]
mod reference;

use cases::{Case, case};
use ein_array::Array;
use ein_cuda::Gpu;
use ein_device::{Buffer, Device, Launch, Launched, Operand, Prepared};
use ein_plan::{Kernel, LoopKernel, LoopKind, Reduction, Scalar, piece};
use machines::gpu;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reference::{Owned, Value, close, interpret};

const CASES: usize = 144;

/// Seeds that differ from run to run, unless the environment says which.
fn seeds() -> Vec<u64> {
    let mut runner = TestRunner::new(ProptestConfig::default());
    let drawn = (0..CASES).map(|_| any::<u64>().new_tree(&mut runner).unwrap().current());
    drawn.collect()
}

/// The kernel as its text runs it, whatever loops the processor would choose.
fn prepared(gpu: &Gpu, kernel: &Kernel) -> Box<dyn Prepared> {
    gpu.prepare(kernel, &LoopKernel::whole(LoopKind::Strips), false)
}

fn run(gpu: &Gpu, kernel: &dyn Prepared, ranges: &[(u64, u64)], owned: &[Owned]) -> Launched {
    let adopt = |array: &Array| gpu.adopt(Buffer::from(array.clone()));
    let columns: Vec<Vec<Buffer>> = (owned.iter())
        .map(|operand| operand.columns.iter().map(adopt).collect())
        .collect();
    let operands = owned.iter().zip(&columns);
    gpu.run(&Launch {
        kernel,
        ranges: ranges.to_vec(),
        operands: operands
            .map(|(operand, columns)| Operand {
                columns,
                start: operand.start.clone(),
            })
            .collect(),
    })
}

/// Products that leave the range of `f64` on the way depend on the order; all others are compared.
fn comparable(kernel: &Kernel, scale: f64) -> bool {
    kernel.reduction != Some(Reduction::Prod) || scale < 1e3
}

fn check(faults: bool) {
    let gpu = gpu();
    let all = seeds().into_iter().map(|seed| (seed, case(seed, faults)));
    let all: Vec<(u64, Case)> = all.collect();
    let prepared: Vec<_> = (all.iter().map(|(_, case)| prepared(&gpu, &case.kernel))).collect();
    let mut stopped = 0;
    for ((seed, case), prepared) in all.iter().zip(&prepared) {
        let Case {
            kernel,
            ranges,
            operands,
        } = case;
        let got = run(&gpu, &**prepared, ranges, operands);
        match (got, interpret(kernel, ranges, operands)) {
            (Ok(got), Ok(want)) => {
                let got = got[0].to_host();
                assert_eq!(got.data().len(), want.len(), "seed {seed}");
                for (at, (value, scale)) in want.iter().enumerate() {
                    let found = got.data().get(at);
                    let agrees = match (*value, found) {
                        (Value::I(x), Scalar::Int(y)) => x == y,
                        (Value::I(_), other) => panic!("seed {seed}: {other:?}"),
                        (value, found) => close(got.dtype(), found.as_f64(), value.f(), *scale),
                    };
                    assert!(
                        agrees || !comparable(kernel, *scale),
                        "seed {seed}, element {at}: {found:?}, not {value:?} of {:?}\n{kernel}\n{ranges:?}",
                        got.dtype(),
                    );
                }
            }
            (Err(got), Err((fault, point))) => {
                let at: Vec<i64> = got.point.iter().map(|p| *p as i64).collect();
                assert_eq!((got.fault, at), (fault, point), "seed {seed}\n{kernel}");
                stopped += 1;
            }
            (got, want) => panic!("seed {seed}: {got:?}\nnot {want:?}\n{kernel}\n{ranges:?}"),
        }
    }
    // Nothing was left to the cores but what has a fault to name.
    assert_eq!(gpu.counts().on_cores, stopped);
    assert!(!faults || stopped > CASES as u64 / 10, "{stopped}");
}

#[test]
fn kernels_agree_with_the_naive_evaluator() {
    check(false);
}

#[test]
fn faults_are_found_at_the_lowest_point() {
    check(true);
}

/// A reduction in pieces along its first index, combined, against the whole carrier.
#[test]
fn reductions_in_pieces_give_the_same() {
    let gpu = gpu();
    let mut all = vec![];
    for seed in seeds() {
        let mut case = case(seed, false);
        let Some(reduction) = case.kernel.reduction else {
            continue;
        };
        case.kernel.finish = false;
        let want = interpret(&case.kernel, &case.ranges, &case.operands).unwrap();
        case.kernel.output = reduction.carrier(case.kernel.graph.dtype(case.kernel.root));
        let prepared = prepared(&gpu, &case.kernel);
        all.push((seed, reduction, case, want, prepared));
    }
    assert!(all.len() > CASES / 8);
    for (seed, reduction, case, want, prepared) in all {
        let (kernel, at) = (&case.kernel, case.kernel.output_rank as usize);
        let mut total: Option<Vec<Buffer>> = None;
        for part in 0..3 {
            let mut ranges = case.ranges.clone();
            let (start, n) = piece(ranges[at].1, 3, part);
            ranges[at] = (ranges[at].0 + start, n);
            let next = run(&gpu, &*prepared, &ranges, &case.operands).unwrap();
            total = Some(match total {
                None => next,
                Some(total) => gpu.combine(reduction, total, next),
            });
        }
        let columns: Vec<_> = total.unwrap().iter().map(Buffer::to_host).collect();
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
            let agrees = match (value, columns[0].data().get(e)) {
                (Value::I(x), _) if reduction.is_arg() => got == *x as f64,
                (Value::I(x), Scalar::Int(y)) => *x == y,
                (Value::I(_), _) => false,
                _ => close(dtype, got, value.f(), scale * 4.0),
            };
            assert!(
                agrees || !comparable(kernel, *scale),
                "seed {seed}, element {e}: {got}, not {value:?}\n{kernel}\n{:?}",
                case.ranges
            );
        }
    }
}
