//! What the guard of a kernel says: its conditions, and the output indices that it gives a value.
//!
//! Must not know how the points are gone through.
//!
//! ```text
//! [m | n] where m == near[n] and n < 5   ->   m is near[n]; n < 5 is left
//! ```

use crate::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};

/// Output indices that the guard gives a value, with the expressions of the values; and the rest of the guard.
pub struct Solved {
    /// Each output index with the expression of its value.
    pub places: Vec<(usize, NodeId)>,
    /// The other conditions.
    pub rest: Vec<NodeId>,
}

/// What the guard says of output indices.
pub fn solve(kernel: &Kernel) -> Option<Solved> {
    let graph = &kernel.graph;
    let depends = dependencies(graph);
    let mut rest = conjuncts(graph, kernel.guard?);
    let of_value = depends[kernel.root.0 as usize];
    let mut places: Vec<(usize, NodeId)> = vec![];
    let (mut taken, mut held) = (0u128, of_value);
    rest.retain(|id| {
        let Node::Apply(Function::Eq, sides) = graph.node(*id) else {
            return true;
        };
        for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
            let Node::Index(IndexId(v)) = graph.node(side) else {
                continue;
            };
            let (bit, of_other) = (1u128 << v, depends[other.0 as usize]);
            if *v < kernel.output_rank && held & bit == 0 && of_other & (taken | bit) == 0 {
                places.push((*v as usize, other));
                taken |= bit;
                held |= of_other | bit;
                return false;
            }
        }
        true
    });
    // The rest of the guard is looked at before the places are known.
    let clear = rest.iter().all(|id| depends[id.0 as usize] & taken == 0);
    (clear && !places.is_empty()).then_some(Solved { places, rest })
}

/// The conditions that a guard is made of.
pub fn conjuncts(graph: &Graph, guard: NodeId) -> Vec<NodeId> {
    let (mut all, mut open) = (vec![], vec![guard]);
    while let Some(id) = open.pop() {
        match graph.node(id) {
            Node::Apply(Function::And, a) => open.extend(a.iter().rev()),
            _ => all.push(id),
        }
    }
    all
}

/// The indices that each node depends on.
pub fn dependencies(graph: &Graph) -> Vec<u128> {
    let mut depends: Vec<u128> = Vec::with_capacity(graph.len());
    for (_, node, _) in graph.iter() {
        let all = |ids: &[NodeId]| ids.iter().fold(0, |mask, id| mask | depends[id.0 as usize]);
        depends.push(match node {
            Node::Constant(_) => 0,
            Node::Index(IndexId(i)) => 1 << i,
            Node::Read {
                positions,
                otherwise,
                ..
            } => all(positions) | all(otherwise.as_slice()),
            Node::Apply(_, arguments) => all(arguments),
            Node::Convert(argument) => depends[argument.0 as usize],
        });
    }
    depends
}

/// The kernel's graph with the guard of the points: the rest of the guard, and that the places are among the ranges.
pub fn bounded(kernel: &Kernel, solved: &Solved, ranges: &[(i64, i64)]) -> (Graph, NodeId) {
    let mut graph = kernel.graph.clone();
    let mut all = solved.rest.clone();
    for (v, place) in &solved.places {
        let (start, length) = ranges[*v];
        for (function, end) in [(Function::Ge, start), (Function::Lt, start + length)] {
            let end = graph.add(Node::Constant(Scalar::Int(end)), DType::I64);
            all.push(graph.add(Node::Apply(function, vec![*place, end]), DType::Bool));
        }
    }
    let mut guard = all[0];
    for next in &all[1..] {
        guard = graph.add(Node::Apply(Function::And, vec![guard, *next]), DType::Bool);
    }
    (graph, guard)
}
