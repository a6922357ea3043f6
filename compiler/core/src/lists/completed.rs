//! Reductions whose value where nothing is listed is no neutral element, but depends on the output alone.
//!
//! The reduction over the list is completed with as many of that value as there are points that are not listed. Must not know how a statement
//! over a list is written.
//!
//! ```text
//! v: f32[9] = [i: 9 | k: 8] sum (A[i, k] - m[i]) * (A[i, k] - m[i])
//!
//! v.listed: f32[9] = [i: 9 | e: 5] sum (A.values[e] - m[A.at0[e]]) * (A.values[e] - m[A.at0[e]]) if i == A.at0[e]
//! v.count: i64[9] = [i: 9 | e: 5] sum 1 if i == A.at0[e]
//! v: f32[9] = [i: 9] where(v.count[i] < 8, v.listed[i] + f32(8 - v.count[i]) * (0.0 - m[i]) * (0.0 - m[i]), v.listed[i])
//! ```

use super::access::Access;
use super::{Lists, fill};
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use ein_plan::{
    DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Origin, Reduction, Scalar,
};

impl Lists {
    /// The reduction as one over a list that is completed, if it is one.
    pub(super) fn completed(
        &mut self,
        name: &str,
        kernel: &Kernel,
        operands: &[TensorId],
        origin: Origin,
    ) -> Option<(Kernel, Vec<TensorId>)> {
        let (access, fill) = self.completing(kernel, operands)?;
        let reduction = kernel.reduction?;
        let dtype = kernel.graph.dtype(kernel.root);
        let over = Kernel {
            reduction: Some(match reduction {
                Reduction::Mean => Reduction::Sum,
                other => other,
            }),
            output: vec![dtype],
            ..kernel.clone()
        };
        let (over, read) = self.of_listed(over, operands, &access);
        let listed = self.sum_over((name, origin), &over, &read, &access);
        let listed = (self.rewriting).add_hidden(&format!("{name}.listed"), listed, origin);
        let is_zero = |value: &Scalar| fill::is_same(*value, fill::zero(dtype));
        let adds_nothing =
            matches!(fill.graph.node(fill.root), Node::Constant(value) if is_zero(value));
        if reduction == Reduction::Mean && adds_nothing {
            return Some(together(kernel, operands, fill, (listed, None)));
        }
        let mut points = Kernel {
            reduction: Some(Reduction::Sum),
            output: vec![DType::I64],
            ..over
        };
        points.root = points.graph.add(Node::Constant(Scalar::Int(1)), DType::I64);
        let over = self.sum_over((name, origin), &points, &read, &access);
        let count = self.made(&format!("{name}.count"), over, origin);
        Some(together(kernel, operands, fill, (listed, Some(count))))
    }

