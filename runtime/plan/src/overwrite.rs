//! Steps whose result may take the memory of an operand: element by element, or in a sweep row by row, and nobody reads the operand afterwards.
//!
//! Whether a step that is in no sweep does is up to whoever runs it, and what a plan states that it holds counts both; a sweep always does, where nobody
//! else has the operand. Must not know how kernels are run.
//!
//! ```text
//! r5 = join k0 (r3, r4); free r4      k0 = (f32[9, 4], f32[9, 4]) [i: 9, j: 4] f32 = where(a0[i, j] > 0, a1[i, j], 0)      r5 over r4
//! ```

use crate::ids::RelationId;
use crate::kernel::{IndexId, Kernel, Node, NodeId};
use crate::plan::{Operation, Plan, Range, Step, Sweep};
use crate::relation::ArrayDim;
use crate::repeat::alike;

/// Fewest elements of a piece that are written over by one step: fewer stay in a cache.
const LARGE: u64 = 1 << 18;

impl Kernel {
    /// The operand of which a node reads the element at the output point, if the operand has the output's shape and type.
    pub fn own_element(&self, id: NodeId) -> Option<u32> {
        let Node::Read {
            operand,
            column: 0,
            positions,
            otherwise: None,
        } = self.graph.node(id)
        else {
            return None;
        };
        let read = &self.operands[*operand as usize];
        let extents = self.indices.iter().map(|index| index.extent);
        let own = |(dim, at): (u32, &NodeId)| self.graph.as_index(*at) == Some(IndexId(dim));
        let same = read.columns == self.output
            && extents.eq(read.shape.iter().copied())
            && (0..).zip(positions).all(own);
        same.then_some(*operand)
    }

    /// Whether each element of the result needs of an operand, which has the result's shape and type, none but the same element.
    pub fn may_overwrite(&self, operand: u32) -> bool {
        let element_wise = self.reduction.is_none()
            && self.guard.is_none()
            && self.library().is_none()
            && self.output_rank as usize == self.indices.len();
        let read = &self.operands[operand as usize];
        let extents = self.indices.iter().map(|index| index.extent);
        let own = |positions: &[_]| {
            let mut dims = (0..).zip(positions);
            dims.all(|(dim, at)| self.graph.as_index(*at) == Some(IndexId(dim)))
        };
        element_wise
            && self.output.len() == 1
            && read.columns == self.output
            && extents.eq(read.shape.iter().copied())
            && self
                .graph
                .reads()
                .all(|(other, positions)| other != operand || own(positions))
    }
}

impl Plan {
    /// The relation whose arrays a step changes in place: it gives that relation back but for single points, and nobody
    /// reads it afterwards.
    pub fn in_place(&self, step: &Step) -> Option<RelationId> {
        let Operation::LocalJoin { kernel, .. } = &step.operation else {
            return None;
        };
        let update = self.kernels.get(kernel.0 as usize)?.update()?;
        self.replaces(step, update.operand)
    }

    /// The relation that an operand of a step is, if the result lies just like it and nobody reads it afterwards.
    pub fn replaces(&self, step: &Step, operand: u32) -> Option<RelationId> {
        let relation = self.lies_like(step, operand)?;
        step.frees.contains(&relation).then_some(relation)
    }

    /// The relation that an operand of a step is, if the result lies just like it.
    fn lies_like(&self, step: &Step, operand: u32) -> Option<RelationId> {
        let Operation::LocalJoin {
            inputs,
            ranges,
            fold: None,
            ..
        } = &step.operation
        else {
            return None;
        };
        let input = inputs.get(operand as usize)?;
        let from = &self.steps.get(input.relation.0 as usize)?.kind;
        let own = |dim: &ArrayDim| dim.cut.map_or(Range::Whole, Range::Key);
        let same = (0..).zip(&input.keys).all(|(dim, key)| dim == *key)
            && alike(from, &step.kind)
            && from.placement == step.kind.placement
            && ranges
                .iter()
                .copied()
                .eq(step.kind.array.dims.iter().map(own));
        same.then_some(input.relation)
    }

    /// The operand of a step whose memory the result may take, and the relation that it is, if that is worth it.
    pub fn overwrites(&self, step: &Step) -> Option<(u32, RelationId)> {
        let found = self.beside(step, |relation| step.frees.contains(&relation));
        found.filter(|_| is_large(step))
    }

    /// Members of a sweep with the relations that end with it and whose memory their results may take.
    pub fn overwrites_in(&self, sweep: &Sweep) -> Vec<(RelationId, RelationId)> {
        self.overwrites_among(sweep, &self.passing())
    }

