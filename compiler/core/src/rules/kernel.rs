//! Questions that translation asks of kernels: whether they fault, what they depend on, and the kernel with other dimensions.
//!
//! Must not know terms.
//!
//! ```text
//! permute_output([i, j | k] sum a0[i, k] * a1[k, j], [1, 0])   gives   [j, i | k] sum a0[i, k] * a1[k, j]
//! ```

use super::laws;
use crate::einsum::nodes::needed;
use ein_plan::{
    DType, Function, Graph as Expressions, Index, IndexId, Kernel, Node, NodeId, Operand,
    Reduction, Scalar,
};

/// Returns the value that stands for a point that is left out, where that is a number.
pub(crate) fn neutral(reduction: Reduction, dtype: DType) -> Option<Scalar> {
    match reduction {
        Reduction::Norm | Reduction::Norm1 | Reduction::NormInf => {
            laws::identity(Function::Add, dtype)
        }
        Reduction::LogSumExp => laws::identity(Function::Max, dtype),
        other => laws::identity(laws::step(other)?, dtype),
    }
}

/// How many values some indices of a kernel have together.
pub(crate) fn values(kernel: &Kernel, indices: impl IntoIterator<Item = usize>) -> u64 {
    let extents = indices.into_iter().map(|at| kernel.indices[at].extent);
    extents.fold(1, u64::saturating_mul)
}

/// How many values the indices of these bits have together.
pub(crate) fn values_of_bits(kernel: &Kernel, bits: u128) -> u64 {
    let all = 0..kernel.indices.len();
    values(kernel, all.filter(|at| bits >> at & 1 == 1))
}

/// How many values the indices have together that the loops pass over.
pub(crate) fn values_passed_over(kernel: &Kernel) -> u64 {
    let passed = kernel.passed_over().into_iter();
    values(kernel, passed.map(|index| index.0 as usize))
}

/// A graph with a value, one of its nodes, in the place of an index. What is read at the index, and has no other value outside of its operand, is 0
/// there. Returns also, by node of the old graph, where it is as it was and where it is with the value.
pub(crate) fn with_value(
    old: &Expressions,
    index: IndexId,
    value: NodeId,
) -> (Expressions, Vec<NodeId>, Vec<NodeId>) {
    let depends = old.dependencies();
    let mut graph = Expressions::default();
    let kept = graph.append(old, |graph, _, node, dtype| graph.add(node, dtype));
    let moved = graph.append(old, |graph, id, mut node, dtype| {
        if node == Node::Index(index) {
            return kept[value.0 as usize];
        }
        if let Node::Read { otherwise, .. } = &mut node
            && otherwise.is_none()
            && depends[id.0 as usize] >> index.0 & 1 == 1
        {
            *otherwise = Some(graph.add(Node::Constant(zero(dtype)), dtype));
        }
        graph.add(node, dtype)
    });
    (graph, kept, moved)
}

/// Leaves out the points where a place, a node of the kernel, is none of so many, or above or below them only.
pub(crate) fn restrict_to(kernel: &mut Kernel, place: NodeId, extent: i64, ends: [bool; 2]) {
    let sides = [(Function::Ge, 0), (Function::Lt, extent)];
    for (function, end) in sides
        .into_iter()
        .zip(ends)
        .filter_map(|(side, asked)| asked.then_some(side))
    {
        let graph = &mut kernel.graph;
        let end = graph.add(Node::Constant(Scalar::Int(end)), DType::I64);
        let side = graph.add(Node::Apply(function, vec![place, end]), DType::Bool);
        kernel.restrict(side);
    }
}

/// The zero of a type.
pub(crate) fn zero(dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(false),
        dtype if dtype.is_float() => Scalar::Float(0.0),
        _ => Scalar::Int(0),
    }
}

/// Returns whether some point may stop the run: a read that may be out of range, an integer division or power.
pub(crate) fn may_fault(kernel: &Kernel) -> bool {
    faults(kernel, |_| true)
}

