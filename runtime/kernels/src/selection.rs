//! An element, a row or a box of an operand, copied.
//!
//! Must not know plans, nor what fixes the place.
//!
//! ```text
//! [d: 8 | n: 100] max a0[n, d] if n == a1[], a1 = 41   ->   the 8 elements of row 41
//! ```

use crate::{Chunk, memory};
use ein_array::Array;
use ein_plan::Kernel;
use ein_plan::schedule::selection::selection;

/// Most elements that one thread copies; more are left to strips.
const MOST: u64 = 1 << 16;

/// The elements at these ranges, each fixed index at its one place; `None` if there are many, or if the operand does not have them.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let form = selection(kernel)?;
    let Chunk { columns, start } = &operands[form.operand as usize];
    let source = columns[form.column as usize];
    let (mut begin, mut extent) = (vec![], vec![]);
    for ((index, start), length) in form.indices.iter().zip(start).zip(source.shape()) {
        let (first, n) = ranges[index.0 as usize];
        let first = first.checked_sub(*start)?;
        if first + n > *length as u64 {
            return None;
        }
        begin.push(first as usize);
        extent.push(n as usize);
    }
    let shape = ranges[..kernel.output_rank as usize].iter();
    if shape.clone().map(|(_, n)| n).product::<u64>() > MOST {
        return None;
    }
    let mut made = memory::room(source.dtype(), &extent);
    made.copy_box(&vec![0; extent.len()], source, &begin, &extent);
    Some(vec![
        made.reshaped(shape.map(|(_, n)| *n as usize).collect()),
    ])
}
