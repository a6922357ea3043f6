//! What each step sends between sites, from types and placements alone.
//!
//! Two figures: the transfers by which plans are compared (f floats for each copy that the result has: a shuffle
//! f, a broadcast to s sites f·s, windows what each site lacks of its own), and what really leaves a site (a tuple that is already where it goes is not
//! sent). "Floats" are elements of any type. Plans must be verified. Must not know transports.
//!
//! ```text
//! BCAST of 10 f32 from PART(i) on 4 sites: transfer 40, sent 30 floats, 120 bytes; 8 floats to the busiest site
//! ```

use crate::amounts::Amounts;
use crate::format::Format;
use crate::plan::{Operation, Plan, Step};
use crate::relation::RelationType;
use crate::window;

/// What a step sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The figure by which plans are compared, in floats.
    pub transfer: u64,
    /// Floats that leave a site, each counted once for every site that it goes to.
    pub floats: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// What the site receives that receives the most; of several steps, the sum.
    pub received_max: Received,
}

/// What a site receives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Received {
    /// Floats.
    pub floats: u64,
    /// The same in bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Received {
    fn add_assign(&mut self, other: Received) {
        self.floats = self.floats.saturating_add(other.floats);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Traffic) {
        self.transfer = self.transfer.saturating_add(other.transfer);
        self.floats = self.floats.saturating_add(other.floats);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.received_max += other.received_max;
    }
}

/// By step: what it sends each time it is walked. Local steps send nothing.
pub fn by_step(plan: &Plan) -> Vec<Traffic> {
    plan.steps.iter().map(|step| of_step(plan, step)).collect()
}

/// What the whole plan sends, with as many rounds of its loops as are expected.
pub fn total(plan: &Plan) -> Traffic {
    total_of(plan, &plan.expected_times())
}

/// What the whole plan sends if the rounds of each loop are walked so many times in all.
pub fn total_of(plan: &Plan, times: &[u64]) -> Traffic {
    let mut sum = Traffic::default();
    for (traffic, times) in by_step(plan).into_iter().zip(plan.times_of_steps(times)) {
        sum += traffic.times(times);
    }
    sum
}

/// By site: what it receives over the whole plan, with as many rounds of its loops as are expected.
pub fn received(plan: &Plan) -> Vec<Received> {
    let mut sums = vec![Received::default(); plan.sites as usize];
    let times = plan.times_of_steps(&plan.expected_times());
    for (step, times) in plan.steps.iter().zip(times) {
        for (sum, received) in sums.iter_mut().zip(received_in(plan, step)) {
            *sum += received.times(times);
        }
    }
    sums
}

impl Received {
    /// So many times as much.
    #[must_use]
    pub fn times(self, times: u64) -> Received {
        Received {
            floats: self.floats.saturating_mul(times),
            bytes: self.bytes.saturating_mul(times),
        }
    }
}

impl Traffic {
    /// So many times as much.
    #[must_use]
    pub fn times(self, times: u64) -> Traffic {
        Traffic {
            transfer: self.transfer.saturating_mul(times),
            floats: self.floats.saturating_mul(times),
            bytes: self.bytes.saturating_mul(times),
            received_max: self.received_max.times(times),
        }
    }
}

fn of_step(plan: &Plan, step: &Step) -> Traffic {
    let received = received_in(plan, step);
    let mut sum = Received::default();
    for received in &received {
        sum += *received;
    }
    let copies = u128::from(step.kind.placement.copies(&plan.mesh));
    let floats = Amounts::floats(&step.kind, &plan.mesh).total();
    Traffic {
        transfer: match &step.operation {
            Operation::Window { .. } => sum.floats,
            _ if received.is_empty() => 0,
            _ => whole(floats.saturating_mul(copies)),
        },
        floats: sum.floats,
        bytes: sum.bytes,
        received_max: received.into_iter().max().unwrap_or_default(),
    }
}

/// By site of the mesh: what it receives in a step; empty for a local step.
fn received_in(plan: &Plan, step: &Step) -> Vec<Received> {
    if let Operation::Window { input } = &step.operation {
        return windows_in(plan, step, plan.kind(*input));
    }
    let (Operation::Broadcast { input } | Operation::Shuffle { input }) = &step.operation else {
        return vec![];
    };
    let (from, to) = (&plan.kind(*input).placement, &step.kind.placement);
    // What is to be at a site, less what is there.
    let received = |amounts: &Amounts<'_>| -> Vec<u64> {
        let wanted = amounts.at_sites(&[to]).into_iter();
        let there = amounts.at_sites(&[from, to]);
        let missing = wanted.zip(there).map(|(wanted, there)| wanted - there);
        missing.map(whole).collect()
    };
    let floats = received(&Amounts::floats(&step.kind, &plan.mesh));
    let bytes = received(&Amounts::bytes(&step.kind, &plan.mesh));
    floats
        .into_iter()
        .zip(bytes)
        .map(|(floats, bytes)| Received { floats, bytes })
        .collect()
}

/// By site of the mesh: what it receives of windows.
fn windows_in(plan: &Plan, step: &Step, input: &RelationType) -> Vec<Received> {
    let columns = step.kind.array.columns.iter();
    let bytes: u64 = columns
        .map(|column| Format::default().bytes(*column, 1))
        .sum();
    let lacking = window::lacking(input, &step.kind, &plan.mesh).into_iter();
    let received = lacking.map(|elements| Received {
        floats: elements.saturating_mul(step.kind.array.columns.len() as u64),
        bytes: elements.saturating_mul(bytes),
    });
    received.collect()
}

fn whole(amount: u128) -> u64 {
    u64::try_from(amount).unwrap_or(u64::MAX)
}
