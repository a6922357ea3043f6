//! Streams: relations that rest tuple by tuple, so that a plan needs less memory than one step works on.
//!
//! A streamed relation is never held: the step that makes it writes each tuple as it is made, and a step that reads it has one of its
//! tuples at a time. Such a step goes through the keys of its result in order, and for each of them through those that are combined; it reads a
//! tuple when its key changes. A broadcast or a shuffle goes in rounds: in round n every site sends the n-th tuple that it has of the input.
//! Which relations may do so follows from the plan ([`Plan::streamable`]). Must not know files.
//!
//! ```text
//! stream r0, r2      r2: {i: 90/3} f32[i, 40] = join k0(r0{i}, r1{}): three times 30 rows of r0 are read and 30 of r2 written
//! ```

use crate::ids::RelationId;
use crate::memory;
use crate::plan::{Fold, JoinInput, Operation, Plan, Step};
use crate::relation::{AxisRole, RelationType, sends};
use crate::spill::Volume;
use std::collections::{BTreeMap, BTreeSet};

/// A tuple that is made in steps with streamed relations, and the joined tuples that are combined to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Of the result.
    pub key: Vec<u32>,
    /// Of the join, in the order in which they are combined; `key` alone where nothing is.
    pub members: Vec<Vec<u32>>,
}

impl RelationType {
    /// Bytes of its largest tuple.
    pub fn largest_tuple(&self) -> u64 {
        // The first pieces are the longest.
        self.tuple_bytes(&vec![0; self.keys.len()])
    }
}

impl Plan {
    /// Whether a relation rests tuple by tuple.
    pub fn is_streamed(&self, relation: RelationId) -> bool {
        self.streams.binary_search(&relation).is_ok()
    }

    /// Whether a step makes or reads such a relation, so that it is taken tuple by tuple.
    pub fn is_visited(&self, step: &Step) -> bool {
        !self.streams.is_empty()
            && (self.is_streamed(step.result)
                || (step.operation.inputs().into_iter()).any(|input| self.is_streamed(input)))
    }

    /// The relations that could rest so, ascending: outside of loops, sources and what is joined, aggregated, broadcast or shuffled, if
    /// only such steps read it and no loop begins with it; none of what a session holds or changes in place, nor of what steps that are taken
    /// together make or read.
    pub fn streamable(&self) -> Vec<RelationId> {
        let mut may: BTreeSet<RelationId> = BTreeSet::new();
        let (blocks, sweeps) = (self.blocks_of_steps(), self.sweeps_of_steps());
        let exchanges = self.exchanges_of_steps();
        let goes = |number: usize, step: &Step| match &step.operation {
            Operation::LocalJoin { .. } => {
                sweeps[number].is_none() && self.in_place(step).is_none()
            }
            Operation::Broadcast { .. } | Operation::Shuffle { .. } => exchanges[number].is_none(),
            Operation::LocalAggregate { .. } => true,
            _ => false,
        };
        for (number, step) in self.steps.iter().enumerate() {
            let made = match &step.operation {
                Operation::Source { source, .. } => !source.is_given(),
                _ => goes(number, step),
            };
            if made && blocks[number].is_none() {
                may.insert(step.result);
            }
        }
        for (number, step) in self.steps.iter().enumerate() {
            if !goes(number, step) {
                for input in step.operation.inputs() {
                    may.remove(&input);
                }
            }
        }
        for repeat in &self.repeats {
            for relation in repeat.block.begins_with().chain(repeat.block.ends_with()) {
                may.remove(&relation);
            }
        }
        // A session holds what it carries on, and looks at what it is given.
        if self.carried().next().is_some() {
            for output in &self.outputs {
                may.remove(&output.relation);
            }
        }
        may.into_iter().collect()
    }

    /// The tuples that a site goes through in a local step, in order.
    pub fn visits<'a>(&'a self, step: &'a Step, site: u32) -> impl Iterator<Item = Visit> + 'a {
        let fold = self.combined_in(step);
        let keys = step.kind.keys_at(site, &self.mesh);
        keys.map(move |key| Visit {
            members: match &fold {
                Some(fold) => fold.members(&step.kind.keys, &key, &self.mesh),
                None => vec![key.clone()],
            },
            key,
        })
    }

    /// Which tuples a step combines as it makes them, if it does.
    fn combined_in(&self, step: &Step) -> Option<Fold> {
        match &step.operation {
            Operation::LocalJoin { fold, .. } => fold.clone(),
            Operation::LocalAggregate { input, keep, .. } => Some(Fold {
                keys: self.kind(*input).keys.clone(),
                keep: keep.clone(),
            }),
            _ => None,
        }
    }

    /// The operands of a join or an aggregation, each with the place of its key dimensions among those of a visit's members.
    pub fn read_in(&self, step: &Step) -> Vec<JoinInput> {
        match &step.operation {
            Operation::LocalJoin { inputs, .. } => inputs.clone(),
            Operation::LocalAggregate { input, .. } => vec![JoinInput {
                relation: *input,
                keys: (0..self.kind(*input).keys.len() as u32).collect(),
            }],
            _ => vec![],
        }
    }

