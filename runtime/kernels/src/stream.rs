//! Copies that go past the caches: results that are far larger than they are.
//!
//! An ordinary write of a line first reads it; of a result that no cache can hold, that is a third of all that moves. Must not
//! know what is copied.
//!
//! ```text
//! 256 lanes to a result of 256 MiB: 16 lines written, none read
//! ```
#![allow(unsafe_code)]

/// Results of so many bytes do not stay in a cache until they are read.
pub(crate) const FAR: usize = 1 << 25;

/// Copies elements, past the caches if `streams`. [`fence`] comes after the last one.
#[inline]
pub(crate) fn copy<T: Copy>(to: &mut [T], from: &[T], streams: bool) {
    #[cfg(target_arch = "x86_64")]
    if streams && to.len() == from.len() {
        return past(to, from);
    }
    let _ = streams;
    to.copy_from_slice(from);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn past<T: Copy>(to: &mut [T], from: &[T]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
    /// Bytes of a line.
    const LINE: usize = 64;
    let each = size_of::<T>().max(1);
    let first = (to.as_ptr().align_offset(LINE)).min(to.len());
    let lines = (to.len() - first) * each / LINE;
    let end = first + lines * LINE / each;
    to[..first].copy_from_slice(&from[..first]);
    to[end..].copy_from_slice(&from[end..]);
    let (target, source) = (to[first..end].as_mut_ptr(), from[first..end].as_ptr());
    let (target, source) = (target.cast::<__m128i>(), source.cast::<__m128i>());
    for part in 0..lines * (LINE / 16) {
        // SAFETY: both ranges hold that many parts of 16 bytes, the target's begins with a line, and these instructions are
        // those of any processor of this architecture.
        unsafe { _mm_stream_si128(target.add(part), _mm_loadu_si128(source.add(part))) };
    }
}

/// Makes what was copied past the caches visible to other threads in order.
#[inline]
pub(crate) fn fence(streams: bool) {
    #[cfg(target_arch = "x86_64")]
    if streams {
        // SAFETY: an instruction of any processor of this architecture, which touches no memory.
        unsafe { std::arch::x86_64::_mm_sfence() };
    }
    let _ = streams;
}
