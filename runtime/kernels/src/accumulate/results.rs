//! The results of accumulators: those of many lanes are written, and put together, at once.
//!
//! Must not know strips.
//!
//! ```text
//! sums 1 2 3 of one half, 4 0 1 of the other   ->   5 2 4, to elements 6 7 8 of f32
//! ```

use super::Accumulator;
use crate::carrier::Carrier;
use crate::math::{max_nan, min_nan};
use crate::segment::Segment;
use crate::wide::{self, Job};
use ein_plan::Reduction;
use std::mem::take;

impl Accumulator {
    /// Takes the first `results` results: lanes that others can be merged into. Nothing is left.
    pub(crate) fn take(&mut self, results: usize) -> Accumulator {
        let mut taken = Accumulator {
            rule: self.rule,
            folds: false,
            squares: false,
            float: take(&mut self.float),
            second: take(&mut self.second),
            integer: take(&mut self.integer),
            number: take(&mut self.number),
        };
        if !self.is_plain() {
            let kept = Accumulator {
                folds: self.folds,
                squares: self.squares,
                ..taken
            };
            taken = Accumulator::of_lanes(self.rule, results);
            taken.squares = false;
            for lane in 0..results {
                taken.set(lane, &kept.carrier(lane));
            }
        }
        taken.float.truncate(results);
        taken.second.truncate(results);
        taken.integer.truncate(results);
        taken.number.truncate(results);
        taken
    }

    /// Merges partial results of the points behind those of this one, which are as many.
    pub(crate) fn merge(&mut self, next: &Accumulator) {
        wide::run(Merge { to: self, next });
    }

    /// Writes the first `results` results to the elements of the columns from `at` on, as values if they are finished, else as carriers.
    pub(crate) fn store(
        &self,
        results: usize,
        finish: bool,
        (columns, at): (&mut [Segment<'_>], usize),
    ) {
        use Reduction as R;
        let reduction = self.rule.reduction;
        let is_float = self.rule.value.is_float();
        let computed = match reduction {
            R::Mean | R::LogSumExp | R::Norm => finish,
            _ => false,
        };
        let [first, rest @ ..] = &mut *columns else {
            return;
        };
        if !self.is_plain() || computed {
            for lane in 0..results {
                let carrier = self.carrier(lane);
                match finish {
                    true => self.rule.finish(&carrier, &mut columns[0], at + lane),
                    false => self.rule.store(&carrier, columns, at + lane),
                }
            }
            return;
        }
        match (finish && reduction.is_arg(), is_float) {
            (true, _) => first.set_integers(at, &self.number[..results]),
            (false, true) => first.set_floats(at, &self.float[..results]),
            (false, false) => first.set_integers(at, &self.integer[..results]),
        }
        match (rest.first_mut().filter(|_| !finish), reduction) {
            (Some(second), R::LogSumExp | R::Norm) => {
                second.set_floats(at, &self.second[..results]);
            }
            (Some(second), _) => second.set_integers(at, &self.number[..results]),
            (None, _) => {}
        }
    }

    /// Returns whether lanes are results, and what is kept of them is carriers.
    fn is_plain(&self) -> bool {
        !self.folds && !self.squares
    }

    fn set(&mut self, lane: usize, carrier: &Carrier) {
        let Carrier {
            float,
            second,
            integer,
            number,
        } = *carrier;
        self.float
            .get_mut(lane)
            .into_iter()
            .for_each(|x| *x = float);
        self.second
            .get_mut(lane)
            .into_iter()
            .for_each(|x| *x = second);
        self.integer
            .get_mut(lane)
            .into_iter()
            .for_each(|x| *x = integer);
        self.number
            .get_mut(lane)
            .into_iter()
            .for_each(|x| *x = number);
    }
}

/// Partial results, and those that are merged into them.
struct Merge<'m> {
    to: &'m mut Accumulator,
    next: &'m Accumulator,
}

impl Job for Merge<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        use Reduction as R;
        let Merge { to, next } = self;
        let floats = to.float.iter_mut().zip(&next.float);
        match to.rule.reduction {
            R::Sum | R::Norm1 | R::Mean if to.rule.value.is_float() => {
                floats.for_each(|(a, b)| *a += b);
                let numbers = to.number.iter_mut().zip(&next.number);
                numbers.for_each(|(a, b)| *a += b);
            }
            R::Max | R::NormInf if to.rule.value.is_float() => {
                floats.for_each(|(a, b)| *a = max_nan(*a, *b));
            }
            R::Min if to.rule.value.is_float() => {
                floats.for_each(|(a, b)| *a = min_nan(*a, *b));
            }
            _ => {
                let rule = to.rule;
                for lane in 0..next.float.len().max(next.integer.len()) {
                    let mut total = to.carrier(lane);
                    rule.merge(&mut total, &next.carrier(lane));
                    to.set(lane, &total);
                }
            }
        }
    }
}
