//! Blocks: the `repeat`s of a program, and how they nest.
//!
//! A block is computed in rounds. A state is a tensor that a round begins with; in its place the next round begins with
//! what `next` was. Everything else of a block is computed anew in every round. Must not know what is done in a round.
//!
//! ```text
//! repeat t < 100 until small {   // model.ein:7
//!   carry x.0 -> x.1
//!   x: f32[8] = state 0 of t
//!   …
//! }
//! x.last: f32[8] = last 0 of t   // model.ein:8
//! ```

use super::{Definition, Program, TensorId};
use ein_plan::Origin;

/// A `repeat` of a program; position in [`Program::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// A value that a block gives. Each value is at most one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LoopValue {
    /// In the block: the number of the round, from 0; a scalar i64.
    Counter(BlockId),
    /// In the block: what a state was when the round began.
    State(BlockId, u32),
    /// Around the block: what a state is after the last round; what it began with if there was no round.
    Last(BlockId, u32),
    /// Around the block: how many rounds were made; a scalar i64.
    Rounds(BlockId),
    /// Around the block: a value of every round. Rounds that were not made hold 0.
    Collected(BlockId, u32),
}

impl LoopValue {
    /// The block that gives it.
    pub fn block(self) -> BlockId {
        match self {
            LoopValue::Counter(block)
            | LoopValue::State(block, _)
            | LoopValue::Last(block, _)
            | LoopValue::Rounds(block)
            | LoopValue::Collected(block, _) => block,
        }
    }

    /// Returns whether it stands around the block, after it.
    pub fn is_result(self) -> bool {
        !matches!(self, LoopValue::Counter(_) | LoopValue::State(..))
    }
}

/// How many rounds there are at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// So many.
    Rounds(u64),
    /// The value of a scalar i64 around the block, none if it is negative.
    Value(TensorId),
    /// No bound: `until` alone ends it.
    Unbounded,
}

/// A tensor that goes from round to round; all of one type and shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The value that the first round begins with; visible around the block.
    pub initial: TensorId,
    /// The value that the next round begins with; visible in the block.
    pub next: TensorId,
}

/// A value that is kept of every round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// The value, visible in the block.
    pub value: TensorId,
    /// Which dimension of the result counts the rounds.
    pub dim: u32,
}

/// A `repeat`.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Full name of its counter, unique among blocks.
    pub name: String,
    /// The block around it.
    pub parent: Option<BlockId>,
    /// How many rounds at most.
    pub bound: Bound,
    /// A truth value of the block; where it holds at the end of a round, that round was the last.
    pub until: Option<TensorId>,
    /// The states, which go from round to round.
    pub states: Vec<State>,
    /// The values that are kept of every round; the bound is a number then.
    pub collected: Vec<Collected>,
    /// Where it is written.
    pub origin: Origin,
}

/// A part of a block's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Item {
    /// A tensor of the block itself.
    Tensor(TensorId),
    /// All of a block in it.
    Block(BlockId),
}

/// The tensors of a program as they nest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nest {
    /// The items outside all blocks.
    pub program: Vec<Item>,
    /// By block.
    pub blocks: Vec<Vec<Item>>,
}

impl Nest {
    /// Returns the items in a block, or outside all, in order.
    pub fn body(&self, block: Option<BlockId>) -> &[Item] {
        block.map_or(&self.program, |block| &self.blocks[block.0 as usize])
    }
}

impl TensorId {
    /// Stands for a tensor of a block that is not there yet, while a program is put together.
    pub const UNKNOWN: TensorId = TensorId(u32::MAX);
}

impl Program {
    /// The block of that number.
    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.0 as usize]
    }

    /// A block and those around it, the outermost first; nothing for what is outside all blocks.
    pub fn path(&self, block: Option<BlockId>) -> Vec<BlockId> {
        let mut path: Vec<BlockId> =
            std::iter::successors(block, |block| self.block(*block).parent).collect();
        path.reverse();
        path
    }

    /// Returns whether what stands in `outer` can be seen in `inner`: they are the same, or the one is around the other.
    pub fn encloses(&self, outer: Option<BlockId>, inner: Option<BlockId>) -> bool {
        outer.is_none()
            || self
                .path(inner)
                .contains(&outer.unwrap_or(BlockId(u32::MAX)))
    }

    /// The innermost block that any of the tensors is in. All must be visible in one place.
    pub fn innermost(&self, tensors: &[TensorId]) -> Option<BlockId> {
        let blocks = tensors.iter().filter_map(|id| self.tensor(*id).block);
        blocks.max_by_key(|block| self.path(Some(*block)).len())
    }

    /// Returns the tensors that a tensor's value is made of, directly: operands; for a value of a block, the tensors that the block makes it of.
    pub fn made_of(&self, id: TensorId) -> Vec<TensorId> {
        let value = match &self.tensor(id).definition {
            Definition::Source(_) => return vec![],
            Definition::Statement { operands, .. } => return operands.clone(),
            Definition::Loop(value) => *value,
        };
        let block = self.block(value.block());
        let mut made_of: Vec<TensorId> = block.until.into_iter().collect();
        made_of.extend(match block.bound {
            Bound::Value(bound) => Some(bound),
            Bound::Rounds(_) | Bound::Unbounded => None,
        });
        match value {
            LoopValue::Counter(_) => return vec![],
            LoopValue::Rounds(_) => {}
            LoopValue::State(_, number) => {
                let state = block.states[number as usize];
                return vec![state.initial, state.next];
            }
            LoopValue::Last(_, number) => {
                let state = block.states[number as usize];
                made_of.extend([state.initial, state.next]);
            }
            LoopValue::Collected(_, number) => {
                made_of.push(block.collected[number as usize].value);
            }
        }
        made_of
    }

    /// Gives the tensors that blocks begin and end with, and the outputs, other numbers.
    pub fn rename_ends(&mut self, new: impl Fn(&mut TensorId)) {
        for block in &mut self.blocks {
            block.until.iter_mut().for_each(&new);
            if let Bound::Value(bound) = &mut block.bound {
                new(bound);
            }
            for state in &mut block.states {
                new(&mut state.initial);
                new(&mut state.next);
            }
            block.collected.iter_mut().for_each(|c| new(&mut c.value));
        }
        self.outputs.iter_mut().for_each(|o| new(&mut o.tensor));
    }

    /// How the tensors nest. What is of a block stands together; an empty block stands before the first of its results.
    pub fn nest(&self) -> Nest {
        let mut nest = Nest {
            program: vec![],
            blocks: vec![vec![]; self.blocks.len()],
        };
        let mut placed = vec![false; self.blocks.len()];
        for (number, tensor) in (0..).zip(&self.tensors) {
            let mut path = self.path(tensor.block);
            if let Definition::Loop(value) = &tensor.definition
                && value.is_result()
            {
                path.push(value.block());
            }
            for block in path {
                if !std::mem::replace(&mut placed[block.0 as usize], true) {
                    let parent = self.block(block).parent;
                    nest.body_mut(parent).push(Item::Block(block));
                }
            }
            nest.body_mut(tensor.block)
                .push(Item::Tensor(TensorId(number)));
        }
        nest
    }
}

impl Nest {
    fn body_mut(&mut self, block: Option<BlockId>) -> &mut Vec<Item> {
        match block {
            Some(block) => &mut self.blocks[block.0 as usize],
            None => &mut self.program,
        }
    }
}
