//! Random well-typed programs: every kind of read, every reduction, sizes from 0.

use super::Numbers;
use super::build::{Body, Build};
use ein_plan::{DType, Function, NodeId, Reduction, Source};
use einc_core::einsum::{Program, TensorId};

const NAMES: [&str; 5] = ["i", "j", "k", "l", "m"];

/// A program of a few statements.
pub fn program(seed: u64) -> Program {
    let mut n = Numbers(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    let sizes: Vec<u64> = (0..3)
        .map(|_| n.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 9]))
        .collect();
    let mut b = Build::new();
    let mut tensors: Vec<(TensorId, DType, Vec<u64>)> = vec![];
    for at in 0..2 + n.below(2) {
        let shape: Vec<u64> = (0..n.below(3)).map(|_| n.pick(&sizes)).collect();
        let dtype = n.pick(&[DType::F32, DType::F32, DType::I64]);
        let source = match n.below(4) {
            0 => Source::Uniform { lo: 0.0, hi: 1.0 },
            _ => Source::Unbound,
        };
        let id = b.source(&format!("x{at}"), dtype, &shape, source);
        tensors.push((id, dtype, shape));
    }
    for at in 0..2 + n.below(4) {
        let rank = n.below(3);
        let reduced = n.below(3);
        let indices: Vec<(&str, u64)> = (0..rank + reduced)
            .map(|i| (NAMES[i], n.pick(&sizes)))
            .collect();
        let (out, inner) = indices.split_at(rank);
        let float = n.below(4) > 0;
        let mut choices = vec![
            Reduction::Sum,
            Reduction::Max,
            Reduction::Min,
            Reduction::Norm1,
            Reduction::NormInf,
        ];
        if float {
            choices.extend([Reduction::Mean, Reduction::LogSumExp, Reduction::Norm]);
        }
        if reduced == 1 {
            choices.extend([Reduction::ArgMax, Reduction::ArgMin, Reduction::ArgMin]);
        }
        let reduction = (reduced > 0).then(|| (n.pick(&choices), inner));
        let id = b.statement(&format!("y{at}"), out, reduction, |s| {
            if n.below(4) == 0 && reduced > 0 {
                let (a, c) = (
                    s.index(n.below(indices.len()) as u32),
                    s.int(n.below(5) as i64),
                );
                s.guard = Some(s.apply(Function::Le, &[a, c]));
            }
            let mut value = expression(s, &mut n, &tensors, &indices);
            for _ in 0..n.below(3) {
                let next = expression(s, &mut n, &tensors, &indices);
                let function =
                    n.pick(&[Function::Add, Function::Mul, Function::Sub, Function::Max]);
                value = s.apply(function, &[value, next]);
            }
            if float {
                value
            } else {
                s.convert(value, DType::I64)
            }
        });
        let tensor = b.program.tensor(id);
        tensors.push((id, tensor.dtype, tensor.shape.clone()));
        if n.below(3) == 0 {
            b.output(id);
        }
    }
    let last = tensors.last().unwrap().0;
    b.output(last);
    // A program holds only what its outputs need.
    einc_core::search::share::share(&b.program).program
}

/// An f32 term: a read of some tensor, an index's number, a guarded read.
fn expression(
    s: &mut Body<'_>,
    n: &mut Numbers,
    tensors: &[(TensorId, DType, Vec<u64>)],
    indices: &[(&str, u64)],
) -> NodeId {
    if n.below(8) == 0 && !indices.is_empty() {
        let index = s.index(n.below(indices.len()) as u32);
        return s.convert(index, DType::F32);
    }
    let (tensor, dtype, shape) = n.pick(tensors);
    let mut safe = true;
    let positions: Vec<NodeId> = shape
        .iter()
        .map(|extent| {
            let fitting: Vec<u32> = (0..indices.len() as u32)
                .filter(|i| indices[*i as usize].1 == *extent)
                .collect();
            if !fitting.is_empty() && n.below(5) > 0 {
                return s.index(n.pick(&fitting));
            }
            safe = false;
            if indices.is_empty() || n.below(4) == 0 {
                return s.int(n.below(3) as i64);
            }
            let index = s.index(n.below(indices.len()) as u32);
            let shift = s.int(n.below(3) as i64 - 1);
            s.apply(Function::Add, &[index, shift])
        })
        .collect();
    let compute = dtype.compute();
    let otherwise = if safe {
        None
    } else {
        let one = s.float(1.0);
        Some(s.convert(one, compute))
    };
    // A read without `else` may stop: the same must then happen everywhere.
    let otherwise = otherwise.filter(|_| n.below(12) > 0);
    let read = s.read_at(tensor, positions, otherwise);
    s.convert(read, DType::F32)
}
