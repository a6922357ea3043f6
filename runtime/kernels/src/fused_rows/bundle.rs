//! Members of a sweep that one compiled loop computes, from memory to memory.
//!
//! Must not know what is done with what they make.
//!
//! ```text
//! rows 4096.., m, v and w of 16 rows:   one loop over 65536 neighbours, four read and three written
//! ```

use super::part::places;
use super::{Member, Operand};
use crate::boxes::Boxes;
use crate::carrier::Rule;
use crate::column::{Column, Gathering, SideReduction, Strips};
use crate::direct::Several;
use crate::drive::Driver;
use crate::memo::{self, Key, OperandLayout, Purpose, Ready};
use crate::nest::Nest;
use crate::stream::Ahead;
use crate::{Chunk, Options, signed};
use ein_plan::NodeId;
use ein_plan::schedule::access::Place;
use ein_plan::schedule::merging::Merged;
use ein_plan::schedule::outline::{Origin, Outline};
use std::sync::Arc;

/// Members of a sweep, ready to run.
pub(super) struct Bundle {
    pub merged: Merged,
    ready: Arc<Ready>,
    /// The loops in which what is gathered is reduced.
    points: Nest,
    /// Whether no other loop of the sweep comes before it.
    first: bool,
}

/// What is known of members without their data; `over`: which of them take the memory of an operand.
pub(super) fn outlines<'a>(members: &[Member<'a>], over: &[bool]) -> Vec<Outline<'a>> {
    let mut given: Vec<&Operand<'_>> = vec![];
    let mut outlines = vec![];
    for (member, over) in members.iter().zip(over) {
        let mut operands = vec![];
        for operand in &member.operands {
            operands.push(match operand {
                Operand::Made(other) => Origin::Made(*other),
                Operand::Given(_) | Operand::Old(_) => {
                    let known = given.iter().position(|known| same(known, operand));
                    Origin::Given(known.unwrap_or_else(|| {
                        given.push(operand);
                        given.len() - 1
                    }))
                }
            });
        }
        outlines.push(Outline {
            kernel: member.kernel,
            ranges: member.ranges.clone(),
            cuts: vec![None; member.ranges.len()],
            operands,
            kept: member.kept,
            over: *over,
        });
    }
    outlines
}

/// Whether two operands are the same array.
fn same(one: &Operand<'_>, other: &Operand<'_>) -> bool {
    match (one, other) {
        (Operand::Given(one), Operand::Given(other)) => {
            let mut pairs = one.columns.iter().zip(&other.columns);
            one.columns.len() == other.columns.len()
                && pairs.all(|(a, b)| std::ptr::eq(*a, *b))
                && one.start == other.start
        }
        (Operand::Old(one), Operand::Old(other)) => one == other,
        _ => false,
    }
}

/// The members that are taken together, where there is code for it.
pub(super) fn bundles(
    members: &[Member<'_>],
    (merged, outlines): (Vec<Merged>, &[Outline<'_>]),
    blocks: &Boxes<'_>,
    options: &Options,
) -> Vec<Bundle> {
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
        let key = Key {
            kernel: Some(&merged.kernel),
            ranges: &last.ranges,
            purpose: Purpose::Blocks {
                first: blocks.ranges(0),
                results: results.clone(),
            },
            layout: OperandLayout::At(&places),
        };
        let make = |times| several.ready(times, options.fusion);
        let ready = memo::program(last.memo, key, make);
        let points = Nest::of_points(&lengths);
        let side_reductions = merged.side_reductions.iter();
        let has_lanes = |node: NodeId| ready.program.has_lanes(node.0);
        let whole = ready.program.direct && side_reductions.clone().all(|side| has_lanes(side.0));
        whole.then_some(Bundle {
            first: merged.members[0] == 0,
            merged,
            ready,
            points,
        })
    };
    let bundle = |merged: Merged| {
        let less = merged.without_terms(outlines);
        ready(merged).or_else(|| ready(less?))
    };
    merged.into_iter().filter_map(bundle).collect()
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
    /// The operands that are read element by element where a result takes their place, with the column of the result; `written`: whether a
    /// member's result is written where it stays.
    pub(super) fn over(
        &self,
        members: &[Member<'_>],
        written: impl Fn(usize) -> bool,
    ) -> Vec<(usize, usize)> {
        let operands = self.merged.operands.iter().enumerate();
        let over = operands.filter_map(|(at, (member, operand))| {
            let Operand::Old(old) = members[*member].operands[*operand] else {
                return None;
            };
            let column = self.merged.results.iter().position(|r| r.1 == old)?;
            (written(old) && self.merged.kernel.may_overwrite(at as u32)).then_some((at, column))
        });
        over.collect()
    }

    /// What gathers a member's lanes in a block.
    pub(super) fn gathering(&self, rule: Rule, ranges: &[(i64, i64)]) -> Gathering {
        Gathering::new(rule, Strips::of(&self.points, ranges))
    }

    /// Computes a block; `columns`: of each result its part, which holds the elements of the operand that is `over` it.
    pub(super) fn run(
        &self,
        ranges: &[(i64, i64)],
        operands: (&[Chunk<'_>], &[i64]),
        over: &[(usize, usize)],
        (columns, side_reductions): (&mut [Column<'_>], &mut [SideReduction]),
        ahead: Ahead<'_>,
    ) {
        let driver = Driver::new(&self.ready.program, ranges, &[], true);
        // What loops before this one have read is still in a cache.
        let ahead = if self.first { Ahead::Next } else { ahead };
        let driver = driver.over(over).on(operands, 1).ahead(ahead);
        driver.run_columns(columns, side_reductions);
    }
}
