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

mod line_rows;
mod lines;
mod pieces;
mod products;
mod row_sums;
mod rows;
mod strips;
mod table;
pub(crate) mod turns;

use crate::Chunk;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::looked::Looked;
use crate::math::{max_nan, min_nan};
use crate::program::{Program, Request};
use crate::segment::Segment;
use ein_array::{Array, Data};
use ein_plan::schedule::gathered_sum::first_of_row;
use ein_plan::schedule::guard::{Solved, bounded, solved};
use ein_plan::{DType, IndexId, Kernel, NodeId, Reduction};
use line_rows::LineRows;
use lines::Lines;
use pieces::Pieces;
use products::Products;
use rows::Rows;
use strips::Scatter;
use turns::Turns;

/// Points that are worth a task of their own.
const TASK: u64 = 1 << 14;
/// Tasks that are evaluated before what they found is added.
const BATCH: u64 = 16;
/// Most parts that are added up in outputs of their own.
const PARTS: u64 = 16;
/// Points of which the places are looked at to find out whether they ascend.
const SAMPLES: usize = 64;
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
    let ascending = ascends(kernel, &solved, &ranges, operands);
    let rows = Rows::of(kernel, &solved, &ranges, operands, ascending);
    if let Some(rows) = rows.as_ref().filter(|rows| rows.plain) {
        let points = rows.points();
        let parts = parts((points.0 * points.1) as u64, size).max(1) as usize;
        let ends: Vec<usize> = (1..=parts).map(|part| part * points.0 / parts).collect();
        return Some(vec![rows.run(kernel, rule, shape, &ends)?]);
    }
    if let Some(lines) = Lines::of(kernel, &solved, &ranges, operands) {
        return finished(kernel, rule, shape, &lines);
    }
    if let Some(rows) = LineRows::of(kernel, &solved, &ranges, operands) {
        return finished(kernel, rule, shape, &rows);
    }
    if let Some(products) = Products::of(kernel, &solved, &ranges, operands, ascending)
        && let Some(result) = finished(kernel, rule, shape, &products)
    {
        return Some(result);
    }
    let (graph, guard) = bounded(kernel, &solved, &ranges);
    let program = |points: &[usize], guard| {
        Program::new(&Request {
            graph: &graph,
            guard,
            reduction: None,
            ..Request::of_kernel(kernel, operands, (points, &[]), &ranges, &lengths)
        })
    };
    // The points: what is reduced, then the output indices that are not solved; or first those of them that are before the solved ones, if
    // what is added lies so.
    let (reduced, (before, behind)) = (reduced(kernel), free(&solved, rank));
    let mut points = [&reduced[..], &before, &behind].concat();
    let by_rows = [&before[..], &reduced, &behind].concat();
    let count: u64 = points.iter().map(|i| lengths[*i] as u64).product();
    let price = |points: &[usize]| program(points, None).nest.price;
    let along = before.into_iter().find(|i| lengths[*i] > 1);
    let along = along.filter(|_| count >= TASK && price(&by_rows) < price(&points));
    if along.is_some() {
        points = by_rows;
    }
    let program = program(&points, Some(guard));
    // Whether the last dimension of a strip is a run of the output.
    let depends = graph.dependencies();
    let runs = program.nest.strip.last().is_some_and(|last| {
        let fixed = |(_, place): &(usize, NodeId)| depends[place.0 as usize] >> last & 1 == 0;
        strides[*last] == 1 && *last < rank && solved.places.iter().all(fixed)
    });
    let scatter = Scatter {
        runs,
        size,
        parts: 0,
        driver: Driver::new(&program, &ranges, &[], false),
        program: &program,
        ranges: &ranges,
        strides: &strides,
        places: &solved.places,
        ascending,
    };
    if let Some(along) = along {
        let whole = scatter;
        return finished(kernel, rule, shape, &Pieces { whole, along });
    }
    let scatter = scatter.over(&ranges);
    if let Some(rows) = &rows
        && let Some(ends) = scatter.ends(rows.points())
    {
        return Some(vec![rows.run(kernel, rule, shape, &ends)?]);
    }
    finished(kernel, rule, shape, &scatter)
}

