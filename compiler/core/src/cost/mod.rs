//! Costs of IA programs: values transferred, bytes that really move, arithmetic, memory.
//!
//! Transfer is the paper's, on meshes: moving a relation of f values to a placement costs f times the copies of each
//! value that the placement has, so BCAST to all s sites f · s and SHUF f (for partial results f is that of all
//! addends); all else nothing. All of it is counted on the plan that is walked. Must not know rules or search.
//!
//! ```text
//! transfer 67108864 floats, 268435456 bytes moved, busiest site 34359738368 flops, peak 134217728 bytes
//! ```

mod rates;

use crate::ia::{self, Operation};
use ein_plan::traffic::Received;
use ein_plan::{Mesh, Plan, memory, traffic, work};

pub use ein_plan::work::flops_per_point;
pub use rates::{Pace, Rates};

/// The machine that a program runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Number of sites, from 1.
    pub sites: u32,
}

/// The cost of making one relation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Values transferred, as the paper counts them.
    pub transfer: u128,
    /// Values that go to another site, over all sites.
    pub floats: u64,
    /// The bytes of these values.
    pub bytes: u64,
    /// The traffic of the site that receives the most.
    pub received_max: Received,
    /// Floating-point operations of the step's busiest site.
    pub flops: u128,
    /// How many times it is expected to be made: the rounds of the loops around it. The others are of one time.
    pub times: u64,
}

/// The cost of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// By relation.
    pub steps: Vec<StepCost>,
    /// Values transferred, as the paper counts them.
    pub transfer: u128,
    /// Values that go to another site, over all sites.
    pub floats: u64,
    /// The bytes of these values.
    pub bytes: u64,
    /// The traffic of the site that receives the most over the whole program.
    pub received_max: Received,
    /// Floating-point operations of the site that has the most over the whole program.
    pub flops: u128,
    /// By site: the most bytes of relations that are held at one time.
    pub peak_bytes: Vec<u64>,
}

/// The cost of a program, and of the plan that it was lowered to, on a machine of as many sites as they are for.
pub fn of_plan(program: &ia::Program, plan: &Plan, machine: &Machine) -> Cost {
    debug_assert_eq!(program.sites, machine.sites);
    let mut load = vec![0u128; program.mesh.sites() as usize];
    let mut cost = Cost::default();
    let times = plan.times_of_steps(&plan.expected_times());
    let steps = program.relations.iter().zip(traffic::by_step(plan));
    for ((relation, sent), times) in steps.zip(times) {
        let flops = flops(relation, &program.mesh);
        for (load, flops) in load.iter_mut().zip(&flops) {
            *load = load.saturating_add(flops.saturating_mul(times.into()));
        }
        let transfer = u128::from(sent.transfer);
        let all = sent.times(times);
        cost.transfer = (cost.transfer).saturating_add(transfer.saturating_mul(times.into()));
        cost.floats = cost.floats.saturating_add(all.floats);
        cost.bytes = cost.bytes.saturating_add(all.bytes);
        cost.steps.push(StepCost {
            transfer,
            floats: sent.floats,
            bytes: sent.bytes,
            received_max: sent.received_max,
            flops: flops.into_iter().max().unwrap_or(0),
            times,
        });
    }
    cost.flops = load.into_iter().max().unwrap_or(0);
    cost.received_max = traffic::received(plan)
        .into_iter()
        .max()
        .unwrap_or_default();
    cost.peak_bytes = memory::peaks(plan).iter().map(|peak| peak.bytes).collect();
    cost
}

/// By site of the mesh: floating-point operations that making a relation takes.
pub fn flops(relation: &ia::Relation, mesh: &Mesh) -> Vec<u128> {
    let kind = &relation.kind;
    let (kernel, ranges, fold) = match &relation.operation {
        Operation::LocalJoin {
            kernel,
            ranges,
            fold,
            ..
        } => (kernel, ranges, fold.as_ref()),
        Operation::LocalMap {
            map: Some((kernel, ranges)),
            ..
        } => (kernel, ranges, None),
        _ => return vec![],
    };
    work::flops(kernel, ranges, fold, kind, mesh)
}
