//! Sums of products of two rows of which data say which ones they are, or of squares of their differences.
//!
//! Must not know how a loop is carried out.
//!
//! ```text
//! [e | h] sum a0[a1[e], h] * a2[a3[e], h]                               row_product
//! [e | h] sum let $0 = a0[a1[e], h] - a2[e, h] in $0 * $0               row_product
//! [e | h] sum a0[e, h] * a2[e, h]                                       no row_product: data say of no row where it is
//! ```

use super::access::merged;
use super::facts::Facts;
use super::leaves::value;
use super::reason::Reason;
use crate::{DType, Function, Kernel, Node, NodeId, Reduction};

/// Fewest elements of a row: of shorter ones, strips hold several.
const LEAST: usize = 4;

/// The two elements of a term, and whether the term is the square of their difference, not their product.
pub fn sides(kernel: &Kernel) -> Option<([NodeId; 2], bool)> {
    let graph = &kernel.graph;
    let of = |id: NodeId, wanted: Function| match graph.node(value(graph, id)) {
        Node::Apply(function, of) if *function == wanted => Some([of[0], of[1]]),
        _ => None,
    };
    let factors = of(kernel.root, Function::Mul)?;
    match of(factors[0], Function::Sub).filter(|_| factors[0] == factors[1]) {
        Some(sides) => Some((sides, true)),
        None => Some((factors, false)),
    }
}

/// Nothing but that the loops fit, and why they are not worth it, if they are not.
pub(super) fn row_product(facts: &Facts<'_>) -> Result<((), Option<Reason>), Reason> {
    let kernel = facts.kernel;
    let dtype = facts.value();
    let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.guard.is_none();
    if !is_sum || facts.is_empty() {
        return Err(Reason::of("it is no sum of all points"));
    }
    if !matches!(dtype, DType::F32 | DType::F64) || kernel.output != [dtype] {
        return Err(Reason::of(
            "its elements are no floats, or the result is converted",
        ));
    }
    let (sides, _) =
        sides(kernel).ok_or(Reason::of("its terms are no products of two elements"))?;
    let rank = facts.rank();
    let (points, terms): (Vec<usize>, Vec<usize>) =
        ((0..rank).collect(), (rank..facts.lengths.len()).collect());
    let mut looked_up = false;
    for side in sides {
        let (steps, row) = (facts.steps_but_one(side, dtype)).ok_or(Reason::of(
            "its elements are computed, converted or outside",
        ))?;
        if merged(&steps, &terms, &facts.lengths) != Some(1) {
            return Err(Reason::of("the terms of a row are no neighbours"));
        }
        let rows_lie = merged(&steps, &points, &facts.lengths).is_some();
        let is_found = row.is_none_or(|row| {
            let of = |dtype| facts.steps(row, dtype);
            let steps = of(DType::I64).or_else(|| of(DType::U32));
            steps.is_some_and(|steps| {
                terms.iter().all(|index| steps[*index] == 0)
                    && merged(&steps, &points, &facts.lengths).is_some()
            })
        });
        if !rows_lie || !is_found {
            return Err(Reason::of(
                "rows do not follow each other, nor does one list say which they are",
            ));
        }
        looked_up |= row.is_some();
    }
    if !looked_up {
        return Err(Reason::of("data say of no row where it is"));
    }
    let width = facts.count(&terms);
    let few = (width < LEAST).then(|| Reason::few("elements of a row", width, LEAST));
    Ok(((), few))
}
