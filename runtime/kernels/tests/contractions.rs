//! Sums of products of all shapes against the naive evaluator, and the same on any number of threads.
#![allow(clippy::unwrap_used, missing_docs)]

mod reference;

use ein_array::Array;
use ein_kernels::{Chunk, Fault, KernelError, Options, Scheduled, add, combine, run, schedule};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};
use proptest::prelude::*;
use reference::{Owned, array, close, interpret};

struct Build {
    graph: Graph,
    extents: Vec<u64>,
    operands: Vec<Operand>,
    owned: Vec<Owned>,
}

impl Build {
    fn new(extents: &[u64]) -> Build {
        Build {
            graph: Graph::default(),
            extents: extents.to_vec(),
            operands: vec![],
            owned: vec![],
        }
    }
    fn index(&mut self, i: usize) -> NodeId {
        self.graph.add(Node::Index(IndexId(i as u32)), DType::I64)
    }
    fn operand(&mut self, dtype: DType, shape: &[u64]) -> u32 {
        let salt = self.operands.len() * 7 + 3;
        let extents: Vec<usize> = shape.iter().map(|n| *n as usize).collect();
        let values = array(dtype, &extents, |e| {
            ((e * salt + e / 5) % 23) as f64 / 4.0 - 2.5
        });
        self.operands.push(Operand {
            columns: vec![dtype],
            shape: shape.to_vec(),
        });
        self.owned.push(Owned {
            columns: vec![values],
            start: vec![0; shape.len()],
        });
        self.operands.len() as u32 - 1
    }
    fn read(&mut self, operand: u32, positions: Vec<NodeId>, otherwise: Option<NodeId>) -> NodeId {
        let dtype = self.operands[operand as usize].columns[0].compute();
        let node = Node::Read {
            operand,
            column: 0,
            positions,
            otherwise,
        };
        self.graph.add(node, dtype)
    }
    /// A new operand read by bare indices.
    fn bare(&mut self, dtype: DType, at: &[usize]) -> NodeId {
        let shape: Vec<u64> = at.iter().map(|i| self.extents[*i]).collect();
        let operand = self.operand(dtype, &shape);
        let positions = at.iter().map(|i| self.index(*i)).collect();
        self.read(operand, positions, None)
    }
    fn apply(&mut self, f: Function, a: &[NodeId], dtype: DType) -> NodeId {
        self.graph.add(Node::Apply(f, a.to_vec()), dtype)
    }
    fn kernel(self, rank: u32, root: NodeId, output: DType) -> (Kernel, Vec<Owned>) {
        let indices = self.extents.iter().map(|n| Index {
            name: "i".into(),
            extent: *n,
        });
        let kernel = Kernel {
            indices: indices.collect(),
            output_rank: rank,
            operands: self.operands,
            graph: self.graph,
            root,
            guard: None,
            reduction: Some(Reduction::Sum),
            finish: true,
            output: vec![output],
        };
        (kernel, self.owned)
    }
}

fn chunks(owned: &[Owned]) -> Vec<Chunk<'_>> {
    let chunks = owned.iter().map(|o| Chunk {
        columns: o.columns.iter().collect(),
        start: o.start.clone(),
    });
    chunks.collect()
}

fn evaluate(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    owned: &[Owned],
) -> Result<Vec<Array>, KernelError> {
    let chunks = chunks(owned);
    run(kernel, ranges, &chunks, &Options::default())
}

fn whole(kernel: &Kernel) -> Vec<(u64, u64)> {
    kernel.indices.iter().map(|i| (0, i.extent)).collect()
}

fn check(kernel: &Kernel, ranges: &[(u64, u64)], owned: &[Owned]) {
    let got = evaluate(kernel, ranges, owned).unwrap();
    let want = interpret(kernel, ranges, owned).unwrap();
    assert_eq!(got[0].data().len(), want.len());
    let dtype = match kernel.graph.dtype(kernel.root) {
        DType::F32 if got[0].dtype() == DType::F64 => DType::F32,
        _ => got[0].dtype(),
    };
    for (at, (value, scale)) in want.iter().enumerate() {
        let x = got[0].data().get(at).as_f64();
        assert!(
            close(dtype, x, value.f(), *scale),
            "element {at}: {x}, not {value:?}\n{kernel:#?}\n{ranges:?}"
        );
    }
}

