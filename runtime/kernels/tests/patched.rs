//! Operands given back but for the rows that data find in another one, against the naive evaluator.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{Chunk, Options, Scheduled, run, run_over, schedule};
use ein_plan::schedule::patched::patched;
use ein_plan::{DType, Kernel, LoopKind};
use reference::{Owned, array, chunks, interpret, operands};

const KERNELS: [&str; 5] = [
    "(i64[900], f32[12, 37], f32[900, 37]) [i: 900, h: 37] f32 = (a1[a0[i], h] else a2[i, h])",
    "(u32[900], f64[37, 12], f64[37, 900]) [h: 37, i: 900] f64 = (a1[h, a0[i]] else a2[h, i])",
    "(i64[90], f32[5, 12, 8], f32[5, 90, 8]) [k: 5, i: 90, h: 8] f32 = (a1[k, a0[i], h] else a2[k, i, h])",
    "(i64[90], i32[12], i32[90]) [i: 90] i32 = (a1[a0[i]] else a2[i])",
    "(i64[90, 2], f32[12, 7], f32[90, 7]) [i: 90, h: 7] f32 = (a1[a0[i, 1], h] else a2[i, h])",
];

/// Rows from -10 to 19, of which there are 12, or from 0 on; other numbers.
fn number(dtype: DType, at: usize) -> f64 {
    match dtype {
        DType::I64 => ((at * 17 + 3) % 30) as f64 - 10.0,
        DType::U32 => ((at * 17 + 3) % 30) as f64,
        _ => ((at * 37 + at / 3) % 29) as f64 - 1.0,
    }
}

/// The part of an operand at some ranges, as a chunk has it.
fn part(whole: &Array, ranges: &[(u64, u64)]) -> Array {
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let from: Vec<usize> = ranges.iter().map(|(start, _)| *start as usize).collect();
    let mut part = array(whole.dtype(), &lengths, |_| 0.0);
    part.copy_box(&vec![0; lengths.len()], whole, &from, &lengths);
    part
}

#[test]
fn rows_that_data_find_are_written() {
    for text in KERNELS {
        let kernel: Kernel = text.parse().unwrap();
        let owned = operands(&kernel, number);
        let whole: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
        let mut some = whole.clone();
        // A part of the rows, which the operands that are cut along them have alone.
        let row = patched(&kernel).map_or(0, |form| form.index.0 as usize);
        some[row] = (some[row].1 / 3, some[row].1 / 2);
        for ranges in [whole, some] {
            let cut: Vec<Owned> = (owned.iter().enumerate())
                .map(|(operand, all)| match operand {
                    2 => Owned {
                        columns: vec![part(&all.columns[0], &ranges)],
                        start: ranges.iter().map(|(start, _)| *start).collect(),
                    },
                    _ => all.clone(),
                })
                .collect();
            let chunks: Vec<Chunk<'_>> = chunks(&cut);
            let loops = schedule(&kernel, &ranges, &chunks);
            let is_patched = loops.kind == LoopKind::Patched;
            assert_eq!(is_patched, text != KERNELS[4], "{kernel}");
            let wanted = interpret(&kernel, &ranges, &owned).unwrap();
            let scheduled = Scheduled {
                kernel: &kernel,
                loops: &loops,
            };
            let options = Options::default();
            let apart = run(&kernel, &ranges, &chunks, &options).unwrap();
            let old = cut[2].columns[0].clone();
            let mut without = chunks.clone();
            without[2].columns.clear();
            let over = run_over(scheduled, &ranges, &without, (2, old), &options, None).unwrap();
            for found in [apart, over] {
                assert_eq!(found[0].data().len(), wanted.len());
                for (at, (value, _)) in wanted.iter().enumerate() {
                    let got = found[0].data().get(at).as_f64();
                    assert_eq!(got, value.f(), "{kernel} over {ranges:?} at {at}");
                }
            }
        }
    }
}