    /// The access to a list by which a reduction can be completed, and the statement's value where that has no place.
    pub(super) fn completing(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<(Access, Kernel)> {
        let reduction = kernel
            .reduction
            .filter(|_| kernel.guard.is_none() && kernel.finish)?;
        let dtype = kernel.graph.dtype(kernel.root);
        if kernel.library().is_some() || !can_be_completed(reduction, dtype) {
            return None;
        }
        self.accesses(kernel, operands)
            .into_iter()
            .find_map(|access| {
                let is_summed = access.indices.iter().any(|i| i.0 >= kernel.output_rank);
                let fill = is_summed.then(|| self.fill_by_output(kernel, operands, &access))??;
                Some((access, fill))
            })
    }

    /// The reduction without places that the input does not list: there it is 0, and they are completed like all that is not listed.
    fn of_listed(
        &self,
        mut kernel: Kernel,
        operands: &[TensorId],
        access: &Access,
    ) -> (Kernel, Vec<TensorId>) {
        let pattern = self.pattern(access.pattern);
        let mut operands = operands.to_vec();
        if !pattern.has_more {
            return (kernel, operands);
        }
        let dtype = self.rewriting.result().tensor(pattern.tensor).dtype;
        let compute = dtype.compute();
        let graph = &mut kernel.graph;
        let indices = access.indices.iter();
        let positions = indices
            .map(|index| graph.add(Node::Index(*index), DType::I64))
            .collect();
        let zero = graph.add(Node::Constant(fill::zero(dtype)), compute);
        operands.push(pattern.tensor);
        kernel.operands.push(Operand {
            columns: vec![dtype],
            shape: pattern.shape.clone(),
        });
        let read = Node::Read {
            operand: operands.len() as u32 - 1,
            column: 0,
            positions,
            otherwise: Some(zero),
        };
        let value = graph.add(read, compute);
        let is_listed = Node::Apply(Function::Ne, vec![value, zero]);
        let is_listed = graph.add(is_listed, DType::Bool);
        kernel.restrict(is_listed);
        (kernel, operands)
    }

    /// The kernel whose root is the value where nothing is listed, if no reduced index is needed for it.
    fn fill_by_output(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        access: &Access,
    ) -> Option<Kernel> {
        let values = self.fill_values(kernel, operands, access);
        let known = |id: NodeId| values[id.0 as usize];
        if values.iter().flatten().any(|value| value.as_f64().is_nan()) {
            return None;
        }
        let fill = (kernel.clone()).rewritten(|graph, id, node, dtype| match known(id) {
            Some(value) => graph.add(Node::Constant(value), dtype),
            None => graph.add(node, dtype),
        });
        let depends = fill.graph.dependencies()[fill.root.0 as usize];
        let reduced = (kernel.output_rank..kernel.indices.len() as u32).map(|i| i.min(127));
        (reduced.into_iter().all(|index| depends >> index & 1 == 0)).then_some(fill)
    }
}

/// Returns whether a reduction of values of a type is completed by a function of its result and of further values.
pub(super) fn can_be_completed(reduction: Reduction, dtype: DType) -> bool {
    match reduction {
        Reduction::Sum | Reduction::Mean | Reduction::Max | Reduction::Min => dtype != DType::Bool,
        Reduction::Any | Reduction::All => true,
        Reduction::LogSumExp => dtype.is_float(),
        _ => false,
    }
}

/// The reduction of what is listed, and of the value of the root of `fill` for every other point: without a count of what is listed, that is
/// zero.
fn together(
    kernel: &Kernel,
    operands: &[TensorId],
    fill: Kernel,
    (listed, count): (TensorId, Option<TensorId>),
) -> (Kernel, Vec<TensorId>) {
    let rank = kernel.output_rank;
    let shape: Vec<u64> = (kernel.indices[..rank as usize].iter())
        .map(|i| i.extent)
        .collect();
    let points = (kernel.indices[rank as usize..].iter())
        .fold(1u64, |n, index| n.saturating_mul(index.extent));
    let points = Scalar::Int(i64::try_from(points).unwrap_or(i64::MAX));
    let dtype = kernel.graph.dtype(kernel.root);
    let mut result = Kernel {
        indices: kernel.indices[..rank as usize].to_vec(),
        reduction: None,
        guard: None,
        ..fill
    };
    let mut operands = operands.to_vec();
    let positions: Vec<NodeId> = (0..rank)
        .map(|dim| result.graph.add(Node::Index(IndexId(dim)), DType::I64))
        .collect();
    let mut read = |tensor: TensorId, dtype: DType| {
        operands.push(tensor);
        result.operands.push(Operand {
            columns: vec![dtype],
            shape: shape.clone(),
        });
        let node = Node::Read {
            operand: operands.len() as u32 - 1,
            column: 0,
            positions: positions.clone(),
            otherwise: None,
        };
        result.graph.add(node, dtype)
    };
    let listed = read(listed, dtype);
    let count = count.map(|count| read(count, DType::I64));
    let graph = &mut result.graph;
    let points = graph.add(Node::Constant(points), DType::I64);
    result.root = match count {
        None => listed,
        Some(count) => {
            let more = result.root;
            with_rest(graph, kernel.reduction, (listed, more), (count, points))
        }
    };
    if kernel.reduction == Some(Reduction::Mean) {
        let count = converted(graph, points, dtype);
        let mean = Node::Apply(Function::Div, vec![result.root, count]);
        result.root = graph.add(mean, dtype);
    }
    statement(result, &operands)
}

/// A reduction of so many points of all, and of one value for each of the rest.
fn with_rest(
    graph: &mut Graph,
    reduction: Option<Reduction>,
    (listed, value): (NodeId, NodeId),
    (count, points): (NodeId, NodeId),
) -> NodeId {
    let dtype = graph.dtype(listed);
    let mut apply = |function, arguments: [NodeId; 2], dtype| {
        graph.add(Node::Apply(function, arguments.to_vec()), dtype)
    };
    let are_more = apply(Function::Lt, [count, points], DType::Bool);
    let rest = apply(Function::Sub, [points, count], DType::I64);
    let both = match reduction {
        Some(Reduction::Max) => apply(Function::Max, [listed, value], dtype),
        Some(Reduction::Min) => apply(Function::Min, [listed, value], dtype),
        Some(Reduction::Any) => apply(Function::Or, [listed, value], dtype),
        Some(Reduction::All) => apply(Function::And, [listed, value], dtype),
        Some(Reduction::LogSumExp) => {
            let times = converted(graph, rest, dtype);
            let times = graph.add(Node::Apply(Function::Log, vec![times]), dtype);
            let more = graph.add(Node::Apply(Function::Add, vec![value, times]), dtype);
            sum_of_exponentials(graph, listed, more, dtype)
        }
        _ => {
            let times = converted(graph, rest, dtype);
            let more = graph.add(Node::Apply(Function::Mul, vec![times, value]), dtype);
            graph.add(Node::Apply(Function::Add, vec![listed, more]), dtype)
        }
    };
    let chosen = Node::Apply(Function::Select, vec![are_more, both, listed]);
    graph.add(chosen, dtype)
}

/// The logarithm of the sum of the exponentials of two numbers.
fn sum_of_exponentials(graph: &mut Graph, one: NodeId, other: NodeId, dtype: DType) -> NodeId {
    let mut apply =
        |function, arguments: Vec<NodeId>| graph.add(Node::Apply(function, arguments), dtype);
    let larger = apply(Function::Max, vec![one, other]);
    let apart = apply(Function::Sub, vec![one, other]);
    let apart = apply(Function::Abs, vec![apart]);
    let less = apply(Function::Neg, vec![apart]);
    let smaller = apply(Function::Exp, vec![less]);
    let more = apply(Function::Log1p, vec![smaller]);
    apply(Function::Add, vec![larger, more])
}

/// A whole number as one of a type.
fn converted(graph: &mut Graph, number: NodeId, dtype: DType) -> NodeId {
    match dtype {
        DType::I64 => number,
        _ => graph.add(Node::Convert(number), dtype),
    }
}