#[test]
fn attention_scores_with_a_scaled_product() {
    let mut b = Build::new(&[2, 3, 21, 17, 8]);
    let (q, k) = (
        b.bare(DType::F32, &[0, 1, 2, 4]),
        b.bare(DType::F32, &[0, 1, 3, 4]),
    );
    let d = b.operand(DType::I64, &[]);
    let d = b.read(d, vec![], None);
    let d = b.graph.add(Node::Convert(d), DType::F32);
    let root = b.apply(Function::Sqrt, &[d], DType::F32);
    let scale = b.apply(Function::Sub, &[root, d], DType::F32);
    let three = b.graph.add(Node::Constant(Scalar::Float(-3.5)), DType::F32);
    let scale = b.apply(Function::Add, &[scale, three], DType::F32);
    let scale = b.apply(Function::Abs, &[scale], DType::F32);
    let product = b.apply(Function::Mul, &[q, k], DType::F32);
    let root = b.apply(Function::Div, &[product, scale], DType::F32);
    let root = b.apply(Function::Neg, &[root], DType::F32);
    let (kernel, owned) = b.kernel(4, root, DType::F32);
    check(&kernel, &whole(&kernel), &owned);
}

fn convolution(
    extents: &[u64; 7],
    h: u64,
    w: u64,
    stride: i64,
    dtype: DType,
) -> (Kernel, Vec<Owned>) {
    // O[n, f, y, x] = Σ c r s (I[n, c, stride*y + r - 1, stride*x + s - 1] else 0) * K[f, c, r, s]
    let mut b = Build::new(extents);
    let input = b.operand(dtype, &[extents[0], extents[4], h, w]);
    let position = |b: &mut Build, i: usize, j: usize| {
        let (i, j) = (b.index(i), b.index(j));
        let c = b.graph.add(Node::Constant(Scalar::Int(stride)), DType::I64);
        let one = b.graph.add(Node::Constant(Scalar::Int(1)), DType::I64);
        let scaled = b.apply(Function::Mul, &[c, i], DType::I64);
        let sum = b.apply(Function::Add, &[scaled, j], DType::I64);
        b.apply(Function::Sub, &[sum, one], DType::I64)
    };
    let positions = vec![
        b.index(0),
        b.index(4),
        position(&mut b, 2, 5),
        position(&mut b, 3, 6),
    ];
    let compute = dtype.compute();
    let zero = b.graph.add(Node::Constant(Scalar::Float(0.0)), compute);
    let read = b.read(input, positions, Some(zero));
    let weights = b.bare(dtype, &[1, 4, 5, 6]);
    let root = b.apply(Function::Mul, &[read, weights], compute);
    b.kernel(4, root, dtype)
}

#[test]
fn convolutions_with_padding_and_stride() {
    for (stride, dtype) in [
        (1, DType::F32),
        (2, DType::F32),
        (2, DType::F64),
        (1, DType::BF16),
    ] {
        let (kernel, owned) = convolution(&[2, 5, 7, 9, 3, 3, 3], 13, 17, stride, dtype);
        check(&kernel, &whole(&kernel), &owned);
    }
}

#[test]
fn long_inner_sums_are_cut() {
    let mut b = Build::new(&[6, 5, 700, 3]);
    let (x, y) = (
        b.bare(DType::F16, &[0, 2, 3]),
        b.bare(DType::F32, &[3, 1, 2]),
    );
    let root = b.apply(Function::Mul, &[x, y], DType::F32);
    let (kernel, owned) = b.kernel(2, root, DType::F64);
    check(&kernel, &whole(&kernel), &owned);
    check(&kernel, &[(1, 5), (0, 4), (100, 599), (1, 2)], &owned);
}

/// The sums that two parts of the inner indices give, the second one added to the first where that lies; whether it was.
fn in_two_parts(kernel: &Kernel, owned: &[Owned], options: &Options) -> (bool, Array, Array) {
    let chunks = chunks(owned);
    let (mut first, mut second) = (whole(kernel), whole(kernel));
    let inner = kernel.output_rank as usize;
    let half = first[inner].1 / 3;
    (first[inner].1, second[inner].0) = (half, half);
    second[inner].1 -= half;
    let made = |ranges: &[(u64, u64)]| run(kernel, ranges, &chunks, options).unwrap();
    let mut combined = made(&first);
    let mut sum = combined[0].clone();
    let loops = &schedule(kernel, &second, &chunks);
    let scheduled = Scheduled { kernel, loops };
    let added = add(scheduled, &second, &chunks, &mut sum, options);
    combine(Reduction::Sum, &mut combined, &made(&second));
    (added, sum, combined.remove(0))
}

