//! Means, and norms without squares, in terms of sums and largest values where these are computed better.
//!
//! A sum of the points below a value, or over pairs of points, is found without looking at each pair (see [`super::ranked`] and [`super::pairs`]); a
//! sum of products is a product of matrices; a running sum is one walk; the sums of groups are scattered. A mean of the same values is that sum over the number of points, which is
//! a running sum itself where a condition bounds the points. `norm1` sums sizes, and `norminf` is the largest one. Must not know placements.
//!
//! ```text
//! y: f64[9, 9] = [i: 9, j: 9 | k: 80] mean a[i, k] * b[k, j]
//! y.sum: f64[9, 9] = [i: 9, j: 9 | k: 80] sum a[i, k] * b[k, j];   y: f64[9, 9] = [i: 9, j: 9] y.sum[i, j] / 80.0
//! ```

use super::grouped::is_of_groups;
use super::pairs::steps;
use super::ranked::Ranked;
use crate::einsum::{Definition, Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{element, elementwise, factors};
use ein_plan::{Function, Kernel, Node, NodeId, Reduction, Scalar};

/// Returns the program in which such reductions are plainer ones.
pub fn as_sums(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let kernel = statement.kernel;
        let dtype = kernel.graph.dtype(kernel.root);
        if !kernel.finish || kernel.output != [dtype] || !dtype.is_float() {
            return None;
        }
        match kernel.reduction? {
            Reduction::Mean => mean(&mut statement),
            Reduction::Norm1 => Some(of_sizes(&statement, Reduction::Sum)),
            // Over nothing it is 0.
            Reduction::NormInf if kernel.guard.is_none() && is_over_some(kernel) => {
                Some(of_sizes(&statement, Reduction::Max))
            }
            _ => None,
        }
    })
}

/// True if there is a point to reduce.
fn is_over_some(kernel: &Kernel) -> bool {
    let reduced = &kernel.indices[kernel.output_rank as usize..];
    reduced.iter().all(|index| index.extent > 0)
}

/// The reduction of the sizes of the values.
fn of_sizes(statement: &Rewritten<'_>, reduction: Reduction) -> Statement {
    let mut sizes = statement.kernel.clone();
    let dtype = sizes.graph.dtype(sizes.root);
    let size = Node::Apply(Function::Abs, vec![sizes.root]);
    sizes.root = sizes.graph.add(size, dtype);
    sizes.reduction = Some(reduction);
    canonical::statement(sizes, statement.operands)
}

/// A mean as a sum over the number of points.
fn mean(statement: &mut Rewritten<'_>) -> Option<Statement> {
    let kernel = statement.kernel;
    let dtype = kernel.graph.dtype(kernel.root);
    let rank = kernel.output_rank as usize;
    let mut sum = kernel.clone();
    sum.reduction = Some(Reduction::Sum);
    let is_better = match kernel.guard {
        Some(_) => sum.scanned().is_some() && is_bounded_by_indices(&sum) || is_of_groups(&sum),
        None => is_of_products(&sum) || reads_products(statement) || is_sorted(&sum),
    };
    if !is_better {
        return None;
    }
    let all: Vec<usize> = (0..rank).collect();
    let mut operands = statement.operands.to_vec();
    let mut whole = elementwise(kernel);
    let counted = kernel.guard.map(|_| {
        let mut count = sum.clone();
        let one = Node::Constant(Scalar::Float(1.0));
        count.root = count.graph.add(one, dtype);
        canonical::statement(count, statement.operands)
    });
    operands.push(statement.add("sum", canonical::statement(sum, statement.operands)));
    let (graph, described) = (&mut whole.graph, &mut whole.operands);
    let sum = element((&mut *graph, &mut *described), kernel, &all, dtype);
    let points = match counted {
        Some(count) => {
            operands.push(statement.add("count", count));
            element((&mut *graph, described), kernel, &all, dtype)
        }
        None => {
            let extents = kernel.indices[rank..].iter();
            let points: f64 = extents.map(|index| index.extent as f64).product();
            graph.add(Node::Constant(Scalar::Float(points)), dtype)
        }
    };
    whole.root = graph.add(Node::Apply(Function::Div, vec![sum, points]), dtype);
    Some(canonical::statement(whole, &operands))
}

/// True if the sum is found by sorting.
fn is_sorted(sum: &Kernel) -> bool {
    guarded(sum).is_some_and(|sorted| steps(&sorted).is_some() || Ranked::of(sorted).is_some())
}

/// True if an operand is such a value by itself, under a name.
fn reads_products(statement: &Rewritten<'_>) -> bool {
    let mut operands = statement.operands.iter();
    operands.any(|operand| match &statement.tensor(*operand).definition {
        Definition::Statement { kernel, .. } => {
            kernel.reduction.is_none() && kernel.library().is_none() && is_of_products(kernel)
        }
        _ => false,
    })
}

/// True if a product of elements over different indices is summed, or elements meet of which each has an index that another has not.
fn is_of_products(sum: &Kernel) -> bool {
    if sum.indices.len() >= 128 {
        return false;
    }
    let depends = sum.graph.dependencies();
    let of = |positions: &[NodeId]| {
        let positions = positions.iter();
        positions.fold(0u128, |all, position| all | depends[position.0 as usize])
    };
    let own: Vec<u128> = (sum.graph.reads())
        .map(|(_, positions)| of(positions))
        .filter(|indices| *indices != 0)
        .collect();
    let factors = factors(&sum.graph, sum.root);
    let is_read = |factor: &NodeId| matches!(sum.graph.node(*factor), Node::Read { .. });
    let is_product = factors.len() > 1 && factors.iter().all(is_read);
    own.iter().any(|one| {
        own.iter().any(|other| match is_product {
            true => one != other,
            false => one & !other != 0 && other & !one != 0,
        })
    })
}

/// True if the condition asks for no data.
fn is_bounded_by_indices(sum: &Kernel) -> bool {
    let mut needed: Vec<_> = sum.guard.into_iter().collect();
    while let Some(node) = needed.pop() {
        match sum.graph.node(node) {
            Node::Read { .. } => return false,
            node => needed.extend(node.arguments()),
        }
    }
    true
}
