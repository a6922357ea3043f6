//! Tensors that are 0 wherever none of several lists has a place: sums of a matrix and its transpose, of two files, of a matrix and the unit matrix.
//!
//! The places of all lists are sorted by their keys, row-major numbers. Of a place that several lists have, the first one has the value and the
//! others are 0. Must not know which statements go over a list.
//!
//! ```text
//! S: f32[9, 9] = [i: 9, j: 9] A[i, j] + A[j, i]                 with 5 elements of A listed
//!
//! S.key: i64[10]      the keys of the places (i, j) and (j, i) of A, and S.order: their order
//! S.part: f32[5]      S at the places (i, j) of A               S.part.1: f32[5]      S at the places (j, i)
//! S.at: i64[10] = [e: 10] (S.key[S.order[e]] else 0)
//! S.at0: u32[10] = [e: 10] u32(floordiv(S.at[e], 9))            S.at1: u32[10] = [e: 10] u32(rem(S.at[e], 9))
//! S.values: f32[10] = [e: 10] where(S.at[e] == (S.at[e - 1] else -1), 0.0, (S.part[S.order[e]] else (S.part.1[S.order[e] - 5] else 0.0)))
//! ```

use super::access::Access;
use super::completed::can_be_completed;
use super::statement::OverList;
use super::{List, Lists, Pattern, PatternId, SPARSE, elements, fill, written};
use crate::einsum::TensorId;
use crate::einsum::canonical::statement;
use crate::rules::{may_fault, neutral};
use ein_plan::source::position_type;
use ein_plan::{DType, Function, IndexId, Kernel, Node, NodeId, Operand, Origin, Scalar};

