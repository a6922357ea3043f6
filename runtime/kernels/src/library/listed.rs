//! Operations on lists: where numbers stand in a list, and sums of products of two rows that are lists.
//!
//! Of two rows, the longer one is marked, once for all calls with it, and the shorter one is gone through. Terms are added up in the order of
//! their positions. Must not know kernels.
//!
//! ```text
//! list 1 4 7, numbers 7 2                       ->   places 2 -1
//! rows {0: 2.0, 3: 1.0} and {1: 5.0, 3: 4.0}    ->   1.0 * 4.0
//! ```

use super::whole;
use crate::line::Value;
use crate::{parallel, stream};
use ein_array::Data;
use rayon::slice::ParallelSliceMut;
use std::borrow::Cow;
use std::ops::Range;

/// Numbers that are worth a task of their own.
const TASK: usize = 1 << 12;
/// Steps of calls that are worth a task of their own.
const STEPS: usize = 1 << 18;
/// Positions of a row that are looked up together.
const BLOCK: usize = 256;
/// Neighbours that are looked at to find out whether numbers ascend.
const SAMPLES: usize = 64;

/// The place of each number in an ascending list, -1 if it is not there.
pub(super) fn places(list: &[i64], numbers: &[i64]) -> Vec<i64> {
    let mut places = vec![-1; numbers.len()];
    if !often_ascend(numbers) {
        // A search from anywhere to anywhere waits for memory at each step; sorted numbers are found in one pass.
        let mut sorted: Vec<(i64, usize)> = numbers.iter().copied().zip(0..).collect();
        sorted.par_sort_unstable();
        parallel::chunks_mut(&mut sorted, TASK, |_, numbers| {
            let mut from = 0;
            for (number, _) in numbers {
                from = first_not_less(list, from, *number);
                *number = match list.get(from) {
                    Some(found) if found == number => from as i64,
                    _ => -1,
                };
            }
        });
        for (place, at) in sorted {
            places[at] = place;
        }
        return places;
    }
    parallel::chunks_mut(&mut places, TASK, |part, places| {
        // Numbers often ascend as well: the place of one is where the search for the next one begins.
        let mut from = 0;
        for (to, number) in places.iter_mut().zip(&numbers[part * TASK..]) {
            from = first_not_less(list, from, *number);
            if list.get(from) == Some(number) {
                *to = from as i64;
            }
        }
    });
    places
}

/// Returns whether most of some neighbours are in order.
fn often_ascend(numbers: &[i64]) -> bool {
    let each = (numbers.len() / SAMPLES).max(1);
    let pairs = numbers.windows(2).step_by(each);
    let ascend = pairs.clone().filter(|pair| pair[0] <= pair[1]).count();
    4 * ascend >= 3 * pairs.count()
}

/// The first place of an ascending list with no less than a number, looked for in growing distances from a place.
fn first_not_less(list: &[i64], from: usize, number: i64) -> usize {
    if from > 0 && list[from - 1] >= number {
        return list[..from].partition_point(|x| *x < number);
    }
    let (mut low, mut step) = (from, 1);
    while low + step <= list.len() && list[low + step - 1] < number {
        low += step;
        step *= 2;
    }
    let high = list.len().min(low + step);
    low + list[low..high].partition_point(|x| *x < number)
}

/// Positions as they are looked up: one that is not less than `count`, which is less than 2^32, is `count`.
pub(super) fn positions(numbers: &Data, count: usize) -> Cow<'_, [u32]> {
    match numbers {
        Data::U32(numbers) => match numbers.iter().all(|number| (*number as usize) < count) {
            true => Cow::Borrowed(numbers),
            false => Cow::Owned(numbers.iter().map(|x| (*x).min(count as u32)).collect()),
        },
        _ => {
            let position = |at: usize| match whole(numbers, at) {
                number if (0..count as i64).contains(&number) => number as u32,
                _ => count as u32,
            };
            Cow::Owned((0..numbers.len()).map(position).collect())
        }
    }
}

/// A matrix as the list of its rows.
pub(super) struct Rows<'a, T: Clone> {
    /// By row: where it ends in the list.
    pub ends: &'a [i64],
    /// Positions, ascending in a row, as [`positions`] gives them.
    pub positions: Cow<'a, [u32]>,
    pub values: Cow<'a, [T]>,
}

