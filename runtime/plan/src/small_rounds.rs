//! Loops of small steps, whose rounds a device may make in one piece of code.
//!
//! A step over a handful of points takes less time than being scheduled does. Where a loop has no other steps, and no site talks in it, its
//! rounds are one program over places in memory: values that are given, states, and what each step makes. Steps that are no code of a few lines, such
//! as the inverse of a matrix, are called by it. Must not know how it is compiled.
//!
//! ```text
//! repeat b0 t < 1000000; state r0 next r4      one step over 1 point: places 0 f64[] (state), 1 f64[] (r4); 0 next 1
//!   r4 a: f64[] = join k0(r3)
//! ```

use crate::dtype::DType;
use crate::ids::RelationId;
use crate::kernel::{Kernel, Node};
use crate::loops::{BlockId, Bound, LoopValue};
use crate::plan::{Operation, Plan, Step};
use crate::points::{Point, Update};
use crate::reduction::Reduction;
use crate::relation::{AxisRole, RelationType};
use crate::schedule::{LoopKernel, choose};
use std::collections::BTreeMap;

/// Fewest rounds that are worth compiling them.
const FEWEST_ROUNDS: u64 = 32;
/// Most points of a step on average: over more, loops that take many lanes at once are faster.
const MOST_POINTS: u64 = 512;
/// Most operations of all steps at a point, so that compiling stays a matter of milliseconds.
const MOST_NODES: usize = 4096;

/// A place in memory: an array, row-major, or a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundPlace {
    /// The type of its elements: `F32`, `F64`, `I32`, `I64` or `Bool`.
    pub dtype: DType,
    /// Its sizes.
    pub shape: Vec<u64>,
}

impl RoundPlace {
    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }
}

/// A step of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundStep {
    /// The kernel that it computes.
    pub kernel: Kernel,
    /// The places of its operands.
    pub operands: Vec<usize>,
    /// The place of its result.
    pub result: usize,
    /// The loops that the code calls for, where it does not compute the kernel itself.
    pub called: Option<LoopKernel>,
    /// The single elements of the state in that place that it changes, when the round has ended; without it, it makes all of the result.
    pub points: Option<Vec<Point>>,
}

/// A state of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundState {
    /// Its place.
    pub place: usize,
    /// The place of what the round ends with; its own where the round changes it in place.
    pub next: usize,
}

/// How rounds ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// As many as were asked for are made.
    Most = 0,
    /// The condition holds.
    Until = 1,
    /// The next round has a fault, and was not made.
    Fault = 2,
}

/// A loop whose steps are small.
#[derive(Clone, Debug, PartialEq)]
pub struct SmallRounds {
    /// All places.
    pub places: Vec<RoundPlace>,
    /// Places that are read alone, with the relations from outside that lie there.
    pub given: Vec<(RelationId, usize)>,
    /// The place of the number of the round, if a step reads it.
    pub counter: Option<usize>,
    /// The steps of a round, in order.
    pub steps: Vec<RoundStep>,
    /// By state of the loop.
    pub states: Vec<RoundState>,
    /// By value that is collected: the place of the value and that of all values, whose first dimension counts rounds.
    pub collected: Vec<(usize, usize)>,
    /// The place of the condition that ends the loop.
    pub until: Option<usize>,
}

impl SmallRounds {
    /// The points of all steps of a round.
    pub fn points(&self) -> u64 {
        self.steps.iter().map(RoundStep::count).sum()
    }
}

impl RoundStep {
    /// The points that it is computed at.
    fn count(&self) -> u64 {
        let fixed = self.kernel.fixed();
        let runs = self.kernel.indices.iter().enumerate();
        let runs = runs.filter(|(at, _)| fixed.iter().all(|(index, _)| index.0 as usize != *at));
        match &self.points {
            Some(points) => points.len() as u64,
            None => runs.map(|(_, index)| index.extent).product(),
        }
    }
}

