//! Products of matrices of the points that read a factor at the same place, or that add to the same place.
//!
//! Points are sorted by place. Those of one place are the rows of one product, whose rows go to the points, or all of which goes to the place. A
//! fault is left to the ordinary loops, which find the lowest one. Must not know plans.
//!
//! ```text
//! a0[n, d] * a1[a2[n], d, f], a2 = 1 0 1          ->   rows 0, 2 of a0 times a1[1], row 1 times a1[0]
//! sum a0[n, d] * a1[n, f] if a2[n] == e, the same   ->   e = 1: rows 0, 2 of both factors, e = 0: row 1
//! ```

use crate::{Chunk, Options, memory, parallel};
use ein_array::{Array, Data};
use ein_plan::schedule::placed_matmul::{ROWS, placed_matmul};
use ein_plan::{Kernel, Scalar};
use std::ops::{AddAssign, Range};

/// Tasks in which the rows of a product go to their lines.
const TASKS: usize = 8;

/// The sums; `None` if a point faults.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let placed = placed_matmul(kernel)?;
    let computed = |kernel: &Kernel, ranges: &[(u64, u64)], operands: &[Chunk<'_>]| {
        let made = crate::run(kernel, ranges, operands, &Options::default());
        made.ok()?.pop()
    };
    let of_points = placed.points.iter().map(|index| ranges[index.0 as usize]);
    let of_points: Vec<(u64, u64)> = of_points.collect();
    let positions = placed.positions.iter();
    let positions: Option<Vec<Array>> = positions
        .map(|(position, _)| computed(position, &of_points, operands))
        .collect();
    let positions = positions?;
    // The values that a position may have: of the operand that is read, or of the output in these ranges.
    let bounds: Vec<(u64, u64)> = match placed.scatters {
        true => ranges[..positions.len()].to_vec(),
        false => (placed.positions.iter().map(|(_, extent)| (0, *extent))).collect(),
    };
    let places = places(&positions, &bounds)?;
    if !placed.scatters && places.contains(&None) {
        return None;
    }

    let rank = kernel.output_rank as usize;
    let added = if placed.scatters { positions.len() } else { 0 };
    let others = |all: Range<usize>| -> Vec<(u64, u64)> {
        let others = all.filter(|i| placed.points.iter().all(|point| point.0 as usize != *i));
        others.map(|i| ranges[i]).collect()
    };
    let (own, inner) = (others(added..rank), others(rank..ranges.len()));
    let reduced = placed.points.iter().filter(|i| i.0 as usize >= rank);
    let reduced = reduced.map(|i| ranges[i.0 as usize].1 as usize);
    let each: usize = reduced.product();
    let shape = ranges[..rank].iter().map(|(_, length)| *length as usize);
    let shape: Vec<usize> = shape.collect();
    // Where each point has a line of its own, nothing is there before.
    let is_fresh = !placed.scatters && each == 1;
    let mut sums = match is_fresh {
        true => memory::room(kernel.output[0], &shape),
        false => Array::zeros(kernel.output[0], &shape),
    };
    for same in by_place(&places, &bounds) {
        let scalars = positions.iter().map(|position| scalar(position, same[0]));
        let scalars: Vec<Array> = scalars.collect();
        for rows in same.chunks(ROWS) {
            let values = values(&of_points, rows);
            let more = values.iter().map(|values| (values, vec![0]));
            let more = more.chain(scalars.iter().map(|place| (place, vec![])));
            let more = more.map(|(array, start)| Chunk {
                columns: vec![array],
                start,
            });
            let all: Vec<Chunk<'_>> = operands.iter().cloned().chain(more).collect();
            let counted = [(0, rows.len() as u64)];
            let ranges = match placed.scatters {
                true => [&own[..], &counted, &inner].concat(),
                false => [&counted[..], &own, &inner].concat(),
            };
            let part = computed(&placed.product, &ranges, &all)?;
            let lines: Vec<usize> = match placed.scatters {
                true => vec![places[rows[0]]?],
                false => rows.iter().map(|point| point / each).collect(),
            };
            take(&mut sums, &lines, &part, is_fresh);
        }
    }
    Some(vec![sums])
}

