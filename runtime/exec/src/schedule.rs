//! The order of a plan's steps as loops in loops, and between which of them sites talk.
//!
//! A part in which no site talks is taken in one go by the site's threads. Must not know what a step computes.
//!
//! ```text
//! step 0, step 1 broadcast, repeat b0 { step 2, step 3 }   ->   [quiet [0], 1, quiet [b0 [2, 3]]]
//! ```

use crate::checks::{checks, fallible};
use ein_comm::Communicator;
use ein_device::{Device, Prepared, PreparedRounds};
use ein_plan::lifetime::{Event, events};
use ein_plan::{
    BlockId, Bound, LoopValue, Operation, Plan, RelationId, RelationType, Settled, SmallRounds,
    Step, Succession, Update,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A part of a plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A step: in a quiet part a local one, else one that moves tuples.
    Step(usize),
    /// Relations that rest from this step on go to rest, and those that are needed from it on come back.
    Rest(usize),
    /// An exchange begins.
    Begin(usize),
    /// The exchanges end that end with this step.
    End(usize),
    /// Sites agree on whether the loss is finite.
    Settle,
    /// Parts at which no site talks.
    Quiet(Vec<Item>),
    /// A loop, its body.
    Repeat(BlockId, Vec<Item>),
    /// A loop in which no site talks but a step may fail: between some of its rounds sites agree that none has.
    Alone(BlockId, Vec<Item>),
}

/// What is known of a plan before it is walked by so many sites.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// All of it.
    pub items: Vec<Item>,
    /// By loop.
    pub loops: Vec<Loop>,
    /// Whether sites have to agree on what decides how many rounds a loop makes.
    pub agree: bool,
    /// By step: whether sites agree before it that none has failed.
    pub checks: Vec<bool>,
    /// By step: whether an exchange ends with it.
    pub ends: Vec<bool>,
    /// By step: the relation that it changes in place, and at which points.
    pub updates: Vec<Option<(RelationId, Update)>>,
    /// By step: the operand whose memory its result may take, with the relation.
    pub overwrites: Vec<Option<(u32, RelationId)>>,
    /// By member of a sweep: the relation that ends with it and whose memory its result takes.
    pub overwrites_in: BTreeMap<RelationId, RelationId>,
    /// What the step may write over of what is carried, by what takes its place.
    pub successions: BTreeMap<RelationId, Succession>,
    /// Where the loss is known, if something waits for it.
    pub settled: Option<Settled>,
    /// By step: whether the loss depends on it.
    pub of_loss: Vec<bool>,
    /// By step: the sweep that it is in.
    pub sweeps: Vec<Option<usize>>,
    /// By step: bytes that it works in, beside what it reads and makes.
    pub working_space: Vec<u64>,
    /// By step: whether its result is never held.
    pub passing: Vec<bool>,
    /// The kernels of joins.
    pub kernels: Kernels,
    /// By loop: its rounds in one piece, if the device makes them so.
    pub whole: Vec<Option<WholeRounds>>,
}

/// A loop whose rounds the device makes in one piece.
#[derive(Debug)]
pub(crate) struct WholeRounds {
    /// The loop.
    pub rounds: SmallRounds,
    /// By value that it collects: its number in the plan.
    pub collected: Vec<u32>,
    /// The loop as the device runs it.
    pub prepared: Box<dyn PreparedRounds>,
    /// The step whose time is that of all rounds: the first value that is had behind the loop.
    pub timed: usize,
}

impl WholeRounds {
    fn prepare(plan: &Plan, block: BlockId, device: &dyn Device) -> Option<WholeRounds> {
        let rounds = plan.small_rounds(block).ok()?;
        let values = 0..plan.repeat(block).block.collected.len() as u32;
        let wanted = |number: &u32| plan.collected_kind(block, *number).is_some();
        let is_behind = |step: &Step| match &step.operation {
            Operation::Loop { value } => value.block() == block && value.is_behind(),
            _ => false,
        };
        let behind = plan.steps.iter().position(is_behind);
        Some(WholeRounds {
            timed: behind.unwrap_or(plan.repeat(block).first as usize),
            collected: values.filter(wanted).collect(),
            prepared: device.prepare_rounds(&rounds)?,
            rounds,
        })
    }
}

