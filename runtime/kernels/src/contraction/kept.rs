//! A right factor that is the same in every block of rows, turned once so that its columns lie side by side.
//!
//! Where a block has few rows, turning the factor anew for each of them takes longer than multiplying. Must not know what blocks are for.
//!
//! ```text
//! [n, h | l] g[n, l] * w[h, l]   in blocks of 13 rows n   ->   w is copied to [l, h] by the first one
//! ```

use super::layout::Roles;
use crate::pack::{Factor, Memory, Strided};
use crate::packed::Packed;
use ein_array::Array;
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

    /// The factor, which depends on the indices of `mask`, or its copy.
    pub(super) fn turned<'a, T: Packed>(
        &'a self,
        factor: Factor<'a, T>,
        mask: u128,
        roles: &Roles,
        lengths: &[usize],
    ) -> Factor<'a, T> {
        let Factor::Strided(strided) = &factor else {
            return factor;
        };
        let rows = roles.rows.iter().map(|i| lengths[*i]).product::<usize>();
        let ([inner], [column]) = (roles.inner.as_slice(), roles.columns.as_slice()) else {
            return factor;
        };
        let steps = &strided.steps;
        if mask & self.rows != 0 || rows > MOST_ROWS || steps[*inner] != 1 || steps[*column] < 2 {
            return factor;
        }
        let (depth, width) = (lengths[*inner], lengths[*column]);
        let copy = self.copy.get_or_init(|| {
            let mut copy = Array::zeros(T::DTYPE, &[depth, width]);
            let from = strided.data.slice();
            for (k, line) in T::slice_mut(copy.data_mut())
                .unwrap_or_default()
                .chunks_mut(width)
                .enumerate()
            {
                let first = strided.offset as usize + k;
                for (n, to) in line.iter_mut().enumerate() {
                    *to = from[first + n * steps[*column] as usize];
                }
            }
            copy
        });
        let Some(slice) = T::slice(copy.data()) else {
            return factor;
        };
        let mut own = vec![0; lengths.len()];
        (own[*inner], own[*column]) = (width as i64, 1);
        Factor::Strided(Strided {
            data: Memory::Chunk(slice),
            offset: 0,
            steps: own,
        })
    }
}