/// All sums are exact here, so that no order of them can be told from another.
#[test]
fn a_product_is_added_where_the_sum_lies() {
    let options = Options::default();
    let deterministic = Options {
        deterministic: true,
        ..options
    };
    for (extents, rank, left, right) in [
        (vec![130, 90, 70], 2, vec![0, 2], vec![2, 1]),
        (vec![130, 90, 1700], 2, vec![2, 0], vec![2, 1]),
        (vec![40, 700, 600], 2, vec![0, 2], vec![1, 2]),
        (vec![1, 600, 300], 2, vec![0, 2], vec![2, 1]),
        (vec![40, 16, 24, 30], 3, vec![0, 1, 3], vec![0, 3, 2]),
    ] {
        for dtype in [DType::F32, DType::F64] {
            let mut b = Build::new(&extents);
            let (x, y) = (b.bare(dtype, &left), b.bare(dtype, &right));
            let product = b.apply(Function::Mul, &[x, y], dtype);
            let factor = b.graph.add(Node::Constant(Scalar::Float(-0.5)), dtype);
            let root = b.apply(Function::Mul, &[product, factor], dtype);
            let (kernel, owned) = b.kernel(rank, root, dtype);
            for threads in [1, 3] {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
                let pool = pool.build().unwrap();
                let (added, sum, combined) =
                    pool.install(|| in_two_parts(&kernel, &owned, &options));
                assert!(added, "{extents:?}");
                assert_eq!(sum, combined, "{extents:?} on {threads} threads");
            }
            let (added, ..) = in_two_parts(&kernel, &owned, &deterministic);
            assert!(!added, "the bits may be others");
        }
    }
}

#[test]
fn what_cannot_be_added_leaves_the_sum_as_it_is() {
    let options = Options::default();
    // A factor that is computed, a sum of another type, a result whose rows do not lie side by side, no product at all.
    let mut computed = Build::new(&[64, 48, 80]);
    let (x, y) = (
        computed.bare(DType::F32, &[0, 2]),
        computed.bare(DType::F32, &[2, 1]),
    );
    let x = computed.apply(Function::Exp, &[x], DType::F32);
    let root = computed.apply(Function::Mul, &[x, y], DType::F32);
    let computed = computed.kernel(2, root, DType::F32);
    let mut narrow = Build::new(&[64, 48, 80]);
    let (x, y) = (
        narrow.bare(DType::F32, &[0, 2]),
        narrow.bare(DType::F32, &[2, 1]),
    );
    let root = narrow.apply(Function::Mul, &[x, y], DType::F32);
    let narrow = narrow.kernel(2, root, DType::F16);
    let mut no_product = Build::new(&[64, 80]);
    let x = no_product.bare(DType::F32, &[0, 1]);
    let no_product = no_product.kernel(1, x, DType::F32);
    for (kernel, owned) in [computed, narrow, no_product] {
        let half = (kernel.output_rank as usize, 30);
        let mut ranges = whole(&kernel);
        ranges[half.0].1 = half.1;
        let chunks = chunks(&owned);
        let mut sum = run(&kernel, &ranges, &chunks, &options).unwrap().remove(0);
        let before = sum.clone();
        let loops = &schedule(&kernel, &ranges, &chunks);
        let scheduled = Scheduled {
            kernel: &kernel,
            loops,
        };
        assert!(!add(scheduled, &ranges, &chunks, &mut sum, &options));
        assert_eq!(sum, before);
    }
}

#[test]
fn faults_inside_a_product_are_reported_at_the_lowest_point() {
    let mut b = Build::new(&[20, 30, 10]);
    let table = b.operand(DType::F32, &[8, 10]);
    let rows = b.operand(DType::I64, &[20]);
    b.owned[rows as usize].columns[0] = array(DType::I64, &[20], |e| {
        if e == 13 { 8.0 } else { (e % 8) as f64 }
    });
    let (i, k) = (b.index(0), b.index(2));
    let row = b.read(rows, vec![i], None);
    let gathered = b.read(table, vec![row, k], None);
    let other = b.bare(DType::F32, &[2, 1]);
    let root = b.apply(Function::Mul, &[gathered, other], DType::F32);
    let (kernel, owned) = b.kernel(2, root, DType::F32);
    let error = evaluate(&kernel, &whole(&kernel), &owned).unwrap_err();
    assert_eq!(error.point, vec![13, 0, 0]);
    let fault = Fault::OutOfRange {
        operand: 0,
        dimension: 0,
        position: 8,
        extent: 8,
    };
    assert_eq!(error.fault, fault);
    check(&kernel, &[(0, 13), (0, 30), (0, 10)], &owned);
}

