//! Sums of products that a condition chooses, as products of chosen factors.
//!
//! In `where(R[u, i] > 0, Q[i, k] * Q[i, l], 0)` the condition says nothing about `k` and `l`, so both factors may be chosen by it: where it does not
//! hold, their product is 0 * 0. That is a product of matrices, of which the sum of chosen products is none. Factors of one matrix are one factor.
//! Must not know placements.
//!
//! ```text
//! y: f32[9, 9] = [k: 9, l: 9 | i: 90] sum where(r[i] > 0, Q[i, k] * Q[i, l], 0)
//! y: f32[9, 9] = [k: 9, l: 9 | i: 90] sum where(r[i] > 0, Q[i, k], 0) * where(r[i] > 0, Q[i, l], 0)
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{factors, times, values_of_bits, values_passed_over, zero};
use ein_plan::schedule::matmul::is_masked_product;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Reduction};

/// The fewest values of the indices that one matrix alone depends on.
const LEAST: u64 = 4;

/// The most values of indices that loops would pass over with the condition in the guard: of more, they are left out instead.
const MOST_PASSED: u64 = 64;

/// Returns the program in which conditions choose factors.
pub fn chosen(program: &Program) -> Program {
    Rewriting::of_statements(program, |statement| {
        let kernel = of_chosen(statement.kernel)?;
        Some(canonical::statement(kernel, statement.operands))
    })
}

fn of_chosen(kernel: &Kernel) -> Option<Kernel> {
    let dtype = kernel.graph.dtype(kernel.root);
    let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.guard.is_none();
    let few = kernel.indices.len() < 128;
    if !few || !is_sum || !matches!(dtype, DType::F32 | DType::F64) {
        return None;
    }
    // The condition, and the value where it holds.
    let guarded = guarded(kernel)?;
    let condition = guarded.guard?;
    let graph = &guarded.graph;
    let depends = graph.dependencies();
    let output = (1u128 << guarded.output_rank) - 1;
    let of = |node: NodeId| depends[node.0 as usize] & output;
    let factors = factors(graph, guarded.root);
    let says = of(condition);
    // The indices that tell the rows of a matrix apart, and those that tell its columns.
    let mut rows = factors.iter().map(|factor| of(*factor) & !says);
    let rows = rows.find(|own| *own != 0)?;
    let (left, right): (Vec<NodeId>, Vec<NodeId>) =
        (factors.iter()).partition(|factor| of(**factor) & rows != 0);
    let all = |side: &[NodeId]| side.iter().fold(0, |all, factor| all | of(*factor));
    let (of_left, of_right) = (all(&left), all(&right));
    let own = [of_left & !of_right & !says, of_right & !of_left & !says];
    let is_small = own.map(|own| values_of_bits(&guarded, own) < LEAST);
    if is_small.contains(&true) {
        return None;
    }
    if values_passed_over(&guarded) > MOST_PASSED || is_masked_product(&guarded) {
        return None;
    }
    let mut product = guarded.clone();
    product.guard = None;
    let graph = &mut product.graph;
    let nothing = graph.add(Node::Constant(zero(dtype)), dtype);
    let sides = [left, right].map(|side| {
        let side = times(graph, &side, dtype);
        let choice = Node::Apply(Function::Select, vec![condition, side, nothing]);
        graph.add(choice, dtype)
    });
    product.root = graph.add(Node::Apply(Function::Mul, sides.to_vec()), dtype);
    Some(product)
}
