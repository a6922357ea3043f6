//! What a loop of a plan is: its bound, what it carries and keeps, and where it stands.
//!
//! Must not know steps.
//!
//! ```text
//! repeat b0 k < 100 until r7; state r0 next r4; state r1 next r5
//! ```

use crate::ids::{Origin, RelationId};
use serde::{Deserialize, Serialize};

/// How many rounds are expected of a loop whose number of rounds is not known before it runs.
pub const EXPECTED_ROUNDS: u64 = 100;

/// A loop of a plan; position in [`Plan::repeats`](crate::Plan::repeats).
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
