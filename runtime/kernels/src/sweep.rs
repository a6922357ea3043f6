//! Several kernels in one pass over memory: block of rows by block of rows, all of them on each.
//!
//! Members read each other at their own row only, so what one makes of a block is all that the next ones need of it, and
//! is still in a cache. Results have the bits that [`crate::run`] gives member by member: what decides the order of a
//! reduction is decided by the whole. Must not know plans.
//!
//! ```text
//! [n] max a0[n, d]; [n, d] exp(a0[n, d] - m0[n]); [n] sum m1[n, d]; [n, d] m1[n, d] / m2[n]   rows 4 5 6 7, rows 8 9 10 11, …
//! ```

mod bundle;
mod merged;
mod part;
mod read;
mod turns;

use crate::boxes::Boxes;
use crate::carrier::Carrier;
use crate::column::{Column, Tap};
use crate::cores;
use crate::drive::Driver;
use crate::explain::explain;
use crate::memo::Memo;
use crate::pairs::Pairs;
use crate::segment::Segment;
use crate::{Chunk, KernelError, Options, memory, signed, stream};
use bundle::Bundle;
use ein_array::Array;
use ein_plan::Kernel;
use part::{Form, Part, gathers, places};
use rayon::prelude::*;
use read::{Making, aside, is_read, row_bytes};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use turns::{Turn, turns};

pub(crate) use bundle::groups;
pub use merged::{Origin, Outline};

/// Where an operand of a member comes from.
#[derive(Clone, Debug)]
pub enum Operand<'a> {
    /// It is there.
    Given(Chunk<'a>),
    /// An earlier member makes it; it is read at the reader's own row, by bare indices.
    Made(usize),
    /// What a member's result takes the memory of; it lies as the result does, and is read like what is made.
    Old(usize),
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
    sweep_over(members, rows, BTreeMap::new(), options)
}