impl Plan {
    /// A loop as one program, or why it is none.
    ///
    /// # Errors
    /// The reason, as a user reads it.
    pub fn small_rounds(&self, block: BlockId) -> Result<SmallRounds, String> {
        let repeat = self.repeat(block);
        let rounds = repeat.block.expected_rounds();
        if matches!(repeat.block.bound, Bound::Rounds(_)) && rounds < FEWEST_ROUNDS {
            return Err(format!("it makes {rounds} rounds"));
        }
        if self.deterministic {
            return Err("sums are taken in the order of a deterministic run".into());
        }
        if !self.spills.is_empty() || !self.streams.is_empty() {
            return Err("pieces go to disk and back".into());
        }
        let mut builder = Builder {
            plan: self,
            block,
            rounds: SmallRounds {
                places: vec![],
                given: vec![],
                counter: None,
                steps: vec![],
                states: vec![],
                collected: vec![],
                until: None,
            },
            known: BTreeMap::new(),
            sites: None,
        };
        builder.states()?;
        for step in &self.steps[repeat.first as usize..repeat.end as usize] {
            builder.step(step)?;
        }
        builder.ends()?;
        let rounds = builder.rounds;
        let nodes = rounds.steps.iter().map(|step| step.kernel.graph.len());
        let copied = rounds
            .states
            .iter()
            .filter(|state| state.place != state.next);
        let copied: u64 = copied
            .map(|state| rounds.places[state.place].elements())
            .sum();
        let points = rounds.points() + copied;
        if rounds.steps.is_empty() {
            return Err("a round computes nothing".into());
        }
        if points > MOST_POINTS * rounds.steps.len() as u64 {
            return Err(format!("a round has {points} points"));
        }
        if nodes.sum::<usize>() > MOST_NODES {
            return Err("its steps are long".into());
        }
        Ok(rounds)
    }
}

struct Builder<'p> {
    plan: &'p Plan,
    block: BlockId,
    rounds: SmallRounds,
    /// The places of relations.
    known: BTreeMap<RelationId, usize>,
    /// Which sites have what rounds make.
    sites: Option<Vec<AxisRole>>,
}

impl Builder<'_> {
    /// A place for a relation of this type.
    fn place(&mut self, kind: &RelationType, name: &str) -> Result<usize, String> {
        // A site has all of it or nothing.
        if !kind.keys.is_empty() {
            return Err(format!("`{name}` is not whole at a site"));
        }
        let [dtype] = kind.array.columns[..] else {
            return Err(format!("`{name}` has several columns"));
        };
        if dtype != dtype.compute() {
            return Err(format!("`{name}` is {dtype}"));
        }
        let dims = kind.array.dims.iter();
        let shape: Option<Vec<u64>> = dims
            .map(|dim| dim.cut.is_none().then_some(dim.extent))
            .collect();
        let shape = shape.filter(|_| kind.array.dims.iter().all(|dim| dim.window.is_none()));
        let shape = shape.ok_or_else(|| format!("`{name}` is a part of a tensor"))?;
        self.rounds.places.push(RoundPlace { dtype, shape });
        Ok(self.rounds.places.len() - 1)
    }

    /// A place for a relation that rounds make, or carry. All are at the same sites: one that had some of them alone would make its rounds step by
    /// step, with sums in another order, and might not end with the others.
    fn made(&mut self, kind: &RelationType, name: &str) -> Result<usize, String> {
        let axes = kind.placement.roles.iter().zip(&self.plan.mesh.axes);
        let roles = axes.filter(|(_, count)| **count > 1);
        let sites: Vec<AxisRole> = roles.map(|(role, _)| *role).collect();
        if *self.sites.get_or_insert_with(|| sites.clone()) != sites {
            return Err(format!("`{name}` is at other sites than others"));
        }
        self.place(kind, name)
    }

    fn states(&mut self) -> Result<(), String> {
        let block = &self.plan.repeat(self.block).block;
        for (number, state) in (0u32..).zip(&block.states) {
            let kind = self.plan.state_kind(self.block, number);
            let kind = kind.ok_or("a state has no type")?;
            let place = self.made(kind, &self.plan.step(state.next).tensor)?;
            self.rounds.states.push(RoundState { place, next: place });
        }
        Ok(())
    }

    /// The place of what a step reads: made in the round, or given.
    fn operand(&mut self, relation: RelationId) -> Result<usize, String> {
        if let Some(known) = self.known.get(&relation) {
            return Ok(*known);
        }
        let step = self.plan.step(relation);
        let place = self.place(&step.kind, &step.tensor)?;
        self.rounds.given.push((relation, place));
        self.known.insert(relation, place);
        Ok(place)
    }

    fn step(&mut self, step: &Step) -> Result<(), String> {
        let name = &step.tensor;
        match &step.operation {
            Operation::Loop {
                value: LoopValue::State(block, number),
            } if *block == self.block => {
                let place = self.rounds.states[*number as usize].place;
                self.known.insert(step.result, place);
            }
            Operation::Loop {
                value: LoopValue::Counter(block),
            } if *block == self.block => {
                let place = self.place(&step.kind, name)?;
                self.rounds.counter = Some(place);
                self.known.insert(step.result, place);
            }
            Operation::LocalJoin {
                inputs,
                kernel,
                fold: None,
                ..
            } => {
                let kernel = &self.plan.kernels[kernel.0 as usize];
                if let Some(why) = unfit(kernel) {
                    return Err(format!("`{name}` {why}"));
                }
                let called = match is_called(kernel) {
                    true => Some(self.loops(step)?),
                    false => None,
                };
                let operands = inputs.iter().map(|input| self.operand(input.relation));
                let operands = operands.collect::<Result<Vec<usize>, String>>()?;
                let points = self.points(step, kernel);
                let result = match &points {
                    Some((place, _)) => *place,
                    None => self.made(&step.kind, name)?,
                };
                self.known.insert(step.result, result);
                self.rounds.steps.push(RoundStep {
                    kernel: kernel.clone(),
                    operands,
                    result,
                    called,
                    points: points.map(|(_, points)| points),
                });
            }
            Operation::LocalJoin { .. } => return Err(format!("`{name}` is folded")),
            Operation::Loop { .. } => return Err("there is a loop in it".into()),
            Operation::Source { .. } => return Err(format!("`{name}` is drawn in every round")),
            operation if operation.moves() => return Err(format!("`{name}` moves")),
            _ => return Err(format!("`{name}` is made in parts")),
        }
        Ok(())
    }

    /// The loops of a step that is taken by itself.
    fn loops(&self, step: &Step) -> Result<LoopKernel, String> {
        let facts = self.plan.facts(step);
        let facts = facts.ok_or_else(|| format!("`{}` has no loops", step.tensor))?;
        Ok(choose(&facts))
    }

    /// The state that a step changes in place, and at which elements, if nobody else reads the result in the round.
    fn points(&self, step: &Step, kernel: &Kernel) -> Option<(usize, Vec<Point>)> {
        let old = self.plan.in_place(step)?;
        let Update { points, .. } = kernel.update()?;
        let single = |point: &Point| {
            let named = |at: u32| point.iter().any(|(index, _)| index.0 == at);
            point.len() == kernel.output_rank as usize && (0..kernel.output_rank).all(named)
        };
        let repeat = self.plan.repeat(self.block);
        let block = &repeat.block;
        let number = block
            .states
            .iter()
            .position(|state| state.next == step.result)?;
        let place = self.rounds.states[number].place;
        let once = block.ends_with().filter(|end| *end == step.result).count() == 1;
        let body = &self.plan.steps[repeat.first as usize..repeat.end as usize];
        let read = body
            .iter()
            .any(|other| other.operation.inputs().contains(&step.result));
        let own = self.known.get(&old) == Some(&place);
        (own && once && !read && points.iter().all(single)).then_some((place, points))
    }

    /// Notes what a round ends with.
    fn ends(&mut self) -> Result<(), String> {
        let block = &self.plan.repeat(self.block).block;
        for (number, state) in block.states.iter().enumerate() {
            let next = self.operand(state.next)?;
            let mut others = self.rounds.states.iter().enumerate();
            if others.any(|(other, state)| other != number && state.place == next) {
                return Err("states are exchanged".into());
            }
            let place = self.rounds.states[number].place;
            if self.rounds.places[place] != self.rounds.places[next] {
                return Err("a state changes its type".into());
            }
            self.rounds.states[number].next = next;
        }
        for (number, collected) in (0u32..).zip(&block.collected) {
            // What nobody wants is not kept.
            let Some(kind) = self.plan.collected_kind(self.block, number) else {
                continue;
            };
            if collected.dim != 0 {
                return Err("the values of the rounds do not lie one behind the other".into());
            }
            let value = self.operand(collected.value)?;
            let all = self.made(kind, &block.name)?;
            self.rounds.collected.push((value, all));
        }
        self.rounds.until = block.until.map(|until| self.operand(until)).transpose()?;
        Ok(())
    }
}

