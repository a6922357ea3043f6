//! Copies between strided boxes: transposes, gatherings of rows, windows with a margin.
//!
//! A copy is blocked so that both sides' cache lines are used whole: neighbours on both sides are copied in runs; where the
//! neighbours differ, squares are transposed in vector registers. Must not know what is multiplied.
//!
//! ```text
//! from f32[a: 512, b: 12, c: 96] to f32[c, b, a]: squares of 8 x 8 over (c, a), for each b
//! ```
#![allow(unsafe_code)]

mod square;

use crate::parallel;
use square::{SIDE, square};
use std::ops::Range;

/// One loop of a copy: how often, and the distances in elements between neighbours on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Axis {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
}

/// Values that are copied: plain numbers of 4 or 8 bytes.
pub(crate) trait Plain: Copy + Send + Sync + 'static {}
impl Plain for f32 {}
impl Plain for f64 {}
impl Plain for i32 {}
impl Plain for i64 {}

/// Pieces that a copy by all threads is cut into.
const PIECES: usize = 32;

/// Copies lines of neighbours into columns: element `r` of the line that begins at `begins[c]` to `to[r * begins.len() + c]`.
pub(crate) fn into_columns<T: Plain>(to: &mut [T], from: &[T], begins: &[i64]) {
    let width = begins.len();
    let rows = to.len() / width.max(1);
    let (squares, rest) = begins.as_chunks::<SIDE>();
    for (column, begin) in (squares.len() * SIDE..).zip(rest) {
        column_of(to, (column, width), &from[*begin as usize..], 0..rows);
    }
    for (column, begins) in (0..).step_by(SIDE).zip(squares) {
        let step = begins[1] - begins[0];
        let even = begins.windows(2).all(|pair| pair[1] - pair[0] == step);
        let there = |begin: &i64| *begin >= 0 && *begin as usize + rows <= from.len();
        let whole = match even && begins.iter().all(there) {
            true => rows - rows % SIDE,
            false => 0,
        };
        for (number, begin) in begins.iter().enumerate() {
            column_of(
                to,
                (column + number, width),
                &from[*begin as usize..],
                whole..rows,
            );
        }
        for row in (0..whole).step_by(SIDE) {
            // SAFETY: the rows from `row` on of these columns are in `to`, and their elements in `from`: all lines are there.
            unsafe {
                let from = from.as_ptr().add(begins[0] as usize + row);
                let to = to.as_mut_ptr().add(row * width + column);
                square(from, step as isize, to, width as isize);
            }
        }
    }
}

/// Copies some elements of a line into a column of rows of `width` elements.
fn column_of<T: Copy>(
    to: &mut [T],
    (column, width): (usize, usize),
    from: &[T],
    rows: Range<usize>,
) {
    for row in rows {
        to[row * width + column] = from[row];
    }
}

/// A pointer that tasks share; each touches its own part of what is behind it.
struct Shared<T>(*mut T);
impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}
// SAFETY: the elements are plain numbers, and the parts are disjoint or only read (see `Copying::copy_by_all`).
unsafe impl<T: Send> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Shared<T> {}

/// The loops of a copy, merged and in a good order. Made once for many boxes of one shape.
#[derive(Clone, Debug)]
pub(crate) struct Copying {
    /// Around the rest, outermost first.
    outer: Vec<Axis>,
    rest: Rest,
}

#[derive(Clone, Copy, Debug)]
enum Rest {
    /// Neighbours on both sides.
    Run(usize),
    /// One line, neighbours on at most one side.
    Line(Axis),
    /// The first axis are neighbours in the source, the second in the target.
    Transpose(Axis, Axis),
}

