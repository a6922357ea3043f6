//! From the adjoint of a read to the adjoint of what is read: the map of indices to positions, turned around.
//!
//! A statement reads a tensor at positions that its indices give. The adjoint of the tensor at a place is the sum over
//! the indices that lead there. A bare index, and one index of an affine position, is solved for: it becomes the place, or
//! the place shifted, so the adjoint is a read; the others are summed. Where nothing can be solved for (a diagonal's
//! second position, a gather, a window that moves by several places) the sum is over the points at which the position
//! equals the place. Must not know derivatives.
//!
//! ```text
//! y[i] = x[i + 1] * w[i]          x[t]: A[i] * w[i] with i = t - 1, where 0 <= i
//! y[i] = max[r] x[2 * i + r]      x[t]: sum over i and r of what comes back if 2 * i + r == t
//! E[n, d] = table[tok[n], d]      table[v, d]: sum over n of A[n, d] if tok[n] == v
//! ```

use super::backward::{Term, on_path, on_paths};
use super::form::{Form, Symbol};
use super::sketch::{Copy, Sketch};
use crate::einsum::TensorId;
use ein_plan::kernel::Affine;
use ein_plan::{Function, Index, IndexId, Node, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// A part of a tensor's adjoint: an expression over its dimensions, summed over the indices behind them where the guard
/// holds. Without such indices there is no guard.
pub(super) struct Piece {
    pub(super) indices: Vec<Index>,
    pub(super) rank: usize,
    pub(super) sketch: Sketch,
    pub(super) root: NodeId,
    pub(super) guard: Option<NodeId>,
}

/// One read of a statement, with its adjoint.
pub(super) struct Reading<'a> {
    /// The statement's indices.
    pub(super) indices: &'a [Index],
    /// How many of them are the output's.
    pub(super) rank: usize,
    /// The statement's guard.
    pub(super) guard: Option<NodeId>,
    /// Expressions over the statement's indices.
    pub(super) sketch: &'a Sketch,
    /// Where it reads.
    pub(super) positions: &'a [NodeId],
    /// Extents of what it reads.
    pub(super) shape: &'a [u64],
    /// The adjoint of the read.
    pub(super) terms: &'a [Term],
    /// The statement's own adjoint, to which all terms are proportional, if it is a tensor.
    pub(super) adjoint: Option<TensorId>,
}

/// `index = form / divisor`, where the division leaves nothing.
struct Solution {
    form: Form,
    divisor: i64,
    /// The place where the index stands alone, if it does.
    bare: bool,
}

struct Solver<'a> {
    reading: &'a Reading<'a>,
    solutions: Vec<Option<Solution>>,
    /// Dimensions with the affine form that must equal the place.
    equal: Vec<(usize, Form)>,
    /// Dimensions whose position is anything else.
    looked_up: Vec<usize>,
}

/// The adjoint of what is read, as far as this read makes it.
pub(super) fn transpose(reading: &Reading<'_>) -> Piece {
    let mut solver = Solver {
        reading,
        solutions: reading.indices.iter().map(|_| None).collect(),
        equal: vec![],
        looked_up: vec![],
    };
    let names = solver.solve();
    let bounded = reading
        .adjoint
        .filter(|tensor| solver.adjoint_bounds(*tensor));
    solver.piece(names, bounded)
}

