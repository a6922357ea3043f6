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
//! g.sums: f32[9] = [i: 9 | k: 4] sum c[k] if i == within(p[k], 9);   g: f32[8] = [j: 8 | i: 9] sum A[i, j] * g.sums[i]
//!
//! w: f32[4] = [k: 4] A[p[k], q[k]] * x[k]
//! w.key: i64[4] = [k: 4] within(p[k], 9) * 8 + within(q[k], 8);   w.place: i64[4] = [k: 4] find(A.key[:1], w.key[k])
//! w: f32[4] = [k: 4] (A.values[w.place[k]] else 0.0) * x[k]
//! ```

use super::statement::{OverList, both, free_index};
use super::{List, Lists, SPARSE, elements, fill, written};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::rules::{
    element, elementwise, factors, may_fault, may_fault_by, may_fault_in, over, times, values,
};
use ein_plan::{
    DType, Function, Index, IndexId, Kernel, Node, NodeId, Operand, Origin, Reduction, Scalar,
};

impl Lists {
    /// The statement that reads its reductions of named rows from those of all rows.
    pub(super) fn of_rows(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        let dtype = kernel.graph.dtype(kernel.root);
        let rank = kernel.output_rank as usize;
        let reduction = kernel.reduction?;
        let plain = kernel.guard.is_none() && kernel.finish && kernel.output == [dtype];
        if !plain || kernel.library().is_some() || kernel.indices.len() > 126 || chooses(kernel) {
            return None;
        }
        let depends = kernel.graph.dependencies();
        let of = |id: NodeId| depends[id.0 as usize];
        let (row, extent) = self.named_row(kernel, operands, &|at| of(at) >> rank == 0)?;
        let (inner, outer): (Vec<NodeId>, Vec<NodeId>) = match reduction {
            Reduction::Sum => factors(&kernel.graph, kernel.root).into_iter(),
            _ => vec![kernel.root].into_iter(),
        }
        .partition(|id| of(*id) >> rank != 0);
        if inner.is_empty() {
            return None;
        }
        // The rows come first, then the indices of the statement.
        let mut rows = kernel.clone();
        rows.root = times(&mut rows.graph, &inner, dtype);
        let rows = rows.rewritten(|graph, id, node, dtype| match node {
            _ if id == row => graph.add(Node::Index(IndexId(0)), DType::I64),
            Node::Index(index) => graph.add(Node::Index(IndexId(index.0 + 1)), dtype),
            node => graph.add(node, dtype),
        });
        let every = Index {
            name: free_index(&kernel.indices),
            extent,
        };
        let mut rows = Kernel {
            indices: [&[every], &kernel.indices[..]].concat(),
            ..rows
        };
        let bits = rows.graph.dependencies()[rows.root.0 as usize] >> 1;
        let left: Vec<usize> = (0..rank).filter(|at| bits >> at & 1 == 1).collect();
        let is_named = left.iter().any(|at| of(row) >> at & 1 == 1);
        let reduced = rank..kernel.indices.len();
        if is_named || reduced.clone().any(|at| bits >> at & 1 == 0) {
            return None;
        }
        let own = left.iter().copied().chain(reduced).map(|at| at + 1);
        let own: Vec<usize> = std::iter::once(0).chain(own).collect();
        rows.output_rank = 1 + left.len() as u32;
        let rows = over(rows.clone(), &rows, &own);
        let (rows, read) = statement(rows, operands);
        if may_fault(&rows) || self.accesses(&rows, &read).is_empty() {
            return None;
        }
        let shape = rows.indices[..rows.output_rank as usize].iter();
        let shape = shape.map(|index| index.extent).collect();
        let rows = self.summed((name, origin), &rows, &read);
        let rows = self.made(&format!("{name}.rows"), rows, origin);
        let mut result = elementwise(kernel);
        let number = result.operands.len() as u32;
        let columns = vec![dtype];
        result.operands.push(Operand { columns, shape });
        let at = left.iter().map(|at| Node::Index(IndexId(*at as u32)));
        let at = at.map(|index| result.graph.add(index, DType::I64));
        let read = Node::Read {
            operand: number,
            column: 0,
            positions: std::iter::once(row).chain(at.collect::<Vec<_>>()).collect(),
            otherwise: None,
        };
        let read = result.graph.add(read, dtype);
        let all: Vec<NodeId> = outer.into_iter().chain([read]).collect();
        result.root = times(&mut result.graph, &all, dtype);
        Some(statement(result, &[operands, &[rows]].concat()))
    }

