//! The parts of a result that differ from an operand, for kernels that give it back but for single points.
//!
//! What is new is what the kernel gives there, so that the result has the same bits as if all of it were computed. Must
//! not know where the operand lies, nor who else reads it.
//!
//! ```text
//! where(i == a0[], a1[], a2[i]), a0 = 417, i in 300..600:   [117: 1 element]
//! ```

use crate::{Chunk, KernelError, Memo, Options, Scheduled, execute_some, narrow};
use ein_array::Array;
use ein_plan::Update;

/// The boxes of the result that differ from the operand, each with its first element's place in the chunk. Boxes
/// may overlap; they agree there.
///
/// # Errors
/// As [`crate::execute`]; points that are not changed are not looked at, and have no faults.
pub fn update(
    scheduled: Scheduled<'_>,
    update: &Update,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    options: &Options,
    memo: Option<&Memo>,
) -> Result<Vec<(Vec<usize>, Array)>, KernelError> {
    let mut boxes = vec![];
    for point in &update.points {
        let at = narrow::at(point, ranges, operands);
        if at.iter().any(|(_, length)| *length == 0) {
            continue;
        }
        let starts = at.iter().zip(ranges);
        let start = starts.map(|(at, range)| (at.0 - range.0) as usize);
        let start: Vec<usize> = start.collect();
        let new = execute_some(scheduled, (&at, ranges), operands, options, memo)?;
        boxes.extend(new.into_iter().map(|new| (start.clone(), new)));
    }
    Ok(boxes)
}
