//! Products with rows that data name, taken apart. Factors that belong to a row are multiplied for every row, and read where a row is named; or the
//! factors beside a row are summed for every row first.
//!
//! Must not know whether that is worth it, nor how rows are stored.
//!
//! ```text
//! y: f32[4] = [k: 4 | j: 8] sum c[k] * A[p[k], j] * x[j]           with A: f32[9, 8]
//! rows   [e: 9 | j: 8] sum A[e, j] * x[j];   y   [k: 4] c[k] * rows[p[k]]
//!
//! g: f32[8] = [j: 8 | k: 4] sum c[k] * A[p[k], j]
//! named   [k: 4] within(p[k], 9);   counts   [e: 9 | k: 4] sum 1 if e == named[k];   here   [e: 9, j: 8] where(counts[e] > 0, A[e, j], 0.0)
//! sums   [e: 9 | k: 4] sum c[k] if e == named[k];   g   [j: 8 | e: 9] sum here[e, j] * sums[e]
//! ```

use super::conditions::one;
use super::kernel::{element, factors, free_index, may_fault, neutral, over, times, zero};
use ein_plan::{DType, Function, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar};

/// A row that data name: the position of a read of an operand, and the extent that it is in.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) operand: u32,
    pub(crate) position: NodeId,
    pub(crate) extent: u64,
}

/// A statement in two: one over every row, and the one that reads it behind its own operands.
pub(crate) struct Apart {
    pub(crate) first: Kernel,
    pub(crate) second: Kernel,
}

/// A sum of which the factors beside a row are summed first. Each kernel reads, behind the operands of the statement, the ones that it names.
pub(crate) struct Terms {
    /// The row of each point, which stops the run if there is none.
    pub(crate) named: Kernel,
    /// How many points name each row; reads `named`.
    pub(crate) counts: Kernel,
    /// The rows that are named, and zeros in the stead of the others, which may be infinite or NaN; reads `counts`.
    pub(crate) here: Kernel,
    /// The sums for every row; reads `named`.
    pub(crate) sums: Kernel,
    /// The statement; reads `here` and `sums`.
    pub(crate) all: Kernel,
}

/// Returns whether a reduction may be taken apart: all its points are computed, and given out as they are.
pub(crate) fn is_plain(kernel: &Kernel) -> bool {
    let dtype = kernel.graph.dtype(kernel.root);
    kernel.reduction.is_some()
        && kernel.finish
        && kernel.output == [dtype]
        && kernel.library().is_none()
        && kernel.indices.len() < 127
        && !chooses(kernel)
}

/// Returns whether a kernel has parts that are computed under conditions.
pub(crate) fn chooses(kernel: &Kernel) -> bool {
    let mut nodes = kernel.graph.iter();
    nodes.any(|(_, node, _)| matches!(node, Node::Apply(Function::Select, _)))
}

/// The position of a read that is no form of indices, if it is the only such one of the read and its indices pass.
pub(crate) fn named_row(
    kernel: &Kernel,
    read: &Node,
    passes: impl Fn(u128) -> bool,
) -> Option<Row> {
    let Node::Read {
        operand,
        positions,
        otherwise: None,
        ..
    } = read
    else {
        return None;
    };
    let depends = kernel.graph.dependencies();
    let shape = &kernel.operands[*operand as usize].shape;
    let mut named = (positions.iter().zip(shape)).filter(|(at, _)| {
        let bits = depends[at.0 as usize];
        kernel.graph.as_affine(**at).is_none() && bits != 0
    });
    let (position, extent) = named.next()?;
    let is_only = named.next().is_none() && passes(depends[position.0 as usize]);
    is_only.then_some(Row {
        operand: *operand,
        position: *position,
        extent: *extent,
    })
}

