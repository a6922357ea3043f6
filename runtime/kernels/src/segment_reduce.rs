//! Reductions of segments: the points between two ends that data say for each output point.
//!
//! Where segments follow each other without gaps, as the rows of a matrix in compressed form do, all points are gone through in turn, as those of a
//! scatter whose places ascend. Else the strips of each output point go from the one end to the other. Must not know where guards come from.
//!
//! ```text
//! [i: 3 | e: 9] sum w[e] if at[i] <= e and e < at[i + 1], at = 0 4 4 9   ->   points 0..4, 4..4, 4..9
//! ```

use crate::drive::Driver;
use crate::explain::explain;
use crate::looked::{Looked, Numbers};
use crate::program::{Program, Request};
use crate::scatter::turns::{Ends, Turns};
use crate::segment::Segment;
use crate::{Chunk, KernelError, Options, memory, parallel, scatter, signed};
use ein_array::{Array, Data};
use ein_plan::schedule::Segments;
use ein_plan::schedule::segments::{self, expanded, segments};
use ein_plan::{IndexId, Kernel, NodeId};
use std::ops::Range;

/// Points that are worth a task of their own; an output point counts as some.
const TASK: usize = 1 << 15;
const OUTPUT_POINT: usize = 1 << 6;

/// A kernel whose guard bounds these segments; `None` if an end of one is read outside.
pub(crate) fn run(
    kernel: &Kernel,
    form: &Segments,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Result<Vec<Array>, KernelError>> {
    let (_, ends) = segments(kernel)?;
    let expanded = expanded(kernel, form, &ends);
    let in_turn = |turns| in_turn(expanded.as_ref()?, form, turns, ranges, operands);
    let lying = as_they_lie(kernel, form, &ends, ranges, operands);
    if let Some(result) = lying.and_then(in_turn) {
        return Some(Ok(result));
    }
    let spans = spans(kernel, form, &ends, ranges, operands)?;
    if lying.is_none()
        && let Some((first, ends)) = follow(&spans)
        && let ends = Ends::I64(&ends)
        && let Some(result) = in_turn(Turns { first, ends })
    {
        return Some(Ok(result));
    }
    Some(each(kernel, form, &spans, ranges, operands))
}

/// The ends of segments that are stored as those of a matrix in compressed form: the start of a segment is the end of the one before.
fn as_they_lie<'a>(
    kernel: &Kernel,
    form: &Segments,
    ends: &segments::Ends,
    ranges: &[(u64, u64)],
    operands: &'a [Chunk<'a>],
) -> Option<Turns<'a>> {
    let ([(start, 0)], [(end, 0)]) = (&ends.starts[..], &ends.ends[..]) else {
        return None;
    };
    let [IndexId(row)] = form.by[..] else {
        return None;
    };
    let ranges = signed(ranges);
    let rows = ranges[row as usize].1 as usize;
    let listed = |side: NodeId| Looked::of(kernel, side, &[row as usize], &ranges, operands);
    let (starts, ends) = (listed(*start)?.all(0..rows)?, listed(*end)?.all(0..rows)?);
    let (start, length) = ranges[form.reduced.0 as usize];
    let first = starts.at(0);
    let ends = match (starts, ends) {
        (Numbers::U32(starts), Numbers::U32(ends)) => {
            let lie = starts[0] <= ends[0] && ends.is_sorted() && starts[1..] == ends[..rows - 1];
            lie.then_some(Ends::U32(ends))
        }
        (Numbers::I64(starts), Numbers::I64(ends)) => {
            let lie = starts[0] <= ends[0] && ends.is_sorted() && starts[1..] == ends[..rows - 1];
            lie.then_some(Ends::I64(ends))
        }
        _ => None,
    }?;
    let turns = Turns { first, ends };
    (start <= first && first + turns.points() as i64 <= start + length).then_some(turns)
}

/// The first point of segments that follow each other without gaps, and where each ends; `None` if they do not.
fn follow(spans: &[Range<i64>]) -> Option<(i64, Vec<i64>)> {
    let first = spans.iter().find(|span| !span.is_empty())?.start;
    let mut end = first;
    let ends = spans.iter().map(|span| {
        let follows = span.is_empty() || span.start == end;
        if !span.is_empty() {
            end = span.end;
        }
        follows.then_some(end)
    });
    Some((first, ends.collect::<Option<_>>()?))
}

