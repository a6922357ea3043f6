//! Lines of neighbouring elements, one for each point of a kernel, with the numbers that they are multiplied by.
//!
//! A line is read as it lies, or at a row that data say. Must not know what is done with a line.
//!
//! ```text
//! w[e] * x[src[e], h]   ->   for each e: the line x[src[e], ..], times w[e]
//! ```
#![allow(unsafe_code)]

mod named;

use crate::Chunk;
use crate::looked::{Looked, Points};
use crate::program::place_of;
use ein_array::Data;
use ein_plan::schedule::access::{Place, StridedAccess, lie_but_one, merged};
use ein_plan::schedule::leaves::value;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Scalar};
pub(crate) use named::Named;
use std::ops::Range;

/// Rows that are looked up together.
const ROWS: usize = 128;
/// Most numbers that a line is multiplied by.
pub(crate) const FACTORS: usize = 4;

/// Elements of one type, for every point.
pub(crate) struct Elements<'a, T> {
    pub(crate) all: &'a [T],
    /// The first point's, and how far the next one's are from there.
    at: (usize, usize),
    /// How many points after each other have the same: the next ones are those of the point behind them.
    shared: usize,
    /// At a row that data say: its number, the first row and their count, and the distance between rows.
    pub(crate) row: Option<(Looked<'a>, (i64, i64), usize)>,
}

/// A number for every point.
pub(crate) enum Factor<'a, T> {
    Constant(T),
    Read(Elements<'a, T>),
}

/// Neighbouring elements for every point, and what they are multiplied by in turn.
pub(crate) struct Scaled<'a, T> {
    pub(crate) elements: Elements<'a, T>,
    pub(crate) factors: Vec<Factor<'a, T>>,
}

