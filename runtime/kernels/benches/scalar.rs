//! Element-wise kernels and row reductions through [`ein_kernels::run`] against a copy of the same bytes, in one
//! run, so that the ratios mean something on a busy machine.
//!
//! `EIN_BENCH_SIZE` is the number of elements (a multiple of 8192). The copy goes to memory that is there already
//! and to fresh memory; a kernel's result is always fresh.
//!
//! ```text
//! gelu   3.1 ms   2.7 Gelem/s   copy's rate over ours: 1.21 (fresh memory 0.93)
//! ```
#![allow(missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{
    Chunk, Member, Memo, Operand as From, Options, Scheduled, fused_rows, run, run_over, schedule,
};
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction};
use std::hint::black_box;
use std::time::Instant;

/// Elements of a row.
const ROW: u64 = 8192;

/// A kernel over `[i: rows, j: ROW]` whose operands are matrices, columns (one value a row) or rows.
struct Build {
    graph: Graph,
    rows: u64,
    operands: Vec<Operand>,
}

impl Build {
    fn new(rows: u64) -> Build {
        Build {
            graph: Graph::default(),
            rows,
            operands: vec![],
        }
    }
    /// A new operand, read at the indices `at`.
    fn read(&mut self, at: &[u32], dtype: DType) -> NodeId {
        let positions = at
            .iter()
            .map(|i| self.graph.add(Node::Index(IndexId(*i)), DType::I64))
            .collect();
        self.operands.push(Operand {
            columns: vec![dtype],
            shape: at.iter().map(|i| [self.rows, ROW][*i as usize]).collect(),
        });
        let node = Node::Read {
            operand: self.operands.len() as u32 - 1,
            column: 0,
            positions,
            otherwise: None,
        };
        self.graph.add(node, dtype.compute())
    }
    fn apply(&mut self, f: Function, a: &[NodeId]) -> NodeId {
        let arguments: Vec<DType> = a.iter().map(|a| self.graph.dtype(*a)).collect();
        let dtype = f.result(&arguments).expect("well-typed");
        self.graph.add(Node::Apply(f, a.to_vec()), dtype)
    }
    fn number(&mut self, x: f64) -> NodeId {
        self.graph
            .add(Node::Constant(ein_plan::Scalar::Float(x)), DType::F32)
    }
    fn kernel(self, root: NodeId, reduction: Option<Reduction>, output: DType) -> Kernel {
        let index = |name: &str, extent| Index {
            name: name.into(),
            extent,
        };
        Kernel {
            indices: vec![index("i", self.rows), index("j", ROW)],
            output_rank: if reduction.is_some() { 1 } else { 2 },
            operands: self.operands,
            graph: self.graph,
            root,
            guard: None,
            reduction,
            finish: true,
            output: vec![output],
        }
    }
}

fn filled(dtype: DType, shape: &[u64]) -> Array {
    let n: u64 = shape.iter().product();
    let value = |e: u64| (e.wrapping_mul(2_654_435_761) % 4093) as f32 / 512.0 - 4.0;
    let data = match dtype {
        DType::BF16 => Data::BF16((0..n).map(|e| half::bf16::from_f32(value(e))).collect()),
        DType::F16 => Data::F16((0..n).map(|e| half::f16::from_f32(value(e))).collect()),
        DType::F64 => Data::F64((0..n).map(|e| f64::from(value(e))).collect()),
        _ => Data::F32((0..n).map(value).collect()),
    };
    let shape = shape.iter().map(|n| *n as usize).collect();
    Array::new(shape, data).expect("as many as the shape says")
}

fn best(rounds: usize, mut f: impl FnMut()) -> f64 {
    (0..rounds).fold(f64::MAX, |best, _| {
        let start = Instant::now();
        f();
        best.min(start.elapsed().as_secs_f64())
    })
}

