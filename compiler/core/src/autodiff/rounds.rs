//! Back through the rounds of a block: a block of its own, whose rounds go through those that were made, the last first.
//!
//! Every state that leads on has an adjoint that is a state there; what a tensor around the block gets is summed up in
//! another, or collected where a round reads a slice of it alone. What a round backwards reads of the round forwards was collected. Must not know derivatives.
//!
//! ```text
//! repeat t < 9 { x = state 0 of t; y = w * x }, carry x.0 -> y
//!   =>   repeat grad.t < 9 { a = state 0: adjoint of y; a.next = w * a; g = state 1; g.next = g + a * xs[8 - counter] }
//! ```

mod tensors;

use super::gradient_paths::{GradientPaths, Level, unknown_rounds};
use super::{Gradients, Through};
use crate::einsum::{
    Block, BlockId, Bound, Collected, Definition, LoopValue, Program, Role, TensorId, canonical,
};
use ein_plan::{Function, IndexId, Kernel, Node, NodeId, Operand, Scalar};
use einc_diag::Diagnostic;
use std::cmp::Ordering;
use std::collections::HashMap;

/// A block and the one that goes back through it.
#[derive(Clone, Copy)]
struct Pair {
    forth: BlockId,
    back: BlockId,
    /// Rounds at most.
    rounds: u64,
    /// How many rounds were made, where that is not all.
    made: Option<TensorId>,
    /// The number of the round backwards.
    counter: TensorId,
    /// Tensors and blocks from these numbers on belong to the way back.
    first_tensor: usize,
    first_block: usize,
}

/// A tensor whose slices the rounds read, the dimension that counts the rounds, and the number of the collected value that holds its gradient.
type CollectedSlice = (TensorId, usize, u32);

/// A state of the rounds forwards whose gradient is a state of the way back.
struct BackState {
    /// The state at the beginning of a round, if something reads it.
    begins: Option<TensorId>,
    initial: TensorId,
    next: TensorId,
}

impl Gradients {
    /// Returns the gradients of the tensors around a block, given those of its results.
    pub(super) fn through_block(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        loss: super::Loss,
        id: BlockId,
    ) -> Result<Through, Diagnostic> {
        if let Some(known) = self.through.get(&(loss, id)) {
            return Ok(known.clone());
        }
        let block = program.block(id).clone();
        let Bound::Rounds(rounds) = block.bound else {
            return Err(unknown_rounds(&block.name));
        };
        let exact = self.statements.exact.clone();
        let pair = self.begin_back(program, ways, id, rounds);
        let inner = self.new_loss();
        let (seeds, states) = self.seeds(program, ways, loss, &pair);
        // One round back.
        let level = Level {
            place: Some(id),
            around: false,
        };
        for tensor in ways.of_block(program, id) {
            let more = seeds.get(&tensor).cloned().unwrap_or_default();
            let adjoint = self.combined(program, ways, (inner, level), tensor, more)?;
            self.adjoints.insert((inner, tensor), adjoint);
        }
        for (number, state) in states.iter().enumerate() {
            let begins = state.begins;
            let adjoint = begins.and_then(|id| self.adjoints.get(&(inner, id)).copied().flatten());
            let next = self.as_tensor(program, state.next, adjoint);
            program.blocks[pair.back.0 as usize].states[number].next = next;
        }
        let mut through: HashMap<TensorId, usize> = HashMap::new();
        let mut by_round: Vec<CollectedSlice> = vec![];
        for input in ways.inputs(id) {
            if !seeds.contains_key(&input)
                && let Some(slices) = self.read_by_round(program, ways, level, input)
            {
                for (slice, dim) in slices {
                    let adjoint = self.adjoints.get(&(inner, slice)).copied().flatten();
                    if adjoint.is_none() {
                        continue;
                    }
                    let value = self.as_tensor(program, slice, adjoint);
                    let collected = &mut program.blocks[pair.back.0 as usize].collected;
                    by_round.push((input, dim, collected.len() as u32));
                    let dim = dim as u32;
                    collected.push(Collected { value, dim });
                }
                continue;
            }
            let more = seeds.get(&input).cloned().unwrap_or_default();
            let Some(part) = self.combined(program, ways, (inner, level), input, more)? else {
                continue;
            };
            let part = self.as_tensor(program, input, Some(part));
            if !seeds.contains_key(&input)
                && let Some((value, dim)) = self.at_round(program, &pair, part)
            {
                let collected = &mut program.blocks[pair.back.0 as usize].collected;
                by_round.push((input, dim, collected.len() as u32));
                let dim = dim as u32;
                collected.push(Collected { value, dim });
                continue;
            }
            let zero = self.as_tensor(program, input, None);
            through.insert(input, program.blocks[pair.back.0 as usize].states.len());
            let before = self.back_state(program, &pair, input, zero);
            let sum = self.sum_of(program, before, part);
            let states = &mut program.blocks[pair.back.0 as usize].states;
            if let Some(state) = states.last_mut() {
                state.next = sum;
            }
        }
        if let Some(made) = pair.made {
            let until = self.last_round(program, &pair, made);
            program.blocks[pair.back.0 as usize].until = Some(until);
        }
        self.move_back(program, ways, &pair);
        self.statements.exact = exact;
        let flows = self.behind(program, ways, &pair, &states, (&through, &by_round));
        self.through.insert((loss, id), flows.clone());
        Ok(flows)
    }