    /// The sum of products with rows that data name for each term, as one of all rows: each with the sum of what the terms that name it have beside it.
    pub(super) fn of_named_terms(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<Statement> {
        let dtype = kernel.graph.dtype(kernel.root);
        let rank = kernel.output_rank as usize;
        let plain = kernel.guard.is_none() && kernel.finish && kernel.output == [dtype];
        let is_sum = kernel.reduction == Some(Reduction::Sum);
        if !plain || !is_sum || kernel.indices.len() > 126 || chooses(kernel) {
            return None;
        }
        let depends = kernel.graph.dependencies();
        let of = |id: NodeId| depends[id.0 as usize];
        let (row, extent) =
            self.named_row(kernel, operands, &|at| of(at) >> rank << rank == of(at))?;
        // What depends on the indices of the name is summed first.
        let all = factors(&kernel.graph, kernel.root);
        let is_listed = |id: &NodeId| match kernel.graph.node(*id) {
            Node::Read { positions, .. } => positions.contains(&row),
            _ => false,
        };
        let (listed, rest): (Vec<NodeId>, Vec<NodeId>) = all.into_iter().partition(is_listed);
        let (terms, others): (Vec<NodeId>, Vec<NodeId>) =
            rest.into_iter().partition(|id| of(*id) & of(row) != 0);
        let [read] = listed[..] else {
            return None;
        };
        let Node::Read { positions, .. } = kernel.graph.node(read) else {
            return None;
        };
        let beside = positions.iter().filter(|at| **at != row);
        if beside.fold(0, |bits, at| bits | of(*at)) & of(row) != 0 {
            return None;
        }
        let every = Index {
            name: free_index(&kernel.indices),
            extent,
        };
        let number = kernel.indices.len();
        let mut kernel = kernel.clone();
        kernel.indices.push(every);
        let bits = terms.iter().fold(of(row), |bits, id| bits | of(*id));
        let has = |bits: u128| (0..number).filter(move |at| bits >> at & 1 == 1);
        let left: Vec<usize> = std::iter::once(number)
            .chain(has(bits & !of(row)))
            .collect();
        let mut sums = kernel.clone();
        let graph = &mut sums.graph;
        sums.root = match &terms[..] {
            [] => graph.add(Node::Constant(one(dtype)), dtype),
            terms => times(graph, terms, dtype),
        };
        let extent = graph.add(Node::Constant(Scalar::Int(extent as i64)), DType::I64);
        let row_inside = graph.add(Node::Apply(Function::Within, vec![row, extent]), DType::I64);
        let every = graph.add(Node::Index(IndexId(number as u32)), DType::I64);
        let here = graph.add(
            Node::Apply(Function::Eq, vec![every, row_inside]),
            DType::Bool,
        );
        sums.guard = Some(here);
        sums.output_rank = left.len() as u32;
        let sums = over(
            sums,
            &kernel,
            &[&left[..], &has(of(row)).collect::<Vec<_>>()].concat(),
        );
        let sums = self.made(&format!("{name}.sums"), statement(sums, operands), origin);
        let mut all = kernel.clone();
        let value = element((&mut all.graph, &mut all.operands), &kernel, &left, dtype);
        let product: Vec<NodeId> = [read].into_iter().chain(others).chain([value]).collect();
        all.root = times(&mut all.graph, &product, dtype);
        let all = all.rewritten(|graph, id, node, dtype| match id == row {
            true => graph.add(Node::Index(IndexId(number as u32)), DType::I64),
            false => graph.add(node, dtype),
        });
        let left = has(!of(row)).chain([number]);
        let all = over(all.clone(), &all, &left.collect::<Vec<_>>());
        Some(statement(all, &[operands, &[sums]].concat()))
    }

    /// The first position of a read of a list that data give by indices that pass, and the extent that it is in.
    fn named_row(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        of: &dyn Fn(NodeId) -> bool,
    ) -> Option<(NodeId, u64)> {
        let depends = kernel.graph.dependencies();
        let mut reads = kernel.graph.iter();
        reads.find_map(|(_, node, _)| {
            let Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } = node
            else {
                return None;
            };
            self.lists.get(&operands[*operand as usize])?;
            let shape = &kernel.operands[*operand as usize].shape;
            let mut named = positions.iter().zip(shape).filter(|(at, _)| {
                let is_named = kernel.graph.as_affine(**at).is_none();
                is_named && depends[at.0 as usize] != 0 && of(**at)
            });
            let row = named.next().map(|(at, extent)| (*at, *extent));
            row.filter(|_| named.next().is_none())
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

/// The one of a type.
fn one(dtype: DType) -> Scalar {
    match dtype.is_float() {
        true => Scalar::Float(1.0),
        false => Scalar::Int(1),
    }
}

/// Returns whether a kernel has parts that are computed under conditions.
fn chooses(kernel: &Kernel) -> bool {
    let mut nodes = kernel.graph.iter();
    nodes.any(|(_, node, _)| matches!(node, Node::Apply(Function::Select, _)))
}
