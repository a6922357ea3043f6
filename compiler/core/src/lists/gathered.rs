//! Reductions of the rows of lists that data name, and single elements that data name.
//!
//! The reduction of a named row is a row of the reductions of all rows: one walk over the list. An element at a place that no list has is looked for
//! among the keys of a list, if that is few of all elements. Must not know how a statement goes over a list.
//!
//! ```text
//! y: f32[4] = [k: 4 | j: 8] sum A[p[k], j] * x[j]              with 5 elements of A: f32[9, 8] listed
//! y.rows: f32[9] = [i: 9 | j: 8] sum A[i, j] * x[j];   y: f32[4] = [k: 4] y.rows[p[k]]
//!
//! g: f32[8] = [j: 8 | k: 4] sum A[p[k], j] * c[k]
//! g.row: i64[4] = [k: 4] within(p[k], 9);   g.names: i64[9] = [i: 9 | k: 4] sum 1 if i == g.row[k]
//! g.here: f32[9, 8] = [i: 9, j: 8] where(g.names[i] > 0, A[i, j], 0.0)
//! g.sums: f32[9] = [i: 9 | k: 4] sum c[k] if i == g.row[k];   g: f32[8] = [j: 8 | i: 9] sum g.here[i, j] * g.sums[i]
//!
//! w: f32[4] = [k: 4] A[p[k], q[k]] * x[k]
//! w.key: i64[4] = [k: 4] within(p[k], 9) * 8 + within(q[k], 8);   w.place: i64[4] = [k: 4] find(A.key[:1], w.key[k])
//! w: f32[4] = [k: 4] (A.values[w.place[k]] else 0.0) * x[k]
//! ```

use super::statement::{OverList, both};
use super::{List, Lists, SPARSE, elements, fill, written};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::rules::gathered::{Apart, Row, is_plain, named_row, rows_first, terms_first};
use crate::rules::{may_fault_by, may_fault_in, values};
use ein_plan::{DType, Function, Index, IndexId, Kernel, Node, NodeId, Operand, Origin, Scalar};

impl Lists {
    /// The statement that reads its reductions of named rows from those of all rows.
    pub(super) fn of_rows(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        if kernel.guard.is_some() || !is_plain(kernel) {
            return None;
        }
        let rank = kernel.output_rank;
        let (_, row) = self.named_read(kernel, operands, &|bits| bits >> rank == 0)?;
        let Apart { first, second } = rows_first(kernel, row)?;
        let (rows, read) = statement(first, operands);
        if self.accesses(&rows, &read).is_empty() {
            return None;
        }
        let rows = self.summed((name, origin), &rows, &read);
        let rows = self.made(&format!("{name}.rows"), rows, origin);
        Some(statement(second, &[operands, &[rows]].concat()))
    }

    /// The sum of products with rows that data name for each term, as one of all rows: each with the sum of what the terms that name it have beside it.
    pub(super) fn of_named_terms(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        if kernel.guard.is_some() || !is_plain(kernel) {
            return None;
        }
        let rank = kernel.output_rank;
        let (read, row) =
            self.named_read(kernel, operands, &|bits| bits >> rank << rank == bits)?;
        let terms = terms_first(kernel, read, row)?;
        let named = statement(terms.named, operands);
        let named = self.made(&format!("{name}.row"), named, origin);
        let and = |more: &[TensorId]| [operands, more].concat();
        let counts = statement(terms.counts, &and(&[named]));
        let counts = self.made(&format!("{name}.names"), counts, origin);
        let (here, of_here) = statement(terms.here, &and(&[counts]));
        let part = format!("{name}.here");
        let list = self.derived(&part, &here, &of_here, origin)?;
        let rows = self.scattered(&here, &list)?;
        let rows = self.rewriting.add_hidden(&part, rows, origin);
        self.add_list(rows, list);
        let sums = statement(terms.sums, &and(&[named]));
        let sums = self.made(&format!("{name}.sums"), sums, origin);
        Some(statement(terms.all, &and(&[rows, sums])))
    }

