//! Scatters to places in mixed radix, as reads: the digits of a place say which value goes there.
//!
//! A scatter to `28·r + c` with `c < 28` puts at most one value to each place, and its indices follow from the place: `r` is its
//! quotient by 28, `c` the rest. So each place can take its value itself, in the order of memory, and a site needs a window of the values
//! alone. Places to which nothing goes have what the reduction leaves of nothing. Must not know placements.
//!
//! ```text
//! y: f32[56] = [p: 56 | r: 2, c: 28] sum x[r, c] if 28 * r + c == p    ->    [p: 56] x[floordiv(p, 28), rem(p, 28)]
//! y: f32[56] = [p: 56 | i: 28] sum x[i] if 2 * i == p                  ->    [p: 56] where(rem(p, 2) == 0, x[floordiv(p, 2)], 0.0)
//! ```

use super::meeting::Placed;
use super::parts;
use crate::einsum::{Definition, Program, canonical};
use crate::rules::{neutral, over};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{Affine, DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};

/// How many times as many places there may be as values.
const MOST_EMPTY: u64 = 8;

/// Returns the program in which places take the values that are scattered to them.
pub fn taken(program: &Program) -> Program {
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && let Some(taking) = parts::apart(kernel)
                .and_then(|apart| taking(&apart))
                .or_else(|| taking(kernel))
        {
            (*kernel, *operands) = canonical::statement(taking, operands);
        }
    }
    program
}

/// The kernel with its indices in terms of the places, if some of them are digits.
fn taking(kernel: &Kernel) -> Option<Kernel> {
    let reduction = kernel.reduction?;
    let value = kernel.graph.dtype(kernel.root);
    let plain = matches!(reduction, Reduction::Sum | Reduction::Max | Reduction::Min);
    if !plain || kernel.library().is_some() || kernel.output.len() != 1 || value == DType::Bool {
        return None;
    }
    let mut conditions = conjuncts(&kernel.graph, kernel.guard?);
    let mut solved: Vec<Digits> = vec![];
    conditions.retain(|condition| {
        let digits = Digits::of(kernel, *condition);
        let new = digits.filter(|digits| !solved.iter().any(|other| other.share(digits)));
        match new {
            Some(digits) => solved.push(digits),
            None => return true,
        }
        false
    });
    if solved.is_empty() {
        return None;
    }
    let mut taking = Kernel {
        guard: None,
        ..kernel.clone()
    };
    let mut held: Vec<NodeId> = vec![];
    let mut values: Vec<(IndexId, NodeId)> = vec![];
    for digits in &solved {
        digits.write(kernel, &mut taking.graph, &mut values, &mut held);
    }
    // The other conditions and the value, at these indices.
    let moved = with_values(&mut taking.graph, &kernel.graph, &values);
    taking.root = moved[kernel.root.0 as usize];
    held.into_iter()
        .for_each(|condition| taking.restrict(condition));
    let inside = taking.guard.take();
    for condition in conditions {
        taking.restrict(moved[condition.0 as usize]);
    }
    taking.guard = both(&mut taking.graph, inside, taking.guard);
    let left: Vec<usize> = (0..kernel.indices.len())
        .filter(|index| values.iter().all(|(solved, _)| solved.0 as usize != *index))
        .collect();
    if left.len() == kernel.output_rank as usize {
        if let Some(guard) = taking.guard.take() {
            let nothing = Node::Constant(neutral(reduction, value)?);
            let nothing = taking.graph.add(nothing, value);
            let chosen = Node::Apply(Function::Select, vec![guard, taking.root, nothing]);
            taking.root = taking.graph.add(chosen, value);
        }
        taking.reduction = None;
    }
    Some(over(taking.canonical(), kernel, &left))
}

/// Adds the nodes of another graph, with these values in the place of its indices, and returns where each is. A position
/// `by * floordiv(p, by) + rem(p, by)` is written as `p`.
pub(super) fn with_values(
    to: &mut Graph,
    from: &Graph,
    values: &[(IndexId, NodeId)],
) -> Vec<NodeId> {
    let forms: Vec<Option<Affine>> = from.iter().map(|(id, ..)| from.as_affine(id)).collect();
    to.append(from, |graph, id, node, dtype| {
        let joined = forms[id.0 as usize].as_ref();
        if let Some(form) = joined.and_then(|form| together(graph, form, values)) {
            return graph.add_affine(&form);
        }
        let solved = values.iter().find(|(index, _)| node == Node::Index(*index));
        solved.map_or_else(|| graph.add(node.clone(), dtype), |(_, value)| *value)
    })
}

