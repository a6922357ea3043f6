//! Scatters whose points stand in the order of the rows that they go to.
//!
//! Points that data send to rows in any order are sorted by each scatter that goes through them. Where the rows change less often than the scatter
//! runs, in rounds or in steps of a training, they are sorted once, and everything of a point that changes as seldom is stored in that order. The
//! points of a row keep their own order, so the sums are the same to the last bit. Must not know who runs the scatter how often.
//!
//! ```text
//! h: f32[9, 4] = [i: 9, k: 4 | e: 5] sum w[e] * x[src[e], k] if i == dst[e]                     w, src and dst never change
//!
//! h.row: i64[5] = [e: 5] dst[e]                         h.order: i64[5] = [e: 5] argsort(h.row[:1], e)
//! h.point: f32[5] = [e: 5] w[h.order[e]]                h.point.1, h.point.2: src and dst in that order
//! h: f32[9, 4] = [i: 9, k: 4 | e: 5] sum h.point[e] * x[h.point.1[e], k] if i == h.point.2[e]
//! ```

use super::statement::OverList;
use super::touched::{Sent, product, row_of_point};
use super::written;
use crate::einsum::canonical::statement;
use crate::einsum::{Definition, Program, Rewriting, Tensor, TensorId};
use crate::rules::{free_index, may_fault_in};
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, ListColumn, Node, NodeId, Source};
use std::collections::{BTreeSet, HashMap};

/// Fewest elements that a point adds to.
const LEAST_WIDTH: u64 = 4;
/// The fewest points are the fewest elements of the output, divided by this.
const LEAST_POINTS: u64 = 8;
/// Fewest elements of the output of a scatter; a smaller one stays in a core's cache, where any order is as good.
pub const LEAST_OUTPUT: u64 = 1 << 17;

/// Returns the program in which scatters of many points into at least so many elements go through them row by row, where the rows change less often
/// than the scatter runs: by tensor `steady` says which ones never do, by name `ascends` which given ones ascend.
#[must_use]
pub fn with_ordered_points(
    program: &Program,
    least: u64,
    steady: &[bool],
    ascends: &dyn Fn(&str) -> bool,
) -> Program {
    let mut ordered = Ordered {
        rewriting: Rewriting::of(program),
        least,
        steady: vec![],
        ascends,
        made: HashMap::new(),
    };
    let mut any = false;
    for (old, tensor) in (0..).map(TensorId).zip(&program.tensors) {
        let is_steady = steady.get(old.0 as usize).copied().unwrap_or(false);
        let mut tensor = ordered.rewriting.copy(tensor);
        if let Definition::Statement { kernel, operands } = &tensor.definition
            && !is_steady
            && let Some((kernel, operands)) = ordered.scatter((&tensor, kernel, operands))
        {
            tensor.definition = Definition::Statement { kernel, operands };
            any = true;
        }
        let id = ordered.rewriting.place(old, tensor);
        ordered.set_steady(id, is_steady);
    }
    if !any {
        return program.clone();
    }
    let program = ordered.rewriting.finish().needed().arranged();
    program.expect("a scatter in order reads what the one in its place reads, and the order")
}

/// A program on its way to one with scatters in order.
struct Ordered<'a> {
    rewriting: Rewriting,
    least: u64,
    /// By tensor of the new program.
    steady: Vec<bool>,
    ascends: &'a dyn Fn(&str) -> bool,
    /// Statements that several scatters read.
    made: HashMap<(Kernel, Vec<TensorId>), TensorId>,
}

