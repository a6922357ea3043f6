//! Several kernels in one pass over memory: block of rows by block of rows, all of them on each.
//!
//! Members read each other at their own row only, so what one makes of a block is all that the next ones need of it, and
//! is still in a cache. Results have the bits that [`crate::run`] gives member by member: what decides the order of a
//! reduction is decided by the whole. Must not know plans.
//!
//! ```text
//! [n] max a0[n, d]; [n, d] exp(a0[n, d] - m0[n]); [n] sum m1[n, d]; [n, d] m1[n, d] / m2[n]   rows 4 5 6 7, rows 8 9 10 11, …
//! ```

use crate::drive::Driver;
use crate::explain::explain;
use crate::program::{Place, Program, Request};
use crate::segment::Segment;
use crate::{Chunk, KernelError, Options, fuse, memory, stream};
use ein_array::Array;
use ein_plan::Kernel;
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of a block, of all that is read and made at its rows: what stays in the second cache.
const BLOCK: usize = 1 << 19;

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
    /// What is computed; it has no guard, is no library operation, and its reduction is finished.
    pub kernel: &'a Kernel,
    /// Start and length of each index.
    pub ranges: Vec<(u64, u64)>,
    /// What it reads.
    pub operands: Vec<Operand<'a>>,
    /// Whether its result is wanted whole.
    pub kept: bool,
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
        return Ok(results);
    }
    let blocks = Blocks::new(&extents, row_bytes(members, &extents));
    let parts: Vec<Part<'_>> = members
        .iter()
        .map(|member| Part::new(members, member, &blocks, options))
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
    tasks.into_par_iter().for_each_init(
        scratch,
        |scratch: &mut Vec<Vec<Array>>, (block, columns)| {
            run_block(&parts, (&blocks, block), columns, scratch, &state);
        },
    );
    match state.found.into_inner() {
        Ok(Some((member, _, error))) => Err((member, error)),
        _ => Ok(results),
    }
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

/// The blocks of rows: boxes of the row indices that lie one behind the other.
struct Blocks<'a> {
    /// Start and length of each row index.
    extents: &'a [(i64, i64)],
    /// The index that is cut; those before it have one value in a block, those behind it all.
    cut: usize,
    /// How many of its values a block has at most.
    most: usize,
}

impl<'a> Blocks<'a> {
    fn new(extents: &'a [(i64, i64)], row_bytes: usize) -> Blocks<'a> {
        let mut wanted = (BLOCK / row_bytes.max(1)).max(1);
        let mut cut = extents.len().saturating_sub(1);
        while cut > 0 && extents[cut].1 as usize <= wanted {
            wanted /= (extents[cut].1 as usize).max(1);
            cut -= 1;
        }
        let length = extents
            .get(cut)
            .map_or(1, |extent| extent.1 as usize)
            .max(1);
        // Equal blocks rather than full ones and a short rest.
        let most = length.div_ceil(length.div_ceil(wanted.max(1)));
        Blocks { extents, cut, most }
    }

    fn pieces(&self) -> usize {
        self.extents
            .get(self.cut)
            .map_or(1, |extent| (extent.1 as usize).div_ceil(self.most))
    }

    /// Number of blocks.
    fn count(&self) -> usize {
        let outer = self.extents.iter().take(self.cut);
        self.pieces() * outer.map(|extent| extent.1 as usize).product::<usize>()
    }

    /// Start and length of each row index in a block.
    fn ranges(&self, block: usize) -> Vec<(i64, i64)> {
        let mut ranges = self.extents.to_vec();
        let (mut outer, piece) = (block / self.pieces(), block % self.pieces());
        let first = piece * self.most;
        let (start, length) = ranges[self.cut];
        let here = (length as usize - first).min(self.most);
        ranges[self.cut] = (start + first as i64, here as i64);
        for range in ranges[..self.cut].iter_mut().rev() {
            let length = range.1 as usize;
            *range = (range.0 + (outer % length) as i64, 1);
            outer /= length;
        }
        ranges
    }

    /// The number of a block's first row, and how many rows it has.
    fn rows(&self, block: usize) -> (usize, usize) {
        let ranges = self.ranges(block);
        let within = ranges.iter().zip(self.extents);
        let first = within.fold(0, |n, (range, extent)| {
            n * extent.1 as usize + (range.0 - extent.0) as usize
        });
        (first, ranges.iter().map(|range| range.1 as usize).product())
    }
}

/// A member, ready to run.
struct Part<'a> {
    member: &'a Member<'a>,
    program: Program<'static>,
    ranges: Vec<(i64, i64)>,
    extents: Vec<i64>,
    /// Into how many parts each reduction is cut.
    parts: u64,
    /// Elements of a row of its result.
    row: usize,
    /// Whether its result is written past the caches.
    streams: bool,
    /// Whether a later member reads it.
    read: bool,
}

