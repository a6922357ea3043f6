//! Reads of the derivative of each element by its own example.
//!
//! Where each element depends on one example alone, the derivative of all elements by all examples is spread from a tensor that has only those
//! of each element by its example. A statement that reads just these reads that tensor instead: so derivatives of it are not taken
//! through a matrix of which the diagonal matters. Must not know how derivatives are taken.
//!
//! ```text
//! grad.x: f64[9, 9] = [p: 9, i: 9] where(p == i, own[i], 0);   du: f64[9] = [n: 9] grad.x[n, n]
//!   => du: f64[9] = [n: 9] own[n]
//! ```

use crate::einsum::{Definition, Program, Role, TensorId, canonical};
use ein_plan::{Function, Graph, Kernel, Node, NodeId, Operand};

/// Lets the statements of a program from number `first` on read the tensors from which those that they read on a diagonal are spread.
pub fn read_diagonals(program: &mut Program, first: usize) {
    for number in first..program.tensors.len() {
        let Definition::Statement { kernel, operands } = &program.tensors[number].definition else {
            continue;
        };
        if let Some((kernel, operands)) = on_diagonals(program, kernel, operands) {
            program.tensors[number].definition = Definition::Statement { kernel, operands };
        }
    }
}

/// A statement that reads no diagonal of a tensor that is spread from one; `None` if it reads none as it is.
fn on_diagonals(
    program: &Program,
    kernel: &Kernel,
    operands: &[TensorId],
) -> Option<(Kernel, Vec<TensorId>)> {
    if kernel.library().is_some() {
        return None;
    }
    let (mut all, mut inputs) = (operands.to_vec(), kernel.operands.clone());
    let mut kernel = kernel.clone().rewritten(|graph, _, node, dtype| {
        let Node::Read {
            operand,
            column: 0,
            positions,
            otherwise: None,
        } = &node
        else {
            return graph.add(node, dtype);
        };
        let Some((own, positions)) = own(program, operands[*operand as usize], positions) else {
            return graph.add(node, dtype);
        };
        let read = Node::Read {
            operand: all.len() as u32,
            column: 0,
            positions,
            otherwise: None,
        };
        let tensor = program.tensor(own);
        all.push(own);
        inputs.push(Operand {
            columns: vec![tensor.dtype],
            shape: tensor.shape.clone(),
        });
        graph.add(read, dtype)
    });
    if all.len() == operands.len() {
        return None;
    }
    kernel.operands = inputs;
    Some(canonical::statement(kernel, &all))
}

/// The tensor from which another one is spread, and where it has the element that the other one has at these positions, if they are on
/// its diagonal.
fn own(
    program: &Program,
    spread: TensorId,
    positions: &[NodeId],
) -> Option<(TensorId, Vec<NodeId>)> {
    let tensor = program.tensor(spread);
    let Definition::Statement { kernel, operands } = &tensor.definition else {
        return None;
    };
    let is_plain = kernel.reduction.is_none() && kernel.guard.is_none();
    if tensor.role != Role::Hidden || !is_plain {
        return None;
    }
    let graph = &kernel.graph;
    let Node::Apply(Function::Select, choice) = graph.node(kernel.root) else {
        return None;
    };
    let (condition, value) = (choice[0], choice[1]);
    let meet =
        |(a, b): (usize, usize)| positions[a] == positions[b] && tensor.shape[a] == tensor.shape[b];
    if !pairs(graph, condition)?.into_iter().all(meet) {
        return None;
    }
    let Node::Read {
        operand,
        column: 0,
        positions: own,
        otherwise: None,
    } = graph.node(value)
    else {
        return None;
    };
    let at = |own: &NodeId| Some(positions[graph.as_index(*own)?.0 as usize]);
    let own: Option<Vec<NodeId>> = own.iter().map(at).collect();
    let from = operands[*operand as usize];
    (program.tensor(from).dtype == tensor.dtype).then_some((from, own?))
}

/// The pairs of indices that must be equal for a condition to hold, if it says nothing else.
fn pairs(graph: &Graph, condition: NodeId) -> Option<Vec<(usize, usize)>> {
    let (mut pairs, mut open) = (vec![], vec![condition]);
    while let Some(id) = open.pop() {
        match graph.node(id) {
            Node::Apply(Function::And, both) => open.extend(both),
            Node::Apply(Function::Eq, sides) => {
                let index = |side: usize| graph.as_index(sides[side]).map(|i| i.0 as usize);
                pairs.push((index(0)?, index(1)?));
            }
            _ => return None,
        }
    }
    Some(pairs)
}
