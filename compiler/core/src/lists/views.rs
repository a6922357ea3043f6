//! Reads of lists at other positions than indices: rows, diagonals, and places that are shifted, mirrored or taken in steps.
//!
//! Such a read becomes a tensor of its own, a *view*, which has the places of the list, moved. Places that the view does not have stay in its list with the
//! value 0. Must not know which statements go over a list.
//!
//! ```text
//! y: f32[8] = [i: 8 | k: 8] sum A[i + 1, k] * x[k]                     with 5 elements of A: f32[9, 8] listed
//!
//! A.part.values: f32[5] = [e: 5] where(A.at0[e] >= 1, A.values[e], 0.0)
//! A.part.at0: u32[5] = [e: 5] where(A.at0[e] >= 1, A.at0[e] - 1, 0)    A.part.at1: u32[5] = [e: 5] A.at1[e]
//! y: f32[8] = [i: 8 | e: 5] sum A.part.values[e] * x[A.part.at1[e]] if i == A.part.at0[e]
//! ```

use super::statement::{OverList, both};
use super::{List, Lists, Pattern, PatternId, fill};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::rules::may_fault_by;
use ein_plan::source::position_type;
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId, Operand, Origin, Scalar};

/// Numbers in positions are so large at most: what is computed with them stays a number of 64 bits.
const MOST: i64 = 1 << 40;

/// A position: `constant + factor * index`.
#[derive(Clone, Copy)]
struct Along {
    constant: i64,
    index: Option<(IndexId, i64)>,
}

/// A tensor that a list has, as a read sees it.
struct View {
    of: TensorId,
    /// By dimension of the tensor.
    along: Vec<Along>,
    /// The indices of the statement that it has.
    indices: Vec<IndexId>,
}

impl Lists {
    /// The statement in which reads of lists at such positions are reads of tensors of their own, which have lists.
    pub(super) fn with_views(
        &mut self,
        (kernel, operands): (&Kernel, &[TensorId]),
        origin: Origin,
    ) -> Option<Statement> {
        if kernel.library().is_some() {
            return None;
        }
        let mut found: Vec<(NodeId, TensorId, Vec<IndexId>)> = vec![];
        for (id, _, _) in kernel.graph.iter() {
            let Some(view) = self.view(kernel, operands, id) else {
                continue;
            };
            let tensor = self.viewed(kernel, &view, origin)?;
            found.push((id, tensor, view.indices));
        }
        if found.is_empty() {
            return None;
        }
        let mut read = operands.to_vec();
        let mut kernel = kernel.clone();
        for (_, tensor, _) in &found {
            let tensor_of = self.rewriting.result().tensor(*tensor);
            kernel.operands.push(Operand {
                columns: vec![tensor_of.dtype],
                shape: tensor_of.shape.clone(),
            });
            read.push(*tensor);
        }
        let kernel = kernel.rewritten(|graph, id, node, dtype| {
            let Some(at) = found.iter().position(|(own, ..)| *own == id) else {
                return graph.add(node, dtype);
            };
            let positions = found[at].2.iter();
            let positions = positions.map(|index| graph.add(Node::Index(*index), DType::I64));
            let read = Node::Read {
                operand: (operands.len() + at) as u32,
                column: 0,
                positions: positions.collect(),
                otherwise: None,
            };
            graph.add(read, dtype)
        });
        Some(statement(kernel, &read))
    }

    /// The view of a read: of a tensor all of whose dimensions are listed, at positions of one index each, with the value 0 outside.
    fn view(&self, kernel: &Kernel, operands: &[TensorId], id: NodeId) -> Option<View> {
        let read = self.list_read(kernel, operands, kernel.graph.node(id))?;
        let zero = fill::zero(kernel.graph.dtype(id));
        let is_inside = read.reaches_out || !may_fault_by(kernel, id);
        let all = read.list.dims.iter().all(Option::is_some);
        let is_zero_elsewhere = fill::is_same(read.list.fill, zero);
        if !is_inside || !all || !is_zero_elsewhere || kernel.graph.dtype(id) == DType::Bool {
            return None;
        }
        let along = read.positions.iter().map(|position| {
            let form = kernel.graph.as_affine(*position)?;
            let numbers = form.terms.iter().map(|term| term.1);
            if !numbers
                .chain([form.constant])
                .all(|n| (-MOST..=MOST).contains(&n))
            {
                return None;
            }
            let index = match form.terms[..] {
                [] => None,
                [term] => Some(term),
                _ => return None,
            };
            Some(Along {
                constant: form.constant,
                index,
            })
        });
        let along: Vec<Along> = along.collect::<Option<_>>()?;
        let mut indices: Vec<IndexId> = vec![];
        for (index, _) in along.iter().filter_map(|along| along.index) {
            if !indices.contains(&index) {
                indices.push(index);
            }
        }
        let is_access = indices.len() == along.len()
            && (along.iter())
                .all(|along| along.constant == 0 && along.index.is_some_and(|i| i.1 == 1));
        (!is_access && !indices.is_empty()).then_some(View {
            of: read.tensor,
            along,
            indices,
        })
    }