/// The kernels of a plan's joins, as the device runs them, by step. What the device keeps of one run for the next is with them.
#[derive(Debug, Default)]
pub(crate) struct Kernels(Vec<Option<Box<dyn Prepared>>>);

impl Kernels {
    /// Has a device prepare the kernels of all joins.
    fn prepare(plan: &Plan, device: &dyn Device) -> Kernels {
        let prepared = plan.steps.iter().map(|step| match &step.operation {
            Operation::LocalJoin { kernel, .. } => {
                let kernel = &plan.kernels[kernel.0 as usize];
                let loops = plan.loops_of(step.result)?;
                Some(device.prepare(kernel, loops, plan.deterministic))
            }
            _ => None,
        });
        Kernels(prepared.collect())
    }

    /// The kernel of a step, if it is a join.
    pub fn of(&self, step: RelationId) -> Option<&dyn Prepared> {
        self.0.get(step.0 as usize)?.as_deref()
    }
}

/// The schedules of plans that are walked again and again on one device, by the sites of one communicator. It holds the plans, so that
/// no other plan can take the place of one.
#[derive(Default)]
pub(crate) struct Schedules(Vec<(Arc<Plan>, Arc<Schedule>)>);

impl Schedules {
    /// The schedule of a plan.
    pub fn of(
        &mut self,
        plan: &Arc<Plan>,
        comm: &dyn Communicator,
        device: &dyn Device,
    ) -> Arc<Schedule> {
        let known = self.0.iter().find(|(known, _)| Arc::ptr_eq(known, plan));
        if let Some((_, schedule)) = known {
            return Arc::clone(schedule);
        }
        let schedule = Arc::new(Schedule::of(plan, comm, device));
        self.0.push((Arc::clone(plan), Arc::clone(&schedule)));
        schedule
    }
}

/// What is known of a loop.
#[derive(Debug)]
pub(crate) struct Loop {
    /// Whether sites talk in a round, or agree on its end.
    pub talks: bool,
    /// By state: whether the next one is this state's alone, of this very round and just where the state is, so that it
    /// can be moved.
    pub moves: Vec<bool>,
    /// By state: its type and placement.
    pub states: Vec<RelationType>,
    /// By collected value: its type and placement, if it is wanted.
    pub collected: Vec<Option<RelationType>>,
    /// Relations that end with a round.
    pub round: Vec<RelationId>,
    /// States that nobody wants behind the loop.
    pub lost: Vec<u32>,
}

impl Schedule {
    /// The schedule of a verified plan for the sites of a communicator, which have such a device each.
    pub fn of(plan: &Plan, comm: &dyn Communicator, device: &dyn Device) -> Schedule {
        // A site that takes no part has none of the values.
        let idle = plan.mesh.sites() < comm.sites();
        let others = comm.sites() > 1;
        Schedule {
            kernels: Kernels::prepare(plan, device),
            whole: (0..plan.repeats.len() as u32)
                .map(|block| WholeRounds::prepare(plan, BlockId(block), device))
                .collect(),
            ..Schedule::new(plan, others, idle || (others && !comm.is_one_process()))
        }
    }

