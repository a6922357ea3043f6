//! The sums of a scatter's lines, row by row of the output, held in registers for a block of columns at a time.
//!
//! Points come in the order of their rows. Where their lines begin and what they are multiplied by is looked up for a few hundred points
//! together; then the points of a row are gone through once for each block of columns, so that its sums leave the registers once. Must not
//! know how points were ordered.
//!
//! ```text
//! row 3 has the points 7, 8, 9, width 40   ->   columns 0..32 of lines 7, 8, 9, then columns 32..40 of lines 7, 8, 9
//! ```

use crate::line::{Scaled, Value};
use crate::looked::Points;
use crate::stream;
use crate::wide::Job;
use std::ops::Range;

/// Points whose lines are looked up together.
const POINTS: usize = 512;
/// How many bytes of lines are asked for ahead, and of how many points.
const AHEAD: usize = 4 << 10;
const POINTS_AHEAD: (usize, usize) = (2, 16);

/// The lines that go to some rows of the output, whose columns are summed in blocks of `BLOCK` and fewer.
pub(super) struct RowSums<'t, 'a, T, A, W, F, S, const BLOCK: usize> {
    pub(super) line: &'t Scaled<'a, T>,
    /// Values of a line.
    pub(super) width: usize,
    /// Row and point, the row in the upper half, ascending.
    pub(super) order: &'t [u64],
    pub(super) of: Range<usize>,
    /// Where parts of the points end: the points of a row are summed part by part, and then the parts.
    pub(super) ends: &'t [usize],
    /// A sum of nothing.
    pub(super) start: A,
    /// True if rows without points are as they should be in an output of zeros.
    pub(super) starts_as_zeros: bool,
    pub(super) wider: W,
    pub(super) add: F,
    pub(super) store: S,
}

/// The lines of some points.
struct Lines<'t, T> {
    all: &'t [T],
    firsts: Vec<usize>,
    /// By factor: one number a point.
    factors: Vec<Vec<T>>,
}

/// The sums of a row so far.
struct Sums<A> {
    row: Option<usize>,
    /// Of the points of a part that ends there.
    own: Vec<A>,
    end: usize,
    /// Of the parts before, if there are any.
    total: Vec<A>,
    several: bool,
}

fn row_of(entry: u64) -> usize {
    (entry >> 32) as usize
}

fn point_of(entry: u64) -> usize {
    (entry & u64::from(u32::MAX)) as usize
}

impl<T, A, W, F, S, const BLOCK: usize> Job for RowSums<'_, '_, T, A, W, F, S, BLOCK>
where
    T: Value,
    A: Copy,
    W: Fn(T) -> A + Copy,
    F: Fn(A, A) -> A + Copy,
    S: FnMut(usize, &[A]),
{
    /// True if all is read inside.
    type Output = bool;
    #[inline(always)]
    fn run<const BYTES: usize>(mut self) -> bool {
        let mut lines = Lines {
            all: self.line.elements.all,
            firsts: vec![],
            factors: self.line.factors.iter().map(|_| vec![]).collect(),
        };
        let mut sums = Sums {
            row: None,
            own: vec![self.start; self.width],
            end: 0,
            total: vec![self.start; self.width],
            several: false,
        };
        let order = self.order;
        for points in order.chunks(POINTS) {
            if self.look_up(points, &mut lines).is_none() {
                return false;
            }
            let mut from = 0;
            while from < points.len() {
                let row = row_of(points[from]);
                let same = |entry: &&u64| row_of(**entry) == row;
                let end = from + points[from..].iter().take_while(same).count();
                if sums.row != Some(row) {
                    self.finish(&mut sums, row);
                }
                self.add_points(points, from..end, &lines, &mut sums);
                from = end;
            }
        }
        let behind = self.of.end;
        self.finish(&mut sums, behind);
        true
    }
}

