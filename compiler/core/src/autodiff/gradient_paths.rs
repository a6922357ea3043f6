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

/// What lies between.
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
        let mut values = HashMap::new();
        // From and to, and the block that the flow goes into.
        let mut edges: Vec<(TensorId, TensorId)> = vec![];
        let mut users = vec![vec![]; count];
        let mut inputs: HashMap<BlockId, HashSet<TensorId>> = HashMap::new();
        let mut enters = |from: TensorId, place: Option<BlockId>| {
            for block in program.path(place) {
                if !program.encloses(Some(block), program.tensor(from).block) {
                    inputs.entry(block).or_default().insert(from);
                }
            }
        };
        let known = |id: TensorId| (id.0 as usize) < count;
        let is_float = |id: TensorId| known(id) && program.tensor(id).dtype.is_float();
        for id in &order {
            let tensor = program.tensor(*id);
            match &tensor.definition {
                Definition::Source(_) => {}
                Definition::Statement { operands, .. } => {
                    let flowing = operands.iter().zip(&flows[id.0 as usize]);
                    for (operand, _) in flowing.filter(|(_, flows)| **flows) {
                        edges.push((*operand, *id));
                        users[operand.0 as usize].push(*id);
                        enters(*operand, tensor.block);
                    }
                }
                Definition::Loop(value) => {
                    values.insert(*value, *id);
                    let block = program.block(value.block());
                    match value {
                        LoopValue::Counter(_) | LoopValue::Rounds(_) => {}
                        LoopValue::State(of, number) | LoopValue::Last(of, number) => {
                            let state = block.states[*number as usize];
                            for from in [state.initial, state.next] {
                                if is_float(from) {
                                    edges.push((from, *id));
                                    enters(from, Some(*of));
                                }
                            }
                        }
                        LoopValue::Collected(of, number) => {
                            let from = block.collected[*number as usize].value;
                            if is_float(from) {
                                edges.push((from, *id));
                                enters(from, Some(*of));
                            }
                        }
                    }
                }
            }
        }
        let mut forward = vec![vec![]; count];
        let mut backward = vec![vec![]; count];
        for (from, to) in edges {
            forward[from.0 as usize].push(to);
            backward[to.0 as usize].push(from);
        }
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

    /// Whether there is a way from a tensor that is differentiated by, or in a round to what the round gives on.
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
    /// Whether what stands around it counts as well.
    pub(super) around: bool,
}

impl Level {
    /// Whether what stands in that block is at this level.
    pub(super) fn has(self, program: &Program, block: Option<BlockId>) -> bool {
        match self.around {
            true => program.encloses(block, self.place),
            false => block == self.place,
        }
    }
}

/// What can be reached.
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
