//! Reductions of the rows of lists that data name, and single elements that data name.
//!
//! The reduction of a named row is a row of the reductions of all rows: one walk over the list. An element at a place that no list has is looked for
//! among the keys of a list, if that is few of all elements. Must not know how a statement goes over a list.
//!
//! ```text
//! y: f32[4] = [k: 4 | j: 8] sum A[p[k], j] * x[j]              with 5 elements of A: f32[9, 8] listed
//! A.rows: f32[9] = [i: 9 | j: 8] sum A[i, j] * x[j];   y: f32[4] = [k: 4] A.rows[p[k]]
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
use super::{List, Lists, SPARSE, elements, written};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::rules::gathered::{Apart, Row, chooses, is_plain, named_row, rows_first, terms_first};
use crate::rules::{indices_of, may_fault_by, may_fault_in, values};
use ein_plan::{DType, Function, Index, IndexId, Kernel, Node, NodeId, Operand, Origin, Scalar};

/// A read of elements that are looked for in a list.
struct Sought {
    list: List,
    tensor: TensorId,
    /// The shape of the tensor.
    shape: Vec<u64>,
    positions: Vec<NodeId>,
    /// The indices on which the positions depend.
    indices: Vec<IndexId>,
    /// True if a place outside of the tensor has the value of what is not listed.
    reaches_out: bool,
    /// True if a place outside of the tensor stops the run.
    may_be_outside: bool,
}

impl Lists {
    /// The statement over the reductions of all rows, or over sums of what stands beside each row, if data name rows of a list.
    pub(super) fn of_named_rows(
        &mut self,
        about: (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        if kernel.guard.is_some() || !is_plain(kernel) {
            return None;
        }
        let rows = self.of_rows(about, kernel, operands);
        rows.or_else(|| self.of_named_terms(about, kernel, operands))
    }

    /// The statement that reads its reductions of named rows from those of all rows.
    fn of_rows(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        let rank = kernel.output_rank;
        let (_, row) = self.named_read(kernel, operands, &|bits| bits >> rank == 0)?;
        let Apart { first, second } = rows_first(kernel, row)?;
        let (rows, read) = statement(first, operands);
        if self.accesses(&rows, &read).is_empty() {
            return None;
        }
        let rows = self.summed((name, origin), &rows, &read);
        // A place outside is reported as one of the tensor.
        let tensor = self
            .rewriting
            .result()
            .tensor(operands[row.operand as usize]);
        let rows_of = format!("{}.rows", tensor.name);
        let rows = self.made(&rows_of, rows, origin);
        Some(statement(second, &[operands, &[rows]].concat()))
    }

    /// The sum of products with rows that data name for each term, as one of all rows: each with the sum of what the terms that name it have beside it.
    fn of_named_terms(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
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
            if let Some(sought) = self.sought(kernel, operands, (id, node)) {
                let place = self.place_of((name, origin), (kernel, operands), &sought)?;
                found.push((id, sought, place));
            }
        }
        if found.is_empty() {
            return None;
        }
        let mut read = operands.to_vec();
        let mut result = kernel.clone();
        for (_, sought, place) in &found {
            for tensor in [*place, sought.list.values] {
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
            let Sought { list, indices, .. } = &found[at].1;
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

    /// A read of few elements of a tensor all of whose dimensions are listed, at places that no list has.
    fn sought(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        (id, node): (NodeId, &Node),
    ) -> Option<Sought> {
        let read = self.list_read(kernel, operands, node)?;
        let own = self.pattern(read.list.pattern);
        let is_access = self.access(kernel, read.list, read.positions).is_some();
        let all = own.ascends && read.list.dims.iter().all(Option::is_some);
        let size = elements(read.shape);
        let indices = indices_of(&kernel.graph, read.positions);
        let points = values(kernel, indices.iter().map(|index| index.0 as usize));
        let few = points.saturating_mul(SPARSE) <= size && size <= i64::MAX as u64;
        let mut positions = read.positions.iter();
        let may_stop = positions.any(|at| may_fault_in(kernel, *at))
            || !read.reaches_out && may_fault_by(kernel, id);
        // Points that conditions leave out do not stop the run.
        let is_always_read = kernel.guard.is_none() && !chooses(kernel);
        (all && few && !is_access && (!may_stop || is_always_read)).then(|| Sought {
            list: read.list.clone(),
            tensor: read.tensor,
            shape: read.shape.to_vec(),
            positions: read.positions.to_vec(),
            indices,
            reaches_out: read.reaches_out,
            may_be_outside: may_fault_by(kernel, id),
        })
    }

    /// Where the elements of a read stand in the list, by the indices on which it depends; behind its end those that it does not have.
    fn place_of(
        &mut self,
        (name, origin): (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        sought: &Sought,
    ) -> Option<TensorId> {
        let Sought { list, indices, .. } = sought;
        let own: Vec<Index> = (indices.iter())
            .map(|index| kernel.indices[index.0 as usize].clone())
            .collect();
        let mut key = OverList::new(own, indices.len() as u32, DType::I64, IndexId(0));
        key.kernel.operands.clone_from(&kernel.operands);
        let at = |index: IndexId| indices.iter().position(|own| *own == index);
        let points: Vec<NodeId> = (0..indices.len() as u32)
            .map(|index| key.index(IndexId(index)))
            .collect();
        let (mut number, mut inside): (Option<NodeId>, Option<NodeId>) = (None, None);
        for (dim, size) in self.pattern(list.pattern).shape.iter().enumerate() {
            let own = list.dims.iter().position(|listed| *listed == Some(dim))?;
            let (position, extent) = (
                sought.positions[own],
                i64::try_from(sought.shape[own]).ok()?,
            );
            let mut place = key.part(kernel, position, |index| Some(points[at(index)?]));
            if sought.may_be_outside {
                place = key.apply(Function::Within, place, extent);
            }
            if sought.reaches_out {
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
        let tensor = self.rewriting.result().tensor(sought.tensor);
        let about = (&*tensor.name.clone(), tensor.origin);
        let dims: Vec<usize> = (0..list.dims.len()).collect();
        let keys = self.keys(about, list.pattern, (list.pattern, &dims));
        let count = self.pattern(list.pattern).count;
        let extents = indices.iter();
        let extents = extents.map(|index| kernel.indices[index.0 as usize].extent);
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
        let find = statement(find, &[keys, key]);
        Some(self.made(&format!("{name}.place"), find, origin))
    }
}