/// The same, some results taking the memory of arrays: `over` has them by member. They are of the result's shape and type, and members read
/// them as [`Operand::Old`]; such a member is kept, and has one column.
///
/// # Errors
/// Those of [`sweep`]; the arrays are lost then.
pub fn sweep_over<'a>(
    members: &'a [Member<'a>],
    rows: usize,
    mut over: BTreeMap<usize, Array>,
    options: &Options,
) -> Result<Vec<Option<Vec<Array>>>, (usize, KernelError)> {
    let Some(first) = members.first() else {
        return Ok(vec![]);
    };
    members
        .iter()
        .for_each(|member| cores::large(&member.ranges));
    let extents: Vec<(i64, i64)> = signed(&first.ranges[..rows]);
    let overwritten: Vec<bool> = (0..members.len()).map(|n| over.contains_key(&n)).collect();
    let mut results: Vec<Option<Vec<Array>>> = (members.iter().enumerate())
        .map(|(number, member)| {
            if let Some(old) = over.remove(&number) {
                return Some(vec![old]);
            }
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
    let outlines = bundle::outlines(members, &overwritten);
    let merged = merged::merged(&outlines);
    let bytes = row_bytes(members, &merged, &extents);
    let block = Making::of(members, &merged).block_bytes(bytes, &extents);
    let wanted = (block / bytes.max(1)).max(least.unwrap_or(1));
    let blocks = Boxes::new(&extents, wanted);
    let bundles = bundle::bundles(members, (merged, &outlines), &blocks, options);
    let turns = turns(members, &bundles);
    let mut parts: Vec<Part<'_>> = (members.iter().zip(pairs).enumerate())
        .map(|(number, (member, pairs))| {
            let alone = turns.contains(&Turn::Alone(number));
            Part::new(members, (member, pairs, alone), &blocks, options)
        })
        .collect();
    for (number, part) in parts.iter_mut().enumerate() {
        part.read = is_read(members, &bundles, number);
        part.streams &= !overwritten[number];
    }
    let over: Vec<Vec<(usize, usize)>> = (bundles.iter())
        .map(|bundle| bundle.over(members, |number| !parts[number].read))
        .collect();
    let pass = Pass {
        parts: &parts,
        bundles: &bundles,
        turns: &turns,
        blocks: &blocks,
        aside: &aside(members, &bundles, &over),
        over: &over,
    };
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
    let scratch = || Scratch {
        made: parts.iter().map(|_| vec![]).collect(),
        old: parts.iter().map(|_| vec![]).collect(),
    };
    let tasks = tasks
        .into_par_iter()
        .map_init(scratch, |scratch, (block, columns)| {
            pass.block(block, columns, scratch, &state)
        });
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

/// All that a block needs.
struct Pass<'p, 'a> {
    parts: &'p [Part<'a>],
    bundles: &'p [Bundle],
    turns: &'p [Turn],
    blocks: &'p Boxes<'p>,
    /// By member: whether what it writes over is copied first.
    aside: &'p [bool],
    /// By bundle: the operands that its results take the place of, with the column.
    over: &'p [Vec<(usize, usize)>],
}

/// Room for what is made of a block, and for what is written over, by member.
struct Scratch {
    made: Vec<Vec<Array>>,
    old: Vec<Vec<Array>>,
}

/// A block: the range of each row index, and the number of its first row.
struct Here {
    ranges: Vec<(i64, i64)>,
    first: usize,
}

impl Pass<'_, '_> {
    /// All members on one block; `columns`: of each that is kept, its part of the columns. `scratch`: room for what they make. Returns what
    /// is gathered of the block, by member.
    fn block(
        &self,
        block: usize,
        mut columns: Vec<Vec<Segment<'_>>>,
        scratch: &mut Scratch,
        state: &State,
    ) -> Vec<Carrier> {
        let here = Here {
            ranges: self.blocks.ranges(block),
            first: self.blocks.rows(block).0,
        };
        for (number, part) in self.parts.iter().enumerate() {
            if self.aside[number] {
                let old = std::mem::take(&mut scratch.old[number]);
                let mut old = room(part, &here.ranges, old);
                columns[number][0].read(old[0].data_mut());
                scratch.old[number] = old;
            }
        }
        let mut gathered: Vec<(usize, Carrier)> = vec![];
        for turn in self.turns {
            match turn {
                Turn::Together(bundle) => {
                    gathered.extend(self.together(*bundle, &here, &mut columns, scratch));
                }
                // What stands behind a fault does not count.
                Turn::Alone(number) if *number > state.faulty.load(Ordering::Relaxed) => {}
                Turn::Alone(number) => {
                    let own = std::mem::take(&mut columns[*number]);
                    let ahead = self.ahead(*number, &here, &columns, scratch);
                    match self.alone(*number, &here, (own, ahead), scratch) {
                        Ok(carrier) => gathered.extend(carrier.map(|carrier| (*number, carrier))),
                        Err(point) => {
                            let part = &self.parts[*number];
                            let (operands, _) =
                                self.operands(&part.member.operands, &here, scratch);
                            fault(
                                part.member.kernel,
                                (*number, block),
                                &operands,
                                point,
                                state,
                            );
                        }
                    }
                }
            }
        }
        gathered.sort_unstable_by_key(|(number, _)| *number);
        gathered.into_iter().map(|(_, carrier)| carrier).collect()
    }

    /// A bundle's members on one block: what is gathered, with the member.
    fn together(
        &self,
        number: usize,
        here: &Here,
        columns: &mut [Vec<Segment<'_>>],
        scratch: &mut Scratch,
    ) -> Vec<(usize, Carrier)> {
        let bundle = &self.bundles[number];
        let results = || bundle.merged.results.iter().map(|result| result.1);
        // What other members read is made where they find it.
        let mut rooms: Vec<Vec<Array>> = results()
            .map(|number| {
                let part = &self.parts[number];
                let stays = part.read || columns[number].is_empty();
                match stays && part.gathers.is_none() {
                    true => {
                        let old = std::mem::take(&mut scratch.made[number]);
                        room(part, &here.ranges, old)
                    }
                    false => vec![],
                }
            })
            .collect();
        let read = bundle.merged.operands.iter();
        let read = read.map(|(member, operand)| &self.parts[*member].member.operands[*operand]);
        let (operands, skipped) = self.operands(read, here, scratch);
        let own = self.parts[bundle.merged.members[0]].block(&here.ranges);
        let mut streams = false;
        let to = results().zip(&mut rooms).map(|(number, room)| {
            let part = &self.parts[number];
            match (part.gathers, room.first_mut()) {
                (Some(rule), _) => Column::Gathered(bundle.gathering(rule, &own)),
                (None, Some(room)) => Column::There(Segment::of(room.data_mut())),
                (None, None) if part.streams => Column::Past(columns[number].remove(0)),
                (None, None) => Column::There(columns[number].remove(0)),
            }
        });
        let mut to: Vec<Column<'_>> = to.collect();
        let taps = bundle.merged.taps.iter().filter_map(|(node, number)| {
            let gathering = bundle.gathering(self.parts[*number].gathers?, &own);
            let node = node.0;
            Some((*number, Tap { node, gathering }))
        });
        let (tapped, mut taps): (Vec<usize>, Vec<Tap>) = taps.unzip();
        let (given, over) = ((&operands[..], &skipped[..]), &self.over[number][..]);
        bundle.run(&own, given, over, &mut to, &mut taps);
        let taps = tapped.into_iter().zip(&taps);
        let taps = taps.map(|(number, tap)| (number, tap.gathering.carrier()));
        let gathered = results().zip(&to).filter_map(|(number, column)| {
            let Column::Gathered(gathering) = column else {
                return None;
            };
            Some((number, gathering.carrier()))
        });
        let gathered: Vec<(usize, Carrier)> = gathered.chain(taps).collect();
        drop(to);
        for (number, room) in results().zip(rooms) {
            if let (Some(column), Some(room)) = (columns[number].first_mut(), room.first()) {
                column.copy(room.data(), self.parts[number].streams);
                streams |= self.parts[number].streams;
            }
            scratch.made[number] = room;
        }
        stream::fence(streams);
        gathered
    }

    /// How many bytes behind what a member reads first lies what it is of the next block; 0 if that is not known.
    fn ahead(
        &self,
        number: usize,
        here: &Here,
        columns: &[Vec<Segment<'_>>],
        scratch: &Scratch,
    ) -> usize {
        let part = &self.parts[number];
        match part.member.operands.first() {
            Some(Operand::Given(_)) => {
                let rows = here.ranges.iter().map(|range| range.1 as usize);
                rows.product::<usize>() * part.row * size_of::<f32>()
            }
            Some(Operand::Old(old)) => match (columns[*old].first(), scratch.old[*old].first()) {
                (Some(Segment::F32(block)), Some(copy)) => {
                    let next = block.as_ptr_range().end as usize;
                    next.wrapping_sub(copy.data().bytes().as_ptr() as usize)
                }
                _ => 0,
            },
            _ => 0,
        }
    }

    /// A member on one block, and how far [`Pass::ahead`] memory is asked for: what is gathered of it, if it is. An error is the first faulty point.
    fn alone(
        &self,
        number: usize,
        here: &Here,
        (mut columns, ahead): (Vec<Segment<'_>>, usize),
        scratch: &mut Scratch,
    ) -> Result<Option<Carrier>, Vec<i64>> {
        let part = &self.parts[number];
        let kernel = part.member.kernel;
        let own = part.block(&here.ranges);
        let mut own_room = std::mem::take(&mut scratch.made[number]);
        let (operands, skipped) = self.operands(&part.member.operands, here, scratch);
        if part.product.is_some()
            && let Some(product) = part.product(&own, &operands, own_room.pop())
        {
            for column in &mut columns {
                column.copy(product.data(), part.streams);
            }
            stream::fence(part.streams);
            scratch.made[number] = vec![product];
            return Ok(None);
        }
        let driver = || {
            let ready = part
                .ready
                .as_ref()
                .expect("a member that is taken alone has a program");
            let driver = Driver::new(&ready.program, &own, &part.extents, kernel.finish);
            driver.on((&operands, &skipped), ready.parts.unwrap_or(1))
        };
        if part.gathers.is_some() {
            return driver().carrier().map(Some);
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
            None => driver().streaming(streams).ahead(ahead).run_here(to),
        };
        let point = if part.read || columns.is_empty() {
            own_room = room(part, &here.ranges, own_room);
            let to = own_room
                .iter_mut()
                .map(|array| Segment::of(array.data_mut()));
            let point = into(to.collect(), false);
            for (column, array) in columns.iter_mut().zip(&own_room) {
                column.copy(array.data(), part.streams);
            }
            point
        } else {
            into(columns, part.streams)
        };
        scratch.made[number] = own_room;
        stream::fence(part.streams);
        point.map_or(Ok(None), Err)
    }

    /// Operands in a block, and how many first elements of each are not there.
    fn operands<'b>(
        &self,
        operands: impl IntoIterator<Item = &'b Operand<'b>>,
        here: &Here,
        scratch: &'b Scratch,
    ) -> (Vec<Chunk<'b>>, Vec<i64>) {
        let operands = operands.into_iter();
        let operands = operands.map(|operand| match operand {
            Operand::Given(chunk) => (chunk.clone(), 0),
            Operand::Made(number) => self.block_of(*number, &scratch.made[*number], here),
            // Nothing, if only the loop that writes over it reads it.
            Operand::Old(number) => self.block_of(*number, &scratch.old[*number], here),
        });
        operands.unzip()
    }

    /// A block of what lies like the result of a member.
    fn block_of<'b>(&self, number: usize, block: &'b [Array], here: &Here) -> (Chunk<'b>, i64) {
        let part = &self.parts[number];
        let rank = part.member.kernel.output_rank as usize;
        let start = part.block(&here.ranges).into_iter();
        let start = start.map(|(start, _)| start as u64);
        let chunk = Chunk {
            columns: block.iter().collect(),
            start: start.take(rank).collect(),
        };
        (chunk, (here.first * part.row) as i64)
    }
}

/// Room for what a member makes of a block: the old one, if it fits.
fn room(part: &Part<'_>, ranges: &[(i64, i64)], old: Vec<Array>) -> Vec<Array> {
    let kernel = part.member.kernel;
    let own = part.block(ranges);
    let shape: Vec<usize> = own[..kernel.output_rank as usize]
        .iter()
        .map(|(_, n)| *n as usize)
        .collect();
    match old.first() {
        Some(array) if array.shape() == shape => old,
        _ => {
            let types = kernel.output.iter();
            types.map(|dtype| Array::zeros(*dtype, &shape)).collect()
        }
    }
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
