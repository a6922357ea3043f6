//! How many bytes of tuples each site holds at most, from types, placements and lifetimes alone.
//!
//! While a step runs, its result is there beside everything that is alive, its inputs among it. What BCAST and
//! SHUF leave where it is is one array with two names and counted once; copies at several sites are counted at each.
//! The working space of kernels and transports is not counted. Plans must be verified.
//!
//! ```text
//! A 80 bytes, B 40 bytes, C = A·B 20 bytes; then B is freed: peak 140 bytes
//! ```

use crate::amounts::Amounts;
use crate::plan::{Operation, Plan, RelationId};

/// The most bytes that a site holds, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes of tuples.
    pub bytes: u64,
    /// The first step at which it holds them.
    pub step: usize,
}

/// By site: its peak.
pub fn peaks(plan: &Plan) -> Vec<Peak> {
    let sites = plan.sites as usize;
    let mut peaks = vec![Peak::default(); sites];
    let mut total = vec![0u64; sites];
    // Relations with the same tuples are one content, numbered by the first of them.
    let mut content: Vec<usize> = vec![];
    let mut alive: Vec<Vec<RelationId>> = vec![];
    let mut held: Vec<Vec<u64>> = vec![];
    for (number, step) in plan.steps.iter().enumerate() {
        let own = match step.operation {
            Operation::Broadcast { input } | Operation::Shuffle { input } => {
                content[input.0 as usize]
            }
            _ => number,
        };
        content.push(own);
        alive.push(vec![]);
        held.push(vec![]);
        alive[own].push(step.result);
        update(plan, &alive[own], &mut held[own], &mut total);
        for (peak, bytes) in peaks.iter_mut().zip(&total) {
            if *bytes > peak.bytes {
                *peak = Peak {
                    bytes: *bytes,
                    step: number,
                };
            }
        }
        for freed in &step.frees {
            let of = content[freed.0 as usize];
            alive[of].retain(|relation| relation != freed);
            update(plan, &alive[of], &mut held[of], &mut total);
        }
    }
    peaks
}

/// Counts a content anew, of which these relations are alive.
fn update(plan: &Plan, alive: &[RelationId], held: &mut Vec<u64>, total: &mut [u64]) {
    for (sum, bytes) in total.iter_mut().zip(held.iter()) {
        *sum = sum.saturating_sub(*bytes);
    }
    *held = bytes_held(plan, alive);
    for (sum, bytes) in total.iter_mut().zip(held.iter()) {
        *sum = sum.saturating_add(*bytes);
    }
}

/// By site: bytes of the tuples that any of these relations of one content has there; empty if there is none.
fn bytes_held(plan: &Plan, alive: &[RelationId]) -> Vec<u64> {
    let Some(first) = alive.first() else {
        return vec![];
    };
    let placements: Vec<_> = alive
        .iter()
        .map(|relation| &plan.kind(*relation).placement)
        .collect();
    let amounts = Amounts::bytes(plan.kind(*first), &plan.mesh);
    let mut held: Vec<u64> = amounts
        .at_any(&placements)
        .into_iter()
        .map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
        .collect();
    held.resize(plan.sites as usize, 0);
    held
}
