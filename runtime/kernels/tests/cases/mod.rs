//! Random kernels of all node kinds, with operands.
#![allow(clippy::unwrap_used, missing_docs)]

use crate::reference::{Owned, array};
use ein_kernels::Chunk;
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};

/// Splitmix64: enough to draw kernels from a seed.
pub struct Draw(pub u64);
impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

pub struct Case {
    pub kernel: Kernel,
    pub ranges: Vec<(u64, u64)>,
    pub operands: Vec<Owned>,
}

/// For each dimension of an operand, the index that cuts it.
type Cuts = Vec<Vec<Option<usize>>>;

pub struct Builder {
    draw: Draw,
    graph: Graph,
    operands: Vec<Operand>,
    cuts: Cuts,
    indices: usize,
    faults: bool,
}

const COMPUTE: [DType; 5] = [DType::F32, DType::F64, DType::I32, DType::I64, DType::Bool];

impl Builder {
    fn apply(&mut self, f: Function, a: Vec<NodeId>, dtype: DType) -> NodeId {
        self.graph.add(Node::Apply(f, a), dtype)
    }

    fn integer(&mut self, x: i64) -> NodeId {
        self.graph.add(Node::Constant(Scalar::Int(x)), DType::I64)
    }

    fn index(&mut self) -> NodeId {
        if self.indices == 0 {
            return self.integer(0);
        }
        let i = IndexId(self.draw.below(self.indices) as u32);
        self.graph.add(Node::Index(i), DType::I64)
    }

    fn read(&mut self, dtype: DType, depth: usize) -> Option<NodeId> {
        let fitting: Vec<usize> = (0..self.operands.len())
            .filter(|o| self.operands[*o].columns[0].compute() == dtype)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let operand = self.draw.pick(&fitting);
        let mut positions = vec![];
        for d in 0..self.operands[operand].shape.len() {
            positions.push(match self.cuts[operand][d] {
                Some(i) => self.graph.add(Node::Index(IndexId(i as u32)), DType::I64),
                None => match self.draw.below(4) {
                    0 => self.index(),
                    1 => {
                        let (i, j) = (self.index(), self.index());
                        let c = self.draw.below(7) as i64 - 3;
                        let c = self.integer(c);
                        let scaled = self.apply(Function::Mul, vec![c, i], DType::I64);
                        self.apply(Function::Add, vec![scaled, j], DType::I64)
                    }
                    2 => {
                        let n = self.operands[operand].shape[d] as i64;
                        let x = self.node(DType::I64, depth.saturating_sub(1));
                        let n = self.integer(n.max(1));
                        self.apply(Function::Rem, vec![x, n], DType::I64)
                    }
                    _ => self.node(DType::I64, depth.saturating_sub(1)),
                },
            });
        }
        let otherwise = (!self.faults || self.draw.chance(70))
            .then(|| self.node(dtype, depth.saturating_sub(1)));
        Some(self.graph.add(
            Node::Read {
                operand: operand as u32,
                column: 0,
                positions,
                otherwise,
            },
            dtype,
        ))
    }

    fn leaf(&mut self, dtype: DType) -> NodeId {
        let x = self.draw.below(9) as i64 - 4;
        match dtype {
            DType::F32 | DType::F64 => {
                let x = Scalar::Float(x as f64 / 2.0);
                self.graph.add(Node::Constant(x), dtype)
            }
            DType::Bool => self.graph.add(Node::Constant(Scalar::Bool(x > 0)), dtype),
            DType::I64 if x > 0 => self.index(),
            _ => self.graph.add(Node::Constant(Scalar::Int(x)), dtype),
        }
    }

    /// A node whose value is exact, so that comparisons and roundings agree.
    fn node(&mut self, dtype: DType, depth: usize) -> NodeId {
        use Function as F;
        if depth == 0 || self.graph.len() > 60 {
            return self.leaf(dtype);
        }
        let d = depth - 1;
        match self.draw.below(10) {
            0..=3 => {
                if let Some(read) = self.read(dtype, depth) {
                    return read;
                }
            }
            4 => {
                let c = self.node(DType::Bool, d);
                let (a, b) = (self.node(dtype, d), self.node(dtype, d));
                return self.apply(F::Select, vec![c, a, b], dtype);
            }
            5 => {
                let from = self.draw.pick(&COMPUTE);
                let a = self.node(from, d);
                return self.graph.add(Node::Convert(a), dtype);
            }
            _ => {}
        }
        if dtype == DType::Bool {
            if self.draw.chance(40) {
                let f = self.draw.pick(&[F::And, F::Or, F::Not, F::Eq, F::Ne]);
                let a = (0..f.arity()).map(|_| self.node(DType::Bool, d)).collect();
                return self.apply(f, a, DType::Bool);
            }
            let of = self.draw.pick(&COMPUTE[..4]);
            let f = self.draw.pick(&[F::Eq, F::Ne, F::Lt, F::Le, F::Gt, F::Ge]);
            let a = vec![self.node(of, d), self.node(of, d)];
            return self.apply(f, a, DType::Bool);
        }
        let f = if dtype.is_float() {
            self.draw.pick(&[
                F::Add,
                F::Sub,
                F::Mul,
                F::Div,
                F::Rem,
                F::Min,
                F::Max,
                F::Neg,
                F::Abs,
                F::Sign,
                F::Floor,
                F::Ceil,
                F::Round,
                F::Relu,
                F::Stop,
                F::Sqrt,
            ])
        } else if self.faults {
            self.draw.pick(&[
                F::Add,
                F::Sub,
                F::Mul,
                F::FloorDiv,
                F::Rem,
                F::Pow,
                F::Min,
                F::Max,
                F::Neg,
                F::Abs,
            ])
        } else {
            self.draw
                .pick(&[F::Add, F::Sub, F::Mul, F::Min, F::Max, F::Neg, F::Sign])
        };
        let mut a: Vec<NodeId> = (0..f.arity()).map(|_| self.node(dtype, d)).collect();
        if f == F::Pow {
            // Small exponents: wrapping powers are compared up to the 64th.
            let three = self.graph.add(Node::Constant(Scalar::Int(4)), dtype);
            let small = self.apply(F::Rem, vec![a[1], three], dtype);
            let one = self.graph.add(Node::Constant(Scalar::Int(1)), dtype);
            a[1] = self.apply(F::Sub, vec![small, one], dtype);
        }
        self.apply(f, a, dtype)
    }
}