    /// The relation that a broadcast or a shuffle moves, if a step is one.
    pub fn moved_in(&self, step: &Step) -> Option<RelationId> {
        match step.operation {
            Operation::Broadcast { input } | Operation::Shuffle { input } => Some(input),
            _ => None,
        }
    }

    /// Bytes that a site has in hand in a step beside what it holds: a tuple of each streamed operand, and one that is made, or
    /// two while they are combined; of a movement the one that it sends, and those that arrive in a round.
    pub fn in_hand(&self, step: &Step) -> u64 {
        if !self.is_visited(step) {
            return 0;
        }
        let mut bytes = 0u64;
        let own = step.kind.largest_tuple();
        if self.is_streamed(step.result) {
            let at_once = match self.moved_in(step) {
                Some(input) => self.senders(self.kind(input), &step.kind),
                None => 1,
            };
            bytes = bytes.saturating_add(own.saturating_mul(at_once));
        }
        for input in step.operation.inputs() {
            if self.is_streamed(input) {
                bytes = bytes.saturating_add(self.kind(input).largest_tuple());
            }
        }
        if self.combined_in(step).is_some() {
            bytes = bytes.saturating_add(own);
        }
        bytes
    }

    /// Sites that one site gets tuples from in a movement, at most, and so the tuples that arrive there in a round; at least 1, for what stays.
    ///
    /// A sender's coordinates follow from those of the key, each from one dimension of it, or are the receiver's own. So there are as many as
    /// the product of what each dimension leaves open where the receiver's coordinates are known.
    fn senders(&self, from: &RelationType, to: &RelationType) -> u64 {
        let mesh = &self.mesh;
        let mut senders = 1u64;
        for (number, dim) in (0u32..).zip(&from.keys) {
            let digits = |roles: &[AxisRole], coordinate: u32| -> Vec<u32> {
                let block = dim.block(coordinate, mesh);
                let axes = (0u8..).zip(roles);
                let cut = axes.filter(|(_, role)| **role == AxisRole::Key(number));
                cut.map(|(axis, _)| dim.digit(block, axis, mesh)).collect()
            };
            let mut open: BTreeMap<Vec<u32>, BTreeSet<Vec<u32>>> = BTreeMap::new();
            for coordinate in 0..dim.pieces {
                let receiver = digits(&to.placement.roles, coordinate);
                let sender = digits(&from.placement.roles, coordinate);
                open.entry(receiver).or_default().insert(sender);
            }
            let most = open.values().map(BTreeSet::len).max().unwrap_or(1);
            senders = senders.saturating_mul(most as u64);
        }
        senders.min(u64::from(mesh.sites()) - 1).max(1)
    }

