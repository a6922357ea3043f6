//! Results that are an operand but for the rows that data find in another one.
//!
//! Where the result may lie where the operand does, no other row is looked at. Must not know plans, nor who owns the operand.
//!
//! ```text
//! [i, h] (new[at[i], h] else old[i, h]), at = -1 0 -1   ->   row 1 of old is row 0 of new
//! ```

use crate::looked::Numbers;
use crate::{Chunk, memory, parallel};
use ein_array::Array;
use ein_plan::Kernel;
use ein_plan::schedule::patched::{Patched, patched};

/// Bytes of the result that are worth a task of their own.
const TASK: usize = 1 << 20;

/// The result in memory of its own; `None` if the operands do not lie as loops of this kind find them.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let form = patched(kernel)?;
    let Chunk { columns, start } = &operands[form.old as usize];
    let old = columns[0];
    let patch = Patch::of(form, ranges, operands).filter(|_| lies_at(start, old, ranges))?;
    let mut made = memory::room(old.dtype(), old.shape());
    patch.write(&mut made, Some(old));
    Some(vec![made])
}

/// The result in the memory of the operand that is given back, which is `old`; where it cannot lie there, that is given back.
pub(crate) fn run_over(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    (over, mut old): (usize, Array),
) -> Result<Array, Array> {
    let form = patched(kernel).filter(|form| form.old as usize == over);
    let form = form.filter(|_| lies_at(&operands[over].start, &old, ranges));
    match form.and_then(|form| Patch::of(form, ranges, operands)) {
        Some(patch) => {
            patch.write(&mut old, None);
            Ok(old)
        }
        None => Err(old),
    }
}

/// Returns whether an array that begins there has the elements of these ranges and no others.
fn lies_at(start: &[u64], array: &Array, ranges: &[(u64, u64)]) -> bool {
    let lengths = array.shape().iter().map(|n| *n as u64);
    let own = start.iter().copied().zip(lengths);
    own.eq(ranges.iter().copied())
}

/// Rows to be written.
struct Patch<'a> {
    rows: &'a Array,
    /// How many rows there are.
    count: usize,
    /// By row of the result: the number of its row, if that is one.
    found: Numbers<'a>,
    /// The first row of the result among the numbers, and how many there are.
    at: (usize, usize),
    /// How many neighbours make a part of a row.
    width: usize,
}

impl<'a> Patch<'a> {
    fn of(form: Patched, ranges: &[(u64, u64)], operands: &'a [Chunk<'_>]) -> Option<Patch<'a>> {
        let dim = form.index.0 as usize;
        let [rows, found] = [form.rows, form.found].map(|operand| &operands[operand as usize]);
        let mut lies = ranges.to_vec();
        let count = rows.columns[0].shape()[dim];
        lies[dim] = (0, count as u64);
        if !lies_at(&rows.start, rows.columns[0], &lies) {
            return None;
        }
        let (start, length) = ranges[dim];
        Some(Patch {
            rows: rows.columns[0],
            count,
            found: Numbers::of(found.columns[0].data())?,
            at: ((start - found.start[0]) as usize, length as usize),
            width: ranges[dim + 1..].iter().map(|(_, n)| *n as usize).product(),
        })
    }

    /// Writes the rows. All others are those of `old`, or stay as they are.
    fn write(&self, to: &mut Array, old: Option<&Array>) {
        let part = self.width * to.dtype().size();
        if part == 0 {
            return;
        }
        let (first, length) = self.at;
        let rows = self.rows.data().bytes();
        let old = old.map(|old| old.data().bytes());
        let each = (TASK / part).max(1);
        parallel::chunks_mut(to.data_mut().bytes_mut(), each * part, |task, to| {
            if let Some(old) = old {
                to.copy_from_slice(&old[task * each * part..][..to.len()]);
            }
            for (number, to) in (task * each..).zip(to.chunks_exact_mut(part)) {
                let (outer, row) = (number / length, number % length);
                let row = usize::try_from(self.found.at(first + row)).ok();
                if let Some(row) = row.filter(|row| *row < self.count) {
                    let from = (outer * self.count + row) * part;
                    to.copy_from_slice(&rows[from..from + part]);
                }
            }
        });
    }
}