/// Returns true if the code calls for a kernel: an operation on whole arrays, or a reduction that keeps several numbers of a result.
fn is_called(kernel: &Kernel) -> bool {
    let reduced = kernel.indices.len() - kernel.output_rank as usize;
    match kernel.reduction {
        _ if kernel.library().is_some() => true,
        Some(Reduction::LogSumExp | Reduction::Norm) => true,
        Some(reduction) => reduction.is_arg() && reduced != 1,
        None => false,
    }
}

/// Why a kernel is no part of such a program.
fn unfit(kernel: &Kernel) -> Option<String> {
    if kernel.output.len() != 1 || !kernel.finish {
        return Some("has several columns".into());
    }
    if kernel.library().is_some() {
        return None;
    }
    let value = kernel.graph.dtype(kernel.root);
    let result = kernel
        .reduction
        .map_or(value, |reduction| reduction.result(value));
    if kernel.output[0] != result {
        return Some("is converted where it is stored".into());
    }
    let narrow =
        |operand: &crate::kernel::Operand| operand.columns.iter().any(|c| *c != c.compute());
    if kernel.operands.iter().any(narrow) {
        return Some("reads numbers of few bits".into());
    }
    let mut nodes = kernel.graph.iter();
    let several = nodes.any(|(_, node, _)| matches!(node, Node::Read { column: 1.., .. }));
    several.then(|| "reads several columns".into())
}