/// The number of the place of each point, of positions in these bounds; `None` for a point that is outside, or for all if positions are no integers.
fn places(positions: &[Array], bounds: &[(u64, u64)]) -> Option<Vec<Option<usize>>> {
    let mut places = vec![Some(0); positions.first()?.data().len()];
    for (positions, (start, length)) in positions.iter().zip(bounds) {
        for (at, place) in places.iter_mut().enumerate() {
            let Scalar::Int(position) = positions.data().get(at) else {
                return None;
            };
            let own = u64::try_from(position).ok();
            let own = own.and_then(|position| position.checked_sub(*start));
            let own = own.filter(|own| own < length);
            *place = place
                .zip(own)
                .map(|(place, own)| place * *length as usize + own as usize);
        }
    }
    Some(places)
}

/// The points of each place that has any, in order.
fn by_place(places: &[Option<usize>], bounds: &[(u64, u64)]) -> Vec<Vec<usize>> {
    let count: u64 = bounds.iter().map(|(_, length)| length).product();
    let mut counts = vec![0; count as usize];
    places
        .iter()
        .flatten()
        .for_each(|place| counts[*place] += 1);
    let mut all: Vec<Vec<usize>> = counts.into_iter().map(Vec::with_capacity).collect();
    for (point, place) in places.iter().enumerate() {
        if let Some(place) = place {
            all[*place].push(point);
        }
    }
    all.retain(|points| !points.is_empty());
    all
}

/// An element of an array as an array of its own.
fn scalar(array: &Array, at: usize) -> Array {
    let mut scalar = memory::room(array.dtype(), &[]);
    let size = array.dtype().size();
    let from = &array.data().bytes()[at * size..][..size];
    scalar.data_mut().bytes_mut().copy_from_slice(from);
    scalar
}

/// By index, its values at some points of these ranges.
fn values(ranges: &[(u64, u64)], points: &[usize]) -> Vec<Array> {
    let mut stride = 1;
    let of_index = |(start, length): &(u64, u64)| {
        let at = |point: &usize| (start + (*point as u64 / stride) % length) as i64;
        let values = Data::I64(points.iter().map(at).collect());
        stride *= length;
        Array::new(vec![points.len()], values).expect("as many values as there are points")
    };
    let mut all: Vec<Array> = ranges.iter().rev().map(of_index).collect();
    all.reverse();
    all
}

/// Adds parts, one for each of these lines, which ascend, to the lines of sums, or puts them there.
fn take(sums: &mut Array, lines: &[usize], parts: &Array, is_fresh: bool) {
    fn taken<T: Copy + Send + Sync + AddAssign>(
        sums: &mut [T],
        lines: &[usize],
        parts: &[T],
        is_fresh: bool,
    ) {
        let width = parts.len() / lines.len();
        // Each task has lines that no other one has.
        let (mut tasks, mut rest, mut begin) = (vec![], sums, 0);
        let each = lines.len().div_ceil(TASKS);
        let mut open = lines.chunk_by(|a, b| a == b).peekable();
        let mut from = 0;
        while open.peek().is_some() {
            let mut to = from;
            while to - from < each
                && let Some(same) = open.next()
            {
                to += same.len();
            }
            let end = lines[to - 1] + 1;
            let (own, others) = rest.split_at_mut((end - begin) * width);
            tasks.push((begin, own, from..to));
            (rest, begin, from) = (others, end, to);
        }
        parallel::items(
            tasks,
            |_, (begin, own, range): (usize, &mut [T], Range<usize>)| {
                let parts = &parts[range.start * width..range.end * width];
                for (line, part) in lines[range].iter().zip(parts.chunks_exact(width)) {
                    let sums = &mut own[(line - begin) * width..][..width];
                    match is_fresh {
                        true => sums.copy_from_slice(part),
                        false => sums
                            .iter_mut()
                            .zip(part)
                            .for_each(|(sum, term)| *sum += *term),
                    }
                }
            },
        );
    }
    match (sums.data_mut(), parts.data()) {
        (Data::F32(sums), Data::F32(parts)) => taken(sums, lines, parts, is_fresh),
        (Data::F64(sums), Data::F64(parts)) => taken(sums, lines, parts, is_fresh),
        _ => unreachable!("the sums are floats, and their own type"),
    }
}
