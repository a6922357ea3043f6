//! How many bytes of tuples each site holds at most, from types, placements and lifetimes alone.
//!
//! While a step runs, its result is there beside everything that is alive, its inputs among it. What BCAST and
//! SHUF leave where it is is one array with two names and counted once, and so is a state that is what the round
//! before ended with, what a step changes in place, and what a training carries on, or a sweep makes, in the place of the old. The members of a sweep are all there when the last one is; what passes in it is not.
//! The members of an exchange are there, beside what they are sent from, from its beginning. A relation that rests is not there, and of one that is read at rest tuple by tuple no more than is in hand. Copies at several sites are counted at each. What a loop collects is there from its beginning.
//! The working space of kernels and transports is not counted. Plans must be verified.
//!
//! ```text
//! A 80 bytes, B 40 bytes, C = A·B 20 bytes; then B is freed: peak 140 bytes
//! ```

use crate::amounts::Amounts;
use crate::ids::RelationId;
use crate::lifetime::{Event, events};
use crate::loops::{BlockId, Bound, LoopValue};
use crate::plan::{Operation, Plan, Step};
use crate::relation::RelationType;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// The most bytes that a site holds, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Peak {
    /// Bytes of tuples.
    pub bytes: u64,
    /// The first step at which it holds them.
    pub step: usize,
}

/// By site: its peak.
pub fn peaks(plan: &Plan) -> Vec<Peak> {
    held(plan).peaks
}

/// By step and site: the most bytes that it holds when the step has been taken, before anything is freed.
pub fn by_step(plan: &Plan) -> Vec<Vec<u64>> {
    held(plan).by_step
}

/// Bytes of a relation at the site that holds most of it.
pub fn of(plan: &Plan, kind: &RelationType) -> u64 {
    let held = Amounts::bytes(kind, &plan.mesh).at_sites(&[&kind.placement]);
    let most = held.into_iter().max().unwrap_or(0);
    u64::try_from(most).unwrap_or(u64::MAX)
}

fn held(plan: &Plan) -> Held<'_> {
    let sites = plan.sites as usize;
    let mut held = Held {
        plan,
        peaks: vec![Peak::default(); sites],
        total: vec![0; sites],
        contents: vec![],
        known: HashMap::new(),
        names: BTreeMap::new(),
        step: 0,
        by_step: vec![vec![0; sites]; plan.steps.len()],
        sweeps: plan.sweeps_of_steps(),
        passing: plan.passing(),
        exchanges: plan.exchanges_of_steps(),
        written_over: {
            let sweeps = plan.sweeps.iter();
            let ending = sweeps.flat_map(|sweep| plan.overwrites_in(sweep));
            let list = plan.successions().list.into_iter();
            let carried = list.map(|succession| (succession.next, succession.old));
            ending.chain(carried).collect()
        },
    };
    held.walk(&events(plan));
    // Of an output on disk a tuple is in hand while it is given out.
    let outputs = plan.outputs.iter().map(|output| output.relation);
    let given = outputs.filter(|relation| plan.is_streamed(*relation));
    let largest = given.map(|relation| plan.kind(relation).largest_tuple());
    held.measure(largest.max().unwrap_or(0));
    held
}

/// What tuples are held as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Relation(RelationId),
    /// A state of a loop between its rounds.
    State(BlockId, u32),
    /// What a loop has collected so far.
    Collected(BlockId, u32),
}

/// The same tuples, under any number of names.
struct Content {
    names: Vec<(Name, RelationType)>,
    /// By site; empty if nothing is held.
    bytes: Rc<[u64]>,
}

struct Held<'a> {
    plan: &'a Plan,
    peaks: Vec<Peak>,
    total: Vec<u64>,
    contents: Vec<Content>,
    /// By the types under which tuples are held: bytes by site.
    known: HashMap<Vec<RelationType>, Rc<[u64]>>,
    /// By name: which content.
    names: BTreeMap<Name, usize>,
    step: usize,
    by_step: Vec<Vec<u64>>,
    /// By step: its sweep, and whether its result is never held.
    sweeps: Vec<Option<usize>>,
    passing: Vec<bool>,
    /// By step: its exchange.
    exchanges: Vec<Option<usize>>,
    /// By what is carried on, or made in a sweep: what it is written over.
    written_over: BTreeMap<RelationId, RelationId>,
}

