//! Element-wise values that one reduction goes through, computed in the reduction.
//!
//! A named tensor is no reason to store it. Where a reduction alone reads it, each element once, and goes through it along other indices than
//! those that it lies by, no block of rows is enough for the reduction, so the tensor would lie in memory whole. Written where they are read, its
//! values never do. Nothing is computed twice, and no bit changes. What may stop the run stays, under its own name; so do the
//! factors of a product of matrices, which the rules look into. Must not know placements.
//!
//! ```text
//! t: f32[9, 4] = [i: 9, k: 4] exp(x[i, k]);  y: f32[4] = [k: 4 | i: 9] max t[i, k]   ->   y: f32[4] = [k: 4 | i: 9] max exp(x[i, k])
//! ```

use crate::einsum::{BlockId, Definition, Program, Rewriting, Tensor, TensorId, canonical};
use crate::rules::may_fault;
use ein_plan::{Graph, Kernel, Node, NodeId};
use std::collections::HashMap;

/// The most nodes of a statement that takes others in.
const MOST_NODES: usize = 128;

/// Returns the program in which such reductions compute what they go through. What nothing reads any more is still there.
pub fn written_in(program: &Program) -> Program {
    let readers = readers(program);
    let mut rewriting = Rewriting::of(program);
    for (at, tensor) in (0..).zip(&program.tensors) {
        let mut tensor = rewriting.copy(tensor);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition {
            while let Some((operand, inner)) =
                taken_in(&rewriting, &readers, (kernel, tensor.block), operands)
            {
                (*kernel, *operands) = with(kernel, operands, operand, inner);
            }
        }
        rewriting.place(TensorId(at), tensor);
    }
    rewriting.finish()
}

/// By name of a tensor: how many statements, values of blocks and outputs are made of it.
fn readers(program: &Program) -> HashMap<String, usize> {
    let mut counts = vec![0; program.tensors.len()];
    let all = (0u32..program.tensors.len() as u32).map(TensorId);
    let made_of = all.flat_map(|id| program.made_of(id));
    for id in made_of.chain(program.outputs.iter().map(|output| output.tensor)) {
        counts[id.0 as usize] += 1;
    }
    let names = program.tensors.iter().map(|tensor| tensor.name.clone());
    names.zip(counts).collect()
}

/// A statement and what it reads.
type Inner = (Kernel, Vec<TensorId>);

/// The first operand of a statement that is to be computed in it.
fn taken_in(
    rewriting: &Rewriting,
    readers: &HashMap<String, usize>,
    (kernel, block): (&Kernel, Option<BlockId>),
    operands: &[TensorId],
) -> Option<(u32, Inner)> {
    let reduces = kernel.reduction.is_some() && kernel.output_rank > 0;
    let plain = kernel.guard.is_none() && kernel.library().is_none();
    if !reduces || !plain || kernel.is_product() {
        return None;
    }
    let program = rewriting.result();
    (0u32..).zip(operands).find_map(|(number, id)| {
        let tensor = program.tensor(*id);
        let (inner, read) = element_wise(tensor)?;
        let once = readers.get(&tensor.name) == Some(&1) && tensor.block == block;
        let small = kernel.graph.len() + inner.graph.len() <= MOST_NODES;
        let wanted = once && small && goes_across(kernel, number);
        wanted.then(|| (number, (inner.clone(), read.to_vec())))
    })
}

/// The statement of a tensor, if each of its elements is a value by itself that cannot stop the run.
pub(super) fn element_wise(tensor: &Tensor) -> Option<(&Kernel, &[TensorId])> {
    let Definition::Statement { kernel, operands } = &tensor.definition else {
        return None;
    };
    let by_itself = kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.library().is_none()
        && kernel.graph.dtype(kernel.root) == tensor.dtype;
    (by_itself && !may_fault(kernel)).then_some((kernel, operands))
}

