//! Scatters into the rows of an output, each of which has points of its own: the rows are gone through one after another.
//!
//! Points are read in the order of an outer index of the output, whose values make pieces of it, and each piece is a scatter of its own. Must not
//! know where guards come from.
//!
//! ```text
//! [i: 2048, k: 16 | j: 1024] sum x[i, j] if kind[j] == k   ->   rows 0..32 of the output of 32768 points, rows 32..64, …
//! ```

use super::strips::Scatter;
use super::{Sums, TASK};
use crate::parallel;

/// Most pieces.
const PIECES: u64 = 64;

/// A scatter that is done in pieces along an index of the output, none before which has more than one value.
pub(super) struct Pieces<'p, 'a> {
    pub whole: Scatter<'p, 'a>,
    pub along: usize,
}

impl Pieces<'_, '_> {
    fn reduced<A: Copy + Send>(
        &self,
        of_piece: impl Fn(&Scatter<'_, '_>) -> Option<Vec<A>> + Sync,
    ) -> Option<Vec<A>> {
        let (start, length) = self.whole.ranges[self.along];
        let most = (self.whole.points() / TASK).clamp(1, PIECES);
        let pieces = most.min(length as u64) as i64;
        let pieces = parallel::map(pieces as usize, |piece| {
            let piece = piece as i64;
            let (first, end) = (piece * length / pieces, (piece + 1) * length / pieces);
            let mut ranges = self.whole.ranges.to_vec();
            ranges[self.along] = (start + first, end - first);
            let scatter = self.whole.over(&ranges);
            // A table of the piece is as large as the result.
            let parts = scatter.parts.max(1);
            of_piece(&Scatter { parts, ..scatter })
        });
        let pieces: Option<Vec<Vec<A>>> = pieces.into_iter().collect();
        Some(pieces?.concat())
    }
}

impl Sums for Pieces<'_, '_> {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>> {
        self.reduced(|scatter| scatter.floats(start, f))
    }

    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>> {
        self.reduced(|scatter| scatter.integers(start, f))
    }
}