impl<T: Clone> Rows<'_, T> {
    /// Where a row lies in the list: nowhere, if there is no such row.
    pub(super) fn range(&self, row: i64) -> Range<usize> {
        let Some(end) = usize::try_from(row).ok().and_then(|row| self.ends.get(row)) else {
            return 0..0;
        };
        let start = match row {
            0 => 0,
            row => self.ends[row as usize - 1],
        };
        start as usize..*end as usize
    }
}

/// Numbers that are multiplied and added up.
pub(super) trait Summed: Value + Default {
    type Sum: Copy + Default + Send;
    fn plus(sum: Self::Sum, term: Self) -> Self::Sum;
    fn stored(sum: Self::Sum) -> Self;
    fn data(all: Vec<Self>) -> Data;
}

macro_rules! summed {
    ($($t:ty, $variant:ident, $sum:ty, $plus:expr);*) => {
        $(impl Summed for $t {
            type Sum = $sum;
            #[inline(always)]
            fn plus(sum: $sum, term: $t) -> $sum {
                $plus(sum, term)
            }
            fn stored(sum: $sum) -> $t {
                sum as $t
            }
            fn data(all: Vec<$t>) -> Data {
                Data::$variant(all)
            }
        })*
    };
}

summed!(
    f32, F32, f64, |sum, term| sum + f64::from(term);
    f64, F64, f64, |sum, term| sum + term;
    i32, I32, i32, i32::wrapping_add;
    i64, I64, i64, i64::wrapping_add
);

