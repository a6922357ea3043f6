//! What an IA program costs: values transferred, bytes that really move, arithmetic, memory.
//!
//! Transfer is the paper's: BCAST of a relation with f values costs f · sites, SHUF costs f, all else nothing;
//! f = Πfrontier · Πbound. What really changes site, and memory, are measured on the plan. Must not know rules or
//! search.
//!
//! ```text
//! transfer 67108864 floats, 268435456 bytes moved, busiest site 34359738368 flops, peak 134217728 bytes
//! ```

use crate::ia::{self, Operation, floats};
use ein_plan::{Function, Kernel, Node, Plan, Range, RelationType, memory, piece, traffic};
use std::collections::BTreeMap;

/// What a program runs on.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Number of sites, from 1.
    pub sites: u32,
}

/// What one relation costs to make.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Values transferred, as the paper counts them.
    pub transfer: u128,
    /// Values that go to another site, over all sites.
    pub floats: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// Floating-point operations of the step's busiest site.
    pub flops: u128,
}

/// What a program costs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// By relation.
    pub steps: Vec<StepCost>,
    /// Values transferred, as the paper counts them.
    pub transfer: u128,
    /// Values that go to another site, over all sites.
    pub floats: u64,
    /// The same in bytes.
    pub bytes: u64,
    /// Floating-point operations of the site that has the most over the whole program.
    pub flops: u128,
    /// By site: the most bytes of relations that are held at one time.
    pub peak_bytes: Vec<u64>,
}

/// The cost of a program, and of the plan that it was lowered to, on a machine of as many sites as they are for.
pub fn of(program: &ia::Program, plan: &Plan, machine: &Machine) -> Cost {
    debug_assert_eq!(program.sites, machine.sites);
    let mut load = BySite::default();
    let mut cost = Cost::default();
    for (relation, sent) in program.relations.iter().zip(traffic::by_step(plan)) {
        let flops = flops(relation, machine.sites);
        load.add(&flops);
        let transfer = transfer(relation, machine);
        cost.transfer = cost.transfer.saturating_add(transfer);
        cost.floats = cost.floats.saturating_add(sent.floats);
        cost.bytes = cost.bytes.saturating_add(sent.bytes);
        cost.steps.push(StepCost {
            transfer,
            floats: sent.floats,
            bytes: sent.bytes,
            flops: flops.most(),
        });
    }
    cost.flops = load.most();
    cost.peak_bytes = memory::peaks(plan).iter().map(|peak| peak.bytes).collect();
    cost
}

/// Values that making a relation transfers: f · sites for a broadcast of f values, f for a shuffle, else nothing.
pub fn transfer(relation: &ia::Relation, machine: &Machine) -> u128 {
    let f = floats(&relation.kind.keys, &relation.kind.array);
    match relation.operation {
        Operation::Broadcast { .. } => f.saturating_mul(u128::from(machine.sites)),
        Operation::Shuffle { .. } => f,
        _ => 0,
    }
}

/// Floating-point operations of a kernel at one point.
pub fn flops_per_point(kernel: &Kernel) -> u64 {
    let functions = kernel.graph.iter().map(|(_, node, _)| match node {
        Node::Apply(function, _) => Function::flops(*function),
        _ => 0,
    });
    functions.sum::<u64>() + u64::from(kernel.reduction.is_some())
}

/// An amount at each site: `everywhere`, and at some sites more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct BySite {
    everywhere: u128,
    more: BTreeMap<u32, u128>,
}

impl BySite {
    /// The amounts of a relation's tuples where the tuples are.
    fn of_tuples(kind: &RelationType, sites: u32, amount: impl Fn(&[u32]) -> u128) -> BySite {
        let mut result = BySite::default();
        for key in kind.all_keys() {
            let entry = match kind.site(&key, sites) {
                None => &mut result.everywhere,
                Some(site) => result.more.entry(site).or_default(),
            };
            *entry = entry.saturating_add(amount(&key));
        }
        result
    }

    fn add(&mut self, other: &BySite) {
        self.everywhere = self.everywhere.saturating_add(other.everywhere);
        for (site, amount) in &other.more {
            let entry = self.more.entry(*site).or_default();
            *entry = entry.saturating_add(*amount);
        }
    }

    fn most(&self) -> u128 {
        let more = self.more.values().copied().max().unwrap_or(0);
        self.everywhere.saturating_add(more)
    }
}

fn flops(relation: &ia::Relation, sites: u32) -> BySite {
    let kind = &relation.kind;
    let (kernel, ranges) = match &relation.operation {
        Operation::LocalJoin { kernel, ranges, .. } => (kernel, ranges),
        Operation::LocalMap {
            map: Some((kernel, ranges)),
            ..
        } => (kernel, ranges),
        _ => return BySite::default(),
    };
    let each = u128::from(flops_per_point(kernel));
    BySite::of_tuples(kind, sites, |key| {
        let points = kernel
            .indices
            .iter()
            .zip(ranges)
            .map(|(index, range)| match range {
                Range::Whole => u128::from(index.extent),
                Range::Key(k) => {
                    let pieces = kind.keys[*k as usize].pieces;
                    u128::from(piece(index.extent, pieces, key[*k as usize]).1)
                }
            });
        points.fold(each, u128::saturating_mul)
    })
}
