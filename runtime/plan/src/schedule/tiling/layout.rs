//! The blocks of one tuple's product, in the form that loops use: indices are counted from 0, and tiles are no larger than the tuple.
//!
//! Must not know how blocks are chosen or multiplied.
//!
//! ```text
//! rows [0], columns [1], inner [2], tile [256, 64, 512], left packed, right in place, direct
//! ```

use crate::schedule::access::merged;
use serde::{Deserialize, Serialize};

/// Where a factor's elements are.
#[derive(Clone, Copy)]
pub enum FactorLayout<'s> {
    /// In memory, at these steps.
    Strided(&'s [i64]),
    /// They are computed, or some of them.
    Made,
}

/// The handling of a factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum FactorHandling {
    /// Multiplied where it is.
    InPlace,
    /// Copied as a whole, then multiplied there.
    Copied,
    /// Copied block by block.
    Packed,
}

/// A tiling as loops use it: indices are counted from 0, and tiles are no larger than the tuple.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The indices of a block's rows, outermost first.
    pub rows: Vec<usize>,
    /// The indices of a block's columns, outermost first.
    pub columns: Vec<usize>,
    /// The indices of a block's inner terms, outermost first.
    pub inner: Vec<usize>,
    /// Indices of the batch of which a block has several values.
    pub many: Vec<usize>,
    /// For each index the values in a usual block.
    pub tile: Vec<usize>,
    /// True if a block is a matrix in the output; else it is copied there.
    pub direct: bool,
    /// The handling of the left factor.
    pub left: FactorHandling,
    /// The handling of the right factor.
    pub right: FactorHandling,
}

impl FactorLayout<'_> {
    /// A factor whose elements are at these steps, or are computed.
    pub fn of(steps: &Option<Vec<i64>>) -> FactorLayout<'_> {
        match steps {
            Some(steps) => FactorLayout::Strided(steps),
            None => FactorLayout::Made,
        }
    }
}

impl Layout {
    /// Returns whether the blocks of a factor that lies like this are matrices where they are, with neighbours along one side.
    pub fn stands(&self, factor: &FactorLayout<'_>, left: bool) -> bool {
        let own = if left { &self.rows } else { &self.columns };
        let FactorLayout::Strided(steps) = factor else {
            return false;
        };
        let merge = |list: &[usize]| merged(steps, list, &self.tile);
        let (Some(own), Some(inner)) = (merge(own), merge(&self.inner)) else {
            return false;
        };
        let single = |list: &[usize]| list.iter().all(|i| self.tile[*i] == 1);
        own == 1 || inner == 1 || single(&self.inner)
    }
}
