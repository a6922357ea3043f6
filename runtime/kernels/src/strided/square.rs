//! Transposes of small squares in vector registers.
//!
//! Must not know more than two strides.
//!
//! ```text
//! 8 lines of 8 neighbours  ->  8 lines of 8 neighbours, rows and columns exchanged
//! ```

use super::Plain;

/// Rows and columns of a square.
pub(super) const SIDE: usize = 8;

/// Copies element (i, j), which lies `i + j · from_step` after `from`, to `i · to_step + j` after `to`.
///
/// # Safety
/// All of the square is inside both sides.
#[inline(always)]
pub(super) unsafe fn square<T: Plain>(
    from: *const T,
    from_step: isize,
    to: *mut T,
    to_step: isize,
) {
    #[cfg(target_arch = "x86_64")]
    if size_of::<T>() == 4 && is_x86_feature_detected!("avx") {
        // SAFETY: the processor has AVX, and elements of 4 bytes are moved as they are.
        return unsafe { x86::square4(from.cast(), from_step, to.cast(), to_step) };
    } else if size_of::<T>() == 8 && is_x86_feature_detected!("avx") {
        for (i, j) in [(0, 0), (0, 4), (4, 0), (4, 4)] {
            // SAFETY: as above, for elements of 8 bytes and a quarter of the square.
            unsafe {
                let from = from.offset(i + j * from_step);
                let to = to.offset(i * to_step + j);
                x86::square8(from.cast(), from_step, to.cast(), to_step);
            }
        }
        return;
    }
    for i in 0..SIDE as isize {
        for j in 0..SIDE as isize {
            // SAFETY: the element is inside by the caller's promise.
            unsafe { *to.offset(i * to_step + j) = *from.offset(i + j * from_step) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// 8 by 8 elements of 4 bytes.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn square4(from: *const f32, from_step: isize, to: *mut f32, to_step: isize) {
        // SAFETY: line j of the square has 8 elements that are inside.
        let line = |j: isize| unsafe { _mm256_loadu_ps(from.offset(j * from_step)) };
        let pairs = |a: isize| {
            let (x, y) = (line(a), line(a + 1));
            (_mm256_unpacklo_ps(x, y), _mm256_unpackhi_ps(x, y))
        };
        let fours = |a: isize| {
            let ((x, y), (z, w)) = (pairs(a), pairs(a + 2));
            [
                _mm256_shuffle_ps::<0x44>(x, z),
                _mm256_shuffle_ps::<0xee>(x, z),
                _mm256_shuffle_ps::<0x44>(y, w),
                _mm256_shuffle_ps::<0xee>(y, w),
            ]
        };
        let (low, high) = (fours(0), fours(4));
        for i in 0..4 {
            let (a, b) = (low[i], high[i]);
            // SAFETY: rows i and i + 4 of the square are inside.
            unsafe {
                let to = to.offset(i as isize * to_step);
                _mm256_storeu_ps(to, _mm256_permute2f128_ps::<0x20>(a, b));
                _mm256_storeu_ps(to.offset(4 * to_step), _mm256_permute2f128_ps::<0x31>(a, b));
            }
        }
    }

    /// 4 by 4 elements of 8 bytes.
    #[target_feature(enable = "avx")]
    pub(super) unsafe fn square8(from: *const f64, from_step: isize, to: *mut f64, to_step: isize) {
        // SAFETY: line j of the quarter has 4 elements that are inside.
        let line = |j: isize| unsafe { _mm256_loadu_pd(from.offset(j * from_step)) };
        let (a, b, c, d) = (line(0), line(1), line(2), line(3));
        let (x, y) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        let (z, w) = (_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d));
        let rows = [
            _mm256_permute2f128_pd::<0x20>(x, z),
            _mm256_permute2f128_pd::<0x20>(y, w),
            _mm256_permute2f128_pd::<0x31>(x, z),
            _mm256_permute2f128_pd::<0x31>(y, w),
        ];
        for (i, row) in rows.into_iter().enumerate() {
            // SAFETY: row i of the quarter is inside.
            unsafe { _mm256_storeu_pd(to.offset(i as isize * to_step), row) };
        }
    }
}
