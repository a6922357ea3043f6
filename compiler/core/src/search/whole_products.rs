//! Products of matrices of narrow whole numbers as products of floats.
//!
//! Floats add and multiply whole numbers exactly as long as no result is larger than they hold: 2^24 in f32, 2^53 in f64. How large a factor
//! can be follows from the type that it is stored in, so a product of bytes is one of floats, for which processors have much faster loops. Must
//! not know placements.
//!
//! ```text
//! y: i32[9, 9] = [i: 9, j: 9 | k: 90] sum a[i, k] * b[k, j]     of bytes a, b
//! y.product: f32[9, 9] = [i: 9, j: 9 | k: 90] sum f32(a[i, k]) * f32(b[k, j])
//! ```

use crate::rules::may_fault;
use ein_plan::schedule::leaves::leaves;
use ein_plan::{DType, Function, Kernel, LoopKernel, LoopKind, Node, NodeId, Reduction, Scalar};

/// The largest whole numbers below which floats hold all.
const EXACT: [(u128, DType); 2] = [(1 << 24, DType::F32), (1 << 53, DType::F64)];

/// The product in floats, if it is exact there, and one of matrices.
pub(super) fn product(kernel: &Kernel) -> Option<Kernel> {
    let dtype = kernel.graph.dtype(kernel.root);
    let plain = kernel.finish && kernel.guard.is_none() && kernel.indices.len() < 128;
    let is_sum = kernel.reduction == Some(Reduction::Sum);
    let whole = matches!(dtype, DType::I32 | DType::I64);
    if !plain || !is_sum || !whole || may_fault(kernel) {
        return None;
    }
    let leaves = leaves(&kernel.graph, kernel.root, |_| false)?;
    let sizes = sizes(kernel);
    let reduced = &kernel.indices[kernel.output_rank as usize..];
    let mut most = (reduced.iter()).fold(1u128, |n, index| n.saturating_mul(index.extent.into()));
    for (factor, divides) in &leaves.factors {
        let size = sizes[factor.0 as usize].filter(|_| !divides)?;
        most = most.saturating_mul(size.max(1));
    }
    let (_, float) = EXACT.into_iter().find(|(exact, _)| most <= *exact)?;
    let mut product = kernel.clone();
    let graph = &mut product.graph;
    let mut all: Option<NodeId> = None;
    for (factor, _) in leaves.factors {
        let next = graph.add(Node::Convert(factor), float);
        all = Some(match all {
            None => next,
            Some(all) => graph.add(Node::Apply(Function::Mul, vec![all, next]), float),
        });
    }
    let all = all?;
    product.root = match leaves.negative {
        true => graph.add(Node::Apply(Function::Neg, vec![all]), float),
        false => all,
    };
    product.output = vec![float];
    let product = product.canonical();
    let loops = LoopKernel::of_whole(&product).kind;
    matches!(loops, LoopKind::Matmul(_)).then_some(product)
}

/// By node: a number that no value's size is above, where the node is a whole number and no result on the way wraps.
fn sizes(kernel: &Kernel) -> Vec<Option<u128>> {
    let graph = &kernel.graph;
    let mut sizes: Vec<Option<u128>> = vec![];
    for (_, node, dtype) in graph.iter() {
        let of = |id: &NodeId| sizes[id.0 as usize];
        let size = match node {
            Node::Constant(Scalar::Int(x)) => Some(x.unsigned_abs().into()),
            Node::Constant(Scalar::Bool(_)) => Some(1),
            Node::Constant(_) => None,
            Node::Index(index) => Some(kernel.indices[index.0 as usize].extent.into()),
            Node::Read {
                operand,
                column,
                otherwise,
                ..
            } => {
                let stored = kernel.operands[*operand as usize].columns[*column as usize];
                let other = otherwise.as_ref().map_or(Some(0), of);
                size_of(stored).zip(other).map(|(a, b)| a.max(b))
            }
            Node::Convert(from) => of(from),
            Node::Apply(function, arguments) => match (function, &arguments[..]) {
                (Function::Add | Function::Sub, [a, b]) => {
                    of(a).zip(of(b)).map(|(a, b)| a.saturating_add(b))
                }
                (Function::Mul, [a, b]) => of(a).zip(of(b)).map(|(a, b)| a.saturating_mul(b)),
                (Function::Max | Function::Min | Function::Select, [.., a, b]) => {
                    of(a).zip(of(b)).map(|(a, b)| a.max(b))
                }
                (Function::Neg | Function::Abs | Function::Stop | Function::Relu, [a]) => of(a),
                _ => None,
            },
        };
        sizes.push(match dtype {
            DType::Bool => Some(1),
            DType::I32 => size.filter(|size| *size < 1 << 31),
            DType::I64 => size.filter(|size| *size < 1 << 63),
            _ => None,
        });
    }
    sizes
}

/// The largest size of a value of a narrow stored type.
fn size_of(stored: DType) -> Option<u128> {
    match stored {
        DType::Bool => Some(1),
        DType::I8 => Some(1 << 7),
        DType::U8 => Some(1 << 8),
        DType::I16 => Some(1 << 15),
        DType::U16 => Some(1 << 16),
        _ => None,
    }
}
