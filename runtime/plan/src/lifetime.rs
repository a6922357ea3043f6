//! When relations are not needed any more: after a step, as soon as a loop has begun, or when it has ended.
//!
//! What a round makes and is looked at when it ends (next states, collected values, the condition) goes with the
//! round and is in no list. What a loop reads from outside lasts as long as the loop. Must not know types.
//!
//! ```text
//! r0 | repeat … state r0 next r3 { r1 = loop state; r2 = f(r1); r3 = g(r2) }   after step 2: r1; after step 3: r2; begun: r0
//! ```

use crate::ids::RelationId;
use crate::loops::BlockId;
use crate::plan::{Operation, Plan};
use crate::source::Source;

/// The relations whose last use is somewhere, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ends {
    /// By step.
    pub steps: Vec<Vec<RelationId>>,
    /// By loop: when it has begun.
    pub enters: Vec<Vec<RelationId>>,
    /// By loop: when it has ended.
    pub exits: Vec<Vec<RelationId>>,
}

/// What happens in a plan, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A loop begins.
    Enter(BlockId),
    /// A step is taken.
    Step(usize),
    /// A loop has ended.
    Exit(BlockId),
}

/// The events of a plan, every loop's round once. Loops must be nested as the verifier asks.
pub fn events(plan: &Plan) -> Vec<Event> {
    let mut events = vec![];
    let mut open: Vec<BlockId> = vec![];
    let mut next = 0;
    for step in 0..=plan.steps.len() {
        let ends = |block: &BlockId| plan.repeat(*block).end as usize <= step;
        let is_within = |inner: usize, outer: Option<&BlockId>| {
            plan.repeats[inner].block.parent.as_ref() == outer
        };
        loop {
            let begins = plan.repeats.get(next);
            let begins = begins.is_some_and(|r| r.first as usize == step);
            if begins && is_within(next, open.last()) {
                let block = BlockId(next as u32);
                events.push(Event::Enter(block));
                open.push(block);
                next += 1;
            } else if open.last().is_some_and(ends) {
                events.extend(open.pop().map(Event::Exit));
            } else {
                break;
            }
        }
        if step < plan.steps.len() {
            events.push(Event::Step(step));
        }
    }
    events
}

/// When steps are taken, and when their results are used last: numbers in the list of events.
#[derive(Clone, Debug)]
pub struct Uses {
    /// What happens.
    pub events: Vec<Event>,
    /// By step.
    pub taken: Vec<usize>,
    /// By relation.
    pub last: Vec<usize>,
}

/// The last uses of a plan's relations; what becomes of them behind the plan is none.
pub fn uses(plan: &Plan) -> Uses {
    let blocks = plan.blocks_of_steps();
    let events = events(plan);
    let (loops, steps) = (plan.repeats.len(), plan.steps.len());
    let mut taken = vec![0; steps];
    let (mut enter, mut exit) = (vec![0; loops], vec![0; loops]);
    for (time, event) in events.iter().enumerate() {
        match event {
            Event::Enter(block) => enter[block.0 as usize] = time,
            Event::Exit(block) => exit[block.0 as usize] = time,
            Event::Step(step) => taken[*step] = time,
        }
    }
    // A sweep is taken where its last member stands; what passes is never held.
    for sweep in &plan.sweeps {
        for member in &sweep.members {
            taken[member.0 as usize] = taken[sweep.last().0 as usize];
        }
    }
    // What an exchange sends and what arrives is there until it has come.
    for exchange in &plan.exchanges {
        for member in &exchange.members {
            taken[member.0 as usize] = taken[exchange.until.0 as usize];
        }
    }
    let parent = |block: BlockId| plan.repeat(block).block.parent;
    let mut last = taken.clone();
    // A use in a loop is one by the outermost loop that the relation is outside of.
    let mut used = |relation: RelationId, user: Option<BlockId>, here: usize| {
        let at = relation.0 as usize;
        let (mut time, mut around) = (here, user);
        while around != blocks[at] {
            let Some(block) = around else { break };
            time = exit[block.0 as usize];
            around = parent(block);
        }
        last[at] = last[at].max(time);
    };
    for (number, step) in plan.steps.iter().enumerate() {
        for input in step.operation.inputs() {
            used(input, blocks[number], taken[number]);
        }
    }
    for (number, repeat) in plan.repeats.iter().enumerate() {
        for relation in repeat.block.begins_with() {
            used(relation, repeat.block.parent, enter[number]);
        }
        for relation in repeat.block.ends_with() {
            used(relation, Some(BlockId(number as u32)), exit[number]);
        }
    }
    Uses {
        events,
        taken,
        last,
    }
}

/// Where every relation of a plan is used last. What is given out is never free, nor what it is to replace.
pub fn ends(plan: &Plan) -> Ends {
    let blocks = plan.blocks_of_steps();
    let Uses { events, last, .. } = uses(plan);
    let mut last: Vec<Option<usize>> = last.into_iter().map(Some).collect();
    let (loops, steps) = (plan.repeats.len(), plan.steps.len());
    for (number, repeat) in (0u32..).zip(&plan.repeats) {
        for relation in repeat.block.ends_with() {
            if blocks[relation.0 as usize] == Some(BlockId(number)) {
                last[relation.0 as usize] = None;
            }
        }
    }
    for output in &plan.outputs {
        last[output.relation.0 as usize] = None;
    }
    for carried in plan.carried() {
        last[carried.0 as usize] = None;
    }
    for (last, passes) in last.iter_mut().zip(plan.passing()) {
        if passes {
            *last = None;
        }
    }
    let mut ends = Ends {
        steps: vec![vec![]; steps],
        enters: vec![vec![]; loops],
        exits: vec![vec![]; loops],
    };
    for (relation, last) in (0u32..).zip(last) {
        let Some(time) = last else { continue };
        match events[time] {
            Event::Enter(block) => &mut ends.enters[block.0 as usize],
            Event::Exit(block) => &mut ends.exits[block.0 as usize],
            Event::Step(step) => &mut ends.steps[step],
        }
        .push(RelationId(relation));
    }
    ends
}

impl Plan {
    /// What a session feeds and replaces by what the plan gives out: it keeps these tensors until it knows that the step was
    /// sound, but for those that the step may write over ([`Plan::successions`]).
    pub fn carried(&self) -> impl Iterator<Item = RelationId> + '_ {
        self.carried_on().map(|(old, _)| old)
    }

    /// What is carried, each with what is to replace it.
    pub fn carried_on(&self) -> impl Iterator<Item = (RelationId, RelationId)> + '_ {
        let next = |name: &str| {
            let mut outputs = self.outputs.iter();
            outputs.find(|output| output.replaces.as_deref() == Some(name))
        };
        self.steps
            .iter()
            .filter_map(move |step| match &step.operation {
                Operation::Source {
                    name,
                    source: Source::Fed,
                } => Some((step.result, next(name)?.relation)),
                _ => None,
            })
    }
}
