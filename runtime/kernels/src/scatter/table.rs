//! Tables that parts of a scatter are added up in.
//!
//! A table has all places of the output, or begins at the first one that is asked for, and grows. Must not know what is added up.
//!
//! ```text
//! places 570 570 572 of 9000   ->   a table that begins at 570
//! ```

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Places by which a table grows at least.
pub(super) const GROWTH: usize = 1 << 12;

/// Some neighbouring places of the output.
pub(super) struct Table<'r, A> {
    /// The first place.
    base: usize,
    values: Vec<A>,
    /// Places of the output.
    size: usize,
    start: A,
    /// How many more places all tables together may have; `None`: this one has all.
    room: Option<&'r AtomicUsize>,
}

impl<A: Copy> Table<'static, A> {
    /// A table of the whole output.
    pub fn whole(size: usize, start: A) -> Self {
        Table {
            base: 0,
            values: vec![start; size],
            size,
            start,
            room: None,
        }
    }
}

impl<'r, A: Copy> Table<'r, A> {
    /// A table that grows as long as there is room.
    pub fn growing(size: usize, start: A, room: &'r AtomicUsize) -> Self {
        Table {
            base: 0,
            values: vec![],
            size,
            start,
            room: Some(room),
        }
    }

    /// Some neighbouring places, if they are there, or may be.
    #[inline(always)]
    pub fn at(&mut self, place: usize, count: usize) -> Option<&mut [A]> {
        if self.values.is_empty() {
            self.base = place;
        }
        let from = place.checked_sub(self.base)?;
        if from + count > self.values.len() {
            self.grow(from + count)?;
        }
        Some(&mut self.values[from..from + count])
    }

    /// Adds values at places one by one, each made of an element of either list, if all places are there, or may be. Values with a place
    /// behind the output are left out.
    #[inline(always)]
    pub fn add<L: Copy, R: Copy, T: Into<A>>(
        &mut self,
        places: impl Iterator<Item = usize>,
        (left, right, value): (&[L], &[R], impl Fn(L, R) -> T),
        f: impl Fn(A, A) -> A,
    ) -> Option<()> {
        // Neighbours often go to one place: its sum stays in a register.
        let (mut current, mut sum) = (usize::MAX, self.start);
        for (place, (left, right)) in places.zip(left.iter().zip(right)) {
            if place != current {
                self.put(current, sum);
                current = place;
                if place < self.size {
                    sum = self.at(place, 1)?[0];
                }
            }
            sum = f(sum, value(*left, *right).into());
        }
        self.put(current, sum);
        Some(())
    }

    /// Adds values of points to the places that the points belong to, from `place` on, each made of an element of either list: a function says how many
    /// of the points from a number on belong to a place. Returns `None` if a place is not there, and may not be.
    #[inline(always)]
    pub fn add_in_turn<L: Copy, R: Copy, T: Into<A>>(
        &mut self,
        mut place: usize,
        (points, belong): (Range<usize>, impl Fn(usize, usize) -> usize),
        (left, right, value): (&[L], &[R], impl Fn(L, R) -> T),
        f: impl Fn(A, A) -> A,
    ) -> Option<()> {
        let mut at = 0;
        while at < points.len() {
            let count = belong(place, points.start + at).min(points.len() - at);
            if count > 0 {
                let sum = &mut self.at(place, 1)?[0];
                let mut total = *sum;
                for (left, right) in left[at..at + count].iter().zip(&right[at..at + count]) {
                    total = f(total, value(*left, *right).into());
                }
                *sum = total;
            }
            at += count;
            place += 1;
        }
        Some(())
    }

    /// Stores the value of a place that is there, or is behind the output and has none.
    #[inline(always)]
    fn put(&mut self, place: usize, value: A) {
        if place < self.size {
            self.values[place - self.base] = value;
        }
    }

    #[cold]
    fn grow(&mut self, needed: usize) -> Option<()> {
        let had = self.values.len();
        let wanted = needed.max(2 * had).max(GROWTH).min(self.size - self.base);
        let more = wanted.checked_sub(had)?;
        let taken = |room: usize| room.checked_sub(more);
        (self
            .room?
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken))
        .ok()?;
        self.values.resize(wanted, self.start);
        (needed <= wanted).then_some(())
    }
}

/// The whole output: what the tables have, in their order.
pub(super) fn together<A: Copy>(
    tables: Vec<Table<'_, A>>,
    size: usize,
    start: A,
    f: impl Fn(A, A) -> A,
) -> Vec<A> {
    let mut tables = tables.into_iter();
    let mut total = match tables.next() {
        Some(first) if first.values.len() == size => first.values,
        Some(first) => {
            let mut total = vec![start; size];
            total[first.base..][..first.values.len()].copy_from_slice(&first.values);
            total
        }
        None => vec![start; size],
    };
    for table in tables {
        for (total, x) in total[table.base..].iter_mut().zip(&table.values) {
            *total = f(*total, *x);
        }
    }
    total
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tables_grow_within_their_room() {
        let room = AtomicUsize::new(3 * GROWTH);
        let mut first = Table::growing(10 * GROWTH, 0, &room);
        let mut second = Table::growing(10 * GROWTH, 0, &room);
        for place in [7, 7, 9] {
            first.at(place, 1).unwrap()[0] += 1;
        }
        assert!(first.at(6, 1).is_none());
        second.at(9, 2).unwrap().fill(5);
        assert!(second.at(9 + 3 * GROWTH, 1).is_none());
        let total = together(vec![first, second], 10 * GROWTH, 0, |a, b| a + b);
        assert_eq!(total[6..12], [0, 2, 0, 6, 5, 0]);
    }
}