    /// The tensor of a view, which has a list.
    fn viewed(&mut self, kernel: &Kernel, view: &View, origin: Origin) -> Option<TensorId> {
        let of = view.of;
        let tensor = self.rewriting.result().tensor(of);
        let (name, dtype, shape) = (tensor.name.clone(), tensor.dtype, tensor.shape.clone());
        let list = self.lists.get(&of)?.clone();
        let indices = view.indices.iter();
        let indices: Vec<_> = indices
            .map(|i| kernel.indices[i.0 as usize].clone())
            .collect();
        let rank = indices.len() as u32;
        let extents: Vec<u64> = indices.iter().map(|index| index.extent).collect();
        // The view element by element: statements that read the same one share it.
        let mut plain = OverList::new(indices, rank, dtype, IndexId(0));
        let number = |index: IndexId| view.indices.iter().position(|own| *own == index);
        let positions = view.along.iter().map(|along| {
            let term = along.index.and_then(|(index, factor)| {
                let at = plain.index(IndexId(number(index)? as u32));
                Some(plain.apply(Function::Mul, at, factor))
            });
            match term {
                Some(term) => plain.apply(Function::Add, term, along.constant),
                None => plain.constant(Scalar::Int(along.constant), DType::I64),
            }
        });
        let positions: Vec<NodeId> = positions.collect();
        let zero = plain.constant(fill::zero(dtype), dtype.compute());
        plain.kernel.root = plain.read_at((of, dtype, shape), positions, Some(zero));
        let plain = statement(plain.kernel, &plain.operands);
        if let Some(known) = self.made.get(&plain) {
            return Some(*known);
        }
        let name = format!("{name}.part");
        let own = self.moved_list((&name, origin), &list, view, &extents);
        let list = List {
            pattern: own.0,
            values: own.1,
            dims: (0..rank as usize).map(Some).collect(),
            fill: fill::zero(dtype),
        };
        let over = self.scattered(&plain.0, &list)?;
        let id = self.rewriting.add_hidden(&name, over, origin);
        self.made.insert(plain, id);
        self.add_list(id, list);
        Some(id)
    }

    /// The places of a list as a view has them, and their values.
    fn moved_list(
        &mut self,
        (name, origin): (&str, Origin),
        list: &List,
        view: &View,
        extents: &[u64],
    ) -> (PatternId, TensorId) {
        let values = self.rewriting.result().tensor(list.values);
        let (stored, count) = (values.dtype, self.pattern(list.pattern).count);
        let mut over = OverList::vector("e", count, stored);
        let (places, inside) = self.places_of(&mut over, list, view, extents);
        let value = over.read(list.values, stored, vec![count], vec![], None);
        let zero = over.constant(fill::zero(stored), stored.compute());
        let first = over.constant(Scalar::Int(0), DType::I64);
        let mut made = |part: &str, value: NodeId, outside: NodeId, dtype: DType| {
            let mut kernel = over.kernel.clone();
            kernel.root = match inside {
                None => value,
                Some(inside) => {
                    let chosen = Node::Apply(Function::Select, vec![inside, value, outside]);
                    kernel.graph.add(chosen, dtype.compute())
                }
            };
            kernel.output = vec![dtype];
            let made = statement(kernel, &over.operands);
            self.made(&format!("{name}.{part}"), made, origin)
        };
        let values = made("values", value, zero, stored);
        let ends = places.iter().zip(extents).enumerate();
        let positions = ends.map(|(dim, (place, extent))| {
            made(&format!("at{dim}"), *place, first, position_type(*extent))
        });
        let positions = positions.collect();
        self.patterns.push(Pattern {
            count,
            shape: extents.to_vec(),
            positions,
            tensor: TensorId::UNKNOWN,
            has_more: true,
            has_gaps: true,
            ascends: false,
            is_product: false,
            listing: None,
        });
        (PatternId(self.patterns.len() - 1), values)
    }

    /// By index of a view: its value at the place that is counted; and the condition that the view has that place, if there is one.
    fn places_of(
        &self,
        over: &mut OverList,
        list: &List,
        view: &View,
        extents: &[u64],
    ) -> (Vec<NodeId>, Option<NodeId>) {
        let pattern = self.pattern(list.pattern);
        let mut places: Vec<Option<NodeId>> = vec![None; extents.len()];
        let mut inside = None;
        let mut require = |over: &mut OverList, function, one, other| {
            let graph = &mut over.kernel.graph;
            let holds = graph.add(Node::Apply(function, vec![one, other]), DType::Bool);
            inside = Some(both(graph, inside, holds));
        };
        for (along, dim) in view.along.iter().zip(list.dims.iter().flatten()) {
            let at = over.position(pattern, *dim);
            let constant = over.constant(Scalar::Int(along.constant), DType::I64);
            let Some((index, factor)) = along.index else {
                require(over, Function::Eq, at, constant);
                continue;
            };
            let zero = over.constant(Scalar::Int(0), DType::I64);
            let last = pattern.shape[*dim] as i64 - 1;
            let (mut place, mut ends) = (at, (-along.constant, last - along.constant));
            if factor < 0 {
                let away = Node::Apply(Function::Sub, vec![constant, at]);
                place = over.kernel.graph.add(away, DType::I64);
                ends = (-ends.1, -ends.0);
            } else if along.constant != 0 {
                place = over.apply(Function::Sub, at, along.constant);
            }
            let step = factor.abs();
            if step > 1 {
                let left = over.apply(Function::Rem, place, step);
                require(over, Function::Eq, left, zero);
                place = over.apply(Function::FloorDiv, place, step);
            }
            if ends.0 < 0 {
                require(over, Function::Ge, place, zero);
            }
            let own = (view.indices.iter().position(|own| *own == index))
                .expect("a view has the indices of its positions");
            if ends.1.div_euclid(step) >= extents[own] as i64 {
                let extent = over.constant(Scalar::Int(extents[own] as i64), DType::I64);
                require(over, Function::Lt, place, extent);
            }
            match places[own] {
                None => places[own] = Some(place),
                Some(other) => require(over, Function::Eq, other, place),
            }
        }
        (places.into_iter().flatten().collect(), inside)
    }
}
