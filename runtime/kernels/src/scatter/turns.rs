//! Points that are gone through place by place: those of each place follow those of the place before.
//!
//! Must not know what is done with points.
//!
//! ```text
//! ends 4 4 9   ->   place 0 has the points 0..4, place 1 none, place 2 has 4..9
//! ```

/// The number behind the last point of each place, as it is stored.
#[derive(Clone, Copy)]
pub(crate) enum Ends<'a> {
    U32(&'a [u32]),
    I64(&'a [i64]),
}

/// The points of each place, from a first one on, which is point 0.
#[derive(Clone, Copy)]
pub(crate) struct Turns<'a> {
    pub first: i64,
    /// Ascending, none of them before the first point.
    pub ends: Ends<'a>,
}

impl Turns<'_> {
    pub(crate) fn places(&self) -> usize {
        match self.ends {
            Ends::U32(ends) => ends.len(),
            Ends::I64(ends) => ends.len(),
        }
    }

    /// The number of points of all places.
    pub(crate) fn points(&self) -> usize {
        self.places()
            .checked_sub(1)
            .map_or(0, |last| self.end(last))
    }

    /// The point behind the last one of a place.
    #[inline(always)]
    pub(crate) fn end(&self, place: usize) -> usize {
        let end = match self.ends {
            Ends::U32(ends) => i64::from(ends[place]),
            Ends::I64(ends) => ends[place],
        };
        (end - self.first) as usize
    }

    /// The place of a point.
    pub(crate) fn place_of(&self, point: usize) -> usize {
        let is_before = |end: i64| (end - self.first) as usize <= point;
        match self.ends {
            Ends::U32(ends) => ends.partition_point(|end| is_before(i64::from(*end))),
            Ends::I64(ends) => ends.partition_point(|end| is_before(*end)),
        }
    }
}
