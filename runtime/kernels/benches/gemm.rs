//! A matrix product through [`ein_kernels::run`] against the gemm crate called directly, and the shapes that
//! are not plain products: in one run, so that the ratios mean something on a busy machine.
//!
//! ```text
//! f32 4096^3   run 0.61 s   gemm crate 0.60 s   ratio 1.02   ratio of processor time 1.01
//! ```
#![allow(missing_docs, unsafe_code)]

use criterion::Criterion;
use ein_array::{Array, Data};
use ein_kernels::{Chunk, Options, run};
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, Operand, Reduction};
use std::hint::black_box;
use std::time::Instant;

fn index(name: &str, extent: u64) -> Index {
    Index {
        name: name.into(),
        extent,
    }
}

/// `c[o…] = Σ a[…] * b[…]` with the given indices in each position.
fn product(extents: &[u64], rank: u32, a: &[u32], b: &[u32]) -> Kernel {
    let mut graph = Graph::default();
    let mut read = |operand: u32, at: &[u32]| {
        let positions = at
            .iter()
            .map(|i| graph.add(Node::Index(IndexId(*i)), DType::I64))
            .collect();
        graph.add(
            Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            },
            DType::F32,
        )
    };
    let factors = vec![read(0, a), read(1, b)];
    let root = graph.add(Node::Apply(Function::Mul, factors), DType::F32);
    let operand = |at: &[u32]| Operand {
        columns: vec![DType::F32],
        shape: at.iter().map(|i| extents[*i as usize]).collect(),
    };
    Kernel {
        indices: extents.iter().map(|n| index("i", *n)).collect(),
        output_rank: rank,
        operands: vec![operand(a), operand(b)],
        graph,
        root,
        guard: None,
        reduction: Some(Reduction::Sum),
        finish: true,
        output: vec![DType::F32],
    }
}

fn filled(shape: &[u64]) -> Array {
    let n: u64 = shape.iter().product();
    let data = (0..n).map(|e| (e % 17) as f32 / 8.0 - 1.0).collect();
    let shape = shape.iter().map(|n| *n as usize).collect();
    Array::new(shape, Data::F32(data)).expect("as many as the shape says")
}

fn ours(kernel: &Kernel, a: &Array, b: &Array) -> Vec<Array> {
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let chunk = |array| Chunk {
        columns: vec![array],
        start: vec![0; Array::shape(array).len()],
    };
    run(kernel, &ranges, &[chunk(a), chunk(b)], &Options::default()).expect("no fault")
}

fn theirs([m, n, k]: [usize; 3], a: &[f32], b: &[f32], c: &mut [f32]) {
    // SAFETY: they are m by k, k by n and m by n, row-major, and `c` is not aliased.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c.as_mut_ptr(),
            1,
            n as isize,
            false,
            a.as_ptr(),
            1,
            k as isize,
            b.as_ptr(),
            1,
            n as isize,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::Rayon(0),
        );
    }
}

/// Processor time of this process so far, where the system tells it: on a busy machine the steadier measure.
fn processor_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let mut fields = stat.rsplit(')').next()?.split_whitespace().skip(11);
    let ticks: u64 = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    Some(ticks as f64 / 100.0)
}

/// Best time of some calls, and the processor time of all of them.
#[derive(Clone, Copy)]
struct Spent {
    best: f64,
    processor: f64,
}

impl Spent {
    fn on(&mut self, f: impl FnOnce()) {
        let (start, before) = (Instant::now(), processor_seconds());
        f();
        self.best = self.best.min(start.elapsed().as_secs_f64());
        if let (Some(before), Some(after)) = (before, processor_seconds()) {
            self.processor += after - before;
        }
    }
}

fn ratio([m, n, k]: [u64; 3], rounds: usize) {
    let kernel = product(&[m, n, k], 2, &[0, 2], &[2, 1]);
    let (a, b) = (filled(&[m, k]), filled(&[k, n]));
    let (Data::F32(x), Data::F32(y)) = (a.data(), b.data()) else {
        return;
    };
    let none = Spent {
        best: f64::MAX,
        processor: 0.0,
    };
    let (mut mine, mut plain) = (none, none);
    for _ in 0..rounds {
        mine.on(|| drop(black_box(ours(&kernel, &a, &b))));
        // A fresh result here too: both touch new memory.
        plain.on(|| {
            let mut c = vec![0f32; (m * n) as usize];
            theirs([m, n, k].map(|n| n as usize), x, y, &mut c);
            black_box(&c);
        });
    }
    println!(
        "f32 {m}x{n}x{k}   run {:.3} s   gemm crate {:.3} s   ratio {:.3}   ratio of processor time {:.3}",
        mine.best,
        plain.best,
        mine.best / plain.best,
        mine.processor / plain.processor
    );
}

/// Calls whose best time and processor time are printed.
const ROUNDS: usize = 40;

fn main() {
    let largest = std::env::var("EIN_BENCH_SIZE")
        .ok()
        .and_then(|n| n.parse().ok());
    let most = |n: u64| largest.map_or(n, |largest: u64| n.min(largest));
    ratio([most(512); 3], 20);
    ratio([most(1024); 3], 10);
    ratio([largest.unwrap_or(4096); 3], 3);
    // The layers of a network, and what their gradients are.
    for sizes in [
        [1000, 10_000, 1600],
        [1600, 10_000, 1000],
        [1000, 1600, 10_000],
    ] {
        ratio(sizes.map(most), 10);
    }
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let shapes: [(&str, Kernel); 5] = [
        (
            "matrix-vector 4096 x 4096",
            product(&[4096, 4096], 1, &[0, 1], &[1]),
        ),
        (
            "vector-matrix 4096 x 4096",
            product(&[4096, 4096], 1, &[1], &[1, 0]),
        ),
        ("dot 2^24", product(&[1 << 24], 0, &[0], &[0])),
        (
            "batch 1024 of 64^3",
            product(&[1024, 64, 64, 64], 3, &[0, 1, 3], &[0, 3, 2]),
        ),
        (
            "heads q[n,h,t,e] = x[n,t,d] w[d,h,e]",
            product(&[8, 8, 128, 64, 512], 4, &[0, 2, 4], &[4, 1, 3]),
        ),
    ];
    for (name, kernel) in shapes {
        let (a, b) = (
            filled(&kernel.operands[0].shape),
            filled(&kernel.operands[1].shape),
        );
        let mut spent = Spent {
            best: f64::MAX,
            processor: 0.0,
        };
        for _ in 0..ROUNDS {
            spent.on(|| drop(black_box(ours(&kernel, &a, &b))));
        }
        let bytes = 4 * (a.data().len() + b.data().len()) as u64;
        println!(
            "{name}   best {:.2} ms   processor {:.2} ms   {:.1} GB/s of operands",
            1e3 * spent.best,
            1e3 * spent.processor / ROUNDS as f64,
            bytes as f64 / spent.best / 1e9
        );
        criterion.bench_function(name, |bench| bench.iter(|| ours(&kernel, &a, &b)));
    }
}