    /// Adds the block that goes back through a block, still without states.
    fn begin_back(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        id: BlockId,
        rounds: u64,
    ) -> Pair {
        let block = program.block(id).clone();
        let count = |_| self.loop_value(program, ways, LoopValue::Rounds(id));
        let made = block.until.map(count);
        let mut pair = Pair {
            forth: id,
            back: BlockId(program.blocks.len() as u32),
            rounds,
            made,
            counter: TensorId::UNKNOWN,
            first_tensor: program.tensors.len(),
            first_block: program.blocks.len(),
        };
        let name = unique_block(program, &format!("grad.{}", block.name));
        program.blocks.push(Block {
            name,
            parent: block.parent,
            bound: Bound::Rounds(rounds),
            until: None,
            states: vec![],
            collected: vec![],
            origin: block.origin,
        });
        pair.counter = self.loop_value(program, ways, LoopValue::Counter(pair.back));
        pair
    }

    /// Adds the states that go back, and returns the gradients that a round begins with: those of the next states, and a slice of
    /// those of the collected values.
    fn seeds(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        loss: super::Loss,
        pair: &Pair,
    ) -> (HashMap<TensorId, Vec<TensorId>>, Vec<BackState>) {
        let id = pair.forth;
        let block = program.block(id).clone();
        let mut seeds: HashMap<TensorId, Vec<TensorId>> = HashMap::new();
        let mut states = vec![];
        for (number, state) in (0..).zip(&block.states) {
            let at = |value: LoopValue| ways.values.get(&value).copied();
            let (begins, last) = (
                at(LoopValue::State(id, number)),
                at(LoopValue::Last(id, number)),
            );
            let leads = [begins, last]
                .into_iter()
                .flatten()
                .any(|id| ways.leads(id));
            if !leads || !program.tensor(state.initial).dtype.is_float() {
                continue;
            }
            let adjoint = last.and_then(|last| self.adjoints.get(&(loss, last)).copied().flatten());
            let initial = self.as_tensor(program, state.next, adjoint);
            let adjoint = self.back_state(program, pair, state.next, initial);
            seeds.entry(state.next).or_default().push(adjoint);
            states.push(BackState {
                begins,
                initial: state.initial,
                next: state.next,
            });
        }
        for (number, collected) in (0..).zip(&block.collected) {
            let all = ways.values.get(&LoopValue::Collected(id, number));
            let adjoint = all.and_then(|all| self.adjoints.get(&(loss, *all)).copied().flatten());
            if let (Some(all), Some(adjoint)) = (all.copied(), adjoint) {
                let adjoint = self.as_tensor(program, all, Some(adjoint));
                let dim = collected.dim as usize;
                let slice = self.slice(program, pair, adjoint, dim);
                seeds.entry(collected.value).or_default().push(slice);
            }
        }
        (seeds, states)
    }

    /// Returns the gradients behind the block that goes back: the last states, and the slices of all rounds put together.
    fn behind(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        pair: &Pair,
        states: &[BackState],
        (through, by_round): (&HashMap<TensorId, usize>, &[CollectedSlice]),
    ) -> Through {
        let mut flows = Through::new();
        for (number, state) in (0..).zip(states) {
            let last = self.loop_value(program, ways, LoopValue::Last(pair.back, number));
            flows.entry(state.initial).or_default().push(last);
        }
        for input in ways.inputs(pair.forth) {
            if let Some(number) = through.get(&input) {
                let value = LoopValue::Last(pair.back, *number as u32);
                let last = self.loop_value(program, ways, value);
                flows.entry(input).or_default().push(last);
            }
        }
        for (input, dim, number) in by_round {
            let value = LoopValue::Collected(pair.back, *number);
            let all = self.loop_value(program, ways, value);
            let part = self.in_order(program, pair, *input, all, *dim);
            flows.entry(*input).or_default().push(part);
        }
        flows
    }

