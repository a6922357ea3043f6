//! Members of a sweep whose rows are one number but for a range of columns: what a mask chooses, and what is made of that.
//!
//! Only that range is computed of such a row, and of a product only the columns that a mask chooses. Must not know blocks, or how a row is
//! computed.
//!
//! ```text
//! [t, s] where(s <= t, m0[t, s], -inf)      where s < t + 1 else -inf over m0
//! [t, s] exp(m1[t, s] - m2[t])                   where s < t + 1: elsewhere what it is at one of the others
//! [t, s | d] sum a0[t, d] * a1[s, d]             within m1
//! ```

use super::forms::{Form64, affine_forms, number};
use super::guard::conjuncts;
use super::leaves::value;
use super::outline::{Origin, Outline};
use crate::{Affine, DType, Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Fewest columns of a row that is not computed whole: a strip holds several shorter ones.
const FEWEST: u64 = 256;
/// Most conditions of a mask.
const MOST: usize = 16;

/// The form without the interval of its values.
fn affine(form: &Form64) -> Affine {
    let terms = form.terms.iter();
    let mut terms: Vec<(IndexId, i64)> = terms.map(|(i, c)| (IndexId(*i as u32), *c)).collect();
    terms.sort_unstable();
    Affine {
        constant: form.constant,
        terms,
    }
}

impl Affine {
    /// The value at a point.
    fn at(&self, point: &[i64]) -> i64 {
        let terms = self.terms.iter();
        terms.fold(self.constant, |sum, (index, c)| {
            sum.wrapping_add(c.wrapping_mul(point[index.0 as usize]))
        })
    }

    /// The lowest value and the highest over ranges (start and length).
    fn ends(&self, ranges: &[(i64, i64)]) -> (i64, i64) {
        let (mut low, mut high) = (i128::from(self.constant), i128::from(self.constant));
        for (index, coefficient) in &self.terms {
            let (start, length) = ranges[index.0 as usize];
            let ends = [start, start + length.max(1) - 1];
            let ends = ends.map(|end| i128::from(*coefficient) * i128::from(end));
            low += ends[0].min(ends[1]);
            high += ends[0].max(ends[1]);
        }
        let fitted = |end: i128| end.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
        (fitted(low), fitted(high))
    }
}

/// A range of columns, row by row. Columns are the values of a kernel's last output index, or of the one that a guard bounds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mask {
    /// None is below any of these.
    pub from: Vec<Affine>,
    /// All are below each of these.
    pub below: Vec<Affine>,
}

impl Mask {
    /// The columns of a row, of these (start and length). `point`: the values of all indices; that of the columns is not looked at.
    pub fn of_row(&self, point: &[i64], columns: (i64, i64)) -> Range<i64> {
        self.within(columns, |form| form.at(point), |form| form.at(point))
    }

    /// Columns that are those of any row over these ranges.
    pub fn of_rows(&self, ranges: &[(i64, i64)]) -> Range<i64> {
        self.hull(ranges, ranges.last().copied().unwrap_or_default())
    }

    /// The bounds that a guard gives an index, by the other indices; the other conditions are not looked at.
    pub fn of_guard(kernel: &Kernel, index: IndexId) -> Mask {
        let conditions = kernel
            .guard
            .map_or(vec![], |guard| conjuncts(&kernel.graph, guard));
        let bounds = conditions.into_iter();
        let bounds = bounds.filter_map(|id| Mask::of_condition(kernel, id, index));
        bounds.fold(Mask::default(), |mut all, more| {
            all.from.extend(more.from);
            all.below.extend(more.below);
            all
        })
    }

    /// The bounds that a condition gives an index, by the other indices; `None` if it says something else, too.
    pub fn of_condition(kernel: &Kernel, condition: NodeId, index: IndexId) -> Option<Mask> {
        let whole = kernel.indices.iter();
        let whole: Vec<(i64, i64)> = whole.map(|index| (0, index.extent as i64)).collect();
        mask(&kernel.graph, (condition, true), &whole, index)
    }

