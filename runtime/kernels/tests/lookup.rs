//! Look-ups: reductions whose guard gives reduced indices their values, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{Fault, KernelError, Options, run, schedule};
use ein_plan::{DType, Kernel, LoopKind};
use reference::{Owned, array, chunks, close, interpret};

const KERNELS: [&str; 9] = [
    "(f32[50, 4], i64[7]) [n: 7, h: 4 | v: 50] f32 = max a0[v, h] if v == within(a1[n], 50)",
    "(f32[50, 4], i64[7]) [n: 7, h: 4 | v: 50] f32 = sum a0[v, h] * a0[v, h] if a1[n] - 9 == v",
    "(f64[50], i64[7]) [n: 7 | v: 50] f64 = prod a0[v] if and(v == a1[n], n > 2)",
    "(f64[50, 50], i64[7]) [n: 7, m: 7 | v: 50, w: 50] f64 = max a0[v, w] if and(v == a1[n], w == a1[m])",
    "(f32[50, 9], i64[7]) [n: 7 | v: 50, k: 9] f32 = logsumexp a0[v, k] if v == a1[n]",
    "(f32[50, 9], i64[7]) [n: 7 | k: 9, v: 50] f32 = mean a0[v, k] if and(v == a1[n], v + k > 20)",
    "(i64[50], i64[7]) [n: 7 | v: 50] i64 = min a0[v] if v == a1[n] * 2",
    "(bool[50], i64[7]) [n: 7 | v: 50] bool = any a0[v] if v == a1[n]",
    "(i64[50, 50], i64[50]) [n: 50 | v: 50, w: 50] i64 = sum a0[v, w] * v if and(v == a1[w], w <= n)",
];

/// Operands of a kernel: whole numbers from 0 to `largest`; the first operand has only some of its rows.
fn operands(kernel: &Kernel, largest: usize, rows: Option<(u64, u64)>) -> Vec<Owned> {
    let one = |(number, operand): (usize, &ein_plan::Operand)| {
        let mut shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
        let mut start = vec![0; shape.len()];
        if let (Some((first, count)), 0) = (rows, number) {
            (start[0], shape[0]) = (first, count as usize);
        }
        let value = |at: usize| match operand.columns[0] {
            DType::I64 => ((at * 17 + 3) % (largest + 1)) as f64,
            DType::Bool => (at % 3 % 2) as f64,
            _ => ((at * 37 + at / 3) % 29) as f64 / 8.0 - 1.0,
        };
        Owned {
            columns: vec![array(operand.columns[0], &shape, value)],
            start,
        }
    };
    kernel.operands.iter().enumerate().map(one).collect()
}

fn evaluate(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    owned: &[Owned],
) -> Result<Vec<Array>, KernelError> {
    let chunks = chunks(owned);
    let loops = schedule(kernel, ranges, &chunks);
    assert!(matches!(loops.kind, LoopKind::Lookup(_)), "{kernel}");
    run(kernel, ranges, &chunks, &Options::default())
}

#[track_caller]
fn check(kernel: &Kernel, ranges: &[(u64, u64)], owned: &[Owned]) {
    let found = evaluate(kernel, ranges, owned).unwrap();
    let wanted = interpret(kernel, ranges, owned).unwrap();
    let data = found[0].data();
    assert_eq!(data.len(), wanted.len());
    for (at, (value, scale)) in wanted.iter().enumerate() {
        let (got, want) = (data.get(at).as_f64(), value.f());
        assert!(
            close(kernel.output[0], got, want, *scale),
            "{kernel} over {ranges:?}: {got} for {want} at {at}"
        );
    }
}

#[test]
fn lookups_are_what_the_loops_give() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        check(&kernel, &whole, &operands(&kernel, 48, None));
    }
}

/// Every part of a table gives what it has, the neutral element for the rest.
#[test]
fn a_part_of_the_table_gives_its_own_rows() {
    for text in &KERNELS[..4] {
        let kernel: Kernel = text.parse().unwrap();
        let v = kernel.indices.iter().position(|i| i.name == "v").unwrap();
        for rows in [(0, 13), (13, 20), (33, 17), (20, 1)] {
            let mut ranges: Vec<(u64, u64)> =
                kernel.indices.iter().map(|i| (0, i.extent)).collect();
            ranges[v] = rows;
            check(&kernel, &ranges, &operands(&kernel, 48, Some(rows)));
        }
    }
}

#[test]
fn a_position_outside_stops_at_the_lowest_point() {
    let kernel: Kernel = KERNELS[0].parse().unwrap();
    let rows = (13, 20);
    let ranges = [(0, 7), (0, 4), rows];
    let owned = operands(&kernel, 60, Some(rows));
    let error = evaluate(&kernel, &ranges, &owned).unwrap_err();
    let Fault::NotWithin {
        check,
        position,
        extent,
    } = error.fault
    else {
        panic!("{error}");
    };
    // 3, 20, 37, 54: the fourth is outside.
    assert_eq!((position, extent), (54, 50));
    assert_eq!(error.point, [3, 0, 13]);
    let (index, operand, dimension) = kernel.checked(check).unwrap();
    assert_eq!((index.0, operand, dimension), (2, 0, 0));
}
