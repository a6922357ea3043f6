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
