//! Scatters of lines into the rows of an output, each of which has points of its own: every row is a scatter by itself.
//!
//! Must not know how the points of a row are added.
//!
//! ```text
//! [b: 1000, v: 2000 | n: 2000] sum 1 if at[b, n] == v    ->   1000 scatters of 2000 points, each into a row of the output
//! ```

use super::lines::Lines;
use super::{Solved, Sums, TASK};
use crate::Chunk;
use crate::parallel;
use ein_plan::Kernel;

/// The fewest points of a row.
const LEAST: u64 = 256;

/// Most tasks.
const TASKS: u64 = 64;

/// A scatter in this form.
pub(super) struct LineRows<'a> {
    kernel: &'a Kernel,
    solved: &'a Solved,
    ranges: &'a [(i64, i64)],
    operands: &'a [Chunk<'a>],
    /// How many indices of the output number its rows: those before the one that data say.
    before: usize,
}

impl<'a> LineRows<'a> {
    /// A scatter over `ranges` in this form, if its rows have many points.
    pub(super) fn of(
        kernel: &'a Kernel,
        solved: &'a Solved,
        ranges: &'a [(i64, i64)],
        operands: &'a [Chunk<'a>],
    ) -> Option<LineRows<'a>> {
        let &[(before, _)] = &solved.places[..] else {
            return None;
        };
        let rank = kernel.output_rank as usize;
        if product(&ranges[rank..]) < LEAST || ranges.iter().any(|(_, length)| *length == 0) {
            return None;
        }
        let rows = LineRows {
            kernel,
            solved,
            ranges,
            operands,
            before,
        };
        // All rows are of one form.
        let first = rows.row(0);
        (rows.count() > 1 && first.is_some()).then_some(rows)
    }

    fn count(&self) -> u64 {
        product(&self.ranges[..self.before])
    }

    /// The scatter into one row.
    fn row(&self, number: u64) -> Option<Lines<'a>> {
        let mut ranges = self.ranges.to_vec();
        let mut number = number as i64;
        for (start, length) in ranges[..self.before].iter_mut().rev() {
            (*start, number) = (*start + number % *length, number / *length);
            *length = 1;
        }
        let mut lines = Lines::of_any(self.kernel, self.solved, &ranges, self.operands)?;
        // A table of the row is as large as the row.
        lines.parts = 1;
        Some(lines)
    }

    fn reduced<A: Copy + Send>(
        &self,
        of_row: impl Fn(&Lines<'_>) -> Option<Vec<A>> + Sync,
    ) -> Option<Vec<A>> {
        let rows = self.count();
        let points = product(&self.ranges[self.kernel.output_rank as usize..]);
        let tasks = (rows.saturating_mul(points) / TASK)
            .clamp(1, TASKS)
            .min(rows);
        let tasks = parallel::map(tasks as usize, |task| {
            let task = task as u64;
            let mut found = vec![];
            for row in task * rows / tasks..(task + 1) * rows / tasks {
                found.extend(of_row(&self.row(row)?)?);
            }
            Some(found)
        });
        let tasks: Option<Vec<Vec<A>>> = tasks.into_iter().collect();
        Some(tasks?.concat())
    }
}

/// How many values some indices have together.
fn product(ranges: &[(i64, i64)]) -> u64 {
    let lengths = ranges.iter().map(|(_, length)| *length as u64);
    lengths.fold(1, u64::saturating_mul)
}

impl Sums for LineRows<'_> {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>> {
        self.reduced(|lines| lines.floats(start, f))
    }

    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>> {
        self.reduced(|lines| lines.integers(start, f))
    }
}