impl Lists {
    /// The list of a statement that is 0 wherever none of the lists that it reads has a place.
    pub(super) fn united(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<List> {
        let plain = kernel.reduction.is_none() && kernel.guard.is_none() && kernel.finish;
        let indices: Vec<IndexId> = (0..kernel.output_rank).map(IndexId).collect();
        if !plain || kernel.library().is_some() || may_fault(kernel) {
            return None;
        }
        let accesses = self.meeting((name, origin), (kernel, operands), &indices)?;
        let root = self.values_apart((kernel, operands), &accesses)[kernel.root.0 as usize];
        let zero = fill::zero(kernel.output[0]);
        if !root.is_some_and(|root| fill::is_same(root, zero)) {
            return None;
        }
        let shape: Vec<u64> = kernel.indices.iter().map(|index| index.extent).collect();
        let count = accesses
            .iter()
            .map(|access| self.pattern(access.pattern).count);
        let pattern = PatternId(self.patterns.len());
        self.patterns.push(Pattern {
            count: count.sum(),
            shape,
            positions: vec![],
            tensor: TensorId::UNKNOWN,
            has_more: true,
            has_gaps: false,
            ascends: true,
            is_product: false,
            listing: None,
        });
        let (mut keys, mut parts) = (vec![], vec![]);
        for access in &accesses {
            let place = |index: &IndexId| access.indices.iter().position(|own| own == index);
            let dims: Vec<Option<usize>> = indices.iter().map(place).collect();
            let at: Vec<usize> = dims.iter().flatten().copied().collect();
            let part = self.at_list(
                (name, origin),
                (kernel, operands),
                (access.pattern, &dims),
                0,
            );
            parts.push(self.made(&format!("{name}.part"), part, origin));
            keys.push(self.keys((name, origin), pattern, (access.pattern, &at)));
        }
        let values = self.sorted((name, origin), pattern, (&keys, &parts));
        Some(List {
            pattern,
            values,
            dims: (0..indices.len()).map(Some).collect(),
            fill: zero,
        })
    }

    /// The reduction with a name for the part of it that is 0 wherever none of several lists has a place, if that makes it one over a list, which
    /// may have to be completed.
    pub(super) fn named(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<(Kernel, Vec<TensorId>)> {
        let reduction = kernel.reduction.filter(|_| kernel.library().is_none())?;
        let dtype = kernel.graph.dtype(kernel.root);
        let neutral = neutral(reduction, dtype);
        let completed = kernel.guard.is_none() && can_be_completed(reduction, dtype);
        let accesses = self.accesses(kernel, operands);
        if accesses.is_empty() || self.access_of_sum(kernel, operands).is_some() {
            return None;
        }
        let depends = kernel.graph.dependencies();
        for (part, node, dtype) in kernel.graph.iter() {
            let indices: Vec<IndexId> = (0..kernel.indices.len() as u32)
                .map(IndexId)
                .filter(|index| depends[part.0 as usize] >> index.0.min(127) & 1 == 1)
                .collect();
            let is_read = accesses.iter().any(|access| {
                access.indices.len() == indices.len()
                    && access.indices.iter().all(|index| indices.contains(index))
            });
            let zero = fill::zero(dtype);
            let values = |id| (id == part).then_some(zero);
            let root = || fill::values(&kernel.graph, values)[kernel.root.0 as usize];
            let fits = is_read
                && matches!(node, Node::Apply(..))
                && root().is_some_and(|root| {
                    let changes_nothing =
                        neutral.is_some_and(|neutral| fill::is_same(root, neutral));
                    changes_nothing || completed && !root.as_f64().is_nan()
                });
            if !fits {
                continue;
            }
            let (own, read) = part_of(kernel, operands, (part, dtype), &indices);
            if let Some(list) = self.united((name, origin), &own, &read) {
                let name = format!("{name}.union");
                let id = self
                    .rewriting
                    .add_hidden(&name, (own.clone(), read), origin);
                self.add_list(id, list);
                return Some(with_part(kernel, operands, part, (id, &own, &indices)));
            }
        }
        None
    }

    /// The accesses of a statement to lists at these indices, and to the diagonal that it compares two of them by; `None` unless there are two
    /// or more, which have few places together.
    fn meeting(
        &mut self,
        about: (&str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        indices: &[IndexId],
    ) -> Option<Vec<Access>> {
        let extent = |index: &IndexId| kernel.indices[index.0 as usize].extent;
        let mut accesses = self.accesses(kernel, operands);
        accesses.retain(|access| {
            let pattern = self.pattern(access.pattern);
            let own = access.indices.iter();
            pattern.ascends
                && own.clone().all(|index| indices.contains(index))
                && access.indices.len() == indices.len()
                && own.map(extent).eq(pattern.shape.iter().copied())
        });
        let equal = kernel
            .graph
            .iter()
            .find_map(|(id, _, _)| diagonal(kernel, id));
        if let Some(equal) = equal.filter(|_| !accesses.is_empty() && indices.len() == 2) {
            let shape: Vec<u64> = equal.iter().map(extent).collect();
            accesses.push(Access {
                pattern: self.diagonal_of(about, shape),
                indices: equal.to_vec(),
            });
        }
        let counts = accesses
            .iter()
            .map(|access| self.pattern(access.pattern).count);
        let shape: Vec<u64> = indices.iter().map(extent).collect();
        let places = counts.fold(0, u64::saturating_add);
        let few = places.saturating_mul(SPARSE) <= elements(&shape);
        (few && accesses.len() > 1).then_some(accesses)
    }

    /// By node: its value where none of the accesses has a place.
    fn values_apart(
        &self,
        (kernel, operands): (&Kernel, &[TensorId]),
        accesses: &[Access],
    ) -> Vec<Option<Scalar>> {
        let known: Vec<Vec<Option<Scalar>>> = (accesses.iter())
            .map(|access| self.fill_values(kernel, operands, access))
            .collect();
        fill::values(&kernel.graph, |id| {
            let apart = diagonal(kernel, id)
                .filter(|indices| accesses.iter().any(|access| access.indices == *indices))
                .map(|_| Scalar::Bool(false));
            let fills = known.iter().find_map(|values| values[id.0 as usize]);
            fills.or(apart)
        })
    }

    /// The places of the diagonal of a matrix of this shape.
    fn diagonal_of(&mut self, (name, origin): (&str, Origin), shape: Vec<u64>) -> PatternId {
        let count = shape.iter().copied().min().unwrap_or(0);
        let mut positions = vec![];
        for extent in &shape {
            let mut over = OverList::vector("e", count, position_type(*extent));
            over.kernel.root = over.index(IndexId(0));
            let over = statement(over.kernel, &[]);
            positions.push(self.made(&format!("{name}.diagonal"), over, origin));
        }
        self.patterns.push(Pattern {
            count,
            shape,
            positions,
            tensor: TensorId::UNKNOWN,
            has_more: false,
            has_gaps: false,
            ascends: true,
            is_product: false,
            listing: None,
        });
        PatternId(self.patterns.len() - 1)
    }

    /// Sorts the places of some parts by their keys: sets the positions of the pattern, and returns the values.
    fn sorted(
        &mut self,
        (name, origin): (&str, Origin),
        pattern: PatternId,
        (keys, parts): (&[TensorId], &[TensorId]),
    ) -> TensorId {
        let Pattern { count, shape, .. } = self.pattern(pattern);
        let (count, shape) = (*count, shape.clone());
        let made = |lists: &mut Lists, part: &str, over: OverList| {
            let over = statement(over.kernel, &over.operands);
            lists.made(&format!("{name}.{part}"), over, origin)
        };

        let mut key = OverList::vector("e", count, DType::I64);
        let point = key.index(IndexId(0));
        key.kernel.root = self.one_after_another(&mut key, keys, point);
        let key = made(self, "keys", key);
        let order = written(&format!(
            "(i64[{count}]) [e: {count}] i64 = argsort(a0[:1], e)"
        ));
        let order = self.made(&format!("{name}.order"), statement(order, &[key]), origin);
        let mut at = OverList::vector("e", count, DType::I64);
        let place = at.read(order, DType::I64, vec![count], vec![], None);
        let zero = at.constant(Scalar::Int(0), DType::I64);
        at.kernel.root = at.read_at((key, DType::I64, vec![count]), vec![place], Some(zero));
        let at = made(self, "at", at);

        let mut inner: u64 = shape.iter().product();
        for (dim, extent) in shape.iter().enumerate() {
            let mut over = OverList::vector("e", count, position_type(*extent));
            let mut place = over.read(at, DType::I64, vec![count], vec![], None);
            if dim > 0 {
                place = over.apply(Function::Rem, place, inner as i64);
            }
            inner /= extent;
            if inner > 1 {
                place = over.apply(Function::FloorDiv, place, inner as i64);
            }
            over.kernel.root = place;
            let positions = made(self, &format!("at{dim}"), over);
            self.patterns[pattern.0].positions.push(positions);
        }

        let dtype = self.rewriting.result().tensor(parts[0]).dtype;
        let compute = dtype.compute();
        let mut over = OverList::vector("e", count, dtype);
        let place = over.read(order, DType::I64, vec![count], vec![], None);
        let value = self.one_after_another(&mut over, parts, place);
        let own = over.read(at, DType::I64, vec![count], vec![], None);
        let point = over.index(IndexId(0));
        let before = over.apply(Function::Sub, point, 1);
        let none = over.constant(Scalar::Int(-1), DType::I64);
        let before = over.read_at((at, DType::I64, vec![count]), vec![before], Some(none));
        let zero = over.constant(fill::zero(dtype), compute);
        let graph = &mut over.kernel.graph;
        let again = graph.add(Node::Apply(Function::Eq, vec![own, before]), DType::Bool);
        let chosen = Node::Apply(Function::Select, vec![again, zero, value]);
        over.kernel.root = graph.add(chosen, compute);
        made(self, "values", over)
    }

    /// The element at a place of the tensors one after another; 0 behind them.
    fn one_after_another(&self, over: &mut OverList, parts: &[TensorId], place: NodeId) -> NodeId {
        let tensor = |id: &TensorId| self.rewriting.result().tensor(*id);
        let dtype = tensor(&parts[0]).dtype;
        let lengths: Vec<u64> = parts.iter().map(|part| tensor(part).shape[0]).collect();
        let mut value = over.constant(fill::zero(dtype), dtype.compute());
        let mut start: u64 = lengths.iter().sum();
        for (part, length) in parts.iter().zip(&lengths).rev() {
            start -= length;
            let here = match start {
                0 => place,
                start => over.apply(Function::Sub, place, start as i64),
            };
            value = over.read_at((*part, dtype, vec![*length]), vec![here], Some(value));
        }
        value
    }
}

/// A part of a statement as one of its own, over the indices on which it depends.
fn part_of(
    kernel: &Kernel,
    operands: &[TensorId],
    (part, dtype): (NodeId, DType),
    indices: &[IndexId],
) -> (Kernel, Vec<TensorId>) {
    let extents = indices
        .iter()
        .map(|index| kernel.indices[index.0 as usize].clone());
    let mut own = OverList::new(extents.collect(), indices.len() as u32, dtype, IndexId(0));
    own.kernel.operands.clone_from(&kernel.operands);
    let places: Vec<NodeId> = (0..indices.len() as u32)
        .map(|at| own.index(IndexId(at)))
        .collect();
    let place = |index| Some(places[indices.iter().position(|own| *own == index)?]);
    own.kernel.root = own.part(kernel, part, place);
    statement(own.kernel, operands)
}

/// A statement that reads a part of it by name.
fn with_part(
    kernel: &Kernel,
    operands: &[TensorId],
    part: NodeId,
    (tensor, own, indices): (TensorId, &Kernel, &[IndexId]),
) -> (Kernel, Vec<TensorId>) {
    let mut kernel = kernel.clone();
    let mut operands = operands.to_vec();
    let operand = operands.len() as u32;
    operands.push(tensor);
    kernel.operands.push(Operand {
        columns: own.output.clone(),
        shape: own.indices.iter().map(|index| index.extent).collect(),
    });
    let kernel = kernel.rewritten(|graph, id, node, dtype| match id == part {
        true => {
            let at = |index: &IndexId| graph.add(Node::Index(*index), DType::I64);
            let positions = indices.iter().map(at).collect();
            let read = Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            };
            graph.add(read, dtype)
        }
        false => graph.add(node, dtype),
    });
    statement(kernel, &operands)
}

/// The two indices that a node compares, if it is true on a diagonal.
pub(super) fn diagonal(kernel: &Kernel, id: NodeId) -> Option<[IndexId; 2]> {
    let Node::Apply(Function::Eq, sides) = kernel.graph.node(id) else {
        return None;
    };
    let [one, other] = [sides[0], sides[1]].map(|side| kernel.graph.as_index(side));
    let indices = [one?, other?];
    (indices[0] != indices[1]).then_some(indices)
}