    /// The same, knowing which steps' results pass.
    pub(crate) fn overwrites_among(
        &self,
        sweep: &Sweep,
        passing: &[bool],
    ) -> Vec<(RelationId, RelationId)> {
        let mut ending = self.step(sweep.last()).frees.clone();
        ending.retain(|old| {
            let mut members = sweep.members.iter().map(|member| self.step(*member));
            !sweep.members.contains(old)
                && members.all(|reader| self.reads_own_rows(reader, *old, sweep.rows))
        });
        let members = sweep.members.iter().map(|member| self.step(*member));
        let alone = members.filter(|step| {
            let columns = step.kind.array.columns.len();
            !passing[step.result.0 as usize] && columns == 1 && !self.may_gather(step)
        });
        let over = alone.filter_map(|step| {
            let lies = |old: &RelationId| {
                let kind = self.kind(*old);
                alike(kind, &step.kind) && kind.placement == step.kind.placement
            };
            let old = match is_large(step) {
                true => ending.remove(ending.iter().position(lies)?),
                false => return None,
            };
            Some((step.result, old))
        });
        over.collect()
    }

    /// The operand of a step whose elements the result needs of it each at its own place only, and lies just like, of those that are `wanted`.
    pub(crate) fn beside(
        &self,
        step: &Step,
        wanted: impl Fn(RelationId) -> bool,
    ) -> Option<(u32, RelationId)> {
        let Operation::LocalJoin { inputs, kernel, .. } = &step.operation else {
            return None;
        };
        let kernel = self.kernels.get(kernel.0 as usize)?;
        (0..inputs.len() as u32).find_map(|operand| {
            let relation = self.lies_like(step, operand)?;
            let read = inputs.iter().filter(|input| input.relation == relation);
            let own = read.count() == 1 && kernel.may_overwrite(operand);
            (own && wanted(relation)).then_some((operand, relation))
        })
    }
}

/// Whether the pieces of what a step makes are too large for a cache.
pub(crate) fn is_large(step: &Step) -> bool {
    let dims = step.kind.array.dims.iter();
    let elements = dims.fold(1u64, |n, dim| n.saturating_mul(dim.extent));
    let pieces = step.kind.keys.iter().map(|key| u64::from(key.pieces));
    elements / pieces.product::<u64>().max(1) >= LARGE
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn elements_are_read_where_they_are_written() {
        let may = |text: &str, operand| text.parse::<Kernel>().unwrap().may_overwrite(operand);
        let two =
            "(f32[9, 4], f32[9, 4]) [i: 9, j: 4] f32 = where(a0[i, j] > 0.0, a1[i, j], a0[i, j])";
        assert!(may(two, 0) && may(two, 1));
        for other in [
            "(f32[9, 9]) [i: 9, j: 9] f32 = a0[i, j] + a0[j, i]",
            "(f32[9, 4]) [i: 9] f32 = a0[i, 2]",
            "(f32[9, 4]) [i: 9 | j: 4] f32 = sum a0[i, j]",
            "(f64[9]) [i: 9] f32 = f32(a0[i])",
            "(f32[9]) [i: 8] f32 = a0[i]",
        ] {
            assert!(!may(other, 0), "{other}");
        }
    }

    #[test]
    fn members_of_a_sweep_take_the_memory_of_what_all_of_them_read_at_their_own_rows() {
        let found = |reads: &str, kind: &str| {
            let text = format!(
                "plan for 1 sites
kernel k0 (f32[600, 600]) [i: 600 | j: 600] f32 = max a0[i, j]
kernel k1 (f32[600, 600], f32[600]) [i: 600, j: 600] {kind} = {reads}
r0 X: {{}} f32[600, 600] @ ALL = source X from fed
r1 top: {{}} f32[600] @ ALL = join k0(r0{{}}) over [_]
r2 y: {{}} {kind}[600, 600] @ ALL = join k1(r0{{}}, r1{{}}) over [_, _]; free r0, r1
sweep r1, r2 rows 1
output y = r2: {kind}[600, 600]
"
            );
            let plan = text.parse::<Plan>();
            let plan = plan.unwrap_or_else(|error| panic!("{text}: {error}"));
            let over = plan.overwrites_in(&plan.sweeps[0]).into_iter();
            over.map(|(next, old)| (next.0, old.0)).collect::<Vec<_>>()
        };
        assert_eq!(found("a0[i, j] - a1[i]", "f32"), [(2, 0)]);
        assert_eq!(found("a0[j, i] - a1[i]", "f32"), []);
        assert_eq!(found("f64(a0[i, j] - a1[i])", "f64"), []);
    }
}