impl Solver<'_> {
    /// Solves for an index of every dimension that has one; a name for every dimension.
    fn solve(&mut self) -> Vec<Option<String>> {
        let graph = &self.reading.sketch.graph;
        let positions = self.reading.positions;
        let mut names = vec![None; positions.len()];
        let name = |index: usize| Some(self.reading.indices[index].name.clone());
        let mut rest = vec![];
        for (place, position) in positions.iter().enumerate() {
            match graph.as_index(*position).map(|index| index.0 as usize) {
                Some(index) if self.solutions[index].is_none() => {
                    names[place] = name(index);
                    self.solutions[index] = Some(Solution {
                        form: Form::symbol(Symbol::Place(place)),
                        divisor: 1,
                        bare: true,
                    });
                }
                _ => rest.push(place),
            }
        }
        for place in rest {
            let Some(affine) = graph.as_affine(positions[place]) else {
                self.looked_up.push(place);
                continue;
            };
            let mut form = Form {
                constant: affine.constant,
                terms: BTreeMap::new(),
            };
            for (index, factor) in affine.terms {
                form.terms.insert(Symbol::Index(index.0 as usize), factor);
            }
            let form = self.expanded(form);
            if self.is_stepped(&form) {
                self.equal.push((place, form));
                continue;
            }
            let strided = |index: &usize| self.solutions[*index].is_some();
            // An index from which one of the others follows cannot follow from that one.
            let behind = self.behind(&form);
            // The longest index saves most; the output's come first, since the adjoint then bounds them.
            let best = form
                .indices()
                .filter(|(index, factor)| {
                    !strided(index) && !behind.contains(index) && *factor != i64::MIN
                })
                .max_by_key(|(index, factor)| {
                    let extent = self.reading.indices[*index].extent;
                    (extent, *index < self.reading.rank, factor.abs() == 1)
                });
            let Some((index, factor)) = best else {
                self.equal.push((place, form));
                continue;
            };
            let others = form.plus(&Form::symbol(Symbol::Index(index)), -factor);
            let sign = factor.signum();
            let moved = Form::default()
                .plus(&Form::symbol(Symbol::Place(place)), sign)
                .plus(&others, -sign);
            names[place] = name(index);
            self.solutions[index] = Some(Solution {
                form: moved,
                divisor: factor.abs(),
                bare: false,
            });
        }
        names
    }

    /// Returns whether a position counts steps of one index and, if at all, another one within a few steps: a scatter says more of such places than an
    /// index that is solved for.
    fn is_stepped(&self, form: &Form) -> bool {
        let mut terms = vec![];
        for (symbol, factor) in &form.terms {
            match symbol {
                Symbol::Index(index) if self.solutions[*index].is_none() => {
                    terms.push((factor.unsigned_abs(), self.reading.indices[*index].extent));
                }
                _ => return false,
            }
        }
        terms.sort_unstable();
        match terms[..] {
            [(step, _)] => step > 1,
            [(part, within), (step, steps)] => {
                step > 1 && step % part == 0 && (within <= step / part || within <= steps)
            }
            _ => false,
        }
    }

    /// The indices that the solutions of a form's indices are made of.
    fn behind(&self, form: &Form) -> BTreeSet<usize> {
        let mut behind = BTreeSet::new();
        let mut open: Vec<usize> = form.indices().map(|(index, _)| index).collect();
        while let Some(index) = open.pop() {
            if let Some(solution) = &self.solutions[index] {
                let within = solution.form.indices().map(|(index, _)| index);
                open.extend(within.filter(|index| behind.insert(*index)));
            }
        }
        behind
    }

    /// A form without the indices that are solved for without a division.
    fn expanded(&self, mut form: Form) -> Form {
        loop {
            let next = form.terms.iter().find_map(|(symbol, factor)| match symbol {
                Symbol::Index(index) => {
                    let solution = self.solutions[*index].as_ref()?;
                    (solution.divisor == 1).then_some((*index, *factor, &solution.form))
                }
                Symbol::Place(_) => None,
            });
            let Some((index, factor, solution)) = next else {
                return form;
            };
            form = form
                .plus(&Form::symbol(Symbol::Index(index)), -factor)
                .plus(solution, factor);
        }
    }

    /// Returns whether an adjoint that is 0 elsewhere says all that must be said of the indices that are solved for: nothing
    /// else depends on them. A sum of products then stays one.
    fn adjoint_bounds(&self, adjoint: TensorId) -> bool {
        let reading = self.reading;
        let [(path, value)] = reading.terms else {
            return false;
        };
        let bounded: Vec<usize> = (0..self.solutions.len())
            .filter(|index| {
                let divided = |solution: &Solution| solution.divisor > 1;
                self.needs_range(*index) != (false, false)
                    || self.solutions[*index].as_ref().is_some_and(divided)
            })
            .collect();
        if bounded.is_empty() || bounded.iter().any(|index| *index >= reading.rank) {
            return false;
        }
        let graph = &reading.sketch.graph;
        let mut depends = vec![false; graph.len()];
        for (id, node, _) in graph.iter() {
            depends[id.0 as usize] = match node {
                Node::Index(index) => bounded.contains(&(index.0 as usize)),
                Node::Read { operand, .. }
                    if reading.sketch.operands[*operand as usize] == adjoint =>
                {
                    false
                }
                node => node.arguments().any(|a| depends[a.0 as usize]),
            };
        }
        let looked_up = self.looked_up.iter().map(|place| reading.positions[*place]);
        path.iter()
            .map(|(condition, _)| *condition)
            .chain([*value])
            .chain(reading.guard)
            .chain(looked_up)
            .all(|id| !depends[id.0 as usize])
    }

    /// Returns whether the solution of an index may be below 0, and whether it may be past the index's range.
    fn needs_range(&self, index: usize) -> (bool, bool) {
        let Some(solution) = &self.solutions[index] else {
            return (false, false);
        };
        let extent = i128::from(self.reading.indices[index].extent);
        let form = self.expanded(solution.form.clone());
        let (mut low, mut high) = (i128::from(form.constant), i128::from(form.constant));
        for (symbol, factor) in &form.terms {
            let extent = match symbol {
                Symbol::Place(place) => self.reading.shape[*place],
                Symbol::Index(index) => self.reading.indices[*index].extent,
            };
            let most = i128::from(*factor) * (i128::from(extent) - 1).max(0);
            low += most.min(0);
            high += most.max(0);
        }
        let divisor = i128::from(solution.divisor);
        (low < 0, high.div_euclid(divisor) >= extent)
    }

    fn piece(&self, names: Vec<Option<String>>, bounded: Option<TensorId>) -> Piece {
        let reading = self.reading;
        let rank = reading.shape.len();
        let mut indices = self.target_indices(names);
        let mut numbers = vec![0; reading.indices.len()];
        for (at, index) in reading.indices.iter().enumerate() {
            if self.solutions[at].is_none() {
                numbers[at] = indices.len();
                indices.push(index.clone());
            }
        }
        unique(&mut indices);
        let mut to = Sketch::default();
        let nodes: Vec<NodeId> = (0..numbers.len())
            .map(|index| self.index_node(&mut to, index, &numbers))
            .collect();
        let solved = self.solved(&mut to, &nodes, &numbers, bounded.is_some());
        let equal = self.equal(&mut to, &numbers);
        let (bounded, mut guard) = match bounded {
            Some(adjoint) => (Some((adjoint, solved)), equal),
            None => (None, to.and(solved, equal)),
        };
        let mut copy = Copy::new(reading.sketch, nodes, bounded);
        let all_guarded = reading.guard.filter(|guard| {
            let first = |(path, _): &Term| path.first() == Some(&(*guard, true));
            reading.terms.iter().all(first)
        });
        if let Some(outer) = all_guarded {
            let outer = copy.node(&mut to, outer);
            guard = to.and(guard, outer);
        }
        let skip = usize::from(all_guarded.is_some());
        let plain = reading.terms.iter().all(|(path, _)| path.len() == skip);
        // A position that is looked up may only be evaluated where its read is.
        let equals: Vec<NodeId> = self
            .looked_up
            .iter()
            .map(|place| {
                let position = copy.node(&mut to, reading.positions[*place]);
                let place = to.index(*place);
                to.compare(Function::Eq, position, place)
            })
            .collect();
        if plain {
            guard = equals
                .iter()
                .fold(guard, |guard, equal| to.and(guard, *equal));
        }
        let mut terms: Vec<Term> = vec![];
        for (path, value) in reading.terms {
            let mut path: Vec<(NodeId, bool)> = path[skip..]
                .iter()
                .map(|(condition, holds)| (copy.node(&mut to, *condition), *holds))
                .collect();
            if !plain {
                path.extend(equals.iter().map(|equal| (*equal, true)));
            }
            terms.push((path, copy.node(&mut to, *value)));
        }
        let root = on_paths(&mut to, &terms).expect("a read that has an adjoint has a term of it");
        finished(to, indices, rank, root, guard)
    }

    fn target_indices(&self, names: Vec<Option<String>>) -> Vec<Index> {
        let letters = ["i", "j", "k", "l", "m", "n"];
        names
            .into_iter()
            .zip(self.reading.shape)
            .enumerate()
            .map(|(place, (name, extent))| {
                let letter = || match letters.get(place) {
                    Some(letter) => letter.to_string(),
                    None => format!("i{place}"),
                };
                Index {
                    name: name.unwrap_or_else(letter),
                    extent: *extent,
                }
            })
            .collect()
    }

    /// Returns the node that stands for an index of the statement.
    fn index_node(&self, to: &mut Sketch, index: usize, numbers: &[usize]) -> NodeId {
        match &self.solutions[index] {
            None => to.index(numbers[index]),
            Some(solution) => {
                let form = self.form_node(to, &solution.form, numbers);
                if solution.divisor == 1 {
                    return form;
                }
                let divisor = to.whole(solution.divisor);
                to.apply(Function::FloorDiv, &[form, divisor])
            }
        }
    }

    fn form_node(&self, to: &mut Sketch, form: &Form, numbers: &[usize]) -> NodeId {
        let form = self.expanded(form.clone());
        let mut affine = Affine {
            constant: form.constant,
            terms: vec![],
        };
        let mut divided = vec![];
        for (symbol, factor) in form.terms {
            match symbol {
                Symbol::Index(index) if self.solutions[index].is_some() => {
                    divided.push((index, factor));
                }
                Symbol::Index(index) => {
                    affine.terms.push((IndexId(numbers[index] as u32), factor));
                }
                Symbol::Place(place) => affine.terms.push((IndexId(place as u32), factor)),
            }
        }
        affine.terms.sort();
        let mut sum = to.affine(&affine);
        for (index, factor) in divided {
            let (index, factor) = (self.index_node(to, index, numbers), to.whole(factor));
            let product = to.apply(Function::Mul, &[factor, index]);
            sum = to.apply(Function::Add, &[sum, product]);
        }
        sum
    }

    /// Returns the conditions of the solutions: divisions that leave nothing and, unless a read sees to that, values in range.
    fn solved(&self, to: &mut Sketch, nodes: &[NodeId], numbers: &[usize], ranged: bool) -> NodeId {
        let mut all = to.truth(true);
        let zero = to.whole(0);
        for (index, solution) in self.solutions.iter().enumerate() {
            let Some(solution) = solution else {
                continue;
            };
            if solution.divisor > 1 {
                let form = self.form_node(to, &solution.form, numbers);
                let divisor = to.whole(solution.divisor);
                let rest = to.apply(Function::Rem, &[form, divisor]);
                let divides = to.compare(Function::Eq, rest, zero);
                all = to.and(all, divides);
            }
            let (low, high) = self.needs_range(index);
            if low && !ranged {
                debug_assert!(!solution.bare, "a place is not negative");
                let low = to.compare(Function::Ge, nodes[index], zero);
                all = to.and(all, low);
            }
            if high && !ranged {
                let extent = to.whole(self.reading.indices[index].extent as i64);
                let high = to.compare(Function::Lt, nodes[index], extent);
                all = to.and(all, high);
            }
        }
        all
    }

    /// Affine positions that must equal the place.
    fn equal(&self, to: &mut Sketch, numbers: &[usize]) -> NodeId {
        let mut all = to.truth(true);
        for (place, form) in &self.equal {
            let position = self.form_node(to, form, numbers);
            let place = to.index(*place);
            let equal = to.compare(Function::Eq, position, place);
            all = to.and(all, equal);
        }
        all
    }
}

