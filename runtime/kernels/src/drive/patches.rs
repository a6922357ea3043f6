//! Programs whose strips are patches: pieces of several rows of the output.
//!
//! Must not know why they are.
//!
//! ```text
//! a patch of 16 x 32 of a result of 1024 x 2048   ->   16 pieces of 32 neighbours, 2048 apart
//! ```
#![allow(unsafe_code)]

use super::{Driver, TASK};
use crate::accumulate::Accumulator;
use crate::machine::Machine;
use crate::parallel;
use crate::segment::{Pieces, Segment};
use crate::store::store_lanes;
use crate::stream;

impl Driver<'_, '_> {
    /// Fills the columns; some faulty point, if there is one.
    pub(super) fn run_patches(&self, columns: Vec<Segment<'_>>) -> Option<Vec<i64>> {
        let units = self.units();
        let each = (TASK * units).div_ceil(self.points()).max(1);
        let columns: Vec<Pieces<'_>> = columns.into_iter().map(Pieces::of).collect();
        let faults = parallel::map(units.div_ceil(each) as usize, |task| {
            let task = task as u64;
            let own = task * each..((task + 1) * each).min(units);
            let fault = self.walk(own, 0..1, |machine, _: &mut Accumulator, _| {
                for column in &columns {
                    self.store_patch(machine, column);
                }
            });
            stream::fence(self.streams);
            fault
        });
        faults.into_iter().flatten().next()
    }

    fn store_patch(&self, machine: &Machine<'_, '_>, to: &Pieces<'_>) {
        let nest = &self.program.nest;
        let rank = self.ranges.len() - self.extents.len();
        let (mut first, mut across, mut stride) = (0, 0, 1);
        for index in (0..rank).rev() {
            let (start, length) = self.ranges[index];
            first += (machine.point[index] - start) as usize * stride;
            if index == nest.strip[0] {
                across = stride;
            }
            stride *= length as usize;
        }
        let rows = machine.extents.sizes[0];
        let width = machine.extents.lanes() / rows.max(1);
        for row in 0..rows {
            let at = first + row * across;
            // SAFETY: a point belongs to one patch, and a patch to one task.
            let mut piece = unsafe { to.piece(at..at + width) };
            let lanes = row * width..(row + 1) * width;
            store_lanes(machine, lanes, (&mut piece, 0), self.streams);
        }
    }
}
