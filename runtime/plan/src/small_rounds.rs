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

mod builder;

use crate::dtype::DType;
use crate::ids::RelationId;
use crate::kernel::Kernel;
use crate::loops::{BlockId, Bound};
use crate::plan::Plan;
use crate::points::Point;
use crate::schedule::LoopKernel;

/// Fewest rounds that are worth compiling them.
const FEWEST_ROUNDS: u64 = 32;
/// Most points of a step on average: over more, loops that take many lanes at once are faster.
const MOST_POINTS: u64 = 512;
/// Most operations of all steps at a point, so that compiling stays a matter of milliseconds.
const MOST_NODES: usize = 4096;

/// A place in memory: an array, row-major, or a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundPlace {
    /// The type of its elements: any but `F16` and `BF16`.
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
    /// The steps of a round and of the loops in it, in order.
    pub steps: Vec<RoundStep>,
    /// The rounds of the loop itself.
    pub body: RoundBody,
    /// The loops in a round, with the place of how many rounds they made in all rounds of the loop, a scalar of type `I64`.
    pub inner: Vec<(BlockId, usize)>,
}

/// The rounds of a loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundBody {
    /// The place of the number of the round, if a step reads it.
    pub counter: Option<usize>,
    /// The parts of a round, in order.
    pub items: Vec<RoundItem>,
    /// By state of the loop.
    pub states: Vec<RoundState>,
    /// By value that is collected: the place of the value and that of all values, whose first dimension counts rounds.
    pub collected: Vec<(usize, usize)>,
    /// The place of the condition that ends the loop.
    pub until: Option<usize>,
}

/// A part of a round.
#[derive(Clone, Debug, PartialEq)]
pub enum RoundItem {
    /// The step of this number.
    Step(usize),
    /// A loop of its own.
    Loop(InnerRounds),
}

/// A loop within a round.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerRounds {
    /// The most rounds that it makes.
    pub most: InnerBound,
    /// By state: the place of what the first round begins with.
    pub initial: Vec<usize>,
    /// The place of how many rounds it made, a scalar of type `I64`.
    pub made: usize,
    /// The place of how many it made in all rounds of the outermost loop.
    pub total: usize,
    /// Its rounds.
    pub body: RoundBody,
}

/// The most rounds of a loop within a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InnerBound {
    /// So many.
    Rounds(u64),
    /// As many as the scalar of type `I64` in this place says.
    Place(usize),
}

/// The rounds that a device has made of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundsMade {
    /// How many rounds of the loop are made by now.
    pub rounds: u64,
    /// How they ended.
    pub ended: Ended,
    /// By loop in a round: how many rounds it made in this call.
    pub inner: Vec<u64>,
}

impl SmallRounds {
    /// The points of all steps of a round, those of loops in it counted for one round of theirs.
    pub fn points(&self) -> u64 {
        self.steps.iter().map(RoundStep::count).sum()
    }

    /// Why rounds of this body are too long to be one piece of code.
    fn too_long(&self, body: &RoundBody) -> Result<(), String> {
        let elements = |place: usize| self.places[place].elements();
        let copied = body.states.iter().filter(|state| state.place != state.next);
        let mut points: u64 = copied.map(|state| elements(state.place)).sum();
        for item in &body.items {
            match item {
                RoundItem::Step(step) => points += self.steps[*step].count(),
                RoundItem::Loop(inner) => {
                    let held = inner.body.states.iter().map(|state| state.place);
                    let rooms = inner.body.collected.iter().map(|(_, room)| *room);
                    points += held.chain(rooms).map(elements).sum::<u64>();
                    self.too_long(&inner.body)?;
                }
            }
        }
        match points > MOST_POINTS * body.items.len() as u64 {
            true => Err(format!("a round has {points} points")),
            false => Ok(()),
        }
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
        let rounds = builder::rounds(self, block)?;
        if rounds.steps.is_empty() {
            return Err("a round computes nothing".into());
        }
        rounds.too_long(&rounds.body)?;
        let nodes = rounds.steps.iter().map(|step| step.kernel.graph.len());
        if nodes.sum::<usize>() > MOST_NODES {
            return Err("its steps are long".into());
        }
        Ok(rounds)
    }
}
