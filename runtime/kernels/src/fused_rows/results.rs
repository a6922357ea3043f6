//! The results of a sweep: room for them, the part of each that a block writes, and what is gathered of blocks.
//!
//! Must not know how a block is computed.
//!
//! ```text
//! f32[8, 4] in blocks of 4 rows:   elements 0..16 and 16..32       norms of two blocks: one norm
//! ```

use super::part::{Part, gathers};
use super::{Member, shape};
use crate::boxes::Boxes;
use crate::carrier::Carrier;
use crate::memory;
use crate::segment::Segment;
use ein_array::Array;
use std::collections::BTreeMap;

/// The columns of each member that is kept, in the memory of `over` where that has it.
pub(super) fn rooms(
    members: &[Member<'_>],
    mut over: BTreeMap<usize, Array>,
) -> Vec<Option<Vec<Array>>> {
    let room = |(number, member): (usize, &Member<'_>)| {
        if let Some(old) = over.remove(&number) {
            return Some(vec![old]);
        }
        let shape = shape(&member.ranges, member.kernel);
        let columns = member.kernel.output.iter();
        let columns = columns.map(|dtype| memory::room(*dtype, &shape));
        member.kept.then(|| columns.collect())
    };
    members.iter().enumerate().map(room).collect()
}

/// Sets what is gathered where there is no row.
pub(super) fn without_rows(members: &[Member<'_>], results: &mut [Option<Vec<Array>>]) {
    for (member, columns) in members.iter().zip(results) {
        if let (Some(rule), Some(columns)) = (gathers(member), columns) {
            let mut result = Segment::of(columns[0].data_mut());
            rule.finish(&rule.neutral(), &mut result, 0);
        }
    }
}

/// A block, and by member its part of the columns.
pub(super) type Task<'r> = (usize, Vec<Vec<Segment<'r>>>);

/// Shares the columns out among blocks; none of what is gathered.
pub(super) fn shared_out<'r>(
    results: &'r mut [Option<Vec<Array>>],
    parts: &[Part<'_>],
    blocks: &Boxes<'_>,
) -> Vec<Task<'r>> {
    let segments = results.iter_mut().map(|columns| {
        let columns = columns.iter_mut().flatten();
        columns
            .map(|column| Segment::of(column.data_mut()))
            .collect()
    });
    let mut rest: Vec<Vec<Segment<'r>>> = segments.collect();
    let mut tasks = Vec::with_capacity(blocks.count());
    for block in 0..blocks.count() {
        let count = blocks.rows(block).1;
        let mut own: Vec<Vec<Segment<'r>>> = Vec::with_capacity(rest.len());
        for (columns, part) in rest.iter_mut().zip(parts) {
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
    tasks
}

/// Joins what is gathered of each block, block by block.
pub(super) fn join(
    parts: &[Part<'_>],
    gathered: &[Vec<Carrier>],
    results: &mut [Option<Vec<Array>>],
) {
    let results = parts.iter().zip(results);
    let gathering = results.filter_map(|(part, columns)| Some((part.gathers?, columns)));
    for (number, (rule, columns)) in gathering.enumerate() {
        let Some(columns) = columns else { continue };
        let mut carriers = gathered.iter().map(|block| block[number]);
        let mut total = carriers.next().unwrap_or(rule.neutral());
        carriers.for_each(|carrier| rule.merge(&mut total, &carrier));
        rule.finish(&total, &mut Segment::of(columns[0].data_mut()), 0);
    }
}
