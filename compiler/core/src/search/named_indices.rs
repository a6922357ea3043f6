//! Reduced indices whose value data name: what depends on them is computed there, not at all of their values.
//!
//! The gradient of a scatter of gathered rows adds, for each point, the row that a place names to another one. Where both places stand in one statement,
//! loops would go over the rows of the one for each point of the other. A place outside of the index is no value of it, so that such a point is left out.
//! Must not know placements.
//!
//! ```text
//! g: f64[50] = [i: 50 | v: 60, e: 900] sum m[v] if where(dst[e] == v, src[e] == i, false)
//! g: f64[50] = [i: 50 | e: 900] sum m[dst[e]] else 0.0 if and(and(dst[e] >= 0, dst[e] < 60), src[e] == i)
//! ```

use super::group_values::stops;
use crate::einsum::{Definition, Program, TensorId, canonical};
use crate::rules::conditions::conditions;
use crate::rules::{may_fault_in, over, restrict_to, with_value};
use ein_plan::{Function, IndexId, Kernel, Node, NodeId, Reduction};

/// Returns the program in which reduced indices that data name are not gone over.
pub fn read_there(program: &Program) -> Program {
    let mut result = program.clone();
    for tensor in &mut result.tensors {
        let Definition::Statement { kernel, operands } = &mut tensor.definition else {
            continue;
        };
        let lists: Vec<bool> = operands
            .iter()
            .map(|of| lists_places(program, *of))
            .collect();
        let there =
            |kernel: &Kernel| Named::of(kernel).and_then(|named| named.there(kernel, &lists));
        if let Some(first) = there(kernel) {
            let last = std::iter::successors(Some(first), there).last();
            let last = last.expect("there is a first one");
            (*kernel, *operands) = canonical::statement(last, operands);
        }
    }
    result
}

/// Returns true if each element of a tensor is its own place: reading it stops the run where there is no such place.
fn lists_places(program: &Program, tensor: TensorId) -> bool {
    match &program.tensors[tensor.0 as usize].definition {
        Definition::Statement { kernel, .. } => {
            let plain = kernel.reduction.is_none() && kernel.guard.is_none();
            plain
                && kernel.output_rank == 1
                && kernel.graph.as_index(kernel.root) == Some(IndexId(0))
        }
        _ => false,
    }
}

/// A reduced index with its value.
struct Named {
    index: IndexId,
    value: NodeId,
    /// The other conditions of the guard.
    rest: Vec<NodeId>,
}

impl Named {
    fn of(kernel: &Kernel) -> Option<Named> {
        let reduction = kernel.reduction?;
        let known = matches!(reduction, Reduction::Sum | Reduction::Max | Reduction::Min);
        // One index at least is reduced still.
        let several = kernel.indices.len() as u32 >= kernel.output_rank + 2;
        if !known || !several || !kernel.finish || kernel.indices.len() >= 128 {
            return None;
        }
        let conditions = conditions(kernel);
        let graph = &kernel.graph;
        let depends = graph.dependencies();
        let of = |id: NodeId| depends[id.0 as usize];
        let mut numbered = conditions.iter().enumerate();
        let (place, index, value) = numbered.find_map(|(place, condition)| {
            let Node::Apply(Function::Eq, sides) = graph.node(*condition) else {
                return None;
            };
            let mut turned = [(sides[0], sides[1]), (sides[1], sides[0])].into_iter();
            turned.find_map(|(side, value)| {
                let index = graph.as_index(side)?;
                let is_reduced = index.0 >= kernel.output_rank;
                let is_data = graph.as_affine(value).is_none() && of(value) >> index.0 & 1 == 0;
                (is_reduced && is_data).then_some((place, index, value))
            })
        })?;
        // The other conditions are evaluated at every point, and so may stop the run at none.
        let mut rest = conditions;
        rest.remove(place);
        let hidden = rest
            .iter()
            .any(|condition| may_fault_in(kernel, *condition));
        let late = place > 0 && may_fault_in(kernel, value);
        (!hidden && !late).then_some(Named { index, value, rest })
    }

    /// The kernel without the index, if nothing that depends on it may stop the run. `lists`: by operand, whether its elements are their places.
    fn there(self, kernel: &Kernel, lists: &[bool]) -> Option<Kernel> {
        if stops(kernel, self.index) {
            return None;
        }
        let mut named = kernel.clone();
        named.guard = None;
        let extent = kernel.indices[self.index.0 as usize].extent;
        let is_place = match kernel.graph.node(self.value) {
            Node::Read { operand, .. } => {
                let shape = &kernel.operands[*operand as usize].shape;
                lists[*operand as usize] && shape[..] == [extent]
            }
            _ => false,
        };
        if !is_place {
            let extent = i64::try_from(extent).ok()?;
            restrict_to(&mut named, self.value, extent, [true; 2]);
        }
        self.rest
            .iter()
            .for_each(|condition| named.restrict(*condition));
        let (graph, _, moved) = with_value(&named.graph, self.index, self.value);
        named.root = moved[named.root.0 as usize];
        named.guard = named.guard.map(|guard| moved[guard.0 as usize]);
        named.graph = graph;
        let left = (0..kernel.indices.len()).filter(|at| *at != self.index.0 as usize);
        Some(over(named, kernel, &left.collect::<Vec<_>>()))
    }
}