/// The reduction over the indices that neither the row nor the condition has, for every row.
pub(crate) fn rows_first(kernel: &Kernel, row: Row) -> Option<Apart> {
    let dtype = kernel.graph.dtype(kernel.root);
    let (rank, count) = (kernel.output_rank as usize, kernel.indices.len());
    let depends = kernel.graph.dependencies();
    let of = |id: NodeId| depends[id.0 as usize];
    let of_row = of(row.position);
    let fixed = of_row | kernel.guard.map_or(0, of);
    let summed: Vec<usize> = (rank..count).filter(|at| fixed >> at & 1 == 0).collect();
    let bits = summed.iter().fold(0u128, |bits, at| bits | 1 << at);
    let all = match kernel.reduction? {
        Reduction::Sum => factors(&kernel.graph, kernel.root),
        // Of other reductions there is nothing that stands before them.
        _ if summed.len() == count - rank => vec![kernel.root],
        _ => return None,
    };
    let (inner, outer): (Vec<NodeId>, Vec<NodeId>) =
        all.into_iter().partition(|id| of(*id) & bits != 0);
    if inner.is_empty() {
        return None;
    }
    // The rows have an index behind those of the statement.
    let mut first = with_rows(kernel, row);
    first.guard = None;
    let root = times(&mut first.graph, &inner, dtype);
    first.root = root;
    let mut first = at_row(first, row, count);
    let used = first.graph.dependencies()[first.root.0 as usize];
    let left: Vec<usize> = (0..count)
        .filter(|at| (used & !bits) >> at & 1 == 1)
        .collect();
    let is_named = left.iter().any(|at| of_row >> at & 1 == 1);
    if is_named || used & bits != bits || used >> count & 1 == 0 {
        return None;
    }
    let own: Vec<usize> = (std::iter::once(count).chain(left.iter().copied()))
        .chain(summed.iter().copied())
        .collect();
    first.output_rank = 1 + left.len() as u32;
    let first = over(first.clone(), &first, &own).canonical();
    if may_fault(&first) {
        return None;
    }
    let mut second = kernel.clone();
    let number = second.operands.len() as u32;
    let shape = &first.indices[..first.output_rank as usize];
    second.operands.push(Operand {
        columns: vec![dtype],
        shape: shape.iter().map(|index| index.extent).collect(),
    });
    let graph = &mut second.graph;
    let at = left.iter().map(|at| Node::Index(IndexId(*at as u32)));
    let at: Vec<NodeId> = at.map(|index| graph.add(index, DType::I64)).collect();
    let read = Node::Read {
        operand: number,
        column: 0,
        positions: std::iter::once(row.position).chain(at).collect(),
        otherwise: None,
    };
    let read = graph.add(read, dtype);
    let all: Vec<NodeId> = outer.into_iter().chain([read]).collect();
    second.root = times(graph, &all, dtype);
    let kept: Vec<usize> = (0..count).filter(|at| bits >> at & 1 == 0).collect();
    if kept.len() == rank {
        let nothing = neutral(kernel.reduction?, dtype);
        second.reduction = None;
        if let Some(guard) = second.guard.take() {
            let graph = &mut second.graph;
            let nothing = graph.add(Node::Constant(nothing?), dtype);
            let chosen = Node::Apply(Function::Select, vec![guard, second.root, nothing]);
            second.root = graph.add(chosen, dtype);
        }
    }
    let second = over(second.clone(), &second, &kept);
    Some(Apart { first, second })
}

