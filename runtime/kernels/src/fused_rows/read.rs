//! What members of a sweep read: how much of it lies in a cache, who reads what another one makes, and what is copied before it is
//! written over.
//!
//! Must not know how members are run.
//!
//! ```text
//! m1[n, d] = 0.9 * a0[n, d] + a1[n, d]; w1[n, d] = a2[n, d] - m1[n, d], one loop:   a0 a1 a2 m1 w1 in a cache, nothing copied
//! ```

use super::bundle::Bundle;
use super::turns::Turn;
use super::{Member, Operand, shape};
use crate::stream;
use ein_plan::schedule::merging::Merged;
use ein_plan::sweep::BLOCK;

/// Blocks of which there are enough for any number of threads.
const MANY: usize = 256;
/// Blocks of which there are enough for a few.
const FEW: usize = 32;

/// About how many bytes lie in a cache for a row: what is read, and what is made but for what stays in registers.
pub(super) fn row_bytes(
    members: &[Member<'_>],
    merged: &[Merged],
    extents: &[(i64, i64)],
) -> usize {
    /// What is read, once however many read it.
    #[derive(PartialEq, Eq)]
    enum Read {
        Column(usize),
        Old(usize),
    }
    let rows: usize = extents.iter().map(|extent| extent.1 as usize).product();
    let mut read: Vec<(Read, usize)> = vec![];
    let mut bytes = 0;
    for (number, member) in members.iter().enumerate() {
        let sizes = |member: &Member<'_>| -> usize {
            let columns = member.kernel.output.iter();
            columns.map(|dtype| dtype.size()).sum()
        };
        let elements = |member: &Member<'_>| -> usize {
            let shape = shape(&member.ranges, member.kernel);
            shape.iter().product()
        };
        let passes = merged.iter().any(|merged| {
            merged.members.contains(&number) && merged.results.iter().all(|r| r.1 != number)
        });
        if !passes {
            bytes += elements(member) * sizes(member);
        }
        let points = (member.ranges.iter()).fold(1usize, |n, (_, l)| n.saturating_mul(*l as usize));
        let mut note = |which: Read, bytes: usize| match read.iter_mut().find(|r| r.0 == which) {
            Some(known) => known.1 = known.1.max(bytes),
            None => read.push((which, bytes)),
        };
        for operand in &member.operands {
            match operand {
                Operand::Given(chunk) => {
                    for column in &chunk.columns {
                        let most = points.saturating_mul(column.dtype().size());
                        let at = std::ptr::from_ref(*column) as usize;
                        note(Read::Column(at), column.data().bytes().len().min(most));
                    }
                }
                Operand::Old(other) => {
                    let other_member = &members[*other];
                    let most = points.saturating_mul(sizes(other_member));
                    let all = elements(other_member) * sizes(other_member);
                    note(Read::Old(*other), all.min(most));
                }
                Operand::Made(_) => {}
            }
        }
    }
    bytes += read.iter().map(|read| read.1).sum::<usize>();
    bytes / rows.max(1)
}

/// What makes a sweep's blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Making {
    /// Loops, one behind the other, that find in a cache what the one before has left.
    Loops,
    /// One loop, so that nothing has to stay in a cache.
    One,
    /// Products of matrices among others: each block packs anew what all of them read.
    Products,
}

impl Making {
    /// Of so many members, with matrix products among them or not.
    pub(super) fn of(members: usize, merged: &[Merged], products: bool) -> Making {
        if merged.iter().any(|all| all.members.len() == members) {
            Making::One
        } else if products {
            Making::Products
        } else {
            Making::Loops
        }
    }

    /// About how many bytes a block of rows has, of so many bytes a row. Where they gain from it, blocks are larger if there are many.
    pub(super) fn block_bytes(self, row: usize, extents: &[(i64, i64)]) -> usize {
        let least = BLOCK as usize;
        let enough = match self {
            Making::Loops => return least,
            Making::One => MANY,
            Making::Products => FEW,
        };
        let rows = extents.iter().map(|extent| extent.1 as usize);
        let all = rows.fold(row, usize::saturating_mul);
        (all / enough).clamp(least, 4 * least)
    }
}

/// What lies in memory by rows and is read row by row.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Far {
    /// From this address on, with so many bytes a row.
    Given { begin: usize, row: usize },
    /// Where the result of a member will lie.
    Old { member: usize, row: usize },
}

/// What of memory each block reads a part of: arrays of which members read their own rows.
pub(super) fn far(members: &[Member<'_>], extents: &[(i64, i64)]) -> Vec<Far> {
    let rows: usize = extents.iter().map(|extent| extent.1 as usize).product();
    let mut found = vec![];
    let mut note = |far| {
        if !found.contains(&far) {
            found.push(far);
        }
    };
    for member in members {
        let reads = member.kernel.graph.reads();
        let own = reads.filter(|(_, at)| member.kernel.rows_read(at) >= extents.len());
        for (operand, _) in own {
            match &member.operands[operand as usize] {
                Operand::Given(chunk) => {
                    for column in &chunk.columns {
                        let lies = chunk.start.iter().zip(column.shape());
                        let lies = lies.map(|(start, n)| (*start as i64, *n as i64));
                        let bytes = column.data().bytes();
                        if stream::is_far(bytes) && lies.zip(extents).all(|(own, all)| own == *all)
                        {
                            note(Far::Given {
                                begin: bytes.as_ptr().addr(),
                                row: bytes.len() / rows,
                            });
                        }
                    }
                }
                Operand::Old(old) => {
                    let kernel = members[*old].kernel;
                    let elements: usize = shape(&members[*old].ranges, kernel).iter().product();
                    let row = elements * kernel.output[0].size() / rows;
                    note(Far::Old { member: *old, row });
                }
                Operand::Made(_) => {}
            }
        }
    }
    found
}

/// Whether a member reads what another one makes that is not taken together with it.
pub(super) fn is_read(members: &[Member<'_>], bundles: &[Bundle], number: usize) -> bool {
    let beside = |other: usize| {
        let mut bundles = bundles.iter().map(|bundle| &bundle.merged.members);
        bundles.any(|all| all.contains(&number) && all.contains(&other))
    };
    members.iter().enumerate().any(|(other, member)| {
        let mut operands = member.operands.iter();
        operands.any(|operand| matches!(operand, Operand::Made(made) if *made == number))
            && !beside(other)
    })
}

/// By member: whether what its result takes the memory of is copied before that, since somebody reads it who is neither done by then nor the
/// loop that writes over it.
pub(super) fn aside(
    members: &[Member<'_>],
    (bundles, turns): (&[Bundle], &[Turn]),
    over: &[Vec<(usize, usize)>],
) -> Vec<bool> {
    let turn_of = |member: usize| {
        turns.iter().position(|turn| match turn {
            Turn::Alone(number) => *number == member,
            Turn::Together(bundle) => bundles[*bundle].merged.members.contains(&member),
        })
    };
    let direct = |reader: usize, old: usize| {
        bundles.iter().zip(over).any(|(bundle, over)| {
            let column = |column: usize| bundle.merged.results[column].1 == old;
            bundle.merged.members.contains(&reader) && over.iter().any(|(_, at)| column(*at))
        })
    };
    let mut aside = vec![false; members.len()];
    for (reader, member) in members.iter().enumerate() {
        for operand in &member.operands {
            if let Operand::Old(old) = operand {
                aside[*old] |= turn_of(reader) >= turn_of(*old) && !direct(reader, *old);
            }
        }
    }
    aside
}
