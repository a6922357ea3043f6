//! Look-ups: reductions whose guard names one value of a reduced index for each point of the others.
//!
//! Instead of all values of that index, only the named one is looked at, where it is among the range. What faults
//! elsewhere than at the check of a position is left to the ordinary loops, which find the lowest point. Must not know
//! where guards come from.
//!
//! ```text
//! [n: 50, h: 4 | v: 1000] max x[v, h] if v == at[n]   ->   200 points instead of 200000
//! ```

use crate::{Chunk, Fusion, KernelError, drive};
use ein_array::Array;
use ein_plan::schedule::guard::looking_up;
use ein_plan::{Fault, IndexId, Kernel};

/// A kernel whose guard gives these reduced indices a value; `None` if strips have to find out where it faults.
pub(crate) fn run(
    kernel: &Kernel,
    indices: &[IndexId],
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    fusion: Fusion,
) -> Option<Result<Vec<Array>, KernelError>> {
    let (looking, ranges) = looking_up(kernel, indices, ranges);
    match drive::run(&looking, (&ranges, &ranges), operands, fusion, None) {
        Ok(result) => Some(Ok(result)),
        Err(error) => matches!(error.fault, Fault::NotWithin { .. }).then_some(Err(error)),
    }
}
