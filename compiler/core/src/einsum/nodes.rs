//! The nodes of an expression that others need.
//!
//! Must not know what nodes are needed for.
//!
//! ```text
//! a0[a1[i]] + 2   needs   i, a1[i], a0[a1[i]], 2, and itself; it reads
//! ```

use ein_plan::{Graph, Node, NodeId};

/// By node: whether some nodes are, or need, it.
pub(crate) fn needed(graph: &Graph, nodes: &[NodeId]) -> Vec<bool> {
    let mut needed = vec![false; graph.len()];
    nodes.iter().for_each(|id| needed[id.0 as usize] = true);
    for at in (0..graph.len()).rev() {
        if needed[at] {
            let node = graph.node(NodeId(at as u32));
            node.arguments().for_each(|a| needed[a.0 as usize] = true);
        }
    }
    needed
}

/// Returns true if some nodes depend on what operands hold.
pub(crate) fn read(graph: &Graph, nodes: &[NodeId]) -> bool {
    let needed = needed(graph, nodes);
    let mut all = graph.iter();
    all.any(|(id, node, _)| needed[id.0 as usize] && matches!(node, Node::Read { .. }))
}