impl<'a> Part<'a> {
    fn new(
        members: &[Member<'a>],
        member: &'a Member<'a>,
        blocks: &Blocks<'_>,
        options: &Options,
    ) -> Part<'a> {
        let kernel = member.kernel;
        let rank = kernel.output_rank as usize;
        let ranges = signed(&member.ranges);
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let places: Vec<Place> = (member.operands.iter())
            .map(|operand| match operand {
                Operand::Given(chunk) => Place::of(chunk),
                Operand::Made(other) => {
                    let other = &members[*other];
                    Place::new(&other.ranges[..other.kernel.output_rank as usize])
                }
            })
            .collect();
        let (output, reduced): (Vec<usize>, Vec<usize>) =
            ((0..rank).collect(), (rank..ranges.len()).collect());
        let axes = (output.as_slice(), reduced.as_slice());
        let request = |lengths, lanes| Request {
            lanes,
            ..Request::of_kernel(kernel, &[], axes, &ranges, lengths)
        };
        let extents: Vec<i64> = kernel.indices[rank..]
            .iter()
            .map(|i| i.extent as i64)
            .collect();
        // What a reduction's order depends on is the whole's.
        let whole = Program::at(&request(&lengths, None), &places);
        let driver = Driver::new(&whole, &ranges, &extents, kernel.finish);
        let (parts, lanes) = (driver.parts(), whole.nest.output_lanes);
        let mut inner = lengths.clone();
        let rows = blocks.extents.len();
        for (length, range) in inner.iter_mut().zip(blocks.ranges(0)) {
            *length = range.1 as usize;
        }
        let mut program = Program::at(&request(&inner, Some(lanes)), &places);
        let points = lengths
            .iter()
            .fold(1u64, |n, l| n.saturating_mul(*l as u64));
        fuse::fuse(&mut program, (points, 1), options.fusion);
        let elements: usize = lengths[..rank].iter().product();
        let bytes = elements
            * kernel
                .output
                .iter()
                .map(|dtype| dtype.size())
                .sum::<usize>();
        Part {
            member,
            program,
            extents,
            parts,
            streams: member.kept && bytes >= stream::FAR,
            row: lengths[rows..rank].iter().product(),
            read: members.iter().any(|other| {
                let mut operands = other.operands.iter();
                operands.any(|operand| matches!(operand, Operand::Made(made) if std::ptr::eq(&members[*made], member)))
            }),
            ranges,
        }
    }

    /// Its ranges in a block.
    fn block(&self, rows: &[(i64, i64)]) -> Vec<(i64, i64)> {
        let mut own = self.ranges.clone();
        own[..rows.len()].copy_from_slice(rows);
        own
    }
}

/// All members on one block; `columns`: of each that is kept, its part of the columns. `scratch`: room for what they make.
fn run_block(
    parts: &[Part<'_>],
    (blocks, block): (&Blocks<'_>, usize),
    columns: Vec<Vec<Segment<'_>>>,
    scratch: &mut [Vec<Array>],
    state: &State,
) {
    let ranges = blocks.ranges(block);
    let first = blocks.rows(block).0;
    for (number, (part, mut columns)) in parts.iter().zip(columns).enumerate() {
        if number > state.faulty.load(Ordering::Relaxed) {
            return;
        }
        let kernel = part.member.kernel;
        let own = part.block(&ranges);
        let (made, rest) = scratch.split_at_mut(number);
        let (operands, skipped) = operands(parts, part, (&ranges, first), made);
        let driver = Driver::new(&part.program, &own, &part.extents, kernel.finish)
            .on((&operands, &skipped), part.parts);
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
            let point = driver.run_here(to.collect());
            for (column, array) in columns.iter_mut().zip(&*room) {
                column.copy(array.data(), part.streams);
            }
            point
        } else {
            driver.streaming(part.streams).run_here(columns)
        };
        stream::fence(part.streams);
        if let Some(point) = point {
            return fault(kernel, (number, block), &operands, point, state);
        }
    }
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
