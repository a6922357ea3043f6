//! Strips whose neighbours in memory lie along their first dimension: each line that is read becomes a column.
//!
//! Must not know how strips of other forms are read.
//!
//! ```text
//! offset 3, lanes (2 of stride 1, 3 of stride 8)  ->  lines 3 4, 11 12, 19 20 are columns:  elements 3 11 19 4 12 20
//! ```

use super::{Extents, along};
use crate::strided::{Plain, into_columns};

/// Most lines of a strip: of more, each is too short to be worth it.
const MOST: usize = 64;

/// Where the lines of a strip begin.
pub(super) struct Columns {
    begins: [i64; MOST],
    /// Number of lines.
    count: usize,
    /// How far neighbours lie apart in a line.
    step: i64,
}

impl Columns {
    /// The lines of a strip, all of whose elements exist, if it has this form.
    pub(super) fn of(offset: i64, steps: &[i64], extents: &Extents) -> Option<Columns> {
        let (first, last) = (*steps.first()?, *steps.last()?);
        if steps.len() < 2 || !(1..last.abs()).contains(&first.abs()) {
            return None;
        }
        let lines = Extents {
            sizes: extents.sizes[1..].to_vec(),
        };
        let (count, mut begins) = (lines.lanes(), [0; MOST]);
        if count > MOST {
            return None;
        }
        let run = lines.run();
        lines.runs(|lane, at| {
            let begin = offset + along(&steps[1..], at);
            for (to, l) in begins[lane..lane + run].iter_mut().zip(0..) {
                *to = begin + l * last;
            }
        });
        Some(Columns {
            begins,
            count,
            step: first,
        })
    }

    /// Reads the strip line by line.
    pub(super) fn read<S: Copy, T: Copy>(&self, to: &mut [T], from: &[S], f: impl Fn(S) -> T) {
        for (column, begin) in self.begins[..self.count].iter().enumerate() {
            for (row, to) in (0..).zip(to[column..].iter_mut().step_by(self.count)) {
                *to = f(from[(begin + row * self.step) as usize]);
            }
        }
    }

    /// Reads the strip square by square, if its lines are of neighbours; whether they are.
    pub(super) fn read_squares<T: Plain>(&self, to: &mut [T], from: &[T]) -> bool {
        let neighbours = self.step == 1;
        if neighbours {
            into_columns(to, from, &self.begins[..self.count]);
        }
        neighbours
    }
}
