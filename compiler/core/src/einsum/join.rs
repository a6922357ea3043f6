//! One program of two: what both compute alike stands there once.
//!
//! Tensors are matched by name: they are alike where type, definition and operands are, blocks where all that is in them is. A
//! source of the second that is given from outside stands for whatever the first has under its name. Must not know why there
//! are two.
//!
//! ```text
//! W, X, y = X W     joined with   W, V, y = V W   as ".on.V"   =>   W, X, y = X W, V, y.on.V = V W
//! ```

use super::{Block, BlockId, Bound, Collected, Definition, LoopValue, Program, State, TensorId};
use ein_plan::Source;
use std::collections::HashMap;

/// By tensor and by block of the second program, which of the first is the same.
struct Alike {
    tensors: Vec<Option<TensorId>>,
    blocks: Vec<Option<BlockId>>,
}

impl Program {
    /// Adds what another program computes. What is new and neither input nor param gets `suffix` behind its name. Returns the
    /// tensors of the other's outputs, which are not made outputs of this one.
    pub fn join(&mut self, other: &Program, suffix: &str) -> Vec<TensorId> {
        let alike = self.alike(other);
        let mut next_block = self.blocks.len() as u32;
        let blocks: Vec<BlockId> = (alike.blocks.iter())
            .map(|same| {
                same.unwrap_or_else(|| {
                    next_block += 1;
                    BlockId(next_block - 1)
                })
            })
            .collect();
        let mut next_tensor = self.tensors.len() as u32;
        let tensors: Vec<TensorId> = (alike.tensors.iter())
            .map(|same| {
                same.unwrap_or_else(|| {
                    next_tensor += 1;
                    TensorId(next_tensor - 1)
                })
            })
            .collect();
        let tensor = |id: TensorId| tensors[id.0 as usize];
        let block = |id: BlockId| blocks[id.0 as usize];
        for (added, same) in other.tensors.iter().zip(&alike.tensors) {
            if same.is_some() {
                continue;
            }
            let mut added = added.clone();
            added.block = added.block.map(block);
            if !added.role.is_bound() {
                added.name.push_str(suffix);
            }
            match &mut added.definition {
                Definition::Source(_) => {}
                Definition::Statement { operands, .. } => {
                    operands.iter_mut().for_each(|id| *id = tensor(*id));
                }
                Definition::Loop(value) => *value = in_block(*value, block(value.block())),
            }
            self.tensors.push(added);
        }
        for (added, same) in other.blocks.iter().zip(&alike.blocks) {
            if same.is_some() {
                continue;
            }
            self.blocks.push(Block {
                name: format!("{}{suffix}", added.name),
                parent: added.parent.map(block),
                bound: match added.bound {
                    Bound::Value(bound) => Bound::Value(tensor(bound)),
                    known => known,
                },
                until: added.until.map(tensor),
                states: (added.states.iter())
                    .map(|state| State {
                        initial: tensor(state.initial),
                        next: tensor(state.next),
                    })
                    .collect(),
                collected: (added.collected.iter())
                    .map(|collected| Collected {
                        value: tensor(collected.value),
                        dim: collected.dim,
                    })
                    .collect(),
                origin: added.origin,
            });
        }
        let outputs = other.outputs.iter();
        outputs.map(|output| tensor(output.tensor)).collect()
    }

    /// Matches the parts of another program with equal parts of this one: the largest set in which all that a tensor or block is made of is
    /// matched as well.
    fn alike(&self, other: &Program) -> Alike {
        let tensors: HashMap<&str, u32> = (0..)
            .zip(&self.tensors)
            .map(|(number, tensor)| (tensor.name.as_str(), number))
            .collect();
        let blocks: HashMap<&str, u32> = (0..)
            .zip(&self.blocks)
            .map(|(number, block)| (block.name.as_str(), number))
            .collect();
        let mut alike = Alike {
            tensors: (other.tensors.iter())
                .map(|tensor| tensors.get(tensor.name.as_str()).copied().map(TensorId))
                .collect(),
            blocks: (other.blocks.iter())
                .map(|block| blocks.get(block.name.as_str()).copied().map(BlockId))
                .collect(),
        };
        loop {
            let mut changed = false;
            for number in 0..other.tensors.len() {
                if alike.tensors[number].is_some() && !self.same_tensor(other, &alike, number) {
                    alike.tensors[number] = None;
                    changed = true;
                }
            }
            for number in 0..other.blocks.len() {
                if alike.blocks[number].is_some() && !self.same_block(other, &alike, number) {
                    alike.blocks[number] = None;
                    changed = true;
                }
            }
            if !changed {
                return alike;
            }
        }
    }

    fn same_tensor(&self, other: &Program, alike: &Alike, number: usize) -> bool {
        let Some(id) = alike.tensors[number] else {
            return false;
        };
        let (mine, theirs) = (self.tensor(id), &other.tensors[number]);
        if mine.dtype != theirs.dtype || mine.shape != theirs.shape {
            return false;
        }
        if !alike.block(theirs.block, mine.block) {
            return false;
        }
        match (&theirs.definition, &mine.definition) {
            (Definition::Source(Source::Unbound | Source::Fed | Source::Kept), _) => true,
            (Definition::Source(a), Definition::Source(b)) => a == b,
            (
                Definition::Statement {
                    kernel: a,
                    operands: theirs,
                },
                Definition::Statement {
                    kernel: b,
                    operands: mine,
                },
            ) => {
                a == b
                    && theirs.len() == mine.len()
                    && theirs.iter().zip(mine).all(|(a, b)| alike.tensor(*a, *b))
            }
            (Definition::Loop(a), Definition::Loop(b)) => {
                alike.block(Some(a.block()), Some(b.block())) && in_block(*a, b.block()) == *b
            }
            _ => false,
        }
    }

