//! Quicksort in vectors of 64 bytes, with a network of comparisons at the end.
//!
//! Must not know how many lanes a vector has.
//!
//! ```text
//! 5,000,000 numbers   ->   parts around pivots   ->   at most 16 vectors each, by a network
//! ```

use super::lanes::Lanes;
use std::arch::x86_64::{__m512i, _mm512_xor_si512};

/// Most vectors of a network.
const ROWS: usize = 16;
/// Vectors that are read together.
const TOGETHER: usize = 4;
/// Fewer numbers are sorted one by one.
const FEW: usize = 24;

/// Sorts numbers.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(super) fn sort<T: Lanes>(numbers: &mut [T]) {
    if numbers.len() <= FEW || numbers.is_sorted() {
        return numbers.sort_unstable();
    }
    quicksort(numbers, 2 * numbers.len().ilog2());
}

/// Sorts numbers in which pivots may part at most so often.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn quicksort<T: Lanes>(mut numbers: &mut [T], mut parts: u32) {
    while numbers.len() > ROWS * T::COUNT {
        if parts == 0 {
            return numbers.sort_unstable();
        }
        parts -= 1;
        let pivot = pivot(numbers);
        let mut less = part(numbers, pivot);
        if less == 0 {
            // The pivot is the least number: those equal to it are in order.
            let Some(next) = pivot.next() else { return };
            less = part(numbers, next);
            numbers = &mut numbers[less..];
            continue;
        }
        let (low, high) = numbers.split_at_mut(less);
        let (shorter, longer) = match low.len() < high.len() {
            true => (low, high),
            false => (high, low),
        };
        quicksort(shorter, parts);
        numbers = longer;
    }
    match numbers.len() {
        ..=FEW => numbers.sort_unstable(),
        count if count <= ROWS / 2 * T::COUNT => network::<T, { ROWS / 2 }>(numbers),
        _ => network::<T, ROWS>(numbers),
    }
}

/// A number of some of which about as many are less as are greater.
fn pivot<T: Lanes>(numbers: &[T]) -> T {
    let middle = |a: T, b: T, c: T| a.min(b).max(a.max(b).min(c));
    let step = numbers.len() / 10;
    let at = |number: usize| numbers[number * step];
    middle(
        middle(at(1), at(4), at(7)),
        middle(at(2), at(5), at(8)),
        middle(at(3), at(6), at(9)),
    )
}

/// Moves the numbers less than a pivot before the others, and returns how many they are.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn part<T: Lanes>(numbers: &mut [T], pivot: T) -> usize {
    let (count, width) = (numbers.len(), T::COUNT);
    let (together, whole) = (TOGETHER * width, count / width * width);
    assert!(whole >= 2 * together, "vectors are read from both ends");
    let all = u32::MAX >> (u32::BITS - width as u32);
    let base = numbers.as_mut_ptr();
    // SAFETY: the first vectors, the last ones and the numbers behind them are inside, and no number is twice among them.
    let (first, last, rest) = unsafe {
        let vectors = |from: usize| -> [__m512i; TOGETHER] {
            std::array::from_fn(|number| T::load(base.add(from + number * width), all))
        };
        let rest = T::load(base.add(whole), !(u32::MAX << (count - whole)));
        (vectors(0), vectors(whole - together), rest)
    };
    let mut parted = Parted {
        base,
        // SAFETY: the processor has these instructions.
        pivot: unsafe { T::splat(pivot) },
        low: 0,
        high: count,
    };
    // The numbers between these are not read yet. Places before and behind them, up to `low` and `high`, are free: as many as there are
    // numbers in registers.
    let (mut start, mut end) = (together, whole - together);
    while start < end {
        // Two groups at least are in registers. With the one that is read from the side that has fewer free places, each side has as
        // many as the group has numbers.
        let read = if end - start >= together {
            together
        } else {
            width
        };
        let is_low = start - parted.low <= parted.high - end;
        let from = if is_low { start } else { end - read };
        start += if is_low { read } else { 0 };
        end -= if is_low { 0 } else { read };
        // SAFETY: what is read is inside and was not read before; both sides have room for all of it.
        unsafe {
            if read == together {
                let vectors: [__m512i; TOGETHER] =
                    std::array::from_fn(|number| T::load(base.add(from + number * width), all));
                for vector in vectors {
                    parted.put(vector, all);
                }
            } else {
                parted.put(T::load(base.add(from), all), all);
            }
        }
    }
    // SAFETY: every place that is not written is free.
    unsafe {
        for vector in first.into_iter().chain(last) {
            parted.put(vector, all);
        }
        parted.put(rest, !(u32::MAX << (count - whole)));
    }
    parted.low
}

/// Numbers that are parted around a pivot.
struct Parted<T> {
    base: *mut T,
    pivot: __m512i,
    /// How many are less than the pivot.
    low: usize,
    /// Where those that are not begin.
    high: usize,
}