    /// The tensors of a block through which alone a tensor around it is read, if each is what one round reads of it: `W[counter, i]`;
    /// with the dimension that counts the rounds. What flows back to such a tensor are slices, one of each round.
    fn read_by_round(
        &self,
        program: &Program,
        ways: &GradientPaths,
        level: Level,
        input: TensorId,
    ) -> Option<Vec<(TensorId, usize)>> {
        let block = level.place?;
        if !ways.blocks_at(program, level, input).is_empty() {
            return None;
        }
        let inside = |user: &TensorId| {
            let path = program.path(program.tensor(*user).block);
            path.contains(&block)
        };
        let slice = |user: TensorId| {
            let tensor = program.tensor(user);
            let Definition::Statement { kernel, operands } = &tensor.definition else {
                return None;
            };
            let dim = slice_by(program, block, kernel, operands, input)?;
            (tensor.block == Some(block)).then_some((user, dim))
        };
        ways.users(input).filter(inside).map(slice).collect()
    }

    /// Returns a tensor of a round at the number of the round, if it is 0 everywhere else, and the dimension that counts the rounds.
    fn at_round(
        &mut self,
        program: &mut Program,
        pair: &Pair,
        tensor: TensorId,
    ) -> Option<(TensorId, usize)> {
        let mut slice = program.tensor(tensor).clone();
        let Definition::Statement { kernel, operands } = &slice.definition else {
            return None;
        };
        let (value, dim) = part_at_round(program, pair.forth, kernel, operands)?;
        let mut kernel = kernel.clone();
        kernel.root = value;
        kernel.indices.remove(dim);
        kernel.output_rank -= 1;
        let kernel = kernel.rewritten(|graph, _, node, dtype| match node {
            Node::Index(IndexId(number)) => match number.cmp(&(dim as u32)) {
                Ordering::Less => graph.add(node, dtype),
                Ordering::Greater => graph.add(Node::Index(IndexId(number - 1)), dtype),
                // Nothing that is kept depends on it.
                Ordering::Equal => graph.add(Node::Constant(Scalar::Int(0)), dtype),
            },
            node => graph.add(node, dtype),
        });
        let (kernel, operands) = canonical::statement(kernel, operands);
        slice.shape.remove(dim);
        slice.name = self.statements.name(program, &format!("{}.at", slice.name));
        slice.role = Role::Hidden;
        slice.definition = Definition::Statement { kernel, operands };
        program.tensors.push(slice);
        Some((TensorId(program.tensors.len() as u32 - 1), dim))
    }

    /// Puts what was made for the way back into its block: what it reads of the rounds forwards becomes a slice of what they
    /// collect.
    fn move_back(&mut self, program: &mut Program, ways: &GradientPaths, pair: &Pair) {
        let made = pair.first_tensor..program.tensors.len();
        let forth = Some(pair.forth);
        // What blocks inside have collected for their own way back is computed in the rounds forwards.
        let is_forth = |program: &Program, id: TensorId| {
            let tensor = program.tensor(id);
            let kept = match &tensor.definition {
                Definition::Loop(value) => (value.block().0 as usize) < pair.first_block,
                _ => false,
            };
            tensor.block == forth && (kept || (id.0 as usize) < pair.first_tensor)
        };
        let mut slices: HashMap<TensorId, TensorId> = HashMap::new();
        let mut moved = |c: &mut Self, program: &mut Program, id: TensorId| {
            let known = (id.0 as usize) < program.tensors.len();
            if !known || !is_forth(program, id) {
                return id;
            }
            if let Some(slice) = slices.get(&id) {
                return *slice;
            }
            let all = c.collect(program, ways, pair, id);
            let slice = c.slice(program, pair, all, 0);
            slices.insert(id, slice);
            slice
        };
        for at in pair.first_block..program.blocks.len() {
            if program.blocks[at].parent == forth {
                program.blocks[at].parent = Some(pair.back);
            }
        }
        for at in made {
            let id = TensorId(at as u32);
            if is_forth(program, id) {
                continue;
            }
            match program.tensors[at].definition.clone() {
                Definition::Source(_) => {}
                Definition::Loop(value) => {
                    if value.is_result() {
                        program.tensors[at].block = program.block(value.block()).parent;
                    }
                }
                Definition::Statement {
                    kernel,
                    mut operands,
                } => {
                    for operand in &mut operands {
                        *operand = moved(self, program, *operand);
                    }
                    let (mut kernel, operands) = canonical::statement(kernel, &operands);
                    kernel.operands = (operands.iter())
                        .map(|id| Operand {
                            columns: vec![program.tensor(*id).dtype],
                            shape: program.tensor(*id).shape.clone(),
                        })
                        .collect();
                    program.tensors[at].block = program.innermost(&operands);
                    program.tensors[at].definition = Definition::Statement { kernel, operands };
                }
            }
        }
        for at in pair.first_block..program.blocks.len() {
            let mut block = program.blocks[at].clone();
            for state in &mut block.states {
                state.initial = moved(self, program, state.initial);
                state.next = moved(self, program, state.next);
            }
            for collected in &mut block.collected {
                collected.value = moved(self, program, collected.value);
            }
            block.until = block.until.map(|until| moved(self, program, until));
            program.blocks[at] = block;
        }
    }

