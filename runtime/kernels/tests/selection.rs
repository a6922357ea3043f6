//! Elements, rows and boxes at fixed places, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_kernels::{Options, run, schedule};
use ein_plan::{DType, Kernel, LoopKind};
use reference::{Owned, array, chunks, interpret};

const KERNELS: [&str; 8] = [
    "(f32[50, 4], i64[]) [h: 4 | v: 50] f32 = max a0[v, h] if v == a1[]",
    "(f64[4, 50], i64[]) [h: 4 | v: 50] f64 = max a0[h, v] if v == a1[]",
    "(i64[50], i64[]) [| v: 50] i64 = min a0[v] if v == a1[]",
    "(bool[50, 3], i64[]) [h: 3 | v: 50] bool = any a0[v, h] if v == a1[]",
    "(f16[50, 6, 50], i64[]) [h: 6 | v: 50, w: 50] f16 = max a0[v, h, w] if and(v == a1[], w == 7)",
    "(f32[3, 50, 5, 2], i64[]) [g: 3, h: 5, i: 2 | v: 50] f32 = max a0[g, v, h, i] if v == a1[]",
    "(i32[50, 1], i64[]) [h: 1 | v: 50] i32 = max a0[v, h] if v == a1[]",
    // So many elements are left to strips.
    "(f32[50, 70000], i64[]) [h: 70000 | v: 50] f32 = max a0[v, h] if v == a1[]",
];

/// The operands of a kernel, the first one from `first` on in the dimension that `v` reads; the place is 31.
fn operands(kernel: &Kernel, first: u64) -> Vec<Owned> {
    let one = |operand: &ein_plan::Operand| {
        let mut shape: Vec<usize> = operand.shape.iter().map(|n| *n as usize).collect();
        let mut start = vec![0; shape.len()];
        if let Some(dim) = shape.iter().position(|n| *n == 50) {
            (start[dim], shape[dim]) = (first, 50 - first as usize);
        }
        let value = |at: usize| match operand.columns[0] {
            _ if shape.is_empty() => 31.0,
            DType::Bool => (at % 3 % 2) as f64,
            _ => ((at * 37 + at / 3) % 229) as f64 - 100.0,
        };
        Owned {
            columns: vec![array(operand.columns[0], &shape, value)],
            start,
        }
    };
    kernel.operands.iter().map(one).collect()
}

#[test]
fn what_lies_at_fixed_places_is_copied() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let v = kernel.output_rank as usize;
        // All, a piece that has the place, and one that does not.
        for first in [0, 20, 32] {
            let owned = operands(&kernel, first);
            let mut ranges: Vec<(u64, u64)> =
                kernel.indices.iter().map(|i| (0, i.extent)).collect();
            ranges[v] = (first, 50 - first);
            let chunks = chunks(&owned);
            let loops = schedule(&kernel, &ranges, &chunks);
            assert_eq!(loops.kind, LoopKind::Selection, "{kernel}");
            let found = run(&kernel, &ranges, &chunks, &Options::default()).unwrap();
            let wanted = interpret(&kernel, &ranges, &owned).unwrap();
            let shape: Vec<usize> = ranges[..v].iter().map(|(_, n)| *n as usize).collect();
            assert_eq!(found[0].shape(), shape, "{kernel}");
            assert_eq!(found[0].data().len(), wanted.len());
            for (at, (value, _)) in wanted.iter().enumerate() {
                let got = found[0].data().get(at).as_f64();
                assert_eq!(got, value.f(), "{kernel} over {ranges:?} at {at}");
            }
        }
    }
}
