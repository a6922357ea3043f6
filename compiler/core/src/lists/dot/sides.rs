//! The two rows that a sum of products is of, what stands beside them, and the conditions on them.
//!
//! Must not know how rows lie in a list.
//!
//! ```text
//! [e | k: 8] sum where(A.at1[e] < k, A[A.at1[e], k] * A[A.at0[e], k] * w[e], 0.0)
//! sides A[A.at1[e], k] if A.at1[e] < k, and A[A.at0[e], k]; fixed w[e]
//! ```

use crate::einsum::TensorId;
use crate::lists::{Lists, PatternId, fill};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};

/// The rows of a list that a factor reads.
pub struct Side {
    pub pattern: PatternId,
    /// The dimension of the pattern along which is summed.
    pub along: usize,
    /// The number of the row, a node of the statement.
    pub row: NodeId,
    /// The reads of the list: each with the tensor that has the values.
    pub reads: Vec<(NodeId, TensorId)>,
    /// The number that each read gives where nothing is listed.
    fills: Vec<Scalar>,
    /// The factors, which are multiplied.
    pub factors: Vec<NodeId>,
    /// Factors that depend on the summed index alone.
    pub weights: Vec<NodeId>,
    /// The dimension of the pattern that the summed index stands for.
    pub summed: usize,
    /// Conditions on the number of the row and the position along it: elements that break one are left out.
    pub conditions: Vec<NodeId>,
}

impl Side {
    /// The side whose rows are those along which this one is summed.
    pub fn turned(self) -> Side {
        Side {
            along: 1 - self.along,
            ..self
        }
    }
}

/// A sum of products of two rows.
pub struct Dot {
    pub sides: [Side; 2],
    /// Factors that all terms share.
    pub fixed: Vec<NodeId>,
    /// The sum is 0 where one of these does not hold.
    pub conditions: Vec<NodeId>,
}

impl Lists {
    /// A sum as one of products of two rows, along an index.
    pub(super) fn dot(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        along: IndexId,
    ) -> Option<Dot> {
        let (graph, depends) = (&kernel.graph, kernel.graph.dependencies());
        let is_fixed = |id: NodeId| depends[id.0 as usize] >> along.0 & 1 == 0;
        let (mut sides, mut fixed): (Vec<Side>, Vec<NodeId>) = (vec![], vec![]);
        let (mut conditions, mut weights, mut open) = (vec![], vec![], vec![kernel.root]);
        while let Some(id) = open.pop() {
            match graph.node(id) {
                _ if is_fixed(id) => fixed.push(id),
                Node::Apply(Function::Mul, of) => open.extend([of[1], of[0]]),
                Node::Apply(Function::Select, of)
                    if is_zero(graph, of[2]) && !reads_along(graph, of[0], &is_fixed) =>
                {
                    conditions.extend(conjuncts(graph, of[0]));
                    open.push(of[1]);
                }
                _ if depends[id.0 as usize] == 1 << along.0
                    && !self.reads_list(kernel, operands, id) =>
                {
                    weights.push(id);
                }
                _ => {
                    let side = self.side((kernel, operands), &depends, along, id)?;
                    let same = |other: &&mut Side| {
                        (other.pattern, other.along, other.row)
                            == (side.pattern, side.along, side.row)
                    };
                    match sides.iter_mut().find(same) {
                        None => sides.push(side),
                        Some(known) => {
                            known.reads.extend(side.reads);
                            known.fills.extend(side.fills);
                            known.factors.extend(side.factors);
                        }
                    }
                }
            }
        }
        let mut outside = vec![];
        for condition in conditions {
            let binds =
                |side: &&mut Side| is_of_row(graph, condition, &is_fixed, (side.row, along));
            match is_fixed(condition) {
                true => outside.push(condition),
                false => (sides.iter_mut().find(binds)?).conditions.push(condition),
            }
        }
        let is_zero_elsewhere = |side: &Side| {
            let values = fill::values(&kernel.graph, |id| {
                let read = side.reads.iter().position(|(read, _)| *read == id)?;
                Some(side.fills[read])
            });
            let factors = side.factors.iter().map(|id| values[id.0 as usize]);
            let numbers: Option<Vec<f64>> = (factors.map(|value| Some(value?.as_f64()))).collect();
            numbers.is_some_and(|numbers| {
                numbers.contains(&0.0) && numbers.iter().all(|number| number.is_finite())
            })
        };
        // Statements with the same factors in another order read the same sums.
        sides.sort_by_key(|side| (side.pattern, side.along, side.row));
        let mut sides: [Side; 2] = sides.try_into().ok()?;
        let first = &sides[0];
        let extent = kernel.indices[along.0 as usize].extent;
        if !weights.is_empty() && self.pattern(first.pattern).shape[first.summed] > extent {
            return None;
        }
        sides[0].weights = weights;
        let dot = Dot {
            sides,
            fixed,
            conditions: outside,
        };
        dot.sides.iter().all(is_zero_elsewhere).then_some(dot)
    }

