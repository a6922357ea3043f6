//! The index that the guard of a product of matrices bounds by its rows or columns.
//!
//! Blocks of these need not look at the points beyond. Must not know how factors are multiplied.
//!
//! ```text
//! [i, j | k] sum a0[i, k] * a1[k, j] if k <= i   ->   bounded k by [i]
//! [i, k | j] sum a0[i, j] * a1[k, j] if k <= i   ->   bounded k by [i]
//! ```

use super::mask::Mask;
use crate::{IndexId, Kernel};
use serde::{Deserialize, Serialize};

/// Values of a bounding index in a block of rows or columns: the points between the lowest and the highest bound of a block are computed.
pub const SIDE: u64 = 256;

/// An index that a guard bounds by rows or columns of the product.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Bounded {
    /// The index that has bounds.
    pub index: IndexId,
    /// The output indices that they depend on.
    pub by: Vec<IndexId>,
}

/// The index that a guard bounds by enough rows or columns, if there is one; `lists`: the rows, the columns and the inner indices.
pub(super) fn bounded(
    kernel: &Kernel,
    [rows, columns, inner]: [&[IndexId]; 3],
    lengths: &[usize],
) -> Option<Bounded> {
    let long = |index: &IndexId| lengths[index.0 as usize] as u64 > SIDE;
    let outputs = columns.iter().rev().chain(rows.iter().rev());
    let mut indices = inner.iter().chain(outputs).filter(|i| long(i));
    indices.find_map(|index| {
        let mask = Mask::of_guard(kernel, *index);
        let cut = |by: &IndexId| rows.contains(by) || columns.contains(by);
        let mut by: Vec<IndexId> = mask.indices().filter(cut).filter(long).collect();
        by.sort_unstable();
        by.dedup();
        (!by.is_empty()).then_some(Bounded { index: *index, by })
    })
}
