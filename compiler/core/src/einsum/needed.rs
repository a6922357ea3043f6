//! The tensors and blocks that the outputs of a program need.
//!
//! A block is needed where a result of it is, with what ends it; of its states and of what it collects, those are
//! kept that are read. Must not change what is kept, except the numbers of tensors, blocks, states and what is collected.
//!
//! ```text
//! x, y reads x, z reads x, output z   =>   x, z
//! ```

use super::{BlockId, Bound, Definition, LoopValue, Program, TensorId};
use std::collections::HashSet;

impl Program {
    /// By tensor, whether an output needs it.
    pub fn which_are_needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.tensors.len()];
        let mut open: Vec<TensorId> = self.outputs.iter().map(|o| o.tensor).collect();
        let mut blocks = vec![false; self.blocks.len()];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut needed[id.0 as usize], true) {
                continue;
            }
            open.extend(self.made_of(id));
            // What is in a block is computed as often as the block says.
            for block in self.path(self.tensor(id).block) {
                if !std::mem::replace(&mut blocks[block.0 as usize], true) {
                    open.extend(self.ends(block));
                }
            }
        }
        needed
    }

    /// Removes everything that no output needs.
    #[must_use]
    pub fn needed(mut self) -> Program {
        let needed = self.which_are_needed();
        let values: HashSet<LoopValue> = (self.tensors.iter().zip(&needed))
            .filter(|(_, needed)| **needed)
            .filter_map(|(tensor, _)| match &tensor.definition {
                Definition::Loop(value) => Some(*value),
                _ => None,
            })
            .collect();
        let used = |value: LoopValue| values.contains(&value);
        let mut numbers = vec![TensorId(0); needed.len()];
        let kept = numbers.iter_mut().zip(&needed).filter(|(_, n)| **n);
        for (count, (number, _)) in (0..).zip(kept) {
            *number = TensorId(count);
        }
        let new = |id: TensorId| numbers[id.0 as usize];
        // Where blocks, states and what is collected go.
        let mut blocks: Vec<Option<BlockId>> = vec![];
        let (mut states, mut collected) = (vec![], vec![]);
        let mut kept = vec![];
        for (number, mut block) in (0..).zip(std::mem::take(&mut self.blocks)) {
            let id = BlockId(number);
            let of_states = |s: u32| used(LoopValue::State(id, s)) || used(LoopValue::Last(id, s));
            let of_collected = |c: u32| used(LoopValue::Collected(id, c));
            states.push(renumbered(block.states.len(), of_states));
            collected.push(renumbered(block.collected.len(), of_collected));
            let is_needed = values.iter().any(|v| v.block() == id && v.is_result());
            blocks.push(is_needed.then_some(BlockId(kept.len() as u32)));
            if !is_needed {
                continue;
            }
            block.parent = block.parent.and_then(|parent| blocks[parent.0 as usize]);
            block.until = block.until.map(new);
            if let Bound::Value(bound) = &mut block.bound {
                *bound = new(*bound);
            }
            let mut at = 0..;
            block
                .states
                .retain(|_| of_states(at.next().unwrap_or_default()));
            let mut at = 0..;
            block
                .collected
                .retain(|_| of_collected(at.next().unwrap_or_default()));
            for state in &mut block.states {
                (state.initial, state.next) = (new(state.initial), new(state.next));
            }
            for collected in &mut block.collected {
                collected.value = new(collected.value);
            }
            kept.push(block);
        }
        let block = |id: BlockId| blocks[id.0 as usize];
        let moved = |value: LoopValue| {
            let at = value.block().0 as usize;
            let (states, collected) = (&states[at], &collected[at]);
            let to = block(value.block())?;
            Some(match value {
                LoopValue::Counter(_) => LoopValue::Counter(to),
                LoopValue::Rounds(_) => LoopValue::Rounds(to),
                LoopValue::State(_, s) => LoopValue::State(to, states[s as usize]),
                LoopValue::Last(_, s) => LoopValue::Last(to, states[s as usize]),
                LoopValue::Collected(_, c) => LoopValue::Collected(to, collected[c as usize]),
            })
        };
        let mut at = 0..;
        self.tensors
            .retain(|_| needed[at.next().unwrap_or_default()]);
        for tensor in &mut self.tensors {
            tensor.block = tensor.block.and_then(block);
            match &mut tensor.definition {
                Definition::Source(_) => {}
                Definition::Statement { operands, .. } => {
                    operands
                        .iter_mut()
                        .for_each(|operand| *operand = new(*operand));
                }
                Definition::Loop(value) => {
                    *value = moved(*value).unwrap_or(*value);
                }
            }
        }
        for output in &mut self.outputs {
            output.tensor = new(output.tensor);
        }
        self.blocks = kept;
        self
    }

    /// Lists the tensors that decide how many rounds a block makes.
    fn ends(&self, block: BlockId) -> impl Iterator<Item = TensorId> {
        let block = self.block(block);
        let bound = match block.bound {
            Bound::Value(bound) => Some(bound),
            Bound::Rounds(_) | Bound::Unbounded => None,
        };
        block.until.into_iter().chain(bound)
    }
}

/// The new numbers of those that are kept.
fn renumbered(count: usize, kept: impl Fn(u32) -> bool) -> Vec<u32> {
    let mut next = 0;
    let number = |old: u32| {
        let number = next;
        next += u32::from(kept(old));
        number
    };
    (0..count as u32).map(number).collect()
}
