//! Steps whose result may take the memory of an operand: element by element, and nobody reads the operand afterwards.
//!
//! Whether it does is up to whoever runs the step; what a plan states that it holds counts both. Must not know how kernels are run.
//!
//! ```text
//! r5 = join k0 (r3, r4); free r4      k0 = (f32[9, 4], f32[9, 4]) [i: 9, j: 4] f32 = where(a0[i, j] > 0, a1[i, j], 0)      r5 over r4
//! ```

use crate::kernel::{IndexId, Kernel};
use crate::plan::{Operation, Plan, Range, Step};
use crate::points::is_same;

impl Kernel {
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
    /// The operand of a step whose memory the result may take.
    pub fn overwrites(&self, step: &Step) -> Option<u32> {
        let Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            fold: None,
        } = &step.operation
        else {
            return None;
        };
        let kernel = self.kernels.get(kernel.0 as usize)?;
        let dims = &step.kind.array.dims;
        let whole = |dim: &crate::relation::ArrayDim| dim.cut.map_or(Range::Whole, Range::Key);
        if !ranges.iter().copied().eq(dims.iter().map(whole)) {
            return None;
        }
        let may = |(operand, _): &(u32, _)| kernel.may_overwrite(*operand);
        let ends = |input: &crate::plan::JoinInput| {
            let once = inputs
                .iter()
                .filter(|other| other.relation == input.relation);
            let kind = self
                .steps
                .get(input.relation.0 as usize)
                .map(|step| &step.kind);
            once.count() == 1
                && step.frees.contains(&input.relation)
                && (0..).zip(&input.keys).all(|(dim, key)| dim == *key)
                && kind.is_some_and(|kind| is_same(kind, &step.kind))
        };
        let mut operands = (0..).zip(inputs);
        let found = operands.find(|operand| ends(operand.1) && may(operand));
        found.map(|(operand, _)| operand)
    }
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
}