pub(crate) enum Line<'a> {
    F32(Scaled<'a, f32>),
    F64(Scaled<'a, f64>),
    I64(Scaled<'a, i64>),
}

/// A type of lines.
pub(crate) trait Value: Copy + Send + Sync {
    fn of(data: &Data) -> Option<&[Self]>;
    fn constant(scalar: &Scalar) -> Option<Self>;
    fn times(self, other: Self) -> Self;
    const ZERO: Self;
}

macro_rules! value {
    ($t:ty, $variant:ident, $constant:expr, $times:expr) => {
        impl Value for $t {
            const ZERO: $t = 0 as $t;
            fn of(data: &Data) -> Option<&[$t]> {
                match data {
                    Data::$variant(all) => Some(all),
                    _ => None,
                }
            }
            fn constant(scalar: &Scalar) -> Option<$t> {
                $constant(scalar)
            }
            #[inline(always)]
            fn times(self, other: $t) -> $t {
                $times(self, other)
            }
        }
    };
}

value!(f32, F32, |x: &Scalar| Some(x.as_f64() as f32), |x, y| x * y);
value!(f64, F64, |x: &Scalar| Some(x.as_f64()), |x, y| x * y);
value!(
    i32,
    I32,
    |x: &Scalar| match x {
        Scalar::Int(x) => Some(*x as i32),
        _ => None,
    },
    i32::wrapping_mul
);
value!(
    i64,
    I64,
    |x: &Scalar| match x {
        Scalar::Int(x) => Some(*x),
        _ => None,
    },
    i64::wrapping_mul
);

/// How a kernel's reads are seen.
pub(crate) struct Sight<'k, 'a> {
    kernel: &'k Kernel,
    ranges: &'k [(i64, i64)],
    operands: &'a [Chunk<'a>],
    layout: Vec<Place>,
    lengths: Vec<usize>,
    of_point: Vec<usize>,
    of_line: Vec<usize>,
}

impl<'k, 'a> Sight<'k, 'a> {
    /// Of a kernel over `ranges`, with a line along the indices `of_line` for each value of `of_point`.
    pub(crate) fn of(
        kernel: &'k Kernel,
        ranges: &'k [(i64, i64)],
        operands: &'a [Chunk<'a>],
        (of_point, of_line): (Vec<usize>, Vec<usize>),
    ) -> Self {
        Sight {
            kernel,
            ranges,
            operands,
            layout: operands.iter().map(place_of).collect(),
            lengths: ranges.iter().map(|(_, n)| *n as usize).collect(),
            of_point,
            of_line,
        }
    }

    /// A read, and how far neighbours along a line lie apart.
    pub(crate) fn elements<T: Value>(
        &self,
        id: NodeId,
        dtype: DType,
    ) -> Option<(Elements<'a, T>, usize)> {
        let (lie, found) = lie_but_one(self.kernel, id, dtype, self.ranges, &self.layout)?;
        let StridedAccess {
            operand, column, ..
        } = lie;
        let all = T::of(self.operands[operand].columns[column].data())?;
        let (step, shared) = self.step(&lie)?;
        let along = match self.of_line.iter().all(|i| lie.steps[*i] == 0) {
            true => 0,
            false => merged(&lie.steps, &self.of_line, &self.lengths)?,
        };
        let row = match found {
            None => None,
            Some((dimension, position)) => {
                let looked = Looked::of(
                    self.kernel,
                    position,
                    &self.of_point,
                    self.ranges,
                    self.operands,
                )?;
                let place = &self.layout[operand];
                let rows = (place.start[dimension], place.shape[dimension]);
                Some((looked, rows, place.strides[dimension] as usize))
            }
        };
        let at = (lie.first(self.ranges, &[]) as usize, step);
        let elements = Elements {
            all,
            at,
            shared,
            row,
        };
        Some((elements, along))
    }

    /// How far an element is from that of the point before, and how many points after each other have the same one.
    fn step(&self, lie: &StridedAccess) -> Option<(usize, usize)> {
        let moves = |i: &usize| lie.steps[*i] != 0 && self.lengths[*i] > 1;
        let Some(last) = self.of_point.iter().rposition(moves) else {
            return Some((0, 1));
        };
        let (own, others) = self.of_point.split_at(last + 1);
        let shared = others.iter().map(|i| self.lengths[*i]).product();
        Some((merged(&lie.steps, own, &self.lengths)?, shared))
    }

    /// A product of a line and numbers.
    pub(crate) fn scaled<T: Value>(&self, id: NodeId, dtype: DType) -> Option<Scaled<'a, T>> {
        let graph = &self.kernel.graph;
        let id = value(graph, id);
        if let Node::Apply(Function::Mul, sides) = graph.node(id) {
            let of = |line: NodeId, factor: NodeId| {
                let factor = self.factor(factor, dtype)?;
                let mut scaled = self.scaled(line, dtype)?;
                scaled.factors.push(factor);
                (scaled.factors.len() <= FACTORS).then_some(scaled)
            };
            return of(sides[1], sides[0]).or_else(|| of(sides[0], sides[1]));
        }
        let (elements, along) = self.elements(id, dtype)?;
        (along == 1).then_some(Scaled {
            elements,
            factors: vec![],
        })
    }

    pub(crate) fn factor<T: Value>(&self, id: NodeId, dtype: DType) -> Option<Factor<'a, T>> {
        let id = value(&self.kernel.graph, id);
        if let Node::Constant(x) = self.kernel.graph.node(id) {
            return T::constant(x).map(Factor::Constant);
        }
        let (elements, along) = self.elements(id, dtype)?;
        (along == 0).then_some(Factor::Read(elements))
    }
}

impl<T: Value> Elements<'_, T> {
    /// The number of a point, points that have the same counted once.
    #[inline(always)]
    fn number(&self, point: usize) -> usize {
        // Mostly there is nothing to divide.
        match self.shared {
            1 => point,
            shared => point / shared,
        }
    }

    /// Where a point's elements begin; `None` if its row is outside.
    #[inline(always)]
    pub(crate) fn first(&self, point: usize) -> Option<usize> {
        let at = self.at.0 + self.number(point) * self.at.1;
        let Some((looked, (start, count), stride)) = &self.row else {
            return Some(at);
        };
        let row = looked.get(point)?.wrapping_sub(*start);
        (0..*count)
            .contains(&row)
            .then(|| at + row as usize * stride)
    }
}

