//! Members of a sweep that one compiled loop computes, from memory to memory.
//!
//! Must not know what is done with what they make.
//!
//! ```text
//! rows 4096.., m, v and w of 16 rows:   one loop over 65536 neighbours, four read and three written
//! ```

use super::merged::{self, Merged, Origin, Outline};
use super::part::{keyed, places};
use super::{Member, Operand};
use crate::boxes::Boxes;
use crate::direct::Several;
use crate::drive::Driver;
use crate::memo::{self, Lying, Ready};
use crate::program::Place;
use crate::segment::Segment;
use crate::{Chunk, Options, signed};
use ein_fused::Group;
use ein_plan::NodeId;
use std::sync::Arc;

/// Members of a sweep, ready to run.
pub(super) struct Bundle {
    pub merged: Merged,
    ready: Arc<Ready>,
}

/// What is known of members without their data.
fn outlines<'a>(members: &[Member<'a>]) -> Vec<Outline<'a>> {
    let mut given: Vec<&Chunk<'_>> = vec![];
    let mut outlines = vec![];
    for member in members {
        let mut operands = vec![];
        for operand in &member.operands {
            operands.push(match operand {
                Operand::Made(other) => Origin::Made(*other),
                Operand::Given(chunk) => {
                    let columns = |known: &Chunk<'_>| {
                        let pairs = known.columns.iter().zip(&chunk.columns);
                        known.columns.len() == chunk.columns.len()
                            && pairs.into_iter().all(|(a, b)| std::ptr::eq(*a, *b))
                    };
                    let is_it = |known: &&Chunk<'_>| columns(known) && known.start == chunk.start;
                    let known = given.iter().position(is_it);
                    Origin::Given(known.unwrap_or_else(|| {
                        given.push(chunk);
                        given.len() - 1
                    }))
                }
            });
        }
        outlines.push(Outline {
            kernel: member.kernel,
            ranges: member.ranges.clone(),
            operands,
            kept: member.kept,
        });
    }
    outlines
}

/// The members that are taken together, where there is code for it.
pub(super) fn bundles(
    members: &[Member<'_>],
    blocks: &Boxes<'_>,
    options: &Options,
) -> Vec<Bundle> {
    let outlines = outlines(members);
    let ready = |merged: Merged| {
        let last = &members[*merged.members.last()?];
        let read = merged.operands.iter();
        let places: Vec<Place> = read
            .map(|(member, operand)| places(members, &members[*member])[*operand].clone())
            .collect();
        let ranges = signed(&last.ranges);
        let mut lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        for (length, range) in lengths.iter_mut().zip(blocks.ranges(0)) {
            *length = range.1 as usize;
        }
        let results = merged.nodes();
        let several = several(&merged, (&results, &ranges, &lengths), &places);
        let mut key = keyed(last, blocks);
        // Which members they are, what is wanted of them, and which of their operands are the same.
        key.extend(merged.members.iter().map(|member| (*member as u64, 0)));
        key.extend(merged.results.iter().map(|result| (result.1 as u64, 1)));
        for member in &merged.members {
            let origins = outlines[*member].operands.iter();
            key.extend(origins.map(|origin| match origin {
                Origin::Given(number) => (*number as u64, 2),
                Origin::Made(number) => (*number as u64, 3),
            }));
        }
        let make = |times| several.ready(times, options.fusion);
        let ready = memo::program(last.memo, &key, Lying::At(&places), make);
        ready.program.direct.then_some(Bundle { merged, ready })
    };
    let all = merged::merged(&outlines).into_iter();
    all.filter_map(ready).collect()
}

/// Members as one kernel, over ranges in parts of these lengths.
fn several<'a>(
    merged: &'a Merged,
    (results, ranges, lengths): (&'a [NodeId], &'a [(i64, i64)], &'a [usize]),
    places: &'a [Place],
) -> Several<'a> {
    Several {
        kernel: &merged.kernel,
        results,
        ranges,
        lengths,
        places,
    }
}

impl Bundle {
    /// Computes a block; `columns`: of each result its part, written past the caches if `streams`.
    pub(super) fn run(
        &self,
        ranges: &[(i64, i64)],
        operands: (&[Chunk<'_>], &[i64]),
        (columns, streams): (Vec<Segment<'_>>, bool),
    ) {
        let driver = Driver::new(&self.ready.program, ranges, &[], true).streaming(streams);
        // Nothing that is read from memory to memory can fault.
        let _none = driver.on(operands, 1).run_here(columns);
    }
}

/// The groups of what is taken together in a sweep; `places`: by member and operand the range of each dimension.
pub(crate) fn groups(members: &[Outline<'_>], places: &[Vec<Vec<(u64, u64)>>]) -> Vec<Group> {
    let group = |merged: Merged| {
        let read = merged.operands.iter();
        let places: Vec<Place> = read
            .map(|(member, operand)| Place::new(&places[*member][*operand]))
            .collect();
        let ranges = signed(&members[*merged.members.first()?].ranges);
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let results = merged.nodes();
        several(&merged, (&results, &ranges, &lengths), &places).group()
    };
    merged::merged(members)
        .into_iter()
        .filter_map(group)
        .collect()
}
