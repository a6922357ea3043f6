//! Programs that are made from others tensor by tensor, with new statements between the old ones.
//!
//! The new program has the blocks, states and outputs of the old one, and the blocks that are added; a tensor that is added to it stands behind those that it reads. Must not
//! know why a program is rewritten.
//!
//! ```text
//! z: f32[64] = [n: 64] x[tok[n]]   ->   x.rows: f32[64] = …    hidden, new
//!                                       z: f32[64] = [n: 64] x.rows[n]
//! ```

use super::{Block, BlockId, Definition, LoopValue, Program, Role, State, Tensor, TensorId};
use ein_plan::{DType, Kernel, Origin};
use std::collections::HashSet;

/// A kernel with its operands.
pub type Statement = (Kernel, Vec<TensorId>);

/// A statement on its way to another one.
pub struct Rewritten<'a> {
    rewriting: &'a mut Rewriting,
    name: &'a str,
    origin: Origin,
    /// Its kernel.
    pub kernel: &'a Kernel,
    /// Its operands, in the new program.
    pub operands: &'a [TensorId],
}

impl Rewritten<'_> {
    /// Adds a statement that no user sees, named after this one and its `part`.
    pub fn add(&mut self, part: &str, statement: Statement) -> TensorId {
        let name = format!("{}.{part}", self.name);
        self.rewriting.add_hidden(&name, statement, self.origin)
    }

    /// Adds a statement that no user sees, named after one of its operands and the `part` of that.
    pub fn add_of(&mut self, operand: u32, part: &str, statement: Statement) -> TensorId {
        let name = format!("{}.{part}", self.operand(operand).name);
        self.rewriting.add_hidden(&name, statement, self.origin)
    }

    /// One of its operands.
    pub fn operand(&self, number: u32) -> &Tensor {
        self.tensor(self.operands[number as usize])
    }

    /// A tensor of the new program.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        self.rewriting.result().tensor(id)
    }

    /// The operands, and one more.
    pub fn operands_and(&self, more: TensorId) -> Vec<TensorId> {
        [self.operands, &[more]].concat()
    }
}

/// A program on its way to another one.
pub struct Rewriting {
    /// The new program. Its outputs and the old blocks name tensors of the old one until [`Rewriting::finish`].
    result: Program,
    /// How many blocks the old program has; those behind them are new.
    old_blocks: usize,
    /// By tensor of the old program: its place in the new one.
    moved: Vec<TensorId>,
    /// All names that are taken.
    names: HashSet<String>,
}

impl Rewriting {
    /// Begins with a program of no tensors, which has the blocks and outputs of this one.
    pub fn of(program: &Program) -> Rewriting {
        Rewriting {
            result: Program {
                tensors: vec![],
                ..program.clone()
            },
            old_blocks: program.blocks.len(),
            moved: vec![TensorId::UNKNOWN; program.tensors.len()],
            names: program.tensors.iter().map(|t| t.name.clone()).collect(),
        }
    }