/// Without the summed indices that nothing depends on; without a guard where nothing is summed.
fn finished(
    mut sketch: Sketch,
    indices: Vec<Index>,
    rank: usize,
    mut root: NodeId,
    guard: NodeId,
) -> Piece {
    let mut used = vec![false; indices.len()];
    used[..rank].fill(true);
    for id in sketch.below(&[root, guard]) {
        if let Some(index) = sketch.graph.as_index(id) {
            used[index.0 as usize] = true;
        }
    }
    let idle: f64 = (rank..indices.len())
        .filter(|at| !used[*at])
        .map(|at| indices[at].extent as f64)
        .product();
    let factor = sketch.number(idle, sketch.graph.dtype(root));
    root = sketch.mul(root, factor);
    let mut kept = vec![];
    let mut to = Sketch::default();
    let nodes = indices
        .into_iter()
        .zip(&used)
        .map(|(index, used)| {
            if *used {
                kept.push(index);
            }
            to.index(kept.len().saturating_sub(1))
        })
        .collect();
    let mut copy = Copy::new(&sketch, nodes, None);
    let (mut root, guard) = (copy.node(&mut to, root), copy.node(&mut to, guard));
    let always = to.truth(true);
    let mut guard = (guard != always).then_some(guard);
    if kept.len() == rank
        && let Some(condition) = guard.take()
    {
        root = on_path(&mut to, &[(condition, true)], root);
    }
    Piece {
        indices: kept,
        rank,
        sketch: to,
        root,
        guard,
    }
}

/// Makes the names of indices distinct.
pub(super) fn unique(indices: &mut [Index]) {
    for at in 0..indices.len() {
        let base = indices[at].name.clone();
        let mut number = 2;
        while indices[..at].iter().any(|i| i.name == indices[at].name) {
            indices[at].name = format!("{base}_{number}");
            number += 1;
        }
    }
}
