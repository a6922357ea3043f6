//! Elements of a list that numbers of rows name.
//!
//! Must not know where the numbers come from.
//!
//! ```text
//! own 10 11 12, start 5, rows 7 5   ->   12 10
//! ```
#![allow(unsafe_code)]

/// Elements that the numbers of rows name.
pub(crate) struct Named<'a, T> {
    pub(super) own: &'a [T],
    pub(super) rows: &'a [u32],
    /// The number of the first one.
    pub(super) start: u32,
}

impl<T: Copy> Named<'_, T> {
    /// The number of the row of each point.
    pub(crate) fn rows(&self) -> &[u32] {
        self.rows
    }

    /// Returns whether all elements are inside.
    #[inline(always)]
    pub(crate) fn are_inside(&self) -> bool {
        let rows = self.rows.iter().map(|row| row.wrapping_sub(self.start));
        (rows.fold(0, u32::max) as usize) < self.own.len()
    }

    /// The element at a row.
    ///
    /// # Safety
    /// The row is one of [`Named::rows`], and they [are inside](Named::are_inside).
    #[inline(always)]
    pub(crate) unsafe fn element_inside(&self, row: u32) -> T {
        // SAFETY: the caller vouches for the row.
        unsafe {
            *self
                .own
                .get_unchecked(row.wrapping_sub(self.start) as usize)
        }
    }

    /// The element at a row, if it is inside.
    #[inline(always)]
    pub(crate) fn element(&self, row: u32) -> Option<T> {
        // A number below the first row is one far above the last one.
        (self.own)
            .get(row.wrapping_sub(self.start) as usize)
            .copied()
    }
}
