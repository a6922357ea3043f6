//! The reads of a statement through which it can go over a list.
//!
//! A listed tensor is read at indices that all differ, and the statement is a known number wherever the list has no place. Must not know how
//! the statement over the list is written.
//!
//! ```text
//! [i: 9 | k: 8] min where(A[i, k] != 0.0, d[k] + A[i, k], inf)     reads A at (i, k), and is inf, which changes no minimum
//! ```

use super::{List, Lists, PatternId, elements, fill};
use crate::einsum::TensorId;
use crate::rules::neutral;
use ein_plan::{IndexId, Kernel, Node, NodeId, Reduction, Scalar};

/// Indices at which a statement reads the places of a pattern.
#[derive(Clone, PartialEq)]
pub struct Access {
    pub pattern: PatternId,
    /// By dimension of the pattern; all differ.
    pub indices: Vec<IndexId>,
}

/// A read of a tensor that has a list.
#[derive(Clone, Copy)]
pub struct ListRead<'a> {
    pub list: &'a List,
    pub tensor: TensorId,
    /// The shape of the tensor.
    pub shape: &'a [u64],
    pub positions: &'a [NodeId],
    /// True if positions may be outside of the tensor.
    pub reaches_out: bool,
}

impl Lists {
    /// The access through which a reduction goes over a list: where nothing is listed there is no point, or one that changes nothing. Of
    /// several, the one that leaves the fewest points.
    pub(super) fn access_of_sum(&self, kernel: &Kernel, operands: &[TensorId]) -> Option<Access> {
        let reduction = kernel.reduction.filter(|_| kernel.library().is_none())?;
        let changes_nothing = neutral(reduction, kernel.graph.dtype(kernel.root));
        let found = self
            .accesses(kernel, operands)
            .into_iter()
            .filter(|access| {
                let values = self.fill_values(kernel, operands, access);
                let root = values[kernel.root.0 as usize];
                let guard = kernel.guard.and_then(|guard| values[guard.0 as usize]);
                let is_left_out = guard == Some(Scalar::Bool(false)) && !reduction.is_arg();
                let same =
                    |root| changes_nothing.is_some_and(|neutral| fill::is_same(root, neutral));
                let is_summed = access.indices.iter().any(|i| i.0 >= kernel.output_rank);
                is_summed && (is_left_out || root.is_some_and(same))
            });
        // Indices that are left to be summed may be a product of lists; those of the output are none.
        let outputs = |access: &Access| {
            let listed = access.indices.iter().filter(|i| i.0 < kernel.output_rank);
            kernel.output_rank as usize - listed.count()
        };
        found.min_by_key(|access| (self.points(kernel, access), outputs(access)))
    }

    /// The access to a pattern whose places are elements of the output, and the output's value at all other places.
    pub(super) fn access_of_output(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<(Access, Scalar)> {
        if kernel.library().is_some() || !kernel.finish {
            return None;
        }
        let found = (self.accesses(kernel, operands).into_iter()).filter_map(|access| {
            let is_output = access.indices.iter().all(|i| i.0 < kernel.output_rank);
            let reaches = |(index, extent): (&IndexId, &u64)| {
                kernel.indices[index.0 as usize].extent >= *extent
            };
            let shape = &self.pattern(access.pattern).shape;
            let has_all = access.indices.iter().zip(shape).all(reaches);
            let fill = (is_output && has_all)
                .then(|| self.fill_of_output(kernel, operands, &access))
                .flatten()?;
            Some((access, fill))
        });
        found.min_by_key(|(access, _)| self.points(kernel, access))
    }

    /// The value of the output at places that are not listed.
    fn fill_of_output(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        access: &Access,
    ) -> Option<Scalar> {
        let values = self.fill_values(kernel, operands, access);
        let root = values[kernel.root.0 as usize]?;
        let fill = match kernel.reduction {
            None => root,
            Some(reduction) => {
                let neutral = neutral(reduction, kernel.graph.dtype(kernel.root))?;
                // The extremes of one number are that number, if there is a point at all.
                let idempotent = kernel.guard.is_none()
                    && matches!(reduction, Reduction::Max | Reduction::Min)
                    && kernel.indices.iter().all(|index| index.extent > 0);
                (idempotent || fill::is_same(root, neutral)).then_some(root)?
            }
        };
        let stored = crate::einsum::scalar::stored(fill, kernel.output[0]);
        (!stored.as_f64().is_nan()).then_some(stored)
    }

    /// Every access of a statement, each once.
    pub(super) fn accesses(&self, kernel: &Kernel, operands: &[TensorId]) -> Vec<Access> {
        let mut found: Vec<Access> = vec![];
        for (operand, positions) in kernel.graph.reads() {
            let Some(list) = self.lists.get(&operands[operand as usize]) else {
                continue;
            };
            let access = self.access(kernel, list, positions);
            found.extend(access.filter(|access| !found.contains(access)));
        }
        found
    }

    /// The access of one read, if the positions along listed dimensions are different indices.
    pub(super) fn access(
        &self,
        kernel: &Kernel,
        list: &List,
        positions: &[NodeId],
    ) -> Option<Access> {
        let rank = self.pattern(list.pattern).shape.len();
        let mut indices = vec![None; rank];
        for (dim, position) in list.dims.iter().zip(positions) {
            if let Some(dim) = dim {
                indices[*dim] = kernel.graph.as_index(*position);
            }
        }
        let indices: Vec<IndexId> = indices.into_iter().collect::<Option<_>>()?;
        let differ = (1..rank).all(|at| !indices[..at].contains(&indices[at]));
        differ.then_some(Access {
            pattern: list.pattern,
            indices,
        })
    }

    /// A node as a read of a list; `None` if it has another value outside of the tensor than the list's everywhere else.
    pub(super) fn list_read<'a>(
        &'a self,
        kernel: &'a Kernel,
        operands: &[TensorId],
        node: &'a Node,
    ) -> Option<ListRead<'a>> {
        let Node::Read {
            operand,
            positions,
            otherwise,
            ..
        } = node
        else {
            return None;
        };
        let tensor = operands[*operand as usize];
        let list = self.lists.get(&tensor)?;
        let is_fill = |id: NodeId| match kernel.graph.node(id) {
            Node::Constant(value) => fill::is_same(*value, list.fill),
            _ => false,
        };
        otherwise.is_none_or(is_fill).then_some(ListRead {
            list,
            tensor,
            shape: &kernel.operands[*operand as usize].shape,
            positions,
            reaches_out: otherwise.is_some(),
        })
    }

    /// The access of a node that reads a list, and the number that its tensor has everywhere else.
    pub(super) fn access_of_read(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        node: &Node,
    ) -> Option<(Access, Scalar)> {
        let read = self.list_read(kernel, operands, node)?;
        Some((
            self.access(kernel, read.list, read.positions)?,
            read.list.fill,
        ))
    }

    /// By node: its value where the pattern has no place at the access.
    pub(super) fn fill_values(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        access: &Access,
    ) -> Vec<Option<Scalar>> {
        fill::values(&kernel.graph, |id| {
            let node = kernel.graph.node(id);
            let (own, fill) = self.access_of_read(kernel, operands, node)?;
            (own == *access).then_some(fill)
        })
    }

    /// How many points a statement has over the list of an access.
    fn points(&self, kernel: &Kernel, access: &Access) -> u64 {
        let rest: Vec<u64> = (0..)
            .zip(&kernel.indices)
            .filter(|(number, _)| !access.indices.contains(&IndexId(*number)))
            .map(|(_, index)| index.extent)
            .collect();
        elements(&rest).saturating_mul(self.pattern(access.pattern).count)
    }
}
