//! The facts from which loops are chosen: a kernel, the sizes of its largest tuple, and where the operands of that lie.
//!
//! That a read is inside its operand is proved over the whole of every index, so it holds for each tuple. Must not know the kinds of loops.
//!
//! ```text
//! [i: 10/4, j: 8]   a0: {i: 10/4} f32[i, 8]   ->   i: 3, j: 8; a0 of 3 x 8 elements, steps i: 8, j: 1
//! ```

use super::access::Place;
use super::forms::{Form64, affine_forms, position_forms};
use super::leaves::value;
use crate::{DType, IndexId, Kernel, Node, NodeId};

/// The most indices that a kernel has whose loops are chosen: masks of indices have so many bits.
pub const MOST_INDICES: usize = 127;

/// The facts that are known of a kernel's tuples.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Values of each index in the largest tuple.
    pub lengths: Vec<usize>,
    /// Where the operands of the largest tuple lie.
    pub places: Vec<Place>,
    forms: Vec<Option<Form64>>,
}

impl<'a> Facts<'a> {
    /// Of a kernel over so many values of each index, its operands lying at `places`.
    pub fn new(kernel: &'a Kernel, lengths: Vec<usize>, places: Vec<Place>) -> Facts<'a> {
        let whole: Vec<(i64, i64)> = (kernel.indices.iter())
            .map(|index| (0, index.extent as i64))
            .collect();
        Facts {
            forms: affine_forms(&kernel.graph, &whole),
            kernel,
            lengths,
            places,
        }
    }

    /// How many indices are the output's.
    pub fn rank(&self) -> usize {
        self.kernel.output_rank as usize
    }

    /// Returns whether some index has no value.
    pub fn is_empty(&self) -> bool {
        self.lengths.contains(&0)
    }

    /// The number of points of some indices.
    pub fn count(&self, indices: &[usize]) -> usize {
        let lengths = indices.iter().map(|i| self.lengths[*i]);
        lengths.fold(1, usize::saturating_mul)
    }

    /// The type of the value at a point.
    pub fn value(&self) -> DType {
        self.kernel.graph.dtype(self.kernel.root)
    }

    /// The distance in elements between neighbours along each index of what a read takes, if it takes elements of this type, and all are inside.
    pub fn steps(&self, id: NodeId, dtype: DType) -> Option<Vec<i64>> {
        let (steps, looked_up) = self.steps_but_one(id, dtype)?;
        looked_up.is_none().then_some(steps)
    }

    /// The distances as [`Facts::steps`] gives them, but for at most one position that does not follow from the indices: that position stands
    /// beside them.
    pub fn steps_but_one(&self, id: NodeId, dtype: DType) -> Option<(Vec<i64>, Option<NodeId>)> {
        let Node::Read {
            operand,
            column,
            positions,
            ..
        } = self.kernel.graph.node(value(&self.kernel.graph, id))
        else {
            return None;
        };
        let read = &self.kernel.operands[*operand as usize];
        if read.columns[*column as usize] != dtype {
            return None;
        }
        let mut steps = vec![0i64; self.lengths.len()];
        let mut looked_up = None;
        let strides = &self.places[*operand as usize].strides;
        for ((position, extent), stride) in positions.iter().zip(&read.shape).zip(strides) {
            let Some(form) = self.forms[position.0 as usize].as_ref() else {
                if looked_up.replace(*position).is_some() {
                    return None;
                }
                continue;
            };
            if form.low < 0 || form.high >= *extent as i64 {
                return None;
            }
            for (index, coefficient) in &form.terms {
                let step = coefficient.wrapping_mul(*stride);
                steps[*index] = steps[*index].wrapping_add(step);
            }
        }
        Some((steps, looked_up))
    }

    /// Returns whether a read takes windows: a position of it moves with an index of either list.
    pub fn takes_windows(&self, id: NodeId, lists: [&[IndexId]; 2]) -> bool {
        let Node::Read { positions, .. } = self.kernel.graph.node(value(&self.kernel.graph, id))
        else {
            return false;
        };
        positions.iter().any(|position| {
            let form = self.forms[position.0 as usize].as_ref();
            let terms = form.map_or(&[][..], |form| &form.terms);
            lists.iter().all(|list| {
                let mut moved = terms.iter().map(|(index, _)| *index);
                moved.any(|i| self.lengths[i] > 1 && list.contains(&IndexId(i as u32)))
            })
        })
    }

    /// Returns whether some position of a read does not follow from the indices alone.
    pub fn gathers(&self) -> bool {
        let forms = position_forms(&self.kernel.graph, &self.forms);
        let mut reads = self.kernel.graph.reads();
        reads.any(|(_, positions)| {
            let mut forms = positions.iter().map(|p| &forms[p.0 as usize]);
            forms.any(Option::is_none)
        })
    }
}