impl Ordered<'_> {
    /// A scatter with its points in the order of their rows.
    fn scatter(
        &mut self,
        (tensor, kernel, operands): (&Tensor, &Kernel, &[TensorId]),
    ) -> Option<(Kernel, Vec<TensorId>)> {
        let sent = Sent::of(kernel)?;
        let count = product(kernel, &sent.points);
        let elements = tensor.shape.iter().product::<u64>();
        let rows = kernel.indices[sent.index.0 as usize].extent;
        let large = elements >= self.least && elements >= rows.saturating_mul(LEAST_WIDTH);
        if count < self.least / LEAST_POINTS || !large {
            return None;
        }
        let seldom: Vec<bool> = (operands.iter())
            .map(|operand| self.changes_seldom(*operand, tensor))
            .collect();
        let parts = self.parts(kernel, (&sent, &seldom));
        let row = row_of_point((kernel, operands), &sent);
        let row = (row.kernel, row.operands);
        if !parts.contains(&sent.row) || self.is_ascending(&row.0, &row.1) {
            return None;
        }
        let row = self.made(tensor, "row", row);
        let order = format!("(i64[{count}]) [e: {count}] i64 = argsort(a0[:1], e)");
        let order = statement(written(&order), &[row]);
        let order = self.made(tensor, "order", order);

        let kept = |index: &u32| !sent.points.contains(&IndexId(*index));
        let left: Vec<u32> = (0..kernel.indices.len() as u32).filter(kept).collect();
        let moved = |index: IndexId| {
            let at = left.iter().position(|own| IndexId(*own) == index);
            at.map(|at| IndexId(at as u32 + u32::from(at >= kernel.output_rank as usize)))
        };
        let own = |own: &u32| kernel.indices[*own as usize].clone();
        let mut indices: Vec<Index> = left.iter().map(own).collect();
        let name = free_index(&indices);
        let entry = kernel.output_rank;
        indices.insert(
            entry as usize,
            Index {
                name,
                extent: count,
            },
        );
        let mut over = OverList {
            kernel: Kernel {
                indices,
                graph: Graph::default(),
                ..kernel.clone()
            },
            operands: operands.to_vec(),
            entry: IndexId(entry),
        };
        let point = over.read(order, DType::I64, vec![count], vec![], None);
        let places = sent.places(kernel, &mut over, point);
        let columns: HashMap<NodeId, NodeId> = (parts.iter())
            .map(|part| {
                let (column, dtype) =
                    self.column((tensor, kernel, operands), &sent, (*part, order));
                (*part, over.read(column, dtype, vec![count], vec![], None))
            })
            .collect();
        let graph = &mut over.kernel.graph;
        let new = graph.append(&kernel.graph, |graph, id, node, dtype| match node {
            _ if columns.contains_key(&id) => columns[&id],
            Node::Index(index) => match moved(index) {
                Some(index) => graph.add(Node::Index(index), dtype),
                None => places[&index],
            },
            node => graph.add(node, dtype),
        });
        over.kernel.root = new[kernel.root.0 as usize];
        over.kernel.guard = kernel.guard.map(|guard| new[guard.0 as usize]);
        Some(statement(over.kernel, &over.operands))
    }

    /// The largest parts of a statement that depend on nothing but the point and data that seldom change, and that read some.
    fn parts(&self, kernel: &Kernel, (sent, seldom): (&Sent, &[bool])) -> BTreeSet<NodeId> {
        let depends = kernel.graph.dependencies();
        let points = (sent.points.iter()).fold(0u128, |all, index| all | 1 << index.0);
        // By node: whether all that it reads changes seldom, and whether it reads at all.
        let mut reads: Vec<(bool, bool)> = vec![];
        for (_, node, _) in kernel.graph.iter() {
            let own = match node {
                Node::Read { operand, .. } => (seldom[*operand as usize], true),
                _ => (true, false),
            };
            let all = node.arguments().map(|argument| reads[argument.0 as usize]);
            reads.push(all.fold(own, |a, b| (a.0 && b.0, a.1 || b.1)));
        }
        let is_part = |id: NodeId| {
            let by = depends[id.0 as usize];
            let whole = by != 0 && by & !points == 0;
            // A stored value is rounded, so it is an element or a whole number.
            let is_element = matches!(kernel.graph.node(id), Node::Read { .. });
            whole
                && reads[id.0 as usize] == (true, true)
                && (is_element || kernel.graph.dtype(id) == DType::I64)
                && !may_fault_in(kernel, id)
        };
        let (mut parts, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<NodeId> = kernel.guard.into_iter().chain([kernel.root]).collect();
        while let Some(id) = open.pop() {
            if is_part(id) {
                parts.insert(id);
            } else if seen.insert(id) {
                open.extend(kernel.graph.node(id).arguments());
            }
        }
        parts
    }

    /// A part of a statement by point, in order, and its stored type.
    fn column(
        &mut self,
        (tensor, kernel, operands): (&Tensor, &Kernel, &[TensorId]),
        sent: &Sent,
        (part, order): (NodeId, TensorId),
    ) -> (TensorId, DType) {
        let dtype = match kernel.graph.node(part) {
            Node::Read {
                operand, column, ..
            } => kernel.operands[*operand as usize].columns[*column as usize],
            _ => kernel.graph.dtype(part),
        };
        let count = product(kernel, &sent.points);
        let mut over = OverList::vector("e", count, dtype);
        over.operands = operands.to_vec();
        over.kernel.operands.clone_from(&kernel.operands);
        let point = over.read(order, DType::I64, vec![count], vec![], None);
        let places = sent.places(kernel, &mut over, point);
        over.kernel.root = over.part(kernel, part, |index| places.get(&index).copied());
        let over = statement(over.kernel, &over.operands);
        (self.made(tensor, "point", over), dtype)
    }

    /// A hidden statement, made once.
    fn made(
        &mut self,
        tensor: &Tensor,
        part: &str,
        (kernel, operands): (Kernel, Vec<TensorId>),
    ) -> TensorId {
        let key = (kernel, operands);
        if let Some(known) = self.made.get(&key) {
            return *known;
        }
        let name = format!("{}.{part}", tensor.name);
        let steady = (key.1.iter()).all(|operand| self.steady[operand.0 as usize]);
        let id = (self.rewriting).add_hidden(&name, key.clone(), tensor.origin);
        self.set_steady(id, steady);
        self.made.insert(key, id);
        id
    }

    fn set_steady(&mut self, id: TensorId, steady: bool) {
        self.steady.resize(id.0 as usize + 1, false);
        self.steady[id.0 as usize] = steady;
    }

    /// Returns whether an operand changes less often than a tensor that is computed from it.
    fn changes_seldom(&self, operand: TensorId, tensor: &Tensor) -> bool {
        self.steady[operand.0 as usize]
            || tensor.block.is_some()
                && self.rewriting.result().tensor(operand).block != tensor.block
    }

    /// Returns whether the elements of a vector ascend for a reason that the program tells.
    fn is_ascending(&self, kernel: &Kernel, operands: &[TensorId]) -> bool {
        let is_vector = kernel.indices.len() == 1 && kernel.output_rank == 1;
        is_vector && self.ascends_at(kernel, operands, kernel.root)
    }

    fn ascends_at(&self, kernel: &Kernel, operands: &[TensorId], id: NodeId) -> bool {
        let ascends = |id| self.ascends_at(kernel, operands, id);
        match kernel.graph.node(id) {
            Node::Index(_) => true,
            Node::Convert(argument) => ascends(*argument),
            Node::Apply(Function::FloorDiv, arguments) => {
                let by = kernel.graph.as_affine(arguments[1]);
                ascends(arguments[0]) && by.is_some_and(|by| by.terms.is_empty() && by.constant > 0)
            }
            Node::Read {
                operand, positions, ..
            } => match positions[..] {
                [position] if kernel.graph.as_index(position).is_some() => {
                    self.tensor_ascends(operands[*operand as usize])
                }
                [position] => self.is_sorted_by(kernel, operands, (*operand, position)),
                _ => false,
            },
            _ => false,
        }
    }

    fn tensor_ascends(&self, id: TensorId) -> bool {
        let tensor = self.rewriting.result().tensor(id);
        match &tensor.definition {
            Definition::Source(Source::Listed { column, by, .. }) => {
                *column == ListColumn::Positions(*by)
            }
            Definition::Source(Source::Iota) => true,
            Definition::Source(source) => source.is_given() && (self.ascends)(&tensor.name),
            Definition::Statement { kernel, operands } => self.is_ascending(kernel, operands),
            Definition::Loop(_) => false,
        }
    }

    /// Returns whether a read takes the elements of a tensor in the order that sorts them.
    fn is_sorted_by(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        (operand, position): (u32, NodeId),
    ) -> bool {
        let Node::Read {
            operand: order,
            positions,
            ..
        } = kernel.graph.node(position)
        else {
            return false;
        };
        let along = |position: &NodeId| kernel.graph.as_index(*position).is_some();
        let order = self.rewriting.result().tensor(operands[*order as usize]);
        let Definition::Statement {
            kernel: order,
            operands: sorted,
        } = &order.definition
        else {
            return false;
        };
        positions.iter().all(along)
            && (order.library()).is_some_and(|call| call.operation == Function::Argsort)
            && sorted[..] == [operands[operand as usize]]
    }
}