impl<T: Value> Elements<'_, T> {
    /// Where the elements of some points begin; `None` if the row of one is outside.
    #[inline(always)]
    pub(crate) fn firsts(&self, points: Points<'_>, to: &mut Vec<usize>) -> Option<()> {
        let (first, step) = self.at;
        to.clear();
        let Some((looked, (start, count), stride)) = &self.row else {
            return points.try_each(|_, point| {
                to.push(first + self.number(point) * step);
                Some(())
            });
        };
        looked.of_points(points, to)?;
        let (start, count) = (*start as usize, *count as usize);
        let mut inside = true;
        for to in &mut *to {
            // A number below the first row is one far above the last one.
            let row = to.wrapping_sub(start);
            inside &= row < count;
            *to = first.wrapping_add(row.wrapping_mul(*stride));
        }
        if step > 0 {
            points.try_each(|at, point| {
                to[at] = to[at].wrapping_add(self.number(point) * step);
                Some(())
            })?;
        }
        inside.then_some(())
    }

    /// Changes a number by the element of each of some points; `None` if one is read outside.
    #[inline(always)]
    fn each(&self, points: Range<usize>, to: &mut [T], change: impl Fn(T, T) -> T) -> Option<()> {
        if self.shared > 1 {
            for (to, point) in to.iter_mut().zip(points) {
                *to = change(*to, *self.all.get(self.first(point)?)?);
            }
            return Some(());
        }
        let (first, step) = self.at;
        let Some((looked, within, stride)) = &self.row else {
            let own = &self.all[first + points.start * step..];
            match step {
                1 => {
                    let own = &own[..points.len()];
                    (to.iter_mut().zip(own)).for_each(|(to, x)| *to = change(*to, *x));
                }
                step => {
                    let own = (0..points.len()).map(|point| own[point * step]);
                    (to.iter_mut().zip(own)).for_each(|(to, x)| *to = change(*to, x));
                }
            }
            return Some(());
        };
        let mut rows = [0i64; ROWS];
        for (part, to) in to.chunks_mut(ROWS).enumerate() {
            let begin = points.start + part * ROWS;
            let these = begin..begin + to.len();
            let own = self.all.get(first + begin * step..)?;
            if let Some(rows) = looked.lying(these.clone()) {
                gathered(own, (rows, *within), (step, *stride), to, &change)?;
                continue;
            }
            let rows = &mut rows[..to.len()];
            looked.fill(these, rows)?;
            gathered(own, (rows, *within), (step, *stride), to, &change)?;
        }
        Some(())
    }
}

impl<'a, T: Value> Elements<'a, T> {
    /// The elements of some points, if they lie beside each other.
    #[inline(always)]
    fn beside(&self, points: Range<usize>) -> Option<&'a [T]> {
        match (&self.row, self.shared, self.at) {
            (None, 1, (first, 1)) => self.all.get(first + points.start..first + points.end),
            _ => None,
        }
    }

    /// The elements of some points, if numbers of rows that lie somewhere name them; `room` is for those that do not lie beside each other in 32 bits.
    #[inline(always)]
    fn named<'t>(&self, points: Range<usize>, room: &'t mut [u32]) -> Option<Named<'t, T>>
    where
        'a: 't,
    {
        let (Some((looked, (start, count), 1)), 1, (first, 0)) = (&self.row, self.shared, self.at)
        else {
            return None;
        };
        let (start, count) = (u32::try_from(*start).ok()?, *count as usize);
        let own = self.all.get(first..first.checked_add(count)?)?;
        let rows: &'t [u32] = match looked.lying(points.clone()) {
            Some(rows) => rows,
            None => looked.narrowed(points, room)?,
        };
        Some(Named { own, rows, start })
    }
}

