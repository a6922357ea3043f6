//! Several kernels in one pass over memory: block of rows by block of rows, all of them on each.
//!
//! Members read each other at their own row only, so what one makes of a block is all that the next ones need of it, and
//! is still in a cache. Results have the bits that [`crate::run`] gives member by member: what decides the order of a
//! reduction is decided by the whole. Must not know plans.
//!
//! ```text
//! [n] max a0[n, d]; [n, d] exp(a0[n, d] - m0[n]); [n] sum m1[n, d]; [n, d] m1[n, d] / m2[n]   rows 4 5 6 7, rows 8 9 10 11, …
//! ```

use crate::boxes::Boxes;
use crate::carrier::{Carrier, Rule};
use crate::drive::Driver;
use crate::explain::explain;
use crate::memo::{Lying, Memo, Ready};
use crate::pairs::{Boxed, Pairs};
use crate::program::{Place, Program, Request};
use crate::rows::Rows;
use crate::segment::Segment;
use crate::{Chunk, KernelError, Options, contraction, direct, memory, stream};
use ein_array::Array;
use ein_plan::Kernel;
use ein_plan::sweep::BLOCK;
use rayon::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Where an operand of a member comes from.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// It is there.
    Given(Chunk<'a>),
    /// An earlier member makes it; it is read at the reader's own row, by bare indices.
    Made(usize),
}

/// A kernel of a sweep.
#[derive(Clone, Debug)]
pub struct Member<'a> {
    /// What is computed; it has no guard, is no library operation, and its reduction is finished. Without output indices it is a reduction
    /// whose first indices are the rows, and nobody reads it.
    pub kernel: &'a Kernel,
    /// Start and length of each index.
    pub ranges: Vec<(u64, u64)>,
    /// What it reads.
    pub operands: Vec<Operand<'a>>,
    /// Whether its result is wanted whole.
    pub kept: bool,
    /// What is kept of its runs in this sweep.
    pub memo: Option<&'a Memo>,
}

/// Runs members whose first `rows` output indices are the same; of each that is kept, its columns.
///
/// # Errors
/// The first member that faults, and its first faulty point.
pub fn sweep<'a>(
    members: &'a [Member<'a>],
    rows: usize,
    options: &Options,
) -> Result<Vec<Option<Vec<Array>>>, (usize, KernelError)> {
    let Some(first) = members.first() else {
        return Ok(vec![]);
    };
    let extents: Vec<(i64, i64)> = signed(&first.ranges[..rows]);
    let mut results: Vec<Option<Vec<Array>>> = (members.iter())
        .map(|member| {
            let shape = shape(&member.ranges, member.kernel);
            let columns = member.kernel.output.iter();
            member
                .kept
                .then(|| columns.map(|dtype| memory::room(*dtype, &shape)).collect())
        })
        .collect();
    if extents.iter().any(|extent| extent.1 == 0) {
        for (member, columns) in members.iter().zip(&mut results) {
            if let (Some(rule), Some(columns)) = (gathers(member), columns) {
                let mut result = Segment::of(columns[0].data_mut());
                rule.finish(&rule.neutral(), &mut result, 0);
            }
        }
        return Ok(results);
    }
    let pairs: Vec<Option<Pairs>> = members
        .iter()
        .map(|m| match gathers(m) {
            Some(_) => None,
            None => Pairs::of(m.kernel, &signed(&m.ranges), &places(members, m)),
        })
        .collect();
    let least = pairs.iter().flatten().map(Pairs::least_rows).max();
    let wanted = (BLOCK as usize / row_bytes(members, &extents).max(1)).max(least.unwrap_or(1));
    let blocks = Boxes::new(&extents, wanted);
    let parts: Vec<Part<'_>> = members
        .iter()
        .zip(pairs)
        .map(|(member, pairs)| Part::new(members, (member, pairs), &blocks, options))
        .collect();
    let mut rest: Vec<Vec<Segment<'_>>> = results
        .iter_mut()
        .map(|columns| {
            let columns = columns.iter_mut().flatten();
            columns
                .map(|column| Segment::of(column.data_mut()))
                .collect()
        })
        .collect();
    let mut tasks = Vec::with_capacity(blocks.count());
    for block in 0..blocks.count() {
        let count = blocks.rows(block).1;
        let mut own: Vec<Vec<Segment<'_>>> = Vec::with_capacity(rest.len());
        for (columns, part) in rest.iter_mut().zip(&parts) {
            if part.gathers.is_some() {
                own.push(vec![]);
                continue;
            }
            let split = std::mem::take(columns).into_iter();
            let (heads, tails) = split.map(|column| column.split(count * part.row)).unzip();
            own.push(heads);
            *columns = tails;
        }
        tasks.push((block, own));
    }
    drop(rest);
    let state = State {
        faulty: AtomicUsize::new(usize::MAX),
        found: Mutex::new(None),
    };
    let scratch = || parts.iter().map(|_| vec![]).collect();
    let tasks = tasks.into_par_iter().map_init(
        scratch,
        |scratch: &mut Vec<Vec<Array>>, (block, columns)| {
            run_block(&parts, (&blocks, block), columns, scratch, &state)
        },
    );
    let gathered: Vec<Vec<Carrier>> = tasks.collect();
    if let Ok(Some((member, _, error))) = state.found.into_inner() {
        return Err((member, error));
    }
    let results_of = parts.iter().zip(&mut results);
    let gathering = results_of.filter_map(|(part, columns)| Some((part.gathers?, columns)));
    for (number, (rule, columns)) in gathering.enumerate() {
        let Some(columns) = columns else { continue };
        let mut carriers = gathered.iter().map(|block| block[number]);
        let mut total = carriers.next().unwrap_or(rule.neutral());
        carriers.for_each(|carrier| rule.merge(&mut total, &carrier));
        rule.finish(&total, &mut Segment::of(columns[0].data_mut()), 0);
    }
    Ok(results)
}