    /// The values of an index that the guard leaves in at every point of the other indices, and the conditions of others alone; `None` if a condition
    /// of the index is no bound.
    pub fn always(kernel: &Kernel, index: IndexId) -> Option<(Range<i64>, Vec<NodeId>)> {
        let ranges: Vec<(i64, i64)> = (kernel.indices.iter())
            .map(|index| (0, index.extent as i64))
            .collect();
        let depends = kernel.graph.dependencies();
        let conditions = kernel
            .guard
            .map_or(vec![], |guard| conjuncts(&kernel.graph, guard));
        let (bounds, others): (Vec<NodeId>, Vec<NodeId>) =
            (conditions.into_iter()).partition(|id| depends[id.0 as usize] >> index.0 & 1 == 1);
        let own = ranges[index.0 as usize];
        let mut always = own.0..own.0 + own.1;
        for condition in bounds {
            let bound = mask(&kernel.graph, (condition, true), &ranges, index)?;
            let inside = bound.within(
                own,
                |form| form.ends(&ranges).1,
                |form| form.ends(&ranges).0,
            );
            always = always.start.max(inside.start)..always.end.min(inside.end);
        }
        Some((always, others))
    }

    /// The indices that the bounds depend on.
    pub fn indices(&self) -> impl Iterator<Item = IndexId> + '_ {
        let forms = self.from.iter().chain(&self.below);
        forms.flat_map(|form| form.terms.iter().map(|term| term.0))
    }

    /// The values of an index, out of these (start and length), that are within the bounds at some point of these ranges.
    pub fn hull(&self, ranges: &[(i64, i64)], own: (i64, i64)) -> Range<i64> {
        self.within(own, |form| form.ends(ranges).0, |form| form.ends(ranges).1)
    }

    fn within(
        &self,
        (start, length): (i64, i64),
        from: impl Fn(&Affine) -> i64,
        below: impl Fn(&Affine) -> i64,
    ) -> Range<i64> {
        let end = start + length;
        let first = self.from.iter().map(from).fold(start, i64::max).min(end);
        let last = self.below.iter().map(below).fold(end, i64::min);
        first..last.max(first)
    }
}

/// The range of columns outside which the rows of a member are one number each.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Masked {
    /// The columns.
    pub mask: Mask,
    /// The number, if the kernel chooses between it and the columns; else it is the kernel's value at any column outside.
    pub outside: Option<Scalar>,
    /// The member that the columns are the elements of, if nothing else reads that: its memory becomes this member's.
    pub over: Option<u32>,
}

impl Masked {
    /// The node that the columns of the range are.
    pub fn root(&self, kernel: &Kernel) -> NodeId {
        match (self.outside, choice(kernel)) {
            (Some(_), Some(choice)) => choice.inside,
            _ => kernel.root,
        }
    }
}

/// A choice between a number and what is computed.
struct Choice {
    condition: NodeId,
    /// The value of the condition for which the number is not taken.
    wanted: bool,
    inside: NodeId,
    outside: Scalar,
}

/// The choice that a kernel's value is.
fn choice(kernel: &Kernel) -> Option<Choice> {
    let graph = &kernel.graph;
    let Node::Apply(Function::Select, of) = graph.node(value(graph, kernel.root)) else {
        return None;
    };
    let number = |id: NodeId| match graph.node(id) {
        Node::Constant(number) => Some(*number),
        _ => None,
    };
    let (inside, outside, wanted) = match (number(of[1]), number(of[2])) {
        (None, Some(outside)) => (of[1], outside, true),
        (Some(outside), None) => (of[2], outside, false),
        _ => return None,
    };
    Some(Choice {
        condition: of[0],
        wanted,
        inside,
        outside,
    })
}

