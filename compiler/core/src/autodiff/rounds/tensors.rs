//! The tensors that a way back through rounds is made of: values of blocks, states, slices, sums.
//!
//! Must not know what flows back, nor in which order.
//!
//! ```text
//! xs.at = xs[rounds - 1 - counter, i]   the slice of the round at hand
//! ```

use super::Pair;
use crate::autodiff::gradient_paths::GradientPaths;
use crate::autodiff::sketch::Sketch;
use crate::autodiff::statements::numbered;
use crate::autodiff::{Adjoint, Gradients, Statement};
use crate::einsum::{Bound, Definition, LoopValue, Program, Role, State, Tensor, TensorId};
use ein_plan::{DType, Function, NodeId};

impl Gradients {
    /// Puts together the gradients that the rounds backwards have collected for the slices of a tensor: the slices in their order, and 0
    /// where no round read one.
    pub(super) fn in_order(
        &mut self,
        program: &mut Program,
        pair: &Pair,
        input: TensorId,
        all: TensorId,
        dim: usize,
    ) -> TensorId {
        let of = program.tensor(input).clone();
        let dtype = program.tensor(all).dtype;
        let mut sketch = Sketch::default();
        let last = self.last(&mut sketch, pair);
        let mut places: Vec<NodeId> = (0..of.shape.len()).map(|at| sketch.index(at)).collect();
        places[dim] = sketch.apply(Function::Sub, &[last, places[dim]]);
        let every = pair.made.is_none() && of.shape[dim] == pair.rounds;
        let otherwise = (!every).then(|| sketch.number(0.0, dtype));
        let root = sketch.read(all, places, otherwise, dtype);
        let name = format!("grad.{}.rounds", of.name);
        self.hidden(program, &of, &of.shape, (&sketch, root), &name)
    }

    /// The tensor of a value of a block, new or not.
    pub(super) fn loop_value(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        value: LoopValue,
    ) -> TensorId {
        let same = |id: &TensorId| program.tensor(*id).definition == Definition::Loop(value);
        let known = ways.values.get(&value).copied();
        let known = known.or_else(|| {
            (0..program.tensors.len() as u32)
                .rev()
                .map(TensorId)
                .find(same)
        });
        if let Some(known) = known {
            return known;
        }
        let block = program.block(value.block()).clone();
        let (dtype, shape, word) = match value {
            LoopValue::Counter(_) => (DType::I64, vec![], "counter"),
            LoopValue::Rounds(_) => (DType::I64, vec![], "rounds"),
            LoopValue::State(_, number) | LoopValue::Last(_, number) => {
                let of = program.tensor(block.states[number as usize].initial);
                (of.dtype, of.shape.clone(), "last")
            }
            LoopValue::Collected(_, number) => {
                let collected = block.collected[number as usize];
                let of = program.tensor(collected.value);
                let mut shape = of.shape.clone();
                if let Bound::Rounds(rounds) = block.bound {
                    shape.insert(collected.dim as usize, rounds);
                }
                (of.dtype, shape, "all")
            }
        };
        let name = self
            .statements
            .name(program, &format!("{}.{word}", block.name));
        program.tensors.push(Tensor {
            name,
            dtype,
            shape,
            role: Role::Hidden,
            definition: Definition::Loop(value),
            block: match value.is_result() {
                true => block.parent,
                false => Some(value.block()),
            },
            origin: block.origin,
        });
        TensorId(program.tensors.len() as u32 - 1)
    }

    /// An adjoint of the shape of a tensor, as a tensor; of none, zeros.
    pub(super) fn as_tensor(
        &mut self,
        program: &mut Program,
        like: TensorId,
        adjoint: Option<Adjoint>,
    ) -> TensorId {
        match adjoint {
            Some(Adjoint::Tensor(tensor)) => tensor,
            Some(Adjoint::Constant(value)) => self.statements.filled(program, like, value),
            None => self.statements.filled(program, like, 0.0),
        }
    }

