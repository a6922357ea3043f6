//! Positions that go round a modulus, and reads that conditions keep inside, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{KernelError, Options, run};
use ein_plan::{DType, Kernel};
use reference::{Owned, array, chunks, close, interpret};

fn evaluate(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    owned: &[Owned],
) -> Result<Vec<Array>, KernelError> {
    let chunks = chunks(owned);
    run(kernel, ranges, &chunks, &Options::default())
}

/// `[i: 7, j: 1100]` of a value, by the kernel and by the evaluator, on all and on parts.
fn check(value: &str) {
    let text = format!("(f32[7, 1100], i64[7, 1100]) [i: 7, j: 1100] f32 = {value}");
    let kernel: Kernel = text.parse().unwrap();
    let shape = [7, 1100];
    let owned = [
        array(DType::F32, &shape, |e| {
            ((e * 37 + e / 3) % 101) as f64 - 50.0
        }),
        array(DType::I64, &shape, |e| ((e * 31) % 7) as f64),
    ]
    .map(|array| Owned {
        columns: vec![array],
        start: vec![0, 0],
    });
    for ranges in [
        [(0, 7), (0, 1100)],
        [(2, 3), (1, 600)],
        [(6, 1), (1090, 10)],
    ] {
        let got = evaluate(&kernel, &ranges, &owned);
        let want = interpret(&kernel, &ranges, &owned);
        let (got, want) = match (got, want) {
            (Ok(got), Ok(want)) => (got, want),
            (Err(got), Err((fault, point))) => {
                let point: Vec<u64> = point.iter().map(|x| *x as u64).collect();
                assert_eq!((got.fault, got.point), (fault, point), "{value} {ranges:?}");
                continue;
            }
            (got, want) => panic!("{value} {ranges:?}: {:?}, not {:?}", got.err(), want.err()),
        };
        for (at, (want, scale)) in want.iter().enumerate() {
            let x = got[0].data().get(at).as_f64();
            assert!(
                close(DType::F32, x, want.f(), *scale),
                "{value} {ranges:?} {at}: {x}, not {want:?}"
            );
        }
    }
}

#[test]
fn positions_go_round() {
    for value in [
        "a0[rem(i + 1, 7), j]",
        "a0[i, rem(j + 1, 1100)]",
        "a0[rem(i + 6, 7), rem(j + 1099, 1100)] - a0[i, j]",
        "a0[rem(5 * i, 7), rem(-3 * j + 2, 1100)]",
        "a0[rem(i - 20, 5), rem(2 * j - i, 37)]",
        "a0[rem(i + j, 7), rem(j - 2200, 1100)]",
        // Positions past the end of a part, of the whole, and at a place that data say.
        "a0[rem(i, 9), rem(j + 7, 1200)] else 3.0",
        "a0[a1[i, j], rem(j + 400, 1100)]",
        "a0[a1[0, rem(j, 3)], rem(j + 400, 1100)]",
        "a0[rem(i + 1, 7), j + 1] else 0.5",
        "a0[rem(i, 9), j]",
    ] {
        check(value);
    }
}

#[test]
fn positions_are_quotients() {
    for value in [
        "a0[floordiv(j, 200), rem(j, 200)]",
        "a0[rem(floordiv(j + 3, 50), 7), floordiv(1100 * i + j, 7)]",
        "a0[rem(floordiv(i, 2), 3), j] * a0[floordiv(i + 6, 2), floordiv(j, 2)]",
        "a0[floordiv(1100 * i + j, 1100), rem(1100 * i + j, 1100)]",
        "a0[floordiv(-3 * j + 7 * 600, 600), rem(floordiv(j, 3), 11)]",
        "a0[floordiv(rem(j, 300), 100), j] - a0[i, floordiv(floordiv(j, 3), 4)]",
        // Positions past the end of a part, of the whole, and at a place that data say.
        "a0[floordiv(j, 100), rem(j, 100)] else 3.0",
        "a0[floordiv(j - 400, 100), rem(floordiv(j, 9), 200)] else 3.0",
        "a0[a1[i, j], floordiv(j, 400)]",
        "a0[floordiv(j, 100), rem(j, 100)]",
        "a0[rem(i + j, 9), j]",
        "a0[rem(floordiv(j, 70), 9), j]",
        "a0[floordiv(j, -200) + 6, rem(j, 200)]",
    ] {
        check(value);
    }
}

#[test]
fn conditions_keep_reads_inside() {
    for value in [
        "where(i > 0, a0[i - 1, j], 0.0) + where(j < 1099, a0[i, j + 1], a0[i, j])",
        "where(and(i > 1, 3 <= j), a0[i - 2, j - 3], -1.0)",
        "where(or(i < 1, j >= 1098), 2.0, a0[i - 1, j + 2])",
        "where(i == 0, 2.0, a0[i - 1, j]) * where(j != 1099, a0[i, j + 1], 1.0)",
        "where(not(i + j < 4), a0[i, j - 4 + i], 7.0)",
        "where(j > 0, where(i > j, a0[i - j, j - 1], 0.0), 1.0)",
        // Conditions that do not: the lowest point at which one fails is the fault.
        "where(i > 0, a0[i - 2, j], 0.0)",
        "where(j < 1099, a0[i, j + 2], 0.0)",
        "where(i > 0, a0[i - 1, j], 0.0) + a0[i, j - 1]",
    ] {
        check(value);
    }
}

#[test]
fn positions_that_take_turns() {
    for value in [
        "a0[rem(j, 2), floordiv(j, 2)]",
        "a0[rem(j + 1, 2), floordiv(j + 1, 2)]",
        "a0[rem(1099 - j, 3), floordiv(1099 - j, 3) + i]",
        "a0[rem(j, 7), floordiv(j, 7)] + f32(a1[rem(2 * j, 4), floordiv(j, 2)])",
        "a0[rem(j, 5), j]",
        "a0[i, floordiv(j, 4)] * a0[rem(j, 4), 3]",
        // Turns that do not fit each other, that are long, and that end with the modulus of a quotient.
        "a0[rem(j, 2), floordiv(j, 3)]",
        "a0[rem(3 * j, 7), floordiv(3 * j, 7)]",
        "a0[rem(floordiv(j, 2), 5), rem(j, 2)]",
        "a0[rem(floordiv(j, 3), 4), rem(floordiv(j, 3), 50)]",
        // Past the end of a part.
        "a0[rem(j, 2), floordiv(j, 2) + 600] else 2.0",
        "a0[rem(j, 8), floordiv(j, 2)]",
    ] {
        check(value);
    }
}
