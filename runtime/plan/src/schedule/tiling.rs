//! How a matrix product is cut into blocks: which indices make the rows, columns and inner terms of a block, how many values of each a block has,
//! what becomes of the factors, and where blocks go.
//!
//! A tiling belongs to the largest tuple of a relation and serves the others too, which are smaller by one at most along each dimension. Must not
//! know how blocks are multiplied.
//!
//! ```text
//! [i: 4096, j: 64 | k: 512] sum a0[k, i] * a1[k, j]   ->   tiles [i: 256 of 4096, j: 64, k: 512] left packed
//! ```

pub mod layout;
pub mod search;
mod text;

use crate::IndexId;
use layout::{FactorHandling, FactorLayout, Layout};
use search::Sizes;
use serde::{Deserialize, Serialize};

/// The blocks of a product of matrices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tiling {
    /// Values of each index of the kernel in the tuple that the tiling was chosen for.
    pub lengths: Vec<u64>,
    /// Values of each index in a block.
    pub tile: Vec<u64>,
    /// Values of each index in a block where what multiplies matrices leaves it to its caller to share a large product out among threads, if they
    /// are others.
    pub apart: Option<Vec<u64>>,
    /// True if the rows of a block are the product's columns, and its columns the product's rows.
    pub swapped: bool,
    /// The indices of a block's rows, outermost first.
    pub rows: Vec<IndexId>,
    /// The indices of a block's columns, outermost first.
    pub columns: Vec<IndexId>,
    /// The indices of a block's inner terms, outermost first.
    pub inner: Vec<IndexId>,
    /// The index of the batch of which a block has several values, if there is one.
    pub many: Vec<IndexId>,
    /// True if blocks are copied to the output; else each is a matrix there.
    pub scattered: bool,
    /// The handling of the left factor of a block.
    pub left: FactorHandling,
    /// The handling of its right factor.
    pub right: FactorHandling,
}

impl Tiling {
    /// The layout of a tuple of these lengths, whose factors (of the product, not of its blocks) lie like this; `None` if the tiling is not for it.
    /// `shares`: whether what multiplies matrices shares a large product out among threads itself.
    pub fn layout(
        &self,
        lengths: &[usize],
        [left, right]: [FactorLayout<'_>; 2],
        shares: bool,
    ) -> Option<Layout> {
        let near = |(planned, length): (&u64, &usize)| {
            let length = *length as u64;
            length == *planned || length + 1 == *planned
        };
        if !self.lengths.iter().zip(lengths).all(near) {
            return None;
        }
        let tile = self
            .apart
            .as_ref()
            .filter(|_| !shares)
            .unwrap_or(&self.tile);
        let tile = tile.iter().zip(lengths);
        let number = |list: &[IndexId]| list.iter().map(|index| index.0 as usize).collect();
        let layout = Layout {
            rows: number(&self.rows),
            columns: number(&self.columns),
            inner: number(&self.inner),
            many: number(&self.many),
            tile: tile.map(|(tile, n)| (*tile as usize).min(*n)).collect(),
            direct: !self.scattered,
            left: self.left,
            right: self.right,
        };
        let (left, right) = if self.swapped {
            (right, left)
        } else {
            (left, right)
        };
        let stands = |handling, factor, is_left| {
            handling != FactorHandling::InPlace || layout.stands(&factor, is_left)
        };
        (stands(layout.left, left, true) && stands(layout.right, right, false)).then_some(layout)
    }

    /// The tilings of blocks of these sizes that are looked at, each with the nanoseconds that it takes one core, the cheapest one first.
    pub(super) fn candidates(sizes: &Sizes<'_>, swapped: bool) -> Vec<(f64, Tiling)> {
        let mut all: Vec<(f64, Tiling)> = (sizes.candidates().iter())
            .map(|(cost, layout)| (*cost, Tiling::of(layout, sizes, swapped)))
            .collect();
        // The sort is stable: of two that cost the same, the one that was looked at first is taken.
        all.sort_by(|(cost, _), (other, _)| cost.total_cmp(other));
        all
    }

    fn of(layout: &Layout, sizes: &Sizes<'_>, swapped: bool) -> Tiling {
        let wide = |list: &[usize]| -> Vec<u64> { list.iter().map(|n| *n as u64).collect() };
        let named = |list: &[usize]| list.iter().map(|index| IndexId(*index as u32)).collect();
        let apart = sizes.apart(layout);
        Tiling {
            lengths: wide(sizes.lengths),
            tile: wide(&layout.tile),
            apart: (apart != layout.tile).then(|| wide(&apart)),
            swapped,
            rows: named(&layout.rows),
            columns: named(&layout.columns),
            inner: named(&layout.inner),
            many: named(&layout.many),
            scattered: !layout.direct,
            left: layout.left,
            right: layout.right,
        }
    }
}