    /// The schedule of a verified plan; `others`: whether there are several sites, `agree`: whether they may come to other
    /// values of the same scalar. No kernel is prepared.
    fn new(plan: &Plan, others: bool, agree: bool) -> Schedule {
        let successions = plan.successions();
        let mut schedule = Schedule {
            items: vec![],
            loops: vec![],
            agree,
            checks: checks(plan),
            ends: vec![false; plan.steps.len()],
            updates: plan.steps.iter().map(|step| update(plan, step)).collect(),
            overwrites: plan
                .steps
                .iter()
                .map(|step| plan.overwrites(step))
                .collect(),
            overwrites_in: plan
                .sweeps
                .iter()
                .flat_map(|sweep| plan.overwrites_in(sweep))
                .filter(|(_, old)| successions.list.iter().all(|s| s.old != *old))
                .collect(),
            successions: {
                let list = successions.list.into_iter();
                list.map(|succession| (succession.next, succession))
                    .collect()
            },
            settled: successions.settled,
            of_loss: match plan.loss() {
                Some(loss) => plan.needed_for(loss),
                None => vec![true; plan.steps.len()],
            },
            sweeps: plan.sweeps_of_steps(),
            working_space: {
                let steps = plan.steps.iter();
                steps.map(|step| plan.working_space(step)).collect()
            },
            passing: plan.passing(),
            kernels: Kernels::default(),
            whole: vec![],
        };
        let blocks = plan.blocks_of_steps();
        let loops =
            (0..plan.repeats.len() as u32).map(|n| loop_of(plan, BlockId(n), &blocks, agree));
        schedule.loops = loops.collect();
        for exchange in &plan.exchanges {
            schedule.ends[exchange.until.0 as usize] = true;
        }
        schedule.items = schedule.items(plan, others);
        schedule
    }

    /// The items of a plan in order, those of each loop within it.
    fn items(&self, plan: &Plan, others: bool) -> Vec<Item> {
        let fallible = fallible(plan);
        let exchanges = plan.exchanges_of_steps();
        let rests = plan.rests();
        let mut parts = vec![(vec![], true)];
        for event in events(plan) {
            match event {
                Event::Enter(_) => parts.push((vec![], true)),
                Event::Step(step) => {
                    let settled = self.settled.as_ref();
                    if settled.is_some_and(|settled| settled.before.0 as usize == step) {
                        add(&mut parts, Item::Settle, false);
                    }
                    if rests[step] {
                        add(&mut parts, Item::Rest(step), true);
                    }
                    match exchanges[step] {
                        None => {
                            let quiet = !plan.steps[step].operation.moves();
                            add(&mut parts, Item::Step(step), quiet);
                        }
                        Some(exchange) => {
                            let last = plan.exchanges[exchange].last();
                            if last.0 as usize == step {
                                add(&mut parts, Item::Begin(exchange), false);
                            }
                        }
                    }
                    if self.ends[step] {
                        add(&mut parts, Item::End(step), false);
                    }
                }
                Event::Exit(block) => {
                    let (body, _) = parts.pop().unwrap_or_default();
                    let bound = plan.repeat(block).block.bound;
                    let told = self.agree && matches!(bound, Bound::Value(_));
                    let talks = self.loops[block.0 as usize].talks || told;
                    let repeat = plan.repeat(block);
                    let steps = &fallible[repeat.first as usize..repeat.end as usize];
                    if talks {
                        add(&mut parts, Item::Repeat(block, body), false);
                    } else if others && steps.contains(&true) {
                        add(&mut parts, Item::Alone(block, flat(body)), false);
                    } else {
                        add(&mut parts, Item::Repeat(block, flat(body)), true);
                    }
                }
            }
        }
        parts.pop().unwrap_or_default().0
    }
}

/// A loop as it is walked. `agree`: whether sites may come to other values of the same scalar.
fn loop_of(plan: &Plan, id: BlockId, blocks: &[Option<BlockId>], agree: bool) -> Loop {
    let repeat = plan.repeat(id);
    let block = &repeat.block;
    let own = |relation: &RelationId| blocks[relation.0 as usize] == Some(id);
    let body = repeat.first as usize..repeat.end as usize;
    let agrees = |held: &ein_plan::Repeat| {
        agree && (held.block.until.is_some() || matches!(held.block.bound, Bound::Value(_)))
    };
    let inner = plan.repeats.iter().enumerate();
    let mut inner = inner.filter(|(inner, other)| {
        *inner != id.0 as usize && is_inside(plan, BlockId(*inner as u32), id) && agrees(other)
    });
    let wanted: Vec<LoopValue> = plan.behind(id).map(|(_, value)| value).collect();
    let states: Vec<RelationType> = (0u32..)
        .zip(&block.states)
        .map(|(n, state)| {
            plan.state_kind(id, n)
                .unwrap_or(plan.kind(state.initial))
                .clone()
        })
        .collect();
    Loop {
        talks: plan.steps[body].iter().any(|step| step.operation.moves())
            || (agree && block.until.is_some())
            || inner.next().is_some(),
        moves: (block.states.iter().zip(&states))
            .map(|(state, kind)| {
                let same = block.states.iter().filter(|other| other.next == state.next);
                let there = plan.kind(state.next).placement == kind.placement;
                own(&state.next) && there && same.count() == 1
            })
            .collect(),
        states,
        collected: (0..block.collected.len() as u32)
            .map(|number| plan.collected_kind(id, number).cloned())
            .collect(),
        round: block.ends_with().filter(own).collect(),
        lost: (0..block.states.len() as u32)
            .filter(|number| !wanted.contains(&LoopValue::Last(id, *number)))
            .collect(),
    }
}

