//! Reductions of rows: floats as they lie, neighbours in a row, or how far they are from the row's number, without a program.
//!
//! Extremes and their places are looked for in as many lanes as the processor has. What other reductions make of a row
//! has the bits of strips. Must not know plans.
//!
//! ```text
//! [n | k] argmin a0[n, k]   rows n     [b, n | h, k] max a0[b, h, n, k]   no rows: terms of different h are no neighbours
//! ```

mod extreme;
mod terms;

use crate::accumulate::Accumulator;
use crate::boxes::Boxes;
use crate::carrier::Rule;
use crate::element::Element;
use crate::nest::{WIDTH, strip_of};
use crate::packed::Packed;
use crate::parallel;
use crate::program::place_of;
use crate::segment::Segment;
use crate::stream::Ahead;
use crate::wide::{self, Job};
use crate::{Chunk, memory};
use ein_array::Array;
use ein_plan::schedule::access::{Place, StridedAccess, merged};
use ein_plan::{DType, Kernel, Reduction};
use extreme::of_row;
use terms::Terms;

/// Points that are worth a task of their own.
const TASK: usize = 1 << 16;
/// A kernel in this form.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    rule: Rule,
    /// Whether the result is a carrier's columns, not a value.
    partial: bool,
    terms: Terms,
    rank: usize,
    /// Start, length and whole extent of each reduced index.
    reduced: Vec<(i64, usize, i64)>,
    /// Elements of a row.
    length: usize,
}

/// The result of a kernel in this form.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let places: Vec<Place> = operands.iter().map(place_of).collect();
    let ranges = crate::signed(ranges);
    let rows = Rows::of(kernel, &ranges, &places)?;
    let output = &ranges[..rows.rank];
    let shape: Vec<usize> = output.iter().map(|(_, n)| *n as usize).collect();
    let types = kernel.output.iter();
    let mut columns: Vec<Array> = types.map(|dtype| memory::room(*dtype, &shape)).collect();
    let segments = columns.iter_mut();
    let mut rest: Vec<Segment<'_>> = segments.map(|c| Segment::of(c.data_mut())).collect();
    if rows.rank == 0 {
        rows.part(&ranges, (operands, &[]), rest, Ahead::Nothing);
        return Some(columns);
    }
    let boxes = Boxes::new(output, TASK / rows.length);
    let mut tasks = Vec::with_capacity(boxes.count());
    for number in 0..boxes.count() {
        let count = boxes.rows(number).1;
        let (heads, tails) = rest.into_iter().map(|column| column.split(count)).unzip();
        tasks.push(heads);
        rest = tails;
    }
    drop(rest);
    parallel::items(tasks, |number, to: Vec<Segment<'_>>| {
        let mut own = ranges.clone();
        own[..rows.rank].copy_from_slice(&boxes.ranges(number));
        rows.part(&own, (operands, &[]), to, Ahead::Nothing);
    });
    Some(columns)
}

impl Rows {
    /// A kernel in this form over `ranges`, its operands lying at `places`.
    pub(crate) fn of(kernel: &Kernel, ranges: &[(i64, i64)], places: &[Place]) -> Option<Rows> {
        let rank = kernel.output_rank as usize;
        let reduced = kernel.indices[rank..].iter().zip(&ranges[rank..]);
        let reduced = reduced.map(|(index, (start, n))| (*start, *n as usize, index.extent as i64));
        Some(Rows {
            rule: Rule {
                reduction: kernel.reduction?,
                value: kernel.graph.dtype(kernel.root),
            },
            partial: !kernel.finish,
            terms: Terms::of(kernel, ranges, places)?,
            rank,
            reduced: reduced.collect(),
            length: ranges[rank..].iter().map(|(_, n)| *n as usize).product(),
        })
    }

