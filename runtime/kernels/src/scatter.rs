//! Scatters: reductions whose guard says which output point a reduced point goes to.
//!
//! A conjunct `expression == v`, with an output index `v` that neither the expression nor the value holds, leaves one
//! output point for every point of the other indices. So only those are gone through, in their order, whatever the
//! output's size. Strips of points are evaluated in parallel and added one after the other, so results do not depend on
//! threads. A fault is left to the ordinary loops, which find the lowest one. Must not know where guards come from.
//!
//! ```text
//! [v: 1000, d: 4 | n: 50] sum E[n, d] if at[n] == v    ->   200 points instead of 200000
//! ```

mod lines;
mod looked;
mod rows;

use crate::Chunk;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::machine::Machine;
use crate::math::{max_nan, min_nan};
use crate::parallel;
use crate::program::{Program, Request};
use crate::segment::Segment;
use ein_array::Array;
use ein_plan::schedule::guard::{Solved, bounded, solved};
use ein_plan::{DType, IndexId, Kernel, NodeId, Reduction};
use lines::Lines;
use rows::Rows;

/// Points that are worth a task of their own.
const TASK: u64 = 1 << 14;
/// Tasks that are evaluated before what they found is added.
const BATCH: u64 = 16;
/// Most parts that are added up in outputs of their own.
const PARTS: u64 = 16;
/// Points for each of an output's elements, from which on a part has an output of its own.
const MANY: u64 = 4;

/// A kernel whose guard gives these output indices a value; `None` if it faults.
pub(crate) fn run(
    kernel: &Kernel,
    indices: &[IndexId],
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let reduction = kernel.reduction?;
    let solved = solved(kernel, indices);
    let value = kernel.graph.dtype(kernel.root);
    let rank = kernel.output_rank as usize;
    let ranges = crate::signed(ranges);
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let mut strides = vec![0; ranges.len()];
    let mut size = 1;
    for d in (0..rank).rev() {
        strides[d] = size;
        size *= lengths[d];
    }
    let rule = Rule { reduction, value };
    let shape = &lengths[..rank];
    let rows = Rows::of(kernel, &solved, &ranges, operands);
    if let Some(rows) = rows.as_ref().filter(|rows| rows.plain) {
        let points = rows.points();
        let parts = parts((points.0 * points.1) as u64, size).max(1) as usize;
        let ends: Vec<usize> = (1..=parts).map(|part| part * points.0 / parts).collect();
        return Some(vec![rows.run(kernel, rule, shape, &ends)?]);
    }
    if let Some(lines) = Lines::of(kernel, &solved, &ranges, operands) {
        return finished(kernel, rule, shape, &lines);
    }
    // The points: what is reduced, then the output indices that are not solved.
    let free = (0..rank).filter(|i| solved.places.iter().all(|(v, _)| v != i));
    let points: Vec<usize> = (rank..ranges.len()).chain(free).collect();
    let (graph, guard) = bounded(kernel, &solved, &ranges);
    let program = Program::new(&Request {
        graph: &graph,
        operands,
        root: kernel.root,
        guard: Some(guard),
        reduction: None,
        output: &points,
        reduced: &[],
        ranges: &ranges,
        lengths: &lengths,
        lanes: None,
        apart: false,
    });
    // Whether the last dimension of a strip is a run of the output.
    let depends = graph.dependencies();
    let runs = program.nest.strip.last().is_some_and(|last| {
        let fixed = |(_, place): &(usize, NodeId)| depends[place.0 as usize] >> last & 1 == 0;
        strides[*last] == 1 && *last < rank && solved.places.iter().all(fixed)
    });
    let scatter = Scatter {
        runs,
        size,
        driver: Driver::new(&program, &ranges, &[], false),
        program: &program,
        ranges: &ranges,
        strides: &strides,
        places: &solved.places,
    };
    if let Some(rows) = &rows
        && let Some(ends) = scatter.ends(rows.points())
    {
        return Some(vec![rows.run(kernel, rule, shape, &ends)?]);
    }
    finished(kernel, rule, shape, &scatter)
}

/// What a scatter adds up, by output element; `None` after a fault.
trait Sums {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>>;
    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>>;
}

impl Sums for Scatter<'_, '_> {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>> {
        self.reduced(start, f)
    }

    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>> {
        self.reduced(start, f)
    }
}

/// The sums as the kernel's output.
fn finished(kernel: &Kernel, rule: Rule, shape: &[usize], sums: &impl Sums) -> Option<Vec<Array>> {
    let mut column = crate::memory::zeros(kernel.output[0], shape);
    let store = |at: usize, carrier: Carrier, to: &mut [Segment<'_>]| {
        if kernel.finish {
            rule.finish(&carrier, &mut to[0], at);
        } else {
            rule.store(&carrier, to, at);
        }
    };
    let neutral = rule.neutral();
    let mut to = [Segment::of(column.data_mut())];
    if rule.value.is_float() {
        let start = neutral.float;
        let totals = match rule.reduction {
            Reduction::Max => sums.floats(start, max_nan),
            Reduction::Min => sums.floats(start, min_nan),
            Reduction::Prod => sums.floats(start, |x, y| x * y),
            _ => sums.floats(start, |x, y| x + y),
        };
        for (at, float) in totals?.into_iter().enumerate() {
            let carrier = Carrier { float, ..neutral };
            store(at, carrier, &mut to);
        }
    } else {
        let start = neutral.integer;
        let totals = match rule.reduction {
            Reduction::Max => sums.integers(start, i64::max),
            Reduction::Min => sums.integers(start, i64::min),
            Reduction::Prod => sums.integers(start, i64::wrapping_mul),
            _ => sums.integers(start, i64::wrapping_add),
        };
        for (at, integer) in totals?.into_iter().enumerate() {
            let carrier = Carrier { integer, ..neutral };
            store(at, carrier, &mut to);
        }
    }
    Some(vec![column])
}

