//! Vectors of 64 bytes, lane by lane, of numbers of 32 and 64 bits.
//!
//! All functions need AVX-512 (F, BW, DQ and VL) and `popcnt`. Lanes are chosen by the bits of a number, the lowest bit first. Must not know what
//! vectors are for.
//!
//! ```text
//! packed(0b0101, 7 2 9 4 …)   ->   7 9 0 0 …
//! ```

use std::arch::x86_64::*;

/// Numbers of which 64 bytes are a vector.
pub(super) trait Lanes: Copy + Ord {
    /// Numbers of a vector.
    const COUNT: usize;

    /// The number after this one; none is after the greatest one.
    fn next(self) -> Option<Self>;
    /// A vector of one number.
    unsafe fn splat(number: Self) -> __m512i;
    /// `first`, and at each lane after that `step` more.
    unsafe fn spaced(first: usize, step: usize) -> __m512i;
    /// The vector in memory, with the greatest number at all but these lanes, which alone are read.
    unsafe fn load(at: *const Self, lanes: u32) -> __m512i;
    /// Writes all lanes to memory.
    unsafe fn store_all(at: *mut Self, vector: __m512i);
    /// Writes these lanes to memory, and leaves the places of the others as they are.
    unsafe fn store(at: *mut Self, lanes: u32, vector: __m512i);
    /// Writes the lanes whose place is less than `end`, each at its place.
    unsafe fn scatter(at: *mut Self, places: __m512i, end: usize, vector: __m512i);
    /// These lanes side by side.
    unsafe fn packed(lanes: u32, vector: __m512i) -> __m512i;
    /// At each lane the one whose number is there in `from`.
    unsafe fn permuted(vector: __m512i, from: __m512i) -> __m512i;
    /// The lesser number of each lane; at the lanes of `high` the greater one.
    unsafe fn chosen(a: __m512i, b: __m512i, high: u32) -> __m512i;
    /// The lanes at which `a` is less than `b`.
    unsafe fn less(a: __m512i, b: __m512i) -> u32;
}

macro_rules! lanes {
    ($number:ident as $signed:ident, $count:literal lanes of $bytes:literal bytes, $mask:ident, $numbers:expr,
     $add:ident $times:ident $splat:ident $load:ident $store:ident $scatter:ident $packed:ident $permuted:ident $min:ident $max:ident $less:ident) => {
        impl Lanes for $number {
            const COUNT: usize = $count;

            fn next(self) -> Option<$number> {
                self.checked_add(1)
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn splat(number: $number) -> __m512i {
                $splat(number as $signed)
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn spaced(first: usize, step: usize) -> __m512i {
                $add(
                    $splat(first as $signed),
                    $times($numbers, $splat(step as $signed)),
                )
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn load(at: *const $number, lanes: u32) -> __m512i {
                // SAFETY: the caller vouches for the lanes that are read.
                unsafe { $load($splat(-1), lanes as $mask, at.cast()) }
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn store_all(at: *mut $number, vector: __m512i) {
                // SAFETY: the caller vouches for the places.
                unsafe { _mm512_storeu_si512(at.cast(), vector) }
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn store(at: *mut $number, lanes: u32, vector: __m512i) {
                // SAFETY: the caller vouches for the lanes that are written.
                unsafe { $store(at.cast(), lanes as $mask, vector) }
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn scatter(at: *mut $number, places: __m512i, end: usize, vector: __m512i) {
                let inside = $less(places, $splat(end as $signed));
                // SAFETY: the caller vouches for the places before the end.
                unsafe { $scatter::<$bytes>(at.cast(), inside, places, vector) }
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn packed(lanes: u32, vector: __m512i) -> __m512i {
                $packed(lanes as $mask, vector)
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn permuted(vector: __m512i, from: __m512i) -> __m512i {
                $permuted(from, vector)
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn chosen(a: __m512i, b: __m512i, high: u32) -> __m512i {
                $max($min(a, b), high as $mask, a, b)
            }
            #[inline]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,popcnt")]
            unsafe fn less(a: __m512i, b: __m512i) -> u32 {
                $less(a, b).into()
            }
        }
    };
}

lanes!(u64 as i64, 8 lanes of 8 bytes, __mmask8, _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7),
    _mm512_add_epi64 _mm512_mullo_epi64 _mm512_set1_epi64 _mm512_mask_loadu_epi64 _mm512_mask_storeu_epi64 _mm512_mask_i64scatter_epi64
    _mm512_maskz_compress_epi64 _mm512_permutexvar_epi64 _mm512_min_epu64 _mm512_mask_max_epu64 _mm512_cmplt_epu64_mask);

lanes!(u32 as i32, 16 lanes of 4 bytes, __mmask16, _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
    _mm512_add_epi32 _mm512_mullo_epi32 _mm512_set1_epi32 _mm512_mask_loadu_epi32 _mm512_mask_storeu_epi32 _mm512_mask_i32scatter_epi32
    _mm512_maskz_compress_epi32 _mm512_permutexvar_epi32 _mm512_min_epu32 _mm512_mask_max_epu32 _mm512_cmplt_epu32_mask);
