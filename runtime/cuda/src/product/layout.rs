//! Arrays as batches of matrices: which strides are those of matrices.
//!
//! Must not know kernels.
//!
//! ```text
//! f32[2, 17, 3, 16] over b, t, h, d; batch h, rows t, inner d at one b   ->   16 elements from h to h, 48 from t to t, 1 from d to d
//! ```

use crate::machine::{Address, Element, Matrix};
use ein_plan::{DType, IndexId};

/// A list of indices as one: its length, and the elements from one value to the next.
pub(super) type Line = (u64, u64);

/// A batch of matrices in memory, whose indices have these strides, if they go together.
pub(super) fn matrix_of(
    lists: [&Vec<IndexId>; 3],
    lengths: &[u64],
    stride: impl Fn(IndexId) -> u64,
    (at, first, dtype): (Address, u64, DType),
) -> Option<Matrix> {
    let [batches, rows, columns] = lists.map(|list| line(list, lengths, &stride));
    let ((_, between_batches), rows, columns) = (batches?, rows?, columns?);
    let matrix = Matrix {
        at: at.0,
        first,
        element: element(dtype),
        between_rows: rows.1,
        between_columns: columns.1,
        between_batches,
    };
    let neighbours = |line: Line| line.0 == 1 || line.1 == 1;
    // The lines of a matrix do not overlap.
    let apart =
        |inner: Line, outer: Line| neighbours(inner) && (outer.0 == 1 || outer.1 >= inner.0);
    (apart(rows, columns) || apart(columns, rows)).then_some(matrix)
}

/// The indices as one, if each value of theirs is as far from the next.
fn line(list: &[IndexId], lengths: &[u64], stride: impl Fn(IndexId) -> u64) -> Option<Line> {
    let several = list.iter().rev().filter(|i| lengths[i.0 as usize] > 1);
    let mut whole: Option<Line> = None;
    for index in several {
        let (length, own) = (lengths[index.0 as usize], stride(*index));
        whole = match whole {
            None => Some((length, own)),
            Some((inner, between)) if own == inner * between => Some((inner * length, between)),
            Some(_) => return None,
        };
    }
    Some(whole.unwrap_or((1, 1)))
}

/// The points of a list of indices.
pub(super) fn count(list: &[IndexId], lengths: &[u64]) -> u64 {
    list.iter().map(|index| lengths[index.0 as usize]).product()
}

/// The type of a floating-point element, as the library has it.
pub(super) fn element(dtype: DType) -> Element {
    match dtype {
        DType::F16 => Element::F16,
        DType::BF16 => Element::BF16,
        DType::F64 => Element::F64,
        _ => Element::F32,
    }
}