impl Copying {
    /// Plans a copy of a box.
    pub(crate) fn new(axes: &[Axis]) -> Copying {
        let mut axes: Vec<Axis> = axes.iter().copied().filter(|a| a.extent != 1).collect();
        axes.sort_by_key(|a| std::cmp::Reverse((a.to.unsigned_abs(), a.from.unsigned_abs())));
        let mut merged: Vec<Axis> = Vec::with_capacity(axes.len());
        for axis in axes {
            let steps = |outer: &Axis, inner: &Axis| {
                let n = inner.extent as isize;
                outer.from == inner.from * n && outer.to == inner.to * n
            };
            match merged.last_mut() {
                Some(last) if steps(last, &axis) => {
                    *last = Axis {
                        extent: last.extent * axis.extent,
                        ..axis
                    };
                }
                _ => merged.push(axis),
            }
        }
        let Some(inner) = merged.pop() else {
            return Copying {
                outer: vec![],
                rest: Rest::Run(1),
            };
        };
        let rest = if inner.from == 1 && inner.to == 1 {
            Rest::Run(inner.extent)
        } else if let Some(at) = merged.iter().position(|a| a.from == 1 && inner.to == 1) {
            Rest::Transpose(merged.remove(at), inner)
        } else {
            Rest::Line(inner)
        };
        // Near elements are visited one after another.
        merged.sort_by_key(|a| std::cmp::Reverse(a.from.unsigned_abs().min(a.to.unsigned_abs())));
        Copying {
            outer: merged,
            rest,
        }
    }

    /// Copies the box whose first elements are `from` and `to`.
    ///
    /// # Safety
    /// Every element of the box is inside the allocations behind `from` (initialised) and `to`; nobody else touches the latter.
    pub(crate) unsafe fn copy<T: Plain>(&self, from: *const T, to: *mut T) {
        if self.outer.iter().any(|axis| axis.extent == 0) {
            return;
        }
        let mut at = [0usize; 128];
        let at = &mut at[..self.outer.len().min(128)];
        let (mut from, mut to) = (from, to);
        loop {
            // SAFETY: `from` and `to` are at a point of the box, whose elements are inside by the caller's promise.
            unsafe { self.innermost(from, to) };
            let mut d = at.len();
            loop {
                if d == 0 {
                    return;
                }
                d -= 1;
                let axis = &self.outer[d];
                at[d] += 1;
                from = from.wrapping_offset(axis.from);
                to = to.wrapping_offset(axis.to);
                if at[d] < axis.extent {
                    break;
                }
                at[d] = 0;
                from = from.wrapping_offset(-axis.from * axis.extent as isize);
                to = to.wrapping_offset(-axis.to * axis.extent as isize);
            }
        }
    }

    /// The same by all threads of the pool.
    ///
    /// # Safety
    /// As for [`Copying::copy`].
    pub(crate) unsafe fn copy_by_all<T: Plain>(&self, from: *const T, to: *mut T) {
        let (axis, pieces) = self.shared();
        let (from, to) = (Shared(from.cast_mut()), Shared(to));
        parallel::items(pieces, |_, (begin, copying)| {
            let (from, to) = (from.get(), to.get());
            let begin = begin as isize;
            // SAFETY: pieces are disjoint parts of the box, along one of its axes.
            unsafe {
                let from = from.offset(axis.from * begin);
                copying.copy(from.cast_const(), to.offset(axis.to * begin));
            }
        });
    }

