//! A kernel that is run again gives the bits of its first run, whatever ranges, shapes and values come.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, Memo, Options, Scheduled, execute, run, schedule, update};
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

/// The place that a guard fixes is another one in every run, at the ends and outside of what is there among them.
#[test]
fn a_place_may_be_another_in_every_run() {
    let text = "(f32[300, 40], i64[]) [d: 40 | n: 300] f32 = sum a0[n, d] * 2.0 + a0[n - 1, d] else f32(n) if n == a1[]";
    let kernel: Kernel = text.parse().unwrap();
    let rows = array(&[300, 40], 1);
    let Data::F32(values) = rows.data() else {
        panic!("of another type")
    };
    let memo = Memo::default();
    for turn in 0..40 {
        let place = [0, 1, 299, 300, -1, 17, 250][turn % 7] + turn as i64 / 7;
        let at = Array::new(vec![], Data::I64(vec![place])).unwrap();
        let chunk = |array, start| Chunk {
            columns: vec![array],
            start,
        };
        let operands = [chunk(&rows, vec![0, 0]), chunk(&at, vec![])];
        let ranges = [(0, 40), (0, 300)];
        let loops = &schedule(&kernel, &ranges, &operands);
        let scheduled = Scheduled {
            kernel: &kernel,
            loops,
        };
        let options = Options::default();
        let got = execute(scheduled, &ranges, &operands, &options, Some(&memo)).unwrap();
        for d in 0..40 {
            let value = |n: i64| values[n as usize * 40 + d];
            let want = match place {
                0 => value(0) * 2.0,
                1..300 => value(place) * 2.0 + value(place - 1),
                _ => 0.0,
            };
            assert_eq!(got[0].data().get(d).as_f64(), f64::from(want), "at {place}");
        }
    }
}

/// What an update changes, row by row, some of them outside.
#[test]
fn an_update_may_be_elsewhere_in_every_run() {
    let text = "(i64[], f32[40], f32[300, 40]) [n: 300, d: 40] f32 = where(n == a0[], a1[d] + f32(n), a2[n, d])";
    let kernel: Kernel = text.parse().unwrap();
    let changes = kernel.update().unwrap();
    let (new, rows) = (array(&[40], 3), array(&[100, 40], 1));
    let memo = Memo::default();
    for place in [100, 150, 99, 199, 200, 120, 121] {
        let at = Array::new(vec![], Data::I64(vec![place])).unwrap();
        let chunk = |array, start| Chunk {
            columns: vec![array],
            start,
        };
        let operands = [
            chunk(&at, vec![]),
            chunk(&new, vec![0]),
            chunk(&rows, vec![100, 0]),
        ];
        let ranges = [(100, 100), (0, 40)];
        let loops = &schedule(&kernel, &ranges, &operands);
        let scheduled = Scheduled {
            kernel: &kernel,
            loops,
        };
        let options = Options::default();
        let boxes = update(
            scheduled,
            &changes,
            &ranges,
            &operands,
            &options,
            Some(&memo),
        )
        .unwrap();
        assert_eq!(boxes.len(), usize::from((100..200).contains(&place)));
        for (start, part) in boxes {
            assert_eq!(start, [place as usize - 100, 0]);
            for d in 0..40 {
                let want = new.data().get(d).as_f64() as f32 + place as f32;
                assert_eq!(part.data().get(d).as_f64(), f64::from(want), "at {place}");
            }
        }
    }
}
