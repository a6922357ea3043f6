//! The conditions of a kernel's guard, and the indices that they give a value.
//!
//! The loops of a scatter solve the condition of such an index where others would walk through all its values; those of a running reduction go
//! along an index that the guard compares with another. Must not know how the points are gone through.
//!
//! ```text
//! [m | n] where m == near[n] and n < 5   ->   m is near[n]; n < 5 is left
//! ```

use super::Scan;
use super::facts::MOST_INDICES;
use crate::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};

/// Output indices that the guard gives a value, with the expressions of the values; and the rest of the guard.
pub struct Solved {
    /// Each output index with the expression of its value.
    pub places: Vec<(usize, NodeId)>,
    /// The other conditions.
    pub rest: Vec<NodeId>,
}

/// What the guard says of the output indices that a scatter solves, as the plan has them.
pub fn solved(kernel: &Kernel, indices: &[IndexId]) -> Solved {
    let graph = &kernel.graph;
    let mut rest = kernel.guard.map_or(vec![], |guard| conjuncts(graph, guard));
    let mut places = vec![];
    for index in indices {
        let found = rest.iter().enumerate().find_map(|(at, id)| {
            let Node::Apply(Function::Eq, sides) = graph.node(*id) else {
                return None;
            };
            let is = |side: NodeId| graph.as_index(side) == Some(*index);
            let place = [(sides[0], sides[1]), (sides[1], sides[0])];
            let place = place.into_iter().find(|(side, _)| is(*side));
            place.map(|(_, place)| (at, place))
        });
        if let Some((at, place)) = found {
            rest.remove(at);
            places.push((index.0 as usize, place));
        }
    }
    Solved { places, rest }
}

/// The output indices that the guard gives a value: neither the value at a point nor another condition depends on them.
fn solve(kernel: &Kernel) -> Option<Vec<IndexId>> {
    let graph = &kernel.graph;
    let mut rest = conjuncts(graph, kernel.guard?);
    let depends = graph.dependencies();
    let of_value = depends[kernel.root.0 as usize];
    let mut places: Vec<IndexId> = vec![];
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
                places.push(IndexId(*v));
                taken |= bit;
                held |= of_other | bit;
                return false;
            }
        }
        true
    });
    // The rest of the guard is looked at before the places are known.
    let clear = rest.iter().all(|id| depends[id.0 as usize] & taken == 0);
    (clear && !places.is_empty()).then_some(places)
}

/// The conditions that remain where a running reduction takes in the points on one side of each output point.
pub fn besides(kernel: &Kernel, scan: &Scan) -> Vec<NodeId> {
    let graph = &kernel.graph;
    let mut conditions = kernel.guard.map_or(vec![], |guard| conjuncts(graph, guard));
    let compares = |id: &NodeId| comparison(kernel, *id) == Some(*scan);
    let at = conditions.iter().position(compares);
    at.into_iter().for_each(|at| {
        conditions.remove(at);
    });
    conditions
}

/// The smaller and the larger side of `a < b`, `a <= b`, `a > b` or `a >= b`, and whether they may be equal.
pub(super) fn ordered(graph: &Graph, condition: NodeId) -> Option<(NodeId, NodeId, bool)> {
    let Node::Apply(function, sides) = graph.node(condition) else {
        return None;
    };
    Some(match function {
        Function::Lt => (sides[0], sides[1], false),
        Function::Le => (sides[0], sides[1], true),
        Function::Gt => (sides[1], sides[0], false),
        Function::Ge => (sides[1], sides[0], true),
        _ => return None,
    })
}

/// `m < n`, `m <= n`, `m > n` or `m >= n` of a reduced index and an output index.
pub fn comparison(kernel: &Kernel, condition: NodeId) -> Option<Scan> {
    let graph = &kernel.graph;
    let (small, large, inclusive) = ordered(graph, condition)?;
    let (small, large) = (graph.as_index(small)?, graph.as_index(large)?);
    let is_output = |index: IndexId| index.0 < kernel.output_rank;
    let suffix = is_output(small);
    (suffix != is_output(large)).then_some(Scan {
        output: if suffix { small } else { large },
        reduced: if suffix { large } else { small },
        suffix,
        inclusive,
    })
}

impl Kernel {
    /// The output indices that the loops of a scatter solve: for each value of the other indices the guard leaves one
    /// value of these. Empty if the kernel is no scatter.
    pub fn scattered(&self) -> Vec<IndexId> {
        use Reduction as R;
        let adds = matches!(self.reduction, Some(R::Sum | R::Prod | R::Max | R::Min))
            && self.graph.dtype(self.root) != DType::Bool;
        if !adds || self.indices.len() > MOST_INDICES {
            return vec![];
        }
        solve(self).unwrap_or_default()
    }

    /// The reduced indices of which the guard leaves one value for each value of the other indices, and that one not the
    /// same at all points ([`Kernel::fixed`]). Empty if what is reduced is the number of an index.
    pub fn looked_up(&self) -> Vec<IndexId> {
        let chooses = self.reduction.is_none_or(Reduction::is_arg);
        let Some(guard) = self
            .guard
            .filter(|_| !chooses && self.indices.len() <= MOST_INDICES)
        else {
            return vec![];
        };
        let graph = &self.graph;
        let depends = graph.dependencies();
        let mut taken: u128 = self.fixed().iter().map(|(index, _)| 1 << index.0).sum();
        // Indices that the values of others follow from.
        let mut held = 0u128;
        let mut found = vec![];
        for condition in conjuncts(graph, guard) {
            let Node::Apply(Function::Eq, sides) = graph.node(condition) else {
                continue;
            };
            for (side, other) in [(sides[0], sides[1]), (sides[1], sides[0])] {
                let Some(index) = graph.as_index(side) else {
                    continue;
                };
                let (bit, of_other) = (1u128 << index.0, depends[other.0 as usize]);
                let free = (taken | held) & bit == 0 && of_other & (taken | bit) == 0;
                if index.0 >= self.output_rank && free {
                    found.push(index);
                    taken |= bit;
                    held |= of_other;
                    break;
                }
            }
        }
        found
    }

