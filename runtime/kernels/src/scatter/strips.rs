//! Scatters of any values: strips of points are evaluated, and each point's value is added where it goes.
//!
//! Parts of the points are added up in tables of their own, and those in order, where an output is small for its points, and where the points
//! come in the order of their places: then a table holds the places of its part alone. Else strips are evaluated in parallel, and added one
//! after the other. Must not know where guards come from.
//!
//! ```text
//! [v: 9000 | e: 50000] sum w[e] * x[src[e]] if dst[e] == v    of ascending dst   ->   table 1 has rows 0..570, table 2 rows 569..1123, …
//! ```

use super::table::{GROWTH, Table, together};
use super::{BATCH, Sums, TASK, parts};
use crate::drive::Driver;
use crate::machine::Machine;
use crate::parallel;
use crate::program::Program;
use crate::wide::{self, Job};
use ein_plan::{DType, NodeId};
use std::sync::atomic::AtomicUsize;

/// Points in ascending order of their places that are worth a table of their own.
const ASCENDING: u64 = 1 << 16;
/// Most tables of points in ascending order.
pub(super) const MOST_TABLES: u64 = 64;

impl Sums for Scatter<'_, '_> {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>> {
        self.reduced(start, f)
    }

    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>> {
        self.reduced(start, f)
    }
}

fn add<T: Copy>(to: &mut [T], at: &[usize], x: &[T], f: impl Fn(T, T) -> T) {
    for (at, x) in at.iter().zip(x) {
        to[*at] = f(to[*at], *x);
    }
}

/// The lanes of a strip: its extents, and how far each lane is in the output from the first one, but for what the guard says.
#[derive(Default)]
struct Lanes {
    sizes: Vec<usize>,
    distances: Vec<usize>,
    /// Where the lanes of the last strip go.
    at: Vec<usize>,
}

/// Values and the output points that they go to, in the order of the points.
#[derive(Default)]
struct Found {
    at: Vec<usize>,
    floats: Vec<f64>,
    integers: Vec<i64>,
}

/// In how many tables so many points in ascending order of their places are added up.
pub(super) fn tables(points: u64) -> u64 {
    (points / ASCENDING).clamp(1, MOST_TABLES)
}

/// True if tables that grow are better than so many of the whole output: they stay in a cache, and are not added up element by element.
pub(super) fn grows(ascending: bool, points: u64, parts: u64) -> bool {
    ascending && tables(points) >= parts
}

pub(super) struct Scatter<'p, 'a> {
    /// True if neighbours along the last dimension of a strip go to neighbours in the output.
    pub runs: bool,
    /// Elements of the output.
    pub size: usize,
    /// How many parts of the points have tables of the whole output; 0 if none has.
    pub parts: u64,
    pub driver: Driver<'p, 'a>,
    pub program: &'p Program<'a>,
    pub ranges: &'p [(i64, i64)],
    /// Distance in the output between neighbours along each index; 0 for reduced ones.
    pub strides: &'p [usize],
    pub places: &'p [(usize, NodeId)],
    /// True if points seem to come in the order of their places.
    pub ascending: bool,
}

/// The type of the sums of a scatter.
trait Total: Copy + Send + Sync {
    /// The values that were found.
    fn of(found: &Found) -> &[Self];
    /// Adds the values of a strip to a table; `None` if one has no place there.
    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &mut Lanes,
        sums: &mut Table<'_, Self>,
        f: impl Fn(Self, Self) -> Self + Copy,
    ) -> Option<()>;
}

impl Total for f64 {
    fn of(found: &Found) -> &[f64] {
        &found.floats
    }

    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &mut Lanes,
        sums: &mut Table<'_, f64>,
        f: impl Fn(f64, f64) -> f64 + Copy,
    ) -> Option<()> {
        let root = scatter.program.root;
        match scatter.program.value() {
            DType::F32 => scatter.add_strip(machine, lanes, machine.f32s(root), sums, f),
            _ => scatter.add_strip(machine, lanes, machine.f64s(root), sums, f),
        }
    }
}

impl Total for i64 {
    fn of(found: &Found) -> &[i64] {
        &found.integers
    }

    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &mut Lanes,
        sums: &mut Table<'_, i64>,
        f: impl Fn(i64, i64) -> i64 + Copy,
    ) -> Option<()> {
        let root = scatter.program.root;
        match scatter.program.value() {
            DType::I32 => scatter.add_strip(machine, lanes, machine.i32s(root), sums, f),
            _ => scatter.add_strip(machine, lanes, machine.i64s(root), sums, f),
        }
    }
}

