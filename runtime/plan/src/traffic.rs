//! What each step sends between sites, from types and placements alone.
//!
//! Two figures: the transfers by which plans are compared (BCAST of f floats to s sites f·s, SHUF f), and
//! what really leaves a site (a tuple that is already where it goes is not sent). "Floats" are elements of any
//! type. Plans must be verified. Must not know transports.
//!
//! ```text
//! BCAST of 10 f32 from PART(i) on 4 sites: transfer 40, sent 30 floats, 120 bytes
//! ```

use crate::plan::{Operation, Plan, Step};

/// What a step sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The figure by which plans are compared, in floats.
    pub transfer: u64,
    /// Floats that leave a site, each counted once for every site that it goes to.
    pub floats: u64,
    /// The same in bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.transfer = self.transfer.saturating_add(other.transfer);
        self.floats = self.floats.saturating_add(other.floats);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// By step: what it sends. Local steps send nothing.
pub fn by_step(plan: &Plan) -> Vec<Traffic> {
    plan.steps.iter().map(|step| of_step(plan, step)).collect()
}

/// What the whole plan sends.
pub fn total(plan: &Plan) -> Traffic {
    let mut sum = Traffic::default();
    for traffic in by_step(plan) {
        sum += traffic;
    }
    sum
}

fn of_step(plan: &Plan, step: &Step) -> Traffic {
    let (input, copies) = match &step.operation {
        Operation::Broadcast { input } => (input, u64::from(plan.sites)),
        Operation::Shuffle { input } => (input, 1),
        _ => return Traffic::default(),
    };
    let kind = plan.kind(*input);
    let columns = kind.array.columns.len() as u64;
    let mut sum = Traffic::default();
    for key in kind.all_keys() {
        let elements: u64 = kind.ranges(&key).iter().map(|(_, n)| *n).product();
        // To how many sites the tuple goes that do not have it.
        let receivers = match (
            kind.site(&key, plan.sites),
            step.kind.site(&key, plan.sites),
        ) {
            (None, _) => 0,
            (Some(_), None) => u64::from(plan.sites) - 1,
            (Some(from), Some(to)) => u64::from(from != to),
        };
        let floats = elements.saturating_mul(columns);
        sum += Traffic {
            transfer: floats.saturating_mul(copies),
            floats: floats.saturating_mul(receivers),
            bytes: kind.tuple_bytes(&key).saturating_mul(receivers),
        };
    }
    sum
}