/// How blocks become one number, if that is what a member makes.
fn gathers(member: &Member<'_>) -> Option<Rule> {
    let kernel = member.kernel;
    let reduction = kernel.reduction.filter(|_| kernel.output_rank == 0);
    reduction.map(|reduction| Rule {
        reduction,
        value: kernel.graph.dtype(kernel.root),
    })
}

/// About how many bytes are read and made for a row.
fn row_bytes(members: &[Member<'_>], extents: &[(i64, i64)]) -> usize {
    let rows: usize = extents.iter().map(|extent| extent.1 as usize).product();
    let mut given: Vec<&Array> = vec![];
    let mut bytes = 0;
    for member in members {
        let elements: usize = shape(&member.ranges, member.kernel).iter().product();
        bytes += elements
            * member
                .kernel
                .output
                .iter()
                .map(|dtype| dtype.size())
                .sum::<usize>();
        for operand in &member.operands {
            let Operand::Given(chunk) = operand else {
                continue;
            };
            for column in &chunk.columns {
                if !given.iter().any(|known| std::ptr::eq(*known, *column)) {
                    given.push(column);
                    bytes += column.data().bytes().len();
                }
            }
        }
    }
    bytes / rows.max(1)
}

fn shape(ranges: &[(u64, u64)], kernel: &Kernel) -> Vec<usize> {
    let output = &ranges[..kernel.output_rank as usize];
    output.iter().map(|(_, n)| *n as usize).collect()
}

/// The worst that happened: the lowest member, then the lowest block.
struct State {
    /// No member from this one on needs to be run.
    faulty: AtomicUsize,
    found: Mutex<Option<(usize, usize, KernelError)>>,
}

/// Where a member's operands lie.
fn places(members: &[Member<'_>], member: &Member<'_>) -> Vec<Place> {
    let operands = member.operands.iter();
    let place = |operand: &Operand<'_>| match operand {
        Operand::Given(chunk) => Place::of(chunk),
        Operand::Made(other) => {
            let other = &members[*other];
            Place::new(&other.ranges[..other.kernel.output_rank as usize])
        }
    };
    operands.map(place).collect()
}

/// A form that needs no program.
enum Form {
    Pairs(Boxed),
    Rows(Rows),
}

/// A member, ready to run.
struct Part<'a> {
    member: &'a Member<'a>,
    /// Instead of the program, if it has such a form.
    form: Option<Form>,
    ready: Arc<Ready>,
    ranges: Vec<(i64, i64)>,
    extents: Vec<i64>,
    /// Elements of a row of its result.
    row: usize,
    /// Whether its result is written past the caches.
    streams: bool,
    /// Whether a later member reads it.
    read: bool,
    /// Whether it is a product of matrices.
    product: bool,
    /// How blocks become one number, if that is what it makes.
    gathers: Option<Rule>,
}

