//! Spills: relations that rest between two uses, on disk or in the host's memory, so that a plan needs less memory than what it works on.
//!
//! A relation goes out in front of a step and is back in front of a later one of the same round; no step between the two reads it. Which may
//! do so follows from the plan ([`Plan::gaps`]). Must not know files.
//!
//! ```text
//! spill r3 before r5 until r9      r3 goes to rest before step 5 and is back before step 9
//! ```

use crate::amounts::Amounts;
use crate::ids::RelationId;
use crate::loops::BlockId;
use crate::memory;
use crate::plan::{Operation, Plan, Spill};
use std::collections::BTreeMap;

/// The bytes that go to rest and come back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Written; what rests already is not written again.
    pub written: u64,
    /// Read.
    pub read: u64,
}

impl Plan {
    /// Where relations could rest: for each, the longest stretches between two uses, ascending.
    pub fn gaps(&self) -> Vec<Spill> {
        let blocks = self.blocks_of_steps();
        let uses = self.uses(&blocks);
        let mut gaps = vec![];
        for (number, uses) in uses.into_iter().enumerate() {
            let Some((made, uses)) = uses.split_first() else {
                continue;
            };
            let mut from = made.1;
            for (first, last) in uses {
                let alike = |step: &usize| blocks[*step] == blocks[number];
                let before = (from + 1..*first).find(alike);
                let until = (from + 1..*first + 1).rev().find(alike);
                if let (Some(before), Some(until)) = (before, until)
                    && before < until
                {
                    gaps.push(Spill {
                        relation: RelationId(number as u32),
                        before: RelationId(before as u32),
                        until: RelationId(until as u32),
                    });
                }
                from = from.max(*last);
            }
        }
        gaps
    }

    /// By relation: the first and last step at which it is made, then those of each use, in order; nothing for what cannot rest.
    fn uses(&self, blocks: &[Option<BlockId>]) -> Vec<Vec<(usize, usize)>> {
        let (sweeps, exchanges) = (self.sweeps_of_steps(), self.exchanges_of_steps());
        // Where a step is taken: its operands are needed from the first to the last of these.
        let taken = |step: usize| match (sweeps[step], exchanges[step]) {
            (Some(sweep), _) => {
                let last = self.sweeps[sweep].last().0 as usize;
                (last, last)
            }
            (_, Some(exchange)) => {
                let exchange = &self.exchanges[exchange];
                (exchange.last().0 as usize, exchange.until.0 as usize)
            }
            _ => (step, step),
        };
        let mut uses: Vec<Vec<(usize, usize)>> = (0..self.steps.len())
            .map(|step| vec![taken(step)])
            .collect();
        for (number, step) in self.steps.iter().enumerate() {
            for input in step.operation.inputs() {
                let own = blocks[input.0 as usize];
                let (mut at, mut around) = (taken(number), blocks[number]);
                while around != own {
                    let Some(block) = around else { break };
                    let repeat = self.repeat(block);
                    at = (repeat.first as usize, repeat.end as usize - 1);
                    around = repeat.block.parent;
                }
                uses[input.0 as usize].push(at);
            }
        }
        let mut clear = |relation: RelationId| {
            if let Some(uses) = uses.get_mut(relation.0 as usize) {
                uses.clear();
            }
        };
        for repeat in &self.repeats {
            let block = &repeat.block;
            block
                .begins_with()
                .chain(block.ends_with())
                .for_each(&mut clear);
        }
        for (step, passes) in self.steps.iter().zip(self.passing()) {
            let lent = match &step.operation {
                Operation::Source { source, .. } => source.is_given(),
                other => matches!(other, Operation::Loop { .. }),
            };
            // A session, or a loop, holds these as well; what is streamed is never held.
            if passes || lent || self.is_streamed(step.result) {
                clear(step.result);
            }
        }
        for uses in &mut uses {
            uses.get_mut(1..).unwrap_or_default().sort_unstable();
        }
        uses
    }

    /// By step: whether something goes to rest in front of it, or comes back.
    pub fn rests(&self) -> Vec<bool> {
        let mut rests = vec![false; self.steps.len()];
        for spill in &self.spills {
            rests[spill.before.0 as usize] = true;
            rests[spill.until.0 as usize] = true;
        }
        rests
    }

    /// By site: the most bytes that rest at one time. What is read tuple by tuple rests from the step that makes it until it is freed.
    pub fn at_rest(&self) -> Vec<u64> {
        let steps = self.steps.len();
        let mut changes = vec![vec![0i128; self.sites as usize]; steps + 1];
        let mut rests = |relation: RelationId, from: usize, until: usize| {
            let kind = self.kind(relation);
            let bytes = Amounts::bytes(kind, &self.mesh).at_sites(&[&kind.placement]);
            for (site, bytes) in bytes.into_iter().enumerate() {
                let bytes = i128::try_from(bytes).unwrap_or(i128::MAX / 4);
                changes[from][site] += bytes;
                changes[until][site] -= bytes;
            }
        };
        // What rests again stays between the two times.
        let mut stretches: BTreeMap<RelationId, (u32, u32)> = BTreeMap::new();
        for spill in &self.spills {
            let own = (spill.before.0, spill.until.0);
            let whole = stretches.entry(spill.relation).or_insert(own);
            *whole = (whole.0.min(own.0), whole.1.max(own.1));
        }
        for (relation, (from, until)) in stretches {
            rests(relation, from as usize, until as usize);
        }
        for relation in &self.streams {
            let freed = self
                .steps
                .iter()
                .position(|step| step.frees.contains(relation));
            let until = freed.map_or(steps, |step| step + 1);
            rests(*relation, relation.0 as usize, until);
        }
        let mut peaks = vec![0; self.sites as usize];
        let mut held = vec![0i128; self.sites as usize];
        for changes in &changes {
            for ((held, peak), change) in held.iter_mut().zip(&mut peaks).zip(changes) {
                *held += change;
                *peak = u64::try_from(*held).unwrap_or(u64::MAX).max(*peak);
            }
        }
        peaks
    }

    /// Whether a spill is the first of its relation, so that it is written: what comes back is the same as long as the
    /// relation is there.
    pub fn is_written(&self, spill: &Spill) -> bool {
        let earlier = |other: &&Spill| other.relation == spill.relation && **other < *spill;
        !self.spills.iter().any(|other| earlier(&other))
    }

    /// Whether a spill is the last of its relation, so that nothing needs to stay at rest.
    pub fn is_last(&self, spill: &Spill) -> bool {
        let later = |other: &&Spill| other.relation == spill.relation && **other > *spill;
        !self.spills.iter().any(|other| later(&other))
    }

    /// The bytes that go to rest and come back, of whole relations and tuples, at the site that has most of each, with as many rounds of loops as are expected.
    pub fn spilled(&self) -> Volume {
        let times = self.times_of_steps(&self.expected_times());
        let mut volume = Volume::default();
        for (step, times) in self.steps.iter().zip(&times) {
            let own = self.streamed_in(step);
            let of = |bytes: u64| bytes.saturating_mul(*times);
            volume.read = volume.read.saturating_add(of(own.read));
            volume.written = volume.written.saturating_add(of(own.written));
        }
        for spill in &self.spills {
            let times = times[spill.before.0 as usize];
            let bytes = memory::of(self, self.kind(spill.relation)).saturating_mul(times);
            volume.read = volume.read.saturating_add(bytes);
            if self.is_written(spill) {
                volume.written = volume.written.saturating_add(bytes);
            }
        }
        volume
    }
}
