//! Factors of a sum of products that depend on the same few indices, multiplied once.
//!
//! In `sum[n] X[n, d] * m[n] * y[n]`, which the gradient of a loss with labels is, both `m[n]` and `y[n]` would be multiplied for each `d`. Their
//! product is one factor, and the sum a product of a matrix and a vector. As with any reordered product, rounding may differ. Must not know
//! placements.
//!
//! ```text
//! g: f32[200] = [d: 200 | n: 900] sum X[n, d] * m[n] * y[n]
//! g.weight: f32[900] = [n: 900] m[n] * y[n];  g: f32[200] = [d: 200 | n: 900] sum X[n, d] * g.weight[n]
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::{element, factors, may_fault, over, times, values, values_of_bits};
use ein_plan::{DType, Kernel, Node, NodeId, Reduction};

/// How many times the points of the common indices must go into all points.
const FEWER: u64 = 8;

/// Returns the program in which such factors are one.
pub fn multiplied(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let kernel = statement.kernel;
        let (common, rest, indices) = common(kernel)?;
        let dtype = kernel.graph.dtype(kernel.root);
        let mut weight = Kernel {
            reduction: None,
            output: vec![dtype],
            output_rank: indices.len() as u32,
            ..kernel.clone()
        };
        weight.root = times(&mut weight.graph, &common, dtype);
        let weight = canonical::statement(over(weight, kernel, &indices), statement.operands);
        let weight = statement.add("weight", weight);
        let mut product = kernel.clone();
        let (graph, operands) = (&mut product.graph, &mut product.operands);
        let weight_there = element((&mut *graph, operands), kernel, &indices, dtype);
        product.root = times(graph, &[&rest[..], &[weight_there]].concat(), dtype);
        Some(canonical::statement(
            product,
            &statement.operands_and(weight),
        ))
    })
}

/// Factors of a product that depend on the same few indices, the others, and these indices.
fn common(kernel: &Kernel) -> Option<(Vec<NodeId>, Vec<NodeId>, Vec<usize>)> {
    let graph = &kernel.graph;
    let dtype = graph.dtype(kernel.root);
    let plain = kernel.reduction == Some(Reduction::Sum) && kernel.guard.is_none();
    let is_float = matches!(dtype, DType::F32 | DType::F64);
    if !plain || !is_float || kernel.indices.len() >= 128 || may_fault(kernel) {
        return None;
    }
    let factors = factors(graph, kernel.root);
    let plain = |factor: &NodeId| matches!(graph.node(*factor), Node::Read { positions, otherwise: None, .. } if positions.iter().all(|at| graph.as_index(*at).is_some()));
    if factors.len() < 3 || !factors.iter().all(plain) {
        return None;
    }
    let depends = graph.dependencies();
    let of = |factor: NodeId| depends[factor.0 as usize];
    let all = values(kernel, 0..kernel.indices.len());
    let shared = factors.iter().map(|factor| of(*factor)).find(|own| {
        let times = factors.iter().filter(|factor| of(**factor) == *own).count();
        let is_few = values_of_bits(kernel, *own).saturating_mul(FEWER) <= all;
        *own != 0 && times > 1 && times < factors.len() && is_few
    })?;
    let (common, rest) = factors.iter().partition(|factor| of(**factor) == shared);
    let indices = (0..kernel.indices.len()).filter(|at| shared >> at & 1 == 1);
    Some((common, rest, indices.collect()))
}
