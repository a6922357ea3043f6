//! What is added up of a row: its elements, or how far they are from one number, or the squares of either.
//!
//! Must not know reductions.
//!
//! ```text
//! (a0[n, k] - a1[n])^2   ->   elements of a0, row by row; less a1[n]; squared
//! ```

use crate::lie::{Lie, lie};
use crate::program::Place;
use ein_plan::{Function, Graph, Kernel, Node, NodeId};

/// The terms of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The elements.
    pub from: Lie,
    /// What is subtracted from those of a row.
    pub less: Option<Lie>,
    pub squared: bool,
}

impl Terms {
    /// Those of a kernel over `ranges`, its operands lying at `places`. Points of it cannot fault.
    pub(super) fn of(kernel: &Kernel, ranges: &[(i64, i64)], places: &[Place]) -> Option<Terms> {
        let graph = &kernel.graph;
        let dtype = graph.dtype(kernel.root);
        let read = |id: NodeId| lie(kernel, id, dtype, ranges, places);
        let (id, squared) = match square(graph, kernel.root) {
            Some(of) => (of, true),
            None => (kernel.root, false),
        };
        if let Some(from) = read(id) {
            return Some(Terms {
                from,
                less: None,
                squared,
            });
        }
        let Node::Apply(Function::Sub, of) = graph.node(value(graph, id)) else {
            return None;
        };
        let (from, less) = (read(of[0])?, read(of[1])?);
        let same = less.steps[kernel.output_rank as usize..]
            .iter()
            .all(|step| *step == 0);
        same.then_some(Terms {
            from,
            less: Some(less),
            squared,
        })
    }

    /// Whether they are the elements themselves.
    pub(super) fn plain(&self) -> bool {
        self.less.is_none() && !self.squared
    }
}

/// A node without what does nothing to its value.
fn value(graph: &Graph, mut id: NodeId) -> NodeId {
    while let Node::Apply(Function::Stop, of) = graph.node(id) {
        id = of[0];
    }
    id
}

/// What a node is the square of.
fn square(graph: &Graph, id: NodeId) -> Option<NodeId> {
    let Node::Apply(function, of) = graph.node(value(graph, id)) else {
        return None;
    };
    let two = |id: NodeId| matches!(graph.node(id), Node::Constant(two) if two.as_f64() == 2.0);
    match function {
        Function::Mul if of[0] == of[1] => Some(of[0]),
        Function::Pow if two(of[1]) => Some(of[0]),
        _ => None,
    }
}
