//! Counters over the loops of a program.
//!
//! Must not know what is done in a loop.
//!
//! ```text
//! 3 values of n, 2 tiles of d:   (0, 0) (0, 1) (1, 0) (1, 1) (2, 0) (2, 1)
//! ```

use crate::nest::Axis;

/// A counter over several loops.
pub(crate) struct Odometer<'a> {
    pub axes: &'a [Axis],
    pub counts: Vec<u64>,
    pub at: Vec<u64>,
}

impl Odometer<'_> {
    pub(crate) fn set(&mut self, mut number: u64) {
        for (at, count) in self.at.iter_mut().zip(&self.counts).rev() {
            *at = number % count;
            number /= count;
        }
    }

    /// Goes on by one; the outermost axis that moved.
    pub(crate) fn advance(&mut self) -> usize {
        for d in (0..self.at.len()).rev() {
            self.at[d] += 1;
            if self.at[d] < self.counts[d] {
                return d;
            }
            self.at[d] = 0;
        }
        0
    }
}
