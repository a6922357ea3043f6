//! Sweeps of optimizer rules over params of 16 million numbers, beside plain copies of as many bytes as have to move.
//!
//! Times are the least of several rounds, of all threads together as the system counts them, and elapsed.
//!
//! ```text
//! cargo bench -p ein-kernels --bench rules             EIN_BENCH_SIZE=1048576 for another size, EIN_BENCH_ROUNDS=40
//! ```
#![allow(missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Member, Memo, Operand, Options, fused_rows_over};
use ein_plan::{DType, Kernel};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::Instant;

/// A member: its kernel, over N by D; what it reads, by name (of arrays and members); whether it is kept; what it is written over.
type Step = (&'static str, &'static str, &'static str, bool, &'static str);

const ADAMW: &[Step] = &[
    (
        "gw",
        "(f32[3, N, D]) [i: N, j: D] f32 = a0[2, i, j]",
        "g",
        false,
        "",
    ),
    (
        "loss",
        "(f32[N, D], f32[N, D]) [| i: N, j: D] f32 = sum a0[i, j] * a1[i, j]",
        "w gw",
        true,
        "",
    ),
    (
        "m1",
        "(f32[N, D], f32[N, D]) [i: N, j: D] f32 = 0.9_f32 * a0[i, j] + 0.1_f32 * a1[i, j]",
        "m gw",
        true,
        "m",
    ),
    (
        "v1",
        "(f32[N, D], f32[N, D]) [i: N, j: D] f32 = 0.999_f32 * a0[i, j] + 0.001_f32 * (a1[i, j] * a1[i, j])",
        "v gw",
        true,
        "v",
    ),
    (
        "mh",
        "(f32[N, D], f32[]) [i: N, j: D] f32 = a0[i, j] * a1[]",
        "m1 c1",
        false,
        "",
    ),
    (
        "vh",
        "(f32[N, D], f32[]) [i: N, j: D] f32 = a0[i, j] * a1[]",
        "v1 c2",
        false,
        "",
    ),
    (
        "w1",
        "(f32[N, D], f32[N, D], f32[N, D]) [i: N, j: D] f32 = \
         a0[i, j] - 0.001_f32 * (a1[i, j] / (sqrt(a2[i, j]) + 0.00000001_f32) + 0.01_f32 * a0[i, j])",
        "w mh vh",
        true,
        "",
    ),
];

const LAMB: &[Step] = &[
    ADAMW[0],
    ADAMW[1],
    ADAMW[2],
    ADAMW[3],
    ADAMW[4],
    ADAMW[5],
    (
        "u",
        "(f32[N, D], f32[N, D], f32[N, D]) [i: N, j: D] f32 = \
         a1[i, j] / (sqrt(a2[i, j]) + 0.000001_f32) + 0.01_f32 * a0[i, j]",
        "w mh vh",
        true,
        "",
    ),
    (
        "wn",
        "(f32[N, D]) [| i: N, j: D] f32 = norm a0[i, j]",
        "w",
        true,
        "",
    ),
    (
        "un",
        "(f32[N, D]) [| i: N, j: D] f32 = norm a0[i, j]",
        "u",
        true,
        "",
    ),
];

/// Processor time of all threads so far, in seconds.
fn processor() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own = |text: &str| text.split(' ').next().and_then(|n| n.parse::<f64>().ok());
    let tasks = std::fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let times = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        own(&text)
    });
    let all: f64 = times.sum();
    all.max(own(&text).unwrap_or(0.0)) * 1e-9
}

/// Least processor time and least elapsed time of the rounds.
fn timed(rounds: usize, mut body: impl FnMut()) -> (f64, f64) {
    let mut best = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        let (used, began) = (processor(), Instant::now());
        body();
        best.1 = best.1.min(began.elapsed().as_secs_f64());
        best.0 = best.0.min(processor() - used);
    }
    best
}

fn filled(shape: &[usize]) -> Array {
    let mut array = ein_kernels::room(DType::F32, shape);
    if let Data::F32(values) = array.data_mut() {
        for (e, x) in values.iter_mut().enumerate() {
            *x = (e.wrapping_mul(2_654_435_761) >> 7 & 1023) as f32 / 512.0 + 0.001;
        }
    }
    array
}

