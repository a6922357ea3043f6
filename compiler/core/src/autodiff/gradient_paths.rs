//! The ways between a tensor and a scalar along which a derivative flows, through statements and through blocks.
//!
//! Through a block they may go round: a state is reached from its `next`. Must not know derivatives.
//!
//! ```text
//! x = state 0 of t, y = w * x is its next, loss = last 0 of t   =>   w -> y -> x -> y -> loss
//! ```

use crate::einsum::{BlockId, Definition, LoopValue, Program, TensorId};
use einc_diag::Diagnostic;
use std::collections::{HashMap, HashSet};

/// The tensors between the loss and the tensors that gradients are asked of.
pub(super) struct GradientPaths {
    /// By tensor: where it stands in an order in which operands stand before their users.
    position: Vec<usize>,
    order: Vec<TensorId>,
    /// By tensor: whether it depends on what is differentiated by.
    reached: Vec<bool>,
    /// By tensor: whether the scalar depends on it.
    leads: Vec<bool>,
    /// By tensor: the statements to which it flows, in order.
    users: Vec<Vec<TensorId>>,
    /// By block: the tensors around it that flow into it.
    inputs: HashMap<BlockId, HashSet<TensorId>>,
    /// By value of a block: its tensor.
    pub(super) values: HashMap<LoopValue, TensorId>,
}

/// The steps by which a derivative flows from tensor to tensor.
struct Flows {
    /// By tensor: the tensors that it flows to.
    forward: Vec<Vec<TensorId>>,
    /// By tensor: the tensors that flow to it.
    backward: Vec<Vec<TensorId>>,
    users: Vec<Vec<TensorId>>,
    inputs: HashMap<BlockId, HashSet<TensorId>>,
    values: HashMap<LoopValue, TensorId>,
}

impl Flows {
    /// Collects the steps of a program; `order` are its tensors, operands before their users.
    fn of_program(program: &Program, order: &[TensorId], flows: &[Vec<bool>]) -> Flows {
        let count = program.tensors.len();
        let mut found = Flows {
            forward: vec![vec![]; count],
            backward: vec![vec![]; count],
            users: vec![vec![]; count],
            inputs: HashMap::new(),
            values: HashMap::new(),
        };
        for id in order {
            let tensor = program.tensor(*id);
            match &tensor.definition {
                Definition::Source(_) => {}
                Definition::Statement { operands, .. } => {
                    let flowing = operands.iter().zip(&flows[id.0 as usize]);
                    for (operand, _) in flowing.filter(|(_, flows)| **flows) {
                        found.users[operand.0 as usize].push(*id);
                        found.step(program, *operand, *id, tensor.block);
                    }
                }
                Definition::Loop(value) => {
                    found.values.insert(*value, *id);
                    let block = program.block(value.block());
                    let from = match value {
                        LoopValue::Counter(_) | LoopValue::Rounds(_) => vec![],
                        LoopValue::State(_, number) | LoopValue::Last(_, number) => {
                            let state = block.states[*number as usize];
                            vec![state.initial, state.next]
                        }
                        LoopValue::Collected(_, number) => {
                            vec![block.collected[*number as usize].value]
                        }
                    };
                    for from in from {
                        let known = (from.0 as usize) < count;
                        if known && program.tensor(from).dtype.is_float() {
                            found.step(program, from, *id, Some(value.block()));
                        }
                    }
                }
            }
        }
        found
    }

    /// Adds a step that goes into a block, or stays outside of all.
    fn step(&mut self, program: &Program, from: TensorId, to: TensorId, into: Option<BlockId>) {
        self.forward[from.0 as usize].push(to);
        self.backward[to.0 as usize].push(from);
        for block in program.path(into) {
            if !program.encloses(Some(block), program.tensor(from).block) {
                self.inputs.entry(block).or_default().insert(from);
            }
        }
    }
}

impl GradientPaths {
    /// The ways from `wrt` to `loss`. `flows`: through which operands of a statement a derivative flows.
    ///
    /// # Errors
    /// `E0606` where one goes through earlier rounds of a block that the loss is in.
    pub(super) fn new(
        program: &Program,
        flows: &[Vec<bool>],
        loss: TensorId,
        wrt: TensorId,
    ) -> Result<GradientPaths, Diagnostic> {
        let count = program.tensors.len();
        let order = order(program);
        let mut position = vec![0; count];
        for (at, id) in order.iter().enumerate() {
            position[id.0 as usize] = at;
        }
        let Flows {
            mut forward,
            mut backward,
            users,
            inputs,
            values,
        } = Flows::of_program(program, &order, flows);
        // A state of a round that the loss is in is where its gradient ends.
        let rounds = program.path(program.tensor(loss).block);
        for (value, id) in &values {
            if matches!(value, LoopValue::State(block, _) if rounds.contains(block)) {
                backward[id.0 as usize].clear();
            }
        }
        let leads = closure(loss, &backward);
        let reached = closure(wrt, &forward);
        let earlier = values.iter().find(|(value, id)| {
            let at = id.0 as usize;
            matches!(value, LoopValue::State(block, _) if rounds.contains(block))
                && **id != wrt
                && reached[at]
                && leads[at]
                && !program.encloses(Some(value.block()), program.tensor(wrt).block)
        });
        if let Some((value, _)) = earlier {
            let [of, by] = [loss, wrt].map(|id| &program.tensor(id).name);
            let block = &program.block(value.block()).name;
            return Err(Diagnostic::error(
                "E0606",
                format!("`{of}` depends on `{by}` through the rounds of `{block}` before it"),
            )
            .help("in a round, take the gradient by what the round reads: a state, or what is computed in it"));
        }
        // The way back through a block is made once, for all that it gives and all that it reads.
        for (value, id) in values.iter().filter(|(value, _)| value.is_result()) {
            for input in inputs.get(&value.block()).into_iter().flatten() {
                forward[input.0 as usize].push(*id);
            }
        }
        Ok(GradientPaths {
            reached: closure(wrt, &forward),
            leads,
            position,
            order,
            users,
            inputs,
            values,
        })
    }