fn add<T: Copy>(to: &mut [T], at: &[usize], x: &[T], f: impl Fn(T, T) -> T) {
    for (at, x) in at.iter().zip(x) {
        to[*at] = f(to[*at], *x);
    }
}

/// How many parts of the points have outputs of their own; none if the output, of so many elements, is too large for that.
fn parts(points: u64, size: usize) -> u64 {
    let each = (size as u64).saturating_mul(MANY);
    match points / each.max(1) {
        0 => 0,
        many => many.min(points / TASK).clamp(1, PARTS),
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

struct Scatter<'p, 'a> {
    /// Whether neighbours along the last dimension of a strip go to neighbours in the output.
    runs: bool,
    /// Elements of the output.
    size: usize,
    driver: Driver<'p, 'a>,
    program: &'p Program<'a>,
    ranges: &'p [(i64, i64)],
    /// Distance in the output between neighbours along each index; 0 for reduced ones.
    strides: &'p [usize],
    places: &'p [(usize, NodeId)],
}

/// What a scatter adds up in.
trait Total: Copy + Send + Sync {
    /// The values that were found.
    fn of(found: &Found) -> &[Self];
    /// Adds the values of a strip to an output.
    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &Lanes,
        sums: &mut [Self],
        f: impl Fn(Self, Self) -> Self,
    );
}

impl Total for f64 {
    fn of(found: &Found) -> &[f64] {
        &found.floats
    }

    fn add(
        scatter: &Scatter<'_, '_>,
        machine: &Machine<'_, '_>,
        lanes: &Lanes,
        sums: &mut [f64],
        f: impl Fn(f64, f64) -> f64,
    ) {
        let root = scatter.program.root;
        match scatter.program.value() {
            DType::F32 => {
                scatter.add_strip(machine, lanes, machine.f32s(root), sums, |s, x| {
                    f(s, x.into())
                });
            }
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
        sums: &mut [i64],
        f: impl Fn(i64, i64) -> i64,
    ) {
        let root = scatter.program.root;
        match scatter.program.value() {
            DType::I32 => {
                scatter.add_strip(machine, lanes, machine.i32s(root), sums, |s, x| {
                    f(s, x.into())
                });
            }
            _ => scatter.add_strip(machine, lanes, machine.i64s(root), sums, f),
        }
    }
}

impl Scatter<'_, '_> {
    /// Values, reduced by output element.
    fn reduced<A: Total>(&self, start: A, f: impl Fn(A, A) -> A + Copy + Sync) -> Option<Vec<A>> {
        let size = self.size;
        if parts(self.points(), size) == 0 {
            let mut sums = vec![start; size];
            self.all(|found| add(&mut sums, &found.at, A::of(found), f))?;
            return Some(sums);
        }
        self.in_parts(size, start, f, |machine, lanes, sums| {
            A::add(self, machine, lanes, sums, f);
        })
    }

    /// Where the parts of the points end that are added up in outputs of their own, in lines of `width` values; `None` if a part ends
    /// within one.
    fn ends(&self, (points, width): (usize, usize)) -> Option<Vec<usize>> {
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

    /// Adds up parts of the points in outputs of their own, and those in order; `None` after a fault.
    fn in_parts<A: Copy + Send + Sync>(
        &self,
        size: usize,
        start: A,
        f: impl Fn(A, A) -> A,
        strip: impl Fn(&Machine<'_, '_>, &mut Lanes, &mut [A]) + Sync,
    ) -> Option<Vec<A>> {
        let (units, parts) = (self.driver.units(), parts(self.points(), size));
        let sums = parallel::map(parts as usize, |part| {
            let part = part as u64;
            let (mut sums, mut lanes) = (vec![start; size], Lanes::default());
            let own = part * units / parts..(part + 1) * units / parts;
            let fault = self.driver.walk(own, 0..1, |machine, _, _| {
                self.measure(machine, &mut lanes);
                strip(machine, &mut lanes, &mut sums);
            });
            fault.is_none().then_some(sums)
        });
        let mut sums = sums.into_iter();
        let mut total = sums.next()??;
        for part in sums {
            for (total, x) in total.iter_mut().zip(part?) {
                *total = f(*total, x);
            }
        }
        Some(total)
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

    /// Adds the values of a strip to an output, run by run.
    fn add_strip<A: Copy, T: Copy>(
        &self,
        machine: &Machine<'_, '_>,
        lanes: &Lanes,
        values: &[T],
        sums: &mut [A],
        f: impl Fn(A, T) -> A,
    ) {
        let program = self.program;
        let guard = program
            .guard
            .map(|guard| machine.truths(guard))
            .unwrap_or_default();
        if guard.iter().all(|lane| *lane == 0) {
            return;
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
        let place = |lane: usize| {
            let along = varied.iter();
            let along =
                along.map(|(values, start, stride)| (values[lane] - start) as usize * stride);
            first + fixed + lanes.distances[lane] + along.sum::<usize>()
        };
        let run = match self.runs {
            true => machine.extents.run().max(1),
            false => 1,
        };
        for (number, (guard, values)) in guard.chunks(run).zip(values.chunks(run)).enumerate() {
            if guard.contains(&0) {
                for (lane, value) in values.iter().enumerate().filter(|(l, _)| guard[*l] != 0) {
                    let at = place(number * run + lane);
                    sums[at] = f(sums[at], *value);
                }
                continue;
            }
            let at = place(number * run);
            for (sum, value) in sums[at..at + values.len()].iter_mut().zip(values) {
                *sum = f(*sum, *value);
            }
        }
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
