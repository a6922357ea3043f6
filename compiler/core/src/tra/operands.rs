//! The parts of each operand that a kernel reads when some of its indices are cut.
//!
//! Reads of one operand that want different parts of it become different operands ([`super::reads`] says which parts). Must not know
//! relations.
//!
//! ```text
//! sum a0[i, k] * a0[j, k]   with i cut   gives   sum a0[i, k] * a1[j, k], a0 cut along i, a1 whole
//! a0[i] + a0[i - 1]         with i cut   gives   a0[i] + a0[i - 1], a0 in windows i-1..i
//! ```

use super::reads::{Part, Windows, merged, parts};
use crate::einsum::nodes::needed;
use ein_plan::{Graph, IndexId, Kernel, Node, NodeId};

/// The ways in which operands are read: the operand, and by dimension the index whose bare name reads its whole extent.
pub fn bare_reads(kernel: &Kernel) -> Vec<(u32, Vec<Option<IndexId>>)> {
    let all_cut = vec![2; kernel.indices.len()];
    let (_, reads) = split_operands(kernel, &all_cut, &Windows::None);
    let indices = |parts: Vec<Part>| parts.iter().map(Part::piece).collect();
    let reads = reads.into_iter();
    reads
        .map(|(operand, parts)| (operand, indices(parts)))
        .collect()
}

/// The kernel with one operand for each (operand, parts) pair that its reads need, and those pairs: by dimension, the part that a
/// joined tuple holds. An index with `pieces` above 1 is cut. Reads that nothing needs are dropped, and operands with them.
pub fn split_operands(
    kernel: &Kernel,
    pieces: &[u32],
    windows: &Windows<'_>,
) -> (Kernel, Vec<(u32, Vec<Part>)>) {
    let mut graph = Graph::default();
    let roots: Vec<NodeId> = kernel.guard.into_iter().chain([kernel.root]).collect();
    let needed = needed(&kernel.graph, &roots);
    let mut operands: Vec<(u32, Vec<Part>)> = vec![];
    for (id, node, _) in kernel.graph.iter() {
        if let Node::Read {
            operand, positions, ..
        } = node
            && needed[id.0 as usize]
        {
            merged(
                &mut operands,
                *operand,
                parts(kernel, *operand, positions, pieces, windows),
            );
        }
    }
    let mut moved: Vec<Option<NodeId>> = vec![None; kernel.graph.len()];
    for (id, node, dtype) in kernel.graph.iter() {
        if !needed[id.0 as usize] {
            continue;
        }
        // Arguments stand before their users and are needed where the user is.
        let at = |id: &NodeId| moved[id.0 as usize].unwrap_or(*id);
        let node = match node {
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => {
                let own = parts(kernel, *operand, positions, pieces, windows);
                let mut holding = operands.iter();
                let number = holding.position(|(other, held)| {
                    let mut pairs = held.iter().zip(&own);
                    other == operand && pairs.all(|(held, part)| held.holds(part))
                });
                // Each read has been merged into one of them.
                let number = number.unwrap_or(0);
                Node::Read {
                    operand: number as u32,
                    column: *column,
                    positions: positions.iter().map(at).collect(),
                    otherwise: otherwise.as_ref().map(at),
                }
            }
            Node::Apply(function, arguments) => {
                Node::Apply(*function, arguments.iter().map(at).collect())
            }
            Node::Convert(argument) => Node::Convert(at(argument)),
            Node::Constant(_) | Node::Index(_) => node.clone(),
        };
        moved[id.0 as usize] = Some(graph.add(node, dtype));
    }
    let at = |id: NodeId| moved[id.0 as usize].unwrap_or(id);
    let split = Kernel {
        operands: operands
            .iter()
            .map(|(operand, _)| kernel.operands[*operand as usize].clone())
            .collect(),
        graph,
        root: at(kernel.root),
        guard: kernel.guard.map(at),
        ..kernel.clone()
    };
    (split.canonical(), operands)
}
