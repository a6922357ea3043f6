//! The order in which the oracle computes: statement after statement, block after block, round after round.
//!
//! Must not know how a statement is computed.
//!
//! ```text
//! repeat t < 3 { x = state 0 of t; y = x + 1 }, carry x.0 -> y, x.0 = 5   gives   last 0 of t = 8
//! ```

use super::{Fault, Values, source_values, statement};
use crate::einsum::scalar::{convert, stored, truth};
use crate::einsum::{BlockId, Bound, Definition, Item, LoopValue, Nest, Program, Tensor, TensorId};
use ein_plan::Scalar;

/// The values of every tensor: see [`super::interpret_rounds`].
pub(super) fn run(
    program: &Program,
    inputs: &dyn Fn(&Tensor, &[u64]) -> Values,
) -> Result<Vec<Values>, Fault> {
    let nothing = Values {
        shape: vec![],
        data: vec![],
    };
    let mut run = Run {
        program,
        nest: program.nest(),
        inputs,
        all: vec![nothing; program.tensors.len()],
        rounds: vec![],
        blocks: vec![Ended::default(); program.blocks.len()],
    };
    run.items(None)?;
    Ok(run.all)
}

/// The values that a block leaves behind.
#[derive(Clone, Default)]
struct Ended {
    /// How many rounds it made.
    rounds: u64,
    /// By state.
    states: Vec<Values>,
    /// By what is collected.
    collected: Vec<Values>,
}

struct Run<'a> {
    program: &'a Program,
    nest: Nest,
    inputs: &'a dyn Fn(&Tensor, &[u64]) -> Values,
    /// By tensor: its value, in this round.
    all: Vec<Values>,
    /// The rounds of the blocks that are at work.
    rounds: Vec<u64>,
    /// By block: what it left behind, or what its round began with.
    blocks: Vec<Ended>,
}

impl Run<'_> {
    fn items(&mut self, place: Option<BlockId>) -> Result<(), Fault> {
        for at in 0..self.nest.body(place).len() {
            match self.nest.body(place)[at] {
                Item::Tensor(id) => self.all[id.0 as usize] = self.tensor(id)?,
                Item::Block(id) => self.block(id)?,
            }
        }
        Ok(())
    }

    fn tensor(&self, id: TensorId) -> Result<Values, Fault> {
        let tensor = self.program.tensor(id);
        let number = |number: u64| Values {
            shape: vec![],
            data: vec![Scalar::Int(number as i64)],
        };
        let of = |value: &LoopValue| &self.blocks[value.block().0 as usize];
        Ok(match &tensor.definition {
            Definition::Source(source) => source_values(source, tensor, &|tensor| {
                (self.inputs)(tensor, &self.rounds)
            }),
            Definition::Statement { kernel, operands } => {
                let operand = |o: &TensorId| &self.all[o.0 as usize];
                let operands: Vec<&Values> = operands.iter().map(operand).collect();
                statement(kernel, &operands).map_err(|(kind, point)| Fault {
                    tensor: id,
                    kind,
                    point,
                })?
            }
            Definition::Loop(value) => match value {
                LoopValue::Counter(_) | LoopValue::Rounds(_) => number(of(value).rounds),
                LoopValue::State(_, number) | LoopValue::Last(_, number) => {
                    of(value).states[*number as usize].clone()
                }
                LoopValue::Collected(_, number) => of(value).collected[*number as usize].clone(),
            },
        })
    }

    fn block(&mut self, id: BlockId) -> Result<(), Fault> {
        let block = self.program.block(id).clone();
        let value = |run: &Self, id: TensorId| run.all[id.0 as usize].clone();
        let most = match block.bound {
            Bound::Rounds(rounds) => Some(rounds),
            Bound::Unbounded => None,
            Bound::Value(bound) => Some(match value(self, bound).data[0] {
                Scalar::Int(rounds) => u64::try_from(rounds).unwrap_or(0),
                other => other.as_f64() as u64,
            }),
        };
        let collected = block.collected.iter().map(|collected| {
            let tensor = self.program.tensor(collected.value);
            let mut shape = tensor.shape.clone();
            shape.insert(collected.dim as usize, most.unwrap_or(0));
            let zero = stored(
                convert(Scalar::Int(0), tensor.dtype.compute()),
                tensor.dtype,
            );
            let count: u64 = shape.iter().product();
            Values {
                data: vec![zero; count as usize],
                shape,
            }
        });
        let at = id.0 as usize;
        self.blocks[at] = Ended {
            rounds: 0,
            collected: collected.collect(),
            states: block
                .states
                .iter()
                .map(|s| value(self, s.initial))
                .collect(),
        };
        self.rounds.push(0);
        while most.is_none_or(|most| self.blocks[at].rounds < most) {
            let round = self.blocks[at].rounds;
            if let Some(last) = self.rounds.last_mut() {
                *last = round;
            }
            self.items(Some(id))?;
            for (number, collected) in block.collected.iter().enumerate() {
                let slice = value(self, collected.value);
                let all = &mut self.blocks[at].collected[number];
                put(all, collected.dim as usize, round, &slice);
            }
            self.blocks[at].states = block.states.iter().map(|s| value(self, s.next)).collect();
            self.blocks[at].rounds += 1;
            let is_last = |until| truth(value(self, until).data[0]);
            if block.until.is_some_and(is_last) {
                break;
            }
        }
        self.rounds.pop();
        Ok(())
    }
}

/// Puts a slice where a dimension has one position.
fn put(all: &mut Values, dim: usize, position: u64, slice: &Values) {
    let inner: u64 = all.shape[dim + 1..].iter().product();
    let step = all.shape[dim] * inner;
    for (number, value) in (0..).zip(&slice.data) {
        let (outer, rest) = (number / inner.max(1), number % inner.max(1));
        all.data[(outer * step + position * inner + rest) as usize] = *value;
    }
}
