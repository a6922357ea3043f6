//! The loops of the members of a sweep, which are taken together block of rows by block of rows.
//!
//! A member that its readers compute themselves has no loops, and theirs are of another kernel than the plan's. Must not know how blocks are taken.
//!
//! ```text
//! m0 = mean a0[n, d]               row_reduction
//! m1 = a0[n, d] - a1[n]            inlined
//! m2 = mean a0[n, d] * a0[n, d]    row_reduction of m1 0, m1 1 as mean (a0[n, d] - a1[n])^2
//! ```

use super::access::Place;
use super::inlining::{Inlined, Wanted, inlined};
use super::outline::{Origin, Outline};
use super::row_loops::{self, RowLoops};
use super::{LoopKernel, LoopKind, choose::fits};
use crate::ids::RelationId;
use crate::kernel::Kernel;
use crate::plan::{Operation, Plan, Range, Sweep};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A member's kernel with what it computes of others.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fused {
    /// The kernel that is computed.
    pub kernel: Kernel,
    /// Each of its operands as a member of the sweep, by its number in it, and the operand of that.
    pub operands: Vec<(u32, u32)>,
}

/// The loops of each member of a sweep whose rows are the values of so many first indices; `places`: of a member, where its operands lie.
pub fn fused_rows(
    members: &[Outline<'_>],
    rows: usize,
    places: &dyn Fn(usize) -> Vec<Place>,
) -> Vec<LoopKernel> {
    let left = inlined(members, places, Wanted::Worthy);
    let fused: Vec<Option<Box<Fused>>> = left.iter().map(fused).collect();
    let mut loops = vec![LoopKernel::whole(LoopKind::Inlined); members.len()];
    let decided = row_loops::decided(&as_run(members, &left, &fused), rows);
    let decided = decided
        .iter()
        .map(|own| own.renumbered(|place| left[place as usize].number as u32));
    let decided: Vec<RowLoops> = decided.collect();
    for ((member, fused), rows) in left.iter().zip(fused).zip(decided) {
        loops[member.number] = LoopKernel {
            // Blocks of what is gathered are strips, whatever all of it would be.
            kind: match members[member.number].gathers() {
                true => LoopKind::Strips,
                false => member.loops(members, places).untiled(),
            },
            fixed: vec![],
            rows,
            fused,
        };
    }
    loops
}

/// The kernel of a member that computes others.
fn fused(member: &Inlined<'_>) -> Option<Box<Fused>> {
    let Cow::Owned(kernel) = &member.kernel else {
        return None;
    };
    let operands = member.operands.iter();
    Some(Box::new(Fused {
        kernel: kernel.clone().canonical(),
        operands: operands.map(|(m, at)| (*m as u32, *at as u32)).collect(),
    }))
}

/// The members that are left, with the kernels that they compute; `Made` tells the place of a member among them.
fn as_run<'m>(
    members: &'m [Outline<'_>],
    left: &'m [Inlined<'_>],
    fused: &'m [Option<Box<Fused>>],
) -> Vec<Outline<'m>> {
    let place = |number: usize| left.iter().position(|member| member.number == number);
    let origin = |(member, at): &(usize, usize)| match members[*member].operands[*at] {
        Origin::Made(other) => Origin::Made(place(other).expect("nothing inlined is read")),
        given => given,
    };
    let run = left.iter().zip(fused).map(|(member, fused)| Outline {
        kernel: fused.as_ref().map_or(&member.kernel, |fused| &fused.kernel),
        operands: member.operands.iter().map(origin).collect(),
        ..members[member.number].clone()
    });
    run.collect()
}

/// Returns whether these are loops of the members of a sweep, fast or not.
pub(crate) fn fit(
    members: &[Outline<'_>],
    rows: usize,
    places: &dyn Fn(usize) -> Vec<Place>,
    loops: &[&LoopKernel],
) -> Result<(), (usize, String)> {
    let gone: Vec<bool> = (loops.iter().map(|loops| loops.kind == LoopKind::Inlined)).collect();
    let left = inlined(members, places, Wanted::These(&gone));
    for (number, gone) in gone.iter().enumerate() {
        let member = left.iter().find(|member| member.number == number);
        match (member, gone) {
            (None, true) if loops[number].rows.is_plain() => {}
            (None, true) => return Err((number, "its readers compute it".into())),
            (Some(_), true) => return Err((number, "its readers cannot compute it".into())),
            (None, false) => return Err((number, "it has loops but is inlined".into())),
            (Some(member), false) if fused(member) != loops[number].fused => {
                return Err((number, "its loops are of another kernel".into()));
            }
            (Some(_), false) if members[number].gathers() => {
                if loops[number].kind != LoopKind::Strips {
                    return Err((
                        number,
                        "what is gathered in blocks is taken by strips".into(),
                    ));
                }
            }
            (Some(member), false) => {
                let kind = &loops[number].kind;
                let facts = member.facts(members, places);
                fits(&facts, kind)
                    .map_err(|why| (number, format!("loops of kind {}: {why}", kind.name())))?;
            }
        }
    }
    let place = |number: u32| {
        let mut numbers = left.iter().map(|member| member.number);
        // No member has the number of one that is inlined.
        let place = numbers.position(|own| own == number as usize);
        place.map_or(u32::MAX, |place| place as u32)
    };
    let fused: Vec<Option<Box<Fused>>> = left.iter().map(fused).collect();
    let own = left.iter().map(|m| loops[m.number].rows.renumbered(place));
    let own: Vec<RowLoops> = own.collect();
    let run = as_run(members, &left, &fused);
    let fit = row_loops::fit(&run, rows, &own);
    fit.map_err(|(place, why)| (left[place].number, why.into()))
}

impl Plan {
    /// The members of a sweep, and where the operands of each lie; `over`: the results that may take the memory of an operand.
    pub(super) fn outlines(
        &self,
        sweep: &Sweep,
        passing: &[bool],
        over: &BTreeSet<RelationId>,
    ) -> (Vec<Outline<'_>>, Vec<Vec<Place>>) {
        let mut given: Vec<(RelationId, &[u32])> = vec![];
        let (mut outlines, mut places) = (vec![], vec![]);
        for member in &sweep.members {
            let step = self.step(*member);
            let (Some(facts), Operation::LocalJoin { inputs, ranges, .. }) =
                (self.facts(step), &step.operation)
            else {
                continue;
            };
            let mut operands = vec![];
            for input in inputs {
                let made = sweep.members.iter().position(|m| *m == input.relation);
                operands.push(made.map_or_else(
                    || {
                        let own = (input.relation, &input.keys[..]);
                        let known = given.iter().position(|known| *known == own);
                        Origin::Given(known.unwrap_or_else(|| {
                            given.push(own);
                            given.len() - 1
                        }))
                    },
                    Origin::Made,
                ));
            }
            outlines.push(Outline {
                kernel: facts.kernel,
                ranges: facts.lengths.iter().map(|n| (0, *n as u64)).collect(),
                cuts: ranges
                    .iter()
                    .map(|range| match range {
                        Range::Whole => None,
                        Range::Key(key) => Some(*key),
                    })
                    .collect(),
                operands,
                kept: !passing[member.0 as usize],
                over: over.contains(member),
            });
            places.push(facts.places);
        }
        (outlines, places)
    }
}
