//! Tensor relations: key dimensions, array types, placements, and which site a tuple belongs to.
//!
//! Must not know what computes a relation.
//!
//! ```text
//! {i: 4096/4, j: 4096/1} f32[i, j] @ PART(i)
//! ```

use crate::dtype::DType;
use serde::{Deserialize, Serialize};

/// One dimension of a relation's key: an index range cut into balanced pieces. The frontier of the key
/// dimension is `pieces`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyDim {
    /// A name for printing: the index or dimension that is cut.
    pub name: String,
    /// Length of the range that is cut.
    pub extent: u64,
    /// Number of pieces, at least 1; may exceed `extent`, then some pieces are empty.
    pub pieces: u32,
}

/// The range of piece number `number` of `0..extent` cut into `pieces` balanced pieces: `(start, length)`.
/// The first `extent % pieces` pieces are one longer.
pub fn piece(extent: u64, pieces: u32, number: u32) -> (u64, u64) {
    let (pieces, number) = (u64::from(pieces), u64::from(number));
    let (short, longer) = (extent / pieces, extent % pieces);
    (
        number * short + number.min(longer),
        short + u64::from(number < longer),
    )
}

/// One dimension of the arrays of a relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArrayDim {
    /// Extent of the whole tensor along this dimension.
    pub extent: u64,
    /// The key dimension whose piece this array holds; `None`: the whole extent.
    pub cut: Option<u32>,
}

/// The arrays of a relation: dimensions and the element types of the columns (one, except for carriers).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArrayType {
    /// Dimensions in order.
    pub dims: Vec<ArrayDim>,
    /// Stored element type of each column.
    pub columns: Vec<DType>,
}

/// Which sites hold which tuples.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Placement {
    /// ALL(R): every tuple at every site.
    All,
    /// PART_D(R): one copy of each tuple; tuples that agree on the key dimensions D share a site. D is
    /// listed in ascending order; empty D: everything at site 0.
    Part(Vec<u32>),
}

/// A relation's type: key dimensions (a key's coordinates run below their `pieces`), arrays, placement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RelationType {
    /// Key dimensions.
    pub keys: Vec<KeyDim>,
    /// What each tuple holds.
    pub array: ArrayType,
    /// Where the tuples are.
    pub placement: Placement,
}

impl RelationType {
    /// Number of tuples: the product of the frontier. `None` on overflow.
    pub fn tuples(&self) -> Option<u64> {
        self.keys
            .iter()
            .try_fold(1u64, |n, k| n.checked_mul(u64::from(k.pieces)))
    }

    /// The range `(start, length)` of each array dimension in the tuple with this key.
    pub fn ranges(&self, key: &[u32]) -> Vec<(u64, u64)> {
        self.array
            .dims
            .iter()
            .map(|dim| match dim.cut {
                Some(k) => piece(dim.extent, self.keys[k as usize].pieces, key[k as usize]),
                None => (0, dim.extent),
            })
            .collect()
    }

    /// Bytes of the tuple with this key, all columns.
    pub fn tuple_bytes(&self, key: &[u32]) -> u64 {
        let elements: u64 = self.ranges(key).iter().map(|(_, n)| *n).product();
        elements
            * self
                .array
                .columns
                .iter()
                .map(|c| c.size() as u64)
                .sum::<u64>()
    }

    /// The site that owns the tuple with this key, or `None` if every site holds it. The mapping: the
    /// D-part of the key, linearised in row-major order of D's frontier, cut into `sites` balanced blocks.
    pub fn site(&self, key: &[u32], sites: u32) -> Option<u32> {
        let Placement::Part(dims) = &self.placement else {
            return None;
        };
        let (mut number, mut total) = (0u64, 1u64);
        for d in dims {
            let pieces = u64::from(self.keys[*d as usize].pieces);
            number = number * pieces + u64::from(key[*d as usize]);
            total *= pieces;
        }
        Some(block_of(total, sites, number))
    }

    /// Every key in row-major order.
    pub fn all_keys(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        let total = self.tuples().unwrap_or(0);
        (0..total).map(move |mut n| {
            let mut key = vec![0; self.keys.len()];
            for (slot, dim) in key.iter_mut().zip(&self.keys).rev() {
                *slot = (n % u64::from(dim.pieces)) as u32;
                n /= u64::from(dim.pieces);
            }
            key
        })
    }
}

/// The balanced block of `0..total` cut into `blocks` that holds `number`.
fn block_of(total: u64, blocks: u32, number: u64) -> u32 {
    let (short, longer) = (total / u64::from(blocks), total % u64::from(blocks));
    let head = longer * (short + 1);
    let block = if number < head {
        number / (short + 1)
    } else {
        longer + (number - head) / short
    };
    block as u32
}
