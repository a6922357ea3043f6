//! Loops of a plan: a body of steps that is walked round after round, with the relations that go from one to the next.
//!
//! In a round a state is what the round began with; what it ends with is another relation of the same type. A state has
//! one placement, in the loop and behind it; its initial and its next value may be at more sites than that. Must not know how a round is walked.
//!
//! ```text
//! repeat b0 k < 100 until r7; state r0 next r4; state r1 next r5; free r0   // model.ein:3
//!   r2 x: {i: 10/2} f64[i] @ PART(i) = loop state b0.0   // model.ein:4
//!   …
//! end b0; free r1
//! r9 x: {i: 10/2} f64[i] @ PART(i) = loop last b0.0   // model.ein:4
//! ```

use crate::dtype::DType;
use crate::mesh::Mesh;
use crate::plan::{Operation, Origin, Plan, RelationId, Step, same_cut};
use crate::relation::{ArrayDim, ArrayType, AxisRole, Placement, RelationType};
use serde::{Deserialize, Serialize};

/// How many rounds are expected of a loop whose number of rounds is not known before it runs.
pub const EXPECTED_ROUNDS: u64 = 100;

/// A loop of a plan; position in [`Plan::repeats`].
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct BlockId(pub u32);

/// The most rounds that a loop makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Bound {
    /// So many.
    Rounds(u64),
    /// As many as this scalar of type i64 says when the loop begins; none if it is negative.
    Value(RelationId),
    /// Until the loop's condition holds.
    Unbounded,
}

/// What is carried from round to round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct State {
    /// What the first round begins with; outside the loop.
    pub initial: RelationId,
    /// What a round ends with.
    pub next: RelationId,
}

/// A value of every round that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Collected {
    /// The value, in a round.
    pub value: RelationId,
    /// The dimension of the whole that counts the rounds.
    pub dim: u32,
}

/// What a loop is, whatever its body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Block {
    /// Full name of the counter; unique among loops.
    pub name: String,
    /// The loop around it.
    pub parent: Option<BlockId>,
    /// The most rounds.
    pub bound: Bound,
    /// A scalar of type bool of the round, at every site of the mesh: a round at whose end it holds is the last.
    pub until: Option<RelationId>,
    /// What is carried.
    pub states: Vec<State>,
    /// What is kept of every round.
    pub collected: Vec<Collected>,
    /// Where it is written.
    pub origin: Origin,
}

impl Block {
    /// The relations outside that it begins with: initial values and the bound.
    pub fn begins_with(&self) -> impl Iterator<Item = RelationId> + '_ {
        let bound = match self.bound {
            Bound::Value(relation) => Some(relation),
            Bound::Rounds(_) | Bound::Unbounded => None,
        };
        self.states.iter().map(|state| state.initial).chain(bound)
    }

    /// The relations of a round that are looked at when it ends.
    pub fn ends_with(&self) -> impl Iterator<Item = RelationId> + '_ {
        let next = self.states.iter().map(|state| state.next);
        let collected = self.collected.iter().map(|collected| collected.value);
        next.chain(collected).chain(self.until)
    }

    /// Gives the relations that it speaks of other numbers.
    pub fn rename(&mut self, to: impl Fn(RelationId) -> RelationId) {
        if let Bound::Value(relation) = &mut self.bound {
            *relation = to(*relation);
        }
        self.until = self.until.map(&to);
        for state in &mut self.states {
            (state.initial, state.next) = (to(state.initial), to(state.next));
        }
        for collected in &mut self.collected {
            collected.value = to(collected.value);
        }
    }

    /// How many rounds it is expected to make: its bound if that is a number and nothing ends it earlier, else at
    /// most [`EXPECTED_ROUNDS`].
    pub fn expected_rounds(&self) -> u64 {
        match (self.bound, self.until) {
            (Bound::Rounds(rounds), None) => rounds,
            (Bound::Rounds(rounds), Some(_)) => rounds.min(EXPECTED_ROUNDS),
            (Bound::Value(_) | Bound::Unbounded, _) => EXPECTED_ROUNDS,
        }
    }
}

/// A value that a loop has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum LoopValue {
    /// In the loop: the number of the round, from 0; a scalar of type i64.
    Counter(BlockId),
    /// In the loop: what this state was when the round began.
    State(BlockId, u32),
    /// Behind the loop: this state after the last round; the initial value if there was none.
    Last(BlockId, u32),
    /// Behind the loop: how many rounds were made; a scalar of type i64.
    Rounds(BlockId),
    /// Behind the loop: a value of every round; 0 for rounds that were not made.
    Collected(BlockId, u32),
}

impl LoopValue {
    /// The loop whose value it is.
    pub fn block(&self) -> BlockId {
        match self {
            LoopValue::Counter(block)
            | LoopValue::State(block, _)
            | LoopValue::Last(block, _)
            | LoopValue::Rounds(block)
            | LoopValue::Collected(block, _) => *block,
        }
    }

    /// The same value of another loop.
    #[must_use]
    pub fn of(&self, block: BlockId) -> LoopValue {
        match self {
            LoopValue::Counter(_) => LoopValue::Counter(block),
            LoopValue::State(_, number) => LoopValue::State(block, *number),
            LoopValue::Last(_, number) => LoopValue::Last(block, *number),
            LoopValue::Rounds(_) => LoopValue::Rounds(block),
            LoopValue::Collected(_, number) => LoopValue::Collected(block, *number),
        }
    }