/// The sum of the products of each pair of rows, one of `a` and one of `b`, with positions less than `count`.
pub(super) fn dots<T: Summed>(
    [a, b]: [&Rows<'_, T>; 2],
    [of_a, of_b]: [&[i64]; 2],
    count: usize,
) -> Vec<T> {
    let calls = of_a.len();
    let mut sums = vec![T::ZERO; calls];
    // Of each call: whether the row of `a` is the longer one, where that lies, and where the other one does.
    let sides = |call: usize| {
        let (row, other) = (a.range(of_a[call]), b.range(of_b[call]));
        match row.len() >= other.len() {
            true => (true, row, other),
            false => (false, other, row),
        }
    };
    // Rows of `b` are numbered behind those of `a`.
    let longer = |call: usize| {
        let (is_first, _, shorter) = sides(call);
        let number = match is_first {
            true => of_a[call] as usize,
            false => a.ends.len() + of_b[call] as usize,
        };
        (!shorter.is_empty()).then_some((number, shorter.len()))
    };
    let order = Order::of(a.ends.len() + b.ends.len(), calls, longer);
    let positions = [&a.positions, &b.positions];
    let parts = parallel::map_with(
        order.parts(),
        || Marks::of(count),
        |marks, _, part| {
            let calls = &order.calls[part.clone()];
            let mut sums: Vec<T> = Vec::with_capacity(calls.len());
            let mut marked: Option<(bool, Range<usize>)> = None;
            for (number, call) in calls.iter().enumerate() {
                if let Some(next) = calls.get(number + 1) {
                    let (is_first, _, soon) = sides(*next);
                    let soon = soon.start..soon.end.min(soon.start + BLOCK);
                    stream::ahead(positions[usize::from(is_first)], soon);
                }
                let (is_first, longer, shorter) = sides(*call);
                let (long, short) = if is_first { (a, b) } else { (b, a) };
                if marked.as_ref() != Some(&(is_first, longer.clone())) {
                    marks.set(&positions[usize::from(!is_first)][longer.clone()]);
                    marked = Some((is_first, longer.clone()));
                }
                let row = &positions[usize::from(is_first)][shorter.clone()];
                sums.push(marks.dot(&long.values[longer], (row, &short.values[shorter])));
            }
            (part, sums)
        },
    );
    for (part, own) in parts {
        for (call, sum) in order.calls[part].iter().zip(own) {
            sums[*call] = sum;
        }
    }
    sums
}

/// The positions of a row.
struct Marks {
    /// A bit for each position, and one behind them that is never set.
    bits: Vec<u64>,
    /// By position that the row has: where in the row it stands.
    places: Vec<u32>,
    /// The positions that are set.
    set: Vec<u32>,
}

impl Marks {
    fn of(count: usize) -> Marks {
        Marks {
            bits: vec![0; count / 64 + 1],
            places: vec![0; count],
            set: vec![],
        }
    }

    /// Marks the positions of a row, and no others.
    fn set(&mut self, row: &[u32]) {
        for position in self.set.drain(..) {
            self.bits[position as usize / 64] = 0;
        }
        for (place, position) in (0..).zip(row) {
            if let Some(own) = self.places.get_mut(*position as usize) {
                *own = place;
                self.bits[*position as usize / 64] |= 1 << (position % 64);
                self.set.push(*position);
            }
        }
    }

    /// The sum of the products of the marked row, which has these values, and another one.
    fn dot<T: Summed>(&self, marked: &[T], (positions, values): (&[u32], &[T])) -> T {
        let mut sum = T::Sum::default();
        let mut hits = [0u32; BLOCK];
        for (positions, values) in positions.chunks(BLOCK).zip(values.chunks(BLOCK)) {
            // Which positions are marked is not foreseen: all are written down, and those that are not are overwritten.
            let mut found = 0;
            for (at, position) in (0u32..).zip(positions) {
                hits[found % BLOCK] = at;
                found += (self.bits[*position as usize / 64] >> (position % 64) & 1) as usize;
            }
            for at in &hits[..found] {
                let place = self.places[positions[*at as usize] as usize];
                let product = marked[place as usize].times(values[*at as usize]);
                sum = T::plus(sum, product);
            }
        }
        T::stored(sum)
    }
}

/// Calls that have something to go through, by the row that is marked.
struct Order {
    calls: Vec<usize>,
    /// Where the calls of a task end.
    ends: Vec<usize>,
}

impl Order {
    /// `of` gives the number of the row that a call marks, of so many, and how many steps it takes.
    fn of(rows: usize, calls: usize, of: impl Fn(usize) -> Option<(usize, usize)>) -> Order {
        let mut begins = vec![0usize; rows + 1];
        for (row, _) in (0..calls).filter_map(&of) {
            begins[row + 1] += 1;
        }
        for row in 0..rows {
            begins[row + 1] += begins[row];
        }
        let mut order = vec![0; begins[rows]];
        for (call, (row, _)) in (0..calls).filter_map(|call| Some((call, of(call)?))) {
            order[begins[row]] = call;
            begins[row] += 1;
        }
        let (mut ends, mut steps) = (vec![], 0);
        for (number, call) in order.iter().enumerate() {
            steps += of(*call).map_or(0, |(_, steps)| steps) + 1;
            if steps >= STEPS {
                ends.push(number + 1);
                steps = 0;
            }
        }
        ends.push(order.len());
        Order { calls: order, ends }
    }

    /// The calls of each task.
    fn parts(&self) -> Vec<Range<usize>> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts
            .zip(&self.ends)
            .map(|(start, end)| *start..*end)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_any_order() {
        let list: Vec<i64> = (0..3000).map(|n| n * n / 3 + n).collect();
        let numbers: Vec<i64> = (0..20_000)
            .map(|n| (n * 7919) % 3_100_000 - 5)
            .chain(list.iter().copied())
            .chain(list.iter().rev().copied())
            .collect();
        let known = |x: &i64| list.iter().position(|y| y == x).map_or(-1, |at| at as i64);
        let expected: Vec<i64> = numbers.iter().map(known).collect();
        assert_eq!(places(&list, &numbers), expected);
        assert_eq!(places(&[], &[3]), [-1]);
        // Long lists of numbers in any order.
        let list: Vec<i64> = (0..9000).map(|n| n * 3).collect();
        let numbers: Vec<i64> = (0..20_000).map(|n| n * 7919 % 27_500).collect();
        let expected: Vec<i64> = (numbers.iter())
            .map(|n| if n % 3 == 0 && *n < 27_000 { n / 3 } else { -1 })
            .collect();
        assert_eq!(places(&list, &numbers), expected);
    }

    #[test]
    fn rows_meet_where_both_have_a_position() {
        let ends = [2, 2, 5];
        let values = [2.0f32, 1.0, 5.0, 4.0, 3.0];
        let list = Data::I64(vec![0, 3, 1, 3, 4]);
        let rows = |count| Rows {
            ends: &ends,
            positions: positions(&list, count),
            values: Cow::Borrowed(&values[..]),
        };
        let (one, other) = ([0, 0, 2, 1, 7, -1], [2, 0, 2, 2, 0, 2]);
        let sums = dots([&rows(5), &rows(5)], [&one, &other], 5);
        assert_eq!(sums, [4.0, 5.0, 50.0, 0.0, 0.0, 0.0]);
        // A position that is said not to be there is in no row.
        assert_eq!(dots([&rows(4), &rows(4)], [&[2], &[2]], 4), [41.0]);
    }
}
