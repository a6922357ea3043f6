//! Rows that are one number but for a range of columns: strips of that range, and the number.
//!
//! Must not know what the range follows from.
//!
//! ```text
//! rows of 512, columns 0..300 of this one, elsewhere what it is at another:   lanes 0..301, then lane 300 as far as 512
//! ```

use super::Driver;
use crate::column::{Column, Passage};
use crate::segment::Segment;
use crate::store::store_values;
use crate::stream::Ahead;
use std::ops::Range;

impl Driver<'_, '_> {
    /// All rows, one after another, of a program whose strips are parts of one row each ([`crate::program::Request::apart`]) and which cannot
    /// fault. `columns`: the range in which a row at a point is computed, of the last index; `outside`: what it is elsewhere, if that is known
    /// (else it is the same in all columns there). Whether it is 0 there in all rows.
    pub(crate) fn run_within(
        &self,
        to: Segment<'_>,
        columns: impl Fn(&[i64]) -> Range<i64>,
        outside: Option<f64>,
    ) -> bool {
        let program = self.program;
        let (Some((inner, outer)), Some((_, rows))) =
            (program.levels.split_last(), program.nest.unit.split_last())
        else {
            return false;
        };
        let (index, tile) = (program.nest.strip[0], program.nest.tiles[0]);
        let (start, length) = (self.ranges[index].0, self.ranges[index].1 as usize);
        let mut machine = self.machine();
        let mut loops = self.odometer(rows);
        machine.execute(0);
        let mut to = [Column::There(to)];
        let (mut moved, mut zero, mut passage) = (0, true, Passage::default());
        for row in 0..self.count(rows) as usize {
            self.place(&mut machine, &loops, moved);
            for level in moved + 1..=rows.len() {
                machine.execute(level);
            }
            let within = columns(&machine.point);
            let within = (within.start - start) as usize..(within.end - start) as usize;
            // A column outside, if there is one, tells what they all are.
            let other = match within.end < length {
                true => Some(within.end),
                false => within.start.checked_sub(1),
            };
            let computed = match (outside, other) {
                (None, Some(other)) => within.start.min(other)..within.end.max(other + 1),
                _ => within.clone(),
            };
            let begin = row * length;
            for first in computed.clone().step_by(tile) {
                let lanes = tile.min(computed.end - first);
                machine.point[index] = start + first as i64;
                machine.extents.sizes[0] = lanes;
                let at = begin + first;
                if program.direct {
                    let to = (&mut to[..], &mut [][..]);
                    machine.through(inner, to, at..at + lanes, &mut passage);
                } else if let Some(to) = to[0].segment() {
                    machine.execute(outer.len());
                    store_values(&machine, to, at, false);
                    if let Ahead::Soon(soon) = self.ahead {
                        soon.ask(lanes);
                    }
                }
            }
            if let (Some(other), Some(to)) = (other, to[0].segment()) {
                if let Some(number) = outside {
                    to.set_float(begin + other, number);
                }
                zero &= to.repeat(begin + other, begin..begin + within.start);
                zero &= to.repeat(begin + other, begin + within.end..begin + length);
            }
            moved = loops.advance();
        }
        zero
    }
}
