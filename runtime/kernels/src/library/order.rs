//! Values in ascending order, positions in the order of their values, and positions of the largest values.
//!
//! A value becomes a whole number, its *rank*, which compares as the value does. NaN has the largest rank, and both zeros have the
//! same one. Values are sorted as their ranks. Of positions, a 64-bit number holds the leading bits of a rank and behind them the
//! position, so that numbers alone are sorted; positions that agree in these leading bits are sorted again by their whole ranks. Equal
//! values keep their order. Results are a function of the values alone, however many threads there are. Ranks for positions come by the
//! block through a pointer, so that one function serves all element types. Must not know kernels.
//!
//! ```text
//! [3.0 NaN 1.0 3.0]   values -> 1.0 3.0 3.0 NaN      ascending -> 2 0 3 1      largest 2 -> 1 0
//! ```

use super::quicksort::Number;
use crate::memory;
use crate::parallel;
use ein_array::Data;
use half::{bf16, f16};
use std::ops::Range;

/// Values that are worth a task of their own.
const TASK: usize = 1 << 14;
/// Values of a part that chooses its own largest values.
const PART: usize = 1 << 17;
/// Ranks that are asked for at a time.
const BLOCK: usize = 512;
/// Runs of at most so many equal leading bits are sorted by comparisons.
const SHORT: usize = 32;

/// An element type with an order.
pub(super) trait Ranked: Copy + Default + Send + Sync + 'static {
    /// A number that compares as the value does.
    type Rank: Number;
    /// A value of each kind of those that are equal but may differ in their bits.
    const EQUALS: [Option<Self>; 2];
    fn rank(self) -> Self::Rank;
    /// A value that has this rank.
    fn of(rank: Self::Rank) -> Self;
    /// The rank as a number of 64 bits.
    fn wide_rank(self) -> u64;
    fn data(values: Vec<Self>) -> Data;
}

macro_rules! ranked {
    ($($float:ident $variant:ident $bits:ident $signed:ident),*; $($integer:ident $own:ident $unsigned:ident),*) => {
        $(impl Ranked for $float {
            type Rank = $bits;
            const EQUALS: [Option<$float>; 2] = [Some($float::from_bits(0)), Some($float::NAN)];
            #[inline(always)]
            fn rank(self) -> $bits {
                if self.is_nan() {
                    return $bits::MAX;
                }
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                // -0 is 0.
                let bits = if bits == SIGN { 0 } else { bits };
                let negative = (bits as $signed >> ($bits::BITS - 1)) as $bits;
                bits ^ (negative | SIGN)
            }
            #[inline(always)]
            fn of(rank: $bits) -> $float {
                let negative = !(rank as $signed >> ($bits::BITS - 1)) as $bits;
                $float::from_bits(rank ^ (negative | 1 << ($bits::BITS - 1)))
            }
            #[inline(always)]
            fn wide_rank(self) -> u64 {
                self.rank().into()
            }
            fn data(values: Vec<$float>) -> Data {
                Data::$variant(values)
            }
        })*
        $(impl Ranked for $integer {
            type Rank = $unsigned;
            const EQUALS: [Option<$integer>; 2] = [None; 2];
            #[inline(always)]
            fn rank(self) -> $unsigned {
                self.wrapping_sub($integer::MIN) as $unsigned
            }
            #[inline(always)]
            fn of(rank: $unsigned) -> $integer {
                (rank as $integer).wrapping_add($integer::MIN)
            }
            #[inline(always)]
            fn wide_rank(self) -> u64 {
                self.rank().into()
            }
            fn data(values: Vec<$integer>) -> Data {
                Data::$own(values)
            }
        })*
    };
}

ranked!(
    f16 F16 u16 i16, bf16 BF16 u16 i16, f32 F32 u32 i32, f64 F64 u64 i64;
    u8 U8 u8, u16 U16 u16, u32 U32 u32, u64 U64 u64, i8 I8 u8, i16 I16 u16, i32 I32 u32, i64 I64 u64
);

/// Values at a stride.
#[derive(Clone, Copy)]
pub(super) struct Row<'a, T> {
    /// From the first one on.
    pub values: &'a [T],
    pub stride: usize,
    pub count: usize,
}

impl<T: Ranked> Row<'_, T> {
    /// Writes what `of` makes of neighbouring values.
    #[inline(always)]
    pub(super) fn each<R>(&self, first: usize, to: &mut [R], of: impl Fn(T) -> R) {
        let values = self.values.get(first * self.stride..).unwrap_or_default();
        match self.stride {
            1 => to.iter_mut().zip(values).for_each(|(to, x)| *to = of(*x)),
            stride => {
                let values = values.iter().step_by(stride.max(1));
                to.iter_mut().zip(values).for_each(|(to, x)| *to = of(*x));
            }
        }
    }
}

