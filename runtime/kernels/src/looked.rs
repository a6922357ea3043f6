//! Numbers of rows that data say: for each point an element of a list, or what another list holds at that place.
//!
//! Must not know what is done with the rows.
//!
//! ```text
//! list[near[n]]   of near = 2 0, list = 10 11 12   ->   12 10
//! ```

use crate::Chunk;
use crate::program::place_of;
use ein_array::Data;
use ein_plan::schedule::access::{Place, lie, merged};
use ein_plan::{DType, Kernel, Node, NodeId};

/// A number for each point.
pub(crate) struct Looked<'a> {
    /// The numbers as they lie: the first point's, and how far the next one's is from there.
    numbers: &'a [i64],
    at: (usize, usize),
    /// Where numbers are places in a list: the list, and the number of its first element.
    list: Option<(&'a [i64], i64)>,
}

impl<'a> Looked<'a> {
    /// An expression in this form, a number for each value of the indices `points`, that no other index changes.
    pub(crate) fn of(
        kernel: &Kernel,
        expression: NodeId,
        points: &[usize],
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
    ) -> Option<Looked<'a>> {
        let layout: Vec<Place> = operands.iter().map(place_of).collect();
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let found = |id: NodeId| {
            let lie = lie(kernel, id, DType::I64, ranges, &layout)?;
            let Data::I64(numbers) = operands[lie.operand].columns[lie.column].data() else {
                return None;
            };
            let is_fixed = |i: usize| points.contains(&i) || lie.steps[i] == 0 || lengths[i] == 1;
            let fixed = (0..ranges.len()).all(is_fixed);
            let at = (
                lie.first(ranges, &[]) as usize,
                merged(&lie.steps, points, &lengths)?,
            );
            fixed.then_some((&numbers[..], at))
        };
        if let Some((numbers, at)) = found(expression) {
            return Some(Looked {
                numbers,
                at,
                list: None,
            });
        }
        let Node::Read {
            operand,
            column,
            positions,
            otherwise: None,
        } = kernel.graph.node(expression)
        else {
            return None;
        };
        let (chunk, [position]) = (&operands[*operand as usize], &positions[..]) else {
            return None;
        };
        let Data::I64(elements) = chunk.columns[*column as usize].data() else {
            return None;
        };
        let (numbers, at) = found(*position)?;
        Some(Looked {
            numbers,
            at,
            list: Some((&elements[..], chunk.start[0] as i64)),
        })
    }

    /// The number of a point; `None` if it is read outside of its list.
    #[inline(always)]
    pub(crate) fn get(&self, point: usize) -> Option<i64> {
        let number = self.numbers[self.at.0 + point * self.at.1];
        let Some((list, first)) = self.list else {
            return Some(number);
        };
        let at = usize::try_from(number.wrapping_sub(first)).ok()?;
        list.get(at).copied()
    }

    /// The numbers of some points; `None` if one is read outside of its list.
    #[inline(always)]
    pub(crate) fn fill(&self, points: std::ops::Range<usize>, to: &mut [i64]) -> Option<()> {
        let (first, step) = self.at;
        let numbers = &self.numbers[first + points.start * step..];
        match step {
            1 => to.copy_from_slice(&numbers[..points.len()]),
            0 => to.fill(numbers[0]),
            step => (to.iter_mut().zip(numbers.iter().step_by(step))).for_each(|(to, x)| *to = *x),
        }
        if let Some((list, first)) = self.list {
            for to in to {
                let at = usize::try_from(to.wrapping_sub(first)).ok()?;
                *to = *list.get(at)?;
            }
        }
        Some(())
    }
}
