//! A sweep's pass over memory: all members on one block of rows, in turn.
//!
//! What one makes lies in a cache for the next; what is written over later is read where it lies; what the next block reads is asked for meanwhile.
//! Must not know how members were chosen, or where results go in the end.
//!
//! ```text
//! block 3, rows 12 13 14 15:   max, exp, sum, quotient; rows 16 17 18 19 on their way
//! ```

use super::Operand;
use super::bundle::Bundle;
use super::outside::set_outside;
use super::part::{Direct, Part};
use super::read::Far;
use super::turns::Turn;
use super::view::View;
use crate::boxes::Boxes;
use crate::carrier::Carrier;
use crate::column::{Column, SideReduction};
use crate::drive::Driver;
use crate::explain::explain;
use crate::segment::Segment;
use crate::stream::{self, Ahead, Soon};
use crate::{Chunk, KernelError};
use ein_array::Array;
use ein_plan::Kernel;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The worst that happened: the lowest member, then the lowest block.
pub(super) struct State {
    /// No member from this one on needs to be run.
    pub faulty: AtomicUsize,
    pub found: Mutex<Option<(usize, usize, KernelError)>>,
}

/// All that a block needs.
pub(super) struct Pass<'p, 'a> {
    pub parts: &'p [Part<'a>],
    pub bundles: &'p [Bundle],
    pub turns: &'p [Turn],
    pub blocks: &'p Boxes<'p>,
    /// By member: whether what it writes over is copied first. Where it is not, it is read where it lies.
    pub aside: &'p [bool],
    /// What is read of memory, block by block.
    pub far: &'p [Far],
    /// That of all members.
    pub work: f64,
    /// By bundle: the operands that its results take the place of, with the column.
    pub over: &'p [Vec<(usize, usize)>],
}

/// By member: room for what is made of a block, and for what is written over.
pub(super) struct Scratch {
    pub made: Vec<Vec<Array>>,
    pub old: Vec<Vec<Array>>,
    /// Whether what was made last is 0 outside its mask.
    pub zero: Vec<bool>,
}

impl Scratch {
    pub(super) fn new(members: usize) -> Scratch {
        Scratch {
            made: vec![vec![]; members],
            old: vec![vec![]; members],
            zero: vec![false; members],
        }
    }
}

/// A block: the range of each row index, and the number of its first row.
struct Here {
    ranges: Vec<(i64, i64)>,
    first: usize,
}

impl Pass<'_, '_> {
    /// All members on one block; `columns`: of each that is kept, its part of the columns. `scratch`: room for what they make. Returns what
    /// is gathered of the block, by member.
    pub(super) fn block(
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
        let side_reductions = bundle
            .merged
            .side_reductions
            .iter()
            .filter_map(|(node, number)| {
                let gathering = bundle.gathering(self.parts[*number].gathers?, &own);
                let node = node.0;
                Some((*number, SideReduction { node, gathering }))
            });
        let (reducing, mut side_reductions): (Vec<usize>, Vec<SideReduction>) =
            side_reductions.unzip();
        let (given, over) = ((&operands[..], &skipped[..]), &self.over[number][..]);
        bundle.run(&own, given, over, (&mut to, &mut side_reductions), ahead);
        let side_reductions = reducing.into_iter().zip(&side_reductions);
        let side_reductions =
            side_reductions.map(|(number, side)| (number, side.gathering.carrier()));
        let gathered = results().zip(&to).filter_map(|(number, column)| {
            let Column::Gathered(gathering) = column else {
                return None;
            };
            Some((number, gathering.carrier()))
        });
        let gathered: Vec<(usize, Carrier)> = gathered.chain(side_reductions).collect();
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
        let work = members.iter().map(|member| self.parts[*member].work);
        let points = self.parts[members[0]].block(&here.ranges).into_iter();
        let points = points.map(|(_, length)| length as usize).product();
        soon.pace(work.sum::<f64>() / self.work, points);
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
        if let Some(within) = &part.within
            && let (Some(product), Some(outside)) = (within.taken, within.outside)
        {
            scratch.made.swap(product, number);
            let made = &mut scratch.made[number];
            let mut rows = Segment::of(made[0].data_mut());
            set_outside(&within.mask, &own, &mut rows, outside);
            part.hand_on(made, &mut columns);
            scratch.zero[number] = outside == 0.0;
            return Ok(None);
        }
        let mut own_room = std::mem::take(&mut scratch.made[number]);
        let read = &part.member.operands;
        let views = self.views(read, here, others);
        let (operands, skipped) = self.operands(read, here, (&views, scratch));
        let terms = self.terms(part, here, scratch);
        if part.product.is_some()
            && let Some(product) = part.product(&own, terms, &operands, own_room.pop())
        {
            let made = vec![product];
            part.hand_on(&made, &mut columns);
            scratch.made[number] = made;
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
        let mut zero = false;
        let mut into = |mut to: Vec<Segment<'_>>, streams: bool| match (&part.form, &part.within) {
            (_, Some(within)) => {
                let columns = own.last().copied().unwrap_or_default();
                let row = |point: &[i64]| within.mask.of_row(point, columns);
                let driver = driver().ahead(ahead);
                zero = driver.run_within(to.remove(0), row, within.outside);
                None
            }
            (Some(Direct::Pairwise(pairs)), None) => {
                for column in to {
                    pairs.run(&own, (&operands, &skipped), column);
                }
                None
            }
            (Some(Direct::Rows(rows)), None) => {
                rows.part(&own, (&operands, &skipped), to, ahead);
                None
            }
            (None, None) => driver().streaming(streams).ahead(ahead).run_here(to),
        };
        let point = if part.read || columns.is_empty() {
            own_room = room(part, &here.ranges, own_room);
            let to = own_room
                .iter_mut()
                .map(|array| Segment::of(array.data_mut()));
            let point = into(to.collect(), false);
            part.hand_on(&own_room, &mut columns);
            point
        } else {
            let point = into(columns, part.streams);
            stream::fence(part.streams);
            point
        };
        (scratch.made[number], scratch.zero[number]) = (own_room, zero);
        point.map_or(Ok(None), Err)
    }

    /// The terms of a product that are not 0 in all rows, with their index, if there may be others.
    fn terms(
        &self,
        part: &Part<'_>,
        here: &Here,
        scratch: &Scratch,
    ) -> Option<(usize, Range<i64>)> {
        let zeros = part.zeros.as_ref()?;
        let factor = &self.parts[zeros.of];
        let within = factor.within.as_ref()?;
        if !scratch.zero[zeros.of] || !zeros.hold(&scratch.made) {
            return None;
        }
        let terms = within.mask.of_rows(&factor.block(&here.ranges));
        // One of them, if there is no other, makes a 0.
        let first = part.ranges[zeros.terms].0;
        let terms = if terms.is_empty() {
            first..first + 1
        } else {
            terms
        };
        Some((zeros.terms, terms))
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
    if old.is_empty() {
        let types = kernel.output.iter();
        return types.map(|dtype| Array::zeros(*dtype, &shape)).collect();
    }
    old.into_iter().map(|old| old.refitted(&shape)).collect()
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
