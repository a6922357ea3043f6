//! One matrix product, by the gemm crate or the system's BLAS: the only place that calls them.
//!
//! The inner terms of an element are added up in an order that depends on the sizes alone, however many threads share the
//! tiles of a product. Must not know kernels.
//!
//! ```text
//! c[0..512, 0..512] = 0.125 * a[0..512, 0..64] · b[0..64, 0..512]
//! ```
#![allow(unsafe_code)]

use crate::blas::{self, Multiplied, Placed};
use gemm::Parallelism;
use std::ops::{Div, Mul};

/// A type that is multiplied.
pub(crate) trait Element:
    Copy
    + Send
    + Sync
    + Default
    + PartialEq
    + Multiplied
    + Mul<Output = Self>
    + Div<Output = Self>
    + 'static
{
    /// From the wide type in which numbers are kept.
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
#[derive(Clone, Copy)]
pub(crate) struct Matrix<'a, T> {
    pub data: &'a [T],
    pub offset: usize,
    pub row: usize,
    pub column: usize,
}

impl<T> Matrix<'_, T> {
    fn holds(&self, rows: usize, columns: usize) -> bool {
        inside(
            self.data.len(),
            self.offset,
            (rows, self.row),
            (columns, self.column),
        )
    }
}

/// Whether a matrix with so many rows and columns, and such steps, is inside.
fn inside(length: usize, offset: usize, rows: (usize, usize), columns: (usize, usize)) -> bool {
    let last = |(n, step): (usize, usize)| n.saturating_sub(1).checked_mul(step);
    let end = last(rows)
        .zip(last(columns))
        .and_then(|(r, c)| offset.checked_add(r)?.checked_add(c));
    end.is_some_and(|end| end < length)
}

/// Memory that tasks write parts of.
pub(crate) struct Target<T> {
    first: *mut T,
    length: usize,
}
// SAFETY: the elements are plain numbers, and tasks write disjoint parts only (promised to `Target::multiply`, `pointer`).
unsafe impl<T: Send> Send for Target<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Target<T> {}

/// Where a product goes: the first element, the steps of rows and columns.
#[derive(Clone, Copy)]
pub(crate) struct Goal {
    pub offset: usize,
    pub row: usize,
    pub column: usize,
}

/// The sizes of a product: rows, columns, inner terms.
pub(crate) type Sizes = (usize, usize, usize);

impl<T: Element> Target<T> {
    pub(crate) fn new(memory: &mut [T]) -> Target<T> {
        Target {
            first: memory.as_mut_ptr(),
            length: memory.len(),
        }
    }

    /// The element at `offset`, which is inside.
    pub(crate) fn pointer(&self, offset: usize) -> *mut T {
        assert!(offset < self.length, "the element is inside");
        // SAFETY: just asserted.
        unsafe { self.first.add(offset) }
    }

    /// Sets a matrix to `factor` times a product, or adds it if `more`. `shared`: all threads of the pool work on it.
    ///
    /// # Safety
    /// The memory is alive, and nobody else touches the elements of this matrix.
    #[allow(clippy::too_many_arguments)]
    pub(crate) unsafe fn multiply(
        &self,
        goal: Goal,
        (m, n, k): Sizes,
        a: Matrix<'_, T>,
        b: Matrix<'_, T>,
        factor: T,
        more: bool,
        shared: bool,
    ) {
        if m == 0 || n == 0 || k == 0 {
            return;
        }
        assert!(a.holds(m, k) && b.holds(k, n), "the factors are inside");
        let (rows, columns) = ((m, goal.row), (n, goal.column));
        assert!(
            inside(self.length, goal.offset, rows, columns),
            "the result is inside"
        );
        if let Some(blas) = blas::loaded() {
            // SAFETY: every element of the three is inside its memory (asserted), and those of the result are ours.
            let done = unsafe {
                let factor_at = |matrix: &Matrix<'_, T>| Placed {
                    first: matrix.data.as_ptr().add(matrix.offset),
                    row: matrix.row,
                    column: matrix.column,
                };
                let c = Placed {
                    first: self.first.add(goal.offset),
                    row: goal.row,
                    column: goal.column,
                };
                blas.multiply((m, n, k), factor_at(&a), factor_at(&b), c, factor, more)
            };
            if done {
                return;
            }
        }
        let parallelism = match shared {
            true => Parallelism::Rayon(0),
            false => Parallelism::None,
        };
        // SAFETY: every element that is read or written is inside its memory (asserted), and the ones that are written are
        // ours by the caller's promise.
        unsafe {
            gemm::gemm(
                m,
                n,
                k,
                self.first.add(goal.offset),
                goal.column as isize,
                goal.row as isize,
                more,
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
    }
}