/// The values of a row in ascending order.
pub(super) fn values<T: Ranked>(row: Row<'_, T>) -> Vec<T> {
    let mut ranks: Vec<T::Rank> = memory::blank(row.count);
    match row.count <= TASK {
        true => row.each(0, &mut ranks, T::rank),
        false => parallel::chunks_mut(&mut ranks, TASK, |part, to| {
            row.each(part * TASK, to, T::rank);
        }),
    }
    sort(&mut ranks);
    let equal = T::EQUALS.map(|value| {
        let equal = value?.rank();
        let first = ranks.partition_point(|rank| *rank < equal);
        let end = first + ranks[first..].partition_point(|rank| *rank == equal);
        (first < end).then_some((equal, first..end))
    });
    // In the place of the ranks, where values are as large.
    let mut sorted: Vec<T> = ranks.into_iter().map(T::of).collect();
    for (equal, places) in equal.into_iter().flatten() {
        let all = row.values.iter().step_by(row.stride.max(1)).take(row.count);
        let own = all.filter(|value| value.rank() == equal);
        let to = sorted[places].iter_mut();
        to.zip(own).for_each(|(to, value)| *to = *value);
    }
    sorted
}

/// Ranks of neighbouring positions: called with the first position, it writes a rank to each place.
pub(super) type Ranks<'a> = &'a (dyn Fn(usize, &mut [u64]) + Sync);

/// The positions of so many values in ascending order.
pub(super) fn ascending(count: usize, ranks: Ranks) -> Vec<i64> {
    let order = order(count, ranks).into_iter();
    order.map(|at| at as i64).collect()
}

/// The positions of the `chosen` largest of so many values, in descending order.
pub(super) fn largest(count: usize, chosen: usize, ranks: Ranks) -> Vec<i64> {
    // In the order of these, the largest values come first and equal ones keep their order.
    let ranks = |first: usize, to: &mut [u64]| {
        ranks(first, to);
        to.iter_mut().for_each(|rank| *rank = !*rank);
    };
    if chosen == 0 {
        return vec![];
    }
    if chosen.saturating_mul(16) >= count {
        let mut all = order(count, &ranks);
        all.truncate(chosen);
        return all.into_iter().map(|at| at as i64).collect();
    }
    let part = PART.max(chosen.saturating_mul(16));
    let found = parallel::map(count.div_ceil(part), |number| {
        let part = number * part..((number + 1) * part).min(count);
        first(part, chosen, &ranks)
    });
    let mut found: Vec<(u64, usize)> = found.concat();
    found.sort_unstable();
    found.truncate(chosen);
    found.into_iter().map(|(_, at)| at as i64).collect()
}

/// The `chosen` least ranks among some positions with their positions, in any order.
fn first(part: Range<usize>, chosen: usize, ranks: Ranks) -> Vec<(u64, usize)> {
    let room = (4 * chosen).max(64);
    let mut found: Vec<(u64, usize)> = Vec::with_capacity(room);
    // Once so many are known, a value counts only if its rank is below theirs: equal ones stand behind them.
    let mut limit = u64::MAX;
    let mut limited = false;
    blocks(part, ranks, |at, rank| {
        if limited && rank >= limit {
            return;
        }
        found.push((rank, at));
        if found.len() == room {
            let (_, last, _) = found.select_nth_unstable(chosen - 1);
            (limit, limited) = (last.0, true);
            found.truncate(chosen);
        }
    });
    if found.len() > chosen {
        found.select_nth_unstable(chosen - 1);
        found.truncate(chosen);
    }
    found
}

/// Calls `each` with the positions of a range and their ranks, in order.
fn blocks(part: Range<usize>, ranks: Ranks, mut each: impl FnMut(usize, u64)) {
    let mut block = [0; BLOCK];
    for first in part.clone().step_by(BLOCK) {
        let block = &mut block[..BLOCK.min(part.end - first)];
        ranks(first, block);
        (first..).zip(block).for_each(|(at, rank)| each(at, *rank));
    }
}