    /// A state of the way back, of the shape of a tensor and its compute type. Its `next` is yet to be said.
    pub(super) fn back_state(
        &mut self,
        program: &mut Program,
        pair: &Pair,
        like: TensorId,
        initial: TensorId,
    ) -> TensorId {
        let of = program.tensor(like).clone();
        let states = &mut program.blocks[pair.back.0 as usize].states;
        let number = states.len() as u32;
        states.push(State {
            initial,
            next: TensorId::UNKNOWN,
        });
        let name = self
            .statements
            .name(program, &format!("grad.{}.so_far", of.name));
        program.tensors.push(Tensor {
            name,
            dtype: of.dtype.compute(),
            role: Role::Hidden,
            definition: Definition::Loop(LoopValue::State(pair.back, number)),
            block: Some(pair.back),
            ..of
        });
        TensorId(program.tensors.len() as u32 - 1)
    }

    /// The sum of two tensors of one shape and type.
    pub(super) fn sum_of(&mut self, program: &mut Program, a: TensorId, b: TensorId) -> TensorId {
        let of = program.tensor(a).clone();
        let mut sketch = Sketch::default();
        let places: Vec<NodeId> = (0..of.shape.len()).map(|at| sketch.index(at)).collect();
        let [a, b] = [a, b].map(|id| sketch.read(id, places.clone(), None, of.dtype));
        let root = sketch.apply(Function::Add, &[a, b]);
        self.hidden(
            program,
            &of,
            &of.shape,
            (&sketch, root),
            &format!("{}.next", of.name),
        )
    }

    pub(super) fn hidden(
        &mut self,
        program: &mut Program,
        like: &Tensor,
        shape: &[u64],
        (sketch, root): (&Sketch, NodeId),
        name: &str,
    ) -> TensorId {
        let statement = Statement {
            indices: numbered(shape),
            rank: shape.len(),
            sketch,
            root,
            guard: None,
            reduction: None,
        };
        self.statements.push(program, statement, name, like.origin)
    }

    /// The number of the round forwards that a round goes back through.
    pub(super) fn round(&self, sketch: &mut Sketch, pair: &Pair) -> NodeId {
        let counter = sketch.read(pair.counter, vec![], None, DType::I64);
        let last = self.last(sketch, pair);
        sketch.apply(Function::Sub, &[last, counter])
    }

    /// The number of the last round forwards.
    pub(super) fn last(&self, sketch: &mut Sketch, pair: &Pair) -> NodeId {
        match pair.made {
            None => sketch.whole(pair.rounds.saturating_sub(1) as i64),
            Some(made) => {
                let made = sketch.read(made, vec![], None, DType::I64);
                let one = sketch.whole(1);
                sketch.apply(Function::Sub, &[made, one])
            }
        }
    }

    /// Returns whether no round is left.
    pub(super) fn last_round(
        &mut self,
        program: &mut Program,
        pair: &Pair,
        made: TensorId,
    ) -> TensorId {
        let like = program.tensor(made).clone();
        let mut sketch = Sketch::default();
        let counter = sketch.read(pair.counter, vec![], None, DType::I64);
        let one = sketch.whole(1);
        let next = sketch.apply(Function::Add, &[counter, one]);
        let made = sketch.read(made, vec![], None, DType::I64);
        let root = sketch.compare(Function::Ge, next, made);
        let name = format!("{}.until", program.block(pair.back).name);
        self.hidden(program, &like, &[], (&sketch, root), &name)
    }

    /// Returns the slice for the round at hand of a tensor over all rounds.
    pub(super) fn slice(
        &mut self,
        program: &mut Program,
        pair: &Pair,
        all: TensorId,
        dim: usize,
    ) -> TensorId {
        let of = program.tensor(all).clone();
        let mut sketch = Sketch::default();
        let round = self.round(&mut sketch, pair);
        let mut shape = of.shape.clone();
        shape.remove(dim);
        let mut places: Vec<NodeId> = (0..shape.len()).map(|at| sketch.index(at)).collect();
        places.insert(dim, round);
        let root = sketch.read(all, places, None, of.dtype.compute());
        let slice = self.hidden(
            program,
            &of,
            &shape,
            (&sketch, root),
            &format!("{}.at", of.name),
        );
        // What was stored in a narrow type is read as it was.
        if let Definition::Statement { kernel, .. } =
            &mut program.tensors[slice.0 as usize].definition
        {
            kernel.output = vec![of.dtype];
        }
        program.tensors[slice.0 as usize].dtype = of.dtype;
        slice
    }
}
