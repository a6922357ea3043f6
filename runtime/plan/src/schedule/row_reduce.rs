//! Reductions of rows: elements as they lie, neighbours in a row, or how far they are from the row's number.
//!
//! Must not know how a loop is carried out.
//!
//! ```text
//! [n | k] argmin a0[n, k]           rows n
//! [n | k] sum a0[n, k] - a1[n]      rows n, differences
//! [b, n | h, k] max a0[b, h, n, k]  no rows: terms of different h are no neighbours
//! ```

use super::RowReduce;
use super::access::merged;
use super::facts::Facts;
use super::leaves::value;
use super::reason::Reason;
use crate::{DType, Function, Node, Reduction};

/// Fewest rows where they are long: fewer are worth several threads a row.
const FEWEST: usize = 16;
/// Fewest elements of a row that is reduced to anything but an extreme: of shorter ones, strips hold several.
const LEAST: usize = 64;
/// Points that are worth a thread of their own.
const TASK: usize = 1 << 16;

/// A kernel's rows, and why they are not worth loops of their own, if they are not.
pub(super) fn row_reduce(facts: &Facts<'_>) -> Result<(RowReduce, Option<Reason>), Reason> {
    use Reduction as R;
    let kernel = facts.kernel;
    let (Some(reduction), None) = (kernel.reduction, kernel.guard) else {
        return Err(Reason::of("it is no reduction of all points"));
    };
    if facts.is_empty() {
        return Err(Reason::of("there is no point"));
    }
    let dtype = facts.value();
    let output = match (reduction.is_arg(), kernel.finish) {
        (_, false) => reduction.carrier(dtype),
        (_, true) => vec![reduction.result(dtype)],
    };
    if !matches!(dtype, DType::F32 | DType::F64) || kernel.output != output {
        return Err(Reason::of(
            "its elements are no floats, or the result is converted",
        ));
    }
    let extreme = matches!(reduction, R::Max | R::Min | R::ArgMax | R::ArgMin);
    let rank = facts.rank();
    let (steps, differences) = match facts.steps(kernel.root, dtype) {
        Some(steps) => (steps, false),
        None => (
            difference(facts)
                .filter(|_| !extreme)
                .ok_or(Reason::of("its terms are computed"))?,
            true,
        ),
    };
    let terms: Vec<usize> = (rank..facts.lengths.len()).collect();
    if merged(&steps, &terms, &facts.lengths) != Some(1) {
        return Err(Reason::of("the terms of a row are no neighbours"));
    }
    let (rows, length) = facts.lengths.split_at(rank);
    let product = |list: &[usize]| list.iter().fold(1usize, |n, l| n.saturating_mul(*l));
    let (rows, length) = (product(rows), product(length));
    let least = if extreme { 2 } else { LEAST };
    let unworthy = if length < least {
        Some(Reason::few("elements of a row", length, least))
    } else if rows < FEWEST && rows.saturating_mul(length) >= 4 * TASK {
        Some(Reason::few("rows, which are long", rows, FEWEST))
    } else {
        None
    };
    Ok((RowReduce { differences }, unworthy))
}

/// The steps of the elements from each of which a number of its row is subtracted.
fn difference(facts: &Facts<'_>) -> Option<Vec<i64>> {
    let (graph, dtype) = (&facts.kernel.graph, facts.value());
    let Node::Apply(Function::Sub, of) = graph.node(value(graph, facts.kernel.root)) else {
        return None;
    };
    let (from, less) = (facts.steps(of[0], dtype)?, facts.steps(of[1], dtype)?);
    less[facts.rank()..]
        .iter()
        .all(|step| *step == 0)
        .then_some(from)
}
