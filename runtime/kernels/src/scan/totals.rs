//! Running sums, products and extremes of elements as they lie, line by line.
//!
//! Every total is the one before and the next element, in that order, so that a total has the bits of the plain loop; lines beside each
//! other are gone through together, and those that are apart in parallel. Must not know guards.
//!
//! ```text
//! sum of 1 2 3 4, of which 0 1 3 4 are taken in   ->   0 1 6 10
//! ```

use super::lines::Lines;
use crate::Chunk;
use crate::carrier::Rule;
use crate::math::{max_nan, min_nan};
use crate::parallel;
use crate::program::place_of;
use crate::segment::Segment;
use crate::stream;
use crate::wide::{self, Job};
use ein_array::Data;
use ein_plan::schedule::access::{Place, lie, merged};
use ein_plan::{Kernel, Reduction};
use std::marker::PhantomData;
use std::ops::{Add, Mul};

/// Totals that are written together.
const BLOCK: usize = 512;
/// Elements that are looked at together: mostly none of them is a new extreme.
const RUN: usize = 64;
/// Lines beside each other that are gone through together.
const STRIP: usize = 1024;

/// Elements in lines: where each line begins, and how far its next element is; lines beside each other are neighbours.
pub(super) struct Lying<'a> {
    data: &'a Data,
    first: Vec<usize>,
    step: usize,
}

impl<'a> Lying<'a> {
    /// The value of a kernel, if its elements lie so: at the indices `output`, of which number `scanned` goes along the lines.
    pub(super) fn of(
        kernel: &Kernel,
        operands: &'a [Chunk<'a>],
        ranges: &[(i64, i64)],
        (output, scanned): (&[usize], usize),
        reduced: &[usize],
    ) -> Option<Lying<'a>> {
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        if reduced.iter().any(|i| lengths[*i] != 1) {
            return None;
        }
        let places: Vec<Place> = operands.iter().map(place_of).collect();
        let dtype = kernel.graph.dtype(kernel.root);
        let lie = lie(kernel, kernel.root, dtype, ranges, &places)?;
        let (outer, inner) = (&output[..scanned], &output[scanned + 1..]);
        let beside: usize = inner.iter().map(|i| lengths[*i]).product();
        if beside > 1 && merged(&lie.steps, inner, &lengths) != Some(1) {
            return None;
        }
        let data = operands[lie.operand].columns[lie.column].data();
        if !matches!(
            data,
            Data::F32(_) | Data::F64(_) | Data::I32(_) | Data::I64(_)
        ) {
            return None;
        }
        let base = lie.first(ranges, &[]) as usize;
        let distances = lie.distances(outer, &lengths);
        Some(Lying {
            data,
            first: distances.into_iter().map(|far| base + far).collect(),
            step: usize::try_from(lie.steps[output[scanned]]).ok()?,
        })
    }

    /// Values of a computed type, line after line.
    pub(super) fn partial(data: &'a Data, lines: &Lines) -> Lying<'a> {
        let line = lines.used * lines.inner;
        Lying {
            data,
            first: (0..lines.outer).map(|outer| outer * line).collect(),
            step: lines.inner,
        }
    }
}