/// Returns what a mask chooses of the rows of a member of a sweep over so many `rows` indices.
pub(super) fn chosen(member: &Outline<'_>, rows: usize) -> Option<Masked> {
    if !has_columns(member, rows) {
        return None;
    }
    let kernel = member.kernel;
    let choice = choice(kernel)?;
    let whole = kernel.indices.iter();
    let whole: Vec<(i64, i64)> = whole.map(|index| (0, index.extent as i64)).collect();
    let condition = (choice.condition, choice.wanted);
    let columns = IndexId(whole.len() as u32 - 1);
    Some(Masked {
        mask: mask(&kernel.graph, condition, &whole, columns)?,
        outside: Some(choice.outside),
        over: None,
    })
}

/// Returns whether a member computes floats point by point in rows of enough columns.
fn has_columns(member: &Outline<'_>, rows: usize) -> bool {
    let kernel = member.kernel;
    let value = kernel.graph.dtype(kernel.root);
    member.ranges.len() > rows
        && kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.output_rank as usize == kernel.indices.len()
        && matches!(value, DType::F32 | DType::F64)
        && kernel.output == [value]
        && (member.ranges.last()).is_some_and(|columns| columns.1 >= FEWEST)
}

/// The values of `columns` at which a condition is `wanted`.
fn mask(
    graph: &Graph,
    condition: (NodeId, bool),
    ranges: &[(i64, i64)],
    IndexId(columns): IndexId,
) -> Option<Mask> {
    use Function as F;
    let forms = affine_forms(graph, ranges);
    let (mut open, mut visited) = (vec![condition], 0);
    let mut mask = Mask::default();
    while let Some((id, wanted)) = open.pop() {
        visited += 1;
        let Node::Apply(function, of) = graph.node(id) else {
            return None;
        };
        if visited > MOST {
            return None;
        }
        let compared = match (function, wanted) {
            (F::Not, _) => {
                open.push((of[0], !wanted));
                continue;
            }
            (F::And, true) | (F::Or, false) => {
                open.extend([(of[0], wanted), (of[1], wanted)]);
                continue;
            }
            (F::Lt, true) | (F::Ge, false) => (of[0], of[1], 0),
            (F::Le, true) | (F::Gt, false) => (of[0], of[1], 1),
            (F::Gt, true) | (F::Le, false) => (of[1], of[0], 0),
            (F::Ge, true) | (F::Lt, false) => (of[1], of[0], 1),
            _ => return None,
        };
        // less < more + end
        let (less, more, end) = compared;
        let form = |id: NodeId| forms[id.0 as usize].as_ref();
        let (size, signs): (NodeId, &[i64]) = match graph.node(less) {
            Node::Apply(F::Abs, of) => (of[0], &[1, -1]),
            _ => (less, &[1]),
        };
        for sign in signs {
            let between = form(more)?.plus(form(size)?, -sign, ranges)?;
            let (step, others) = between.without(columns as usize, ranges)?;
            match step {
                // 0 < others + end - column
                -1 => {
                    let below = others.plus(&number(end, ranges)?, 1, ranges)?;
                    mask.below.push(affine(&below));
                }
                // 0 < others + end + column
                1 => {
                    let from = number(1 - end, ranges)?.plus(&others, -1, ranges)?;
                    mask.from.push(affine(&from));
                }
                _ => return None,
            }
        }
    }
    Some(mask)
}

/// Returns what is masked of a member: what it chooses, or what follows from that of members before it, which are `known`.
pub(super) fn masked(
    member: &Outline<'_>,
    rows: usize,
    known: &[Option<Masked>],
) -> Option<Masked> {
    let follows = || has_columns(member, rows).then(|| follows(member, known));
    chosen(member, rows).or_else(|| follows().flatten())
}

