//! What is added up of a row: its elements, or how far they are from one number.
//!
//! Must not know reductions.
//!
//! ```text
//! a0[n, k] - a1[n]   ->   elements of a0, row by row; less a1[n]
//! ```

use ein_plan::schedule::access::{Place, StridedAccess, lie};
use ein_plan::schedule::leaves::value;
use ein_plan::{Function, Kernel, Node, NodeId};

/// The terms of a kernel.
#[derive(Clone, Debug)]
pub(super) struct Terms {
    /// The elements.
    pub from: StridedAccess,
    /// What is subtracted from those of a row.
    pub less: Option<StridedAccess>,
}

impl Terms {
    /// Those of a kernel over `ranges`, its operands lying at `places`. Points of it cannot fault.
    pub(super) fn of(kernel: &Kernel, ranges: &[(i64, i64)], places: &[Place]) -> Option<Terms> {
        let graph = &kernel.graph;
        let dtype = graph.dtype(kernel.root);
        let read = |id: NodeId| lie(kernel, id, dtype, ranges, places);
        if let Some(from) = read(kernel.root) {
            return Some(Terms { from, less: None });
        }
        let Node::Apply(Function::Sub, of) = graph.node(value(graph, kernel.root)) else {
            return None;
        };
        let (from, less) = (read(of[0])?, read(of[1])?);
        let same = less.steps[kernel.output_rank as usize..]
            .iter()
            .all(|step| *step == 0);
        same.then_some(Terms {
            from,
            less: Some(less),
        })
    }
}
