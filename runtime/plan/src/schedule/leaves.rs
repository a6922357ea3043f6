//! A product taken apart into its factors.
//!
//! Must not know what factors are.
//!
//! ```text
//! -a0[i, k] * a1[k, j] / (a2[i] / 3)   ->   a0[i, k], a1[k, j], 3, and a2[i] divides; negative
//! ```

use crate::{Function, Graph, Node, NodeId};

/// Most factors of a product.
const MOST: usize = 16;

/// The factors of a product, from left to right.
pub struct Leaves {
    /// Each, and whether it divides.
    pub factors: Vec<(NodeId, bool)>,
    /// Whether the product is that of the factors with the other sign.
    pub negative: bool,
}

/// The factors of a node; those that are `whole` are not taken apart. `None` if they are too many.
pub fn leaves(graph: &Graph, root: NodeId, whole: impl Fn(NodeId) -> bool) -> Option<Leaves> {
    let mut leaves = Leaves {
        factors: vec![],
        negative: false,
    };
    // Nodes still to be taken apart, and whether they divide.
    let mut open = vec![(root, false)];
    while let Some((id, divides)) = open.pop() {
        match graph.node(value(graph, id)) {
            _ if whole(id) => leaves.factors.push((id, divides)),
            Node::Apply(Function::Mul, of) => open.extend([(of[1], divides), (of[0], divides)]),
            Node::Apply(Function::Div, of) => open.extend([(of[1], !divides), (of[0], divides)]),
            Node::Apply(Function::Neg, of) => {
                leaves.negative ^= true;
                open.push((of[0], divides));
            }
            _ => leaves.factors.push((id, divides)),
        }
        if leaves.factors.len() + open.len() > MOST {
            return None;
        }
    }
    Some(leaves)
}

/// The node that has a node's value: what stops derivatives does nothing to it.
pub fn value(graph: &Graph, mut id: NodeId) -> NodeId {
    while let Node::Apply(Function::Stop, of) = graph.node(id) {
        id = of[0];
    }
    id
}