    /// Returns the program with every statement replaced by the one that `rewrite` makes of it, if it makes one. It may add hidden statements,
    /// which stand before that one.
    pub fn of_statements(
        program: &Program,
        rewrite: impl Fn(Rewritten<'_>) -> Option<Statement>,
    ) -> Program {
        let mut rewriting = Rewriting::of(program);
        for (at, tensor) in (0..).zip(&program.tensors) {
            let mut tensor = rewriting.copy(tensor);
            if let Definition::Statement { kernel, operands } = &tensor.definition {
                let statement = Rewritten {
                    rewriting: &mut rewriting,
                    name: &tensor.name,
                    origin: tensor.origin,
                    kernel,
                    operands,
                };
                if let Some((kernel, operands)) = rewrite(statement) {
                    tensor.definition = Definition::Statement { kernel, operands };
                }
            }
            rewriting.place(TensorId(at), tensor);
        }
        rewriting.finish()
    }

    /// The new program as far as it is made.
    pub fn result(&self) -> &Program {
        &self.result
    }

    /// Returns a copy of a tensor of the old program, the operands of its statement being those of the new one.
    pub fn copy(&self, tensor: &Tensor) -> Tensor {
        let mut tensor = tensor.clone();
        if let Definition::Statement { operands, .. } = &mut tensor.definition {
            for operand in operands {
                *operand = self.moved[operand.0 as usize];
            }
        }
        tensor
    }

    /// Adds a tensor in the place of one of the old program.
    pub fn place(&mut self, old: TensorId, tensor: Tensor) -> TensorId {
        let id = self.add(tensor);
        self.moved[old.0 as usize] = id;
        id
    }

    /// Adds a tensor that the old program does not have.
    pub fn add(&mut self, tensor: Tensor) -> TensorId {
        let id = TensorId(self.result.tensors.len() as u32);
        self.result.tensors.push(tensor);
        id
    }

    /// Adds a statement that no user sees, of one column, in the innermost block of its operands. Its name is `name`, or that with a number.
    pub fn add_hidden(
        &mut self,
        name: &str,
        (kernel, operands): (Kernel, Vec<TensorId>),
        origin: Origin,
    ) -> TensorId {
        let output = &kernel.indices[..kernel.output_rank as usize];
        let tensor = Tensor {
            name: free_name(name, |name| self.names.contains(name)),
            dtype: kernel.output[0],
            shape: output.iter().map(|index| index.extent).collect(),
            role: Role::Hidden,
            block: self.result.innermost(&operands),
            definition: Definition::Statement { kernel, operands },
            origin,
        };
        self.names.insert(tensor.name.clone());
        self.add(tensor)
    }

    /// Adds a block that the old program does not have. Its states are added once there are tensors for them ([`Rewriting::carry`]).
    pub fn add_block(&mut self, block: Block) -> BlockId {
        self.result.blocks.push(block);
        BlockId(self.result.blocks.len() as u32 - 1)
    }

    /// Adds a state to a block of [`Rewriting::add_block`].
    pub fn carry(&mut self, block: BlockId, state: State) {
        self.result.blocks[block.0 as usize].states.push(state);
    }

    /// Adds a value that a block gives to its rounds, and that no user sees.
    pub fn add_loop_value(
        &mut self,
        name: &str,
        (dtype, shape): (DType, &[u64]),
        value: LoopValue,
        origin: Origin,
    ) -> TensorId {
        let name = free_name(name, |name| self.names.contains(name));
        self.names.insert(name.clone());
        self.add(Tensor {
            name,
            dtype,
            shape: shape.to_vec(),
            role: Role::Hidden,
            definition: Definition::Loop(value),
            block: Some(value.block()),
            origin,
        })
    }

    /// The new program, whose blocks and outputs name its own tensors.
    pub fn finish(self) -> Program {
        let Rewriting {
            mut result,
            old_blocks,
            moved,
            ..
        } = self;
        let new = result.blocks.split_off(old_blocks);
        result.rename_ends(|id: &mut TensorId| *id = moved[id.0 as usize]);
        result.blocks.extend(new);
        result
    }
}

/// Returns `name`, or `name.1`, `name.2` …: the first that is not taken.
fn free_name(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (1u64..).map(|number| format!("{name}.{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    let free = names.find(|name| !is_taken(name));
    free.expect("there are more numbers than names")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::{parse::parse, verify::verify};

    #[test]
    fn a_hidden_statement_gets_a_free_name_and_what_follows_reads_it() {
        let text = "input x: f32[4] = unbound\nx.half: f32[4] = [i: 4] x[i]\n\
            y: f32[4] = [i: 4] x[i] + x.half[i]\noutput y\noutput x.half";
        let program = parse(text).unwrap();
        let mut rewriting = Rewriting::of(&program);
        let mut squares = TensorId::UNKNOWN;
        for (at, tensor) in (0..).zip(&program.tensors) {
            let mut tensor = rewriting.copy(tensor);
            if tensor.name == "y"
                && let Definition::Statement { operands, .. } = &mut tensor.definition
            {
                operands[1] = squares;
            }
            let id = rewriting.place(TensorId(at), tensor);
            if at == 0 {
                let kernel = "(f32[4]) [i: 4] f32 = a0[i] * a0[i]".parse().unwrap();
                squares = rewriting.add_hidden("x.half", (kernel, vec![id]), Origin::default());
            }
        }
        let result = rewriting.finish();
        verify(&result).unwrap();
        assert_eq!(
            result.to_string().trim_end(),
            "input x: f32[4] = unbound\nhidden x.half.1: f32[4] = [i: 4] x[i] * x[i]\n\
            x.half: f32[4] = [i: 4] x[i]\ny: f32[4] = [i: 4] x[i] + x.half.1[i]\noutput y\noutput x.half"
        );
    }
}