/// The type that totals are computed in.
trait Total: Copy + Send + Sync {
    /// Writes totals from `at` on, past the caches if `streams`.
    fn write(to: &mut Segment<'_>, at: usize, totals: &[Self], streams: bool);
}

impl Total for f64 {
    #[inline(always)]
    fn write(to: &mut Segment<'_>, at: usize, totals: &[f64], streams: bool) {
        match to {
            Segment::F64(to) => stream::copy(&mut to[at..at + totals.len()], totals, streams),
            Segment::F32(to) => {
                let mut narrow = [0f32; BLOCK];
                let to = to[at..at + totals.len()].chunks_mut(BLOCK);
                for (to, totals) in to.zip(totals.chunks(BLOCK)) {
                    let narrow = &mut narrow[..totals.len()];
                    for (to, total) in narrow.iter_mut().zip(totals) {
                        *to = *total as f32;
                    }
                    stream::copy(to, narrow, streams);
                }
            }
            _ => to.set_floats(at, totals),
        }
    }
}

impl Total for i64 {
    #[inline(always)]
    fn write(to: &mut Segment<'_>, at: usize, totals: &[i64], streams: bool) {
        match to {
            Segment::I64(to) => stream::copy(&mut to[at..at + totals.len()], totals, streams),
            _ => to.set_integers(at, totals),
        }
    }
}

/// How a total takes in an element.
trait Operation<A>: Copy + Sync {
    /// Returns whether some elements leave a total as it is.
    const KEEPS: bool = false;
    /// The total with an element.
    fn next(total: A, x: A) -> A;
    /// True if the total stays as it is.
    fn keeps(_total: A, _x: A) -> bool {
        false
    }
}

#[derive(Clone, Copy)]
struct Sum;
#[derive(Clone, Copy)]
struct Product;
#[derive(Clone, Copy)]
struct Greatest;
#[derive(Clone, Copy)]
struct Least;

macro_rules! operations {
    ($type:ty, $sum:expr, $product:expr, $greatest:expr, $least:expr) => {
        impl Operation<$type> for Sum {
            #[inline(always)]
            fn next(total: $type, x: $type) -> $type {
                $sum(total, x)
            }
        }
        impl Operation<$type> for Product {
            #[inline(always)]
            fn next(total: $type, x: $type) -> $type {
                $product(total, x)
            }
        }
        impl Operation<$type> for Greatest {
            const KEEPS: bool = true;
            #[inline(always)]
            fn next(total: $type, x: $type) -> $type {
                $greatest(total, x)
            }
            #[inline(always)]
            fn keeps(total: $type, x: $type) -> bool {
                total >= x
            }
        }
        impl Operation<$type> for Least {
            const KEEPS: bool = true;
            #[inline(always)]
            fn next(total: $type, x: $type) -> $type {
                $least(total, x)
            }
            #[inline(always)]
            fn keeps(total: $type, x: $type) -> bool {
                total <= x
            }
        }
    };
}
operations!(f64, f64::add, f64::mul, max_nan, min_nan);
operations!(
    i64,
    i64::wrapping_add,
    i64::wrapping_mul,
    i64::max,
    i64::min
);

impl Lines {
    /// Fills a column with the totals of a sum, product or extreme, past the caches if that is asked for.
    pub(super) fn totals(&self, rule: Rule, lying: &Lying<'_>, to: (Segment<'_>, bool)) {
        let neutral = rule.neutral();
        let (float, integer) = (neutral.float, neutral.integer);
        match lying.data {
            Data::F32(all) => self.reduced(rule, (&all[..], lying), (float, f64::from), to),
            Data::F64(all) => self.reduced(rule, (&all[..], lying), (float, |x| x), to),
            Data::I32(all) => self.reduced(rule, (&all[..], lying), (integer, i64::from), to),
            Data::I64(all) => self.reduced(rule, (&all[..], lying), (integer, |x| x), to),
            _ => {}
        }
    }

