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

use crate::Chunk;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::machine::Machine;
use crate::math::{max_nan, min_nan};
use crate::program::{Program, Request};
use crate::segment::Segment;
use ein_array::Array;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};
use rayon::prelude::*;

/// Points that are worth a task of their own.
const TASK: u64 = 1 << 14;
/// Tasks that are evaluated before what they found is added.
const BATCH: u64 = 16;

/// Output indices that the guard gives a value, with the expressions of the values; and the rest of the guard.
struct Solved {
    places: Vec<(usize, NodeId)>,
    rest: Vec<NodeId>,
}

/// A kernel in this form; `None` if it is not, or if it faults.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let reduction = kernel.reduction.filter(|reduction| {
        use Reduction as R;
        matches!(reduction, R::Sum | R::Prod | R::Max | R::Min)
    })?;
    let solved = solve(kernel)?;
    let value = kernel.graph.dtype(kernel.root);
    let rank = kernel.output_rank as usize;
    let ranges: Vec<(i64, i64)> = ranges.iter().map(|(s, n)| (*s as i64, *n as i64)).collect();
    if value == DType::Bool || ranges.iter().any(|(_, length)| *length == 0) {
        return None;
    }
    // The points: what is reduced, then the output indices that are not solved.
    let free = (0..rank).filter(|i| solved.places.iter().all(|(v, _)| v != i));
    let points: Vec<usize> = (rank..ranges.len()).chain(free).collect();
    let (graph, guard) = bounded(kernel, &solved, &ranges);
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
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
    });
    let mut strides = vec![0; ranges.len()];
    let mut size = 1;
    for d in (0..rank).rev() {
        strides[d] = size;
        size *= lengths[d];
    }
    let scatter = Scatter {
        driver: Driver::new(&program, &ranges, &[], false),
        program: &program,
        ranges: &ranges,
        strides: &strides,
        places: &solved.places,
    };
    let rule = Rule { reduction, value };
    let shape = &lengths[..rank];
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
    if value.is_float() {
        let mut sums = vec![neutral.float; size];
        scatter.all(|found| match reduction {
            Reduction::Max => add(&mut sums, &found.at, &found.floats, max_nan),
            Reduction::Min => add(&mut sums, &found.at, &found.floats, min_nan),
            Reduction::Prod => add(&mut sums, &found.at, &found.floats, |x, y| x * y),
            _ => add(&mut sums, &found.at, &found.floats, |x, y| x + y),
        })?;
        for (at, float) in sums.into_iter().enumerate() {
            let carrier = Carrier { float, ..neutral };
            store(at, carrier, &mut to);
        }
    } else {
        let mut sums = vec![neutral.integer; size];
        scatter.all(|found| match reduction {
            Reduction::Max => add(&mut sums, &found.at, &found.integers, i64::max),
            Reduction::Min => add(&mut sums, &found.at, &found.integers, i64::min),
            Reduction::Prod => add(&mut sums, &found.at, &found.integers, i64::wrapping_mul),
            _ => add(&mut sums, &found.at, &found.integers, i64::wrapping_add),
        })?;
        for (at, integer) in sums.into_iter().enumerate() {
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

/// What the guard says of output indices.
fn solve(kernel: &Kernel) -> Option<Solved> {
    let graph = &kernel.graph;
    let depends = dependencies(graph);
    let mut rest = conjuncts(graph, kernel.guard?);
    let of_value = depends[kernel.root.0 as usize];
    let mut places: Vec<(usize, NodeId)> = vec![];
    let (mut taken, mut held) = (0u128, of_value);
    rest.retain(|id| {
        let Node::Apply(Function::Eq, sides) = graph.node(*id) else {
            return true;
        };
        for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let Node::Index(IndexId(v)) = graph.node(side) else {
                continue;
            };
            let (bit, of_other) = (1u128 << v, depends[other.0 as usize]);
            if *v < kernel.output_rank && held & bit == 0 && of_other & (taken | bit) == 0 {
                places.push((*v as usize, other));
                taken |= bit;
                held |= of_other | bit;
                return false;
            }
        }
        true
    });
    // The rest of the guard is looked at before the places are known.
    let clear = rest.iter().all(|id| depends[id.0 as usize] & taken == 0);
    (clear && !places.is_empty()).then_some(Solved { places, rest })
}

/// The conditions that a guard is made of.
pub(crate) fn conjuncts(graph: &Graph, guard: NodeId) -> Vec<NodeId> {
    let (mut all, mut open) = (vec![], vec![guard]);
    while let Some(id) = open.pop() {
        match graph.node(id) {
            Node::Apply(Function::And, a) => open.extend(a.iter().rev()),
            _ => all.push(id),
        }
    }
    all
}

/// The indices that each node depends on.
pub(crate) fn dependencies(graph: &Graph) -> Vec<u128> {
    let mut depends: Vec<u128> = Vec::with_capacity(graph.len());
    for (_, node, _) in graph.iter() {
        let all = |ids: &[NodeId]| ids.iter().fold(0, |mask, id| mask | depends[id.0 as usize]);
        depends.push(match node {
            Node::Constant(_) => 0,
            Node::Index(IndexId(i)) => 1 << i,
            Node::Read {
                positions,
                otherwise,
                ..
            } => all(positions) | all(otherwise.as_slice()),
            Node::Apply(_, arguments) => all(arguments),
            Node::Convert(argument) => depends[argument.0 as usize],
        });
    }
    depends
}

/// The kernel's graph with the guard of the points: the rest of the guard, and that the places are among the ranges.
fn bounded(kernel: &Kernel, solved: &Solved, ranges: &[(i64, i64)]) -> (Graph, NodeId) {
    let mut graph = kernel.graph.clone();
    let mut all = solved.rest.clone();
    for (v, place) in &solved.places {
        let (start, length) = ranges[*v];
        for (function, end) in [(Function::Ge, start), (Function::Lt, start + length)] {
            let end = graph.add(Node::Constant(Scalar::Int(end)), DType::I64);
            all.push(graph.add(Node::Apply(function, vec![*place, end]), DType::Bool));
        }
    }
    let mut guard = all[0];
    for next in &all[1..] {
        guard = graph.add(Node::Apply(Function::And, vec![guard, *next]), DType::Bool);
    }
    (graph, guard)
}

/// Values and the output points that they go to, in the order of the points.
#[derive(Default)]
struct Found {
    at: Vec<usize>,
    floats: Vec<f64>,
    integers: Vec<i64>,
}

struct Scatter<'p, 'a> {
    driver: Driver<'p, 'a>,
    program: &'p Program<'a>,
    ranges: &'p [(i64, i64)],
    /// Distance in the output between neighbours along each index; 0 for reduced ones.
    strides: &'p [usize],
    places: &'p [(usize, NodeId)],
}

impl Scatter<'_, '_> {
    /// Evaluates all points; `add` sees what they give, in order. `None` after a fault.
    fn all(&self, mut add: impl FnMut(&Found)) -> Option<()> {
        let units = self.driver.units();
        let free = self.ranges.iter().enumerate();
        let points = free
            .filter(|(i, _)| self.places.iter().all(|(v, _)| v != i))
            .fold(1u64, |n, (_, (_, length))| n.saturating_mul(*length as u64));
        let each = (TASK / (points / units.max(1)).max(1)).max(1);
        let tasks = units.div_ceil(each);
        let mut first = 0;
        while first < tasks {
            let next = (first + BATCH).min(tasks);
            let found: Vec<Option<Found>> = (first..next)
                .into_par_iter()
                .map(|task| self.task(task * each..((task + 1) * each).min(units)))
                .collect();
            for found in found {
                add(&found?);
            }
            first = next;
        }
        Some(())
    }

    fn task(&self, units: std::ops::Range<u64>) -> Option<Found> {
        let mut found = Found::default();
        let mut lanes: (Vec<usize>, Vec<usize>) = Default::default();
        let fault = self.driver.walk(units, 0..1, |machine, _, _| {
            self.strip(machine, &mut lanes, &mut found);
        });
        fault.is_none().then_some(found)
    }

    /// The points of one strip. `lanes`: extents of the last strip, and the distances of its lanes from the first one.
    fn strip(
        &self,
        machine: &Machine<'_, '_>,
        lanes: &mut (Vec<usize>, Vec<usize>),
        found: &mut Found,
    ) {
        let program = self.program;
        let strip = &program.nest.strip;
        if lanes.0 != machine.extents.sizes || lanes.1.is_empty() {
            lanes.0.clone_from(&machine.extents.sizes);
            lanes.1 = vec![0];
            for (index, size) in strip.iter().zip(&lanes.0) {
                let stride = self.strides[*index];
                let before = std::mem::take(&mut lanes.1);
                let along = |x: usize| (0..*size).map(move |n| x + n * stride);
                lanes.1 = before.into_iter().flat_map(along).collect();
            }
        }
        let first: usize = (machine.point.iter().zip(self.ranges).zip(self.strides))
            .enumerate()
            .filter(|(index, _)| self.places.iter().all(|(v, _)| v != index))
            .map(|(_, ((at, (start, _)), stride))| (at - start) as usize * stride)
            .sum();
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
        let count = lanes.1.len();
        found
            .at
            .extend((0..count).filter(holds).map(|lane| first + lanes.1[lane]));
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
