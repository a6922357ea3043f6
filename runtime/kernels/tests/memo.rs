//! A kernel that is run again gives the bits of its first run, whatever ranges, shapes and values come.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, Memo, Options, Scheduled, execute, run, schedule};
use ein_plan::Kernel;

fn array(shape: &[usize], seed: usize) -> Array {
    let n: usize = shape.iter().product();
    let value = |at: usize| ((at * 7919 + seed * 104_729) % 4001) as f32 / 1000.0 - 2.0;
    Array::new(shape.to_vec(), Data::F32((0..n).map(value).collect())).unwrap()
}

/// Parts of the rows of 300, so many that not all are kept, and over and over the same two.
#[test]
fn runs_are_alike() {
    for text in [
        "(f32[300, 40], f32[40]) [n: 300, d: 40] f32 = max(a0[n, d] * a1[d] + a0[n, d], a1[d] - a0[n, d])",
        "(f32[300, 40], f32[40]) [n: 300 | d: 40] f32 = sum abs(a0[n, d] * a1[d] - 0.5)",
    ] {
        let kernel: Kernel = text.parse().unwrap();
        for fusion in [Fusion::Never, Fusion::WhenWorthwhile, Fusion::Always] {
            let options = Options {
                fusion,
                ..Options::default()
            };
            let memo = Memo::default();
            for turn in 0..600 {
                let (start, count) = match turn % 50 {
                    0 => (turn / 5, 1 + turn / 4),
                    other if other % 2 == 0 => (0, 300),
                    _ => (100, 200),
                };
                let rows = array(&[count, 40], turn);
                let row = array(&[40], turn + 1);
                let operands = [
                    Chunk {
                        columns: vec![&rows],
                        start: vec![start as u64, 0],
                    },
                    Chunk {
                        columns: vec![&row],
                        start: vec![0],
                    },
                ];
                let ranges = [(start as u64, count as u64), (0, 40)];
                let plain = Options {
                    fusion: Fusion::Never,
                    ..Options::default()
                };
                let loops = &schedule(&kernel, &ranges, &operands);
                let scheduled = Scheduled {
                    kernel: &kernel,
                    loops,
                };
                let want = run(&kernel, &ranges, &operands, &plain).unwrap();
                let got = execute(scheduled, &ranges, &operands, &options, Some(&memo)).unwrap();
                let bits = |arrays: &[Array]| arrays[0].data().bytes().to_vec();
                assert_eq!(bits(&got), bits(&want), "{text}, {fusion:?}, turn {turn}");
            }
        }
    }
}