/// Returns whether a node may stop the run at some point.
pub(crate) fn may_fault_in(kernel: &Kernel, root: NodeId) -> bool {
    let needed = needed(&kernel.graph, &[root]);
    faults(kernel, |id| needed[id.0 as usize])
}

/// Returns whether a node by itself, its arguments being there, may stop the run at some point.
pub(crate) fn may_fault_by(kernel: &Kernel, node: NodeId) -> bool {
    faults(kernel, |id| id == node)
}

fn faults(kernel: &Kernel, looked_at: impl Fn(NodeId) -> bool) -> bool {
    let extents: Vec<u64> = kernel.indices.iter().map(|i| i.extent).collect();
    let graph = &kernel.graph;
    let constant = |id: &NodeId, good: &dyn Fn(i64) -> bool| match graph.node(*id) {
        Node::Constant(Scalar::Int(value)) => good(*value),
        _ => false,
    };
    let mut nodes = graph.iter().filter(|(id, ..)| looked_at(*id));
    nodes.any(|(_, node, dtype)| match node {
        Node::Read {
            operand,
            positions,
            otherwise: None,
            ..
        } => {
            let shape = &kernel.operands[*operand as usize].shape;
            !positions
                .iter()
                .zip(shape)
                .all(|(p, extent)| match interval(graph, *p, &extents) {
                    Some((low, high)) => low >= 0 && high.unsigned_abs() < *extent,
                    None => false,
                })
        }
        Node::Apply(Function::FloorDiv | Function::Rem, arguments) if !dtype.is_float() => {
            !constant(&arguments[1], &|x| x != 0)
        }
        Node::Apply(Function::Pow, arguments) if !dtype.is_float() => {
            !constant(&arguments[1], &|x| x >= 0)
        }
        Node::Apply(Function::Within, _) => true,
        _ => false,
    })
}

/// The least and the greatest value of a position over all points: of an affine form, a quotient of one, or what a division leaves.
fn interval(graph: &Expressions, position: NodeId, extents: &[u64]) -> Option<(i64, i64)> {
    if let Node::Apply(function @ (Function::FloorDiv | Function::Rem), sides) =
        graph.node(position)
        && let Node::Constant(Scalar::Int(by @ 1..)) = *graph.node(sides[1])
    {
        let (low, high) = interval(graph, sides[0], extents)?;
        let (first, last) = (low.div_euclid(by), high.div_euclid(by));
        return Some(match function {
            Function::FloorDiv => (first, last),
            _ if first == last => (low.rem_euclid(by), high.rem_euclid(by)),
            _ => (0, by - 1),
        });
    }
    let extent = |index: IndexId| extents[index.0 as usize];
    graph.as_affine(position)?.reach(extent, None)
}

/// The indices that some nodes depend on, ascending.
pub(crate) fn indices_of(graph: &Expressions, nodes: &[NodeId]) -> Vec<IndexId> {
    let needed = needed(graph, nodes);
    let mut indices: Vec<IndexId> = (graph.iter())
        .filter(|(id, ..)| needed[id.0 as usize])
        .filter_map(|(_, node, _)| match node {
            Node::Index(index) => Some(*index),
            _ => None,
        })
        .collect();
    indices.sort_unstable();
    indices.dedup();
    indices
}

/// Renumbers the indices of a kernel.
pub(crate) fn renamed(kernel: Kernel, number: &dyn Fn(IndexId) -> IndexId) -> Kernel {
    kernel.rewritten(|graph, _, node, dtype| match node {
        Node::Index(index) => graph.add(Node::Index(number(index)), dtype),
        node => graph.add(node, dtype),
    })
}

/// The kernel whose output dimension `order[d]` is dimension `d` of this one's.
pub(crate) fn permute_output(kernel: &Kernel, order: &[u32]) -> Kernel {
    let mut result = renamed(kernel.clone(), &|index| {
        IndexId(order.get(index.0 as usize).copied().unwrap_or(index.0))
    });
    for (from, to) in order.iter().enumerate() {
        result.indices[*to as usize] = kernel.indices[from].clone();
    }
    result
}

