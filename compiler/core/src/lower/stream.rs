//! Which relations of a plan rest tuple by tuple ([`ein_plan::stream`]), so that it keeps to a limit on memory.
//!
//! All that may and are not small do at first; then those are held again that make the least to write and read, as far as there is room. Must
//! not know how relations are cut into tuples, nor files.
//!
//! ```text
//! A, B, C 80 MB each, in 4 pieces along i and 2 along j, limit 150 MB     stream A, C; B is held
//! ```

use ein_plan::spill::Volume;
use ein_plan::{Plan, memory};
use std::cmp::Reverse;

/// A relation is worth it if it is at least one of so many parts of the limit.
const WORTH: u64 = 64;

/// The plan with no steps taken together and no movements beside others: what is taken tuple by tuple stands alone.
pub fn unswept(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    plan.sweeps.clear();
    plan.exchanges.clear();
    super::free(&mut plan);
    plan.schedule();
    plan
}

/// The plan with everything that is worth it on disk tuple by tuple.
pub fn streamed(plan: &Plan, limit: u64) -> Plan {
    let mut streams = plan.streamable();
    streams.retain(|relation| memory::of(plan, plan.kind(*relation)) >= limit / WORTH);
    Plan {
        streams,
        ..plan.clone()
    }
}

/// The plan with relations held again that need not rest, those first that save most there.
pub fn held_again(plan: Plan, limit: u64) -> Plan {
    let mut saved: Vec<(u64, usize)> = vec![];
    let whole = total(plan.spilled());
    for at in 0..plan.streams.len() {
        let without = total(without(&plan, at).spilled());
        saved.push((whole.saturating_sub(without), at));
    }
    saved.sort_by_key(|(bytes, at)| (Reverse(*bytes), *at));
    let order: Vec<_> = saved.iter().map(|(_, at)| plan.streams[*at]).collect();
    let mut plan = plan;
    for relation in order {
        let Ok(at) = plan.streams.binary_search(&relation) else {
            continue;
        };
        let next = without(&plan, at);
        if excess(&next, limit) == 0 {
            plan = next;
        }
    }
    plan
}

fn without(plan: &Plan, at: usize) -> Plan {
    let mut plan = plan.clone();
    plan.streams.remove(at);
    plan
}

/// Bytes written and read.
pub fn total(volume: Volume) -> u64 {
    volume.written.saturating_add(volume.read)
}

/// What all sites hold in all steps beyond a limit.
pub fn excess(plan: &Plan, limit: u64) -> u64 {
    let held = memory::by_step(plan).into_iter().flatten();
    let beyond = held.map(|bytes| bytes.saturating_sub(limit));
    beyond.fold(0, u64::saturating_add)
}