impl<T: Lanes> Parted<T> {
    /// Adds these lanes of a vector.
    ///
    /// # Safety
    /// As many places from `low` on and before `high` are free.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn put(&mut self, vector: __m512i, lanes: u32) {
        // SAFETY: each side gets no more numbers than it has room for.
        unsafe {
            let less = T::less(vector, self.pivot) & lanes;
            let others = lanes & !less;
            let first = |count: u32| !(u32::MAX.wrapping_shl(count));
            let count = less.count_ones();
            T::store(
                self.base.add(self.low),
                first(count),
                T::packed(less, vector),
            );
            self.low += count as usize;
            let count = others.count_ones();
            self.high -= count as usize;
            T::store(
                self.base.add(self.high),
                first(count),
                T::packed(others, vector),
            );
        }
    }
}

/// Sorts at most `ROWS` vectors of numbers: each lane by itself, then lanes together, two, four, and so on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn network<T: Lanes, const ROWS: usize>(numbers: &mut [T]) {
    let (count, width) = (numbers.len(), T::COUNT);
    assert!(count <= ROWS * width, "the numbers fit in the vectors");
    let base = numbers.as_mut_ptr();
    // SAFETY: a row reads the lanes that are inside; the others are the greatest number, so they come last.
    let mut rows: [__m512i; ROWS] = std::array::from_fn(|row| unsafe {
        let lanes = count.saturating_sub(row * width).min(width);
        T::load(base.wrapping_add(row * width), !(u32::MAX << lanes))
    });
    let mut size = 2;
    while size <= ROWS {
        for row in 0..ROWS {
            let (first, number) = (row / size * size, row % size);
            if number < size / 2 {
                compare::<T, ROWS>(&mut rows, row, first + size - 1 - number);
            }
        }
        halve::<T, ROWS>(&mut rows, size / 4);
        size *= 2;
    }
    // Number `lane * ROWS + row` of what is sorted is in this lane and row.
    let mut size = 2;
    while size <= width {
        // SAFETY: the processor has these instructions.
        let from = unsafe { crossed::<T>(size - 1) };
        for row in 0..ROWS / 2 {
            let other = ROWS - 1 - row;
            let (a, b) = (rows[row], rows[other]);
            // SAFETY: as above.
            unsafe {
                rows[row] = T::chosen(a, T::permuted(b, from), high(size / 2));
                rows[other] = T::chosen(b, T::permuted(a, from), high(size / 2));
            }
        }
        let mut distance = size / 4;
        while distance > 0 {
            // SAFETY: as above.
            let from = unsafe { crossed::<T>(distance) };
            for row in &mut rows {
                // SAFETY: as above.
                *row = unsafe { T::chosen(*row, T::permuted(*row, from), high(distance)) };
            }
            distance /= 2;
        }
        halve::<T, ROWS>(&mut rows, ROWS / 2);
        size *= 2;
    }
    for (row, vector) in rows.into_iter().enumerate() {
        // SAFETY: places before the end are inside.
        unsafe { T::scatter(base, T::spaced(row, ROWS), count, vector) };
    }
}

/// Puts the lesser numbers of two rows into the first one.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn compare<T: Lanes, const ROWS: usize>(rows: &mut [__m512i; ROWS], a: usize, b: usize) {
    let (x, y) = (rows[a], rows[b]);
    // SAFETY: the processor has these instructions.
    (rows[a], rows[b]) = unsafe { (T::chosen(x, y, 0), T::chosen(x, y, u32::MAX)) };
}

/// Compares rows at a distance, then at half of it, and so on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn halve<T: Lanes, const ROWS: usize>(rows: &mut [__m512i; ROWS], mut distance: usize) {
    while distance > 0 {
        for row in 0..ROWS {
            if row & distance == 0 {
                compare::<T, ROWS>(rows, row, row + distance);
            }
        }
        distance /= 2;
    }
}

/// The numbers of lanes, with these bits of each number turned.
///
/// # Safety
/// The processor has these instructions.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
unsafe fn crossed<T: Lanes>(bits: usize) -> __m512i {
    // SAFETY: the processor has these instructions.
    unsafe { _mm512_xor_si512(T::spaced(0, 1), T::spaced(bits, 0)) }
}

/// The lanes whose number has a bit.
const fn high(bit: usize) -> u32 {
    match bit {
        1 => 0xaaaa_aaaa,
        2 => 0xcccc_cccc,
        4 => 0xf0f0_f0f0,
        _ => 0xff00_ff00,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_of_bad_pivots_are_sorted() {
        if crate::wide::has_widest() {
            let mut numbers: Vec<u64> = (0..5000).map(|x| x * 7919 % 5003).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            // SAFETY: the processor has these instructions.
            unsafe { super::quicksort(&mut numbers, 1) };
            assert_eq!(numbers, expected);
        }
    }
}
