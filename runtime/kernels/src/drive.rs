//! Runs a program over its loops: units of output points in parallel, the steps of each one after another.
//!
//! Tasks have sizes that depend on the kernel and its ranges only, so neither results nor faults depend on
//! the number of threads. Must not know what operations do.
//!
//! ```text
//! 4096 outputs, 1 step each:  tasks of 65536 points     1 output, 10^7 points:  64 parts, merged in order
//! ```

mod held;
mod patches;
mod strip;
mod task;
mod within;

use crate::carrier::{Carrier, Rule};
use crate::column::{Column, SideReduction};
use crate::explain::explain;
use crate::machine::Machine;
use crate::memo::{self, Key, Memo, OperandLayout, Purpose, Ready};
use crate::nest::{Axis, MANY};
use crate::odometer::Odometer;
use crate::parallel;
use crate::program::{Program, Request, place_of};
use crate::segment::Segment;
use crate::stream::Ahead;
use crate::{Chunk, Fusion, KernelError, Ranges, direct, memory, signed, stream};
use ein_array::Array;
use ein_plan::Kernel;
use ein_plan::schedule::access::Place;
use std::sync::atomic::AtomicU64;

/// Points that are worth a task of their own.
const TASK: u64 = 1 << 16;
/// Most parts of one reduction.
const PARTS: u64 = 64;

/// Evaluates a kernel strip by strip at some of all points; `memo` keeps its program for the next time, when they may be others.
pub(crate) fn run(
    kernel: &Kernel,
    (ranges, all): (&Ranges, &Ranges),
    operands: &[Chunk<'_>],
    fusion: Fusion,
    memo: Option<&Memo>,
) -> Result<Vec<Array>, KernelError> {
    let rank = kernel.output_rank as usize;
    let shape: Vec<usize> = ranges[..rank].iter().map(|(_, n)| *n as usize).collect();
    let mut columns: Vec<Array> = kernel
        .output
        .iter()
        .map(|dtype| memory::room(*dtype, &shape))
        .collect();
    let make = |times| program(kernel, (ranges, all), operands, (fusion, true), times);
    let key = Key {
        kernel: None,
        ranges: all,
        purpose: match ranges == all {
            true => Purpose::Whole,
            false => Purpose::Some(ranges.iter().map(|(_, n)| *n).collect()),
        },
        layout: OperandLayout::As(operands),
    };
    let ready = memo::program(memo, key, make);
    let signed = signed(ranges);
    let extents: Vec<i64> = kernel.indices[rank..]
        .iter()
        .map(|index| index.extent as i64)
        .collect();
    let far = columns
        .iter()
        .any(|column| column.data().bytes().len() >= stream::FAR);
    let mut fill = |program: &Program<'static>| {
        let segments = columns.iter_mut();
        let segments = segments.map(|array| Segment::of(array.data_mut()));
        Driver::new(program, &signed, &extents, kernel.finish)
            .reading(operands)
            .streaming(far)
            .run(segments.collect())
    };
    let mut faulty = fill(&ready.program);
    if faulty.is_some() && ready.program.nest.patch {
        // Patches are not in the order of points: strips find the lowest one.
        faulty = fill(&program(kernel, (ranges, all), operands, (fusion, false), 1).program);
    }
    match faulty {
        None => Ok(columns),
        Some(point) => Err(explain(kernel, operands, point)),
    }
}