/// Changes the number of each point by the element at its row, of `count` from `start` on; `None` if a row is another one. Points are `step`
/// elements apart, and rows `stride`.
#[inline(always)]
fn gathered<T: Copy, R: Copy + Into<i64>>(
    own: &[T],
    (rows, (start, count)): (&[R], (i64, i64)),
    (step, stride): (usize, usize),
    to: &mut [T],
    change: impl Fn(T, T) -> T,
) -> Option<()> {
    let (rows, count) = (&rows[..to.len()], count as usize);
    let place = |row: R| row.into().wrapping_sub(start) as usize;
    // All rows are looked at first, so that nothing is asked where elements are read.
    let mut outside = false;
    for row in rows {
        outside |= place(*row) >= count;
    }
    if outside || own.len() <= (to.len() - 1) * step + (count - 1) * stride {
        return None;
    }
    // SAFETY: the number of a point is less than `to.len()`, and a row than `count`; the last such element is inside.
    let element = |at: usize| unsafe { *own.get_unchecked(at) };
    let points = to.iter_mut().zip(rows);
    match (step, stride) {
        (0, 1) => points.for_each(|(to, row)| *to = change(*to, element(place(*row)))),
        _ => (points.enumerate()).for_each(|(number, (to, row))| {
            *to = change(*to, element(number * step + place(*row) * stride));
        }),
    }
    Some(())
}

impl<'a, T: Value> Factor<'a, T> {
    /// The numbers of some points, if they are elements that lie beside each other.
    #[inline(always)]
    pub(crate) fn beside(&self, points: Range<usize>) -> Option<&'a [T]> {
        match self {
            Factor::Read(elements) => elements.beside(points),
            Factor::Constant(_) => None,
        }
    }

    /// The numbers of some points, if they are elements that numbers of rows name; `room` is for such numbers.
    #[inline(always)]
    pub(crate) fn named<'t>(
        &self,
        points: Range<usize>,
        room: &'t mut [u32],
    ) -> Option<Named<'t, T>>
    where
        'a: 't,
    {
        match self {
            Factor::Read(elements) => elements.named(points, room),
            Factor::Constant(_) => None,
        }
    }

    /// True if data say where its numbers are.
    pub(crate) fn is_looked_up(&self) -> bool {
        matches!(self, Factor::Read(elements) if elements.row.is_some())
    }

    /// The numbers of some points; `None` if one is read outside.
    #[inline(always)]
    pub(crate) fn fill(&self, points: Range<usize>, to: &mut [T]) -> Option<()> {
        match self {
            Factor::Constant(x) => to.fill(*x),
            Factor::Read(elements) => elements.each(points, to, |_, x| x)?,
        }
        Some(())
    }

    /// Multiplies numbers of some points; `None` if one is read outside.
    #[inline(always)]
    pub(crate) fn times(&self, points: Range<usize>, to: &mut [T]) -> Option<()> {
        match self {
            Factor::Constant(x) => to.iter_mut().for_each(|to| *to = to.times(*x)),
            Factor::Read(elements) => elements.each(points, to, T::times)?,
        }
        Some(())
    }

    /// The numbers of points in any order; `None` if one is read outside.
    #[inline(always)]
    pub(crate) fn of_points(&self, points: Points<'_>, to: &mut Vec<T>) -> Option<()> {
        to.clear();
        match self {
            Factor::Constant(x) => points.try_each(|_, _| {
                to.push(*x);
                Some(())
            }),
            Factor::Read(elements) if elements.row.is_none() && elements.shared == 1 => {
                points.of(elements.all, elements.at, to, |x| x);
                Some(())
            }
            Factor::Read(elements) => points.try_each(|_, point| {
                to.push(elements.all[elements.first(point)?]);
                Some(())
            }),
        }
    }
}
