//! Values in ascending order, without their positions.
//!
//! `sort` is the positions of the values in ascending order, and the values at them. Where nothing else reads the positions, the values are sorted by
//! themselves: that takes half the time, and the values are not fetched from all over memory. Must not know placements.
//!
//! ```text
//! order: i64[900] = [i: 900] argsort(x[:1], i);   y: f32[900] = [i: 900] x[order[i]]
//! y: f32[900] = [i: 900] sort(x[:1], i)
//! ```

use crate::einsum::{Definition, Program, Rewriting, Statement, Tensor, TensorId, canonical};
use ein_plan::library::Library;
use ein_plan::{Function, IndexId, Kernel, Node, NodeId};

/// Returns the program in which values are sorted without positions that nothing else reads.
pub fn sorted(program: &Program) -> Program {
    let orders = orders(program);
    // No statement is added, so tensors keep their numbers.
    Rewriting::of_statements(program, |statement| {
        let order = order_of(program, statement.kernel, statement.operands)?;
        match orders[order.0 as usize] {
            true => values(program.tensor(order)),
            false => None,
        }
    })
    .needed()
}

/// By tensor: true if it is an order that statements read as `x[order[i]]` alone.
fn orders(program: &Program) -> Vec<bool> {
    let mut others = vec![0; program.tensors.len()];
    let mut found = vec![false; program.tensors.len()];
    let all = (0u32..program.tensors.len() as u32).map(TensorId);
    let made_of = all.flat_map(|id| program.made_of(id));
    for id in made_of.chain(program.outputs.iter().map(|output| output.tensor)) {
        others[id.0 as usize] += 1;
    }
    for tensor in &program.tensors {
        if let Definition::Statement { kernel, operands } = &tensor.definition
            && let Some(order) = order_of(program, kernel, operands)
        {
            others[order.0 as usize] -= 1;
            found[order.0 as usize] = true;
        }
    }
    let both = found.iter().zip(others);
    both.map(|(found, others)| *found && others == 0).collect()
}

/// The order of a statement that reads each value at its place in that.
fn order_of(program: &Program, kernel: &Kernel, operands: &[TensorId]) -> Option<TensorId> {
    let Node::Read {
        operand: values,
        positions,
        ..
    } = kernel.graph.node(kernel.root)
    else {
        return None;
    };
    let plain = kernel.reduction.is_none() && kernel.guard.is_none() && operands.len() == 2;
    let order = operands.get(1 - *values as usize).filter(|_| plain)?;
    let (sorted, library) = argsort(&program.tensor(*order).definition)?;
    let shape = |of: &Kernel| -> Vec<u64> {
        let output = &of.indices[..of.output_rank as usize];
        output.iter().map(|index| index.extent).collect()
    };
    let source = sorted.1[library.arguments[0].operand as usize];
    if shape(kernel) != shape(sorted.0) || operands[*values as usize] != source {
        return None;
    }
    let in_order = |positions: &[NodeId]| {
        let indices = positions.iter().map(|id| kernel.graph.as_index(*id));
        indices.eq((0..kernel.output_rank).map(|index| Some(IndexId(index))))
    };
    let at = library.arguments[0].at.iter().zip(positions);
    let mut same = at.map(|(own, position)| match own {
        Some(index) => kernel.graph.as_index(*position) == Some(*index),
        None => match kernel.graph.node(*position) {
            Node::Read {
                operand, positions, ..
            } => operand != values && in_order(positions),
            _ => false,
        },
    });
    same.all(|same| same).then_some(*order)
}

/// A statement that is an `argsort`: its kernel and operands, and the call.
fn argsort(definition: &Definition) -> Option<((&Kernel, &[TensorId]), Library)> {
    let Definition::Statement { kernel, operands } = definition else {
        return None;
    };
    let library = kernel.library()?;
    (library.operation == Function::Argsort).then_some(((kernel, operands), library))
}

/// The statement that sorts the values of which a tensor is the order.
fn values(order: &Tensor) -> Option<Statement> {
    let ((kernel, operands), library) = argsort(&order.definition)?;
    let mut kernel = kernel.clone();
    let Node::Apply(_, arguments) = kernel.graph.node(kernel.root).clone() else {
        return None;
    };
    let stored = kernel.operands[library.arguments[0].operand as usize].columns[0];
    let sorted = Node::Apply(Function::Sort, arguments);
    kernel.root = kernel.graph.add(sorted, stored.compute());
    kernel.output = vec![stored];
    Some(canonical::statement(kernel, operands))
}
