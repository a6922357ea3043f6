//! Positions in the order of their values: all of them ascending, or those of the largest.
//!
//! A value becomes a whole number, its *rank*, which compares as the value does. NaN has the largest rank, and both zeros have the
//! same one. A 64-bit number then holds the leading bits of a rank and behind them the position, so that numbers alone are sorted;
//! positions that agree in these leading bits are sorted again by their whole ranks. Equal values keep their order. Results are a
//! function of the values alone, however many threads there are. Ranks come by the block through a pointer, so that one function sorts
//! all element types. Must not know kernels.
//!
//! ```text
//! [3.0 NaN 1.0 3.0]   ascending -> 2 0 3 1      largest 2 -> 1 0
//! ```

use crate::parallel;
use half::{bf16, f16};
use rayon::prelude::*;
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
pub(super) trait Ranked: Copy + Sync {
    /// A number that compares as the value does.
    fn rank(self) -> u64;
}

macro_rules! ranked {
    ($($float:ident $bits:ident $signed:ident),*; $($integer:ident)*) => {
        $(impl Ranked for $float {
            #[inline(always)]
            fn rank(self) -> u64 {
                if self.is_nan() {
                    return $bits::MAX.into();
                }
                const SIGN: $bits = 1 << ($bits::BITS - 1);
                let bits = self.to_bits();
                // -0 is 0.
                let bits = if bits == SIGN { 0 } else { bits };
                let negative = (bits as $signed >> ($bits::BITS - 1)) as $bits;
                (bits ^ (negative | SIGN)).into()
            }
        })*
        $(impl Ranked for $integer {
            #[inline(always)]
            fn rank(self) -> u64 {
                (i64::from(self) as u64) ^ 1 << 63
            }
        })*
    };
}

impl Ranked for u64 {
    #[inline(always)]
    fn rank(self) -> u64 {
        self
    }
}

ranked!(f16 u16 i16, bf16 u16 i16, f32 u32 i32, f64 u64 i64; u8 u16 u32 i8 i16 i32 i64);

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

/// The `chosen` least ranks among some positions with their positions, and at most as many others.
fn first(part: Range<usize>, chosen: usize, ranks: Ranks) -> Vec<(u64, usize)> {
    let room = (2 * chosen).max(1024);
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
    let bits = bits(count.saturating_sub(1) as u64);
    // How many bits of a rank have no room before the position.
    let hidden = self::bits(greatest.wrapping_sub(least)).saturating_sub(64 - bits);
    let position = |number: u64| number & !(u64::MAX.checked_shl(bits).unwrap_or(0));
    let mut numbers = vec![0; count];
    parallel::chunks_mut(&mut numbers, TASK, |part, to| {
        let mut to = to.iter_mut();
        blocks(part_of(part), ranks, |at, rank| {
            let leading = (rank - least) >> hidden;
            if let Some(to) = to.next() {
                *to = leading.checked_shl(bits).unwrap_or(0) | at as u64;
            }
        });
    });
    match count <= TASK {
        true => numbers.sort_unstable(),
        false => numbers.par_sort_unstable(),
    }
    let leading = |number: u64| number.checked_shr(bits).unwrap_or(0);
    let settle = |part: &mut [u64]| {
        if hidden > 0 {
            for run in part.chunk_by_mut(|a, b| leading(*a) == leading(*b)) {
                settle_run(run, position, ranks);
            }
        }
        part.iter_mut()
            .for_each(|number| *number = position(*number));
    };
    let mut parts = vec![];
    let mut rest = &mut numbers[..];
    while !rest.is_empty() {
        // A run is in one part.
        let mut end = TASK.min(rest.len());
        while end < rest.len() && leading(rest[end]) == leading(rest[end - 1]) {
            end += 1;
        }
        let part;
        (part, rest) = rest.split_at_mut(end);
        parts.push(part);
    }
    parallel::items(parts, |_, part| settle(part));
    numbers
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
