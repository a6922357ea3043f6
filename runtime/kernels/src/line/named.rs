//! Elements of a list that numbers of rows name.
//!
//! Must not know where the numbers come from.
//!
//! ```text
//! own 10 11 12, start 5, rows 7 5   ->   12 10
//! ```

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

    /// The element at a row, if it is inside.
    #[inline(always)]
    pub(crate) fn element(&self, row: u32) -> Option<T> {
        // A number below the first row is one far above the last one.
        (self.own)
            .get(row.wrapping_sub(self.start) as usize)
            .copied()
    }
}
