//! Sums over an index of which the guard leaves one value: the value is read instead of the sum taken.
//!
//! The gradient of a scatter is such a sum. A place `v` equals what data say, or an affine form, so of all `v` there is one,
//! and the work is that of a gather. Where the scatter drops what has no place, the value must be a place to be read. Must not
//! know derivatives.
//!
//! ```text
//! G[tok[t], d] += X[t, d]     X[t, d]: sum over v of A[v, d] if target[tok[t]] == v   =>   A[tok[t], d]
//! ```

use super::backward::on_path;
use super::sketch::{Copy, Sketch};
use super::transpose::Piece;
use crate::einsum::TensorId;
use ein_plan::kernel::Affine;
use ein_plan::{Function, Index, Node, NodeId};

/// A summed index that has one value where the guard holds, and the condition that says so.
struct Chosen {
    index: usize,
    value: NodeId,
    equal: NodeId,
    /// True if the value is one of the index wherever it can be read.
    is_inside: bool,
}

impl Piece {
    /// The reading without the summed indices that the guard gives a value. `counts`: whether the elements of a tensor are their own numbers.
    pub(super) fn without_chosen(mut self, counts: impl Fn(TensorId) -> bool) -> Piece {
        while let Some(chosen) = self.chosen(&counts) {
            self = self.at_value(&chosen);
        }
        self
    }

    /// A summed index that has one value where the guard holds.
    fn chosen(&self, counts: &impl Fn(TensorId) -> bool) -> Option<Chosen> {
        let graph = &self.sketch.graph;
        self.conditions().into_iter().find_map(|equal| {
            let Node::Apply(Function::Eq, sides) = graph.node(equal) else {
                return None;
            };
            let found = |index: NodeId, value: NodeId| {
                let index = graph.as_index(index)?.0 as usize;
                let (value, is_inside) = self.place(value, self.indices[index].extent, counts);
                let depends = self.sketch.below(&[value]).into_iter();
                let mut on = depends.filter_map(|id| graph.as_index(id));
                let free = on.all(|other| other.0 as usize != index);
                (index >= self.rank && free).then_some(Chosen {
                    index,
                    value,
                    equal,
                    is_inside,
                })
            };
            found(sides[0], sides[1]).or_else(|| found(sides[1], sides[0]))
        })
    }

    /// A node with the value of `value`, and whether that is a number from 0 on and below `extent` wherever it can be read.
    fn place(
        &self,
        value: NodeId,
        extent: u64,
        counts: &impl Fn(TensorId) -> bool,
    ) -> (NodeId, bool) {
        let graph = &self.sketch.graph;
        if let Node::Read {
            operand,
            positions,
            otherwise: None,
            ..
        } = graph.node(value)
            && let [position] = positions[..]
            && counts(self.sketch.operands[*operand as usize])
        {
            return (position, true);
        }
        let form = graph.as_affine(value);
        let is_inside = form.is_some_and(|form| is_below(&form, extent, &self.indices));
        (value, is_inside)
    }

    /// The conditions of the guard.
    fn conditions(&self) -> Vec<NodeId> {
        let (mut all, mut open) = (vec![], Vec::from_iter(self.guard));
        while let Some(id) = open.pop() {
            match self.sketch.graph.node(id) {
                Node::Apply(Function::And, sides) => open.extend(sides.iter().rev()),
                _ => all.push(id),
            }
        }
        all
    }

    /// The reading where an index has a value, without the condition that says so.
    fn at_value(self, chosen: &Chosen) -> Piece {
        let Chosen {
            index,
            value,
            equal,
            is_inside,
        } = *chosen;
        let mut to = Sketch::default();
        let mut number = 0;
        let mut nodes: Vec<NodeId> = (0..self.indices.len())
            .map(|at| {
                let node = to.index(number);
                number += usize::from(at != index);
                node
            })
            .collect();
        let place = Copy::new(&self.sketch, nodes.clone(), None).node(&mut to, value);
        nodes[index] = place;
        let rest = self.conditions().into_iter().filter(|id| *id != equal);
        let mut copy = Copy::new(&self.sketch, nodes, None);
        let mut root = copy.node(&mut to, self.root);
        let mut rest: Vec<NodeId> = rest.map(|id| copy.node(&mut to, id)).collect();
        if !is_inside {
            let (first, end) = (to.whole(0), to.whole(self.indices[index].extent as i64));
            rest.push(to.compare(Function::Ge, place, first));
            rest.push(to.compare(Function::Lt, place, end));
        }
        let mut guard = rest.into_iter().reduce(|all, next| to.and(all, next));
        let mut indices = self.indices;
        indices.remove(index);
        if indices.len() == self.rank
            && let Some(condition) = guard.take()
        {
            root = on_path(&mut to, &[(condition, true)], root);
        }
        Piece {
            indices,
            rank: self.rank,
            sketch: to,
            root,
            guard,
        }
    }
}

/// Returns whether all values of an affine form are from 0 on and below a number.
fn is_below(form: &Affine, number: u64, indices: &[Index]) -> bool {
    let (mut low, mut high) = (i128::from(form.constant), i128::from(form.constant));
    for (index, factor) in &form.terms {
        let extent = indices[index.0 as usize].extent;
        let most = i128::from(*factor) * (i128::from(extent) - 1).max(0);
        low += most.min(0);
        high += most.max(0);
    }
    low >= 0 && high < i128::from(number)
}
