//! Lists in the order in which most scatters over them send their elements.
//!
//! A scatter whose points ascend adds up those of a row before it stores anything. A list of a file ascends by rows; where rounds send its
//! elements to columns, it is read in the order of columns instead. Nothing else may depend on the order: a statement over the list reduces
//! its places, or has a value for each, which is read so in turn. Must not know how files are read.
//!
//! ```text
//! A.at1: u32[5] = listed("A", f32, 1, load("a.mtx"))           y: f32[9] = [j: 9 | e: 5] sum A.values[e] * x[A.at0[e]] if j == A.at1[e]
//! A.at1: u32[5] = listed("A", f32, 1 by 1, load("a.mtx"))      in each of 100 rounds
//! ```

use crate::einsum::{Definition, Program, Role, TensorId};
use ein_plan::schedule::guard::solved;
use ein_plan::{IndexId, Kernel, ListColumn, Node, NodeId, Reduction, Source};
use std::collections::{BTreeMap, BTreeSet};

/// How many more times elements are sent along another dimension than along the first, at least: sorting takes as long as some scatters.
const MORE: f64 = 24.0;

/// Returns the program with such lists.
pub(super) fn by_scatters(program: &Program) -> Program {
    let mut along = Along::of(program);
    along.follow();
    let orders = along.orders();
    if orders.is_empty() {
        return program.clone();
    }
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Source(Source::Listed { tensor, by, .. }) = &mut tensor.definition
            && let Some(order) = orders.get(tensor.as_str())
        {
            *by = *order;
        }
    }
    program
}

/// Which tensors have an element for each place of a list, and what is known of the list.
struct Along<'p> {
    program: &'p Program,
    times: Vec<f64>,
    /// By tensor: its list, and which of its dimensions counts the places.
    of: BTreeMap<TensorId, (&'p str, usize)>,
    /// Lists of which the order matters.
    fixed: BTreeSet<&'p str>,
    /// By list and dimension: how many times its elements are sent along it.
    sent: BTreeMap<(&'p str, u32), f64>,
}

impl<'p> Along<'p> {
    fn of(program: &'p Program) -> Along<'p> {
        let mut along = Along {
            program,
            times: program.expected_times(),
            of: BTreeMap::new(),
            fixed: BTreeSet::new(),
            sent: BTreeMap::new(),
        };
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            if let Definition::Source(Source::Listed { tensor, .. }) = &tensor.definition {
                along.of.insert(id, (tensor.as_str(), 0));
            }
        }
        along
    }

    /// Looks at everything that reads a list.
    fn follow(&mut self) {
        let program = self.program;
        for (id, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            if let Definition::Statement { kernel, operands } = &tensor.definition {
                self.statement(id, kernel, operands);
            }
        }
        for output in &program.outputs {
            self.fix(output.tensor);
        }
        for block in &program.blocks {
            for state in &block.states {
                self.fix(state.initial);
                self.fix(state.next);
            }
            for collected in &block.collected {
                self.fix(collected.value);
            }
        }
    }

    /// Says that the order of a tensor's list matters.
    fn fix(&mut self, tensor: TensorId) {
        if let Some((list, _)) = self.of.get(&tensor) {
            self.fixed.insert(list);
        }
    }

    fn statement(&mut self, id: TensorId, kernel: &Kernel, operands: &[TensorId]) {
        let lists: BTreeSet<&str> = (operands.iter())
            .filter_map(|operand| Some(self.of.get(operand)?.0))
            .collect();
        if lists.is_empty() {
            return;
        }
        let Some(counting) = self.counting(kernel, operands) else {
            self.fixed.extend(lists);
            return;
        };
        let rank = kernel.output_rank;
        let mut own = counting.iter().filter(|(index, _)| index.0 < rank);
        match (own.next(), own.next()) {
            (None, _) => {}
            (Some((index, list)), None) if self.program.tensor(id).role == Role::Hidden => {
                self.of.insert(id, (list, index.0 as usize));
            }
            _ => self.fixed.extend(lists),
        }
        self.count_sent(id, kernel, operands);
    }

    /// The indices that count the places of a list, with the list; `None` if the statement depends on the order of one.
    fn counting(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<BTreeMap<IndexId, &'p str>> {
        use Reduction::{All, Any, LogSumExp, Max, Mean, Min, Norm, Prod, Sum};
        let is_free = match kernel.reduction {
            None => true,
            Some(Sum | Prod | Max | Min | Any | All | Mean | Norm | LogSumExp) => true,
            Some(_) => false,
        };
        if !is_free || kernel.library().is_some() {
            return None;
        }
        let graph = &kernel.graph;
        let mut counting: BTreeMap<IndexId, &'p str> = BTreeMap::new();
        // By read: the position that counts places.
        let mut counted: BTreeMap<NodeId, usize> = BTreeMap::new();
        for (id, node, _) in graph.iter() {
            if let Node::Read {
                operand, positions, ..
            } = node
                && let Some((list, dimension)) = self.of.get(&operands[*operand as usize])
            {
                let index = graph.as_index(positions[*dimension])?;
                let places = kernel.operands[*operand as usize].shape[*dimension];
                let is_whole = kernel.indices[index.0 as usize].extent == places;
                if !is_whole || *counting.entry(index).or_insert(list) != *list {
                    return None;
                }
                counted.insert(id, *dimension);
            }
        }
        // Nothing else knows the number of a place.
        let is_number = |id: NodeId| match graph.node(id) {
            Node::Index(index) => counting.contains_key(index),
            _ => false,
        };
        for (id, node, _) in graph.iter() {
            let free = match (node, counted.get(&id)) {
                (
                    Node::Read {
                        positions,
                        otherwise,
                        ..
                    },
                    Some(dimension),
                ) => (positions.iter().enumerate())
                    .filter(|(at, _)| at != dimension)
                    .map(|(_, position)| *position)
                    .chain(*otherwise)
                    .all(|id| !is_number(id)),
                _ => node.arguments().all(|id| !is_number(id)),
            };
            if !free {
                return None;
            }
        }
        let ends = kernel.guard.into_iter().chain([kernel.root]);
        ends.into_iter()
            .all(|id| !is_number(id))
            .then_some(counting)
    }

    /// Counts how often a scatter sends the elements of lists along a dimension.
    fn count_sent(&mut self, id: TensorId, kernel: &Kernel, operands: &[TensorId]) {
        for (_, place) in solved(kernel, &kernel.scattered()).places {
            let place = match kernel.graph.node(place) {
                Node::Convert(place) => *place,
                _ => place,
            };
            let Node::Read { operand, .. } = kernel.graph.node(place) else {
                continue;
            };
            let tensor = self.program.tensor(operands[*operand as usize]);
            if let Definition::Source(Source::Listed { tensor, column, .. }) = &tensor.definition
                && let ListColumn::Positions(dimension) = column
            {
                let sent = self.sent.entry((tensor, *dimension)).or_default();
                *sent += self.times[id.0 as usize];
            }
        }
    }

    /// By list: the dimension along which it had better ascend, where that is not the first.
    fn orders(&self) -> BTreeMap<&'p str, u32> {
        let mut orders: BTreeMap<&str, u32> = BTreeMap::new();
        for ((list, dimension), sent) in &self.sent {
            let by = |dimension: u32| self.sent.get(&(*list, dimension)).copied().unwrap_or(0.0);
            let is_better = *dimension > 0 && *sent >= by(0) + MORE;
            if is_better && !self.fixed.contains(list) {
                let best = orders.entry(list).or_insert(*dimension);
                if *sent > by(*best) {
                    *best = *dimension;
                }
            }
        }
        orders
    }
}