/// Seconds to copy `n` floats with all threads, into memory that is there and into fresh memory.
fn copies(n: usize, rounds: usize) -> (f64, f64) {
    use rayon::prelude::*;
    let from = vec![1f32; n];
    let mut to = vec![2f32; n];
    let copy = |to: &mut [f32]| {
        to.par_chunks_mut(1 << 16)
            .zip(from.par_chunks(1 << 16))
            .for_each(|(to, from)| to.copy_from_slice(from));
    };
    let there = best(rounds, || copy(black_box(&mut to)));
    let fresh = best(rounds, || {
        let mut to = vec![0f32; n];
        copy(&mut to);
        black_box(&to);
    });
    (there, fresh)
}

fn measure(name: &str, kernel: &Kernel, copied: (f64, f64), rounds: usize) {
    let arrays: Vec<Array> = kernel
        .operands
        .iter()
        .map(|o| filled(o.columns[0], &o.shape))
        .collect();
    let chunks: Vec<Chunk<'_>> = arrays
        .iter()
        .map(|array| Chunk {
            columns: vec![array],
            start: vec![0; array.shape().len()],
        })
        .collect();
    let ranges: Vec<(u64, u64)> = kernel.indices.iter().map(|i| (0, i.extent)).collect();
    let mut moved: usize = arrays.iter().map(|a| a.data().bytes().len()).sum();
    let taken = best(rounds, || {
        let result = run(kernel, &ranges, &chunks, &Options::default()).expect("no fault");
        black_box(&result);
    });
    let points: u64 = kernel.indices.iter().map(|i| i.extent).product();
    let outputs: u64 = kernel.indices[..kernel.output_rank as usize]
        .iter()
        .map(|i| i.extent)
        .product();
    moved += outputs as usize * kernel.output[0].size();
    let share = moved as f64 / (8 * points) as f64;
    println!(
        "{name:28} {:9.3} ms {:7.3} Gelem/s   of a copy's rate {:.2} (into fresh memory {:.2})",
        1e3 * taken,
        points as f64 / taken / 1e9,
        copied.0 * share / taken,
        copied.1 * share / taken,
    );
}

/// A kernel of one operand over it, in the memory of that.
fn measure_over(name: &str, text: &str, (rows, copied): (u64, f64), rounds: usize) {
    let kernel: Kernel = text.replace('N', &rows.to_string()).parse().expect(text);
    let ranges = [(0, rows), (0, ROW)];
    // Memory as results have it.
    let first = filled(DType::F32, &[rows, ROW]);
    let chunk = Chunk {
        columns: vec![&first],
        start: vec![0, 0],
    };
    let loops = &schedule(&kernel, &ranges, std::slice::from_ref(&chunk));
    let mut array = run(&kernel, &ranges, &[chunk], &Options::default())
        .expect("no fault")
        .pop();
    let nothing = Chunk {
        columns: vec![],
        start: vec![0, 0],
    };
    let memo = Memo::default();
    let taken = best(rounds, || {
        let old = (0, array.take().expect("an array from the last round"));
        let options = Options::default();
        let made = run_over(
            Scheduled {
                kernel: &kernel,
                loops,
            },
            &ranges,
            std::slice::from_ref(&nothing),
            old,
            &options,
            Some(&memo),
        );
        array = made.expect("no fault").pop();
    });
    println!(
        "{name:28} {:9.3} ms, over its operand; of a copy's rate {:.2}",
        1e3 * taken,
        copied / taken
    );
}

