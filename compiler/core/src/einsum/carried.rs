//! The tensors that a loop's values are copies of, for passes that place and cut tensors.
//!
//! A state is what its initial value is before the first round, and what `next` is before the others; behind the loop it
//! is either; what is collected is the value of every round beside those of the others. Must not know how anything is
//! placed.
//!
//! ```text
//! state 0 of t: x.0 (dims 0, 1) and x.1 (dims 0, 1)     collected 0 of t, counted by dim 0: y (-, dims 0, 1)
//! ```

use super::{Bound, LoopValue, Program, TensorId};
use ein_plan::loops::EXPECTED_ROUNDS;

impl LoopValue {
    /// Returns whether it holds what other tensors held; else it is a number that every site knows.
    pub fn is_carried(self) -> bool {
        !matches!(self, LoopValue::Counter(_) | LoopValue::Rounds(_))
    }
}

impl Program {
    /// The tensors that a loop's value is copied from; with each, by dimension of the value, which of its dimensions that
    /// is.
    pub fn carries(&self, value: LoopValue) -> Vec<(TensorId, Vec<Option<u32>>)> {
        let block = self.block(value.block());
        match value {
            LoopValue::Counter(_) | LoopValue::Rounds(_) => vec![],
            LoopValue::State(_, number) | LoopValue::Last(_, number) => {
                let state = block.states[number as usize];
                let rank = self.tensor(state.initial).shape.len() as u32;
                let same: Vec<Option<u32>> = (0..rank).map(Some).collect();
                vec![(state.initial, same.clone()), (state.next, same)]
            }
            LoopValue::Collected(_, number) => {
                let kept = block.collected[number as usize];
                let rank = self.tensor(kept.value).shape.len() as u32;
                let mut dims: Vec<Option<u32>> = (0..rank).map(Some).collect();
                dims.insert((kept.dim as usize).min(dims.len()), None);
                vec![(kept.value, dims)]
            }
        }
    }

    /// By tensor: how many times it is expected to be computed, rounds of all loops around it counted.
    pub fn expected_times(&self) -> Vec<f64> {
        let mut rounds: Vec<f64> = vec![];
        for block in &self.blocks {
            let own = match (block.bound, block.until) {
                (Bound::Rounds(rounds), None) => rounds,
                (Bound::Rounds(rounds), Some(_)) => rounds.min(EXPECTED_ROUNDS),
                (Bound::Value(_) | Bound::Unbounded, _) => EXPECTED_ROUNDS,
            };
            let around = block.parent.map_or(1.0, |parent| rounds[parent.0 as usize]);
            rounds.push(around * own.max(1) as f64);
        }
        let blocks = self.tensors.iter().map(|tensor| tensor.block);
        blocks
            .map(|block| block.map_or(1.0, |block| rounds[block.0 as usize]))
            .collect()
    }

    /// The scalars that every site has to know for its loops: bounds and conditions.
    pub fn known_everywhere(&self) -> Vec<TensorId> {
        let of = |block: &super::Block| {
            let bound = match block.bound {
                Bound::Value(bound) => Some(bound),
                Bound::Rounds(_) | Bound::Unbounded => None,
            };
            block.until.into_iter().chain(bound)
        };
        self.blocks.iter().flat_map(of).collect()
    }
}
