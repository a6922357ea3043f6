//! Sums of products with a computed factor that lacks a reduced index: the product of those that have it is summed first.
//!
//! In `sum[u, d] g[t, d] * exp(s[t, u] - z[t]) * V[u, d]`, which a gradient of attention is, each exponential would be computed for every `d`. The sum
//! over `d` is a product of matrices, of which the outer sum reads one element beside each exponential. As with any reordered sum, rounding may
//! differ. Must not know placements.
//!
//! ```text
//! y: f32[90] = [t: 90 | u: 90, d: 30] sum g[t, d] * exp(s[t, u]) * V[u, d]
//! y.inner: f32[90, 90] = [t: 90, u: 90 | d: 30] sum g[t, d] * V[u, d];   y: f32[90] = [t: 90 | u: 90] sum exp(s[t, u]) * y.inner[t, u]
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::{element, factors, may_fault, over, times, values_of_bits};
use ein_plan::{Function, Kernel, Node, NodeId, Reduction};

/// How often a computed factor is computed again at least, for another sum to be worth it.
const LEAST_REPEATED: u64 = 4;

/// The inner sum has at most so many times as many elements as the largest operand.
const MOST_GROWTH: u64 = 4;

/// Returns the program in which such sums are sums of sums.
pub fn first(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (inner, outer) = apart(statement.kernel)?;
        let inner = canonical::statement(inner, statement.operands);
        let inner = statement.add("inner", inner);
        Some(canonical::statement(outer, &statement.operands_and(inner)))
    })
}

/// The inner sum, and the outer one, whose last operand it is.
fn apart(kernel: &Kernel) -> Option<(Kernel, Kernel)> {
    let (rank, count) = (kernel.output_rank as usize, kernel.indices.len());
    let dtype = kernel.graph.dtype(kernel.root);
    let plain = kernel.finish && kernel.guard.is_none() && kernel.output == [dtype];
    if kernel.reduction != Some(Reduction::Sum)
        || !dtype.is_float()
        || !plain
        || count >= 128
        || may_fault(kernel)
    {
        return None;
    }
    let (product, negative) = match kernel.graph.node(kernel.root) {
        Node::Apply(Function::Neg, inner) => (inner[0], true),
        _ => (kernel.root, false),
    };
    let depends = kernel.graph.dependencies();
    let of = |id: NodeId| depends[id.0 as usize];
    let all = factors(&kernel.graph, product);
    let reduced = of(kernel.root) & !((1u128 << rank) - 1);
    let is_computed = |id: &&NodeId| match kernel.graph.node(**id) {
        Node::Apply(function, _) => !function.is_cheap(),
        _ => false,
    };
    let computed = all.iter().find(|id| {
        is_computed(id) && values_of_bits(kernel, reduced & !of(**id)) >= LEAST_REPEATED
    })?;
    let first = reduced & !of(*computed);
    let (own, others): (Vec<NodeId>, Vec<NodeId>) =
        all.iter().partition(|id| of(**id) & first != 0);
    let left = own.iter().fold(0, |left, id| left | of(*id)) & !first;
    let largest = kernel.operands.iter().map(|operand| {
        let shape = operand.shape.iter();
        shape.fold(1u64, |n, extent| n.saturating_mul(*extent))
    });
    if own.len() < 2 || values_of_bits(kernel, left) > largest.max()?.saturating_mul(MOST_GROWTH) {
        return None;
    }
    let has = |bits: u128| (0..count).filter(move |at| bits >> at & 1 == 1);
    let (left, first): (Vec<usize>, Vec<usize>) = (has(left).collect(), has(first).collect());
    let mut inner = kernel.clone();
    inner.root = times(&mut inner.graph, &own, dtype);
    inner.output_rank = left.len() as u32;
    let indices: Vec<usize> = left.iter().chain(&first).copied().collect();
    let inner = over(inner.clone(), &inner, &indices).canonical();
    let mut outer = kernel.clone();
    let read = element(
        (&mut outer.graph, &mut outer.operands),
        kernel,
        &left,
        dtype,
    );
    let factors: Vec<NodeId> = others.into_iter().chain([read]).collect();
    outer.root = times(&mut outer.graph, &factors, dtype);
    if negative {
        let negated = Node::Apply(Function::Neg, vec![outer.root]);
        outer.root = outer.graph.add(negated, dtype);
    }
    let kept: Vec<usize> = (0..count).filter(|at| !first.contains(at)).collect();
    outer.reduction = outer.reduction.filter(|_| kept.len() > rank);
    Some((inner, over(outer.clone(), &outer, &kept)))
}