    /// Bytes that a step writes to disk and reads from there tuple by tuple, at the site that reads most: the first one, since the first pieces are the
    /// longest and the first blocks have the most of them.
    pub fn streamed_in(&self, step: &Step) -> Volume {
        let mut most = Volume::default();
        if !self.is_visited(step) {
            return most;
        }
        if self.is_streamed(step.result) {
            most.written = memory::of(self, &step.kind);
        }
        if let Some(input) = self.moved_in(step) {
            if self.is_streamed(input) {
                let (from, mesh) = (self.kind(input), &self.mesh);
                let needed = |key: &Vec<u32>| sends(from, &step.kind, key, (0, mesh));
                let bytes = from.keys_at(0, mesh).filter(needed);
                let bytes = bytes.map(|key| from.tuple_bytes(&key));
                most.read = bytes.fold(0, u64::saturating_add);
            }
            return most;
        }
        let inputs = self.read_in(step);
        let mut last: Vec<Option<Vec<u32>>> = vec![None; inputs.len()];
        for member in self.visits(step, 0).flat_map(|visit| visit.members) {
            for (input, last) in inputs.iter().zip(&mut last) {
                if !self.is_streamed(input.relation) {
                    continue;
                }
                let key = input.key_of(&member);
                if last.as_ref() != Some(&key) {
                    let tuple = self.kind(input.relation).tuple_bytes(&key);
                    most.read = most.read.saturating_add(tuple);
                    *last = Some(key);
                }
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::plan::Resting;

    /// A (3 x 2 tuples) times B (2 x 2), added up over k; then twice that.
    const PLAN: &str = "plan for 1 sites
kernel k0 (f64[5, 4], f64[4, 6]) [i: 5, j: 6 | k: 4] f64 = partial sum a0[i, k] * a1[k, j]
kernel k1 (f64[5, 6]) [i: 5, j: 6] f64 = a0[i, j] * 2.0_f64
r0 A: {i: 5/3@_, k: 4/2@_} f64[i, k] @ ALL = source A from iota
r1 B: {k: 4/2@_, j: 6/2@_} f64[k, j] @ ALL = source B from iota
r2 C: {i: 5/3@_, j: 6/2@_} f64[i, j] @ ALL = fold {i: 5/3@_, j: 6/2@_, k: 4/2@_} keep {i, j} k0(r0{i, k}, r1{k, j}) over [i, j, k]; free r0, r1
r3 D: {i: 5/3@_, j: 6/2@_} f64[i, j] @ ALL = join k1(r2{i, j}) over [i, j]; free r2
stream r0, r1, r3
output D = r3: f64[5, 6]
";

    #[test]
    fn what_is_read_and_in_hand_follows_from_the_order_of_keys() {
        let plan: Plan = PLAN.parse().unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(plan.to_string(), PLAN);
        crate::verify::verify(&plan).unwrap();
        let step = |number: usize| &plan.steps[number];
        let volumes: Vec<(u64, u64)> = (0..4)
            .map(|number| plan.streamed_in(step(number)))
            .map(|volume| (volume.written, volume.read))
            .collect();
        // Of A every tuple for each j, of B every tuple for each i.
        let product = 8 * (2 * 20 + 3 * 24);
        assert_eq!(volumes, [(160, 0), (192, 0), (0, product), (240, 0)]);
        // A 2 x 2, B 2 x 3, C 2 x 3 as what is added to it.
        let hands: Vec<u64> = (0..4).map(|number| plan.in_hand(step(number))).collect();
        assert_eq!(hands, [32, 48, 32 + 48 + 48, 48]);
        let held: Vec<u64> = memory::by_step(&plan).into_iter().flatten().collect();
        assert_eq!(held, [32, 48, 240 + 128, 240 + 48]);
        assert_eq!(plan.spilled().read, product);
        // A and B until C is made; B and C's double are no more than that.
        assert_eq!(plan.at_rest(), [160 + 192]);
    }

    #[test]
    fn a_plan_says_where_relations_rest() {
        let text = PLAN.replacen("kernel", "rest in host memory\nkernel", 1);
        let plan: Plan = text.parse().unwrap_or_else(|error| panic!("{error:?}"));
        assert_eq!(plan.resting, Resting::HostMemory);
        assert_eq!(plan.to_string(), text);
    }

    /// On two sites each has a row of A's tiles, gets all of B's, and adds up its part of what it computes.
    const MOVED: &str = "plan for 2 sites
kernel k0 (f64[5, 4], f64[4, 6]) [i: 5, j: 6 | k: 4] f64 = partial sum a0[i, k] * a1[k, j]
r0 A: {i: 5/2, k: 4/2} f64[i, k] @ PART(i) = source A from iota
r1 B: {k: 4/2, j: 6/2@_} f64[k, j] @ PART(k) = source B from iota
r2 B.all: {k: 4/2, j: 6/2@_} f64[k, j] @ ALL = broadcast r1; free r1
r3 C.partial: {i: 5/2, j: 6/2@_, k: 4/2} f64[i, j] @ PART(i) = join k0(r0{i, k}, r2{k, j}) over [i, j, k]; free r0, r2
r4 C: {i: 5/2, j: 6/2@_} f64[i, j] @ PART(i) = aggregate sum r3 keep {i, j}; free r3
stream r1, r2, r3, r4
output C = r4: f64[5, 6]
";

    #[test]
    fn what_moves_goes_tuple_by_tuple() {
        let plan: Plan = MOVED.parse().unwrap_or_else(|error| panic!("{error:?}"));
        crate::verify::verify(&plan).unwrap();
        let step = |number: usize| &plan.steps[number];
        let volume = |number: usize| {
            let volume = plan.streamed_in(step(number));
            (volume.written, volume.read)
        };
        // B's tiles are of 2 x 3: each site reads its two, and has all four then.
        assert_eq!(volume(2), (4 * 48, 2 * 48));
        // One of them is sent while one arrives.
        assert_eq!(plan.in_hand(step(2)), 2 * 48);
        // Four tiles of 3 x 3 in the first site, two for each of C's.
        assert_eq!(volume(4), (2 * 72, 4 * 72));
        // A tile that is made, one that is read, and the sum before.
        assert_eq!(plan.in_hand(step(4)), 3 * 72);
    }

    #[test]
    fn nothing_else_is_streamed() {
        let plan: Plan = PLAN.parse().unwrap();
        let refused = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan.clone();
            change(&mut plan);
            crate::verify::verify(&plan).unwrap_err().to_string()
        };
        let r = |numbers: &[u32]| numbers.iter().map(|n| RelationId(*n)).collect::<Vec<_>>();
        let order = refused(&|plan| plan.streams = r(&[1, 0]));
        assert_eq!(order, "streams: they do not ascend");
        let absent = refused(&|plan| plan.streams = r(&[0, 9]));
        assert_eq!(absent, "streams: r9 cannot lie on disk tuple by tuple");
        let fed = refused(&|plan| {
            let Operation::Source { source, .. } = &mut plan.steps[0].operation else {
                panic!("r0 is a source");
            };
            *source = crate::Source::Fed;
        });
        assert_eq!(fed, "streams: r0 cannot lie on disk tuple by tuple");
    }
}
