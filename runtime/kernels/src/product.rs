//! Matrix products into the blocks of one dense array, in parallel: the only place that calls the gemm crate.
//!
//! Every block has one sequence of products. The gemm crate adds up the inner terms of an element in an order
//! that depends on the sizes alone, however many threads share its tiles, so results depend on the blocks alone.
//! Must not know kernels.
//!
//! ```text
//! c[0..512, 0..512] = a[0..512, 0..4096] · b[0..4096, 0..512], and so on for 64 blocks
//! ```
#![allow(unsafe_code)]

use gemm::Parallelism;
use rayon::prelude::*;

/// A type that the gemm crate multiplies.
pub(crate) trait Element: Copy + Send + Sync + Default + PartialEq + 'static {
    /// From the wide type in which factors are kept.
    fn from_f64(x: f64) -> Self;
    /// To it.
    fn to_f64(self) -> f64;
}
impl Element for f32 {
    fn from_f64(x: f64) -> Self {
        x as f32
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}
impl Element for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// A matrix inside a slice: element (r, c) is `data[offset + r * row + c * column]`.
pub(crate) struct Matrix<'a, T> {
    pub data: &'a [T],
    pub offset: usize,
    pub row: usize,
    pub column: usize,
}

impl<T> Matrix<'_, T> {
    fn holds(&self, rows: usize, columns: usize) -> bool {
        let last = |n: usize, stride: usize| n.saturating_sub(1).checked_mul(stride);
        let end = last(rows, self.row)
            .zip(last(columns, self.column))
            .and_then(|(r, c)| self.offset.checked_add(r)?.checked_add(c));
        end.is_some_and(|end| end < self.data.len())
    }
}

/// How a dense row-major array is cut into blocks that are matrices.
pub(crate) struct Tiling {
    /// Extents of the array, none of them 0.
    pub lengths: Vec<usize>,
    /// Extents of a block, at least 1.
    pub tiles: Vec<usize>,
    /// The neighbouring dimensions that make a block's rows; empty: one row.
    pub rows: std::ops::Range<usize>,
    /// The ones that make its columns.
    pub columns: std::ops::Range<usize>,
}

/// One block: `start` and `size` along each dimension.
pub(crate) struct Block {
    pub start: Vec<usize>,
    pub size: Vec<usize>,
    offset: usize,
    rows: (usize, usize),
    columns: (usize, usize),
}

impl Block {
    /// Number of rows.
    pub(crate) fn row_count(&self) -> usize {
        self.rows.0
    }
    /// Number of columns.
    pub(crate) fn column_count(&self) -> usize {
        self.columns.0
    }
}

impl Tiling {
    /// Number of blocks.
    pub(crate) fn count(&self) -> usize {
        let along = |(n, t): (&usize, &usize)| n.div_ceil(*t);
        self.lengths.iter().zip(&self.tiles).map(along).product()
    }

    /// Block number `number` in row-major order. Its dimensions outside `rows` and `columns` have extent 1, and
    /// those of `rows` (and of `columns`) lie at one distance from each other.
    fn block(&self, mut number: usize) -> Block {
        let rank = self.lengths.len();
        let (mut start, mut size) = (vec![0; rank], vec![0; rank]);
        let (mut stride, mut offset) = (1, 0);
        let mut strides = vec![0; rank];
        for d in (0..rank).rev() {
            let (n, tile) = (self.lengths[d], self.tiles[d]);
            let tiles = n.div_ceil(tile);
            start[d] = number % tiles * tile;
            size[d] = tile.min(n - start[d]);
            number /= tiles;
            offset += start[d] * stride;
            strides[d] = stride;
            stride *= n;
        }
        let group = |dims: &std::ops::Range<usize>| {
            let count = dims.clone().map(|d| size[d]).product();
            (count, dims.clone().next_back().map_or(1, |d| strides[d]))
        };
        let (rows, columns) = (group(&self.rows), group(&self.columns));
        // A partial extent is followed by whole ones and preceded by ones, so the group has one stride.
        for dims in [&self.rows, &self.columns] {
            let inner = dims
                .clone()
                .rev()
                .skip_while(|d| size[*d] == self.lengths[*d]);
            assert!(
                inner.skip(1).all(|d| size[d] == 1),
                "a block's rows have one stride"
            );
        }
        let other = (0..rank).filter(|d| !self.rows.contains(d) && !self.columns.contains(d));
        assert!(
            other.into_iter().all(|d| size[d] == 1),
            "a block is a matrix"
        );
        Block {
            start,
            size,
            offset,
            rows,
            columns,
        }
    }
}

/// The array that is written, shared by the tasks that write its blocks.
struct Target<T> {
    first: *mut T,
    length: usize,
}
// SAFETY: tasks write disjoint blocks only (see `multiply`), and the elements are plain numbers.
unsafe impl<T: Send> Send for Target<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Target<T> {}

/// Adds one product to a block: number of inner terms, left matrix, right matrix.
pub(crate) type Multiply<'m, T> = dyn FnMut(usize, Matrix<'_, T>, Matrix<'_, T>) + 'm;

/// Sets each block of `result` to `factor` times the sum of the products that `work` gives for it, in the order in
/// which it gives them. `shared`: threads share each product too, for blocks that are few and large. `work` has a scratch value for each task; it must give at least one product a block.
pub(crate) fn multiply<T: Element, S: Default + Send>(
    result: &mut [T],
    tiling: &Tiling,
    factor: T,
    shared: bool,
    work: impl Fn(&Block, &mut S, &mut Multiply<'_, T>) + Sync,
) {
    let length: usize = tiling.lengths.iter().product();
    assert_eq!(length, result.len(), "the tiling is of this array");
    let target = Target {
        first: result.as_mut_ptr(),
        length: result.len(),
    };
    let target = &target;
    let parallelism = if shared {
        Parallelism::Rayon(0)
    } else {
        Parallelism::None
    };
    (0..tiling.count())
        .into_par_iter()
        .for_each_init(S::default, |scratch, number| {
            let block = tiling.block(number);
            let mut first = true;
            work(&block, scratch, &mut |inner, a, b| {
                let ((m, row), (n, column)) = (block.rows, block.columns);
                if m == 0 || n == 0 || inner == 0 {
                    return;
                }
                assert!(a.holds(m, inner) && b.holds(inner, n), "factors are inside");
                let last = block.offset + (m - 1) * row + (n - 1) * column;
                assert!(last < target.length, "the block is inside");
                // SAFETY: the assertions above put every element that the product reads or writes inside its
                // slice. Different numbers give blocks that are disjoint boxes of a dense array, so no two
                // tasks touch one element of the result, and nobody else does while `result` is borrowed.
                unsafe {
                    gemm::gemm(
                        m,
                        n,
                        inner,
                        target.first.add(block.offset),
                        column as isize,
                        row as isize,
                        !first,
                        a.data.as_ptr().add(a.offset),
                        a.column as isize,
                        a.row as isize,
                        b.data.as_ptr().add(b.offset),
                        b.column as isize,
                        b.row as isize,
                        T::from_f64(1.0),
                        factor,
                        false,
                        false,
                        false,
                        parallelism,
                    );
                }
                first = false;
            });
        });
}
