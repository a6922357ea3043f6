//! Numbers of rows that data say: for each point an element of a list, or what another list holds at that place.
//!
//! Must not know what is done with the rows.
//!
//! ```text
//! list[near[n]]   of near = 2 0, list = 10 11 12   ->   12 10
//! ```

use crate::Chunk;
use crate::program::place_of;
use ein_array::Data;
use ein_plan::schedule::access::{Place, lie, merged};
use ein_plan::{DType, Kernel, Node, NodeId};

/// Whole numbers as they are stored.
#[derive(Clone, Copy)]
pub(crate) enum Numbers<'a> {
    I64(&'a [i64]),
    U32(&'a [u32]),
    I32(&'a [i32]),
    U8(&'a [u8]),
}

/// The types of [`Numbers`].
const STORED: [DType; 4] = [DType::I64, DType::U32, DType::I32, DType::U8];

/// The value of an expression of the numbers, whatever their type.
macro_rules! each {
    ($of:expr, $numbers:ident => $value:expr) => {
        match $of {
            Numbers::I64($numbers) => $value,
            Numbers::U32($numbers) => $value,
            Numbers::I32($numbers) => $value,
            Numbers::U8($numbers) => $value,
        }
    };
}

impl<'a> Numbers<'a> {
    pub(crate) fn of(data: &'a Data) -> Option<Numbers<'a>> {
        match data {
            Data::I64(numbers) => Some(Numbers::I64(numbers)),
            Data::U32(numbers) => Some(Numbers::U32(numbers)),
            Data::I32(numbers) => Some(Numbers::I32(numbers)),
            Data::U8(numbers) => Some(Numbers::U8(numbers)),
            _ => None,
        }
    }

    #[inline(always)]
    pub(crate) fn at(&self, at: usize) -> i64 {
        each!(self, numbers => widened(numbers[at]))
    }

    #[inline(always)]
    fn get(&self, at: usize) -> Option<i64> {
        each!(self, numbers => numbers.get(at).map(|number| widened(*number)))
    }

    /// Numbers at a distance from each other.
    #[inline(always)]
    fn fill(&self, (first, step): (usize, usize), to: &mut [i64]) {
        each!(self, numbers => strided(&numbers[first..], step, to));
    }
}

#[inline(always)]
fn widened<T: Into<i64>>(number: T) -> i64 {
    number.into()
}

#[inline(always)]
fn strided<T: Copy + Into<i64>>(numbers: &[T], step: usize, to: &mut [i64]) {
    match step {
        0 => to.fill(numbers[0].into()),
        1 => {
            let numbers = &numbers[..to.len()];
            (to.iter_mut().zip(numbers)).for_each(|(to, x)| *to = (*x).into());
        }
        step => {
            let numbers = numbers.iter().step_by(step);
            (to.iter_mut().zip(numbers)).for_each(|(to, x)| *to = (*x).into());
        }
    }
}

/// Some points of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Points<'p> {
    /// One after the other, from the first on, so many.
    Neighbours(usize, usize),
    /// The lower halves of these numbers.
    Listed(&'p [u64]),
}

impl Points<'_> {
    /// Appends what is made of the elements of the points, of which the first one's lies at a place, and the next one's so far from there.
    #[inline(always)]
    pub(crate) fn of<T: Copy, U>(
        self,
        all: &[T],
        (first, step): (usize, usize),
        to: &mut Vec<U>,
        made: impl Fn(T) -> U,
    ) {
        match (self, step) {
            (Points::Neighbours(point, count), 1) => {
                let all = &all[first + point..][..count];
                to.extend(all.iter().map(|x| made(*x)));
            }
            (Points::Neighbours(point, count), _) => {
                let all = (point..point + count).map(|point| all[first + point * step]);
                to.extend(all.map(made));
            }
            (Points::Listed(points), _) => {
                let points = points.iter().map(|point| *point as u32 as usize);
                to.extend(points.map(|point| made(all[first + point * step])));
            }
        }
    }

    /// Calls a function with each point.
    #[inline(always)]
    pub(crate) fn try_each(self, mut of: impl FnMut(usize, usize) -> Option<()>) -> Option<()> {
        match self {
            Points::Neighbours(point, count) => (0..count).try_for_each(|at| of(at, point + at)),
            Points::Listed(points) => {
                let mut points = points.iter().enumerate();
                points.try_for_each(|(at, point)| of(at, *point as u32 as usize))
            }
        }
    }
}

/// A number for each point.
pub(crate) struct Looked<'a> {
    /// The numbers as they lie: the first point's, and how far the next one's is from there.
    numbers: Numbers<'a>,
    at: (usize, usize),
    /// Where numbers are places in a list: the list, and the number of its first element.
    list: Option<(List<'a>, i64)>,
}

/// A list of numbers.
#[derive(Clone, Copy)]
enum List<'a> {
    Elements(Numbers<'a>),
    /// Numbers that count up from one on, so many.
    Counts(i64, usize),
}

impl<'a> List<'a> {
    /// A list that is read for so many points. What more points read than it has elements is worth a look at all of it.
    fn of(elements: Numbers<'a>, points: usize) -> List<'a> {
        let counted = each!(elements, numbers => match numbers.first() {
            Some(first) if numbers.len() <= points => {
                let first = widened(*first);
                let mut counts = (first..).zip(numbers);
                let is_counted = counts.all(|(count, number)| count == widened(*number));
                is_counted.then_some(List::Counts(first, numbers.len()))
            }
            _ => None,
        });
        counted.unwrap_or(List::Elements(elements))
    }

    #[inline(always)]
    fn get(&self, at: usize) -> Option<i64> {
        match self {
            List::Elements(numbers) => numbers.get(at),
            List::Counts(first, length) => (at < *length).then(|| first + at as i64),
        }
    }

    /// Replaces places, of which the list begins at `start`, by what stands there; `None` if one is outside.
    #[inline(always)]
    fn look_up(&self, start: i64, places: &mut [i64]) -> Option<()> {
        match self {
            List::Elements(numbers) => each!(numbers, numbers => {
                for place in places {
                    let at = usize::try_from(place.wrapping_sub(start)).ok()?;
                    *place = widened(*numbers.get(at)?);
                }
            }),
            List::Counts(first, length) => {
                let mut inside = true;
                for place in places {
                    let at = place.wrapping_sub(start);
                    inside &= (at as usize) < *length;
                    *place = first.wrapping_add(at);
                }
                inside.then_some(())?;
            }
        }
        Some(())
    }
}

impl<'a> Looked<'a> {
    /// An expression in this form, a number for each value of the indices `points`, that no other index changes.
    pub(crate) fn of(
        kernel: &Kernel,
        expression: NodeId,
        points: &[usize],
        ranges: &[(i64, i64)],
        operands: &'a [Chunk<'a>],
    ) -> Option<Looked<'a>> {
        let layout: Vec<Place> = operands.iter().map(place_of).collect();
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        // Integers of fewer bits are the same numbers in 64.
        let narrow = |id: NodeId| match kernel.graph.node(id) {
            Node::Convert(narrow) if kernel.graph.dtype(*narrow) == DType::I32 => *narrow,
            _ => id,
        };
        let found = |id: NodeId| {
            let id = narrow(id);
            let mut all = STORED.into_iter();
            let lie = all.find_map(|dtype| lie(kernel, id, dtype, ranges, &layout))?;
            let numbers = Numbers::of(operands[lie.operand].columns[lie.column].data())?;
            let is_fixed = |i: usize| points.contains(&i) || lie.steps[i] == 0 || lengths[i] == 1;
            let fixed = (0..ranges.len()).all(is_fixed);
            let at = (
                lie.first(ranges, &[]) as usize,
                merged(&lie.steps, points, &lengths)?,
            );
            fixed.then_some((numbers, at))
        };
        if let Some((numbers, at)) = found(expression) {
            return Some(Looked {
                numbers,
                at,
                list: None,
            });
        }
        let Node::Read {
            operand,
            column,
            positions,
            otherwise: None,
        } = kernel.graph.node(narrow(expression))
        else {
            return None;
        };
        let (chunk, [position]) = (&operands[*operand as usize], &positions[..]) else {
            return None;
        };
        let elements = Numbers::of(chunk.columns[*column as usize].data())?;
        let count = points.iter().map(|point| lengths[*point]).product();
        let (numbers, at) = found(*position)?;
        Some(Looked {
            numbers,
            at,
            list: Some((List::of(elements, count), chunk.start[0] as i64)),
        })
    }

    /// The number of a point; `None` if it is read outside of its list.
    #[inline(always)]
    pub(crate) fn get(&self, point: usize) -> Option<i64> {
        let number = self.numbers.at(self.at.0 + point * self.at.1);
        let Some((list, first)) = self.list else {
            return Some(number);
        };
        let at = usize::try_from(number.wrapping_sub(first)).ok()?;
        list.get(at)
    }

    /// The numbers of points in any order, negative ones as the largest; `None` if one is read outside of its list.
    #[inline(always)]
    pub(crate) fn of_points(&self, points: Points<'_>, to: &mut Vec<usize>) -> Option<()> {
        each!(&self.numbers, numbers => {
            points.of(numbers, self.at, to, |number| widened(number) as usize);
        });
        if let Some((list, first)) = self.list {
            for to in to {
                *to = list.get(to.wrapping_sub(first as usize))? as usize;
            }
        }
        Some(())
    }

    /// The numbers of some points, if they lie beside each other as `u32`.
    #[inline(always)]
    pub(crate) fn lying(&self, points: std::ops::Range<usize>) -> Option<&'a [u32]> {
        match (self.numbers, self.at, &self.list) {
            (Numbers::U32(numbers), (first, 1), None) => {
                numbers.get(first + points.start..first + points.end)
            }
            _ => None,
        }
    }

    /// The numbers of some points as they lie, if they do beside each other.
    pub(crate) fn all(&self, points: std::ops::Range<usize>) -> Option<Numbers<'a>> {
        let (first, 1, None) = (self.at.0, self.at.1, &self.list) else {
            return None;
        };
        let range = first + points.start..first + points.end;
        Some(match self.numbers {
            Numbers::I64(numbers) => Numbers::I64(numbers.get(range)?),
            Numbers::U32(numbers) => Numbers::U32(numbers.get(range)?),
            Numbers::I32(numbers) => Numbers::I32(numbers.get(range)?),
            Numbers::U8(numbers) => Numbers::U8(numbers.get(range)?),
        })
    }

    /// The numbers of some points in 32 bits, if they are no places in a list, and fit, also into `to`.
    #[inline(always)]
    pub(crate) fn narrowed<'t>(
        &self,
        points: std::ops::Range<usize>,
        to: &'t mut [u32],
    ) -> Option<&'t [u32]> {
        if self.list.is_some() {
            return None;
        }
        let (first, step) = self.at;
        let to = to.get_mut(..points.len())?;
        let mut fits = true;
        each!(self.numbers, numbers => {
            let own = numbers[first + points.start * step..].iter().step_by(step.max(1));
            for (to, number) in to.iter_mut().zip(own) {
                let number = widened(*number);
                *to = number as u32;
                fits &= number == i64::from(*to);
            }
        });
        (fits && step > 0).then_some(to)
    }

    /// The numbers of some points; `None` if one is read outside of its list.
    #[inline(always)]
    pub(crate) fn fill(&self, points: std::ops::Range<usize>, to: &mut [i64]) -> Option<()> {
        let (first, step) = self.at;
        self.numbers.fill((first + points.start * step, step), to);
        match self.list {
            Some((list, first)) => list.look_up(first, to),
            None => Some(()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_list_that_counts_up_is_not_read_at_each_place() {
        let (counts, others) = ([5, 6, 7, 8], [5, 6, 8, 7]);
        let list = List::of(Numbers::I64(&counts), 4);
        assert!(matches!(list, List::Counts(5, 4)));
        for (elements, points) in [(&others, 4), (&counts, 3)] {
            let list = List::of(Numbers::I64(elements), points);
            assert!(matches!(list, List::Elements(_)));
        }
        for list in [list, List::Elements(Numbers::I64(&counts))] {
            let mut places = [12, 10, 13];
            list.look_up(10, &mut places).unwrap();
            assert_eq!(places, [7, 5, 8]);
            assert_eq!(list.get(3), Some(8));
            for outside in [9, 14, i64::MIN, i64::MAX] {
                assert_eq!(list.look_up(10, &mut [11, outside]), None);
            }
            assert_eq!(list.get(4), None);
        }
    }
}
