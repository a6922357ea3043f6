//! Boxes of rows, in row-major order: one index is cut, those before it have one value, those behind it all.
//!
//! What is made of the rows of one box lies behind what is made of the box before. Must not know what that is.
//!
//! ```text
//! rows [3, 10], about 4 wanted:   (0, 0..4) (0, 4..8) (0, 8..10) (1, 0..4) …
//! ```

/// Boxes of row indices that lie one behind the other.
pub(crate) struct Boxes<'a> {
    /// Start and length of each row index.
    pub extents: &'a [(i64, i64)],
    /// The index that is cut; those before it have one value in a block, those behind it all.
    cut: usize,
    /// How many of its values a block has at most.
    most: usize,
}

impl<'a> Boxes<'a> {
    /// Boxes of about `wanted` rows.
    pub(crate) fn new(extents: &'a [(i64, i64)], wanted: usize) -> Boxes<'a> {
        let mut wanted = wanted.max(1);
        let mut cut = extents.len().saturating_sub(1);
        while cut > 0 && extents[cut].1 as usize <= wanted {
            wanted /= (extents[cut].1 as usize).max(1);
            cut -= 1;
        }
        let length = extents
            .get(cut)
            .map_or(1, |extent| extent.1 as usize)
            .max(1);
        // Equal blocks rather than full ones and a short rest.
        let most = length.div_ceil(length.div_ceil(wanted.max(1)));
        Boxes { extents, cut, most }
    }

    fn pieces(&self) -> usize {
        self.extents
            .get(self.cut)
            .map_or(1, |extent| (extent.1 as usize).div_ceil(self.most))
    }

    /// Number of blocks.
    pub(crate) fn count(&self) -> usize {
        let outer = self.extents.iter().take(self.cut);
        self.pieces() * outer.map(|extent| extent.1 as usize).product::<usize>()
    }

    /// Start and length of each row index in a block.
    pub(crate) fn ranges(&self, block: usize) -> Vec<(i64, i64)> {
        let mut ranges = self.extents.to_vec();
        let (mut outer, piece) = (block / self.pieces(), block % self.pieces());
        let first = piece * self.most;
        let (start, length) = ranges[self.cut];
        let here = (length as usize - first).min(self.most);
        ranges[self.cut] = (start + first as i64, here as i64);
        for range in ranges[..self.cut].iter_mut().rev() {
            let length = range.1 as usize;
            *range = (range.0 + (outer % length) as i64, 1);
            outer /= length;
        }
        ranges
    }

    /// The number of a block's first row, and how many rows it has.
    pub(crate) fn rows(&self, block: usize) -> (usize, usize) {
        let ranges = self.ranges(block);
        let within = ranges.iter().zip(self.extents);
        let first = within.fold(0, |n, (range, extent)| {
            n * extent.1 as usize + (range.0 - extent.0) as usize
        });
        (first, ranges.iter().map(|range| range.1 as usize).product())
    }
}
