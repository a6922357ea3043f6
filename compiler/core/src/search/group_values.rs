//! Values of a group, read at the place of each point.
//!
//! Where data say which group a point is in, what a reduction over the points of a group reads of the group, such as its mean, is read at the point's
//! place. Points are then gone through once, and not once for each group. Must not know placements.
//!
//! ```text
//! v: f32[70] = [g: 70 | n: 900] sum (x[n] - m[g]) * (x[n] - m[g]) if at[n] == g
//! v: f32[70] = [g: 70 | n: 900] sum (x[n] - (m[at[n]] else 0.0)) * (x[n] - (m[at[n]] else 0.0)) if at[n] == g
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{may_fault_by, with_value};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{Function, IndexId, Kernel, Node, NodeId};

/// Returns the program in which points read what they need of their group.
pub fn at_places(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| {
        let kernel = at_place(&guarded(statement.kernel)?)?;
        Some(canonical::statement(kernel, statement.operands))
    })
}

/// The kernel with all that it reads of a group read at the places of points, if a group's points are then gone through alone.
pub(super) fn at_place(kernel: &Kernel) -> Option<Kernel> {
    // The bits of a number tell so many indices apart.
    let few = kernel.indices.len() < 128;
    if !few || !kernel.passed_over().is_empty() {
        return None;
    }
    let conditions = conjuncts(&kernel.graph, kernel.guard?).into_iter();
    let mut placed = conditions.filter_map(|condition| {
        let (group, place) = placed(kernel, condition)?;
        if stops(kernel, group) {
            return None;
        }
        let placed = replaced(kernel, condition, group, place);
        (!placed.passed_over().is_empty()).then_some(placed)
    });
    placed.next()
}

/// Returns true if what depends on an index may stop the run: another value in the place of the index would hide that, or do it elsewhere.
pub(super) fn stops(kernel: &Kernel, index: IndexId) -> bool {
    let graph = &kernel.graph;
    let depends = graph.dependencies();
    let mut nodes = graph.iter();
    nodes.any(|(id, node, _)| {
        let stops = match node {
            Node::Read {
                positions,
                otherwise: None,
                ..
            } => positions.iter().any(|at| graph.as_affine(*at).is_none()),
            Node::Apply(..) => may_fault_by(kernel, id),
            _ => false,
        };
        stops && depends[id.0 as usize] >> index.0 & 1 == 1
    })
}

/// The output index that a condition gives a value, and the value, which data say.
fn placed(kernel: &Kernel, condition: NodeId) -> Option<(IndexId, NodeId)> {
    let graph = &kernel.graph;
    let Node::Apply(Function::Eq, sides) = graph.node(condition) else {
        return None;
    };
    let depends = graph.dependencies();
    let of_data = |place: NodeId| graph.as_affine(place).is_none();
    let both = [(sides[0], sides[1]), (sides[1], sides[0])];
    both.into_iter().find_map(|(side, place)| {
        let group = graph.as_index(side)?;
        let is_output = group.0 < kernel.output_rank;
        let others = depends[place.0 as usize] >> group.0 & 1 == 0;
        (is_output && others && of_data(place)).then_some((group, place))
    })
}

/// The kernel with the place in the stead of the group everywhere but in the condition that says that they are equal. A place may be none of a group, so
/// reads there have another value.
fn replaced(kernel: &Kernel, condition: NodeId, group: IndexId, place: NodeId) -> Kernel {
    let mut placed = kernel.clone();
    let (graph, kept, moved) = with_value(&kernel.graph, group, place);
    let conditions = kernel
        .guard
        .map_or(vec![], |guard| conjuncts(&kernel.graph, guard));
    placed.graph = graph;
    placed.root = moved[kernel.root.0 as usize];
    placed.guard = None;
    for own in conditions {
        placed.restrict(match own == condition {
            true => kept[own.0 as usize],
            false => moved[own.0 as usize],
        });
    }
    placed.canonical()
}