    fn reduced<T: Copy + Sync, A: Total>(
        &self,
        rule: Rule,
        from: (&[T], &Lying<'_>),
        wide: (A, impl Fn(T) -> A + Copy + Sync),
        to: (Segment<'_>, bool),
    ) where
        Sum: Operation<A>,
        Product: Operation<A>,
        Greatest: Operation<A>,
        Least: Operation<A>,
    {
        match rule.reduction {
            Reduction::Max => self.each::<T, A, Greatest>(from, wide, to),
            Reduction::Min => self.each::<T, A, Least>(from, wide, to),
            Reduction::Prod => self.each::<T, A, Product>(from, wide, to),
            _ => self.each::<T, A, Sum>(from, wide, to),
        }
    }

    fn each<T: Copy + Sync, A: Total, O: Operation<A>>(
        &self,
        (all, lying): (&[T], &Lying<'_>),
        (start, wider): (A, impl Fn(T) -> A + Copy + Sync),
        (mut rest, streams): (Segment<'_>, bool),
    ) {
        let strips = self.inner.div_ceil(STRIP);
        let mut parts = Vec::with_capacity(self.outer * strips);
        for first in &lying.first {
            if strips == 1 {
                let part;
                (part, rest) = rest.split(self.outputs * self.inner);
                parts.push((*first, self.inner, vec![part]));
                continue;
            }
            let own = parts.len();
            let widths = (0..strips)
                .map(|strip| strip * STRIP)
                .map(|at| (at, STRIP.min(self.inner - at)));
            let strip = |(at, width)| (first + at, width, Vec::with_capacity(self.outputs));
            parts.extend(widths.map(strip));
            for _ in 0..self.outputs {
                for (_, width, rows) in &mut parts[own..] {
                    let part;
                    (part, rest) = rest.split(*width);
                    rows.push(part);
                }
            }
        }
        parallel::items(parts, |_, (first, width, to)| {
            let lines = Strip {
                lines: self,
                all: &all[first..],
                step: lying.step,
                start,
                wider,
                operation: PhantomData::<O>,
                width,
                to,
                streams,
            };
            wide::run(lines);
            stream::fence(streams);
        });
    }
}

/// Lines beside each other.
struct Strip<'t, 'a, T, A, W, O> {
    lines: &'t Lines,
    all: &'t [T],
    step: usize,
    start: A,
    wider: W,
    operation: PhantomData<O>,
    /// How many lines.
    width: usize,
    /// Their output points, point by point or all in one.
    to: Vec<Segment<'a>>,
    streams: bool,
}

impl<T: Copy, A: Total, W: Fn(T) -> A, O: Operation<A>> Job for Strip<'_, '_, T, A, W, O> {
    type Output = ();
    #[inline(always)]
    fn run<const BYTES: usize>(mut self) {
        let lines = self.lines;
        let mut totals = vec![self.start; self.width];
        self.repeat(0, lines.none, &totals);
        for number in 0..lines.before {
            self.take(number, &mut totals);
        }
        if let [total] = &mut totals[..] {
            self.line(total);
        } else {
            for number in 0..lines.each {
                self.take(lines.before + number, &mut totals);
                self.repeat(lines.none + number, 1, &totals);
            }
        }
        let taken = lines.none + lines.each;
        self.repeat(taken, lines.outputs - taken, &totals);
    }
}

impl<T: Copy, A: Total, W: Fn(T) -> A, O: Operation<A>> Strip<'_, '_, T, A, W, O> {
    /// Takes in element `number` of every line.
    #[inline(always)]
    fn take(&self, number: usize, totals: &mut [A]) {
        let row = &self.all[self.lines.element(number, 1) * self.step..][..totals.len()];
        for (total, x) in totals.iter_mut().zip(row) {
            *total = O::next(*total, (self.wider)(*x));
        }
    }

    /// Stores the same totals at `count` output points from number `output` on.
    #[inline(always)]
    fn repeat(&mut self, output: usize, count: usize, totals: &[A]) {
        for number in output..output + count {
            let place = self.lines.output(number, 1);
            match &mut self.to[..] {
                [all] => A::write(all, place * self.width, totals, self.streams),
                rows => A::write(&mut rows[place], 0, totals, self.streams),
            }
        }
    }

    /// The totals of one line, where each output point takes in one element more.
    #[inline(always)]
    fn line(&mut self, total: &mut A) {
        let lines = self.lines;
        let mut totals = [self.start; BLOCK];
        for first in (0..lines.each).step_by(BLOCK) {
            let count = BLOCK.min(lines.each - first);
            let totals = &mut totals[..count];
            let low = lines.element(lines.before + first, count);
            if self.step == 1 {
                let block = &self.all[low..low + count];
                let runs = totals.chunks_mut(RUN).zip(block.chunks(RUN));
                match lines.backward() {
                    false => runs.for_each(|(to, run)| self.run_of(total, to, run)),
                    true => runs.rev().for_each(|(to, run)| self.run_of(total, to, run)),
                }
            } else {
                for number in 0..count {
                    let at = match lines.backward() {
                        true => count - 1 - number,
                        false => number,
                    };
                    *total = O::next(*total, (self.wider)(self.all[(low + at) * self.step]));
                    totals[at] = *total;
                }
            }
            let place = lines.output(lines.none + first, count);
            match &mut self.to[..] {
                [all] => A::write(all, place, totals, self.streams),
                rows => {
                    for (row, total) in rows[place..].iter_mut().zip(totals.chunks(1)) {
                        A::write(row, 0, total, false);
                    }
                }
            }
        }
    }

    /// The totals of a few elements beside each other.
    #[inline(always)]
    fn run_of(&self, total: &mut A, totals: &mut [A], elements: &[T]) {
        let start = *total;
        let keeps = |x: &T| O::keeps(start, (self.wider)(*x));
        if O::KEEPS && elements.iter().fold(true, |all, x| all & keeps(x)) {
            totals.fill(start);
            return;
        }
        let pairs = totals.iter_mut().zip(elements);
        let mut next = |(to, x): (&mut A, &T)| {
            *total = O::next(*total, (self.wider)(*x));
            *to = *total;
        };
        match self.lines.backward() {
            false => pairs.for_each(&mut next),
            true => pairs.rev().for_each(&mut next),
        }
    }
}
