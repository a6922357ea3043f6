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

pub(super) struct Scatter<'p, 'a> {
    /// Whether neighbours along the last dimension of a strip go to neighbours in the output.
    pub runs: bool,
    /// Elements of the output.
    pub size: usize,
    pub driver: Driver<'p, 'a>,
    pub program: &'p Program<'a>,
    pub ranges: &'p [(i64, i64)],
    /// Distance in the output between neighbours along each index; 0 for reduced ones.
    pub strides: &'p [usize],
    pub places: &'p [(usize, NodeId)],
    /// Whether points seem to come in the order of their places.
    pub ascending: bool,
}

/// What a scatter adds up in.
trait Total: Copy + Send + Sync {
    /// The values that were found.
    fn of(found: &Found) -> &[Self];
    /// Adds the values of a strip to a table; `None` if one has no place there.
    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &Lanes,
        sums: &mut Table<'_, Self>,
        f: impl Fn(Self, Self) -> Self,
    ) -> Option<()>;
}

impl Total for f64 {
    fn of(found: &Found) -> &[f64] {
        &found.floats
    }

    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &Lanes,
        sums: &mut Table<'_, f64>,
        f: impl Fn(f64, f64) -> f64,
    ) -> Option<()> {
        let root = scatter.program.root;
        match scatter.program.value() {
            DType::F32 => scatter.add_strip(machine, lanes, machine.f32s(root), sums, |s, x| {
                f(s, x.into())
            }),
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
        lanes: &Lanes,
        sums: &mut Table<'_, i64>,
        f: impl Fn(i64, i64) -> i64,
    ) -> Option<()> {
        let root = scatter.program.root;
        match scatter.program.value() {
            DType::I32 => scatter.add_strip(machine, lanes, machine.i32s(root), sums, |s, x| {
                f(s, x.into())
            }),
            _ => scatter.add_strip(machine, lanes, machine.i64s(root), sums, f),
        }
    }
}

impl Scatter<'_, '_> {
    /// Values, reduced by output element.
    fn reduced<A: Total>(&self, start: A, f: impl Fn(A, A) -> A + Copy + Sync) -> Option<Vec<A>> {
        let parts = parts(self.points(), self.size);
        if parts > 0 {
            let whole = || Table::whole(self.size, start);
            return self.in_parts((parts, start), f, whole);
        }
        if self.ascending {
            let parts = tables(self.points());
            // Places that ascend are in one table, but for those where a part ends.
            let room = AtomicUsize::new(self.size + self.size / 2 + parts as usize * GROWTH);
            let growing = || Table::growing(self.size, start, &room);
            if let Some(sums) = self.in_parts((parts, start), f, growing) {
                return Some(sums);
            }
        }
        let mut sums = vec![start; self.size];
        self.all(|found| add(&mut sums, &found.at, A::of(found), f))?;
        Some(sums)
    }

    /// Where the parts of the points end that are added up in outputs of their own, in lines of `width` values; `None` if a part ends
    /// within one.
    pub fn ends(&self, (points, width): (usize, usize)) -> Option<Vec<usize>> {
        let (units, parts) = (self.driver.units(), parts(self.points(), self.size));
        let end = |part: u64| {
            let values = self.driver.outputs_before(part * units / parts);
            values.is_multiple_of(width).then_some(values / width)
        };
        let within: Option<Vec<usize>> = (1..parts).map(end).collect();
        Some([within?, vec![points]].concat())
    }

