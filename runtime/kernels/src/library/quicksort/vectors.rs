//! Quicksort in vectors of 64 bytes, with a network of comparisons at the end.
//!
//! Must not know how many lanes a vector has.
//!
//! ```text
//! 5,000,000 numbers   ->   parts around pivots   ->   at most 16 vectors each, by a network
//! ```

use super::lanes::Lanes;
use std::arch::x86_64::{__m512i, _mm512_xor_si512};
use std::mem::MaybeUninit;
use std::ptr;

/// Most vectors of a network.
const ROWS: usize = 16;
/// Numbers that are read from one end before it is asked from which end the next ones are.
const BLOCK: usize = 512;
/// Room for numbers that have no place yet: those of three blocks, and a vector.
const ASIDE: usize = 3 * BLOCK + 16;
/// Fewer numbers are sorted one by one.
const FEW: usize = 24;

/// Sorts numbers.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(super) fn sort<T: Lanes>(numbers: &mut [T]) {
    if numbers.len() <= FEW || numbers.is_sorted() {
        return numbers.sort_unstable();
    }
    quicksort(numbers, 2 * numbers.len().ilog2());
}

/// Fewer numbers are not many.
pub(super) const MANY: usize = 1 << 12;
/// Numbers among which the middle one is taken for the middle one of many.
const SAMPLE: usize = 511;

/// Moves the lesser half of many numbers, or about that, before the others; returns how many they are.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
pub(super) fn parted_in_half<T: Lanes>(numbers: &mut [T]) -> usize {
    let step = numbers.len() / SAMPLE;
    let mut sample: [T; SAMPLE] = std::array::from_fn(|number| numbers[number * step]);
    let (_, middle, _) = sample.select_nth_unstable(SAMPLE / 2);
    let middle = *middle;
    part(numbers, middle)
}

/// Sorts numbers in which pivots may part at most so often.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
fn part<T: Lanes>(numbers: &mut [T], pivot: T) -> usize {
    let mut aside = [const { MaybeUninit::<T>::uninit() }; ASIDE];
    let mut parted = Parted {
        base: numbers.as_mut_ptr(),
        // SAFETY: the processor has these instructions.
        pivot: unsafe { T::splat(pivot) },
        low: 0,
        aside: aside.as_mut_ptr().cast(),
        kept: 0,
    };
    // The numbers between these are not read yet. From `end` on all are in their places. As many places from `low` on, up to `start`, are
    // free as there are numbers aside.
    let (mut start, mut end) = (0, numbers.len());
    while start < end {
        let read = BLOCK.min(end - start);
        if parted.kept < read {
            // SAFETY: the block is inside and was not read before; there is room for less than another one aside.
            unsafe { parted.put(start, read) };
            start += read;
        } else {
            end -= read;
            // SAFETY: the block is inside and was not read before; before `start` there is room for a whole one, and aside for a third one.
            unsafe { parted.put(end, read) };
            parted.kept -= read;
            // SAFETY: so many numbers are aside, and the places of the block are free.
            unsafe { parted.take(end, read) };
        }
    }
    let rest = std::mem::take(&mut parted.kept);
    // SAFETY: the places between those that are less and those in their places are free, as many as there are numbers aside.
    unsafe { parted.take(parted.low, rest) };
    parted.low
}

/// Numbers that are parted around a pivot.
struct Parted<T> {
    base: *mut T,
    pivot: __m512i,
    /// How many are less than the pivot; they come first.
    low: usize,
    /// Those that are not, and have no place yet.
    aside: *mut T,
    /// How many these are.
    kept: usize,
}

impl<T: Lanes> Parted<T> {
    /// Reads a block of numbers from a place on: puts those that are less than the pivot behind others of them, and the rest aside.
    ///
    /// # Safety
    /// The block is inside. Behind the numbers that are less there is room for the block, or it begins where that room ends; aside there is
    /// room for the block and a vector.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
    unsafe fn put(&mut self, from: usize, count: usize) {
        let all = u32::MAX >> (u32::BITS - T::COUNT as u32);
        let whole = from + count / T::COUNT * T::COUNT;
        // SAFETY: a whole vector is written where it was itself read, or was free; of a part of one only its numbers are.
        unsafe {
            for at in (from..whole).step_by(T::COUNT) {
                let vector = T::load(self.base.add(at), all);
                let less = T::less(vector, self.pivot);
                T::store_all(self.base.add(self.low), T::packed(less, vector));
                T::store_all(self.aside.add(self.kept), T::packed(!less, vector));
                let count = less.count_ones() as usize;
                self.low += count;
                self.kept += T::COUNT - count;
            }
            let rest = !(u32::MAX << (from + count - whole));
            if rest != 0 {
                let vector = T::load(self.base.add(whole), rest);
                let less = T::less(vector, self.pivot) & rest;
                let count = less.count_ones();
                let first = !u32::MAX.wrapping_shl(count);
                T::store(self.base.add(self.low), first, T::packed(less, vector));
                T::store_all(self.aside.add(self.kept), T::packed(rest & !less, vector));
                self.low += count as usize;
                self.kept += (rest & !less).count_ones() as usize;
            }
        }
    }

    /// Puts numbers that are aside, from number `kept` on, at their places.
    ///
    /// # Safety
    /// There are so many of them, and the places are free.
    #[inline]
    unsafe fn take(&mut self, to: usize, count: usize) {
        // SAFETY: the caller vouches for the numbers and the places.
        unsafe { ptr::copy_nonoverlapping(self.aside.add(self.kept), self.base.add(to), count) };
    }
}

/// Sorts at most `ROWS` vectors of numbers: each lane by itself, then lanes together, two, four, and so on.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
fn compare<T: Lanes, const ROWS: usize>(rows: &mut [__m512i; ROWS], a: usize, b: usize) {
    let (x, y) = (rows[a], rows[b]);
    // SAFETY: the processor has these instructions.
    (rows[a], rows[b]) = unsafe { (T::chosen(x, y, 0), T::chosen(x, y, u32::MAX)) };
}

/// Compares rows at a distance, then at half of it, and so on.
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
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
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
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
