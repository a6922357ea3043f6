//! Sorting of whole numbers.
//!
//! Numbers of 32 and 64 bits are sorted in vectors of 64 bytes, where the processor has them: those less than a pivot are packed at the left
//! end and the others at the right one, until few are left, and a network of comparisons sorts these in registers. All other numbers, and
//! those that choose bad pivots, are left to the standard library. Equal numbers are the same, so a result depends on the numbers alone.
//! Must not know what the numbers stand for.
//!
//! ```text
//! 7 2 9 2 5   pivot 5   ->   2 2 | 9 7 5   ->   2 2 5 7 9
//! ```
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod vectors;

/// Whole numbers.
pub(super) trait Number: Copy + Default + Ord + Send + Sync {
    /// Sorts numbers by one thread.
    fn sort(numbers: &mut [Self]) {
        numbers.sort_unstable();
    }

    /// Moves numbers until none of the first part is greater than one of the second; of many different ones both parts have about as many.
    fn halves(numbers: &mut [Self]) -> (&mut [Self], &mut [Self]) {
        at_the_middle(numbers)
    }
}

/// The lesser half of some numbers and the others.
fn at_the_middle<T: Number>(numbers: &mut [T]) -> (&mut [T], &mut [T]) {
    let middle = numbers.len() / 2;
    numbers.select_nth_unstable(middle);
    numbers.split_at_mut(middle)
}

impl Number for u8 {}
impl Number for u16 {}

macro_rules! wide {
    ($($number:ident),*) => {
        $(impl Number for $number {
            fn sort(numbers: &mut [$number]) {
                #[cfg(target_arch = "x86_64")]
                if crate::wide::has_widest() {
                    // SAFETY: the processor has these instructions.
                    return unsafe { vectors::sort(numbers) };
                }
                numbers.sort_unstable();
            }

            #[cfg(target_arch = "x86_64")]
            fn halves(numbers: &mut [$number]) -> (&mut [$number], &mut [$number]) {
                if numbers.len() < vectors::MANY || !crate::wide::has_widest() {
                    return at_the_middle(numbers);
                }
                // SAFETY: the processor has these instructions.
                let less = unsafe { vectors::parted_in_half(numbers) };
                numbers.split_at_mut(less)
            }
        })*
    };
}

wide!(u32, u64);

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of a generator (Knuth's MMIX), by `of`.
    fn sorted<T: Number + std::fmt::Debug>(count: usize, of: impl Fn(u64) -> T) {
        let mut state = count as u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state.rotate_right(16)
        };
        let mut numbers: Vec<T> = (0..count).map(|_| of(next())).collect();
        let mut expected = numbers.clone();
        expected.sort_unstable();
        T::sort(&mut numbers);
        assert!(numbers == expected, "{count}");
        numbers.reverse();
        T::sort(&mut numbers);
        assert!(numbers == expected, "{count} reversed");
    }

    #[test]
    fn no_number_of_the_first_half_is_greater_than_one_of_the_second() {
        fn halved<T: Number + std::fmt::Debug>(count: usize, of: impl Fn(u64) -> T, even: bool) {
            let mut numbers: Vec<T> = (0..count as u64).map(|x| of(x * 7_919 % 100_003)).collect();
            let mut expected = numbers.clone();
            expected.sort_unstable();
            let (low, high) = T::halves(&mut numbers);
            assert!(low.iter().max() <= high.iter().min() || low.is_empty());
            let few = low.len().min(high.len());
            assert!(
                !even || 4 * few >= count,
                "{count}: {} and {}",
                low.len(),
                high.len()
            );
            low.sort_unstable();
            high.sort_unstable();
            assert!(numbers == expected, "{count}");
        }
        for count in [3, 4_097, 5_000, 70_001] {
            halved(count, |x| x, true);
            halved(count, |x| x as u32, true);
            halved(count, |x| x as u8, true);
            halved(count, |x| x % 3, false);
            halved(count, |_| 7u32, false);
        }
    }

    #[test]
    fn numbers_ascend() {
        for count in (0..300).chain([511, 512, 513, 1000, 4099, 100_003]) {
            sorted(count, |x| x);
            sorted(count, |x| x as u32);
            sorted(count, |x| x as u16);
            // Few different ones, all equal ones, the greatest ones.
            sorted(count, |x| x % 7);
            sorted(count, |x| x as u32 % 2);
            sorted(count, |_| 5u64);
            sorted(count, |x| u64::MAX - x % 3);
            sorted(count, |x| u32::MAX - x as u32 % 2);
        }
    }
}