/// Bits of results on pools of one, two and three threads.
#[test]
fn threads_do_not_change_bits() {
    let mut cases = vec![convolution(&[3, 6, 40, 30, 4, 3, 3], 80, 60, 2, DType::F32)];
    for (extents, left, right) in [
        ([300, 260, 500], [0, 2], [2, 1]),
        ([701, 450, 1100], [0, 2], [2, 1]),
        ([450, 701, 1100], [2, 0], [1, 2]),
        ([37, 2000, 900], [0, 2], [1, 2]),
        ([2000, 5, 3000], [2, 0], [2, 1]),
    ] {
        for dtype in [DType::F32, DType::F64] {
            let mut b = Build::new(&extents);
            let (x, y) = (b.bare(dtype, &left), b.bare(dtype, &right));
            let root = b.apply(Function::Mul, &[x, y], dtype);
            cases.push(b.kernel(2, root, dtype));
        }
    }
    for reduction in [
        Reduction::Sum,
        Reduction::LogSumExp,
        Reduction::Norm,
        Reduction::ArgMax,
    ] {
        for extents in [[1u64, 900_000], [600, 700], [900_000, 1]] {
            let mut b = Build::new(&extents);
            let x = b.bare(DType::F32, &[0, 1]);
            let root = b.apply(Function::Tanh, &[x], DType::F32);
            let output = if reduction.is_arg() {
                DType::I64
            } else {
                DType::F32
            };
            let (mut kernel, owned) = b.kernel(1, root, output);
            kernel.reduction = Some(reduction);
            cases.push((kernel, owned));
        }
        let mut b = Build::new(&[700_000]);
        let x = b.bare(DType::F64, &[0]);
        let output = if reduction.is_arg() {
            DType::I64
        } else {
            DType::F64
        };
        let (mut kernel, owned) = b.kernel(0, x, output);
        kernel.reduction = Some(reduction);
        cases.push((kernel, owned));
    }
    for (kernel, owned) in &cases {
        let results: Vec<Vec<u8>> = [1, 2, 3]
            .into_iter()
            .map(|threads| {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap();
                let result = pool.install(|| evaluate(kernel, &whole(kernel), owned));
                result.unwrap()[0].data().bytes().to_vec()
            })
            .collect();
        assert!(results.windows(2).all(|w| w[0] == w[1]), "{kernel:#?}");
    }
}

/// A random order of a random part of some indices.
fn some_of(next: &mut impl FnMut(usize) -> usize, from: &[usize]) -> Vec<usize> {
    let mut list = from.to_vec();
    for i in (1..list.len()).rev() {
        list.swap(i, next(i + 1));
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Indices of all kinds in any order, several of each, diagonals, mixed types, up to three factors.
    #[test]
    fn products_agree_with_the_naive_evaluator(seed in any::<u64>()) {
        let mut state = seed | 1;
        let mut next = |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) as usize) % n
        };
        let kinds = 3 + next(5);
        let mut extents = vec![];
        let mut members: Vec<usize> = vec![];
        for _ in 0..kinds {
            extents.push([1, 2, 3, 4, 5, 7, 11, 16][next(8)]);
            members.push(next(4));
        }
        // Kinds: 0 both and kept, 1 left and kept, 2 right and kept, 3 both and summed. Kept ones first.
        let mut order: Vec<usize> = (0..kinds).collect();
        order = some_of(&mut next, &order);
        order.sort_by_key(|i| members[*i] == 3);
        let extents: Vec<u64> = order.iter().map(|i| extents[*i]).collect();
        let members: Vec<usize> = order.iter().map(|i| members[*i]).collect();
        let rank = members.iter().filter(|m| **m != 3).count();
        let dtype = [DType::F32, DType::F64][next(2)];
        let mut b = Build::new(&extents);
        let mut factors = vec![];
        for absent in [2, 1] {
            let mine: Vec<usize> = (0..kinds).filter(|i| members[*i] != absent).collect();
            let mut at = some_of(&mut next, &mine);
            if !at.is_empty() && next(6) == 0 {
                at.push(at[0]);
            }
            let stored = match (dtype, next(4)) {
                (DType::F32, 0) => DType::F16,
                (_, 1) => DType::I32,
                _ => dtype,
            };
            let mut node = b.bare(stored, &at);
            if stored.compute() != dtype {
                node = b.graph.add(Node::Convert(node), dtype);
            }
            factors.push(node);
        }
        let mut root = b.apply(Function::Mul, &factors, dtype);
        if next(3) == 0 {
            let i = next(kinds);
            let third = b.bare(dtype, &[i]);
            root = b.apply(Function::Mul, &[third, root], dtype);
        }
        if next(3) == 0 {
            let two = b.graph.add(Node::Constant(Scalar::Float(2.5)), dtype);
            root = b.apply(Function::Div, &[root, two], dtype);
        }
        let (mut kernel, owned) = b.kernel(rank as u32, root, dtype);
        if rank == kinds {
            kernel.reduction = None;
        }
        let mut ranges = whole(&kernel);
        for range in &mut ranges {
            if next(4) == 0 {
                let start = next(range.1 as usize) as u64;
                *range = (start, range.1 - start);
            }
        }
        if ranges.iter().map(|(_, n)| *n).product::<u64>() < 200_000 {
            check(&kernel, &ranges, &owned);
        }
    }
}
