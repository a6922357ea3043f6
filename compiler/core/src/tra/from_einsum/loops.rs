//! Lowering of loops: states, what they begin and go on with, and what is left of a loop.
//!
//! A state, its initial value and its next one are cut alike: where one is not, it is re-chunked, the initial value
//! before the loop, the next one at the end of a round. What is outside a loop but made while the loop is lowered comes to
//! stand before it. Must not know sites.
//!
//! ```text
//! repeat b0 t < 9; state x.0 next x.1 { x: {i: 8/2} f32[i] = loop state b0.0 … }   x.last: {i: 8/2} f32[i] = loop last b0.0
//! ```

use super::{Lowered, Lowering};
use crate::einsum::{self, LoopValue, TensorId};
use crate::tra::blocks::{Move, arranged};
use crate::tra::{Cut, Operation, typing};
use ein_plan::{ArrayDim, Block, BlockId, Bound, Collected, RelationId, State};

/// The number of a block of the Einstein IR here.
pub(super) fn block(id: einsum::BlockId) -> BlockId {
    BlockId(id.0)
}

/// The blocks as far as they are known before anything is lowered.
pub(super) fn headers(program: &einsum::Program) -> Vec<Block> {
    let blocks = program.blocks.iter().map(|of| Block {
        name: of.name.clone(),
        parent: of.parent.map(block),
        bound: match of.bound {
            einsum::Bound::Rounds(rounds) => Bound::Rounds(rounds),
            einsum::Bound::Value(_) | einsum::Bound::Unbounded => Bound::Unbounded,
        },
        until: None,
        states: vec![],
        collected: vec![],
        origin: of.origin,
    });
    blocks.collect()
}

fn value(of: LoopValue) -> ein_plan::LoopValue {
    let id = block(of.block());
    match of {
        LoopValue::Counter(_) => ein_plan::LoopValue::Counter(id),
        LoopValue::State(_, number) => ein_plan::LoopValue::State(id, number),
        LoopValue::Last(_, number) => ein_plan::LoopValue::Last(id, number),
        LoopValue::Rounds(_) => ein_plan::LoopValue::Rounds(id),
        LoopValue::Collected(_, number) => ein_plan::LoopValue::Collected(id, number),
    }
}

