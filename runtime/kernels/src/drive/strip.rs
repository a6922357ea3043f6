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
pub(super) struct Strip<'r, 'p, 'a, 'm> {
    pub driver: &'r Driver<'p, 'a>,
    pub machine: &'r Machine<'m, 'a>,
    pub accumulator: &'r mut Accumulator,
}

impl Job for Strip<'_, '_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        (self.driver).accumulate_here(self.machine, self.accumulator);
    }
}

/// Each run of lanes of the present strip, to be reduced into a result, from an element of the columns on.
pub(super) struct Runs<'r, 'p, 'a, 'm, 'c, 's> {
    pub driver: &'r Driver<'p, 'a>,
    pub machine: &'r Machine<'m, 'a>,
    pub accumulator: &'r mut Accumulator,
    pub to: (&'c mut [Segment<'s>], usize),
}

impl Job for Runs<'_, '_, '_, '_, '_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        (self.driver).accumulate_runs_here(self.machine, self.accumulator, self.to);
    }
}

impl Driver<'_, '_> {
    /// Adds the present strip to the accumulator, in the instructions of the caller.
    #[inline(always)]
    fn accumulate_here(&self, machine: &Machine<'_, '_>, accumulator: &mut Accumulator) {
        let (lanes, nest) = (machine.extents.lanes(), &self.program.nest);
        let (each, points) = match nest.output_lanes {
            true => (self.results(machine), self.points_of_row()),
            false => (nest.fold, nest.fold),
        };
        let (mut first, mut behind) = (0, 0);
        while first < lanes {
            let next = lanes.min(first + each);
            self.add(machine, accumulator, (first..next, behind));
            (first, behind) = (next, behind + points);
        }
    }

    /// How many points of the reduction, all of it counted, lie between two rows of a strip; only argmax and argmin look at them.
    fn points_of_row(&self) -> usize {
        let nest = &self.program.nest;
        let indices_behind = nest.strip[..nest.rows()]
            .first()
            .map(|index| self.ranges.len() - 1 - index);
        let extents = self.extents.iter().rev().take(indices_behind.unwrap_or(0));
        extents.product::<i64>() as usize
    }

    /// Reduces each run of lanes of the present strip into a result, from element `at` of the columns on.
    #[inline(always)]
    fn accumulate_runs_here(
        &self,
        machine: &Machine<'_, '_>,
        accumulator: &mut Accumulator,
        (columns, at): (&mut [Segment<'_>], usize),
    ) {
        let results = self.results(machine);
        let points = machine.extents.lanes() / results.max(1);
        for result in 0..results {
            accumulator.reset(1);
            let lanes = result * points..(result + 1) * points;
            self.add(machine, accumulator, (lanes, 0));
            let carrier = accumulator.carrier(0);
            self.store(accumulator.rule, &carrier, columns, at + result);
        }
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