/// Returns whether a kernel reads an operand once at each of its points, all of them inside, and not by the rows of its result.
fn goes_across(kernel: &Kernel, operand: u32) -> bool {
    let all_points = |positions: &[NodeId]| {
        positions.len() == kernel.indices.len() && kernel.rows_read(positions) == 0
    };
    is_read_plainly(kernel, operand, all_points)
}

/// Returns whether a kernel reads an operand along indices alone, each once and all of them inside, with positions that meet a condition.
pub(super) fn is_read_plainly(
    kernel: &Kernel,
    operand: u32,
    also: impl Fn(&[NodeId]) -> bool,
) -> bool {
    kernel.graph.iter().all(|(_, node, _)| {
        let Node::Read {
            operand: read,
            positions,
            otherwise,
            ..
        } = node
        else {
            return true;
        };
        if *read != operand {
            return true;
        }
        if otherwise.is_some() {
            return false;
        }
        let mut seen = 0u128;
        for position in positions {
            match kernel.graph.as_index(*position) {
                Some(index) if index.0 < 128 && seen >> index.0 & 1 == 0 => seen |= 1 << index.0,
                _ => return false,
            }
        }
        also(positions)
    })
}

/// The statement that computes one of its operands.
pub(super) fn with(
    kernel: &Kernel,
    operands: &[TensorId],
    operand: u32,
    (inner, read): Inner,
) -> (Kernel, Vec<TensorId>) {
    let mut operands = operands.to_vec();
    let mut described = kernel.operands.clone();
    let first = operands.len() as u32;
    operands.extend(&read);
    described.extend(inner.operands.iter().cloned());
    let mut outer = kernel.clone().rewritten(|graph, _, node, dtype| {
        let Node::Read {
            operand: of,
            positions,
            ..
        } = &node
        else {
            return graph.add(node, dtype);
        };
        match *of == operand {
            true => value_at(graph, &inner, positions, first),
            false => graph.add(node, dtype),
        }
    });
    outer.operands = described;
    canonical::statement(outer, &operands)
}

/// The value of a statement at the positions, nodes of a graph in which its operands are numbered from `first` on.
fn value_at(graph: &mut Graph, inner: &Kernel, positions: &[NodeId], first: u32) -> NodeId {
    let moved = graph.append(&inner.graph, |graph, _, node, dtype| match node {
        Node::Index(index) => positions[index.0 as usize],
        Node::Read {
            operand,
            column,
            positions,
            otherwise,
        } => {
            let node = Node::Read {
                operand: operand + first,
                column,
                positions,
                otherwise,
            };
            graph.add(node, dtype)
        }
        node => graph.add(node, dtype),
    });
    moved[inner.root.0 as usize]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::parse::parse;

    /// The statement of `y` in the program.
    fn y(text: &str) -> String {
        let program = written_in(&parse(text).unwrap());
        let found = program.tensors.iter().find(|tensor| tensor.name == "y");
        program.tensor_text(found.unwrap())
    }

    const HEAD: &str = "input x: f32[9, 4] = unbound\nt: f32[9, 4] = [i: 9, k: 4] exp(x[i, k])\n";

    #[test]
    fn what_lies_across_a_reduction_is_computed_in_it() {
        let across = format!("{HEAD}y: f32[4] = [k: 4 | i: 9] max t[i, k] * 2.0\noutput y");
        assert_eq!(
            y(&across),
            "y: f32[4] = [k: 4 | i: 9] max exp(x[i, k]) * 2.0"
        );
    }

    #[test]
    fn rows_and_what_others_read_stay() {
        for (reader, outputs) in [
            // Some of the points are outside.
            ("y: f32[7] = [k: 7 | i: 9] max t[i, k] else 0.0", "output y"),
            ("y: f32[9] = [i: 9 | k: 4] max t[i, k]", "output y"),
            (
                "y: f32[4] = [k: 4 | i: 9] max t[i, k]",
                "output y\noutput t",
            ),
        ] {
            let text = format!("{HEAD}{reader}\n{outputs}");
            assert_eq!(y(&text), reader);
        }
    }
}