    /// The first read of a list at a row that data name by indices that pass.
    fn named_read(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        passes: &dyn Fn(u128) -> bool,
    ) -> Option<(NodeId, Row)> {
        let mut nodes = kernel.graph.iter();
        nodes.find_map(|(id, node, _)| {
            let Node::Read { operand, .. } = node else {
                return None;
            };
            self.lists.get(&operands[*operand as usize])?;
            Some((id, named_row(kernel, node, passes)?))
        })
    }

    /// The statement that looks for elements of lists at places that no list has.
    pub(super) fn looked_up(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        if kernel.library().is_some() || kernel.indices.len() > 126 {
            return None;
        }
        let mut found = vec![];
        for (id, node, _) in kernel.graph.iter() {
            if let Some(list) = self.sought(kernel, operands, (id, node)) {
                let place = self.place_of((name, origin), (kernel, operands), id, &list)?;
                found.push((id, list, place));
            }
        }
        if found.is_empty() {
            return None;
        }
        let mut read = operands.to_vec();
        let mut result = kernel.clone();
        for (_, list, (place, _)) in &found {
            for tensor in [*place, list.values] {
                let of = self.rewriting.result().tensor(tensor);
                result.operands.push(Operand {
                    columns: vec![of.dtype],
                    shape: of.shape.clone(),
                });
                read.push(tensor);
            }
        }
        let first = operands.len() as u32;
        let result = result.rewritten(|graph, id, node, dtype| {
            let Some(at) = found.iter().position(|(own, ..)| *own == id) else {
                return graph.add(node, dtype);
            };
            let (_, list, (_, indices)) = &found[at];
            let operand = first + 2 * at as u32;
            let points = indices.iter();
            let points = points.map(|index| graph.add(Node::Index(*index), DType::I64));
            let place = Node::Read {
                operand,
                column: 0,
                positions: points.collect(),
                otherwise: None,
            };
            let place = graph.add(place, DType::I64);
            let otherwise = Some(graph.add(Node::Constant(list.fill), dtype));
            let value = Node::Read {
                operand: operand + 1,
                column: 0,
                positions: vec![place],
                otherwise,
            };
            graph.add(value, dtype)
        });
        Some(statement(result, &read))
    }

    /// The list of a read of few elements, if it is one of a tensor whose places all dimensions have, and goes over none.
    fn sought(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        (id, node): (NodeId, &Node),
    ) -> Option<List> {
        let Node::Read {
            operand,
            positions,
            otherwise,
            ..
        } = node
        else {
            return None;
        };
        let list = self.lists.get(&operands[*operand as usize])?;
        let shape = &kernel.operands[*operand as usize].shape;
        let is_fill = |id: &NodeId| match kernel.graph.node(*id) {
            Node::Constant(value) => fill::is_same(*value, list.fill),
            _ => false,
        };
        let own = self.pattern(list.pattern);
        let is_access = self.access_of_read(kernel, operands, node).is_some();
        let all = own.ascends && list.dims.iter().all(Option::is_some);
        let points = values(kernel, indices_of(kernel, positions));
        let few = points.saturating_mul(SPARSE) <= elements(shape);
        let fits = all && few && !is_access && elements(shape) <= i64::MAX as u64;
        let mut faults = positions.iter().map(|at| may_fault_in(kernel, *at));
        let may_stop =
            faults.any(|faults| faults) || otherwise.is_none() && may_fault_by(kernel, id);
        // Points that conditions leave out do not stop the run.
        let is_always_read = kernel.guard.is_none() && !chooses(kernel);
        (fits && otherwise.iter().all(is_fill) && (!may_stop || is_always_read))
            .then(|| list.clone())
    }