    /// Collects a tensor of the rounds forwards, so that each round backwards reads its own.
    fn collect(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        pair: &Pair,
        value: TensorId,
    ) -> TensorId {
        let collected = Collected { value, dim: 0 };
        let all = &mut program.blocks[pair.forth.0 as usize].collected;
        let number = all.iter().position(|known| *known == collected);
        let number = number.unwrap_or_else(|| {
            all.push(collected);
            all.len() - 1
        });
        self.loop_value(
            program,
            ways,
            LoopValue::Collected(pair.forth, number as u32),
        )
    }
}

/// The part of a kernel that is 0 but where a dimension is at the number of the round, `where(i == counter, v, 0)`: the node of `v`, which does
/// not depend on that dimension, and the dimension.
fn part_at_round(
    program: &Program,
    block: BlockId,
    kernel: &Kernel,
    operands: &[TensorId],
) -> Option<(NodeId, usize)> {
    let graph = &kernel.graph;
    let Node::Apply(Function::Select, arguments) = graph.node(kernel.root) else {
        return None;
    };
    let (value, other) = (arguments[1], graph.node(arguments[2]));
    let is_zero = matches!(other, Node::Constant(zero) if zero.as_f64() == 0.0);
    let Node::Apply(Function::Eq, sides) = graph.node(arguments[0]) else {
        return None;
    };
    let index = sides.iter().find_map(|side| graph.as_index(*side))?;
    let counter = Definition::Loop(LoopValue::Counter(block));
    let counts = |side: &NodeId| match graph.node(*side) {
        Node::Read { operand, .. } => {
            program.tensor(operands[*operand as usize]).definition == counter
        }
        _ => false,
    };
    let plain = kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.output_rank as usize == kernel.indices.len();
    let depends = graph.dependencies()[value.0 as usize] & (1 << index.0.min(127)) != 0;
    let is_part = plain && is_zero && !depends && sides.iter().any(counts);
    is_part.then_some((value, index.0 as usize))
}

/// Returns whether a statement gives a tensor at the number of the round, and nothing else; the dimension that counts the rounds.
fn slice_by(
    program: &Program,
    block: BlockId,
    kernel: &Kernel,
    operands: &[TensorId],
    input: TensorId,
) -> Option<usize> {
    let Node::Read {
        operand,
        positions,
        otherwise: None,
        ..
    } = kernel.graph.node(kernel.root)
    else {
        return None;
    };
    let counter = Definition::Loop(LoopValue::Counter(block));
    let counts = |id: NodeId| match kernel.graph.node(id) {
        Node::Read { operand, .. } => {
            program.tensor(operands[*operand as usize]).definition == counter
        }
        _ => false,
    };
    let dim = positions.iter().position(|at| counts(*at))?;
    let mut own = positions.clone();
    own.remove(dim);
    let in_order = (0u32..).zip(&own).all(
        |(number, at)| matches!(kernel.graph.node(*at), Node::Index(index) if index.0 == number),
    );
    let same = operands[*operand as usize] == input
        && kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.output_rank as usize == own.len();
    (same && in_order).then_some(dim)
}

/// The name, or the name with a number where a block has it.
fn unique_block(program: &Program, base: &str) -> String {
    let taken = |name: &str| program.blocks.iter().any(|block| block.name == name);
    let mut name = base.to_owned();
    let mut number = 1;
    while taken(&name) {
        number += 1;
        name = format!("{base}.{number}");
    }
    name
}