    /// Returns whether there is a way from a tensor that is differentiated by, or in a round to what the round gives on.
    pub(super) fn leads(&self, id: TensorId) -> bool {
        self.leads[id.0 as usize]
    }

    /// The tensors between the two, the last first.
    pub(super) fn between(&self) -> impl Iterator<Item = TensorId> {
        let on_way = |id: &TensorId| self.reached[id.0 as usize] && self.leads[id.0 as usize];
        self.order.iter().rev().copied().filter(on_way)
    }

    /// The statements that a tensor flows to and that lead on, in order.
    pub(super) fn users(&self, tensor: TensorId) -> impl Iterator<Item = TensorId> {
        let users = self.users.get(tensor.0 as usize);
        let users = users.into_iter().flatten().copied();
        users.filter(|user| self.leads(*user))
    }

    /// The tensors of a block itself that lead on, the last first.
    pub(super) fn of_block(&self, program: &Program, block: BlockId) -> Vec<TensorId> {
        let order = self.order.iter().rev().copied();
        order
            .filter(|id| self.leads(*id) && program.tensor(*id).block == Some(block))
            .collect()
    }

    /// The tensors around a block that flow into it, in order.
    pub(super) fn inputs(&self, block: BlockId) -> Vec<TensorId> {
        let mut inputs: Vec<TensorId> = self
            .inputs
            .get(&block)
            .into_iter()
            .flatten()
            .copied()
            .collect();
        inputs.sort_by_key(|id| self.position[id.0 as usize]);
        inputs
    }

    /// The blocks that a tensor flows into and that lead on, in order: those that stand at a level.
    pub(super) fn blocks_at(
        &self,
        program: &Program,
        level: Level,
        tensor: TensorId,
    ) -> Vec<BlockId> {
        let path = program.path(level.place);
        let mut blocks: Vec<BlockId> = (self.inputs.iter())
            .filter(|(block, inputs)| {
                inputs.contains(&tensor)
                    && !path.contains(block)
                    && level.has(program, program.block(**block).parent)
                    && self.results(**block).any(|result| self.leads(result))
            })
            .map(|(block, _)| *block)
            .collect();
        blocks.sort();
        blocks
    }

    /// The tensors that a block gives.
    fn results(&self, block: BlockId) -> impl Iterator<Item = TensorId> {
        let of_block = move |value: &LoopValue| value.block() == block && value.is_result();
        let values = self.values.iter();
        values
            .filter(move |(value, _)| of_block(value))
            .map(|(_, id)| *id)
    }
}

/// Where an adjoint is put together.
#[derive(Clone, Copy)]
pub(super) struct Level {
    /// A block, or outside of all.
    pub(super) place: Option<BlockId>,
    /// True if what stands around it counts as well.
    pub(super) around: bool,
}

impl Level {
    /// Returns whether what stands in that block is at this level.
    pub(super) fn has(self, program: &Program, block: Option<BlockId>) -> bool {
        match self.around {
            true => program.encloses(block, self.place),
            false => block == self.place,
        }
    }
}

/// Returns the tensors that can be reached.
fn closure(from: TensorId, edges: &[Vec<TensorId>]) -> Vec<bool> {
    let mut reached = vec![false; edges.len()];
    let mut open = vec![from];
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut reached[id.0 as usize], true) {
            open.extend(&edges[id.0 as usize]);
        }
    }
    reached
}

/// An order in which operands stand before their users, and a block's results after all of it.
fn order(program: &Program) -> Vec<TensorId> {
    let as_they_stand = || (0..program.tensors.len() as u32).map(TensorId).collect();
    match program.blocks.is_empty() {
        true => as_they_stand(),
        false => program.order().unwrap_or_else(as_they_stand),
    }
}

/// The error for rounds without a bound that is known before the run.
pub(super) fn unknown_rounds(block: &str) -> Diagnostic {
    let counter = block.rsplit('.').next().unwrap_or(block);
    let message = format!(
        "a gradient through the rounds of `{block}`, whose number depends on data or on other rounds"
    );
    let help = format!(
        "the values of all rounds are kept for the way back: bound the loop by numbers, dims and consts, and let states \
         keep their values where it is to end sooner, `next x = where({counter} < …, …, x)`"
    );
    Diagnostic::error("E0606", message).help(help)
}
