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
use crate::wide::{self, Job};
use ein_array::Data;
use ein_plan::schedule::access::{Place, lie, merged};
use ein_plan::{Kernel, Reduction};

/// Totals that are written together.
const BLOCK: usize = 512;

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
        if !matches!(data, Data::F32(_) | Data::F64(_) | Data::I64(_)) {
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
    fn write(to: &mut Segment<'_>, at: usize, totals: &[Self]);
}

impl Total for f64 {
    fn write(to: &mut Segment<'_>, at: usize, totals: &[f64]) {
        to.set_floats(at, totals);
    }
}

impl Total for i64 {
    fn write(to: &mut Segment<'_>, at: usize, totals: &[i64]) {
        to.set_integers(at, totals);
    }
}

impl Lines {
    /// Fills a column with the totals of a sum, product or extreme.
    pub(super) fn totals(&self, rule: Rule, lying: &Lying<'_>, to: Segment<'_>) {
        let neutral = rule.neutral();
        macro_rules! floats {
            ($all:expr, $wider:expr) => {{
                let start = neutral.float;
                match rule.reduction {
                    Reduction::Max => self.each($all, lying, (start, $wider, max_nan), to),
                    Reduction::Min => self.each($all, lying, (start, $wider, min_nan), to),
                    Reduction::Prod => self.each($all, lying, (start, $wider, |x, y| x * y), to),
                    _ => self.each($all, lying, (start, $wider, |x, y| x + y), to),
                }
            }};
        }
        let (start, own) = (neutral.integer, |x: i64| x);
        match lying.data {
            Data::F32(all) => floats!(all, |x: f32| f64::from(x)),
            Data::F64(all) => floats!(all, |x: f64| x),
            Data::I64(all) => match rule.reduction {
                Reduction::Max => self.each(all, lying, (start, own, i64::max), to),
                Reduction::Min => self.each(all, lying, (start, own, i64::min), to),
                Reduction::Prod => self.each(all, lying, (start, own, i64::wrapping_mul), to),
                _ => self.each(all, lying, (start, own, i64::wrapping_add), to),
            },
            _ => {}
        }
    }

    fn each<T: Copy + Sync, A: Total>(
        &self,
        all: &[T],
        lying: &Lying<'_>,
        (start, wider, next): (
            A,
            impl Fn(T) -> A + Copy + Sync,
            impl Fn(A, A) -> A + Copy + Sync,
        ),
        to: Segment<'_>,
    ) {
        let (mut parts, mut rest) = (Vec::with_capacity(self.outer), to);
        for first in &lying.first {
            let part;
            (part, rest) = rest.split(self.outputs * self.inner);
            parts.push((*first, part));
        }
        parallel::items(parts, |_, (first, to)| {
            wide::run(Line {
                lines: self,
                all: &all[first..],
                step: lying.step,
                start,
                wider,
                next,
                to,
            });
        });
    }
}

/// Lines beside each other.
struct Line<'t, 'a, T, A, W, F> {
    lines: &'t Lines,
    all: &'t [T],
    step: usize,
    start: A,
    wider: W,
    next: F,
    to: Segment<'a>,
}

impl<T: Copy, A: Total, W: Fn(T) -> A, F: Fn(A, A) -> A> Job for Line<'_, '_, T, A, W, F> {
    type Output = ();
    #[inline(always)]
    fn run(mut self) {
        let lines = self.lines;
        let mut totals = vec![self.start; lines.inner];
        self.repeat(0, lines.none, &totals);
        for number in 0..lines.before {
            self.take(number, &mut totals);
        }
        if let [total] = &mut totals[..] {
            self.neighbours(total);
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

impl<T: Copy, A: Total, W: Fn(T) -> A, F: Fn(A, A) -> A> Line<'_, '_, T, A, W, F> {
    /// Takes in element `number` of every line.
    #[inline(always)]
    fn take(&self, number: usize, totals: &mut [A]) {
        let row = &self.all[self.lines.element(number, 1) * self.step..][..totals.len()];
        for (total, x) in totals.iter_mut().zip(row) {
            *total = (self.next)(*total, (self.wider)(*x));
        }
    }

    /// Stores the same totals at `count` output points from number `output` on.
    #[inline(always)]
    fn repeat(&mut self, output: usize, count: usize, totals: &[A]) {
        for number in output..output + count {
            let place = self.lines.output(number, 1) * self.lines.inner;
            A::write(&mut self.to, place, totals);
        }
    }

    /// The totals of one line, where each output point takes in one element more.
    #[inline(always)]
    fn neighbours(&mut self, total: &mut A) {
        let lines = self.lines;
        let mut totals = [self.start; BLOCK];
        for first in (0..lines.each).step_by(BLOCK) {
            let count = BLOCK.min(lines.each - first);
            let totals = &mut totals[..count];
            let low = lines.element(lines.before + first, count);
            let mut next = |x: T| {
                *total = (self.next)(*total, (self.wider)(x));
                *total
            };
            match (self.step, lines.backward()) {
                (1, false) => {
                    let pairs = totals.iter_mut().zip(&self.all[low..low + count]);
                    pairs.for_each(|(to, x)| *to = next(*x));
                }
                (1, true) => {
                    let pairs = totals.iter_mut().zip(&self.all[low..low + count]);
                    pairs.rev().for_each(|(to, x)| *to = next(*x));
                }
                (step, backward) => {
                    for number in 0..count {
                        let at = if backward { count - 1 - number } else { number };
                        totals[at] = next(self.all[(low + at) * step]);
                    }
                }
            }
            let place = lines.output(lines.none + first, count);
            A::write(&mut self.to, place, totals);
        }
    }
}
