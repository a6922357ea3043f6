//! Reductions of rows of which data say which ones they are, each row times numbers of its point.
//!
//! The last indices of the output run along a row; the others, and those that are reduced, are the points. Must not know how a loop is carried
//! out.
//!
//! ```text
//! [n, d | l] mean a1[a0[n, l], d]                gathered_sum; of points n, l the row a1[a0[n, l], ..]
//! [n, d | l] sum a2[n, l] * a1[a0[n, l], d]      gathered_sum
//! [n, d | l] sum a2[n, d] * a1[a0[n, l], d]      no gathered_sum: a row is multiplied by another row
//! ```

use super::access::merged;
use super::facts::Facts;
use super::leaves::value;
use super::reason::Reason;
use crate::{DType, Function, Kernel, Node, NodeId, Reduction};

/// Fewest elements of a row: of shorter ones, strips hold several.
const LEAST: usize = 8;
/// Fewest rows of the result, so that threads have several each.
const LEAST_ROWS: usize = 16;
/// Most numbers that a row is multiplied by.
const FACTORS: usize = 4;

/// The first of the indices that run along a row, which are the last ones of the output. `None` if data say of no element where it is.
pub fn first_of_row(kernel: &Kernel) -> Option<usize> {
    let depends = kernel.graph.dependencies();
    let outputs = 1u128.checked_shl(kernel.output_rank).unwrap_or(0);
    let outputs = outputs.wrapping_sub(1);
    let found = kernel.graph.reads().flat_map(|(_, positions)| positions);
    let found = found.filter(|position| kernel.graph.as_affine(**position).is_none());
    let masks = found.map(|position| depends[position.0 as usize] & outputs);
    let points = masks.reduce(|all, mask| all | mask)?;
    Some((u128::BITS - points.leading_zeros()) as usize)
}

fn reduces(reduction: Reduction) -> bool {
    use Reduction::{Max, Mean, Min, Prod, Sum};
    matches!(reduction, Sum | Mean | Max | Min | Prod)
}

/// Nothing but that the loops fit, and why they are not worth it, if they are not.
pub(super) fn gathered_sum(facts: &Facts<'_>) -> Result<((), Option<Reason>), Reason> {
    let kernel = facts.kernel;
    let dtype = facts.value();
    let reduces = kernel.reduction.is_some_and(reduces) && kernel.guard.is_none();
    if !reduces || facts.is_empty() {
        return Err(Reason::of("it reduces not all points to one number a row"));
    }
    let known = [DType::F32, DType::F64, DType::I64].contains(&dtype);
    let partial =
        kernel.reduction == Some(Reduction::Mean) && (!kernel.finish || dtype == DType::I64);
    if !known || kernel.output != [dtype] || partial {
        return Err(Reason::of(
            "its elements are of another type, or the result is converted",
        ));
    }
    let first = first_of_row(kernel).ok_or(Reason::of("data say of no row where it is"))?;
    let (rank, all) = (facts.rank(), facts.lengths.len());
    let (points, row): (Vec<usize>, Vec<usize>) = (
        (0..first).chain(rank..all).collect(),
        (first..rank).collect(),
    );
    let indices = Indices {
        facts,
        dtype,
        points: &points,
        row: &row,
    };
    if indices
        .factors(kernel.root)
        .is_none_or(|count| count > FACTORS)
    {
        return Err(Reason::of(
            "its terms are no neighbouring elements, times numbers of their row",
        ));
    }
    let outer: Vec<usize> = (0..first).collect();
    let (width, rows) = (facts.count(&row), facts.count(&outer));
    let few = match (width < LEAST, rows < LEAST_ROWS) {
        (true, _) => Some(Reason::few("elements of a row", width, LEAST)),
        (_, true) => Some(Reason::few("rows of the result", rows, LEAST_ROWS)),
        _ => None,
    };
    Ok(((), few))
}

/// The indices of points, and those along a row.
struct Indices<'a> {
    facts: &'a Facts<'a>,
    dtype: DType,
    points: &'a [usize],
    row: &'a [usize],
}

impl Indices<'_> {
    /// How many numbers a row is multiplied by; `None` if there is no row.
    fn factors(&self, id: NodeId) -> Option<usize> {
        let graph = &self.facts.kernel.graph;
        let id = value(graph, id);
        if let Node::Apply(Function::Mul, sides) = graph.node(id) {
            let line = match (self.is_number(sides[0]), self.is_number(sides[1])) {
                (true, _) => sides[1],
                (_, true) => sides[0],
                _ => return None,
            };
            return self.factors(line).map(|count| count + 1);
        }
        let steps = self.steps(id)?;
        (merged(&steps, self.row, &self.facts.lengths) == Some(1)).then_some(0)
    }

    /// Returns whether all elements of a row are multiplied by the same number.
    fn is_number(&self, id: NodeId) -> bool {
        let graph = &self.facts.kernel.graph;
        let id = value(graph, id);
        if matches!(graph.node(id), Node::Constant(_)) {
            return true;
        }
        let steps = self.steps(id);
        steps.is_some_and(|steps| self.row.iter().all(|index| steps[*index] == 0))
    }

    /// The distances between neighbours along each index, if points in their order have elements at one distance, and one list says of points
    /// in their order where their rows are.
    fn steps(&self, id: NodeId) -> Option<Vec<i64>> {
        let (steps, found) = self.facts.steps_but_one(id, self.dtype)?;
        let lengths = &self.facts.lengths;
        let moves = |index: &usize| steps[*index] != 0 && lengths[*index] > 1;
        let own = self
            .points
            .iter()
            .rposition(moves)
            .map_or(0, |last| last + 1);
        merged(&steps, &self.points[..own], lengths)?;
        if let Some(position) = found {
            let known = [DType::I64, DType::U32, DType::I32, DType::U8];
            let graph = &self.facts.kernel.graph;
            let narrow = match graph.node(position) {
                Node::Convert(narrow) if graph.dtype(*narrow) == DType::I32 => *narrow,
                _ => position,
            };
            let mut of = known.into_iter();
            let list = of.find_map(|dtype| self.facts.steps(narrow, dtype))?;
            merged(&list, self.points, lengths)?;
        }
        Some(steps)
    }
}