impl Held<'_> {
    /// Walks events, a loop's rounds as often as new contents may come up.
    fn walk(&mut self, events: &[Event]) {
        let mut at = 0;
        while let Some(event) = events.get(at) {
            at += 1;
            match *event {
                Event::Step(step) => {
                    self.rest(step);
                    self.step(step);
                }
                Event::Exit(_) => {}
                Event::Enter(block) => {
                    let length = events[at..].iter().position(|e| *e == Event::Exit(block));
                    let body = &events[at..at + length.unwrap_or(0)];
                    at += body.len();
                    self.repeat(block, body);
                }
            }
        }
    }

    fn repeat(&mut self, block: BlockId, body: &[Event]) {
        let plan = self.plan;
        let repeat = plan.repeat(block);
        self.step = (repeat.first as usize).min(plan.steps.len().saturating_sub(1));
        for (number, state) in (0u32..).zip(&repeat.block.states) {
            let kind = plan.state_kind(block, number);
            let kind = kind.unwrap_or(plan.kind(state.initial));
            self.share(
                Name::Relation(state.initial),
                Name::State(block, number),
                kind,
            );
        }
        // The second round is like all that follow, unless a value is handed from state to state.
        let is_state = |next: RelationId| {
            let operation = &plan.step(next).operation;
            matches!(operation, Operation::Loop { value } if !value.is_behind())
        };
        let handed = repeat.block.states.iter().filter(|s| is_state(s.next));
        let mut rounds = 2 + handed.count() as u64;
        if let Bound::Rounds(bound) = repeat.block.bound {
            rounds = rounds.min(bound);
            for number in 0..repeat.block.collected.len() as u32 {
                if let Some(kind) = plan.collected_kind(block, number) {
                    self.make(Name::Collected(block, number), kind);
                }
            }
        }
        for relation in &repeat.enters {
            self.drop(Name::Relation(*relation));
        }
        for _ in 0..rounds {
            self.walk(body);
            let next: Vec<usize> = repeat
                .block
                .states
                .iter()
                .map(|state| self.names[&Name::Relation(state.next)])
                .collect();
            for number in 0..next.len() as u32 {
                self.drop(Name::State(block, number));
            }
            for (number, content) in (0u32..).zip(next) {
                let initial = plan.kind(repeat.block.states[number as usize].initial);
                let kind = plan.state_kind(block, number).unwrap_or(initial);
                self.name(Name::State(block, number), content, kind);
            }
            // What the round made and no step has freed goes with it.
            for step in repeat.first..repeat.end {
                self.drop(Name::Relation(RelationId(step)));
            }
        }
        for relation in &repeat.frees {
            self.drop(Name::Relation(*relation));
        }
        let wanted: Vec<LoopValue> = plan.behind(block).map(|(_, value)| value).collect();
        for number in 0..repeat.block.states.len() as u32 {
            if !wanted.contains(&LoopValue::Last(block, number)) {
                self.drop(Name::State(block, number));
            }
        }
    }

    /// What goes to disk in front of a step, and what is back.
    fn rest(&mut self, number: usize) {
        let plan = self.plan;
        self.step = number;
        let at = RelationId(number as u32);
        for spill in plan.spills.iter().filter(|spill| spill.before == at) {
            self.drop(Name::Relation(spill.relation));
        }
        for spill in plan.spills.iter().filter(|spill| spill.until == at) {
            self.make(Name::Relation(spill.relation), plan.kind(spill.relation));
        }
    }

    fn step(&mut self, number: usize) {
        let plan = self.plan;
        let step = &plan.steps[number];
        self.step = number;
        let own = Name::Relation(step.result);
        if let Some(sweep) = self.sweeps[number] {
            let sweep = &plan.sweeps[sweep];
            if sweep.last() != step.result {
                return;
            }
            for member in &sweep.members {
                if !self.passing[member.0 as usize] {
                    self.result(plan.step(*member));
                }
            }
            for freed in &step.frees {
                self.drop(Name::Relation(*freed));
            }
            return;
        }
        if let Some(exchange) = self.exchanges[number] {
            let exchange = &plan.exchanges[exchange];
            if exchange.last() != step.result {
                return;
            }
            for member in &exchange.members {
                self.moved(plan.step(*member));
            }
            for freed in &step.frees {
                self.drop(Name::Relation(*freed));
            }
            return;
        }
        match step.operation {
            _ if plan.is_streamed(step.result) => {}
            Operation::Broadcast { .. } | Operation::Shuffle { .. } | Operation::Window { .. } => {
                self.moved(step);
            }
            Operation::Loop {
                value: LoopValue::State(block, state) | LoopValue::Last(block, state),
            } => self.rename(Name::State(block, state), own, &step.kind),
            Operation::Loop {
                value: LoopValue::Collected(block, part),
            } => self.rename(Name::Collected(block, part), own, &step.kind),
            _ => match plan.in_place(step).map(Name::Relation) {
                Some(changed) if self.is_alone(changed) => self.rename(changed, own, &step.kind),
                _ => self.result(step),
            },
        }
        self.measure_at(step, plan.in_hand(step), plan.working_space(step));
        for freed in &step.frees {
            self.drop(Name::Relation(*freed));
        }
    }

    /// New tuples, or what is written over where nobody else has it.
    fn result(&mut self, step: &Step) {
        let own = Name::Relation(step.result);
        let old = self.written_over.get(&step.result).copied();
        match old.map(Name::Relation) {
            Some(old) if self.is_alone(old) => self.rename(old, own, &step.kind),
            _ => self.make(own, &step.kind),
        }
    }

    /// A tuple that a broadcast or a shuffle leaves where it is has two names. Windows are new tuples: they are cut in another way.
    fn moved(&mut self, step: &Step) {
        let own = Name::Relation(step.result);
        match (&step.operation, step.operation.inputs().first()) {
            (Operation::Window { .. }, _) | (_, None) => self.make(own, &step.kind),
            (_, Some(input)) => self.share(Name::Relation(*input), own, &step.kind),
        }
    }

    /// New tuples.
    fn make(&mut self, name: Name, kind: &RelationType) {
        self.contents.push(Content {
            names: vec![],
            bytes: Rc::new([]),
        });
        self.name(name, self.contents.len() - 1, kind);
    }

    /// The tuples of one name under another, too, perhaps at more sites; new ones if that name has none.
    fn share(&mut self, from: Name, to: Name, kind: &RelationType) {
        match self.names.get(&from) {
            Some(content) => self.name(to, *content, kind),
            None => self.make(to, kind),
        }
    }

    /// Whether what a name holds has no other name.
    fn is_alone(&self, name: Name) -> bool {
        let content = self.names.get(&name);
        content.is_some_and(|content| self.contents[*content].names.len() == 1)
    }

    fn rename(&mut self, from: Name, to: Name, kind: &RelationType) {
        self.share(from, to, kind);
        self.drop(from);
    }

    fn name(&mut self, name: Name, content: usize, kind: &RelationType) {
        self.contents[content].names.push((name, kind.clone()));
        self.names.insert(name, content);
        self.count(content);
        self.measure(0);
    }

    /// Notes what is held now, and so many bytes beside it at every site that takes part.
    fn measure(&mut self, beside: u64) {
        let sites = self.plan.mesh.sites();
        self.note(&|site| if site < sites { beside } else { 0 });
    }

    /// Notes what is held now, beside it so many bytes in hand at every site that takes part, and where the step makes anything those that it
    /// works in.
    fn measure_at(&mut self, step: &Step, in_hand: u64, working: u64) {
        if working == 0 {
            return self.measure(in_hand);
        }
        let mesh = &self.plan.mesh;
        self.note(&|site| {
            let makes = step.kind.keys_at(site, mesh).next().is_some();
            let working = if makes { working } else { 0 };
            let in_hand = if site < mesh.sites() { in_hand } else { 0 };
            in_hand.saturating_add(working)
        });
    }

    /// Notes what is held now, and beside it so many bytes at each site.
    fn note(&mut self, beside: &dyn Fn(u32) -> u64) {
        for (site, total) in self.total.iter().enumerate() {
            let bytes = total.saturating_add(beside(site as u32));
            let peak = &mut self.peaks[site];
            if bytes > peak.bytes {
                *peak = Peak {
                    bytes,
                    step: self.step,
                };
            }
            if let Some(most) = self.by_step.get_mut(self.step) {
                most[site] = most[site].max(bytes);
            }
        }
    }

    /// Takes a name away, if it is there.
    fn drop(&mut self, name: Name) {
        if let Some(content) = self.names.remove(&name) {
            self.contents[content]
                .names
                .retain(|(other, _)| *other != name);
            self.count(content);
        }
    }

    /// Counts a content anew.
    fn count(&mut self, content: usize) {
        let content = &mut self.contents[content];
        for (sum, bytes) in self.total.iter_mut().zip(content.bytes.iter()) {
            *sum = sum.saturating_sub(*bytes);
        }
        let kinds = content.names.iter().map(|(_, kind)| kind.clone());
        let known = self.known.entry(kinds.collect());
        let bytes = known.or_insert_with_key(|kinds| bytes_held(self.plan, kinds).into());
        content.bytes = Rc::clone(bytes);
        for (sum, bytes) in self.total.iter_mut().zip(content.bytes.iter()) {
            *sum = sum.saturating_add(*bytes);
        }
    }
}

/// By site: bytes of the tuples that are there under any of these types; empty if there is none.
fn bytes_held(plan: &Plan, kinds: &[RelationType]) -> Vec<u64> {
    let Some(first) = kinds.first() else {
        return vec![];
    };
    let placements: Vec<_> = kinds.iter().map(|kind| &kind.placement).collect();
    let amounts = Amounts::bytes(first, &plan.mesh);
    let mut held: Vec<u64> = amounts
        .at_any(&placements)
        .into_iter()
        .map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX))
        .collect();
    held.resize(plan.sites as usize, 0);
    held
}