pub fn case(seed: u64, faults: bool) -> Case {
    let mut draw = Draw(seed);
    let indices = draw.below(5);
    let rank = draw.below(indices + 1);
    let large = draw.below(12);
    let list: Vec<Index> = (0..indices)
        .map(|i| Index {
            name: format!("i{i}"),
            extent: match (i == large, draw.below(12)) {
                (true, _) => 250 + draw.below(400) as u64,
                (_, 0) => 0,
                (_, 1..=3) => 1,
                _ => draw.below(7) as u64 + 1,
            },
        })
        .collect();
    let mut ranges: Vec<(u64, u64)> = list
        .iter()
        .map(|index| {
            if draw.chance(50) {
                return (0, index.extent);
            }
            let start = draw.below(index.extent as usize + 1) as u64;
            (
                start,
                draw.below((index.extent - start) as usize + 1) as u64,
            )
        })
        .collect();
    // The naive evaluator should not take long: few points, but long rows.
    for i in (0..indices).filter(|i| *i != large) {
        if ranges.iter().map(|(_, n)| *n).product::<u64>() > 8000 {
            ranges[i].1 = ranges[i].1.min(2);
        }
    }
    let special = draw.chance(30);
    let (mut operands, mut owned, mut cuts) = (vec![], vec![], vec![]);
    for _ in 0..1 + draw.below(3) {
        let dtype = draw.pick(&DType::ALL);
        let mut shape = vec![];
        let (mut start, mut extents, mut cut) = (vec![], vec![], vec![]);
        for _ in 0..draw.below(4) {
            if indices > 0 && draw.chance(50) {
                let i = draw.below(indices);
                shape.push(list[i].extent);
                start.push(ranges[i].0);
                extents.push(ranges[i].1 as usize);
                cut.push(Some(i));
            } else {
                let n = draw.below(8) as u64 + u64::from(draw.chance(90));
                shape.push(n);
                start.push(0);
                extents.push(n as usize);
                cut.push(None);
            }
        }
        let mut source = Draw(draw.next());
        let values = array(dtype, &extents, |_| {
            if special && dtype.is_float() && source.chance(5) {
                return source.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
            }
            (source.below(17) as f64 - 8.0) / if dtype.is_float() { 4.0 } else { 2.0 }
        });
        operands.push(Operand {
            columns: vec![dtype],
            shape,
        });
        owned.push(Owned {
            columns: vec![values],
            start,
        });
        cuts.push(cut);
    }
    let value = draw.pick(&COMPUTE);
    let mut builder = Builder {
        draw,
        graph: Graph::default(),
        operands,
        cuts,
        indices,
        faults,
    };
    let mut root = builder.node(value, 4);
    let inexact = value.is_float() && builder.draw.chance(40);
    if inexact {
        use Function as F;
        let f = builder.draw.pick(&[
            F::Exp,
            F::Log,
            F::Log1p,
            F::Expm1,
            F::Rsqrt,
            F::Tanh,
            F::Sigmoid,
            F::Gelu,
            F::Erf,
            F::Sin,
            F::Cos,
            F::Tan,
            F::Asin,
            F::Acos,
            F::Atan,
            F::Atan2,
            F::Sinh,
            F::Cosh,
            F::Asinh,
            F::Acosh,
            F::Atanh,
            F::Exp2,
            F::Log2,
            F::Log10,
            F::Cbrt,
            F::Hypot,
            F::Erfc,
            F::Pow,
        ]);
        let mut a = vec![root];
        if f.arity() == 2 {
            a.push(builder.leaf(value));
        }
        root = builder.apply(f, a, value);
    }
    let guard = builder
        .draw
        .chance(30)
        .then(|| builder.node(DType::Bool, 3));
    use Reduction as R;
    let reduction = (rank < indices).then(|| {
        let one = indices - rank == 1;
        loop {
            let r = builder.draw.pick(&R::ALL);
            let fits = match value {
                DType::Bool => matches!(r, R::Any | R::All),
                DType::I32 | DType::I64 => {
                    !matches!(r, R::Any | R::All | R::Mean | R::LogSumExp | R::Norm)
                }
                _ => !matches!(r, R::Any | R::All),
            };
            if fits && (!r.is_arg() || (one && !inexact)) {
                return r;
            }
        }
    });
    let result = reduction.map_or(value, |r| r.result(value));
    let output = match result {
        DType::F32 => builder
            .draw
            .pick(&[DType::F32, DType::F32, DType::F16, DType::BF16]),
        other => other,
    };
    let kernel = Kernel {
        indices: list,
        output_rank: rank as u32,
        operands: builder.operands,
        graph: builder.graph,
        root,
        guard,
        reduction,
        finish: true,
        output: vec![output],
    };
    Case {
        kernel,
        ranges,
        operands: owned,
    }
}

pub fn chunks(operands: &[Owned]) -> Vec<Chunk<'_>> {
    operands
        .iter()
        .map(|o| Chunk {
            columns: o.columns.iter().collect(),
            start: o.start.clone(),
        })
        .collect()
}