    /// The first comparison of a reduced index with an output index on which neither the value at a point nor another
    /// condition depends.
    pub(super) fn compared(&self) -> Option<Scan> {
        let graph = &self.graph;
        let all = conjuncts(graph, self.guard?);
        let depends = graph.dependencies();
        all.iter().enumerate().find_map(|(at, id)| {
            let scan = comparison(self, *id)?;
            let bit = 1u128 << scan.output.0;
            let holds = |id: &NodeId| depends[id.0 as usize] & bit != 0;
            let mut rest = all.iter().enumerate().filter(|(other, _)| *other != at);
            (!holds(&self.root) && !rest.any(|(_, id)| holds(id))).then_some(scan)
        })
    }

    /// The running reduction that the kernel is: along its output index, each result is that of its neighbour and a little more.
    pub fn scanned(&self) -> Option<Scan> {
        if self.reduction.is_none() || self.indices.len() > MOST_INDICES {
            return None;
        }
        let scan = self.compared()?;
        // The number of a value is known from the scanned index alone.
        let reduced = self
            .indices
            .iter()
            .enumerate()
            .skip(self.output_rank as usize);
        let mut others = reduced.filter(|(at, _)| *at != scan.reduced.0 as usize);
        let several = others.any(|(_, index)| index.extent != 1);
        (!several || !self.reduction.is_some_and(Reduction::is_arg)).then_some(scan)
    }

    /// The index whose value a check gives ([`Function::Within`]), and the dimension of an operand that is read there.
    pub fn checked(&self, check: NodeId) -> Option<(IndexId, u32, u32)> {
        let conditions = conjuncts(&self.graph, self.guard?);
        let index = conditions.into_iter().find_map(|condition| {
            let Node::Apply(Function::Eq, sides) = self.graph.node(condition) else {
                return None;
            };
            let other = match sides[0] == check {
                true => sides[1],
                false => sides[0],
            };
            let checks = sides.contains(&check);
            self.graph.as_index(other).filter(|_| checks)
        })?;
        self.graph.reads().find_map(|(operand, positions)| {
            let is = |at: &NodeId| self.graph.as_index(*at) == Some(index);
            let dimension = positions.iter().position(is)?;
            Some((index, operand, dimension as u32))
        })
    }
}

/// The kernel that looks at the value which the guard names of some reduced indices, and the ranges of that: within the
/// given ones. Nodes keep their numbers.
pub fn looking_up(
    kernel: &Kernel,
    indices: &[IndexId],
    ranges: &[(u64, u64)],
) -> (Kernel, Vec<(u64, u64)>) {
    let solved = solved(kernel, indices);
    let mut looking = kernel.clone();
    let graph = &mut looking.graph;
    let mut ranges = ranges.to_vec();
    let mut conditions = vec![];
    let mut places: Vec<(IndexId, NodeId)> = vec![];
    for (index, place) in &solved.places {
        let (start, length) = ranges[*index];
        ranges[*index].1 = 1;
        let mut number = |value: u64| {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            graph.add(Node::Constant(Scalar::Int(value)), DType::I64)
        };
        let (first, last) = (number(start), number(start + length - 1));
        for (function, end) in [(Function::Ge, first), (Function::Le, last)] {
            conditions.push(graph.add(Node::Apply(function, vec![*place, end]), DType::Bool));
        }
        // Where the value is not among the range, the guard says so; the operands are read inside all the same.
        let place = Node::Apply(Function::Max, vec![*place, first]);
        let place = graph.add(place, DType::I64);
        let place = graph.add(Node::Apply(Function::Min, vec![place, last]), DType::I64);
        places.push((IndexId(*index as u32), place));
    }
    let mut at: Vec<Option<NodeId>> = vec![None; kernel.graph.len()];
    looking.root = replaced(&kernel.graph, kernel.root, &places, graph, &mut at);
    for condition in &solved.rest {
        conditions.push(replaced(&kernel.graph, *condition, &places, graph, &mut at));
    }
    let both = |a, b| Node::Apply(Function::And, vec![a, b]);
    let guard = conditions.into_iter();
    let guard = guard.reduce(|guard, next| graph.add(both(guard, next), DType::Bool));
    looking.guard = guard;
    (looking, ranges)
}

/// A node with the values of some indices in their places.
fn replaced(
    from: &Graph,
    id: NodeId,
    places: &[(IndexId, NodeId)],
    to: &mut Graph,
    known: &mut [Option<NodeId>],
) -> NodeId {
    let mut needed = vec![false; id.0 as usize + 1];
    needed[id.0 as usize] = true;
    for at in (0..needed.len()).rev().filter(|at| known[*at].is_none()) {
        if needed[at] {
            let node = from.node(NodeId(at as u32));
            node.arguments().for_each(|a| needed[a.0 as usize] = true);
        }
    }
    for at in (0..needed.len()).filter(|at| needed[*at]) {
        if known[at].is_some() {
            continue;
        }
        let node = from.node(NodeId(at as u32));
        let place = match node {
            Node::Index(index) => places.iter().find(|(of, _)| of == index),
            _ => None,
        };
        known[at] = Some(match place {
            Some((_, place)) => *place,
            None => {
                let node = node.map(|a| known[a.0 as usize].unwrap_or(a));
                to.add(node, from.dtype(NodeId(at as u32)))
            }
        });
    }
    known[id.0 as usize].unwrap_or(id)
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
