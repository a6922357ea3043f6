//! The indices that loops pass over: they look at one value of them, for each value of the others.
//!
//! Work is counted accordingly. Must not know what arithmetic costs.
//!
//! ```text
//! [v: 1000 | n: 50] sum a0[n] if a1[n] == v   ->   v
//! [n: 90 | m: 90] sum a0[m] if m <= n         ->   n
//! [i: 9 | e: 90] sum a0[e] if and(a1[i] <= e, e < a1[i + 1])   ->   i, as each e is in one segment
//! [i: 90] where(i == a0[], a1[], a2[i])        ->   i
//! ```

use super::grouped::grouping;
use super::guard::{comparison, conjuncts};
use super::segments::segments;
use crate::{Function, IndexId, Kernel, Node, NodeId, Position};

impl Kernel {
    /// The indices that the loops solve instead of walking through them: each point of the others has one value of them at the most.
    pub fn solved(&self) -> Vec<IndexId> {
        let mut solved = self.scattered();
        if solved.is_empty() {
            solved = self.looked_up();
        }
        if solved.is_empty() {
            solved.extend(self.scanned().map(|scan| scan.output));
        }
        if solved.is_empty() {
            solved.extend(
                grouping(self)
                    .into_iter()
                    .flat_map(|(grouped, _)| grouped.passed),
            );
        }
        if solved.is_empty() {
            solved.extend(
                segments(self)
                    .into_iter()
                    .flat_map(|(segments, _)| segments.by),
            );
        }
        if solved.is_empty() {
            solved = self.changed();
        }
        solved
    }

    /// The indices of which scalars name the places where an operand is changed in place. Elsewhere nothing is computed.
    fn changed(&self) -> Vec<IndexId> {
        let points = self.update().map_or(vec![], |update| update.points);
        let named = |(index, place): &(IndexId, Position)| {
            matches!(place, Position::Scalar(_)).then_some(*index)
        };
        let mut points = points.iter().map(|point| point.iter().filter_map(named));
        let mut changed: Vec<IndexId> = points.next().into_iter().flatten().collect();
        for point in points {
            let point: Vec<IndexId> = point.collect();
            changed.retain(|index| point.contains(index));
        }
        changed
    }

    /// The indices that the loops pass over: they look at one value of them, for each value of the others at the most.
    pub fn passed_over(&self) -> Vec<IndexId> {
        let fixed = self.fixed().into_iter().map(|(index, _)| index);
        fixed.chain(self.solved()).collect()
    }

    /// The number of values of the indices that its loops solve, together: they look at one in so many points.
    pub(crate) fn spread(&self) -> u128 {
        let solved = self.solved().into_iter();
        let extents = solved.map(|index| self.indices[index.0 as usize].extent.max(1));
        extents.fold(1, |n: u128, extent| n.saturating_mul(extent.into()))
    }

    /// The conditions of the guard that the loops evaluate at every point: those that give no index a value, and that compare
    /// no index which is passed over.
    pub fn evaluated_conditions(&self) -> Vec<NodeId> {
        let Some(guard) = self.guard else {
            return vec![];
        };
        let passed = self.passed_over();
        let solves = |id: &NodeId| match self.graph.node(*id) {
            Node::Apply(Function::Eq, sides) => sides.iter().any(|side| {
                let index = self.graph.as_index(*side);
                index.is_some_and(|index| passed.contains(&index))
            }),
            _ => comparison(self, *id).is_some_and(|scan| passed.contains(&scan.output)),
        };
        let bounds = segments(self).filter(|(segments, _)| segments.by == passed);
        let bounds = |id: &NodeId| matches!(&bounds, Some((_, ends)) if !ends.rest.contains(id));
        let mut conditions = conjuncts(&self.graph, guard);
        conditions.retain(|id| !solves(id) && !bounds(id));
        conditions
    }
}
