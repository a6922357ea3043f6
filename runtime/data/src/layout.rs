//! Which runs of a stored array make up a box of it.
//!
//! Must not know files: everything is counted in elements.
//!
//! ```text
//! [4, 6] in C order, box [(1, 2), (2, 3)]: 3 at 8, 3 at 14
//! ```

/// In which order elements are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// The last dimension runs fastest.
    C,
    /// The first dimension runs fastest.
    Fortran,
    /// The last dimension runs fastest, then the first: pairs in Fortran order.
    FortranPairs,
}

/// Elements that stand together in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where they begin in the file.
    pub file: u64,
    /// Where the first one stands in the row-major array of the box.
    pub array: usize,
    /// How far apart they stand in that array.
    pub stride: usize,
    /// How many.
    pub len: usize,
}

/// Calls `f` with every run of the box, in ascending order of the file. The box must lie inside the shape, and the
/// number of elements of the shape must fit.
pub(crate) fn runs<E>(
    shape: &[u64],
    order: Order,
    ranges: &[(u64, u64)],
    mut f: impl FnMut(Run) -> Result<(), E>,
) -> Result<(), E> {
    if ranges.iter().any(|(_, len)| *len == 0) {
        return Ok(());
    }
    let rank = shape.len();
    // Dimensions from the slowest to the fastest of the file.
    let axes: Vec<usize> = match order {
        Order::C => (0..rank).collect(),
        Order::Fortran => (0..rank).rev().collect(),
        Order::FortranPairs => (0..rank - 1).rev().chain([rank - 1]).collect(),
    };
    let mut file_strides = vec![1u64; rank];
    for pair in (1..rank).rev() {
        file_strides[axes[pair - 1]] = file_strides[axes[pair]] * shape[axes[pair]];
    }
    let mut array_strides = vec![1usize; rank];
    for d in (1..rank).rev() {
        array_strides[d - 1] = array_strides[d] * ranges[d].1 as usize;
    }
    // The fastest dimensions that make one run: a whole one joins the one before it, if the array agrees.
    let mut inner = rank;
    let (mut len, mut stride) = (1usize, 1usize);
    while inner > 0 {
        inner -= 1;
        let axis = axes[inner];
        if inner + 1 == rank {
            stride = array_strides[axis];
        }
        len *= ranges[axis].1 as usize;
        let whole = ranges[axis].1 == shape[axis];
        let joins = inner > 0 && {
            let next = axes[inner - 1];
            array_strides[next] == len * stride || ranges[next].1 == 1
        };
        if !whole || !joins {
            break;
        }
    }
    let base: u64 = (0..rank).map(|d| ranges[d].0 * file_strides[d]).sum();
    let outer = &axes[..inner];
    let mut at = vec![0u64; inner];
    loop {
        let mut run = Run {
            file: base,
            array: 0,
            stride,
            len,
        };
        for (position, axis) in at.iter().zip(outer) {
            run.file += position * file_strides[*axis];
            run.array += *position as usize * array_strides[*axis];
        }
        f(run)?;
        let mut d = inner;
        loop {
            if d == 0 {
                return Ok(());
            }
            d -= 1;
            at[d] += 1;
            if at[d] < ranges[outer[d]].1 {
                break;
            }
            at[d] = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(shape: &[u64], order: Order, ranges: &[(u64, u64)]) -> String {
        let mut text = String::new();
        let done: Result<(), ()> = runs(shape, order, ranges, |run| {
            text += &format!("{}@{}->{}+{} ", run.len, run.file, run.array, run.stride);
            Ok(())
        });
        assert!(done.is_ok());
        text.trim_end().to_owned()
    }

    #[test]
    fn runs_of_boxes() {
        let c = |s: &[u64], r: &[(u64, u64)]| list(s, Order::C, r);
        assert_eq!(c(&[4, 6], &[(1, 2), (2, 3)]), "3@8->0+1 3@14->3+1");
        assert_eq!(c(&[4, 6], &[(1, 2), (0, 6)]), "12@6->0+1");
        assert_eq!(c(&[4, 6], &[(0, 4), (0, 6)]), "24@0->0+1");
        assert_eq!(c(&[], &[]), "1@0->0+1");
        assert_eq!(c(&[4], &[(3, 0)]), "");
        assert_eq!(
            c(&[2, 3, 4], &[(0, 2), (1, 2), (0, 4)]),
            "8@4->0+1 8@16->8+1"
        );
        let fortran = |s: &[u64], r: &[(u64, u64)]| list(s, Order::Fortran, r);
        assert_eq!(fortran(&[4], &[(1, 2)]), "2@1->0+1");
        assert_eq!(fortran(&[2, 3], &[(0, 2), (1, 2)]), "2@2->0+2 2@4->1+2");
        assert_eq!(fortran(&[2, 1], &[(0, 2), (0, 1)]), "2@0->0+1");
        let pairs = |r: &[(u64, u64)]| list(&[2, 3, 2], Order::FortranPairs, r);
        assert_eq!(pairs(&[(0, 2), (1, 1), (0, 2)]), "4@4->0+1");
        assert_eq!(pairs(&[(1, 1), (1, 2), (0, 2)]), "2@6->0+1 2@10->2+1");
    }
}