impl<'a> Part<'a> {
    fn new(
        members: &[Member<'a>],
        (member, pairs): (&'a Member<'a>, Option<Pairs>),
        blocks: &Boxes<'_>,
        options: &Options,
    ) -> Part<'a> {
        let kernel = member.kernel;
        let rank = kernel.output_rank as usize;
        let ranges = signed(&member.ranges);
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let places = places(members, member);
        let given: Vec<Option<&Chunk<'_>>> = (member.operands.iter())
            .map(|operand| match operand {
                Operand::Given(chunk) => Some(chunk),
                Operand::Made(_) => None,
            })
            .collect();
        let extents: Vec<i64> = kernel.indices[rank..]
            .iter()
            .map(|i| i.extent as i64)
            .collect();
        let rows = blocks.extents.len();
        let make = |times| {
            let (output, reduced): (Vec<usize>, Vec<usize>) =
                ((0..rank).collect(), (rank..ranges.len()).collect());
            let axes = (output.as_slice(), reduced.as_slice());
            let request = |lengths, lanes| Request {
                lanes,
                ..Request::of_kernel(kernel, &[], axes, &ranges, lengths)
            };
            // What a reduction's order depends on is the whole's.
            let (parts, lanes) = match kernel.reduction {
                None => (1, true),
                Some(_) => {
                    let whole = Program::at(&request(&lengths, None), &places);
                    let driver = Driver::new(&whole, &ranges, &extents, kernel.finish);
                    (driver.parts(), whole.nest.output_lanes)
                }
            };
            let mut inner = lengths.clone();
            for (length, range) in inner.iter_mut().zip(blocks.ranges(0)) {
                *length = range.1 as usize;
            }
            let points = lengths
                .iter()
                .fold(1u64, |n, l| n.saturating_mul(*l as u64));
            let request = request(&inner, Some(lanes));
            let (program, complete) =
                direct::program(&request, &places, kernel, (points, times), options.fusion);
            Ready {
                program,
                parts: Some(parts),
                complete,
            }
        };
        let ready = match member.memo {
            Some(memo) => {
                let block = blocks.ranges(0).into_iter();
                let block = block.map(|(start, length)| (start as u64, length as u64));
                let ranges: Vec<_> = member.ranges.iter().copied().chain(block).collect();
                memo.program(&ranges, Lying::At(&places), make)
            }
            None => Arc::new(make(1)),
        };
        let elements: usize = lengths[..rank].iter().product();
        let bytes = elements
            * kernel
                .output
                .iter()
                .map(|dtype| dtype.size())
                .sum::<usize>();
        Part {
            member,
            form: match pairs {
                Some(pairs) => Some(Form::Pairs(Boxed::new(pairs, &ranges, &given))),
                None if rank == 0 => None,
                None => Rows::of(kernel, &ranges, &places).map(Form::Rows),
            },
            ready,
            extents,
            streams: member.kept && bytes >= stream::FAR,
            row: lengths[rows.min(rank)..rank].iter().product(),
            read: members.iter().any(|other| {
                let mut operands = other.operands.iter();
                operands.any(|operand| matches!(operand, Operand::Made(made) if std::ptr::eq(&members[*made], member)))
            }),
            ranges,
            product: kernel.is_product() && rank > 0,
            gathers: gathers(member),
        }
    }