    /// Where the elements of a read stand in the list, by the indices on which it depends; behind its end those that it does not have.
    fn place_of(
        &mut self,
        (name, origin): (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        id: NodeId,
        list: &List,
    ) -> Option<(TensorId, Vec<IndexId>)> {
        let Node::Read {
            operand,
            positions,
            otherwise,
            ..
        } = kernel.graph.node(id)
        else {
            return None;
        };
        let indices = indices_of(kernel, positions);
        let own: Vec<Index> = indices
            .iter()
            .map(|at| kernel.indices[*at].clone())
            .collect();
        let mut key = OverList::new(own, indices.len() as u32, DType::I64, IndexId(0));
        key.kernel.operands.clone_from(&kernel.operands);
        let at = |index: IndexId| indices.iter().position(|own| *own == index.0 as usize);
        let points: Vec<NodeId> = (0..indices.len() as u32)
            .map(|index| key.index(IndexId(index)))
            .collect();
        let faults = otherwise.is_none() && may_fault_by(kernel, id);
        let (mut number, mut inside): (Option<NodeId>, Option<NodeId>) = (None, None);
        let shape = &kernel.operands[*operand as usize].shape;
        for (dim, size) in self.pattern(list.pattern).shape.iter().enumerate() {
            let own = list.dims.iter().position(|listed| *listed == Some(dim))?;
            let (position, extent) = (positions[own], i64::try_from(shape[own]).ok()?);
            let mut place = key.part(kernel, position, |index| Some(points[at(index)?]));
            if faults {
                place = key.apply(Function::Within, place, extent);
            }
            if otherwise.is_some() {
                for (function, end) in [(Function::Ge, 0), (Function::Lt, extent)] {
                    let end = key.constant(Scalar::Int(end), DType::I64);
                    let graph = &mut key.kernel.graph;
                    let side = graph.add(Node::Apply(function, vec![place, end]), DType::Bool);
                    inside = Some(both(graph, inside, side));
                }
            }
            number = Some(match number {
                None => place,
                Some(number) => {
                    let row = key.apply(Function::Mul, number, *size as i64);
                    let graph = &mut key.kernel.graph;
                    graph.add(Node::Apply(Function::Add, vec![row, place]), DType::I64)
                }
            });
        }
        key.kernel.root = number?;
        if let Some(inside) = inside {
            let none = key.constant(Scalar::Int(-1), DType::I64);
            let chosen = Node::Apply(Function::Select, vec![inside, key.kernel.root, none]);
            key.kernel.root = key.kernel.graph.add(chosen, DType::I64);
        }
        let key = statement(key.kernel, operands);
        let key = self.made(&format!("{name}.key"), key, origin);
        let tensor = self.rewriting.result().tensor(operands[*operand as usize]);
        let about = (&*tensor.name.clone(), tensor.origin);
        let dims: Vec<usize> = (0..list.dims.len()).collect();
        let keys = self.keys(about, list.pattern, (list.pattern, &dims));
        let count = self.pattern(list.pattern).count;
        let extents = indices.iter().map(|at| kernel.indices[*at].extent);
        let shape: Vec<String> = extents.clone().map(|extent| extent.to_string()).collect();
        let names: Vec<String> = (0..indices.len()).map(|at| format!("i{at}")).collect();
        let over: Vec<String> = (names.iter().zip(extents))
            .map(|(name, extent)| format!("{name}: {extent}"))
            .collect();
        let find = written(&format!(
            "(i64[{count}], i64[{}]) [{}] i64 = find(a0[:1], a1[{}])",
            shape.join(", "),
            over.join(", "),
            names.join(", ")
        ));
        let place = self.made(
            &format!("{name}.place"),
            statement(find, &[keys, key]),
            origin,
        );
        let indices = indices.into_iter().map(|at| IndexId(at as u32));
        Some((place, indices.collect()))
    }
}

/// The indices on which these nodes depend, ascending.
fn indices_of(kernel: &Kernel, nodes: &[NodeId]) -> Vec<usize> {
    let depends = kernel.graph.dependencies();
    let bits = nodes
        .iter()
        .fold(0, |bits, id| bits | depends[id.0 as usize]);
    (0..kernel.indices.len())
        .filter(|at| bits >> at & 1 == 1)
        .collect()
}

/// Returns whether a kernel has parts that are computed under conditions.
fn chooses(kernel: &Kernel) -> bool {
    let mut nodes = kernel.graph.iter();
    nodes.any(|(_, node, _)| matches!(node, Node::Apply(Function::Select, _)))
}