/// What a step changes in place, if it does.
fn update(plan: &Plan, step: &Step) -> Option<(RelationId, Update)> {
    let Operation::LocalJoin { kernel, .. } = &step.operation else {
        return None;
    };
    let relation = plan.in_place(step)?;
    Some((relation, plan.kernels[kernel.0 as usize].update()?))
}

/// Whether a loop is in another one.
fn is_inside(plan: &Plan, inner: BlockId, outer: BlockId) -> bool {
    let mut around = plan.repeat(inner).block.parent;
    while let Some(block) = around {
        if block == outer {
            return true;
        }
        around = plan.repeat(block).block.parent;
    }
    false
}

/// Adds a part to the innermost body that is open.
fn add(parts: &mut [(Vec<Item>, bool)], item: Item, quiet: bool) {
    let Some((items, _)) = parts.last_mut() else {
        return;
    };
    match (items.last_mut(), quiet) {
        (Some(Item::Quiet(group)), true) => group.push(item),
        (_, true) => items.push(Item::Quiet(vec![item])),
        (_, false) => items.push(item),
    }
}

/// The parts of a body in which nothing but quiet groups stands.
fn flat(items: Vec<Item>) -> Vec<Item> {
    let parts = items.into_iter().map(|item| match item {
        Item::Quiet(items) => items,
        other => vec![other],
    });
    parts.flatten().collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn quiet_parts_are_groups() {
        let text = "plan for 2 sites
kernel k0 (f64[]) [] f64 = a0[] * 0.5_f64
kernel k1 (f64[]) [] bool = a0[] < 1.0_f64
r0 x: {} f64[] @ ALL = source x from full(64.0)
repeat b0 t < 3; state r0 next r2; free r0
  r1 x: {} f64[] @ ALL = loop state b0.0
  r2 x: {} f64[] @ ALL = join k0(r1{}) over []; free r1
end b0
r3 x: {} f64[] @ ALL = loop last b0.0
repeat b1 u < inf until r6; state r3 next r5; free r3
  r4 x: {} f64[] @ ALL = loop state b1.0
  r5 x: {} f64[] @ ALL = join k0(r4{}) over []; free r4
  r6 stop: {} bool[] @ ALL = join k1(r5{}) over []
end b1
r7 x: {} f64[] @ ALL = loop last b1.0
output x = r7: f64[]
";
        let plan: Plan = text.parse().unwrap();
        assert_eq!(plan.to_string(), text);
        ein_plan::verify::verify(&plan).unwrap();
        let steps = |steps: &[usize]| steps.iter().map(|s| Item::Step(*s)).collect::<Vec<_>>();
        let first = Item::Repeat(BlockId(0), steps(&[1, 2]));
        let quiet = Item::Quiet(vec![Item::Step(0), first, Item::Step(3)]);
        let second = Item::Repeat(BlockId(1), vec![Item::Quiet(steps(&[4, 5, 6]))]);
        let expected = vec![quiet, second, Item::Quiet(steps(&[7]))];
        assert_eq!(Schedule::new(&plan, true, true).items, expected);
        // Alone, or beside others of its process, a site needs no agreement.
        assert_eq!(Schedule::new(&plan, true, false).items.len(), 1);
    }
}