impl<'a> Scatter<'_, 'a> {
    /// Returns the scatter over some values of an output's outermost index, with their part of the output.
    pub fn over<'r>(&'r self, ranges: &'r [(i64, i64)]) -> Scatter<'r, 'a> {
        let values = |ranges: &[(i64, i64)]| -> i64 {
            let output = ranges.iter().zip(self.strides);
            output
                .filter(|(_, stride)| **stride > 0)
                .map(|((_, n), _)| n)
                .product()
        };
        let mut part = Scatter {
            size: values(ranges) as usize,
            driver: Driver::new(self.program, ranges, &[], false),
            ranges,
            ..*self
        };
        part.parts = parts(part.points(), part.size);
        part
    }

    /// Values, reduced by output element.
    fn reduced<A: Total>(&self, start: A, f: impl Fn(A, A) -> A + Copy + Sync) -> Option<Vec<A>> {
        if grows(self.ascending, self.points(), self.parts) {
            let parts = tables(self.points());
            // Places that ascend are in one table, but for those where a part ends.
            let room = AtomicUsize::new(self.size + self.size / 2 + parts as usize * GROWTH);
            let growing = || Table::growing(self.size, start, &room);
            if let Some(sums) = self.in_parts((parts, start), f, growing) {
                return Some(sums);
            }
        }
        if self.parts > 0 {
            let whole = || Table::whole(self.size, start);
            return self.in_parts((self.parts, start), f, whole);
        }
        let mut sums = vec![start; self.size];
        self.all(|found| add(&mut sums, &found.at, A::of(found), f))?;
        Some(sums)
    }

    /// Where the parts of the points end that are added up in outputs of their own, in lines of `width` values; `None` if a part ends
    /// within one.
    pub fn ends(&self, (points, width): (usize, usize)) -> Option<Vec<usize>> {
        let (units, parts) = (self.driver.units(), self.parts);
        let end = |part: u64| {
            let values = self.driver.outputs_before(part * units / parts);
            values.is_multiple_of(width).then_some(values / width)
        };
        let within: Option<Vec<usize>> = (1..parts).map(end).collect();
        Some([within?, vec![points]].concat())
    }

    /// Number of points that are gone through.
    pub fn points(&self) -> u64 {
        let free = self.ranges.iter().enumerate();
        free.filter(|(i, _)| self.places.iter().all(|(v, _)| v != i))
            .fold(1u64, |n, (_, (_, length))| n.saturating_mul(*length as u64))
    }

    /// Adds up so many parts of the points in tables of their own, and those in order; `None` after a fault, or if a value has no place in a
    /// table.
    fn in_parts<'t, A: Total>(
        &self,
        (parts, start): (u64, A),
        f: impl Fn(A, A) -> A + Copy + Sync,
        table: impl Fn() -> Table<'t, A> + Sync,
    ) -> Option<Vec<A>> {
        let units = self.driver.units();
        let tables = parallel::map(parts as usize, |part| {
            let part = part as u64;
            let (mut table, mut lanes, mut inside) = (table(), Lanes::default(), true);
            let own = part * units / parts..(part + 1) * units / parts;
            let fault = self.driver.walk(own, 0..1, |machine, _, _| {
                self.measure(machine, &mut lanes);
                inside = inside && A::add(self, machine, &mut lanes, &mut table, f).is_some();
            });
            (fault.is_none() && inside).then_some(table)
        });
        let tables = tables.into_iter().collect::<Option<Vec<_>>>()?;
        Some(together(tables, self.size, start, f))
    }

    /// The place in the output of a strip's first lane, but for what the guard says.
    fn first(&self, machine: &Machine<'_, '_>) -> usize {
        (machine.point.iter().zip(self.ranges).zip(self.strides))
            .enumerate()
            .filter(|(index, _)| self.places.iter().all(|(v, _)| v != index))
            .map(|(_, ((at, (start, _)), stride))| (at - start) as usize * stride)
            .sum()
    }

    /// Finds out how far the strip's lanes are from its first one.
    fn measure(&self, machine: &Machine<'_, '_>, lanes: &mut Lanes) {
        if lanes.sizes == machine.extents.sizes && !lanes.distances.is_empty() {
            return;
        }
        lanes.sizes.clone_from(&machine.extents.sizes);
        lanes.distances = vec![0];
        for (index, size) in self.program.nest.strip.iter().zip(&lanes.sizes) {
            let stride = self.strides[*index];
            let before = std::mem::take(&mut lanes.distances);
            let along = |x: usize| (0..*size).map(move |n| x + n * stride);
            lanes.distances = before.into_iter().flat_map(along).collect();
        }
    }

    /// Finds out where the strip's lanes go; of a lane whose guard fails, any place.
    fn find_places(&self, machine: &Machine<'_, '_>, lanes: &mut Lanes) {
        let mut first = self.first(machine);
        let mut varied = vec![];
        for (v, place) in self.places {
            let (start, stride) = (self.ranges[*v].0, self.strides[*v]);
            if self.program.registers[place.0 as usize].uniform {
                let along = machine.first_i64(place.0).wrapping_sub(start) as usize;
                first = first.wrapping_add(along.wrapping_mul(stride));
            } else {
                varied.push((machine.i64s(place.0), start, stride));
            }
        }
        let at = lanes
            .distances
            .iter()
            .map(|distance| distance.wrapping_add(first));
        lanes.at.clear();
        lanes.at.extend(at);
        for (values, start, stride) in varied {
            wide::run(Along {
                at: &mut lanes.at,
                values,
                start,
                stride,
            });
        }
    }

    /// Adds the values of a strip to a table, run by run; `None` if one has no place there.
    fn add_strip<A: Copy, T: Copy + Into<A>>(
        &self,
        machine: &Machine<'_, '_>,
        lanes: &mut Lanes,
        values: &[T],
        sums: &mut Table<'_, A>,
        f: impl Fn(A, A) -> A + Copy,
    ) -> Option<()> {
        let Some(guard) = self.guard(machine) else {
            return Some(());
        };
        self.find_places(machine, lanes);
        wide::run(Add {
            at: &lanes.at,
            guard,
            values,
            run: match self.runs {
                true => machine.extents.run().max(1),
                false => 1,
            },
            sums,
            f,
        })
    }

    /// Where the guard holds, if it does in any lane: else the values need not have been computed.
    fn guard<'m>(&self, machine: &'m Machine<'_, '_>) -> Option<&'m [u8]> {
        let guard = machine.truths(self.program.guard?);
        guard.iter().any(|holds| *holds != 0).then_some(guard)
    }

    /// Evaluates all points; `add` sees what they give, in order. `None` after a fault.
    fn all(&self, mut add: impl FnMut(&Found)) -> Option<()> {
        let (units, points) = (self.driver.units(), self.points());
        let each = (TASK / (points / units.max(1)).max(1)).max(1);
        let tasks = units.div_ceil(each);
        let mut first = 0;
        while first < tasks {
            let next = (first + BATCH).min(tasks);
            let found = parallel::map((next - first) as usize, |task| {
                let task = first + task as u64;
                self.task(task * each..((task + 1) * each).min(units))
            });
            for found in found {
                add(&found?);
            }
            first = next;
        }
        Some(())
    }

    fn task(&self, units: std::ops::Range<u64>) -> Option<Found> {
        let mut found = Found::default();
        let mut lanes = Lanes::default();
        let fault = self.driver.walk(units, 0..1, |machine, _, _| {
            self.measure(machine, &mut lanes);
            self.strip(machine, &mut lanes, &mut found);
        });
        fault.is_none().then_some(found)
    }

    /// The points of one strip.
    fn strip(&self, machine: &Machine<'_, '_>, lanes: &mut Lanes, found: &mut Found) {
        let Some(guard) = self.guard(machine) else {
            return;
        };
        self.find_places(machine, lanes);
        fn held<'h, T: Copy>(lanes: &'h [T], guard: &'h [u8]) -> impl Iterator<Item = T> + 'h {
            let held = lanes.iter().zip(guard).filter(|(_, holds)| **holds != 0);
            held.map(|(lane, _)| *lane)
        }
        found.at.extend(held(&lanes.at, guard));
        let root = self.program.root;
        match self.program.value() {
            DType::F32 => {
                let values = held(machine.f32s(root), guard);
                found.floats.extend(values.map(f64::from));
            }
            DType::F64 => found.floats.extend(held(machine.f64s(root), guard)),
            DType::I32 => {
                let values = held(machine.i32s(root), guard);
                found.integers.extend(values.map(i64::from));
            }
            _ => found.integers.extend(held(machine.i64s(root), guard)),
        }
    }
}