impl Lowering<'_> {
    /// Ends and begins blocks, so that a tensor's relations can be made.
    pub(super) fn go_to(&mut self, tensor: &einsum::Tensor) -> Result<(), String> {
        let path = self.program.path(tensor.block).into_iter();
        let path: Vec<BlockId> = path.map(block).collect();
        let ended = match &tensor.definition {
            einsum::Definition::Loop(value) if value.is_result() => Some(block(value.block())),
            _ => None,
        };
        let moves = self.nesting.go_to(&path, ended);
        self.moves(moves)
    }

    /// Ends and begins blocks.
    pub(super) fn moves(&mut self, moves: Vec<Move>) -> Result<(), String> {
        moves.into_iter().try_for_each(|of| match of {
            Move::Begin(id) => self.begin(id),
            Move::End(id) => self.end(id),
        })
    }

    /// Makes what a block begins with, and what it reads at the end of its rounds but does not compute.
    fn begin(&mut self, id: BlockId) -> Result<(), String> {
        let of = self.program.block(einsum::BlockId(id.0));
        let mut states = vec![];
        for state in &of.states {
            let initial = self.form(state.initial, &self.cuts(state.next))?;
            let initial = self.keys_in_order(state.initial, initial)?;
            states.push(State {
                initial,
                next: initial,
            });
        }
        self.blocks[id.0 as usize].states = states;
        if let einsum::Bound::Value(bound) = of.bound {
            self.blocks[id.0 as usize].bound = Bound::Value(self.form(bound, &[])?);
        }
        let next = of.states.iter().map(|state| state.next);
        let kept = of.collected.iter().map(|kept| kept.value);
        for tensor in next.chain(kept).chain(of.until) {
            let inside = self.program.path(self.program.tensor(tensor).block);
            if !inside.contains(&einsum::BlockId(id.0)) {
                self.form(tensor, &self.cuts(tensor))?;
            }
        }
        Ok(())
    }

    /// Makes what the rounds of a block end with.
    fn end(&mut self, id: BlockId) -> Result<(), String> {
        let of = self.program.block(einsum::BlockId(id.0));
        for (number, state) in of.states.iter().enumerate() {
            let next = self.form(state.next, &self.cuts(state.next))?;
            let next = self.keys_in_order(state.next, next)?;
            self.blocks[id.0 as usize].states[number].next = next;
        }
        for kept in &of.collected {
            let value = self.form(kept.value, &self.cuts(kept.value))?;
            let dim = kept.dim;
            self.blocks[id.0 as usize]
                .collected
                .push(Collected { value, dim });
        }
        if let Some(until) = of.until {
            self.blocks[id.0 as usize].until = Some(self.form(until, &[])?);
        }
        Ok(())
    }

    /// Re-keys a relation so that its keys stand in the order of the dimensions that they cut, as those of a state do. A result that was
    /// tiled dimension by dimension may have them in another order.
    fn keys_in_order(
        &mut self,
        tensor: TensorId,
        relation: RelationId,
    ) -> Result<RelationId, String> {
        let kind = &self.relations[relation.0 as usize].kind;
        let keys: Vec<u32> = kind.array.dims.iter().filter_map(|dim| dim.cut).collect();
        if keys.is_sorted() {
            return Ok(relation);
        }
        let kind = typing::rekey(kind, &keys)?;
        let operation = Operation::Rekey {
            input: relation,
            keys,
        };
        Ok(self.push(tensor, "ordered", kind, operation))
    }

    /// How a tensor is cut as it rests.
    fn cuts(&self, tensor: TensorId) -> Vec<Cut> {
        self.chunking.dims[tensor.0 as usize].clone()
    }

    /// The relation of a loop's value, and the tensor as it rests.
    pub(super) fn loop_value(&mut self, tensor: TensorId, of: LoopValue) -> Result<(), String> {
        let at = tensor.0 as usize;
        let from = self.program.carries(of);
        // A state is cut as what a round ends with.
        let form: Vec<Cut> = match from.last() {
            None => vec![],
            Some((other, dims)) => {
                let cuts = self.cuts(*other);
                let cut =
                    |dim: &Option<u32>| dim.map_or(Cut::whole(), |d| cuts[d as usize].clone());
                dims.iter().map(cut).collect()
            }
        };
        let target = self.cuts(tensor);
        let mut kind = self.kind(tensor, &form);
        if let LoopValue::Collected(id, number) = of {
            // Its keys stand in the order in which those of one round's value do.
            let block = &self.blocks[id.0 as usize];
            if let (Some(kept), Bound::Rounds(rounds)) =
                (block.collected.get(number as usize), block.bound)
            {
                let counts = ArrayDim::whole(rounds);
                kind = self.relations[kept.value.0 as usize].kind.clone();
                kind.array.dims.insert(kept.dim as usize, counts);
            }
        }
        let suffix = if form == target { "" } else { "given" };
        let operation = Operation::Loop { value: value(of) };
        let relation = self.push(tensor, suffix, kind, operation);
        if of.is_carried() {
            self.statements[at] = Some(relation);
        }
        self.forms[at].push((form, relation));
        self.rechunk(tensor, relation, &target, "rests")?;
        Ok(())
    }
}

impl Lowered {
    /// Puts the relations of every block together.
    pub(super) fn arrange(&mut self) {
        let program = &mut self.program;
        let places: Vec<_> = program.places().collect();
        let order = arranged(&program.blocks, &places);
        let mut moved = vec![RelationId(0); order.len()];
        for (new, old) in (0u32..).zip(&order) {
            moved[*old] = RelationId(new);
        }
        let to = |id: RelationId| moved[id.0 as usize];
        program.relations = order
            .iter()
            .map(|old| program.relations[*old].clone())
            .collect();
        for relation in &mut program.relations {
            relation.operation.rename(to);
        }
        program.blocks.iter_mut().for_each(|block| block.rename(to));
        for output in &mut program.outputs {
            output.relation = to(output.relation);
        }
        let lists = [&mut self.statements, &mut self.aggregates, &mut self.rests];
        for list in lists {
            list.iter_mut().flatten().for_each(|id| *id = to(*id));
        }
    }
}