/// The sum, for every row, of what stands beside it where it is named; then the sum over all rows. The indices of the name are all reduced, and `read`
/// is the only factor that has the row.
pub(crate) fn terms_first(kernel: &Kernel, read: NodeId, row: Row) -> Option<Terms> {
    let dtype = kernel.graph.dtype(kernel.root);
    let count = kernel.indices.len();
    let depends = kernel.graph.dependencies();
    let of = |id: NodeId| depends[id.0 as usize];
    let of_row = of(row.position);
    let is_bound = kernel.guard.is_some_and(|guard| of(guard) & of_row != 0);
    let Node::Read { positions, .. } = kernel.graph.node(read) else {
        return None;
    };
    let others = positions.iter().filter(|at| **at != row.position);
    let beside = others.fold(0, |bits, at| bits | of(*at));
    if kernel.reduction != Some(Reduction::Sum) || is_bound || beside & of_row != 0 {
        return None;
    }
    let all = factors(&kernel.graph, kernel.root);
    let rest = all.iter().copied().filter(|id| *id != read);
    let (terms, others): (Vec<NodeId>, Vec<NodeId>) = rest.partition(|id| of(*id) & of_row != 0);
    if others.len() + terms.len() + 1 != all.len() {
        return None;
    }
    let bits = terms.iter().fold(of_row, |bits, id| bits | of(*id));
    let has = |bits: u128| (0..count).filter(move |at| bits >> at & 1 == 1);
    let left: Vec<usize> = std::iter::once(count).chain(has(bits & !of_row)).collect();
    let whole = with_rows(kernel, row);
    let points: Vec<usize> = has(of_row).collect();
    let mut named = kernel.clone();
    let extent = Scalar::Int(i64::try_from(row.extent).ok()?);
    let extent = named.graph.add(Node::Constant(extent), DType::I64);
    let inside = Node::Apply(Function::Within, vec![row.position, extent]);
    named.root = named.graph.add(inside, DType::I64);
    (named.guard, named.reduction, named.output) = (None, None, vec![DType::I64]);
    named.output_rank = points.len() as u32;
    let named = over(named, kernel, &points);
    let scattered = |root: NodeId, mut kernel: Kernel, left: &[usize]| {
        let (graph, operands) = (&mut kernel.graph, &mut kernel.operands);
        let own = element((graph, operands), &whole, &points, DType::I64);
        let every = graph.add(Node::Index(IndexId(count as u32)), DType::I64);
        let here = Node::Apply(Function::Eq, vec![every, own]);
        kernel.guard = Some(graph.add(here, DType::Bool));
        kernel.output = vec![graph.dtype(root)];
        (kernel.root, kernel.output_rank) = (root, left.len() as u32);
        over(kernel, &whole, &[left, &points].concat())
    };
    let mut sums = whole.clone();
    let sum = match &terms[..] {
        [] => sums.graph.add(Node::Constant(one(dtype)), dtype),
        terms => times(&mut sums.graph, terms, dtype),
    };
    let sums = scattered(sum, sums, &left);
    let mut counts = whole.clone();
    let once = Node::Constant(one(DType::I64));
    let once = counts.graph.add(once, DType::I64);
    let counts = scattered(once, counts, &[count]);
    let own: Vec<usize> = std::iter::once(count).chain(has(beside)).collect();
    let mut here = whole.clone();
    let (graph, operands) = (&mut here.graph, &mut here.operands);
    let named_by = element((graph, operands), &whole, &[count], DType::I64);
    let none = graph.add(Node::Constant(Scalar::Int(0)), DType::I64);
    let is_named = Node::Apply(Function::Gt, vec![named_by, none]);
    let is_named = graph.add(is_named, DType::Bool);
    let nothing = graph.add(Node::Constant(zero(dtype)), dtype);
    let chosen = Node::Apply(Function::Select, vec![is_named, read, nothing]);
    here.root = graph.add(chosen, dtype);
    (here.guard, here.reduction) = (None, None);
    here.output_rank = own.len() as u32;
    let here = at_row(here, row, count);
    let here = over(here.clone(), &here, &own);
    let mut all = whole.clone();
    let (graph, operands) = (&mut all.graph, &mut all.operands);
    let rows = element((graph, operands), &whole, &own, dtype);
    let value = element((graph, operands), &whole, &left, dtype);
    let product: Vec<NodeId> = [rows].into_iter().chain(others).chain([value]).collect();
    all.root = times(graph, &product, dtype);
    let kept: Vec<usize> = has(!of_row).chain([count]).collect();
    let all = over(all.clone(), &all, &kept);
    Some(Terms {
        named,
        counts,
        here,
        sums,
        all,
    })
}

/// The kernel with one more index, for every row.
fn with_rows(kernel: &Kernel, row: Row) -> Kernel {
    let name = free_index(&kernel.indices);
    let mut kernel = kernel.clone();
    let extent = row.extent;
    kernel.indices.push(Index { name, extent });
    kernel
}

/// The kernel in which the row is an index.
fn at_row(kernel: Kernel, row: Row, index: usize) -> Kernel {
    kernel.rewritten(|graph, id, node, dtype| match id == row.position {
        true => graph.add(Node::Index(IndexId(index as u32)), DType::I64),
        false => graph.add(node, dtype),
    })
}
