//! Scatters of lines as they lie: a point goes to one place with all its values, neighbours both where they are and where they go.
//!
//! The place of a point is an element that is read, or an element of a list at such a place. Parts of the points are added up
//! in tables of their own, and those in order; where the output is large, see `rows`. Must not know where guards come from.
//!
//! ```text
//! [k, d | n] sum x[n, d] if list[near[n]] == k   ->   table[list[near[n]], ..] += x[n, ..]
//! ```

use super::{Solved, Sums, parts};
use crate::Chunk;
use crate::looked::Looked;
use crate::parallel;
use crate::program::place_of;
use crate::wide::{self, Job};
use ein_array::Data;
use ein_plan::schedule::access::{Place, StridedAccess, lie, merged};
use ein_plan::{DType, Kernel, Node, Scalar};
use std::ops::Range;

/// Values that are added together.
const LANES: usize = 16;
/// Points whose places are looked up together: the loop that adds them has nothing else to do, so that many loads are on their way at once.
const POINTS: usize = 512;

/// What goes to a point's place.
enum Values<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I64(&'a [i64]),
    /// The same to all.
    Float(f64),
    Integer(i64),
}

/// A scatter in this form.
pub(super) struct Lines<'a> {
    values: Values<'a>,
    /// Where the values of the first point begin, and how far those of the next one are from there.
    value: (usize, usize),
    /// Where points go.
    to: Looked<'a>,
    /// Values of a point.
    width: usize,
    /// Start and length of the index that a place is a value of.
    solved: (i64, i64),
    points: usize,
    /// Into how many parts points are cut.
    pub(super) parts: u64,
}

impl<'a> Lines<'a> {
    /// A scatter over `ranges` in this form, if its points are many for its output.
    pub(super) fn of(
        kernel: &Kernel,
        solved: &Solved,
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
    ) -> Option<Lines<'a>> {
        let lines = Lines::of_any(kernel, solved, ranges, operands)?;
        (lines.parts > 0).then_some(lines)
    }

    /// A scatter over `ranges` in this form; no parts if its points are few for its output.
    pub(super) fn of_any(
        kernel: &Kernel,
        solved: &Solved,
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
    ) -> Option<Lines<'a>> {
        let &[(v, expression)] = &solved.places[..] else {
            return None;
        };
        let rank = kernel.output_rank as usize;
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        // What goes to one place is one stretch of the output.
        if !solved.rest.is_empty() || lengths[..v].iter().any(|n| *n > 1) {
            return None;
        }
        let layout: Vec<Place> = operands.iter().map(place_of).collect();
        let (of_point, of_line): (Vec<usize>, Vec<usize>) =
            ((rank..ranges.len()).collect(), (v + 1..rank).collect());
        let width: usize = of_line.iter().map(|i| lengths[*i]).product();
        let points: usize = of_point.iter().map(|i| lengths[*i]).product();
        let parts = parts((points * width) as u64, width * lengths[v]);
        let column = |lie: &StridedAccess| operands[lie.operand].columns[lie.column].data();
        let step = |lie: &StridedAccess| merged(&lie.steps, &of_point, &lengths);
        let dtype = kernel.graph.dtype(kernel.root);
        let (values, value) = match (kernel.graph.node(kernel.root), dtype) {
            (Node::Constant(x), DType::F32) => {
                (Values::Float(f64::from(x.as_f64() as f32)), (0, 0))
            }
            (Node::Constant(x), DType::F64) => (Values::Float(x.as_f64()), (0, 0)),
            (Node::Constant(Scalar::Int(x)), DType::I64) => (Values::Integer(*x), (0, 0)),
            _ => {
                let lie = lie(kernel, kernel.root, dtype, ranges, &layout)?;
                if merged(&lie.steps, &of_line, &lengths) != Some(1) {
                    return None;
                }
                let values = match column(&lie) {
                    Data::F32(x) => Values::F32(x),
                    Data::F64(x) => Values::F64(x),
                    Data::I64(x) => Values::I64(x),
                    _ => return None,
                };
                (values, (lie.first(ranges, &[]) as usize, step(&lie)?))
            }
        };
        let to = Looked::of(kernel, expression, &of_point, ranges, operands)?;
        Some(Lines {
            values,
            value,
            to,
            width,
            solved: ranges[v],
            points,
            parts,
        })
    }

    /// The values `x` of all points, made wider, by place; `None` if a place is read outside its list.
    fn reduced<T: Copy + Sync, A: Copy + Send + Sync>(
        &self,
        x: &[T],
        start: A,
        wider: impl Fn(T) -> A + Copy + Sync,
        f: impl Fn(A, A) -> A + Copy + Sync,
    ) -> Option<Vec<A>> {
        let parts = self.parts as usize;
        let size = self.width * self.solved.1 as usize;
        let tables = parallel::map(parts, |part| {
            let points = part * self.points / parts..(part + 1) * self.points / parts;
            let mut table = vec![start; size];
            let inside = wide::run(Part {
                lines: self,
                x,
                points,
                table: &mut table,
                add: |a, x| f(a, wider(x)),
            });
            inside.then_some(table)
        });
        let mut tables = tables.into_iter();
        let mut total = tables.next()??;
        for table in tables {
            for (total, x) in total.iter_mut().zip(table?) {
                *total = f(*total, x);
            }
        }
        Some(total)
    }
}

