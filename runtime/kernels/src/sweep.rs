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
mod view;

use crate::boxes::Boxes;
use crate::carrier::Carrier;
use crate::column::{Column, Tap};
use crate::cores;
use crate::drive::Driver;
use crate::explain::explain;
use crate::memo::Memo;
use crate::pairs::Pairs;
use crate::segment::Segment;
use crate::stream::{self, Ahead, Soon};
use crate::{Chunk, KernelError, Options, memory, signed};
use bundle::Bundle;
use ein_array::Array;
use ein_plan::Kernel;
use part::{Form, Part, gathers, places};
use rayon::prelude::*;
use read::{Far, Making, aside, far, is_read, row_bytes};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use turns::{Turn, turns};
use view::View;

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
    let work: f64 = parts.iter().map(|part| part.share).sum();
    for (number, part) in parts.iter_mut().enumerate() {
        part.share /= work;
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
        aside: &aside(members, (&bundles, &turns), &over),
        far: &far(members, &extents),
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
    /// By member: whether what it writes over is copied first. Where it is not, it is read where it lies.
    aside: &'p [bool],
    /// What is read of memory, block by block.
    far: &'p [Far],
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
        let soon = self.soon(block, &columns);
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
                    let ahead = self.pace(&self.bundles[*bundle].merged.members, &here, &soon);
                    gathered.extend(self.together(*bundle, &here, (&mut columns, ahead), scratch));
                }
                // What stands behind a fault does not count.
                Turn::Alone(number) if *number > state.faulty.load(Ordering::Relaxed) => {}
                Turn::Alone(number) => {
                    let own = std::mem::take(&mut columns[*number]);
                    let ahead = self.pace(&[*number], &here, &soon);
                    match self.alone(*number, &here, (own, &columns, ahead), scratch) {
                        Ok(carrier) => gathered.extend(carrier.map(|carrier| (*number, carrier))),
                        Err(point) => {
                            let part = &self.parts[*number];
                            let views = self.views(&part.member.operands, &here, &columns);
                            let made = (&views[..], &*scratch);
                            let (operands, _) = self.operands(&part.member.operands, &here, made);
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
        (columns, ahead): (&mut [Vec<Segment<'_>>], Ahead<'_>),
        scratch: &mut Scratch,
    ) -> Vec<(usize, Carrier)> {
        let bundle = &self.bundles[number];
        let results = || bundle.merged.results.iter().map(|result| result.1);
        let mut own_columns: Vec<Vec<Segment<'_>>> = results()
            .map(|number| std::mem::take(&mut columns[number]))
            .collect();
        // What other members read is made where they find it.
        let mut rooms: Vec<Vec<Array>> = results()
            .zip(&own_columns)
            .map(|(number, columns)| {
                let part = &self.parts[number];
                let stays = part.read || columns.is_empty();
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
        let views = self.views(read.clone(), here, columns);
        let (operands, skipped) = self.operands(read, here, (&views, scratch));
        let own = self.parts[bundle.merged.members[0]].block(&here.ranges);
        let mut streams = false;
        let places = own_columns.iter_mut().zip(&mut rooms);
        let to = results().zip(places).map(|(number, (columns, room))| {
            let part = &self.parts[number];
            match (part.gathers, room.first_mut()) {
                (Some(rule), _) => Column::Gathered(bundle.gathering(rule, &own)),
                (None, Some(room)) => Column::There(Segment::of(room.data_mut())),
                (None, None) if part.streams => Column::Past(columns.remove(0)),
                (None, None) => Column::There(columns.remove(0)),
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
        bundle.run(&own, given, over, (&mut to, &mut taps), ahead);
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
        for (number, (mut columns, room)) in results().zip(own_columns.into_iter().zip(rooms)) {
            if let (Some(column), Some(room)) = (columns.first_mut(), room.first()) {
                column.copy(room.data(), self.parts[number].streams);
                streams |= self.parts[number].streams;
            }
            scratch.made[number] = room;
        }
        stream::fence(streams);
        gathered
    }

    /// What the next block reads of memory.
    fn soon(&self, block: usize, columns: &[Vec<Segment<'_>>]) -> Soon {
        let next = block + 1;
        if next == self.blocks.count() {
            return Soon::default();
        }
        let (first, count) = self.blocks.rows(next);
        let parts = self.far.iter().filter_map(|far| {
            let (start, row) = match far {
                Far::Given { begin, row } => (begin + first * row, *row),
                Far::Old { member, row } => (columns[*member].first()?.end(), *row),
            };
            Some(start..start + count * row)
        });
        Soon::of(parts.collect())
    }

    /// What members ask for while they are taken: of what the next block reads, the part that their work is of all work on a block.
    fn pace<'s>(&self, members: &[usize], here: &Here, soon: &'s Soon) -> Ahead<'s> {
        let share = members.iter().map(|member| self.parts[*member].share);
        let points = self.parts[members[0]].block(&here.ranges).into_iter();
        let points = points.map(|(_, length)| length as usize).product();
        soon.pace(share.sum(), points);
        Ahead::Soon(soon)
    }

    /// A member on one block, and what is asked for meanwhile: what is gathered of it, if it is. An error is the first faulty point.
    fn alone(
        &self,
        number: usize,
        here: &Here,
        (mut columns, others, ahead): (Vec<Segment<'_>>, &[Vec<Segment<'_>>], Ahead<'_>),
        scratch: &mut Scratch,
    ) -> Result<Option<Carrier>, Vec<i64>> {
        let part = &self.parts[number];
        let kernel = part.member.kernel;
        let own = part.block(&here.ranges);
        let mut own_room = std::mem::take(&mut scratch.made[number]);
        let read = &part.member.operands;
        let views = self.views(read, here, others);
        let (operands, skipped) = self.operands(read, here, (&views, scratch));
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
                rows.part(&own, (&operands, &skipped), to, ahead);
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

    /// What operands will be written over later, as it lies in a block's columns, by the writer.
    fn views<'b, 'c>(
        &self,
        operands: impl IntoIterator<Item = &'b Operand<'b>>,
        here: &Here,
        columns: &'c [Vec<Segment<'_>>],
    ) -> Vec<(usize, View<'c>)> {
        let old = operands.into_iter().filter_map(|operand| match operand {
            Operand::Old(number) if !self.aside[*number] => Some(*number),
            _ => None,
        });
        let view = |number: usize| {
            let shape = block_shape(&self.parts[number], &here.ranges);
            Some((number, View::of(columns[number].first()?, shape)))
        };
        old.filter_map(view).collect()
    }

    /// Operands in a block, and how many first elements of each are not there.
    fn operands<'b>(
        &self,
        operands: impl IntoIterator<Item = &'b Operand<'b>>,
        here: &Here,
        (views, scratch): (&'b [(usize, View<'_>)], &'b Scratch),
    ) -> (Vec<Chunk<'b>>, Vec<i64>) {
        let operands = operands.into_iter();
        let operands = operands.map(|operand| match operand {
            Operand::Given(chunk) => (chunk.clone(), 0),
            Operand::Made(number) => self.block_of(*number, &scratch.made[*number], here),
            Operand::Old(number) => {
                let view = views.iter().find(|view| view.0 == *number);
                // Neither, if only the loop that writes over it reads it.
                let block = match view {
                    Some((_, view)) => std::slice::from_ref(view.array()),
                    None => &scratch.old[*number],
                };
                self.block_of(*number, block, here)
            }
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

/// The shape of a member's result in a block.
fn block_shape(part: &Part<'_>, ranges: &[(i64, i64)]) -> Vec<usize> {
    let own = part.block(ranges);
    let output = &own[..part.member.kernel.output_rank as usize];
    output.iter().map(|(_, n)| *n as usize).collect()
}

/// Room for what a member makes of a block: the old one, if it fits.
fn room(part: &Part<'_>, ranges: &[(i64, i64)], old: Vec<Array>) -> Vec<Array> {
    let kernel = part.member.kernel;
    let shape = block_shape(part, ranges);
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
