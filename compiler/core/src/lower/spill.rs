//! Which relations of a plan rest, and when, so that it keeps to a limit on memory ([`ein_plan::Spill`]).
//!
//! Steps are gone through in order. Where a site holds too much, of all relations that the step does not use that one goes out whose next
//! use is farthest away (Belady's rule); of equal ones the largest. Must not know files.
//!
//! ```text
//! h1 … h9 each 1 GB, limit 4 GB, grad.W1 reads h1 last     h1 rests from the step that makes h4 to grad.W2
//! ```

use ein_plan::amounts::Amounts;
use ein_plan::{Plan, Spill, memory};

/// The plan with everything at rest between two uses: it holds the least that it can.
pub fn rested(plan: &Plan) -> Plan {
    let mut spills = plan.gaps();
    spills.sort_unstable();
    Plan {
        spills,
        ..plan.clone()
    }
}

/// The plan with relations that rest, so that no site holds more than so many bytes; none if that is not enough.
pub fn spilled(plan: &Plan, limit: u64) -> Option<Plan> {
    let mut plan = plan.clone();
    let gaps = plan.gaps();
    // Every turn takes one of them.
    for _ in 0..=gaps.len() {
        let held = memory::by_step(&plan);
        let over = held.iter().enumerate().find_map(|(step, sites)| {
            let site = sites.iter().position(|bytes| *bytes > limit)?;
            Some((step, site))
        });
        let Some((step, site)) = over else {
            return Some(plan);
        };
        let bytes = |gap: &Spill| -> u128 {
            let kind = plan.kind(gap.relation);
            let held = Amounts::bytes(kind, &plan.mesh).at_any(&[&kind.placement]);
            held.get(site).copied().unwrap_or(0)
        };
        let free = |gap: &&Spill| gap.covers(step) && !plan.spills.contains(gap) && bytes(gap) > 0;
        let gap = gaps.iter().filter(free);
        let farthest = gap.max_by_key(|gap| (gap.until, bytes(gap), gap.relation));
        let farthest = *farthest?;
        plan.spills.push(farthest);
        plan.spills.sort_unstable();
    }
    None
}
