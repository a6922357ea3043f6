//! What a training carries from step to step, written over by what takes its place.
//!
//! A step's next params and states lie where the old ones do, if nobody reads these afterwards. What the loss depends on may be written over
//! only once the loss is known to be finite: else the step is taken again with the old params, to say which tensor went bad. Where the loss
//! stands behind, it is computed ahead if what it lacks are numbers. Must not know how steps are carried out.
//!
//! ```text
//! W_next = W - rate * g      r9 over r2, as soon as the loss r7 is finite
//! m_next = 0.9 * m + 0.1 * g     r8 over r3, whatever the loss is
//! ```

use crate::ids::RelationId;
use crate::lifetime::{Event, Uses, uses};
use crate::overwrite::is_large;
use crate::plan::{Operation, Plan, Step};
use crate::repeat::alike;
use crate::source::fed;
use std::collections::BTreeSet;

/// What is carried, and what is written over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Succession {
    /// What is carried into the step.
    pub old: RelationId,
    /// What takes its place.
    pub next: RelationId,
    /// The operand of the step that it is, if that step is in no sweep.
    pub operand: Option<u32>,
    /// Whether the loss has to be known to be finite.
    pub waits: bool,
}

/// Where the loss is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// In front of this step.
    pub before: RelationId,
    /// Numbers that are computed ahead for it, in their order.
    pub ahead: Vec<RelationId>,
    /// The loss.
    pub loss: RelationId,
}

/// All of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Successions {
    /// By what is carried.
    pub list: Vec<Succession>,
    /// Where the loss is known, if something waits for it.
    pub settled: Option<Settled>,
}

impl Plan {
    /// The loss of a training's step: the first output, if it is a number that is not carried on.
    pub fn loss(&self) -> Option<RelationId> {
        let first = self.outputs.first()?;
        let is_it = first.shape.is_empty()
            && first.name != fed::RATE
            && first.replaces.is_none()
            && self.carried_on().next().is_some();
        is_it.then_some(first.relation)
    }

    /// By step: whether a relation depends on its result, or is it.
    pub fn needed_for(&self, relation: RelationId) -> Vec<bool> {
        let mut needed = vec![false; self.steps.len()];
        let mut open = vec![relation];
        while let Some(relation) = open.pop() {
            let known = &mut needed[relation.0 as usize];
            if std::mem::replace(known, true) {
                continue;
            }
            let operation = &self.step(relation).operation;
            open.extend(operation.inputs());
            if let Operation::Loop { value } = operation {
                let block = &self.repeat(value.block()).block;
                open.extend(block.begins_with().chain(block.ends_with()));
            }
        }
        needed
    }

    /// What the plan's step may write over of what is carried.
    pub fn successions(&self) -> Successions {
        let uses = uses(self);
        let needed = self.loss().map(|loss| (loss, self.needed_for(loss)));
        let waits = |old: RelationId| {
            let needed = needed.as_ref();
            needed.is_some_and(|(_, needed)| needed[old.0 as usize])
        };
        let mut list: Vec<Succession> = vec![];
        for (old, next) in self.carried_on() {
            let taken = list.iter().any(|other| other.next == next);
            if !taken && let Some(operand) = self.succeeds(&uses, old, next) {
                list.push(Succession {
                    old,
                    next,
                    operand,
                    waits: waits(old),
                });
            }
        }
        let time = |next: RelationId| uses.taken[next.0 as usize];
        let mut waiting: Vec<usize> = list
            .iter()
            .filter(|s| s.waits)
            .map(|s| time(s.next))
            .collect();
        waiting.sort_unstable();
        let settled = needed.as_ref().and_then(|(loss, needed)| {
            waiting.into_iter().find_map(|at| {
                let Event::Step(before) = uses.events[at] else {
                    return None;
                };
                Some(Settled {
                    before: RelationId(before as u32),
                    ahead: self.ahead(&uses, needed, at)?,
                    loss: *loss,
                })
            })
        });
        let first = settled.as_ref().map(|settled| time(settled.before));
        list.retain(|s| !s.waits || first.is_some_and(|first| first <= time(s.next)));
        Successions { list, settled }
    }

    /// Whether a relation may be written over by one that replaces it, and as which operand, if that is made by a step in no sweep.
    fn succeeds(&self, uses: &Uses, old: RelationId, next: RelationId) -> Option<Option<u32>> {
        let (from, to) = (self.kind(old), self.step(next));
        let at = uses.taken[next.0 as usize];
        let lies = alike(from, &to.kind) && from.placement == to.kind.placement;
        let given_out = self.outputs.iter().any(|output| output.relation == old);
        let rests = self.spills.iter().any(|spill| spill.relation == old);
        let is_step = matches!(uses.events[at], Event::Step(_));
        let outside = self.repeats.iter().all(|repeat| {
            let body = repeat.first..repeat.end;
            !body.contains(&old.0) && !body.contains(&next.0)
        });
        if !lies || given_out || rests || !is_step || !outside || uses.last[old.0 as usize] > at {
            return None;
        }
        let readers = self.steps.iter().filter(|step| {
            uses.taken[step.result.0 as usize] == at && step.operation.inputs().contains(&old)
        });
        let mut sweeps = self.sweeps.iter();
        let Some(sweep) = sweeps.find(|sweep| sweep.members.contains(&next)) else {
            let (operand, _) = self.beside(to, |relation| relation == old)?;
            let alone = readers.into_iter().all(|reader| reader.result == next);
            return (is_large(to) && alone).then_some(Some(operand));
        };
        let own = |reader: &Step| {
            sweep.members.contains(&reader.result) && self.reads_own_rows(reader, old, sweep.rows)
        };
        let single = to.kind.array.columns.len() == 1 && !self.may_gather(to);
        (single && readers.into_iter().all(own)).then_some(None)
    }