    /// An axis and the pieces of the copy along it, with the number at which each begins.
    fn shared(&self) -> (Axis, Vec<(usize, Copying)>) {
        let cut = |n: usize, multiple: usize| {
            let each = n.div_ceil(PIECES).next_multiple_of(multiple);
            (0..n.div_ceil(each)).map(move |at| (at * each, each.min(n - at * each)))
        };
        // Not along the neighbours of either side, if there is another axis.
        let outer = (0..self.outer.len()).max_by_key(|at| self.outer[*at].extent);
        if let Some(at) = outer.filter(|at| self.outer[*at].extent >= PIECES / 4) {
            let axis = self.outer[at];
            let pieces = cut(axis.extent, 1).map(|(begin, extent)| {
                let mut copying = self.clone();
                copying.outer[at].extent = extent;
                (begin, copying)
            });
            return (axis, pieces.collect());
        }
        let (axis, multiple) = match self.rest {
            Rest::Run(extent) => (
                Axis {
                    extent,
                    from: 1,
                    to: 1,
                },
                1024,
            ),
            Rest::Line(axis) => (axis, 64),
            Rest::Transpose(_, q) => (q, 4 * SIDE),
        };
        let pieces = cut(axis.extent, multiple).map(|(begin, extent)| {
            let mut copying = self.clone();
            copying.rest = match self.rest {
                Rest::Run(_) => Rest::Run(extent),
                Rest::Line(axis) => Rest::Line(Axis { extent, ..axis }),
                Rest::Transpose(p, q) => Rest::Transpose(p, Axis { extent, ..q }),
            };
            (begin, copying)
        });
        (axis, pieces.collect())
    }

    /// # Safety
    /// As for [`Copying::copy`].
    unsafe fn innermost<T: Plain>(&self, from: *const T, to: *mut T) {
        match self.rest {
            // SAFETY: the run is inside both sides, which are different allocations.
            Rest::Run(n) => unsafe { run(from, to, n) },
            Rest::Line(axis) => {
                for i in 0..axis.extent as isize {
                    // SAFETY: point i of the line is inside both sides.
                    unsafe { *to.offset(axis.to * i) = *from.offset(axis.from * i) };
                }
            }
            // SAFETY: both axes' elements are inside both sides.
            Rest::Transpose(p, q) => unsafe { transpose(from, to, p, q) },
        }
    }
}

/// Copies a run.
#[inline]
pub(crate) fn copied<T: Plain>(to: &mut [T], from: &[T]) {
    assert_eq!(to.len(), from.len(), "a run is as long on both sides");
    // SAFETY: both slices have this length, and one is borrowed for writing.
    unsafe { run(from.as_ptr(), to.as_mut_ptr(), to.len()) }
}

/// # Safety
/// `n` elements are inside both sides, which do not overlap.
#[inline]
unsafe fn run<T: Plain>(from: *const T, to: *mut T, n: usize) {
    if n >= 64 {
        // SAFETY: the caller's promise.
        return unsafe { std::ptr::copy_nonoverlapping(from, to, n) };
    }
    let mut i = 0;
    while i + 8 <= n {
        // SAFETY: elements i to i + 8 are inside; an array of plain numbers has their alignment.
        unsafe { *to.add(i).cast::<[T; 8]>() = *from.add(i).cast::<[T; 8]>() };
        i += 8;
    }
    while i < n {
        // SAFETY: element i is inside.
        unsafe { *to.add(i) = *from.add(i) };
        i += 1;
    }
}

/// # Safety
/// Every element of the two axes is inside both sides; `p.from` and `q.to` are 1.
unsafe fn transpose<T: Plain>(from: *const T, to: *mut T, p: Axis, q: Axis) {
    // Two squares beside each other use a whole cache line of the source.
    let strip = 2 * SIDE;
    for q0 in (0..q.extent).step_by(strip) {
        for p0 in (0..p.extent).step_by(SIDE) {
            for q0 in (q0..q.extent.min(q0 + strip)).step_by(SIDE) {
                let (m, n) = (SIDE.min(p.extent - p0), SIDE.min(q.extent - q0));
                // SAFETY: rows p0.. and columns q0.. of the two axes are inside both sides.
                unsafe {
                    let from = from.offset(p0 as isize + q0 as isize * q.from);
                    let to = to.offset(p0 as isize * p.to + q0 as isize);
                    if m == SIDE && n == SIDE {
                        square(from, q.from, to, p.to);
                    } else {
                        for i in 0..m as isize {
                            for j in 0..n as isize {
                                *to.offset(i * p.to + j) = *from.offset(i + j * q.from);
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