    /// Returns whether a factor depends on a list.
    fn reads_list(&self, kernel: &Kernel, operands: &[TensorId], factor: NodeId) -> bool {
        let mut open = vec![factor];
        while let Some(id) = open.pop() {
            let node = kernel.graph.node(id);
            if let Node::Read { operand, .. } = node
                && self.lists.contains_key(&operands[*operand as usize])
            {
                return true;
            }
            open.extend(node.arguments());
        }
        false
    }

    /// The side that a factor is of: all that it reads is rows of lists of one pattern, at the same number.
    fn side(
        &self,
        (kernel, operands): (&Kernel, &[TensorId]),
        depends: &[u128],
        along: IndexId,
        factor: NodeId,
    ) -> Option<Side> {
        let mut side: Option<Side> = None;
        let mut open = vec![factor];
        while let Some(id) = open.pop() {
            match kernel.graph.node(id) {
                Node::Constant(_) => {}
                Node::Convert(from) => open.push(*from),
                Node::Apply(_, arguments) => open.extend(arguments),
                Node::Index(_) => return None,
                Node::Read {
                    operand,
                    positions,
                    otherwise,
                    ..
                } => {
                    let list = self.lists.get(&operands[*operand as usize])?;
                    let pattern = self.pattern(list.pattern);
                    let [Some(first), Some(second)] = list.dims[..] else {
                        return None;
                    };
                    // Places that fill a list up do not ascend. Outside there may be nothing but what is not listed.
                    let is_fill = |id: NodeId| match kernel.graph.node(id) {
                        Node::Constant(value) => fill::is_same(*value, list.fill),
                        _ => false,
                    };
                    if pattern.has_more || !otherwise.is_none_or(is_fill) {
                        return None;
                    }
                    let is_along = |at: usize| kernel.graph.as_index(positions[at]) == Some(along);
                    let (at, row) = match (is_along(0), is_along(1)) {
                        (true, false) => (first, positions[1]),
                        (false, true) => (second, positions[0]),
                        _ => return None,
                    };
                    if depends[row.0 as usize] >> along.0 & 1 == 1 {
                        return None;
                    }
                    let found = side.get_or_insert(Side {
                        pattern: list.pattern,
                        along: at,
                        row,
                        reads: vec![],
                        fills: vec![],
                        factors: vec![factor],
                        weights: vec![],
                        summed: at,
                        conditions: vec![],
                    });
                    if (found.pattern, found.along, found.row) != (list.pattern, at, row) {
                        return None;
                    }
                    found.reads.push((id, list.values));
                    found.fills.push(list.fill);
                }
            }
        }
        side
    }
}

/// Returns whether a node is the constant 0.
fn is_zero(graph: &Graph, id: NodeId) -> bool {
    let zero = fill::zero(graph.dtype(id));
    matches!(graph.node(id), Node::Constant(value) if fill::is_same(*value, zero))
}

/// Returns whether an expression reads a tensor at positions that are not fixed.
fn reads_along(graph: &Graph, id: NodeId, is_fixed: &impl Fn(NodeId) -> bool) -> bool {
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        match graph.node(id) {
            _ if is_fixed(id) => {}
            Node::Read { .. } => return true,
            node => open.extend(node.arguments()),
        }
    }
    false
}

/// Returns whether an expression depends on the number of a row and on an index alone.
fn is_of_row(
    graph: &Graph,
    id: NodeId,
    is_fixed: &impl Fn(NodeId) -> bool,
    (row, along): (NodeId, IndexId),
) -> bool {
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        match graph.node(id) {
            _ if id == row => {}
            Node::Constant(_) => {}
            Node::Index(index) if *index == along => {}
            Node::Apply(..) | Node::Convert(_) if !is_fixed(id) => {
                open.extend(graph.node(id).arguments());
            }
            _ => return false,
        }
    }
    true
}