impl<T, A, W, F, S, const BLOCK: usize> RowSums<'_, '_, T, A, W, F, S, BLOCK>
where
    T: Value,
    A: Copy,
    W: Fn(T) -> A + Copy,
    F: Fn(A, A) -> A + Copy,
    S: FnMut(usize, &[A]),
{
    /// Looks up the lines of some points; `None` if one is outside.
    #[inline(always)]
    fn look_up(&self, points: &[u64], lines: &mut Lines<'_, T>) -> Option<()> {
        let first = point_of(*points.first()?);
        let in_turn = (points.iter().zip(first..)).all(|(entry, next)| point_of(*entry) == next);
        let points = match in_turn {
            true => Points::Neighbours(first, points.len()),
            false => Points::Listed(points),
        };
        self.line.elements.firsts(points, &mut lines.firsts)?;
        let last = lines.firsts.iter().copied().max().unwrap_or(0);
        if last + self.width > lines.all.len() {
            return None;
        }
        for (factor, to) in self.line.factors.iter().zip(&mut lines.factors) {
            factor.of_points(points, to)?;
        }
        Some(())
    }

    /// Writes the sums of a row down, and the start into the rows between it and the next one, which begins.
    #[inline(always)]
    fn finish(&mut self, sums: &mut Sums<A>, next: usize) {
        let first = self.of.start;
        if let Some(row) = sums.row {
            if sums.several {
                self.close(sums);
            }
            let all = if sums.several { &sums.total } else { &sums.own };
            (self.store)((row - first) * self.width, all);
        }
        sums.own.fill(self.start);
        if !self.starts_as_zeros {
            for row in sums.row.map_or(first, |row| row + 1)..next {
                (self.store)((row - first) * self.width, &sums.own);
            }
        }
        (sums.row, sums.end, sums.several) = (Some(next), 0, false);
    }

    /// Adds the sums of a part to those of the parts before.
    #[inline(always)]
    fn close(&self, sums: &mut Sums<A>) {
        if !sums.several {
            sums.total.copy_from_slice(&sums.own);
            sums.several = true;
            return;
        }
        for (total, sum) in sums.total.iter_mut().zip(&sums.own) {
            *total = (self.add)(*total, *sum);
        }
    }

    /// Adds the lines of points of one row up, part by part of the points.
    #[inline(always)]
    fn add_points(
        &self,
        points: &[u64],
        mut these: Range<usize>,
        lines: &Lines<'_, T>,
        sums: &mut Sums<A>,
    ) {
        let ahead = AHEAD / (self.width * size_of::<T>());
        let ahead = ahead.clamp(POINTS_AHEAD.0, POINTS_AHEAD.1);
        if stream::is_far(lines.all) {
            let soon = lines.firsts.iter().skip(these.start + ahead);
            for first in soon.take(these.len()) {
                stream::ahead(lines.all, *first..*first + self.width);
            }
        }
        while !these.is_empty() {
            let number = point_of(points[these.start]);
            if number >= sums.end {
                if sums.end > 0 {
                    self.close(sums);
                    sums.own.fill(self.start);
                }
                sums.end = self.ends[self.ends.partition_point(|end| *end <= number)];
            }
            let of_part = |entry: &u64| point_of(*entry) < sums.end;
            let within = match self.ends.len() {
                1 => these.len(),
                _ => points[these.clone()].partition_point(of_part),
            };
            self.add_lines(lines, these.start..these.start + within, &mut sums.own);
            these.start += within;
        }
    }

    /// Adds the lines of some points up, each times its factors.
    #[inline(always)]
    fn add_lines(&self, lines: &Lines<'_, T>, points: Range<usize>, sums: &mut [A]) {
        let firsts = &lines.firsts[points.clone()];
        match &lines.factors[..] {
            [] => self.add_blocks(lines.all, firsts, firsts, |x, _| x, sums),
            [factors] => {
                let factors = &factors[points];
                self.add_blocks(
                    lines.all,
                    firsts,
                    factors,
                    |x, factor| x.times(*factor),
                    sums,
                );
            }
            factors => {
                for (point, first) in points.zip(firsts) {
                    let line = &lines.all[*first..*first + sums.len()];
                    for (sum, x) in sums.iter_mut().zip(line) {
                        let x = factors.iter().fold(*x, |x, factor| x.times(factor[point]));
                        *sum = (self.add)(*sum, (self.wider)(x));
                    }
                }
            }
        }
    }

    /// Adds the lines of some points up, each element changed by what is beside its point.
    #[inline(always)]
    fn add_blocks<B>(
        &self,
        all: &[T],
        firsts: &[usize],
        beside: &[B],
        change: impl Fn(T, &B) -> T + Copy,
        sums: &mut [A],
    ) {
        let (mut at, width) = (0, sums.len());
        macro_rules! blocks {
            ($block:expr) => {
                while width - at >= $block {
                    let sums = &mut sums[at..at + $block];
                    self.add_block::<B, { $block }>(&all[at..], firsts, beside, change, sums);
                    at += $block;
                }
            };
        }
        blocks!(BLOCK);
        blocks!(8);
        blocks!(4);
        blocks!(1);
    }

    #[inline(always)]
    fn add_block<B, const N: usize>(
        &self,
        all: &[T],
        firsts: &[usize],
        beside: &[B],
        change: impl Fn(T, &B) -> T + Copy,
        sums: &mut [A],
    ) {
        let mut held = [self.start; N];
        held.copy_from_slice(sums);
        for (first, beside) in firsts.iter().zip(beside) {
            let line = &all[*first..*first + N];
            for (sum, x) in held.iter_mut().zip(line) {
                *sum = (self.add)(*sum, (self.wider)(change(*x, beside)));
            }
        }
        sums.copy_from_slice(&held);
    }
}