    /// Whether a step reads a relation at its own row only, by bare indices.
    pub(crate) fn reads_own_rows(&self, step: &Step, relation: RelationId, rows: u32) -> bool {
        let Operation::LocalJoin { inputs, kernel, .. } = &step.operation else {
            return false;
        };
        let kernel = &self.kernels[kernel.0 as usize];
        let keys = inputs.iter().filter(|input| input.relation == relation);
        let mut keys = keys.flat_map(|input| (0u32..).zip(&input.keys));
        keys.all(|(dim, key)| dim == *key)
            && kernel.graph.reads().all(|(operand, positions)| {
                let shape = &kernel.operands[operand as usize].shape;
                let mut inside = positions.iter().zip(shape).map(|(position, extent)| {
                    let index = kernel.graph.as_index(*position);
                    index.is_some_and(|i| kernel.indices[i.0 as usize].extent <= *extent)
                });
                inputs[operand as usize].relation != relation
                    || kernel.rows_read(positions) >= rows as usize && inside.all(|inside| inside)
            })
    }

    /// The steps that what is needed lacks at a time, in their order, if all of them make numbers of what is there.
    fn ahead(&self, uses: &Uses, needed: &[bool], at: usize) -> Option<Vec<RelationId>> {
        let swept = self.sweeps_of_steps();
        let blocks = self.blocks_of_steps();
        let mut ahead: BTreeSet<RelationId> = BTreeSet::new();
        for step in &self.steps {
            let number = step.result.0 as usize;
            if !needed[number] || uses.taken[number] < at {
                continue;
            }
            let there =
                |input: &RelationId| uses.taken[input.0 as usize] < at || ahead.contains(input);
            let is_number = step.kind.keys.is_empty() && step.kind.array.dims.is_empty();
            let computed = matches!(step.operation, Operation::LocalJoin { fold: None, .. });
            let alone = swept[number].is_none() && blocks[number].is_none();
            if !(is_number && computed && alone && step.operation.inputs().iter().all(there)) {
                return None;
            }
            ahead.insert(step.result);
        }
        Some(ahead.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A param `W`, its state `m`, and these steps.
    fn plan(steps: &str) -> Plan {
        let text = format!(
            "plan for 1 sites
kernel k0 (f32[600, 600], f32[600, 600]) [| i: 600, j: 600] f32 = sum a0[i, j] * a1[i, j]
kernel k1 (f32[]) [] f32 = a0[] * 0.5_f32
kernel k2 (f32[600, 600], f32[600, 600]) [i: 600, j: 600] f32 = 0.9_f32 * a0[i, j] + a1[i, j]
kernel k3 (f32[600, 600], f32[600, 600]) [i: 600, j: 600] f32 = a0[j, i] - a1[i, j]
r0 W: {{}} f32[600, 600] @ ALL = source W from fed
r1 g: {{}} f32[600, 600] @ ALL = source g from fed
r2 m: {{}} f32[600, 600] @ ALL = source m from fed
{steps}output loss = r6: f32[]
output W_next = r5: f32[600, 600] replaces W
output m_next = r4: f32[600, 600] replaces m
"
        );
        let parsed = text.parse();
        parsed.unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn numbers(relations: &[RelationId]) -> Vec<u32> {
        relations.iter().map(|relation| relation.0).collect()
    }

    /// What is written over, each with whether it waits; where the loss is known, and what is computed ahead for it.
    type Found = (Vec<(u32, u32, bool)>, Option<(u32, Vec<u32>)>);

    fn found(steps: &str) -> Found {
        let found = plan(steps).successions();
        let list = found.list.iter();
        let settled = found.settled;
        (
            list.map(|s| (s.old.0, s.next.0, s.waits)).collect(),
            settled.map(|settled| (settled.before.0, numbers(&settled.ahead))),
        )
    }

    const SUM: &str = "r3 s: {} f32[] @ ALL = join k0(r0{}, r1{}) over [_, _]\n";
    const STATE: &str = "r4 m_next: {} f32[600, 600] @ ALL = join k2(r2{}, r1{}) over [_, _]\n";
    const PARAM: &str = "r5 W_next: {} f32[600, 600] @ ALL = join k2(r0{}, r4{}) over [_, _]\n";
    const LOSS: &str = "r6 loss: {} f32[] @ ALL = join k1(r3{}) over []\n";

    #[test]
    fn params_wait_for_the_loss_and_states_do_not() {
        let steps = [SUM, STATE, PARAM, LOSS].concat();
        let both = vec![(0, 5, true), (2, 4, false)];
        assert_eq!(found(&steps), (both, Some((5, vec![6]))));
    }

    #[test]
    fn what_is_read_elsewhere_or_later_stays() {
        let turned = PARAM.replace("k2", "k3");
        let state = vec![(2, 4, false)];
        let steps = [SUM, STATE, &turned, LOSS].concat();
        assert_eq!(found(&steps), (state.clone(), None));
        let loss = LOSS.replace("k1(r3{}) over []", "k0(r0{}, r1{}) over [_, _]");
        let steps = [SUM, STATE, PARAM, &loss].concat();
        assert_eq!(found(&steps), (state, None));
    }

    #[test]
    fn params_stay_where_the_loss_is_not_known() {
        let loss = LOSS.replace("k1(r3{}) over []", "k0(r5{}, r1{}) over [_, _]");
        let param = PARAM.replace("r4", "r1");
        let steps = [SUM, STATE, &param, &loss].concat();
        assert_eq!(found(&steps), (vec![(2, 4, false)], None));
    }
}
