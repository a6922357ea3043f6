//! A right factor that is the same in every block of rows, turned once so that its columns lie side by side.
//!
//! Where a block has few rows, turning the factor anew for each of them takes longer than multiplying. Must not know what blocks are for.
//!
//! ```text
//! [n, h | l] g[n, l] * w[h, l]   in blocks of 13 rows n   ->   w is copied to [l, h] by the first one
//! ```

use crate::pack::{Factor, Memory, Strided};
use crate::packed::Packed;
use ein_array::Array;
use ein_plan::schedule::tiling::search::Roles;
use std::sync::OnceLock;

/// Most rows of a block; more are worth the turning.
const MOST_ROWS: usize = 64;

/// What blocks of rows of one product share.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The indices in which blocks differ.
    rows: u128,
    copy: OnceLock<Array>,
}

impl Kept {
    /// For blocks that differ in these indices.
    pub(crate) fn new(rows: impl Iterator<Item = usize>) -> Kept {
        Kept {
            rows: rows.fold(0, |mask, index| mask | 1 << index),
            copy: OnceLock::new(),
        }
    }

    /// The factor over `ranges`, which depends on the indices of `mask`, or its place in the copy, which is made of the `whole`.
    pub(super) fn turned<'a, T: Packed>(
        &'a self,
        factor: Factor<'a, T>,
        (mask, roles): (u128, &Roles),
        whole: &[(i64, i64)],
        ranges: &[(i64, i64)],
    ) -> Factor<'a, T> {
        let Factor::Strided(strided) = &factor else {
            return factor;
        };
        let rows = roles.rows.iter().map(|i| ranges[*i].1 as usize);
        let rows: usize = rows.product();
        let ([inner], [column]) = (roles.inner.as_slice(), roles.columns.as_slice()) else {
            return factor;
        };
        let steps = &strided.steps;
        if mask & self.rows != 0 || rows > MOST_ROWS || steps[*inner] != 1 || steps[*column] < 2 {
            return factor;
        }
        let length = |index: usize| whole[index].1 as usize;
        let (depth, width) = (length(*inner), length(*column));
        let before = |index: usize| (ranges[index].0 - whole[index].0) as usize;
        let (above, left) = (before(*inner), before(*column));
        let step = steps[*column] as usize;
        let begin = strided.offset as usize - above - left * step;
        let copy = self.copy.get_or_init(|| {
            let mut copy = Array::zeros(T::DTYPE, &[depth, width]);
            let from = strided.data.slice();
            for (k, line) in T::slice_mut(copy.data_mut())
                .unwrap_or_default()
                .chunks_mut(width)
                .enumerate()
            {
                for (n, to) in line.iter_mut().enumerate() {
                    *to = from[begin + k + n * step];
                }
            }
            copy
        });
        let Some(slice) = T::slice(copy.data()) else {
            return factor;
        };
        let mut own = vec![0; ranges.len()];
        (own[*inner], own[*column]) = (width as i64, 1);
        Factor::Strided(Strided {
            data: Memory::Chunk(slice),
            offset: (above * width + left) as i64,
            steps: own,
        })
    }
}