fn measure(name: &str, steps: &[Step], (rows, columns): (usize, usize), rounds: usize) {
    let kernel = |text: &str| -> Kernel {
        let text = text.replace('N', &rows.to_string());
        let text = text.replace('D', &columns.to_string());
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let kernels: Vec<Kernel> = steps.iter().map(|step| kernel(step.1)).collect();
    let memos: Vec<Memo> = steps.iter().map(|_| Memo::default()).collect();
    let mut arrays: BTreeMap<&str, Array> = BTreeMap::new();
    arrays.insert("g", filled(&[3, rows, columns]));
    for name in ["m", "v", "w"] {
        arrays.insert(name, filled(&[rows, columns]));
    }
    for name in ["c1", "c2"] {
        arrays.insert(name, filled(&[]));
    }
    let mut round = |made: &mut Vec<Option<Vec<Array>>>| {
        // What is made is written over again, as in the steps of a training; the rest makes room for what is made next.
        for (step, columns) in steps.iter().zip(made.drain(..)) {
            let old = (!step.4.is_empty()).then_some(step.4);
            if let (Some(old), Some(mut columns)) = (old, columns) {
                arrays.extend(columns.pop().map(|column| (old, column)));
            }
        }
        let mut over = BTreeMap::new();
        for (number, step) in steps.iter().enumerate() {
            if let Some(old) = arrays.remove(step.4) {
                over.insert(number, old);
            }
        }
        let operand = |name: &str| {
            if let Some(made) = steps.iter().position(|step| step.0 == name) {
                return Operand::Made(made);
            }
            match steps.iter().position(|step| step.4 == name) {
                Some(old) => Operand::Old(old),
                None => {
                    let array = &arrays[name];
                    Operand::Given(Chunk {
                        columns: vec![array],
                        start: vec![0; array.shape().len()],
                    })
                }
            }
        };
        let members: Vec<Member<'_>> = (steps.iter().enumerate())
            .map(|(number, step)| Member {
                kernel: &kernels[number],
                ranges: kernels[number]
                    .indices
                    .iter()
                    .map(|i| (0, i.extent))
                    .collect(),
                operands: step.2.split(' ').map(operand).collect(),
                kept: step.3,
                memo: Some(&memos[number]),
            })
            .collect();
        let results = fused_rows_over(&members, 2, over, &Options::default());
        *made = black_box(results.expect("no fault"));
    };
    let mut made = vec![];
    for _ in 0..3 {
        round(&mut made);
    }
    let (used, elapsed) = timed(rounds, || round(&mut made));
    let numbers = (rows * columns) as f64;
    println!(
        "{name:24} {:8.2} ms, {:8.2} ms of processors, {:5.2} ns a number, {:5.1} GB/s",
        elapsed * 1e3,
        used * 1e3,
        used / numbers * 1e9,
        7.0 * 4.0 * numbers / elapsed / 1e9
    );
}

fn copies(size: usize, rounds: usize) {
    let from = vec![1.0f32; 4 * size];
    let mut to = vec![0.0f32; 4 * size];
    let (used, elapsed) = timed(rounds, || {
        let pieces = to.par_chunks_mut(1 << 14).zip(from.par_chunks(1 << 14));
        pieces.for_each(|(to, from)| to.copy_from_slice(from));
        black_box(&mut to);
    });
    println!(
        "{:24} {:8.2} ms, {:8.2} ms of processors, {:5.2} ns a number, {:5.1} GB/s",
        "copy of 4 arrays",
        elapsed * 1e3,
        used * 1e3,
        used / size as f64 * 1e9,
        8.0 * 4.0 * size as f64 / elapsed / 1e9
    );
}

fn main() {
    // Inside the pool, as a site is: no time goes into waking it.
    let pool = rayon::ThreadPoolBuilder::new().build();
    pool.expect("threads can be started").install(|| {
        let number = |name: &str| std::env::var(name).ok()?.parse::<usize>().ok();
        let size = number("EIN_BENCH_SIZE").unwrap_or(1 << 24);
        let rounds = number("EIN_BENCH_ROUNDS").unwrap_or(20);
        let columns = 4096.min(size);
        let shape = (size / columns, columns);
        for _ in 0..2 {
            copies(size, rounds);
            measure("AdamW and the loss", ADAMW, shape, rounds);
            let rule: Vec<Step> = ADAMW
                .iter()
                .filter(|step| step.0 != "loss")
                .copied()
                .collect();
            measure("AdamW", &rule, shape, rounds);
            let inside: Vec<Step> = (rule.iter())
                .map(|step| match step.0 {
                    "w1" => (step.0, step.1, step.2, step.3, "w"),
                    _ => *step,
                })
                .collect();
            measure("AdamW in place", &inside, shape, rounds);
            measure("LAMB and the loss", LAMB, shape, rounds);
            let rule: Vec<Step> = LAMB
                .iter()
                .filter(|step| step.0 != "loss")
                .copied()
                .collect();
            measure("LAMB", &rule, shape, rounds);
        }
    });
}
