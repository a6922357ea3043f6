//! One task of a run: its units one after another, each step by step.
//!
//! Must not know how units are shared out.
//!
//! ```text
//! units 16..32 of 64 lanes, one step each:   point n = 16, levels 1 and 2; n = 17, level 2; …
//! ```

use super::Driver;
use super::held::Held;
use super::strip::Strip;
use crate::accumulate::Accumulator;
use crate::column::{Column, Passage, SideReduction};
use crate::machine::Machine;
use crate::nest::Axis;
use crate::odometer::Odometer;
use crate::segment::Segment;
use crate::store::store_values;
use crate::stream::{self, Ahead};
use crate::wide;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl<'p, 'a> Driver<'p, 'a> {
    /// Some units, one after another, into their part of the columns.
    pub(super) fn run_task(
        &self,
        units: Range<u64>,
        mut columns: Vec<Segment<'_>>,
    ) -> Option<Vec<i64>> {
        if self.program.direct || !self.over.is_empty() {
            let column = |segment| match self.streams {
                true => Column::Past(segment),
                false => Column::There(segment),
            };
            let mut columns: Vec<Column<'_>> = columns.into_iter().map(column).collect();
            self.run_through(units, &mut columns, &mut []);
            return None;
        }
        let steps = self.count(&self.program.nest.step);
        let rule = self.rule();
        let mut at = 0;
        let fault = self.walk(units, 0..steps, |machine, accumulator, _| {
            let lanes = self.results(machine);
            match rule {
                Some(_) if self.program.nest.several() => {
                    wide::run(Strip {
                        driver: self,
                        machine,
                        accumulator,
                        results: Some((&mut columns, at)),
                    });
                }
                Some(_) => accumulator.store(lanes, self.finish, (&mut columns, at)),
                None => store_values(machine, &mut columns[0], at, self.streams),
            }
            at += lanes;
        });
        stream::fence(self.streams);
        fault
    }

    /// Some units of a program that goes from memory to memory, or over an operand, one after another, into their part of the columns.
    pub(super) fn run_through(
        &self,
        units: Range<u64>,
        columns: &mut [Column<'_>],
        side_reductions: &mut [SideReduction],
    ) {
        let program = self.program;
        let Some((inner, outer)) = program.levels.split_last() else {
            return;
        };
        let mut machine = self.machine();
        let mut loops = self.odometer(&program.nest.unit);
        machine.execute(0);
        loops.set(units.start);
        let (mut moved, mut at, mut passage) = (0, 0, Passage::default());
        for _ in units {
            self.place(&mut machine, &loops, moved);
            for level in moved + 1..outer.len() {
                machine.execute(level);
            }
            let lanes = machine.extents.lanes();
            if program.direct {
                machine.through(
                    inner,
                    (columns, side_reductions),
                    at..at + lanes,
                    &mut passage,
                );
            } else if let Some(column) = columns[0].segment() {
                machine.take(inner, column, at);
                machine.execute(outer.len());
                store_values(&machine, column, at, false);
            }
            at += lanes;
            moved = loops.advance();
        }
        stream::fence(
            columns
                .iter()
                .any(|column| matches!(column, Column::Past(_))),
        );
    }

    /// Walks through some steps of some units; `done` sees each unit at its end. The lowest faulty point.
    pub(crate) fn walk(
        &self,
        units: Range<u64>,
        steps: Range<u64>,
        mut done: impl FnMut(&Machine<'_, '_>, &mut Accumulator, u64),
    ) -> Option<Vec<i64>> {
        if units.is_empty() || units.start > self.faulty.load(Ordering::Relaxed) {
            return None;
        }
        let program = self.program;
        let nest = &program.nest;
        let mut machine = self.machine();
        let mut accumulator = match self.rule() {
            Some(rule) if nest.output_lanes => {
                Accumulator::of_lanes(rule, nest.tiles[nest.of_output()].iter().product())
            }
            Some(rule) => Accumulator::folding(rule),
            None => Accumulator::none(program.value()),
        };
        let mut held = Held::of(program);
        let mut unit_loops = self.odometer(&nest.unit);
        let mut step_loops = self.odometer(&nest.step);
        let mut fault: Option<Vec<i64>> = None;
        let most = self.most();
        machine.execute(0);
        unit_loops.set(units.start);
        let mut moved = 0;
        for unit in units {
            self.place(&mut machine, &unit_loops, moved);
            // Values that follow from the outputs are computed for all rows that a strip may have.
            machine.extents.sizes[..nest.rows()].copy_from_slice(&most[..nest.rows()]);
            for level in moved + 1..=nest.unit.len() {
                machine.execute(level);
            }
            if program.reduction.is_some() {
                accumulator.reset(self.results(&machine));
            }
            if !steps.is_empty() {
                step_loops.set(steps.start);
            }
            let mut moved_step = 0;
            for _ in steps.clone() {
                self.place(&mut machine, &step_loops, moved_step);
                for level in moved_step + 1..=nest.step.len() {
                    machine.execute(nest.unit.len() + level);
                }
                if let Some(point) = self.poisoned(&machine) {
                    let lower = fault.as_ref().is_none_or(|found| point < *found);
                    if lower {
                        fault = Some(point);
                    }
                    if !nest.output_lanes {
                        break;
                    }
                }
                let reduces = program.reduction.is_some() && fault.is_none() && !nest.several();
                if reduces && !held.holds(&machine, &mut accumulator) {
                    wide::run(Strip {
                        driver: self,
                        machine: &machine,
                        accumulator: &mut accumulator,
                        results: None,
                    });
                }
                if let Ahead::Soon(soon) = self.ahead {
                    soon.ask(machine.extents.lanes());
                }
                moved_step = step_loops.advance();
            }
            held.add(&mut accumulator);
            if fault.is_some() {
                self.faulty.fetch_min(unit, Ordering::Relaxed);
                return fault;
            }
            done(&machine, &mut accumulator, unit);
            moved = unit_loops.advance();
        }
        None
    }

    /// Sets the indices of the axes from `from` on.
    pub(crate) fn place(&self, machine: &mut Machine<'_, '_>, loops: &Odometer<'_>, from: usize) {
        for (axis, at) in loops.axes.iter().zip(&loops.at).skip(from) {
            match axis {
                Axis::Index(i) => machine.point[*i] = self.ranges[*i].0 + *at as i64,
                Axis::Tile(d) => {
                    let nest = &self.program.nest;
                    let (start, length) = self.ranges[nest.strip[*d]];
                    let first = *at as i64 * nest.tiles[*d] as i64;
                    machine.point[nest.strip[*d]] = start + first;
                    machine.extents.sizes[*d] =
                        (length - first).min(nest.tiles[*d] as i64) as usize;
                }
            }
        }
    }

    /// The lowest point of the strip whose fault reaches the root.
    pub(super) fn poisoned(&self, machine: &Machine<'_, '_>) -> Option<Vec<i64>> {
        let program = self.program;
        let of_root = machine.poison(program.root);
        let of_guard = program.guard.and_then(|guard| machine.poison(guard));
        if of_root.is_none() && of_guard.is_none() {
            return None;
        }
        let guard = program.guard.map(|guard| machine.truths(guard));
        let mut faulty = (0..machine.extents.lanes()).filter(|l| {
            let set = |mask: Option<&[u8]>| mask.is_some_and(|mask| mask[*l] != 0);
            set(of_guard) || (set(of_root) && guard.is_none_or(|guard| guard[*l] != 0))
        });
        let point = |lane| self.point_of(machine, lane);
        match program.nest.rows() {
            0 => faulty.next().map(point),
            _ => faulty.map(point).min(),
        }
    }

    /// All indices at a lane.
    pub(super) fn point_of(&self, machine: &Machine<'_, '_>, mut lane: usize) -> Vec<i64> {
        let mut point = machine.point.clone();
        let strip = &self.program.nest.strip;
        for (index, size) in strip.iter().zip(&machine.extents.sizes).rev() {
            point[*index] += (lane % size) as i64;
            lane /= size;
        }
        point
    }
}