    /// Number of points that are gone through.
    fn points(&self) -> u64 {
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
                inside = inside && A::add(self, machine, &lanes, &mut table, f).is_some();
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

    /// Adds the values of a strip to a table, run by run; `None` if one has no place there.
    fn add_strip<A: Copy, T: Copy>(
        &self,
        machine: &Machine<'_, '_>,
        lanes: &Lanes,
        values: &[T],
        sums: &mut Table<'_, A>,
        f: impl Fn(A, T) -> A,
    ) -> Option<()> {
        let program = self.program;
        let guard = program
            .guard
            .map(|guard| machine.truths(guard))
            .unwrap_or_default();
        if guard.iter().all(|lane| *lane == 0) {
            return Some(());
        }
        let first = self.first(machine);
        let places: Vec<(&[i64], i64, usize)> = (self.places.iter())
            .map(|(v, place)| {
                let values = match program.registers[place.0 as usize].uniform {
                    true => &[][..],
                    false => machine.i64s(place.0),
                };
                (values, self.ranges[*v].0, self.strides[*v])
            })
            .collect();
        // What is the same in all lanes.
        let fixed: usize = (self.places.iter().zip(&places))
            .filter(|(_, (values, ..))| values.is_empty())
            .map(|((_, place), (_, start, stride))| {
                (machine.first_i64(place.0) - start) as usize * stride
            })
            .sum();
        let varied: Vec<_> = places
            .iter()
            .filter(|(values, ..)| !values.is_empty())
            .collect();
        let base = first + fixed;
        if let [(at, start, stride)] = varied[..]
            && !self.runs
            && !guard.contains(&0)
        {
            let along = at.iter().zip(&lanes.distances);
            let places = along.map(|(at, far)| base + far + (at - start) as usize * stride);
            return sums.add(places, values, f);
        }
        let place = |lane: usize| {
            let along = varied.iter();
            let along =
                along.map(|(values, start, stride)| (values[lane] - start) as usize * stride);
            base + lanes.distances[lane] + along.sum::<usize>()
        };
        let run = match self.runs {
            true => machine.extents.run().max(1),
            false => 1,
        };
        for (number, (guard, values)) in guard.chunks(run).zip(values.chunks(run)).enumerate() {
            if guard.contains(&0) {
                for (lane, value) in values.iter().enumerate().filter(|(l, _)| guard[*l] != 0) {
                    for sum in sums.at(place(number * run + lane), 1)? {
                        *sum = f(*sum, *value);
                    }
                }
                continue;
            }
            let sums = sums.at(place(number * run), values.len())?;
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = f(*sum, *value);
            }
        }
        Some(())
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
            self.strip(machine, &lanes, &mut found);
        });
        fault.is_none().then_some(found)
    }

    /// The points of one strip.
    fn strip(&self, machine: &Machine<'_, '_>, lanes: &Lanes, found: &mut Found) {
        let program = self.program;
        let first = self.first(machine);
        let guard = program
            .guard
            .map(|guard| machine.truths(guard))
            .unwrap_or_default();
        // Where no lane holds, the value need not have been computed.
        if guard.iter().all(|lane| *lane == 0) {
            return;
        }
        let before = found.at.len();
        let holds = |lane: &usize| guard[*lane] != 0;
        let count = lanes.distances.len();
        found.at.extend(
            (0..count)
                .filter(holds)
                .map(|lane| first + lanes.distances[lane]),
        );
        for (v, place) in self.places {
            let uniform = program.registers[place.0 as usize].uniform;
            let values = match uniform {
                true => &[machine.first_i64(place.0)][..],
                false => machine.i64s(place.0),
            };
            let (start, stride) = (self.ranges[*v].0, self.strides[*v]);
            let mut to = found.at[before..].iter_mut();
            for lane in (0..count).filter(holds) {
                let value = values[if uniform { 0 } else { lane }];
                if let Some(at) = to.next() {
                    *at += (value - start) as usize * stride;
                }
            }
        }
        let root = program.root;
        let lanes = (0..count).filter(holds);
        match program.value() {
            DType::F32 => {
                let values = machine.f32s(root);
                found.floats.extend(lanes.map(|l| f64::from(values[l])));
            }
            DType::F64 => found.floats.extend(lanes.map(|l| machine.f64s(root)[l])),
            DType::I32 => {
                let values = machine.i32s(root);
                found.integers.extend(lanes.map(|l| i64::from(values[l])));
            }
            _ => found.integers.extend(lanes.map(|l| machine.i64s(root)[l])),
        }
    }
}
