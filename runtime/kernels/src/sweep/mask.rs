//! Members whose rows are one number but for a range of columns: what a mask chooses, and what is made of that.
//!
//! Only that range is computed of such a row, and of a product only the columns that a mask chooses. Must not know blocks, or how a row is
//! computed.
//!
//! ```text
//! [t, s] select(s <= t, m0[t, s] / 8, -inf)      columns ..=t of row t; elsewhere -inf
//! [t, s] exp(m1[t, s] - m2[t])                   the same columns; elsewhere what it is at one of the others
//! ```

use super::{Member, Operand};
use crate::segment::Segment;
use crate::signed;
use ein_plan::schedule::forms::{Form64, affine_forms, number};
use ein_plan::schedule::leaves::value;
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId};
use std::ops::Range;

/// Fewest columns of a row that is not computed whole: a strip holds several shorter ones.
pub(super) const FEWEST: u64 = 256;
/// Most conditions of a mask.
const MOST: usize = 16;

/// A range of columns, row by row. Columns are the values of a kernel's last output index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mask {
    /// None is below any of these.
    from: Vec<Form64>,
    /// All are below each of these.
    below: Vec<Form64>,
}

impl Mask {
    /// The columns of a row, of these (start and length). `point`: the values of all indices; that of the columns is not looked at.
    pub(crate) fn of_row(&self, point: &[i64], columns: (i64, i64)) -> Range<i64> {
        self.within(columns, |form| form.at(point), |form| form.at(point))
    }

    /// Columns that are those of any row over these ranges.
    pub(super) fn of_rows(&self, ranges: &[(i64, i64)]) -> Range<i64> {
        let columns = ranges.last().copied().unwrap_or_default();
        self.within(
            columns,
            |form| form.ends(ranges).0,
            |form| form.ends(ranges).1,
        )
    }

    /// Sets what is outside its columns in a block of rows over these ranges.
    pub(super) fn set_outside(&self, ranges: &[(i64, i64)], to: &mut Segment<'_>, outside: f64) {
        let Some((columns, rows)) = ranges.split_last() else {
            return;
        };
        let mut point: Vec<i64> = ranges.iter().map(|range| range.0).collect();
        let count: i64 = rows.iter().map(|row| row.1).product();
        for row in 0..count {
            let of_row = self.of_row(&point, *columns);
            let at = |column: i64| (row * columns.1 + column - columns.0) as usize;
            let (begin, end) = (at(columns.0), at(columns.0 + columns.1));
            for outside_of in [begin..at(of_row.start), at(of_row.end)..end] {
                if let Some(first) = outside_of.clone().next() {
                    to.set_float(first, outside);
                    to.repeat(first, outside_of);
                }
            }
            for (value, (start, length)) in point.iter_mut().zip(rows).rev() {
                *value += 1;
                if *value < start + length {
                    break;
                }
                *value = *start;
            }
        }
    }

    fn within(
        &self,
        (start, length): (i64, i64),
        from: impl Fn(&Form64) -> i64,
        below: impl Fn(&Form64) -> i64,
    ) -> Range<i64> {
        let end = start + length;
        let first = self.from.iter().map(from).fold(start, i64::max).min(end);
        let last = self.below.iter().map(below).fold(end, i64::min);
        first..last.max(first)
    }
}

/// A member of which rows are one number outside a range.
#[derive(Debug)]
pub(super) struct Masked {
    pub mask: Mask,
    /// What the columns of the range are.
    pub root: NodeId,
    /// What the others are, if that is said: else all of a row are the same.
    pub outside: Option<f64>,
}

impl Masked {
    /// The kernel of what the columns of the range are.
    pub(super) fn kernel(&self, of: &Kernel) -> Kernel {
        Kernel {
            root: self.root,
            ..of.clone()
        }
    }
}

/// What a mask chooses of a kernel's rows, if it does nothing else.
pub(super) fn chosen(kernel: &Kernel, ranges: &[(u64, u64)]) -> Option<Masked> {
    if !has_columns(kernel, ranges) {
        return None;
    }
    let graph = &kernel.graph;
    let Node::Apply(Function::Select, of) = graph.node(value(graph, kernel.root)) else {
        return None;
    };
    let number = |id: NodeId| match graph.node(id) {
        Node::Constant(number) => Some(number.as_f64()),
        _ => None,
    };
    let (root, outside, wanted) = match (number(of[1]), number(of[2])) {
        (None, Some(outside)) => (of[1], outside, true),
        (Some(outside), None) => (of[2], outside, false),
        _ => return None,
    };
    Some(Masked {
        mask: mask(graph, (of[0], wanted), &signed(ranges))?,
        root,
        outside: Some(outside),
    })
}