/// A gathered sum; `None` if a row is outside.
pub(crate) fn gathered(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let rule = Rule {
        reduction: kernel.reduction?,
        value: kernel.graph.dtype(kernel.root),
    };
    let ranges = crate::signed(ranges);
    let row = first_of_row(kernel)?;
    let rows = Rows::gathered(kernel, row, &ranges, operands)?;
    let rank = kernel.output_rank as usize;
    let shape: Vec<usize> = ranges[..rank].iter().map(|(_, n)| *n as usize).collect();
    let (points, _) = rows.points();
    Some(vec![rows.run(kernel, rule, &shape, &[points])?])
}

/// A scatter into the outermost index, of which the points of each value follow those of the value before. `None` if its values are no products in the
/// order of the points, or something is read outside. The operand that says where points go is not there.
pub(crate) fn in_turn(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    turns: Turns<'_>,
) -> Option<Vec<Array>> {
    let ranges = crate::signed(ranges);
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let (outer, points) = lengths.split_at(kernel.output_rank as usize);
    let points: usize = points.iter().product();
    let is_one = outer[1..].iter().all(|n| *n == 1) && turns.points() == points;
    if !is_one || !solved(kernel, &[IndexId(0)]).rest.is_empty() {
        return None;
    }
    let guard = None;
    let value = Kernel {
        guard,
        ..kernel.clone()
    }
    .canonical();
    let mut reads = value.graph.reads();
    if reads.any(|(operand, _)| operand as usize == operands.len()) {
        return None;
    }
    let products = Products::in_turn(&value, &ranges, operands, turns)?;
    let rule = Rule {
        reduction: kernel.reduction?,
        value: kernel.graph.dtype(kernel.root),
    };
    finished(kernel, rule, outer, &products)
}

/// What a scatter adds up, by output element; `None` after a fault.
trait Sums {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>>;
    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>>;
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
        if kernel.finish && is_carried_alone(rule.reduction) {
            to[0].set_floats(0, &totals?);
            return Some(vec![column]);
        }
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
        if kernel.finish && kernel.output == [DType::I64] && is_carried_alone(rule.reduction) {
            return Array::new(shape.to_vec(), Data::I64(totals?)).map(|made| vec![made]);
        }
        for (at, integer) in totals?.into_iter().enumerate() {
            let carrier = Carrier { integer, ..neutral };
            store(at, carrier, &mut to);
        }
    }
    Some(vec![column])
}

/// Returns whether a reduction is what was reduced, without more.
fn is_carried_alone(reduction: Reduction) -> bool {
    use Reduction::{Max, Min, Prod, Sum};
    matches!(reduction, Max | Min | Prod | Sum)
}

/// Returns whether the places of some points ascend, and those of no others stand between them in the output.
fn ascends(
    kernel: &Kernel,
    solved: &Solved,
    ranges: &[(i64, i64)],
    operands: &[Chunk<'_>],
) -> bool {
    let [(v, expression)] = &solved.places[..] else {
        return false;
    };
    let points: usize = (ranges[kernel.output_rank as usize..].iter())
        .map(|(_, length)| *length as usize)
        .product();
    let outermost = ranges[..*v].iter().all(|(_, length)| *length == 1);
    let looked = || Looked::of(kernel, *expression, &reduced(kernel), ranges, operands);
    let Some(looked) = Some(())
        .filter(|()| outermost && points > SAMPLES)
        .and_then(|()| looked())
    else {
        return false;
    };
    let places = (0..SAMPLES).map(|at| looked.get(at * (points - 1) / (SAMPLES - 1)));
    places
        .collect::<Option<Vec<i64>>>()
        .is_some_and(|places| places.is_sorted())
}

/// The output's indices that the guard gives no value: those before all that it gives one, and the others.
fn free(solved: &Solved, rank: usize) -> (Vec<usize>, Vec<usize>) {
    let is_free = |i: &usize| solved.places.iter().all(|(v, _)| v != i);
    let is_before = |i: &usize| solved.places.iter().all(|(v, _)| i < v);
    (0..rank).filter(is_free).partition(is_before)
}

/// The numbers of a kernel's reduced indices.
fn reduced(kernel: &Kernel) -> Vec<usize> {
    (kernel.output_rank as usize..kernel.indices.len()).collect()
}

/// How many parts of the points have outputs of their own; none if the output, of so many elements, is too large for that.
fn parts(points: u64, size: usize) -> u64 {
    let each = (size as u64).saturating_mul(MANY);
    match points / each.max(1) {
        0 => 0,
        many => many.min(points / TASK).clamp(1, PARTS),
    }
}