    /// Its result in a block, if it is a product of matrices.
    fn product(
        &self,
        ranges: &[(i64, i64)],
        operands: &[Chunk<'_>],
        room: Option<Array>,
    ) -> Option<Array> {
        let ranges = ranges.iter().map(|(s, n)| (*s as u64, *n as u64));
        let ranges: Vec<(u64, u64)> = ranges.collect();
        contraction::run(self.member.kernel, &ranges, operands, room)
    }

    /// Its ranges in a block.
    fn block(&self, rows: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut own = self.ranges.clone();
        own[..rows.len()].copy_from_slice(rows);
        own
    }
}

/// All members on one block; `columns`: of each that is kept, its part of the columns. `scratch`: room for what they make. Returns what is
/// gathered of the block, by member.
fn run_block(
    parts: &[Part<'_>],
    (blocks, block): (&Boxes<'_>, usize),
    columns: Vec<Vec<Segment<'_>>>,
    scratch: &mut [Vec<Array>],
    state: &State,
) -> Vec<Carrier> {
    let ranges = blocks.ranges(block);
    let first = blocks.rows(block).0;
    let mut gathered = vec![];
    for (number, (part, mut columns)) in parts.iter().zip(columns).enumerate() {
        if number > state.faulty.load(Ordering::Relaxed) {
            return gathered;
        }
        let kernel = part.member.kernel;
        let own = part.block(&ranges);
        let (made, rest) = scratch.split_at_mut(number);
        let (operands, skipped) = operands(parts, part, (&ranges, first), made);
        if part.product
            && let Some(product) = part.product(&own, &operands, rest[0].pop())
        {
            for column in &mut columns {
                column.copy(product.data(), part.streams);
            }
            stream::fence(part.streams);
            rest[0] = vec![product];
            continue;
        }
        if part.gathers.is_some() {
            let driver = Driver::new(&part.ready.program, &own, &part.extents, kernel.finish);
            match driver.on((&operands, &skipped), 1).carrier() {
                Ok(carrier) => gathered.push(carrier),
                Err(point) => {
                    fault(kernel, (number, block), &operands, point, state);
                    return gathered;
                }
            }
            continue;
        }
        let into = |to: Vec<Segment<'_>>, streams: bool| match &part.form {
            Some(Form::Pairs(pairs)) => {
                for column in to {
                    pairs.run(&own, (&operands, &skipped), column);
                }
                None
            }
            Some(Form::Rows(rows)) => {
                rows.part(&own, (&operands, &skipped), to);
                None
            }
            None => Driver::new(&part.ready.program, &own, &part.extents, kernel.finish)
                .on((&operands, &skipped), part.ready.parts.unwrap_or(1))
                .streaming(streams)
                .run_here(to),
        };
        let point = if part.read || columns.is_empty() {
            let shape: Vec<usize> = own[..kernel.output_rank as usize]
                .iter()
                .map(|(_, n)| *n as usize)
                .collect();
            let room = &mut rest[0];
            if room.first().is_none_or(|array| array.shape() != shape) {
                let types = kernel.output.iter();
                *room = types.map(|dtype| Array::zeros(*dtype, &shape)).collect();
            }
            let to = room.iter_mut().map(|array| Segment::of(array.data_mut()));
            let point = into(to.collect(), false);
            for (column, array) in columns.iter_mut().zip(&*room) {
                column.copy(array.data(), part.streams);
            }
            point
        } else {
            into(columns, part.streams)
        };
        stream::fence(part.streams);
        if let Some(point) = point {
            fault(kernel, (number, block), &operands, point, state);
            return gathered;
        }
    }
    gathered
}

/// The operands of a member in a block that begins with row `first`, and how many first elements of each are not there.
fn operands<'b>(
    parts: &[Part<'_>],
    part: &'b Part<'_>,
    (ranges, first): (&[(i64, i64)], usize),
    made: &'b [Vec<Array>],
) -> (Vec<Chunk<'b>>, Vec<i64>) {
    let operands = part.member.operands.iter().map(|operand| match operand {
        Operand::Given(chunk) => (chunk.clone(), 0),
        Operand::Made(number) => {
            let other = &parts[*number];
            let start = other
                .block(ranges)
                .into_iter()
                .map(|(start, _)| start as u64);
            let chunk = Chunk {
                columns: made[*number].iter().collect(),
                start: start
                    .take(other.member.kernel.output_rank as usize)
                    .collect(),
            };
            (chunk, (first * other.row) as i64)
        }
    });
    operands.unzip()
}

/// Finds out what is wrong at a point, if nothing worse is known.
fn fault(
    kernel: &Kernel,
    (number, block): (usize, usize),
    operands: &[Chunk<'_>],
    point: Vec<i64>,
    state: &State,
) {
    let Ok(mut found) = state.found.lock() else {
        return;
    };
    let worse = found
        .as_ref()
        .is_some_and(|(n, b, _)| (*n, *b) < (number, block));
    if !worse {
        *found = Some((number, block, explain(kernel, operands, point)));
        state.faulty.fetch_min(number, Ordering::Relaxed);
    }
}

fn signed(ranges: &[(u64, u64)]) -> Vec<(i64, i64)> {
    ranges.iter().map(|(s, n)| (*s as i64, *n as i64)).collect()
}
