//! Where the elements of an operand lie, and which of them a read takes.
//!
//! Must not know what is done with them.
//!
//! ```text
//! a0[2 * n, d]   of an f32[100, 8]   ->   base 0, steps n: 16, d: 1
//! ```

use super::forms::affine_forms;
use super::leaves::value;
use crate::{DType, Kernel, Node, NodeId};

/// Where an operand's part lies in the whole, and how its elements follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The global number at which each dimension begins.
    pub start: Vec<i64>,
    /// Elements of each dimension.
    pub shape: Vec<i64>,
    /// Distance in elements between neighbours along each dimension.
    pub strides: Vec<i64>,
}

impl Place {
    /// The place of the elements `ranges` (start and length of each dimension), in row-major order.
    pub fn new(ranges: &[(u64, u64)]) -> Place {
        let shape: Vec<i64> = ranges.iter().map(|(_, n)| *n as i64).collect();
        let mut strides = vec![1i64; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d].wrapping_mul(shape[d]);
        }
        Place {
            start: ranges.iter().map(|(start, _)| *start as i64).collect(),
            shape,
            strides,
        }
    }
}

/// Where the elements of a read lie: element `base + Σ step · index` of a column, indices counted from 0.
#[derive(Clone, Debug)]
pub struct StridedAccess {
    /// Which operand.
    pub operand: usize,
    /// Which column of it.
    pub column: usize,
    /// The element at the point where all indices are 0.
    pub base: i64,
    /// The distance in elements between neighbours along each index.
    pub steps: Vec<i64>,
}

impl StridedAccess {
    /// Where the element at the first value of each range lies, of operands of which `skipped` first elements (none: 0) are not there.
    pub fn first(&self, ranges: &[(i64, i64)], skipped: &[i64]) -> i64 {
        let skipped = skipped.get(self.operand).copied().unwrap_or(0);
        let steps = self.steps.iter().zip(ranges);
        steps.fold(self.base - skipped, |sum, (step, range)| {
            sum + step * range.0
        })
    }

    /// How far the elements at the values of some indices, of such lengths, are from the first one: row-major.
    pub fn distances(&self, indices: &[usize], lengths: &[usize]) -> Vec<usize> {
        distances(indices, lengths, &self.steps)
    }
}

/// The distances of the values of some indices from the first one, in row-major order.
pub fn distances(indices: &[usize], lengths: &[usize], steps: &[i64]) -> Vec<usize> {
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
pub fn lie(
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
pub fn lie_but_one(
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

/// The one step of several indices (outermost first) that are counted through as one, of which a block has `sizes` values;
/// 1 if there is only one point, `None` if there is no such step.
pub fn merged(steps: &[i64], indices: &[usize], sizes: &[usize]) -> Option<usize> {
    let mut counted = indices.iter().rev().filter(|i| sizes[**i] > 1);
    let Some(inner) = counted.next() else {
        return Some(1);
    };
    let step = steps[*inner];
    let mut next = step * sizes[*inner] as i64;
    for index in counted {
        if steps[*index] != next {
            return None;
        }
        next *= sizes[*index] as i64;
    }
    usize::try_from(step).ok()
}
