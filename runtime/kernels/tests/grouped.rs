//! Reductions key by key against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Options, run, schedule};
use ein_plan::schedule::LoopKind;
use ein_plan::{DType, Kernel};
use reference::{Owned, array, chunks, close, interpret};

/// Operands of a kernel: values first, keys behind, of which many are equal.
fn operands(kernel: &Kernel) -> Vec<Owned> {
    let all = kernel.operands.iter().enumerate();
    let owned = all.map(|(number, operand)| {
        let shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
        let dtype = operand.columns[0];
        let value = |e: usize| match (number, dtype.is_float()) {
            (0, _) => ((e * 7 + e / 4) % 11) as f64 - 4.0,
            (_, false) => ((e * 5 + e / 3) % 7) as f64 - 3.0,
            // No number, and zeros of both signs.
            (_, true) => [0.5, -0.0, f64::NAN, 0.0, -7.25, f64::INFINITY][(e * 5 + e / 3) % 6],
        };
        Owned {
            columns: vec![array(dtype, &shape, value)],
            start: vec![0; shape.len()],
        }
    });
    owned.collect()
}

#[track_caller]
fn agrees(text: &str, ranges: &[(u64, u64)]) {
    let kernel: Kernel = text.parse().unwrap();
    let owned = operands(&kernel);
    let chunks = chunks(&owned);
    let loops = schedule(&kernel, ranges, &chunks);
    assert!(
        matches!(loops.kind, LoopKind::Grouped(_)),
        "{text}: {loops:?}"
    );
    let got = run(&kernel, ranges, &chunks, &Options::default()).unwrap();
    let want = interpret(&kernel, ranges, &owned).unwrap();
    assert_eq!(got[0].data().len(), want.len());
    for (at, (value, scale)) in want.iter().enumerate() {
        let x = got[0].data().get(at).as_f64();
        assert!(
            close(kernel.output[0], x, value.f(), *scale),
            "{text} {ranges:?} {at}: {x}, not {value:?}"
        );
    }
}

#[test]
fn groups_are_what_the_loops_give() {
    let whole = [(0, 40), (0, 40)];
    let part = [(3, 30), (11, 25)];
    let late = [(0, 9), (20, 20)];
    for dtype in [DType::F32, DType::F64, DType::I32, DType::I64] {
        for keys in [DType::I64, DType::I32, DType::F32, DType::F64] {
            let of_floats = ["mean", "logsumexp", "norm", "norm1", "norminf"];
            let plain = ["sum", "max", "min", "prod"];
            let all = plain.into_iter().chain(of_floats);
            for reduction in all.filter(|r| dtype.is_float() || plain.contains(r)) {
                for order in ["", "m <= n", "m < n", "m >= n", "n < m"] {
                    let guard = match order {
                        "" => "a1[m] == a1[n]".to_owned(),
                        order => format!("and(a1[m] == a1[n], {order})"),
                    };
                    let text = format!(
                        "({dtype}[40], {keys}[40]) [n: 40 | m: 40] {dtype} = {reduction} a0[m] if {guard}"
                    );
                    for ranges in [whole, part, late] {
                        // Of nothing, a mean is no number, and an integer extreme the end of its type.
                        agrees(&text, &ranges);
                    }
                }
            }
        }
    }
}

#[test]
fn groups_have_indices_beside_them() {
    for (text, ranges) in [
        (
            "(f64[3, 40, 5], i64[3, 40]) [b: 3, n: 40, d: 5 | m: 40] f64 = sum a0[b, m, d] if a1[b, m] == a1[b, n]",
            vec![(0, 3), (2, 30), (1, 4), (0, 40)],
        ),
        (
            "(f64[3, 40, 5], i64[3, 40]) [n: 40, d: 5, b: 3 | m: 40] f64 = max a0[b, m, d] if and(n < m, a1[b, m] == a1[b, n])",
            vec![(2, 30), (1, 4), (0, 3), (5, 30)],
        ),
        (
            "(f64[6, 7], i64[6, 7], i64[30]) [n: 30 | p: 6, q: 7] f64 = sum a0[p, q] if a2[n] == a1[p, q]",
            vec![(0, 30), (1, 4), (0, 7)],
        ),
        (
            "(f64[40, 3], i64[40]) [n: 40 | k: 3, m: 40] f64 = logsumexp a0[m, k] if and(a1[m] == a1[n], a0[m, k] > 0.0_f64)",
            vec![(0, 40), (0, 3), (0, 40)],
        ),
        // An output point for each place and each of two keys, with an index of its own among the points.
        (
            "(f64[40, 3], i64[40, 3], i64[40, 2]) [e: 2, n: 40 | k: 3, m: 40] f64 = sum a0[m, k] if and(m <= n, a1[m, k] == a2[n, e])",
            vec![(0, 2), (4, 30), (0, 3), (0, 40)],
        ),
        (
            "(i64[40]) [n: 40 | m: 40] i64 = sum 1 if and(rem(a0[m], 5) == rem(a0[n], 5), m < n)",
            vec![(0, 40), (0, 40)],
        ),
    ] {
        agrees(text, &ranges);
    }
}

#[test]
fn many_groups_take_no_square() {
    let n = 300_000u64;
    let text = format!(
        "(f64[{n}], f64[{n}]) [n: {n} | m: {n}] f64 = sum a0[m] if and(a1[m] == a1[n], m <= n)"
    );
    let kernel: Kernel = text.parse().unwrap();
    let mut owned = operands(&kernel);
    owned[1].columns = vec![array(DType::F64, &[n as usize], |e| {
        (e % 1000) as f64 / 8.0
    })];
    let found = run(
        &kernel,
        &[(0, n), (0, n)],
        &chunks(&owned),
        &Options::default(),
    )
    .unwrap();
    let mut sums = vec![0.0; 1000];
    for m in 0..n as usize {
        sums[m % 1000] += owned[0].columns[0].data().get(m).as_f64();
        assert_eq!(found[0].data().get(m).as_f64(), sums[m % 1000]);
    }
}