/// Adds the distances of values along an index to places.
struct Along<'l> {
    at: &'l mut [usize],
    values: &'l [i64],
    start: i64,
    stride: usize,
}

impl Job for Along<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        let lanes = self.at.iter_mut().zip(self.values);
        if self.stride == 1 {
            for (at, value) in lanes {
                *at = at.wrapping_add(value.wrapping_sub(self.start) as usize);
            }
        } else {
            for (at, value) in lanes {
                let along = value.wrapping_sub(self.start) as usize;
                *at = at.wrapping_add(along.wrapping_mul(self.stride));
            }
        }
    }
}

/// Adds lanes to where they go, those of a run to neighbours.
struct Add<'l, 't, A, T, F> {
    at: &'l [usize],
    guard: &'l [u8],
    values: &'l [T],
    run: usize,
    sums: &'l mut Table<'t, A>,
    f: F,
}

impl<A: Copy, T: Copy + Into<A>, F: Fn(A, A) -> A + Copy> Job for Add<'_, '_, A, T, F> {
    /// `None` if a lane has no place in the table.
    type Output = Option<()>;

    #[inline(always)]
    fn run<const BYTES: usize>(self) -> Option<()> {
        let Add {
            at,
            guard,
            values,
            run,
            sums,
            f,
        } = self;
        if run == 1 && !guard.contains(&0) {
            return sums.add(at.iter().copied(), (values, values, |value, _| value), f);
        }
        let runs = at.chunks(run).zip(guard.chunks(run));
        for ((at, guard), values) in runs.zip(values.chunks(run)) {
            if guard.contains(&0) {
                let lanes = at.iter().zip(values).zip(guard);
                for ((at, value), _) in lanes.filter(|(_, holds)| **holds != 0) {
                    let sum = &mut sums.at(*at, 1)?[0];
                    *sum = f(*sum, (*value).into());
                }
                continue;
            }
            for (sum, value) in sums.at(at[0], values.len())?.iter_mut().zip(values) {
                *sum = f(*sum, (*value).into());
            }
        }
        Some(())
    }
}