/// Positions ordered by rank, those of equal rank ascending.
fn order(count: usize, ranks: Ranks) -> Vec<u64> {
    if count <= BLOCK {
        let mut known = vec![0; count];
        ranks(0, &mut known);
        return order_of(known);
    }
    let part_of = |part: usize| part * TASK..count.min((part + 1) * TASK);
    let ends = parallel::map(count.div_ceil(TASK), |part| {
        let (mut least, mut greatest) = (u64::MAX, 0);
        blocks(part_of(part), ranks, |_, rank| {
            (least, greatest) = (rank.min(least), rank.max(greatest));
        });
        (least, greatest)
    });
    let least = ends.iter().map(|ends| ends.0).min().unwrap_or(u64::MAX);
    let greatest = ends.iter().map(|ends| ends.1).max().unwrap_or(0);
    let leading = Leading::of(count, least, greatest);
    let mut numbers = memory::blank(count);
    parallel::chunks_mut(&mut numbers, TASK, |part, to| {
        let mut to = to.iter_mut();
        blocks(part_of(part), ranks, |at, rank| {
            if let Some(to) = to.next() {
                *to = leading.number(at, rank);
            }
        });
    });
    sort(&mut numbers);
    let mut parts = vec![];
    let mut rest = &mut numbers[..];
    while !rest.is_empty() {
        // A run is in one part.
        let mut end = TASK.min(rest.len());
        while end < rest.len() && leading.agree(rest[end], rest[end - 1]) {
            end += 1;
        }
        let part;
        (part, rest) = rest.split_at_mut(end);
        parts.push(part);
    }
    parallel::items(parts, |_, part| leading.settle(part, ranks));
    numbers
}

/// The positions of a few ranks in the order of these, by one thread.
fn order_of(known: Vec<u64>) -> Vec<u64> {
    let least = known.iter().copied().min().unwrap_or(u64::MAX);
    let greatest = known.iter().copied().max().unwrap_or(0);
    let leading = Leading::of(known.len(), least, greatest);
    let numbers = known.iter().enumerate();
    let numbers = numbers.map(|(at, rank)| leading.number(at, *rank));
    let mut numbers: Vec<u64> = numbers.collect();
    u64::sort(&mut numbers);
    leading.settle(&mut numbers, &|first, to| {
        to.copy_from_slice(&known[first..][..to.len()]);
    });
    numbers
}

/// Which bits of a rank a number holds before a position.
#[derive(Clone, Copy)]
struct Leading {
    /// The least rank.
    least: u64,
    /// How many bits of a rank have no room before the position.
    hidden: u32,
    /// How many bits a position has.
    bits: u32,
}

impl Leading {
    fn of(count: usize, least: u64, greatest: u64) -> Leading {
        let bits = bits(count.saturating_sub(1) as u64);
        let hidden = self::bits(greatest.wrapping_sub(least)).saturating_sub(64 - bits);
        Leading {
            least,
            hidden,
            bits,
        }
    }

    #[inline]
    fn number(self, at: usize, rank: u64) -> u64 {
        let leading = (rank - self.least) >> self.hidden;
        leading.checked_shl(self.bits).unwrap_or(0) | at as u64
    }

    fn position(self, number: u64) -> u64 {
        number & !(u64::MAX.checked_shl(self.bits).unwrap_or(0))
    }

    /// Returns true if two numbers hold the same bits of their ranks.
    fn agree(self, a: u64, b: u64) -> bool {
        let leading = |number: u64| number.checked_shr(self.bits).unwrap_or(0);
        leading(a) == leading(b)
    }

    /// Makes positions of sorted numbers, in the order of their whole ranks.
    fn settle(self, numbers: &mut [u64], ranks: Ranks) {
        if self.hidden > 0 {
            for run in numbers.chunk_by_mut(|a, b| self.agree(*a, *b)) {
                settle_run(run, |number| self.position(number), ranks);
            }
        }
        numbers
            .iter_mut()
            .for_each(|number| *number = self.position(*number));
    }
}

/// Sorts numbers: the lower part and the upper part of many by tasks of their own, as long as there are threads for more.
fn sort<T: Number>(numbers: &mut [T]) {
    if !numbers.is_sorted() {
        sort_by_tasks(numbers, rayon::current_num_threads());
    }
}

fn sort_by_tasks<T: Number>(numbers: &mut [T], tasks: usize) {
    if tasks < 2 || numbers.len() <= TASK {
        return T::sort(numbers);
    }
    let (low, high) = T::halves(numbers);
    let tasks = tasks.div_ceil(2);
    rayon::join(|| sort_by_tasks(low, tasks), || sort_by_tasks(high, tasks));
}

/// Sorts numbers that have the same leading bits by their whole ranks.
fn settle_run(run: &mut [u64], position: impl Fn(u64) -> u64, ranks: Ranks) {
    let rank = |number: u64| {
        let mut rank = [0];
        ranks(position(number) as usize, &mut rank);
        rank[0]
    };
    match run.len() {
        0 | 1 => {}
        2..=SHORT => run.sort_unstable_by_key(|number| (rank(*number), *number)),
        _ => {
            let own = run.to_vec();
            let known: Vec<u64> = own.iter().map(|number| rank(*number)).collect();
            // Their ranks lie closer together, so more of them are seen.
            let order = order(known.len(), &|first, to| {
                to.copy_from_slice(&known[first..][..to.len()]);
            });
            for (to, from) in run.iter_mut().zip(order) {
                *to = own[from as usize];
            }
        }
    }
}

/// How many bits a number has.
fn bits(number: u64) -> u32 {
    u64::BITS - number.leading_zeros()
}
