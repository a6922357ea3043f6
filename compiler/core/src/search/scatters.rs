//! Scatters of sums: an index that has no say in where a value goes is summed before the scatter.
//!
//! A scatter adds every point where it belongs. Of points that differ in such an index alone, it would add each; their sum is one, and often a product of
//! matrices, as in a transposed convolution. As with any reordered sum, rounding may differ. A value that is computed and goes to several places, as that of
//! a bag of words goes to each of them, is computed once. Must not know placements.
//!
//! ```text
//! O: f32[9] = [p: 9 | y: 4, r: 2, c: 8] sum I[c, y] * W[c, r] if 2 * y + r == p
//! O.terms: f32[4, 2] = [y: 4, r: 2 | c: 8] sum I[c, y] * W[c, r];  O: f32[9] = [p: 9 | y: 4, r: 2] sum O.terms[y, r] if 2 * y + r == p
//! ```

use super::meeting::Placed;
use crate::einsum::{Program, Rewriting, TensorId, canonical};
use crate::rules::{element, may_fault, over};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{IndexId, Kernel, Node, NodeId};

/// How many times as large as the operands and the result together the sums may be.
const MOST_LARGER: u64 = 16;

/// Returns the program in which scatters go through sums.
pub fn summed(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (kernel, operands) = (statement.kernel, statement.operands);
        let sums = Sums::of(kernel)?;
        let terms = canonical::statement(sums.terms(kernel), operands);
        let terms = statement.add("terms", terms);
        Some(sums.scatter(kernel, operands, terms))
    })
}

/// The indices of a scatter by what they are to its sums.
struct Sums {
    /// Those of the sums: each of them is one value.
    own: Vec<usize>,
    /// Those that are summed first.
    first: Vec<usize>,
}

impl Sums {
    fn of(kernel: &Kernel) -> Option<Sums> {
        let solved = kernel.scattered();
        let guard = kernel.guard.filter(|_| !solved.is_empty())?;
        let depends = kernel.graph.dependencies();
        let (says, value) = (depends[guard.0 as usize], depends[kernel.root.0 as usize]);
        let rank = kernel.output_rank as usize;
        let is_solved = |i: usize| solved.iter().any(|index| index.0 as usize == i);
        let extent = |i: &usize| kernel.indices[*i].extent;
        let is_first = |i: &usize| *i >= rank && says >> i & 1 == 0 && extent(i) > 1;
        let all = 0..kernel.indices.len();
        let first: Vec<usize> = all.clone().filter(is_first).collect();
        let own = all.filter(|i| value >> i & 1 == 1 && !is_solved(*i) && !is_first(i));
        let mut own: Vec<usize> = own.collect();
        let conditions = conjuncts(&kernel.graph, guard);
        own.sort_by_key(|i| place_of(kernel, &conditions, *i));
        let sums = Sums { own, first };
        let product = |extents: &mut dyn Iterator<Item = u64>| extents.fold(1, u64::saturating_mul);
        let there = kernel
            .operands
            .iter()
            .map(|o| product(&mut o.shape.iter().copied()));
        let result = product(&mut (0..rank).map(|i| extent(&i)));
        let there = there.fold(result, u64::saturating_add);
        let size = product(&mut sums.own.iter().map(extent));
        let summed = sums.first.iter().any(|i| value >> i & 1 == 1);
        // The scatter is a reduction of what is left.
        let some_left =
            (rank..kernel.indices.len()).any(|i| !sums.first.contains(&i) && extent(&i) > 1);
        let is_read = matches!(
            kernel.graph.node(kernel.root),
            Node::Read { .. } | Node::Constant(_)
        );
        let is_shared = |i: usize| (says & !value) >> i & 1 == 1 && extent(&i) > 1;
        let of_place = solved.iter().any(|index| value >> index.0 & 1 == 1);
        let shared = !is_read && !of_place && (rank..kernel.indices.len()).any(is_shared);
        let fits = (summed || shared) && some_left && size <= there.saturating_mul(MOST_LARGER);
        (fits && !may_fault(&sums.terms(kernel).canonical())).then_some(sums)
    }

    /// The kernel of the sums.
    fn terms(&self, kernel: &Kernel) -> Kernel {
        let mut terms = kernel.clone();
        terms.guard = None;
        terms.reduction = terms.reduction.filter(|_| !self.first.is_empty());
        terms.output = vec![kernel.graph.dtype(kernel.root)];
        terms.output_rank = self.own.len() as u32;
        let all: Vec<usize> = self.own.iter().chain(&self.first).copied().collect();
        over(terms, kernel, &all)
    }

    /// The kernel of the scatter, which reads the sums.
    fn scatter(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        terms: TensorId,
    ) -> (Kernel, Vec<TensorId>) {
        let mut scatter = kernel.clone();
        let dtype = kernel.graph.dtype(kernel.root);
        let Kernel {
            graph,
            operands: of,
            ..
        } = &mut scatter;
        scatter.root = element((graph, of), kernel, &self.own, dtype);
        let all = 0..kernel.indices.len();
        let left: Vec<usize> = all.filter(|i| !self.first.contains(i)).collect();
        let operands = [operands, &[terms]].concat();
        canonical::statement(over(scatter, kernel, &left), &operands)
    }
}

/// Where an index of the sums stands among them. Digits of a place lie as the place does, so that the scatter is a copy. Where values
/// meet in a place, the index with the greatest part in it is the last one: what [`super::overlaps`] reads of the sums lies together then.
fn place_of(kernel: &Kernel, conditions: &[NodeId], index: usize) -> (usize, usize) {
    let index = IndexId(index as u32);
    let last = kernel.indices.len();
    let place = conditions.iter().find_map(|condition| {
        let placed = Placed::of(kernel, *condition)?;
        let at = placed.terms.iter().position(|(digit, _)| *digit == index)?;
        let (place, _) = placed.place.terms.first()?;
        match placed.digits(kernel) {
            Some(_) => Some((place.0 as usize, at)),
            None => (at == 0).then_some((last, 0)),
        }
    });
    place.unwrap_or((index.0 as usize, 0))
}
