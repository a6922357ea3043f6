//! Means of what is found by sorting, as sums over the number of points.
//!
//! A sum of the points below a value, or over pairs of points, is found without looking at each pair (see [`super::ranked`] and [`super::pairs`]). So is
//! a mean, then: the share of points below a value, or of pairs that are in order. Must not know placements.
//!
//! ```text
//! y: f64[900] = [i: 900 | j: 900] mean x[j] <= v[i] as f64
//! y.sum: f64[900] = [i: 900 | j: 900] sum x[j] <= v[i] as f64;   y: f64[900] = [i: 900] y.sum[i] / 900.0
//! ```

use super::pairs::steps;
use super::ranked::Ranked;
use super::scatters::{element, elementwise};
use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::conditions::guarded;
use ein_plan::{Function, Node, Reduction, Scalar};

/// Returns the program in which means of what is sorted for are sums.
pub fn as_sums(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let kernel = statement.kernel;
        let dtype = kernel.graph.dtype(kernel.root);
        let is_mean = kernel.reduction == Some(Reduction::Mean) && kernel.guard.is_none();
        if !is_mean || !kernel.finish || kernel.output != [dtype] {
            return None;
        }
        let mut sum = kernel.clone();
        sum.reduction = Some(Reduction::Sum);
        let sorted = guarded(&sum)?;
        if steps(&sorted).is_none() && Ranked::of(sorted).is_none() {
            return None;
        }
        let rank = kernel.output_rank as usize;
        let all: Vec<usize> = (0..rank).collect();
        let points = kernel.indices[rank..].iter().map(|index| index.extent);
        let points = points.fold(1, u64::saturating_mul);
        let sum = statement.add("sum", canonical::statement(sum, statement.operands));
        let mut whole = elementwise(kernel);
        let (graph, operands) = (&mut whole.graph, &mut whole.operands);
        let sum_at = element((&mut *graph, operands), kernel, &all, dtype);
        let points = graph.add(Node::Constant(Scalar::Float(points as f64)), dtype);
        whole.root = graph.add(Node::Apply(Function::Div, vec![sum_at, points]), dtype);
        Some(canonical::statement(whole, &statement.operands_and(sum)))
    })
}
