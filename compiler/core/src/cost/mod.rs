//! What an IA program costs: values transferred, bytes that really move, arithmetic, memory.
//!
//! Transfer is the paper's: BCAST of a relation with f values costs f · sites, SHUF costs f, all else nothing;
//! f = Πfrontier · Πbound. Bytes are those of tuples that change site. Must not know rules, search or plans.
//!
//! ```text
//! transfer 67108864 floats, 268435456 bytes moved, busiest site 34359738368 flops, peak 134217728 bytes
//! ```

mod memory;

use crate::ia::{self, Operation, floats};
use ein_plan::{Function, Kernel, Node, Placement, Range, RelationType, piece};
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
    /// Bytes that go to another site, over all sites.
    pub bytes: u128,
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
    /// Bytes that go to another site, over all sites.
    pub bytes: u128,
    /// Floating-point operations of the site that has the most over the whole program.
    pub flops: u128,
    /// By site: the most bytes of relations that are held at one time.
    pub peak_bytes: Vec<u64>,
}

/// The cost of a program on a machine of as many sites as the program is for.
pub fn of(program: &ia::Program, machine: &Machine) -> Cost {
    debug_assert_eq!(program.sites, machine.sites);
    let mut load = BySite::default();
    let mut cost = Cost::default();
    for relation in &program.relations {
        let flops = flops(relation, machine.sites);
        load.add(&flops);
        let (transfer, bytes) = moved(program, relation, machine.sites);
        cost.transfer = cost.transfer.saturating_add(transfer);
        cost.bytes = cost.bytes.saturating_add(bytes);
        cost.steps.push(StepCost {
            transfer,
            bytes,
            flops: flops.most(),
        });
    }
    cost.flops = load.most();
    cost.peak_bytes = memory::peak(program, machine.sites);
    cost
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

    fn at(&self, site: u32) -> u128 {
        let more = self.more.get(&site).copied().unwrap_or(0);
        self.everywhere.saturating_add(more)
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

/// Values transferred and bytes moved by a relation's operation.
fn moved(program: &ia::Program, relation: &ia::Relation, sites: u32) -> (u128, u128) {
    let f = floats(&relation.kind.keys, &relation.kind.array);
    let (input, transfer) = match &relation.operation {
        Operation::Broadcast { input } => (input, f.saturating_mul(u128::from(sites))),
        Operation::Shuffle { input } => (input, f),
        _ => return (0, 0),
    };
    let from = &program.relation(*input).kind;
    let mut bytes = 0u128;
    if from.placement != Placement::All {
        for key in from.all_keys() {
            let away = match relation.kind.site(&key, sites) {
                None => sites - 1,
                Some(site) => u32::from(from.site(&key, sites) != Some(site)),
            };
            bytes = bytes.saturating_add(u128::from(away) * tuple_bytes(from, &key));
        }
    }
    (transfer, bytes)
}

fn tuple_bytes(kind: &RelationType, key: &[u32]) -> u128 {
    let width: u128 = kind.array.columns.iter().map(|c| c.size() as u128).sum();
    let extents = kind.ranges(key).into_iter().map(|(_, n)| u128::from(n));
    extents.fold(width, u128::saturating_mul)
}