/// The program of a kernel, of operands that lie where these do, at as many points as `ranges` has, anywhere in `all`. It stands for so many runs
/// since it was made last.
fn program(
    kernel: &Kernel,
    (ranges, all): (&Ranges, &Ranges),
    operands: &[Chunk<'_>],
    (fusion, patches): (Fusion, bool),
    times: u64,
) -> Ready {
    let rank = kernel.output_rank as usize;
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let ranges = signed(all);
    let output: Vec<usize> = (0..rank).collect();
    let reduced: Vec<usize> = (rank..ranges.len()).collect();
    let axes = (output.as_slice(), reduced.as_slice());
    let places: Vec<Place> = operands.iter().map(place_of).collect();
    let request = Request {
        patches,
        ..Request::of_kernel(kernel, &[], axes, &ranges, &lengths)
    };
    let points = lengths
        .iter()
        .fold(1u64, |n, l| n.saturating_mul(*l as u64));
    let (program, complete) = direct::program(&request, &places, kernel, (points, times), fusion);
    Ready {
        program,
        parts: None,
        complete,
    }
}

/// One run of a program over ranges.
pub(crate) struct Driver<'p, 'a> {
    program: &'p Program<'a>,
    /// What is read, and how many first elements of each operand are not there (see [`Machine::on`]).
    operands: (&'a [Chunk<'a>], &'p [i64]),
    /// Into how many parts a reduction is cut, if that is decided.
    parts: Option<u64>,
    /// Whether values are written past the caches.
    streams: bool,
    /// The operands that results take the place of, with the columns, if the program [may](Program::may_be_over).
    over: &'p [(usize, usize)],
    /// What is asked for of memory meanwhile.
    ahead: Ahead<'p>,
    ranges: &'p [(i64, i64)],
    /// Global extents of the reduced indices: what the numbers of `argmax` count.
    extents: &'p [i64],
    finish: bool,
    /// The lowest unit that is known to be faulty.
    faulty: AtomicU64,
}

impl<'p, 'a> Driver<'p, 'a> {
    pub(crate) fn new(
        program: &'p Program<'a>,
        ranges: &'p [(i64, i64)],
        extents: &'p [i64],
        finish: bool,
    ) -> Self {
        Driver {
            program,
            operands: (program.operands, &[]),
            parts: None,
            streams: false,
            over: &[],
            ahead: Ahead::Next,
            ranges,
            extents,
            finish,
            faulty: AtomicU64::new(u64::MAX),
        }
    }

    /// The same on these operands.
    pub(crate) fn reading(self, operands: &'a [Chunk<'a>]) -> Self {
        Driver {
            operands: (operands, &[]),
            ..self
        }
    }

    /// The same on these operands, each reduction cut into so many parts.
    pub(crate) fn on(self, operands: (&'a [Chunk<'a>], &'p [i64]), parts: u64) -> Self {
        Driver {
            operands,
            parts: Some(parts),
            ..self
        }
    }

    /// The same, writing over operands, each of which a column holds the elements of: their chunks have none.
    pub(crate) fn over(self, over: &'p [(usize, usize)]) -> Self {
        Driver { over, ..self }
    }

    /// The same, writing past the caches if that is asked for and the result is over nothing.
    pub(crate) fn streaming(self, streams: bool) -> Self {
        let streams = streams && self.over.is_empty();
        Driver { streams, ..self }
    }

    /// The same, asking for this meanwhile.
    pub(crate) fn ahead(self, ahead: Ahead<'p>) -> Self {
        Driver { ahead, ..self }
    }

    fn odometer<'b>(&self, axes: &'b [Axis]) -> Odometer<'b> {
        let counts = axes
            .iter()
            .map(|axis| match axis {
                Axis::Index(i) => self.ranges[*i].1 as u64,
                Axis::Tile(d) => {
                    let nest = &self.program.nest;
                    (self.ranges[nest.strip[*d]].1 as u64).div_ceil(nest.tiles[*d] as u64)
                }
            })
            .collect();
        Odometer {
            axes,
            counts,
            at: vec![0; axes.len()],
        }
    }

    fn count(&self, axes: &[Axis]) -> u64 {
        self.odometer(axes).counts.iter().product()
    }

    /// A machine at the first values of all indices.
    fn machine(&self) -> Machine<'p, 'a> {
        let start = self.ranges.iter().map(|(start, _)| *start).collect();
        let mut machine = Machine::on(self.program, self.operands, start, false);
        machine.extents.sizes = self.most();
        machine.most = machine.extents.lanes().min(self.program.nest.width);
        machine.over = self.over;
        machine.ahead = self.ahead;
        machine
    }

    /// The most values of each index of the strip that a strip has.
    fn most(&self) -> Vec<usize> {
        let nest = &self.program.nest;
        let dims = nest.strip.iter().zip(&nest.tiles);
        let most = dims.map(|(index, tile)| (self.ranges[*index].1 as usize).clamp(1, *tile));
        most.collect()
    }

    /// Number of units.
    pub(crate) fn units(&self) -> u64 {
        self.count(&self.program.nest.unit)
    }

    /// Number of output points before a unit.
    pub(crate) fn outputs_before(&self, unit: u64) -> usize {
        let nest = &self.program.nest;
        if nest.outputs == 0 {
            return unit as usize;
        }
        let length = |d: usize| self.ranges[nest.strip[d]].1 as u64;
        let (first, tile) = (nest.rows(), nest.tiles[nest.rows()] as u64);
        let rest: u64 = nest.of_output().skip(1).map(length).product();
        let tiles = length(first).div_ceil(tile).max(1);
        let within = ((unit % tiles) * tile).min(length(first));
        (((unit / tiles) * length(first) + within) * rest) as usize
    }

    /// Fills the columns; the lowest faulty point, if there is one.
    pub(crate) fn run(&self, columns: Vec<Segment<'_>>) -> Option<Vec<i64>> {
        let nest = &self.program.nest;
        let (units, steps) = (self.count(&nest.unit), self.count(&nest.step));
        let outputs = self.outputs_before(units) as u64;
        if units == 0 || outputs == 0 {
            return None;
        }
        if nest.patch {
            return self.run_patches(columns);
        }
        let points = self.points();
        let parts = self.parts();
        if parts > 1 {
            return self.run_parts(columns, units, steps, parts);
        }
        let each = (TASK / (points / units).max(1)).max(1);
        let tasks = units.div_ceil(each);
        if tasks == 1 {
            return self.run_task(0..units, columns);
        }
        let mut parts = Vec::with_capacity(tasks as usize);
        let mut rest = columns;
        for task in 0..tasks {
            let range = task * each..((task + 1) * each).min(units);
            let length = self.outputs_before(range.end) - self.outputs_before(range.start);
            let (heads, tails): (Vec<_>, Vec<_>) =
                rest.into_iter().map(|column| column.split(length)).unzip();
            rest = tails;
            parts.push((range, heads));
        }
        let task = |(): &mut (), _, (range, columns)| self.run_task(range, columns);
        let faults = parallel::map_with(parts, || (), task).into_iter();
        faults.flatten().min()
    }

    /// All units, one after another; the lowest faulty point, if there is one.
    pub(crate) fn run_here(&self, columns: Vec<Segment<'_>>) -> Option<Vec<i64>> {
        let units = self.units();
        match self.parts() {
            1 => self.run_task(0..units, columns),
            parts => self.run_parts(columns, units, self.count(&self.program.nest.step), parts),
        }
    }

    /// All units of a program that goes from memory to memory, one after another.
    pub(crate) fn run_columns(
        &self,
        columns: &mut [Column<'_>],
        side_reductions: &mut [SideReduction],
    ) {
        self.run_through(0..self.units(), columns, side_reductions);
    }

    /// What the one reduction of a program without output indices comes to; else the lowest faulty point.
    pub(crate) fn carrier(&self) -> Result<Carrier, Vec<i64>> {
        let steps = self.count(&self.program.nest.step);
        let mut found = Carrier::default();
        let fault = self.walk(0..1, 0..steps, |_, accumulator, _| {
            found = accumulator.carrier(0);
        });
        fault.map_or(Ok(found), Err)
    }

    fn points(&self) -> u64 {
        let lengths = self.ranges.iter().map(|(_, length)| *length as u64);
        lengths.fold(1, u64::saturating_mul)
    }

    /// Into how many parts each reduction is cut: more than one where there are few long ones.
    pub(crate) fn parts(&self) -> u64 {
        if let Some(parts) = self.parts {
            return parts;
        }
        let nest = &self.program.nest;
        let (units, steps) = (self.count(&nest.unit), self.count(&nest.step));
        let points = self.points();
        if self.program.reduction.is_none()
            || units >= MANY as u64
            || steps <= 1
            || points < 4 * TASK
        {
            return 1;
        }
        let each = (points / units.max(1)).div_ceil(TASK);
        each.min(PARTS).min(steps).max(1)
    }

    /// All units, one after another, into one column; the lowest faulty point, if there is one.
    pub(crate) fn fill(&self, column: Segment<'_>) -> Option<Vec<i64>> {
        let units = self.count(&self.program.nest.unit);
        self.run_task(0..units, vec![column])
    }

    /// A few long reductions: each in several parts, which are merged in order.
    fn run_parts(
        &self,
        mut columns: Vec<Segment<'_>>,
        units: u64,
        steps: u64,
        parts: u64,
    ) -> Option<Vec<i64>> {
        let mut results = parallel::map((units * parts) as usize, |task| {
            let (unit, part) = (task as u64 / parts, task as u64 % parts);
            let range = part * steps / parts..(part + 1) * steps / parts;
            let mut partial = None;
            let fault = self.walk(unit..unit + 1, range, |machine, accumulator, _| {
                let lanes = self.results(machine);
                partial = Some((accumulator.take(lanes), lanes));
            });
            (partial, fault)
        });
        if let Some(point) = results.iter().filter_map(|(_, fault)| fault.as_ref()).min() {
            return Some(point.clone());
        }
        for unit in 0..units {
            let at = self.outputs_before(unit);
            let mine = &mut results[(unit * parts) as usize..((unit + 1) * parts) as usize];
            let mut total = None;
            for (partial, lanes) in mine.iter_mut().filter_map(|(partial, _)| partial.take()) {
                match &mut total {
                    None => total = Some((partial, lanes)),
                    Some((total, _)) => total.merge(&partial),
                }
            }
            if let Some((total, lanes)) = total {
                total.store(lanes, self.finish, (&mut columns, at));
            }
        }
        None
    }

    fn rule(&self) -> Option<Rule> {
        self.program.reduction.map(|reduction| Rule {
            reduction,
            value: self.program.value(),
        })
    }

    /// How many results a unit has.
    fn results(&self, machine: &Machine<'_, '_>) -> usize {
        let sizes = &machine.extents.sizes;
        sizes[self.program.nest.of_output()].iter().product()
    }

    #[inline(always)]
    fn store(&self, rule: Rule, carrier: &Carrier, columns: &mut [Segment<'_>], at: usize) {
        if self.finish {
            rule.finish(carrier, &mut columns[0], at);
        } else {
            rule.store(carrier, columns, at);
        }
    }
}
