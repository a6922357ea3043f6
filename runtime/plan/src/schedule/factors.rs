//! The two factors of a sum of products, with the conditions of its guard.
//!
//! A condition is asked where the factor that has its indices is read: the factor is 0 at a point that is left out, and so is the term, if the
//! other factor is a finite number there. Conditions of elements of the result are asked when the product is made. Must not know how factors are
//! multiplied.
//!
//! ```text
//! [i, j | k] sum a0[i, k] * a1[k, j] / c         ->   a0[i, k] and a1[k, j]; divided by c
//! [i, j | k] sum a0[i, k] * a1[k, j] if k <= i   ->   where(k <= i, a0[i, k], 0) and a1[k, j], which must be finite
//! [i, k | j] sum a0[i, j] * a1[k, j] if k <= i   ->   a0[i, j] and a1[k, j]; 0 elsewhere
//! ```

use super::guard::conjuncts;
use super::leaves::leaves;
use crate::{DType, Function, Graph, Kernel, Node, NodeId, Scalar};

/// The factors of a body, each with the indices that it depends on: those with indices, and those without.
#[derive(Debug)]
pub struct Factors {
    /// The kernel's graph, with the products of factors that go together.
    pub graph: Graph,
    /// The factor with the most indices.
    pub left: (NodeId, u128),
    /// The other one.
    pub right: (NodeId, u128),
    /// Factors without indices, and whether each divides.
    pub numbers: Vec<(NodeId, bool)>,
    /// True if the product has the other sign.
    pub negative: bool,
    /// Factors of whole rows of the result, and whether each divides.
    pub of_rows: Vec<(NodeId, bool)>,
    /// Operands that a factor is multiplied by which is 0 at the points that the guard leaves out: they must be finite.
    pub finite: Vec<u32>,
    /// Conditions of the elements of the result: the others are 0.
    pub of_result: Vec<NodeId>,
}

/// Takes the body of a kernel apart. `by_rows`: whether factors that are the same in all terms of all elements of a row may stay outside the sum.
pub fn factors(kernel: &Kernel, by_rows: bool) -> Option<Factors> {
    let depends = kernel.graph.dependencies();
    let mask = |id: NodeId| depends[id.0 as usize];
    let leaves = leaves(&kernel.graph, kernel.root, |id| mask(id) == 0)?;
    let (mut over, mut under, mut numbers) = (vec![], vec![], vec![]);
    for (id, divides) in leaves.factors {
        match (mask(id), divides) {
            (0, divides) => numbers.push((id, divides)),
            (mask, false) => over.push((id, mask)),
            (mask, true) => under.push((id, mask)),
        }
    }
    if over.len() < 2 {
        return None;
    }
    let mut graph = kernel.graph.clone();
    let dtype = kernel.graph.dtype(kernel.root);
    let left = over.remove(largest(&over, 0));
    let mut sides = [left, over.remove(largest(&over, left.1))];
    let within_rows = !0 << kernel.output_rank.saturating_sub(1);
    let mut of_rows = vec![];
    for (list, function) in [(over, Function::Mul), (under, Function::Div)] {
        for (id, mask) in list {
            if by_rows && mask & within_rows == 0 {
                of_rows.push((id, function == Function::Div));
                continue;
            }
            let side = sides.iter_mut().find(|(_, own)| mask & !own == 0)?;
            side.0 = graph.add(Node::Apply(function, vec![side.0, id]), dtype);
        }
    }
    let [left, right] = sides;
    let factors = Factors {
        graph,
        left,
        right,
        numbers,
        negative: leaves.negative,
        of_rows,
        finite: vec![],
        of_result: vec![],
    };
    factors.masked(kernel)
}

/// The factor with the most indices beyond those of `besides`.
fn largest(list: &[(NodeId, u128)], besides: u128) -> usize {
    let mut best = 0;
    for (at, (_, mask)) in list.iter().enumerate() {
        let beyond = |mask: u128| ((mask & !besides).count_ones(), mask.count_ones());
        if beyond(*mask) > beyond(list[best].1) {
            best = at;
        }
    }
    best
}

impl Factors {
    /// The factors with the conditions of the kernel's guard; `None` if a condition has indices of both, or the other factor is computed: whether
    /// that is finite is not known before.
    pub(super) fn masked(mut self, kernel: &Kernel) -> Option<Factors> {
        let Some(guard) = kernel.guard else {
            return Some(self);
        };
        let depends = kernel.graph.dependencies();
        let reduced = !0u128 << kernel.output_rank.min(127);
        let mut conditions = [vec![], vec![]];
        for condition in conjuncts(&kernel.graph, guard) {
            let own = depends[condition.0 as usize];
            if own & reduced == 0 {
                self.of_result.push(condition);
                continue;
            }
            let sides = [self.left, self.right];
            let side = (0..2).find(|side| {
                own & !sides[*side].1 == 0 && self.read(kernel, sides[1 - side].0).is_some()
            })?;
            conditions[side].push(condition);
        }
        let read = [self.left, self.right].map(|(node, _)| self.read(kernel, node));
        for (side, conditions) in conditions.into_iter().enumerate() {
            let graph = &mut self.graph;
            let both = |a, b| Node::Apply(Function::And, vec![a, b]);
            let all = conditions
                .into_iter()
                .reduce(|all, next| graph.add(both(all, next), DType::Bool));
            let Some(all) = all else { continue };
            self.finite.extend(read[1 - side]);
            let factor = match side {
                0 => &mut self.left,
                _ => &mut self.right,
            };
            let dtype = graph.dtype(factor.0);
            let zero = graph.add(Node::Constant(Scalar::Float(0.0)), dtype);
            factor.0 = graph.add(
                Node::Apply(Function::Select, vec![all, factor.0, zero]),
                dtype,
            );
        }
        Some(self)
    }

    /// The operand that a factor is a read of, which has no other values.
    fn read(&self, kernel: &Kernel, factor: NodeId) -> Option<u32> {
        match self.graph.node(factor) {
            Node::Read {
                operand,
                otherwise: None,
                ..
            } if (factor.0 as usize) < kernel.graph.len() => Some(*operand),
            _ => None,
        }
    }
}