    fn same_block(&self, other: &Program, alike: &Alike, number: usize) -> bool {
        let Some(id) = alike.blocks[number] else {
            return false;
        };
        let (mine, theirs) = (self.block(id), &other.blocks[number]);
        let optional = |a: Option<TensorId>, b: Option<TensorId>| match (a, b) {
            (None, None) => true,
            (Some(a), Some(b)) => alike.tensor(a, b),
            _ => false,
        };
        let bound = match (theirs.bound, mine.bound) {
            (Bound::Value(a), Bound::Value(b)) => alike.tensor(a, b),
            (a, b) => a == b,
        };
        let mut members = (other.tensors.iter().zip(&alike.tensors))
            .filter(|(tensor, _)| tensor.block == Some(BlockId(number as u32)));
        bound
            && alike.block(theirs.parent, mine.parent)
            && optional(theirs.until, mine.until)
            && theirs.states.len() == mine.states.len()
            && (theirs.states.iter().zip(&mine.states))
                .all(|(a, b)| alike.tensor(a.initial, b.initial) && alike.tensor(a.next, b.next))
            && theirs.collected.len() == mine.collected.len()
            && (theirs.collected.iter().zip(&mine.collected))
                .all(|(a, b)| a.dim == b.dim && alike.tensor(a.value, b.value))
            && members.all(|(_, same)| same.is_some())
    }
}

impl Alike {
    fn tensor(&self, theirs: TensorId, mine: TensorId) -> bool {
        self.tensors[theirs.0 as usize] == Some(mine)
    }

    fn block(&self, theirs: Option<BlockId>, mine: Option<BlockId>) -> bool {
        theirs.map(|id| self.blocks[id.0 as usize]) == mine.map(Some)
    }
}

/// Returns the corresponding value of another block.
fn in_block(value: LoopValue, block: BlockId) -> LoopValue {
    match value {
        LoopValue::Counter(_) => LoopValue::Counter(block),
        LoopValue::State(_, number) => LoopValue::State(block, number),
        LoopValue::Last(_, number) => LoopValue::Last(block, number),
        LoopValue::Rounds(_) => LoopValue::Rounds(block),
        LoopValue::Collected(_, number) => LoopValue::Collected(block, number),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::einsum::{parse::parse as program, verify::verify};

    #[test]
    fn what_is_alike_stands_there_once() {
        let mut one = program(
            "files \"a.ein\"\n\
             param w: f32[3] = normal(0.0, 1.0)   // a.ein:1\n\
             input x: f32[4] = unbound   // a.ein:2\n\
             hidden s: f32[] = [| i: 3] sum w[i]   // a.ein:3\n\
             y: f32[4] = [i: 4] x[i] * s[]   // a.ein:4\n\
             output y   // a.ein:5\n",
        )
        .unwrap();
        let two = program(
            "files \"a.ein\"\n\
             param w: f32[3] = unbound   // a.ein:1\n\
             input v: f32[2] = unbound   // a.ein:2\n\
             hidden s: f32[] = [| i: 3] sum w[i]   // a.ein:3\n\
             y: f32[2] = [i: 2] v[i] * s[]   // a.ein:4\n\
             output y   // a.ein:6\n",
        )
        .unwrap();
        let added = one.join(&two, ".on.v");
        let mut output = one.outputs[0].clone();
        output.tensor = added[0];
        one.outputs.push(output);
        verify(&one).unwrap();
        let names: Vec<&str> = one.tensors.iter().map(|t| t.name.as_str()).collect();
        assert_eq!(names, ["w", "x", "s", "y", "v", "y.on.v"]);
        assert!(
            one.to_string()
                .contains("y.on.v: f32[2] = [i: 2] v[i] * s[]")
        );
    }

    #[test]
    fn a_block_that_differs_in_one_tensor_stands_there_again() {
        let text = |read: &str| {
            format!(
                "files \"a.ein\"\n\
                 input a: f32[4] = unbound   // a.ein:1\n\
                 input b: f32[4] = unbound   // a.ein:1\n\
                 hidden x.0: f32[4] = [i: 4] {read}[i] * 2.0   // a.ein:2\n\
                 repeat t < 3 {{   // a.ein:3\n  \
                   carry x.0 -> x.1\n  \
                   hidden x: f32[4] = state 0 of t   // a.ein:3\n  \
                   hidden x.1: f32[4] = [i: 4] x[i] * a[i] + b[i]   // a.ein:3\n\
                 }}\n\
                 last: f32[4] = last 0 of t   // a.ein:3\n\
                 output last   // a.ein:4\n"
            )
        };
        let mut one = program(&text("a")).unwrap();
        assert_eq!(
            one.clone()
                .join(&program(&text("a")).unwrap(), ".on.b")
                .len(),
            1
        );
        let before = one.tensors.len();
        let added = one.join(&program(&text("b")).unwrap(), ".on.b");
        assert_eq!((one.tensors.len() - before, one.blocks.len()), (4, 2));
        let mut output = one.outputs[0].clone();
        output.tensor = added[0];
        one.outputs.push(output);
        verify(&one).unwrap();
        assert_eq!(program(&one.to_string()).unwrap(), one);
    }
}