    /// Whether it is had behind the loop rather than in it.
    pub fn is_behind(&self) -> bool {
        !matches!(self, LoopValue::Counter(_) | LoopValue::State(..))
    }
}

/// A loop with its place in a plan's steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// What it is.
    pub block: Block,
    /// The first step of its body.
    pub first: u32,
    /// The step behind its body.
    pub end: u32,
    /// Relations that are not needed any more as soon as the loop has begun: the states have them.
    pub enters: Vec<RelationId>,
    /// Relations from outside that are not needed any more when the loop has ended.
    pub frees: Vec<RelationId>,
}

impl Repeat {
    /// Whether a step stands in its body, or in that of a loop in it.
    pub fn holds(&self, step: usize) -> bool {
        (self.first as usize..self.end as usize).contains(&step)
    }
}

impl Plan {
    /// A loop by its number.
    pub fn repeat(&self, block: BlockId) -> &Repeat {
        &self.repeats[block.0 as usize]
    }

    /// By step: the innermost loop whose body it is in.
    pub fn blocks_of_steps(&self) -> Vec<Option<BlockId>> {
        let mut blocks = vec![None; self.steps.len()];
        // Inner loops stand behind those around them.
        for (number, repeat) in (0u32..).zip(&self.repeats) {
            let end = (repeat.end as usize).min(blocks.len());
            if let Some(body) = blocks.get_mut(repeat.first as usize..end) {
                body.fill(Some(BlockId(number)));
            }
        }
        blocks
    }

    /// By loop: how many times its rounds are expected to be walked, rounds of the loops around it included.
    pub fn expected_times(&self) -> Vec<u64> {
        let mut times: Vec<u64> = vec![];
        for repeat in &self.repeats {
            let around = repeat
                .block
                .parent
                .map_or(1, |parent| times[parent.0 as usize]);
            times.push(around.saturating_mul(repeat.block.expected_rounds()));
        }
        times
    }

    /// By step: how many times it is walked if the rounds of every loop are walked so many times.
    pub fn times_of_steps(&self, times: &[u64]) -> Vec<u64> {
        let blocks = self.blocks_of_steps().into_iter();
        blocks
            .map(|block| block.map_or(1, |block| times[block.0 as usize]))
            .collect()
    }

    /// The type and placement that a state has in a loop and behind it; those of its initial value, if it is asked for
    /// nowhere.
    pub fn state_kind(&self, block: BlockId, number: u32) -> Option<&RelationType> {
        let repeat = self.repeat(block);
        let is = |step: &&Step| {
            let value = match step.operation {
                Operation::Loop { value } => value,
                _ => return false,
            };
            value == LoopValue::State(block, number) || value == LoopValue::Last(block, number)
        };
        let mut behind = self.steps.iter().skip(repeat.first as usize);
        let initial = repeat.block.states.get(number as usize)?.initial;
        let initial = self.steps.get(initial.0 as usize);
        behind.find(is).or(initial).map(|step| &step.kind)
    }

    /// The type of what a loop collects, if it is asked for.
    pub fn collected_kind(&self, block: BlockId, number: u32) -> Option<&RelationType> {
        let wanted = LoopValue::Collected(block, number);
        let mut behind = self.behind(block);
        let found = behind.find(|(_, value)| *value == wanted);
        found.map(|(step, _)| &step.kind)
    }

    /// The steps right behind a loop that give its values.
    pub fn behind(&self, block: BlockId) -> impl Iterator<Item = (&Step, LoopValue)> {
        let steps = self.steps.iter().skip(self.repeat(block).end as usize);
        steps.map_while(move |step| match step.operation {
            Operation::Loop { value } if value.is_behind() && value.block() == block => {
                Some((step, value))
            }
            _ => None,
        })
    }
}

/// The type of a scalar that every site of a mesh has.
pub fn scalar(dtype: DType, mesh: &Mesh) -> RelationType {
    RelationType {
        keys: vec![],
        array: ArrayType {
            dims: vec![],
            columns: vec![dtype],
        },
        placement: Placement::all(mesh),
    }
}

/// The type of a value of so many rounds.
pub fn collected(value: &RelationType, dim: u32, rounds: u64) -> RelationType {
    let mut kind = value.clone();
    let at = (dim as usize).min(kind.array.dims.len());
    let counts = ArrayDim {
        extent: rounds,
        cut: None,
    };
    kind.array.dims.insert(at, counts);
    kind
}

/// Whether two relations hold the same tuples if they hold the same tensor: equal types but for the placement,
/// whatever their key dimensions are called.
pub fn alike(a: &RelationType, b: &RelationType) -> bool {
    let cuts =
        a.keys.len() == b.keys.len() && a.keys.iter().zip(&b.keys).all(|(a, b)| same_cut(a, b));
    cuts && a.array == b.array
}

/// Whether one relation has every tuple of a like one at every site where that one has it: each site that has more
/// leaves it out.
pub fn includes(has: &RelationType, wanted: &RelationType, mesh: &Mesh) -> bool {
    let roles = has.placement.roles.iter().zip(&wanted.placement.roles);
    let mut roles = roles.zip(&mesh.axes);
    alike(has, wanted)
        && roles
            .all(|((has, wanted), count)| has == wanted || *has == AxisRole::Every || *count == 1)
}

/// Whether a relation is a scalar that every site of a mesh has.
pub fn is_known(kind: &RelationType, dtype: DType, mesh: &Mesh) -> bool {
    alike(kind, &scalar(dtype, mesh)) && includes(kind, &scalar(dtype, mesh), mesh)
}