    /// A box of the output, which the columns `to` are, in row-major order. Of operands, `skipped` first elements (none: 0)
    /// are not there. Meanwhile memory is asked for.
    pub(crate) fn part(
        &self,
        ranges: &[(i64, i64)],
        (operands, skipped): (&[Chunk<'_>], &[i64]),
        to: Vec<Segment<'_>>,
        ahead: Ahead<'_>,
    ) {
        let from = (operands, skipped);
        match self.rule.value {
            DType::F32 => self.taken::<f32>(ranges, from, to, ahead),
            _ => self.taken::<f64>(ranges, from, to, ahead),
        }
    }

    fn taken<T: Element + Packed>(
        &self,
        ranges: &[(i64, i64)],
        (operands, skipped): (&[Chunk<'_>], &[i64]),
        to: Vec<Segment<'_>>,
        ahead: Ahead<'_>,
    ) {
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let output: Vec<usize> = (0..self.rank).collect();
        let elements = |lie: &StridedAccess| {
            let at = Begins {
                first: lie.first(ranges, skipped) as usize,
                rows: match merged(&lie.steps, &output, &lengths) {
                    Some(step) => Starts::Even(step),
                    None => Starts::Listed(lie.distances(&output, &lengths)),
                },
            };
            let data = operands[lie.operand].columns[lie.column].data();
            let x = T::slice(data).expect("reads are of the type of what is reduced");
            (x, at)
        };
        let (x, at) = elements(&self.terms.from);
        wide::run(Task {
            rows: self,
            x,
            at,
            less: self.terms.less.as_ref().map(elements),
            count: output.iter().map(|i| lengths[*i]).product(),
            to,
            ahead,
        });
    }

    /// The number of a row's element among all points of the reduction.
    #[inline(always)]
    fn number(&self, place: usize) -> i64 {
        if let [(start, ..)] = self.reduced[..] {
            return start + place as i64;
        }
        let (mut rest, mut number, mut scale) = (place, 0i64, 1i64);
        for (start, length, extent) in self.reduced.iter().rev() {
            let at = start + (rest % length) as i64;
            number = number.wrapping_add(at.wrapping_mul(scale));
            scale = scale.wrapping_mul(*extent);
            rest /= length;
        }
        number
    }
}

/// Where rows begin.
struct Begins {
    /// The first one.
    first: usize,
    rows: Starts,
}

/// How far each row begins behind the first one.
enum Starts {
    Even(usize),
    Listed(Vec<usize>),
}

impl Begins {
    #[inline(always)]
    fn row(&self, number: usize) -> usize {
        let start = match &self.rows {
            Starts::Even(step) => number * step,
            Starts::Listed(starts) => starts[number],
        };
        self.first.wrapping_add(start)
    }
}

/// The rows of a box.
struct Task<'t, T> {
    rows: &'t Rows,
    x: &'t [T],
    at: Begins,
    /// What is subtracted from the elements of each row.
    less: Option<(&'t [T], Begins)>,
    /// How many rows there are.
    count: usize,
    to: Vec<Segment<'t>>,
    ahead: Ahead<'t>,
}

impl<T: Element> Task<'_, T> {
    #[inline(always)]
    fn row(&self, number: usize) -> &[T] {
        &self.x[self.at.row(number)..][..self.rows.length]
    }

    /// The extreme of a row and its place. A method: a closure may be left out of line, without the instructions of the
    /// loop's processor.
    #[inline(always)]
    fn extreme<const LARGEST: bool>(&self, row: usize, wanted: bool) -> (T, usize) {
        of_row::<T, LARGEST>(self.row(row), wanted, self.ahead)
    }

    #[inline(always)]
    fn extremes<const LARGEST: bool>(mut self) {
        let mut to = std::mem::take(&mut self.to);
        match &mut to[..] {
            [Segment::I64(numbers)] => {
                for (row, number) in numbers.iter_mut().enumerate() {
                    *number = self.rows.number(self.extreme::<LARGEST>(row, true).1);
                }
            }
            [values] => {
                for (row, value) in T::elements(values).iter_mut().enumerate() {
                    *value = self.extreme::<LARGEST>(row, false).0;
                }
            }
            [values, Segment::I64(numbers)] => {
                let values = T::elements(values).iter_mut().zip(numbers.iter_mut());
                for (row, (value, number)) in values.enumerate() {
                    let found = self.extreme::<LARGEST>(row, true);
                    (*value, *number) = (found.0, self.rows.number(found.1));
                }
            }
            _ => {}
        }
    }

    /// What strips of a row would give.
    #[inline(always)]
    fn totals<const LESS: bool>(mut self) {
        let (mut to, rule) = (std::mem::take(&mut self.to), self.rows.rule);
        let strip = strip_of(self.rows.length, WIDTH);
        let mut accumulator = Accumulator::folding(rule);
        let mut buffer = [T::default(); WIDTH];
        for row in 0..self.count {
            accumulator.reset(1);
            // A loop for each: one for both is slower.
            let less = self.less.as_ref().filter(|_| LESS);
            let less = less.map(|(of, at)| of[at.row(row)]);
            for part in self.row(row).chunks(strip) {
                self.ahead.ask(part);
                let terms = match less {
                    None => part,
                    Some(less) => {
                        let terms = &mut buffer[..part.len()];
                        for (to, x) in terms.iter_mut().zip(part) {
                            *to = *x - less;
                        }
                        terms
                    }
                };
                accumulator.add_floats(terms, None, |lane| lane as i64);
            }
            let carrier = accumulator.carrier(0);
            if self.rows.partial {
                rule.store(&carrier, &mut to, row);
            } else {
                rule.finish(&carrier, &mut to[0], row);
            }
        }
    }
}

impl<T: Element> Job for Task<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        match self.rows.rule.reduction {
            Reduction::Max | Reduction::ArgMax => self.extremes::<true>(),
            Reduction::Min | Reduction::ArgMin => self.extremes::<false>(),
            _ if self.less.is_some() => self.totals::<true>(),
            _ => self.totals::<false>(),
        }
    }
}