/// Returns a form in terms of the indices without values, if those with values are pairs of a quotient and its remainder.
fn together(graph: &Graph, form: &Affine, values: &[(IndexId, NodeId)]) -> Option<Affine> {
    let value = |index: IndexId| values.iter().find(|(solved, _)| *solved == index);
    let divided = |index: IndexId, function: Function| -> Option<(NodeId, i64)> {
        match graph.node(value(index)?.1) {
            Node::Apply(own, sides) if *own == function => match graph.node(sides[1]) {
                Node::Constant(Scalar::Int(by)) => Some((sides[0], *by)),
                _ => None,
            },
            _ => None,
        }
    };
    let (solved, free): (Vec<_>, Vec<_>) =
        (form.terms.iter().copied()).partition(|(index, _)| value(*index).is_some());
    let mut whole = Affine {
        constant: form.constant,
        terms: free,
    };
    if solved.is_empty() {
        return None;
    }
    let mut left = solved;
    while let Some((index, weight)) = left.pop() {
        let at = left.iter().position(|(other, heavy)| {
            let parts = [
                (index, weight, *other, *heavy),
                (*other, *heavy, index, weight),
            ];
            parts.iter().any(|(rest, light, quotient, heavy)| {
                let whole = divided(*quotient, Function::FloorDiv);
                whole.is_some_and(|(_, by)| light.checked_mul(by) == Some(*heavy))
                    && whole == divided(*rest, Function::Rem)
            })
        })?;
        let (other, heavy) = left.swap_remove(at);
        let (place, _) = divided(index, Function::Rem).or(divided(other, Function::Rem))?;
        let light = if weight.abs() < heavy.abs() {
            weight
        } else {
            heavy
        };
        whole = whole.plus(&graph.as_affine(place)?, light)?;
    }
    Some(whole)
}

/// A condition behind another one: where a place has no values, what else has to hold may read outside.
pub(super) fn both(
    graph: &mut Graph,
    inside: Option<NodeId>,
    others: Option<NodeId>,
) -> Option<NodeId> {
    let (Some(first), Some(then)) = (inside, others) else {
        return inside.or(others);
    };
    let never = graph.add(Node::Constant(Scalar::Bool(false)), DType::Bool);
    let both = Node::Apply(Function::Select, vec![first, then, never]);
    Some(graph.add(both, DType::Bool))
}

/// Indices that are the digits of a place: `Σ weight · index = place`, and no two choices of them give the same.
struct Digits {
    /// The place, in terms of the indices of the result.
    place: Affine,
    /// The indices with their weights, the heaviest first. An index with a negative weight is counted from its end.
    digits: Vec<(IndexId, i64)>,
}

impl Digits {
    /// Of a condition, if it is one that says so.
    fn of(kernel: &Kernel, condition: NodeId) -> Option<Digits> {
        let placed = Placed::of(kernel, condition)?;
        let values = placed.digits(kernel)?;
        let Placed { place, terms } = placed;
        let (low, high) = place.reach(|index| kernel.indices[index.0 as usize].extent, None)?;
        let places = high.checked_sub(low)?.unsigned_abs().saturating_add(1);
        let digits = terms;
        (places <= values.saturating_mul(MOST_EMPTY)).then_some(Digits { place, digits })
    }

    fn share(&self, other: &Digits) -> bool {
        let own = |index: &IndexId| self.digits.iter().any(|(digit, _)| digit == index);
        other.digits.iter().any(|(index, _)| own(index))
    }

    /// Writes the values of the indices, and the conditions under which a place has such values.
    fn write(
        &self,
        kernel: &Kernel,
        graph: &mut Graph,
        values: &mut Vec<(IndexId, NodeId)>,
        held: &mut Vec<NodeId>,
    ) {
        let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
        let (low, mut high) = self
            .place
            .reach(extent, None)
            .unwrap_or((i64::MIN, i64::MAX));
        // One digit that leaves gaps: from the beginning of the gap that the first place is in, all places are inside.
        let ahead = match self.digits[..] {
            [(_, weight)] if (1 - weight.abs()..0).contains(&low) => -low,
            _ => 0,
        };
        let place = graph.add_affine(&Affine {
            constant: self.place.constant + ahead,
            terms: self.place.terms.clone(),
        });
        let (mut rest, mut before) = (place, 0);
        if low < 0 && ahead == 0 {
            let inside = compared(graph, Function::Ge, rest, 0);
            held.push(inside);
        }
        for (index, weight) in &self.digits {
            let by = weight.abs();
            let last = extent(*index) as i64 - 1;
            let mut digit = divided(graph, Function::FloorDiv, rest, by);
            if high.div_euclid(by) > last {
                let inside = compared(graph, Function::Le, digit, last);
                held.push(inside);
            }
            if *weight < 0 {
                let end = graph.add(Node::Constant(Scalar::Int(last)), DType::I64);
                let from_end = Node::Apply(Function::Sub, vec![end, digit]);
                digit = graph.add(from_end, DType::I64);
            }
            values.push((*index, digit));
            // A remainder by a multiple has the same remainder.
            let divides = before % by == 0;
            let dividend = if divides { place } else { rest };
            rest = divided(graph, Function::Rem, dividend, by);
            (before, high) = (by, high.min(by - 1));
        }
        if high > 0 || ahead > 0 {
            let even = compared(graph, Function::Eq, rest, ahead);
            held.push(even);
        }
    }
}

/// `floordiv(node, by)` or `rem(node, by)`.
fn divided(graph: &mut Graph, function: Function, node: NodeId, by: i64) -> NodeId {
    if by == 1 && function == Function::FloorDiv {
        return node;
    }
    let by = graph.add(Node::Constant(Scalar::Int(by)), DType::I64);
    graph.add(Node::Apply(function, vec![node, by]), DType::I64)
}

pub(super) fn compared(graph: &mut Graph, function: Function, node: NodeId, with: i64) -> NodeId {
    let with = graph.add(Node::Constant(Scalar::Int(with)), DType::I64);
    graph.add(Node::Apply(function, vec![node, with]), DType::Bool)
}