impl Sums for Lines<'_> {
    fn floats(&self, start: f64, f: impl Fn(f64, f64) -> f64 + Copy + Sync) -> Option<Vec<f64>> {
        match self.values {
            Values::F32(x) => self.reduced(x, start, f64::from, f),
            Values::F64(x) => self.reduced(x, start, |x| x, f),
            Values::Float(x) => self.reduced(&vec![x; self.width], start, |x| x, f),
            Values::I64(_) | Values::Integer(_) => None,
        }
    }

    fn integers(&self, start: i64, f: impl Fn(i64, i64) -> i64 + Copy + Sync) -> Option<Vec<i64>> {
        match self.values {
            Values::I64(x) => self.reduced(x, start, |x| x, f),
            Values::Integer(x) => self.reduced(&vec![x; self.width], start, |x| x, f),
            _ => None,
        }
    }
}

/// A part of the points, to be added to a table.
struct Part<'t, 'a, T, A, F> {
    lines: &'t Lines<'a>,
    x: &'t [T],
    points: Range<usize>,
    table: &'t mut [A],
    add: F,
}

impl<T: Copy, A: Copy, F: Fn(A, T) -> A + Copy> Job for Part<'_, '_, T, A, F> {
    /// Whether all places are in their list.
    type Output = bool;
    #[inline(always)]
    fn run<const BYTES: usize>(self) -> bool {
        let Part {
            lines,
            x,
            points,
            table,
            add,
        } = self;
        let (width, start) = (lines.width, lines.solved.0);
        let mut places = [0; POINTS];
        for from in points.clone().step_by(POINTS) {
            let block = from..points.end.min(from + POINTS);
            let places = &mut places[..block.len()];
            if lines.to.fill(block, places).is_none() {
                return false;
            }
            let (first, step) = lines.value;
            let values = &x[first + from * step..];
            let places = (places.iter()).map(|place| place.wrapping_sub(start) as usize);
            match (width, step) {
                (1, 1) => {
                    for (place, x) in places.zip(values) {
                        if let Some(sum) = table.get_mut(place) {
                            *sum = add(*sum, *x);
                        }
                    }
                }
                (1, _) => {
                    for (number, place) in places.enumerate() {
                        if let Some(sum) = table.get_mut(place) {
                            *sum = add(*sum, values[number * step]);
                        }
                    }
                }
                _ => {
                    for (number, place) in places.enumerate() {
                        if place < lines.solved.1 as usize {
                            let values = &values[number * step..][..width];
                            add_line(values, &mut table[place * width..][..width], add);
                        }
                    }
                }
            }
        }
        true
    }
}

/// Adds the values of a point to the sums of its place.
#[inline(always)]
fn add_line<T: Copy, A: Copy>(values: &[T], sums: &mut [A], add: impl Fn(A, T) -> A) {
    let (sums, last_sums) = sums.as_chunks_mut::<LANES>();
    let (values, last) = values.as_chunks::<LANES>();
    for (sums, values) in sums.iter_mut().zip(values) {
        for l in 0..LANES {
            sums[l] = add(sums[l], values[l]);
        }
    }
    for (sum, x) in last_sums.iter_mut().zip(last) {
        *sum = add(*sum, *x);
    }
}