/// Returns what is masked of a member because nothing else that it reads differs between columns.
fn follows(member: &Outline<'_>, known: &[Option<Masked>]) -> Option<Masked> {
    let kernel = member.kernel;
    let columns = IndexId(member.ranges.len() as u32 - 1);
    let mut mask: Option<&Mask> = None;
    // By node: whether it depends on the column by way of what is masked only.
    let mut follow: Vec<bool> = vec![];
    for (_, node, _) in kernel.graph.iter() {
        let all = || node.arguments().all(|argument| follow[argument.0 as usize]);
        let made = match node {
            Node::Read {
                operand, positions, ..
            } if is_beside(kernel, positions) => match member.operands[*operand as usize] {
                Origin::Made(other) => known[other].as_ref(),
                Origin::Given(_) => None,
            },
            _ => None,
        };
        follow.push(match (node, made) {
            (Node::Index(index), _) => *index != columns,
            (_, Some(made)) => *mask.get_or_insert(&made.mask) == &made.mask,
            (_, None) => all(),
        });
    }
    (follow[kernel.root.0 as usize]).then_some(Masked {
        mask: mask?.clone(),
        outside: None,
        over: None,
    })
}

/// Returns whether positions are those of the point itself.
fn is_beside(kernel: &Kernel, positions: &[NodeId]) -> bool {
    positions.len() == kernel.output_rank as usize && kernel.rows_read(positions) == positions.len()
}

/// Returns the product that a member is but for what is outside its mask, if nobody else reads it.
pub(super) fn over(
    members: &[Outline<'_>],
    masked: &[Option<Masked>],
    number: usize,
) -> Option<usize> {
    let (member, of) = (&members[number], masked[number].as_ref()?);
    of.outside?;
    let graph = &member.kernel.graph;
    let Node::Read { operand, .. } = graph.node(value(graph, of.root(member.kernel))) else {
        return None;
    };
    let Origin::Made(product) = member.operands[*operand as usize] else {
        return None;
    };
    let readers = members
        .iter()
        .filter(|member| member.operands.contains(&Origin::Made(product)));
    let alone = readers.count() == 1 && members[product].kernel.output == member.kernel.output;
    (alone && within(members, masked, product).is_some()).then_some(product)
}

/// Returns a member whose mask chooses all that is wanted of a product: the masks of its readers are the same.
pub(super) fn within(
    members: &[Outline<'_>],
    masked: &[Option<Masked>],
    number: usize,
) -> Option<usize> {
    let member = &members[number];
    let kernel = member.kernel;
    let value = kernel.graph.dtype(kernel.root);
    if member.kept || !kernel.is_product() || kernel.output != [value] {
        return None;
    }
    let mut first: Option<(usize, &Mask)> = None;
    for (place, (reader, masked)) in members.iter().zip(masked).enumerate() {
        for (operand, positions) in reader.kernel.graph.reads() {
            if reader.operands[operand as usize] != Origin::Made(number) {
                continue;
            }
            let known = masked.as_ref().filter(|masked| masked.outside.is_some())?;
            let rank = kernel.output_rank as usize;
            let same = reader.ranges[..] == member.ranges[..rank]
                && reader.cuts[..] == member.cuts[..rank];
            if !same
                || !is_beside(reader.kernel, positions)
                || first.is_some_and(|(_, mask)| *mask != known.mask)
            {
                return None;
            }
            first = first.or(Some((place, &known.mask)));
        }
    }
    first.map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::{Affine, Mask};
    use crate::IndexId;

    #[test]
    fn columns_of_rows_lie_between_the_bounds() {
        let form = |constant| Affine {
            terms: vec![(IndexId(0), 1)],
            constant,
        };
        // s >= t - 3 and s < t + 1
        let mask = Mask {
            from: vec![form(-3)],
            below: vec![form(1)],
        };
        assert_eq!(mask.of_row(&[5, 0], (0, 8)), 2..6);
        assert_eq!(mask.of_row(&[1, 0], (0, 8)), 0..2);
        assert_eq!(mask.of_row(&[9, 0], (0, 8)), 6..8);
        assert_eq!(mask.of_row(&[20, 0], (0, 8)), 8..8);
        assert_eq!(mask.of_rows(&[(4, 2), (0, 8)]), 1..6);
    }
}
