//! The parts of each operand that a kernel reads when some of its indices are cut.
//!
//! An operand's dimension is cut where it is read by nothing but the bare name of a cut index over the whole extent.
//! Reads of one operand that are cut differently become different operands. Must not know relations.
//!
//! ```text
//! sum a0[i, k] * a0[j, k]   with i cut   gives   sum a0[i, k] * a1[j, k], a0 cut along i, a1 whole
//! ```

use ein_plan::{Graph, IndexId, Kernel, Node, NodeId};

/// How a kernel reads an operand on chunks: by dimension, the index whose key cuts it.
pub type Cuts = Vec<Option<IndexId>>;

/// The kernel with one operand for each (operand, cuts) pair that its reads need, and those pairs. Reads that
/// nothing needs are dropped, and operands with them.
pub fn split_operands(kernel: &Kernel, pieces: &[u32]) -> (Kernel, Vec<(u32, Cuts)>) {
    let mut graph = Graph::default();
    let mut operands: Vec<(u32, Cuts)> = vec![];
    let mut moved: Vec<Option<NodeId>> = vec![None; kernel.graph.len()];
    let needed = needed_nodes(kernel);
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
                let cuts = cuts_of_read(kernel, *operand, positions, pieces);
                let entry = (*operand, cuts);
                let number = operands
                    .iter()
                    .position(|o| *o == entry)
                    .unwrap_or_else(|| {
                        operands.push(entry);
                        operands.len() - 1
                    });
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

/// Which nodes the root or the guard needs.
fn needed_nodes(kernel: &Kernel) -> Vec<bool> {
    let mut needed = vec![false; kernel.graph.len()];
    for start in [Some(kernel.root), kernel.guard].into_iter().flatten() {
        needed[start.0 as usize] = true;
    }
    for at in (0..needed.len()).rev() {
        if needed[at] {
            for argument in kernel.graph.node(NodeId(at as u32)).arguments() {
                needed[argument.0 as usize] = true;
            }
        }
    }
    needed
}

/// By dimension, the cut index that reads it by its bare name over its whole extent, and reads no other
/// dimension so.
fn cuts_of_read(kernel: &Kernel, operand: u32, positions: &[NodeId], pieces: &[u32]) -> Cuts {
    let shape = &kernel.operands[operand as usize].shape;
    let bare: Vec<Option<IndexId>> = positions
        .iter()
        .map(|p| kernel.graph.as_index(*p))
        .collect();
    bare.iter()
        .zip(shape)
        .map(|(index, extent)| {
            index.filter(|index| {
                pieces[index.0 as usize] > 1
                    && kernel.indices[index.0 as usize].extent == *extent
                    && bare.iter().filter(|other| **other == Some(*index)).count() == 1
            })
        })
        .collect()
}
