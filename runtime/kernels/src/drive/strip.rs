//! A strip on its way into an accumulator, in the widest instructions.
//!
//! Must not know in which order strips come.
//!
//! ```text
//! strip of 64 lanes, sum   =>   the accumulator's lanes + the strip's;   two runs of 32   =>   two results
//! ```

use super::Driver;
use crate::accumulate::Accumulator;
use crate::machine::Machine;
use crate::segment::Segment;
use crate::wide::Job;
use ein_plan::DType;
use std::ops::Range;

/// The present strip, to be added to the accumulator.
pub(super) struct Strip<'r, 'p, 'a, 'm, 'c, 's> {
    pub driver: &'r Driver<'p, 'a>,
    pub machine: &'r Machine<'m, 'a>,
    pub accumulator: &'r mut Accumulator,
    /// Where the results are put that runs of its lanes are reduced into, each by itself, from an element of the columns on.
    pub results: Option<(&'c mut [Segment<'s>], usize)>,
}

impl Job for Strip<'_, '_, '_, '_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        let Strip {
            driver,
            machine,
            accumulator,
            mut results,
        } = self;
        let (lanes, nest) = (machine.extents.lanes(), &driver.program.nest);
        let (each, points) = match (&results, nest.output_lanes) {
            (Some(_), _) => (lanes / driver.results(machine).max(1), 0),
            (None, true) => (driver.results(machine), driver.points_of_row()),
            (None, false) => (nest.fold, nest.fold),
        };
        let (mut first, mut behind) = (0, 0);
        while first < lanes {
            let next = lanes.min(first + each);
            if results.is_some() {
                accumulator.reset(1);
            }
            driver.add(machine, accumulator, (first..next, behind));
            if let Some((columns, at)) = &mut results {
                let carrier = accumulator.carrier(0);
                driver.store(accumulator.rule, &carrier, columns, *at);
                *at += 1;
            }
            (first, behind) = (next, behind + points);
        }
    }
}

impl Driver<'_, '_> {
    /// How many points of the reduction, all of it counted, lie between two rows of a strip; only argmax and argmin look at them.
    fn points_of_row(&self) -> usize {
        let nest = &self.program.nest;
        let indices_behind = nest.strip[..nest.rows()]
            .first()
            .map(|index| self.ranges.len() - 1 - index);
        let extents = self.extents.iter().rev().take(indices_behind.unwrap_or(0));
        extents.product::<i64>() as usize
    }

    /// Adds some lanes to the accumulator, the first of which is so many points behind the first one of the strip.
    #[inline(always)]
    fn add(
        &self,
        machine: &Machine<'_, '_>,
        accumulator: &mut Accumulator,
        (lanes, behind): (Range<usize>, usize),
    ) {
        let program = self.program;
        let nest = &program.nest;
        let mask = program
            .guard
            .map(|guard| &machine.truths(guard)[lanes.clone()]);
        let mask = mask.filter(|mask| mask.contains(&0));
        // The numbers of the lanes' points among the reduced ones; only argmax and argmin look at them.
        let rank = self.ranges.len() - self.extents.len();
        let number_of = |point: &[i64]| {
            let reduced = point[rank..].iter().zip(self.extents);
            reduced.fold(0i64, |n, (p, extent)| {
                n.wrapping_mul(*extent).wrapping_add(*p)
            })
        };
        let first = number_of(&machine.point);
        let reduced = &nest.strip[nest.outputs..];
        let simple = nest.output_lanes || *reduced == [self.ranges.len() - 1];
        let step = i64::from(!nest.output_lanes);
        let number = |lane: usize| {
            if simple {
                first + behind as i64 + step * lane as i64
            } else {
                number_of(&self.point_of(machine, lanes.start + lane))
            }
        };
        let root = program.root;
        match program.value() {
            DType::F32 => accumulator.add_floats(&machine.f32s(root)[lanes.clone()], mask, number),
            DType::F64 => accumulator.add_floats(&machine.f64s(root)[lanes.clone()], mask, number),
            DType::I32 => {
                accumulator.add_integers(&machine.i32s(root)[lanes.clone()], mask, number)
            }
            DType::I64 => {
                accumulator.add_integers(&machine.i64s(root)[lanes.clone()], mask, number)
            }
            _ => accumulator.add_integers(&machine.truths(root)[lanes.clone()], mask, number),
        }
    }
}