/// The first point and the one behind the last, of each segment, within the range of their index; of an empty one, both are the first.
fn spans(
    kernel: &Kernel,
    form: &Segments,
    ends: &segments::Ends,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Range<i64>>> {
    let of_outputs: Vec<(u64, u64)> = form.by.iter().map(|i| ranges[i.0 as usize]).collect();
    let count: u64 = of_outputs.iter().map(|(_, n)| n).product();
    let (start, length) = signed(ranges)[form.reduced.0 as usize];
    let mut spans = vec![start..start + length; count as usize];
    let numbers = |(side, more): &(NodeId, i64)| {
        let of_side = kernel.of_points(*side, &form.by);
        let made = crate::run(&of_side, &of_outputs, operands, &Options::default()).ok()?;
        match made.into_iter().next()?.into_data() {
            Data::I64(numbers) => Some((numbers, *more)),
            _ => None,
        }
    };
    for side in &ends.starts {
        let (numbers, more) = numbers(side)?;
        for (span, number) in spans.iter_mut().zip(numbers) {
            span.start = span.start.max(number.saturating_add(more));
        }
    }
    for side in &ends.ends {
        let (numbers, more) = numbers(side)?;
        for (span, number) in spans.iter_mut().zip(numbers) {
            span.end = span.end.min(number.saturating_add(more));
        }
    }
    for span in &mut spans {
        span.start = span.start.min(start + length);
        span.end = span.end.max(span.start);
    }
    Some(spans)
}

/// The scatter of a kernel's segments, by going through all points in turn; `None` if that does not compute it, or a point faults.
fn in_turn(
    expanded: &Kernel,
    form: &Segments,
    turns: Turns<'_>,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let first = turns.first as u64;
    let mut ranges = ranges.to_vec();
    ranges[form.reduced.0 as usize] = (first, turns.points() as u64);
    if turns.points() == 0 {
        return None;
    }
    if let Some(result) = scatter::in_turn(expanded, &ranges, operands, turns) {
        return Some(result);
    }
    let mut from = 0;
    let mut places = Vec::with_capacity(turns.points());
    for (row, place) in (ranges[0].0 as i64..).zip(0..turns.places()) {
        let end = turns.end(place);
        places.extend(std::iter::repeat_n(row, end - from));
        from = end;
    }
    let places = Array::new(vec![turns.points()], Data::I64(places))?;
    let mut operands = operands.to_vec();
    operands.push(Chunk {
        columns: vec![&places],
        start: vec![first],
    });
    scatter::run(expanded, &[IndexId(0)], &ranges, &operands)
}

/// The kernel segment by segment.
fn each(
    kernel: &Kernel,
    form: &Segments,
    spans: &[Range<i64>],
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Result<Vec<Array>, KernelError> {
    let (rank, by, reduced) = (
        kernel.output_rank as usize,
        form.by.len(),
        form.reduced.0 as usize,
    );
    let whole = signed(ranges);
    let points: usize = spans.iter().map(|span| span.clone().count()).sum();
    // The usual numbers of values: one output point, and a segment of it.
    let mut lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    lengths[..by].fill(1);
    lengths[reduced] = (points / spans.len().max(1)).max(1);
    let axes: (Vec<usize>, Vec<usize>) = ((0..rank).collect(), (rank..ranges.len()).collect());
    let axes = (&axes.0[..], &axes.1[..]);
    let request = Request::of_kernel(kernel, operands, axes, &whole, &lengths);
    let program = Program::new(&request);
    let extents = kernel.indices[rank..].iter();
    let extents: Vec<i64> = extents.map(|index| index.extent as i64).collect();
    let shape: Vec<usize> = ranges[..rank].iter().map(|(_, n)| *n as usize).collect();
    let each: usize = shape[by..].iter().product();
    let mut columns: Vec<Array> = (kernel.output.iter())
        .map(|dtype| memory::room(*dtype, &shape))
        .collect();
    let mut rest: Vec<Segment<'_>> = (columns.iter_mut())
        .map(|column| Segment::of(column.data_mut()))
        .collect();
    let mut tasks = vec![];
    let mut from = 0;
    while from < spans.len() {
        let mut work = 0;
        let last = spans[from..].iter().position(|span| {
            work += span.clone().count() * each + OUTPUT_POINT;
            work >= TASK
        });
        let end = last.map_or(spans.len(), |last| from + last + 1);
        let own;
        (own, rest) = split(rest, (end - from) * each);
        tasks.push((from..end, own));
        from = end;
    }
    let faults = parallel::map_with(
        tasks,
        || (),
        |(), _, (rows, mut rest)| {
            let mut ranges = whole.clone();
            for row in rows {
                let mut number = row as i64;
                for (own, (start, length)) in ranges[..by].iter_mut().zip(&whole).rev() {
                    *own = (start + number % length, 1);
                    number /= length;
                }
                // Strips have a point at least: of an empty segment one at which the guard fails.
                let (start, length) = whole[reduced];
                let first = spans[row].start.min(start + length - 1);
                ranges[reduced] = (first, (spans[row].end - first).max(1));
                let own;
                (own, rest) = split(rest, each);
                let driver = Driver::new(&program, &ranges, &extents, kernel.finish);
                let fault = driver.run_here(own);
                if fault.is_some() {
                    return fault;
                }
            }
            None
        },
    );
    match faults.into_iter().flatten().min() {
        Some(point) => Err(explain(kernel, operands, point)),
        None => Ok(columns),
    }
}

/// The first so many elements of columns, and the others.
fn split(columns: Vec<Segment<'_>>, count: usize) -> (Vec<Segment<'_>>, Vec<Segment<'_>>) {
    columns
        .into_iter()
        .map(|column| column.split(count))
        .unzip()
}