/// Whether a mask chooses from the rows of a member of a sweep over so many `rows` indices.
pub(super) fn masks(kernel: &Kernel, ranges: &[(u64, u64)], rows: usize) -> bool {
    ranges.len() > rows && chosen(kernel, ranges).is_some()
}

/// Whether a kernel computes floats point by point in rows of enough columns.
fn has_columns(kernel: &Kernel, ranges: &[(u64, u64)]) -> bool {
    let value = kernel.graph.dtype(kernel.root);
    kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.output_rank as usize == kernel.indices.len()
        && matches!(value, DType::F32 | DType::F64)
        && kernel.output == [value]
        && ranges.last().is_some_and(|columns| columns.1 >= FEWEST)
}

/// The columns in which a condition is `wanted`.
fn mask(graph: &Graph, condition: (NodeId, bool), ranges: &[(i64, i64)]) -> Option<Mask> {
    use Function as F;
    let forms = affine_forms(graph, ranges);
    let columns = ranges.len() - 1;
    let (mut open, mut visited) = (vec![condition], 0);
    let mut mask = Mask {
        from: vec![],
        below: vec![],
    };
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
        let between = form(more)?.plus(form(less)?, -1, ranges)?;
        let (step, others) = between.without(columns, ranges)?;
        match step {
            // 0 < others + end - column
            -1 => mask
                .below
                .push(others.plus(&number(end, ranges)?, 1, ranges)?),
            // 0 < others + end + column
            1 => mask
                .from
                .push(number(1 - end, ranges)?.plus(&others, -1, ranges)?),
            _ => return None,
        }
    }
    Some(mask)
}

/// By member, what is masked of it; `alone`: whether it is not taken together with others.
pub(super) fn masked(
    members: &[Member<'_>],
    rows: usize,
    alone: impl Fn(usize) -> bool,
) -> Vec<Option<Masked>> {
    let mut found: Vec<Option<Masked>> = vec![];
    for (number, member) in members.iter().enumerate() {
        let masked = (alone(number) && member.ranges.len() > rows)
            .then(|| chosen(member.kernel, &member.ranges).or_else(|| follows(member, &found)));
        found.push(masked.flatten());
    }
    found
}

/// What is masked of a member because nothing else that it reads differs between columns.
fn follows(member: &Member<'_>, known: &[Option<Masked>]) -> Option<Masked> {
    let kernel = member.kernel;
    if !has_columns(kernel, &member.ranges) {
        return None;
    }
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
                Operand::Made(other) => known[other].as_ref(),
                _ => None,
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
        root: kernel.root,
        outside: None,
    })
}

/// Whether positions are those of the point itself.
pub(super) fn is_beside(kernel: &Kernel, positions: &[NodeId]) -> bool {
    positions.len() == kernel.output_rank as usize && kernel.rows_read(positions) == positions.len()
}

/// The product that a member is but for what is outside its mask, if nobody else reads it.
pub(super) fn taken(
    members: &[Member<'_>],
    masked: &[Option<Masked>],
    number: usize,
) -> Option<usize> {
    let (member, of) = (&members[number], masked[number].as_ref()?);
    let graph = &member.kernel.graph;
    let Node::Read { operand, .. } = graph.node(value(graph, of.root)) else {
        return None;
    };
    let Operand::Made(product) = member.operands[*operand as usize] else {
        return None;
    };
    let readers = members.iter().filter(|member| {
        let mut operands = member.operands.iter();
        operands.any(|operand| matches!(operand, Operand::Made(made) if *made == product))
    });
    let alone = readers.count() == 1 && members[product].kernel.output == member.kernel.output;
    (alone && wanted(members, masked, product).is_some()).then_some(product)
}

/// The columns that are wanted of a product: those that the mask of its only reader chooses.
pub(super) fn wanted(
    members: &[Member<'_>],
    masked: &[Option<Masked>],
    number: usize,
) -> Option<Mask> {
    let member = &members[number];
    let value = member.kernel.graph.dtype(member.kernel.root);
    if member.kept || !member.kernel.is_product() || member.kernel.output != [value] {
        return None;
    }
    let mut mask: Option<&Mask> = None;
    for (reader, masked) in members.iter().zip(masked) {
        for (operand, positions) in reader.kernel.graph.reads() {
            if !matches!(reader.operands[operand as usize], Operand::Made(made) if made == number) {
                continue;
            }
            let known = masked.as_ref().filter(|masked| masked.outside.is_some())?;
            let rank = member.kernel.output_rank as usize;
            let same = reader.ranges[..] == member.ranges[..rank];
            if !same
                || !is_beside(reader.kernel, positions)
                || mask.is_some_and(|m| *m != known.mask)
            {
                return None;
            }
            mask = Some(&known.mask);
        }
    }
    mask.cloned()
}
