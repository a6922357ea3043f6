//! Peak memory by site: relations live from the step that makes them to their last use.
//!
//! What BCAST and SHUF leave where it is is shared with their input, so a content is counted once at a site,
//! at most whole. Buffers of messages and of kernels are not counted. Must not know plans.
//!
//! ```text
//! B @ PART(k) and B.all @ ALL alive together: as many bytes as B.all alone
//! ```

use super::{BySite, tuple_bytes};
use crate::ia::{self, Operation};
use ein_plan::RelationId;
use std::collections::BTreeMap;

/// By site: the most bytes held at one time.
pub fn peak(program: &ia::Program, sites: u32) -> Vec<u64> {
    // A content is a relation with all its moved copies, named by the first of them.
    let mut content: Vec<usize> = vec![];
    let mut held: Vec<BySite> = vec![];
    let mut whole: Vec<u128> = vec![];
    for (at, relation) in program.relations.iter().enumerate() {
        content.push(match relation.operation {
            Operation::Broadcast { input } | Operation::Shuffle { input } => {
                content[input.0 as usize]
            }
            _ => at,
        });
        let bytes = BySite::of_tuples(&relation.kind, sites, |key| {
            tuple_bytes(&relation.kind, key)
        });
        whole.push(
            bytes
                .more
                .values()
                .fold(bytes.everywhere, |sum, more| sum.saturating_add(*more)),
        );
        held.push(bytes);
    }
    let frees = program.frees();
    // The sites that differ from the others; all others hold what is everywhere.
    let mut special: Vec<u32> = held.iter().flat_map(|h| h.more.keys().copied()).collect();
    special.sort_unstable();
    special.dedup();
    let sample = (0..sites).find(|site| special.binary_search(site).is_err());
    let mut peaks: BTreeMap<Option<u32>, u128> = BTreeMap::new();
    for site in special.iter().copied().map(Some).chain([None]) {
        let Some(number) = site.or(sample) else {
            continue;
        };
        let mut live: BTreeMap<usize, u128> = BTreeMap::new();
        let mut total = 0u128;
        let mut most = 0u128;
        for at in 0..program.relations.len() {
            change(
                &mut live,
                &mut total,
                content[at],
                whole[content[at]],
                |sum| sum.saturating_add(held[at].at(number)),
            );
            most = most.max(total);
            for RelationId(freed) in &frees[at] {
                let freed = *freed as usize;
                change(
                    &mut live,
                    &mut total,
                    content[freed],
                    whole[content[freed]],
                    |sum| sum.saturating_sub(held[freed].at(number)),
                );
            }
        }
        peaks.insert(site, most);
    }
    (0..sites)
        .map(|site| {
            let peak = peaks.get(&Some(site)).or_else(|| peaks.get(&None));
            u64::try_from(peak.copied().unwrap_or(0)).unwrap_or(u64::MAX)
        })
        .collect()
}

/// Changes the bytes of one content at a site; the total counts at most the whole of it.
fn change(
    live: &mut BTreeMap<usize, u128>,
    total: &mut u128,
    content: usize,
    whole: u128,
    to: impl Fn(u128) -> u128,
) {
    let sum = live.entry(content).or_insert(0);
    *total = total.saturating_sub((*sum).min(whole));
    *sum = to(*sum);
    *total = total.saturating_add((*sum).min(whole));
}
