//! Where the elements of a read lie.
//!
//! Must not know what is done with them.
//!
//! ```text
//! a0[2 * n, d]   of an f32[100, 8]   ->   base 0, steps n: 16, d: 1
//! ```

use crate::forms::affine_forms;
use crate::leaves::value;
use crate::program::Place;
use ein_plan::{DType, Kernel, Node, NodeId};

/// Where the elements of a read lie: element `base + Σ step · index` of a column, indices counted from 0.
#[derive(Clone, Debug)]
pub(crate) struct StridedAccess {
    pub operand: usize,
    pub column: usize,
    pub base: i64,
    pub steps: Vec<i64>,
}

impl StridedAccess {
    /// Where the element at the first value of each range lies, of operands of which `skipped` first elements (none: 0) are not there.
    pub(crate) fn first(&self, ranges: &[(i64, i64)], skipped: &[i64]) -> i64 {
        let skipped = skipped.get(self.operand).copied().unwrap_or(0);
        let steps = self.steps.iter().zip(ranges);
        steps.fold(self.base - skipped, |sum, (step, range)| {
            sum + step * range.0
        })
    }

    /// How far the elements at the values of some indices, of such lengths, are from the first one: row-major.
    pub(crate) fn distances(&self, indices: &[usize], lengths: &[usize]) -> Vec<usize> {
        distances(indices, lengths, &self.steps)
    }
}

/// The distances of the values of some indices from the first one, in row-major order.
pub(crate) fn distances(indices: &[usize], lengths: &[usize], steps: &[i64]) -> Vec<usize> {
    let mut all = vec![0i64];
    for i in indices {
        let (length, step) = (lengths[*i] as i64, steps[*i]);
        let before = std::mem::take(&mut all);
        all.reserve(before.len() * lengths[*i]);
        for x in before {
            all.extend((0..length).map(|n| x + n * step));
        }
    }
    all.into_iter().map(|x| x as usize).collect()
}

/// Where a read's elements lie, if all are inside and of this type.
pub(crate) fn lie(
    kernel: &Kernel,
    id: NodeId,
    dtype: DType,
    ranges: &[(i64, i64)],
    places: &[Place],
) -> Option<StridedAccess> {
    let (lie, found) = lie_but_one(kernel, id, dtype, ranges, places)?;
    found.is_none().then_some(lie)
}

/// Where a read's elements lie, if they are of this type and inside in all dimensions but at most one, whose position data say: that
/// dimension with the position, as if it were the first one that is there.
pub(crate) fn lie_but_one(
    kernel: &Kernel,
    id: NodeId,
    dtype: DType,
    ranges: &[(i64, i64)],
    places: &[Place],
) -> Option<(StridedAccess, Option<(usize, NodeId)>)> {
    let Node::Read {
        operand,
        column,
        positions,
        ..
    } = kernel.graph.node(value(&kernel.graph, id))
    else {
        return None;
    };
    let (operand, column) = (*operand as usize, *column as usize);
    if kernel.operands[operand].columns[column] != dtype {
        return None;
    }
    let place = &places[operand];
    let forms = affine_forms(&kernel.graph, ranges);
    let (mut base, mut steps) = (0, vec![0; ranges.len()]);
    let mut found = None;
    for (d, position) in positions.iter().enumerate() {
        let Some(form) = forms[position.0 as usize].as_ref() else {
            if found.replace((d, *position)).is_some() {
                return None;
            }
            continue;
        };
        if form.low < place.start[d] || form.high >= place.start[d] + place.shape[d] {
            return None;
        }
        base += (form.constant - place.start[d]) * place.strides[d];
        for (index, coefficient) in &form.terms {
            steps[*index] += coefficient * place.strides[d];
        }
    }
    let lie = StridedAccess {
        operand,
        column,
        base,
        steps,
    };
    Some((lie, found))
}