/// The kernel that reads operands whose dimension `orders[o][d]` is dimension `d` of this one's operand `o`.
pub(crate) fn permute_operands(kernel: &Kernel, orders: &[Vec<u32>]) -> Kernel {
    let mut result = kernel.clone();
    for (operand, order) in result.operands.iter_mut().zip(orders) {
        let shape = operand.shape.clone();
        for (from, to) in order.iter().enumerate() {
            operand.shape[*to as usize] = shape[from];
        }
    }
    result.rewritten(|graph, _, mut node, dtype| {
        if let Node::Read {
            operand, positions, ..
        } = &mut node
        {
            let old = positions.clone();
            for (from, to) in orders[*operand as usize].iter().enumerate() {
                positions[*to as usize] = old[from];
            }
        }
        graph.add(node, dtype)
    })
}

/// Adds an operand over these of the indices of a kernel, and a read of its element at a point.
pub(crate) fn element(
    (graph, operands): (&mut Expressions, &mut Vec<Operand>),
    kernel: &Kernel,
    indices: &[usize],
    dtype: DType,
) -> NodeId {
    let index = |i: &usize| Node::Index(IndexId(*i as u32));
    let positions = indices.iter().map(|i| graph.add(index(i), DType::I64));
    let read = Node::Read {
        operand: operands.len() as u32,
        column: 0,
        positions: positions.collect(),
        otherwise: None,
    };
    operands.push(Operand {
        columns: vec![dtype],
        shape: indices.iter().map(|i| kernel.indices[*i].extent).collect(),
    });
    graph.add(read, dtype)
}

/// A kernel of one element for each point of the result of another one, with its graph and operands.
pub(crate) fn elementwise(kernel: &Kernel) -> Kernel {
    Kernel {
        indices: kernel.indices[..kernel.output_rank as usize].to_vec(),
        guard: None,
        reduction: None,
        ..kernel.clone()
    }
}

/// A sum that has nothing left to sum over, as a kernel without a reduction: 0 where its guard does not hold.
pub(crate) fn summed(mut kernel: Kernel) -> Kernel {
    kernel.reduction = None;
    if let Some(guard) = kernel.guard.take() {
        let dtype = kernel.graph.dtype(kernel.root);
        let nothing = neutral(Reduction::Sum, dtype).expect("a sum of numbers begins at 0");
        let nothing = kernel.graph.add(Node::Constant(nothing), dtype);
        let chosen = Node::Apply(Function::Select, vec![guard, kernel.root, nothing]);
        kernel.root = kernel.graph.add(chosen, dtype);
    }
    kernel
}

/// A kernel over these of the indices of another one, in this order.
pub(crate) fn over(mut to: Kernel, kernel: &Kernel, indices: &[usize]) -> Kernel {
    to.indices = indices.iter().map(|i| kernel.indices[*i].clone()).collect();
    renamed(to, &|index| {
        let at = indices.iter().position(|i| *i == index.0 as usize);
        at.map_or(index, |at| IndexId(at as u32))
    })
}

/// The factors of a product, in the order in which they stand.
pub(crate) fn factors(graph: &Expressions, root: NodeId) -> Vec<NodeId> {
    let (mut factors, mut open) = (vec![], vec![root]);
    while let Some(node) = open.pop() {
        match graph.node(node) {
            Node::Apply(Function::Mul, sides) => open.extend([sides[1], sides[0]]),
            _ => factors.push(node),
        }
    }
    factors
}

/// The product of some factors.
pub(crate) fn times(graph: &mut Expressions, factors: &[NodeId], dtype: DType) -> NodeId {
    let mut all = factors.iter().copied();
    let first = all.next().expect("a side of a product has a factor");
    all.fold(first, |all, next| {
        graph.add(Node::Apply(Function::Mul, vec![all, next]), dtype)
    })
}

/// A name that no index has.
pub(crate) fn free_index(indices: &[Index]) -> String {
    let taken = |name: &str| indices.iter().any(|index| index.name == name);
    let numbered = (1..).map(|number| format!("e{number}"));
    let mut names = std::iter::once("e".to_owned()).chain(numbered);
    names.find(|name| !taken(name)).unwrap_or_default()
}
