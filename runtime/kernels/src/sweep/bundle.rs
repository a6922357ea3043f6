//! Members of a sweep that one compiled loop computes, from memory to memory.
//!
//! Must not know what is done with what they make.
//!
//! ```text
//! rows 4096.., m, v and w of 16 rows:   one loop over 65536 neighbours, four read and three written
//! ```

use super::merged::{self, Merged, Origin, Outline};
use super::part::{keyed, places, signed};
use super::{Member, Operand};
use crate::boxes::Boxes;
use crate::drive::Driver;
use crate::memo::{Lying, Ready};
use crate::program::{Place, Request};
use crate::segment::Segment;
use crate::{Chunk, Options, direct};
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
    let ready =
        |merged: Merged| {
            let last = &members[*merged.members.last()?];
            let read = merged.operands.iter();
            let places: Vec<Place> = read
                .map(|(member, operand)| places(members, &members[*member])[*operand].clone())
                .collect();
            let make = |times| made(&merged, (last, &places), blocks, options, times);
            let ready =
                match last.memo {
                    Some(memo) => {
                        let mut key = keyed(last, blocks);
                        // Which members they are, what is wanted of them, and which of their operands are the same.
                        key.extend(merged.members.iter().map(|member| (*member as u64, 0)));
                        key.extend(merged.results.iter().map(|result| (result.1 as u64, 1)));
                        for member in &merged.members {
                            key.extend(outlines[*member].operands.iter().map(
                                |origin| match origin {
                                    Origin::Given(number) => (*number as u64, 2),
                                    Origin::Made(number) => (*number as u64, 3),
                                },
                            ));
                        }
                        memo.program(&key, Lying::At(&places), make)
                    }
                    None => Arc::new(make(1)),
                };
            ready.program.direct.then_some(Bundle { merged, ready })
        };
    let all = merged::merged(&outlines).into_iter();
    all.filter_map(ready).collect()
}

/// The program of members in blocks; not direct if there is no code for it.
fn made(
    merged: &Merged,
    (member, places): (&Member<'_>, &[Place]),
    blocks: &Boxes<'_>,
    options: &Options,
    times: u64,
) -> Ready {
    let ranges = signed(&member.ranges);
    let mut lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let points = lengths
        .iter()
        .fold(1u64, |n, l| n.saturating_mul(*l as u64));
    for (length, range) in lengths.iter_mut().zip(blocks.ranges(0)) {
        *length = range.1 as usize;
    }
    let output: Vec<usize> = (0..ranges.len()).collect();
    let request = Request::of_kernel(&merged.kernel, &[], (&output, &[]), &ranges, &lengths);
    let results: Vec<NodeId> = merged.results.iter().map(|result| result.0).collect();
    let kernel = (&merged.kernel, &results[..]);
    let (program, complete) =
        direct::several(&request, places, kernel, (points, times), options.fusion);
    Ready {
        program,
        parts: None,
        complete,
    }
}

impl Bundle {
    /// Computes a block; `columns`: of each result its part.
    pub(super) fn run(
        &self,
        ranges: &[(i64, i64)],
        operands: (&[Chunk<'_>], &[i64]),
        columns: Vec<Segment<'_>>,
    ) {
        let driver = Driver::new(&self.ready.program, ranges, &[], true);
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
        let results: Vec<NodeId> = merged.results.iter().map(|result| result.0).collect();
        direct::group_of_several((&merged.kernel, &results), &ranges, &places)
    };
    merged::merged(members)
        .into_iter()
        .filter_map(group)
        .collect()
}
