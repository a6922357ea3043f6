//! Blocks of the program that is put together: what of them is needed, and their tensors by number.
//!
//! Must not know syntax.
//!
//! ```text
//! x is the last value of t   =>   all that a round of t is made of is needed
//! ```

use crate::einsum::{Block, BlockId, Bound, Collected, LoopValue, Program, State, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::{Assertion, Definition},
    expressions::arena::{ExprId, Form, TensorRef},
    lower::parts::number_of,
    rounds::block::Rounds,
};
use std::collections::HashMap;

/// The numbers of blocks in the program, where they are needed.
pub(crate) type Blocks = HashMap<BlockId, BlockId>;

impl Checker<'_> {
    /// Which tensors the outputs need.
    pub(crate) fn needed(&self) -> Vec<bool> {
        let outputs = self.built.outputs.iter().map(|output| output.tensor);
        let mut open: Vec<TensorRef> = outputs.chain(self.training.step.rows).collect();
        let mut left: Vec<&Assertion> = self.built.asserts.iter().collect();
        loop {
            let needed = self.reached(open.clone());
            let is_needed = |assertion: &Assertion| match &assertion.of {
                Some(of) => of.iter().any(|tensor| needed[tensor.0 as usize]),
                None => true,
            };
            let (tested, others): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|assertion| is_needed(assertion));
            if tested.is_empty() {
                return needed;
            }
            open.extend(tested.iter().map(|assertion| assertion.value));
            left = others;
        }
    }

    /// The tensors that an expression reads, directly.
    pub(crate) fn tensors_in(&self, root: ExprId) -> Vec<TensorRef> {
        let mut reads = vec![];
        self.read_in(root, &mut vec![false; self.arena.len()], &mut reads);
        reads
    }

    /// The tensors that tensors are made of, and they themselves.
    pub(crate) fn reached(&self, mut open: Vec<TensorRef>) -> Vec<bool> {
        let mut needed = vec![false; self.built.tensors.len()];
        let mut seen = vec![false; self.arena.len()];
        while let Some(tensor) = open.pop() {
            if std::mem::replace(&mut needed[tensor.0 as usize], true) {
                continue;
            }
            match &self.built.tensors[tensor.0 as usize].definition {
                Definition::Statement { root, .. } => self.read_in(*root, &mut seen, &mut open),
                Definition::Gradient { loss, wrt } => open.extend([*loss, *wrt]),
                Definition::Along(along) => {
                    open.extend([along.of, along.wrt, along.direction]);
                }
                Definition::Source(_) => {}
                Definition::Loop(value) => {
                    let block = &self.built.blocks[value.block().0 as usize];
                    open.extend(block.until);
                    open.extend(
                        block
                            .states
                            .iter()
                            .flat_map(|(a, b)| [Some(*a), *b])
                            .flatten(),
                    );
                    open.extend(block.collected.iter().map(|(value, _)| *value));
                    if let Rounds::Value(bound) = block.bound {
                        open.push(bound);
                    }
                }
            }
        }
        needed
    }

    /// The tensors that an expression reads.
    fn read_in(&self, root: ExprId, seen: &mut [bool], reads: &mut Vec<TensorRef>) {
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            let form = self.arena.form(id);
            if let Form::Read { tensor, .. } = &*form {
                reads.push(*tensor);
            }
            open.extend(form.arguments());
        }
    }

    /// Adds the blocks that are needed to a program, without their tensors.
    pub(crate) fn lower_blocks(&self, program: &mut Program, needed: &[bool]) -> Option<Blocks> {
        let mut used = vec![false; self.built.blocks.len()];
        for (tensor, _) in self.built.tensors.iter().zip(needed).filter(|(_, n)| **n) {
            let Definition::Loop(value) = &tensor.definition else {
                continue;
            };
            let mut block = Some(value.block());
            while let Some(id) = block {
                used[id.0 as usize] = true;
                block = self.built.blocks[id.0 as usize].parent;
            }
        }
        let mut blocks = Blocks::new();
        for (number, block) in (0..).zip(&self.built.blocks) {
            if !used[number as usize] {
                continue;
            }
            let bound = match &block.bound {
                Rounds::Size(size) => Bound::Rounds(number_of(size)?),
                Rounds::Value(_) | Rounds::Unbounded => Bound::Unbounded,
            };
            blocks.insert(BlockId(number), BlockId(program.blocks.len() as u32));
            program.blocks.push(Block {
                name: block.name.clone(),
                parent: block.parent.and_then(|parent| blocks.get(&parent).copied()),
                bound,
                until: None,
                states: vec![],
                collected: vec![],
                origin: self.origin(block.span),
            });
        }
        Some(blocks)
    }

    /// A value of a block in the program, and the block that it is computed in.
    pub(crate) fn lower_value(
        &self,
        blocks: &Blocks,
        value: LoopValue,
    ) -> Option<(LoopValue, Option<BlockId>)> {
        let block = *blocks.get(&value.block())?;
        let parent = self.built.blocks[value.block().0 as usize].parent;
        let around = parent.and_then(|parent| blocks.get(&parent).copied());
        Some(match value {
            LoopValue::Counter(_) => (LoopValue::Counter(block), Some(block)),
            LoopValue::State(_, s) => (LoopValue::State(block, s), Some(block)),
            LoopValue::Last(_, s) => (LoopValue::Last(block, s), around),
            LoopValue::Rounds(_) => (LoopValue::Rounds(block), around),
            LoopValue::Collected(_, c) => (LoopValue::Collected(block, c), around),
        })
    }

    /// Says of the blocks which tensors they are made of; `None` if some are not there yet.
    pub(crate) fn fill_blocks(
        &self,
        program: &mut Program,
        blocks: &Blocks,
        numbers: &HashMap<TensorRef, TensorId>,
    ) -> Option<()> {
        let mut all = true;
        for (from, to) in blocks {
            let block = &self.built.blocks[from.0 as usize];
            let mut number = |tensor: Option<TensorRef>| {
                let known = tensor.and_then(|tensor| numbers.get(&tensor).copied());
                all &= known.is_some();
                known.unwrap_or(TensorId::UNKNOWN)
            };
            let states = block.states.iter().map(|(initial, next)| State {
                initial: number(Some(*initial)),
                next: number(*next),
            });
            let states = states.collect();
            let collected = block.collected.iter().map(|(value, dim)| Collected {
                value: number(Some(*value)),
                dim: *dim as u32,
            });
            let collected = collected.collect();
            let lowered = &mut program.blocks[to.0 as usize];
            // Gradients may have added to what is collected.
            let added = lowered
                .collected
                .split_off(block.collected.len().min(lowered.collected.len()));
            lowered.states = states;
            lowered.collected = collected;
            lowered.collected.extend(added);
            lowered.until = block.until.map(|until| number(Some(until)));
            if let Rounds::Value(bound) = &block.bound {
                lowered.bound = Bound::Value(number(Some(*bound)));
            }
        }
        all.then_some(())
    }
}
