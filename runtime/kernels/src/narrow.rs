//! Ranges without the points at which a kernel has nothing to do.
//!
//! An index that the guard fixes to a position is looked at there alone, wherever the chunk begins: the sums and extremes
//! of a few rows take time in proportion to them. Must not know how kernels are evaluated.
//!
//! ```text
//! max a0[i] if i == a1[], i in 300..600, a1 = 417:   i in 417..418         a1 = 700:   i in 300..300
//! ```

use crate::Chunk;
use ein_array::Data;
use ein_plan::{IndexId, Point, Position};

/// The ranges with the indices of a point at their positions; of length 0 where those are outside.
pub(crate) fn at(point: &Point, ranges: &[(u64, u64)], operands: &[Chunk<'_>]) -> Vec<(u64, u64)> {
    let mut ranges = ranges.to_vec();
    for (IndexId(index), position) in point {
        let (start, length) = &mut ranges[*index as usize];
        let inside = u64::try_from(value(*position, operands))
            .ok()
            .filter(|value| (*start..*start + *length).contains(value));
        match inside {
            Some(value) => (*start, *length) = (value, 1),
            None => *length = 0,
        }
    }
    ranges
}

/// The number that a position is.
fn value(position: Position, operands: &[Chunk<'_>]) -> i64 {
    match position {
        Position::Constant(value) => value,
        Position::Scalar(operand) => {
            let column = operands[operand as usize].columns[0];
            match column.data() {
                Data::I64(values) => values[0],
                // Positions are read of operands of type i64 only.
                _ => -1,
            }
        }
    }
}