/// Kernels in one pass; each reads the matrix (`X`), what earlier ones made (by number), or a row of ones.
fn measure_sweep(
    name: &str,
    members: &[(&str, &[&str])],
    (rows, copied): (u64, f64),
    rounds: usize,
) {
    let kernel = |text: &str| -> Kernel {
        let text = text.replace('N', &rows.to_string());
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    let kernels: Vec<Kernel> = members.iter().map(|member| kernel(member.0)).collect();
    let (matrix, row) = (filled(DType::F32, &[rows, ROW]), filled(DType::F32, &[ROW]));
    let given = |array, rank| {
        From::Given(Chunk {
            columns: vec![array],
            start: vec![0; rank],
        })
    };
    let memos: Vec<Memo> = members.iter().map(|_| Memo::default()).collect();
    let members: Vec<Member<'_>> = (members.iter().enumerate())
        .map(|(number, (_, from))| Member {
            kernel: &kernels[number],
            ranges: kernels[number]
                .indices
                .iter()
                .map(|i| (0, i.extent))
                .collect(),
            operands: (from.iter())
                .map(|from| match *from {
                    "X" => given(&matrix, 2),
                    "row" => given(&row, 1),
                    made => From::Made(made.parse().expect("a member's number")),
                })
                .collect(),
            kept: number + 1 == members.len(),
            memo: Some(&memos[number]),
        })
        .collect();
    let taken = best(rounds, || {
        black_box(fused_rows(&members, 1, &Options::default()).expect("no fault"));
    });
    println!(
        "{name:28} {:9.3} ms; of a copy's rate {:.2}",
        1e3 * taken,
        copied / taken
    );
}

fn layers(size: (u64, f64), rounds: usize) {
    let gelu = "(f32[N, 8192]) [i: N, j: 8192] f32 = 0.5_f32 * a0[i, j] * (1.0_f32 + erf(0.70710677_f32 * a0[i, j]))";
    measure_over("gelu written out", gelu, size, rounds);
    let exp = "(f32[N, 8192]) [i: N, j: 8192] f32 = exp(a0[i, j])";
    measure_over("exp", exp, size, rounds);
    measure_sweep("gelu written out", &[(gelu, &["X"])], size, rounds);
    measure_sweep(
        "softmax",
        &[
            ("(f32[N, 8192]) [i: N | j: 8192] f32 = max a0[i, j]", &["X"]),
            (
                "(f32[N, 8192], f32[N]) [i: N, j: 8192] f32 = exp(a0[i, j] - a1[i])",
                &["X", "0"],
            ),
            ("(f32[N, 8192]) [i: N | j: 8192] f32 = sum a0[i, j]", &["1"]),
            (
                "(f32[N, 8192], f32[N]) [i: N, j: 8192] f32 = a0[i, j] / a1[i]",
                &["1", "2"],
            ),
            ("(f32[N, 8192]) [i: N, j: 8192] f32 = a0[i, j]", &["3"]),
        ],
        size,
        rounds,
    );
    measure_sweep(
        "layer norm",
        &[
            (
                "(f32[N, 8192]) [i: N | j: 8192] f32 = mean a0[i, j]",
                &["X"],
            ),
            (
                "(f32[N, 8192], f32[N]) [i: N, j: 8192] f32 = a0[i, j] - a1[i]",
                &["X", "0"],
            ),
            (
                "(f32[N, 8192]) [i: N | j: 8192] f32 = mean a0[i, j] * a0[i, j]",
                &["1"],
            ),
            (
                "(f32[8192], f32[N, 8192], f32[N], f32[8192]) [i: N, j: 8192] f32 = \
                 a0[j] * a1[i, j] * rsqrt(a2[i] + 0.00001_f32) + a3[j]",
                &["row", "1", "2", "row"],
            ),
        ],
        size,
        rounds,
    );
}

fn main() {
    // Inside the pool, as a site is: no time goes into waking it.
    let pool = rayon::ThreadPoolBuilder::new().build();
    pool.expect("threads can be started").install(all);
}

fn all() {
    use Function as F;
    let size = std::env::var("EIN_BENCH_SIZE").ok();
    let size: u64 = size.and_then(|n| n.parse().ok()).unwrap_or(1 << 20);
    let rows = size / ROW;
    let rounds = if size > 1 << 24 { 5 } else { 40 };
    let copied = copies(size as usize, rounds);
    println!(
        "copy of {size} floats: {:.3} ms ({:.1} GB/s), into fresh memory {:.3} ms",
        1e3 * copied.0,
        8.0 * size as f64 / copied.0 / 1e9,
        1e3 * copied.1
    );
    layers((rows, copied.0), rounds);
    let matrix = &[0u32, 1][..];
    for f in [
        F::Add,
        F::Relu,
        F::Exp,
        F::Log,
        F::Tanh,
        F::Sigmoid,
        F::Gelu,
        F::Erf,
        F::Sin,
        F::Log1p,
        F::Expm1,
        F::Pow,
        F::Rsqrt,
    ] {
        for dtype in [DType::F32, DType::F64] {
            let mut build = Build::new(rows);
            let mut a = vec![build.read(matrix, dtype)];
            if f.arity() == 2 {
                a.push(build.read(matrix, dtype));
            }
            let root = build.apply(f, &a);
            let name = format!("{} {}", f.name(), dtype.name());
            measure(&name, &build.kernel(root, None, dtype), copied, rounds);
        }
    }
    let chain = |dtype: DType| {
        let mut build = Build::new(rows);
        let x = build.read(matrix, dtype);
        let mut y = x;
        for k in 0..5 {
            let c = build.number(0.5 + f64::from(k));
            let product = build.apply(F::Mul, &[y, c]);
            y = build.apply([F::Add, F::Sub, F::Max][k as usize % 3], &[product, x]);
        }
        build.kernel(y, None, dtype)
    };
    measure("chain of 10, f32", &chain(DType::F32), copied, rounds);
    measure("chain of 10, bf16", &chain(DType::BF16), copied, rounds);
    measure("chain of 10, f16", &chain(DType::F16), copied, rounds);

    let mut build = Build::new(rows);
    let (x, bias) = (build.read(matrix, DType::F32), build.read(&[1], DType::F32));
    let sum = build.apply(F::Add, &[x, bias]);
    let relu = build.apply(F::Relu, &[sum]);
    let residual = build.read(matrix, DType::F32);
    let y = build.apply(F::Add, &[relu, residual]);
    measure(
        "bias, relu, residual",
        &build.kernel(y, None, DType::F32),
        copied,
        rounds,
    );

    for r in [
        Reduction::Max,
        Reduction::Sum,
        Reduction::Mean,
        Reduction::LogSumExp,
        Reduction::Norm,
        Reduction::ArgMax,
    ] {
        let mut build = Build::new(rows);
        let x = build.read(matrix, DType::F32);
        let output = r.result(DType::F32);
        measure(
            &format!("rows: {}", r.name()),
            &build.kernel(x, Some(r), output),
            copied,
            rounds,
        );
    }
    let shifted = |build: &mut Build| {
        let (x, top) = (build.read(matrix, DType::F32), build.read(&[0], DType::F32));
        build.apply(F::Sub, &[x, top])
    };
    let mut build = Build::new(rows);
    let difference = shifted(&mut build);
    let weight = build.apply(F::Exp, &[difference]);
    measure(
        "softmax: exp(x - top)",
        &build.kernel(weight, None, DType::F32),
        copied,
        rounds,
    );
    let mut build = Build::new(rows);
    let difference = shifted(&mut build);
    let weight = build.apply(F::Exp, &[difference]);
    measure(
        "softmax: sum exp(x - top)",
        &build.kernel(weight, Some(Reduction::Sum), DType::F32),
        copied,
        rounds,
    );
    let mut build = Build::new(rows);
    let difference = shifted(&mut build);
    let weight = build.apply(F::Exp, &[difference]);
    let total = build.read(&[0], DType::F32);
    let y = build.apply(F::Div, &[weight, total]);
    measure(
        "softmax: exp(x-top)/total",
        &build.kernel(y, None, DType::F32),
        copied,
        rounds,
    );
    let mut build = Build::new(rows);
    let difference = shifted(&mut build);
    let square = build.apply(F::Mul, &[difference, difference]);
    measure(
        "norm: variance",
        &build.kernel(square, Some(Reduction::Mean), DType::F32),
        copied,
        rounds,
    );
    let mut build = Build::new(rows);
    let difference = shifted(&mut build);
    let scale = build.read(&[0], DType::F32);
    let normal = build.apply(F::Mul, &[difference, scale]);
    let gain = build.read(&[1], DType::F32);
    let scaled = build.apply(F::Mul, &[normal, gain]);
    let bias = build.read(&[1], DType::F32);
    let y = build.apply(F::Add, &[scaled, bias]);
    measure(
        "norm: apply",
        &build.kernel(y, None, DType::F32),
        copied,
        rounds,
    );
}
