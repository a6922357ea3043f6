//! Memory beyond the caches: copies that go past them, and reads that are asked for ahead.
//!
//! An ordinary write of a line first reads it; of a result that no cache can hold, that is a third of all that moves. A strip is read at once
//! and then computed on for long: too short a run for the processor to see where the next one lies. Must not know what is copied or read.
//!
//! ```text
//! 256 lanes to a result of 256 MiB: 16 lines written, none read
//! ```
#![allow(unsafe_code)]

use crate::wide;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Results of so many bytes do not stay in a cache until they are read.
pub(crate) const FAR: usize = 1 << 25;
/// Arrays of so many bytes do not lie in a core's own caches.
const BEYOND: usize = 1 << 20;
/// How many bytes ahead loops from memory to memory ask for what they read: while they compute, memory would rest.
const NEXT: usize = 2048;
/// Bytes of a line.
const LINE: usize = 64;

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

/// How many elements there are before the first one that begins a line.
pub(crate) fn before_line<T>(of: &[T]) -> usize {
    of.as_ptr().align_offset(LINE).min(of.len())
}

/// How many elements there are from the last one on that begins a line, if that line is not complete.
pub(crate) fn behind_line<T>(of: &[T]) -> usize {
    let bytes = of.as_ptr_range().end.addr() % LINE;
    (bytes / size_of::<T>().max(1)).min(of.len())
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn past<T: Copy>(to: &mut [T], from: &[T]) {
    let each = size_of::<T>().max(1);
    let first = before_line(to);
    let lines = (to.len() - first) * each / LINE;
    let end = first + lines * LINE / each;
    to[..first].copy_from_slice(&from[..first]);
    to[end..].copy_from_slice(&from[end..]);
    let (target, source) = (to[first..end].as_mut_ptr(), from[first..end].as_ptr());
    let (target, source) = (target.cast::<u8>(), source.cast::<u8>());
    // SAFETY: both ranges hold that many lines, the target's begins with one, and the processor has the instructions.
    unsafe {
        if wide::has_widest() {
            lines_512(target, source, lines);
        } else if wide::has_wide() {
            lines_256(target, source, lines);
        } else {
            lines_128(target, source, lines);
        }
    }
}

/// A function that copies lines past the caches in vectors of some size.
#[cfg(target_arch = "x86_64")]
macro_rules! lines {
    ($name:ident, $($feature:literal,)? $load:ident, $stream:ident, $vector:ident) => {
        /// # Safety
        /// Both hold so many lines, `to` begins with one, and the processor has the instructions.
        $(#[target_feature(enable = $feature)])?
        unsafe fn $name(to: *mut u8, from: *const u8, lines: usize) {
            use std::arch::x86_64::{$load, $stream, $vector};
            for at in (0..lines * LINE).step_by(size_of::<$vector>()) {
                // SAFETY: the caller vouches for both.
                unsafe { $stream(to.add(at).cast(), $load(from.add(at).cast())) };
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
lines!(lines_128, _mm_loadu_si128, _mm_stream_si128, __m128i);
#[cfg(target_arch = "x86_64")]
lines!(
    lines_256,
    "avx",
    _mm256_loadu_si256,
    _mm256_stream_si256,
    __m256i
);
#[cfg(target_arch = "x86_64")]
lines!(
    lines_512,
    "avx512f",
    _mm512_loadu_si512,
    _mm512_stream_si512,
    __m512i
);

/// Whether an array lies in no cache of a core's own.
#[inline]
pub(crate) fn is_far<T>(array: &[T]) -> bool {
    size_of_val(array) >= BEYOND
}

/// Asks for elements that are read soon, if the array lies in no cache of the core's own. What is beyond its end does not count.
#[inline]
pub(crate) fn ahead<T>(of: &[T], soon: Range<usize>) {
    #[cfg(target_arch = "x86_64")]
    if is_far(of) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let soon = soon.start..soon.end.min(of.len());
        for at in soon.step_by((LINE / size_of::<T>()).max(1)) {
            // SAFETY: a hint on an element, which changes nothing.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(of.as_ptr().add(at).cast()) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (of, soon);
}

/// Asks for lines, of which the first begins at an address, to come nearer, beside the first cache; whatever is there.
#[inline]
fn lines_at(address: *const u8, lines: usize) {
    #[cfg(target_arch = "x86_64")]
    for line in 0..lines {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        let address = address.wrapping_add(line * LINE).cast();
        // SAFETY: a hint, which changes nothing, and is no access, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(address) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, lines);
}

/// What of memory a loop asks for before it is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ahead<'s> {
    /// Nothing: what it reads lies in a cache, or nowhere in particular.
    Nothing,
    /// What lies [`NEXT`] bytes behind what it reads.
    Next,
    /// What is read after it, a piece beside each piece of its own.
    Soon(&'s Soon),
}

impl Ahead<'_> {
    /// Asks for what belongs to these elements, which are read now.
    #[inline(always)]
    pub(crate) fn ask<T>(self, beside: &[T]) {
        match self {
            Ahead::Nothing => {}
            Ahead::Next => {
                let first = beside.as_ptr().cast::<u8>().wrapping_add(NEXT);
                lines_at(first, size_of_val(beside).div_ceil(LINE));
            }
            Ahead::Soon(soon) => soon.ask(beside.len()),
        }
    }
}

/// Parts of memory that are read soon, asked for line by line while something else is computed.
#[derive(Debug, Default)]
pub(crate) struct Soon {
    /// Addresses, as numbers: nothing is done to what is there.
    parts: Vec<Range<usize>>,
    /// Which part is asked for, and how many bytes of it have been.
    at: (AtomicUsize, AtomicUsize),
    /// Lines that are asked for beside an element of somebody else's, in [`Soon::WHOLE`]s.
    rate: AtomicUsize,
    /// What is left of such lines.
    left: AtomicUsize,
}

impl Soon {
    /// A line, in the unit of rates.
    const WHOLE: usize = 1 << 16;

    /// Of these parts.
    pub(crate) fn of(parts: Vec<Range<usize>>) -> Soon {
        Soon {
            parts,
            ..Soon::default()
        }
    }

    /// From now on, asks for so many of the lines beside so many elements.
    pub(crate) fn pace(&self, part: f64, elements: usize) {
        let bytes: usize = self.parts.iter().map(Range::len).sum();
        let lines = (bytes / LINE) as f64 * part;
        let rate = lines * Soon::WHOLE as f64 / elements.max(1) as f64;
        self.rate.store(rate.ceil() as usize, Ordering::Relaxed);
    }

    /// Asks for what belongs to so many elements.
    #[inline]
    pub(crate) fn ask(&self, elements: usize) {
        let left = self.left.load(Ordering::Relaxed);
        let due = left.saturating_add(elements.saturating_mul(self.rate.load(Ordering::Relaxed)));
        self.left.store(due % Soon::WHOLE, Ordering::Relaxed);
        let mut lines = due / Soon::WHOLE;
        while lines > 0 {
            let part = self.at.0.load(Ordering::Relaxed);
            let Some(range) = self.parts.get(part) else {
                return;
            };
            let done = self.at.1.load(Ordering::Relaxed);
            let next = (range.len().saturating_sub(done)).div_ceil(LINE).min(lines);
            if next == 0 {
                self.at.0.store(part + 1, Ordering::Relaxed);
                self.at.1.store(0, Ordering::Relaxed);
                continue;
            }
            lines_at(std::ptr::without_provenance(range.start + done), next);
            self.at.1.store(done + next * LINE, Ordering::Relaxed);
            lines -= next;
        }
    }
}

/// Asks for `bytes` bytes, [`NEXT`] behind an address, to come nearer, into the first cache; whatever is there.
#[inline]
pub(crate) fn next(address: *const u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..bytes).step_by(LINE) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which changes nothing, and is no access, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.wrapping_add(NEXT + at).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (address, bytes);
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

#[cfg(test)]
mod tests {
    use super::{LINE, Soon};
    use std::sync::atomic::Ordering;

    #[test]
    fn all_parts_are_asked_for_beside_all_elements_and_no_more() {
        let (page, odd) = (1 << 20, (1 << 21) + 8);
        let soon = Soon::of(vec![page..page + 10 * LINE, odd..odd + 3 * LINE - 16]);
        soon.pace(0.5, 1000);
        (0..50).for_each(|_| soon.ask(20));
        let at = || {
            (
                soon.at.0.load(Ordering::Relaxed),
                soon.at.1.load(Ordering::Relaxed),
            )
        };
        // Half of twelve lines.
        assert_eq!(at(), (0, 6 * LINE));
        soon.pace(0.5, 10);
        (0..20).for_each(|_| soon.ask(1));
        soon.ask(10);
        assert_eq!(at().0, 2);
        let nothing = Soon::default();
        nothing.pace(1.0, 0);
        nothing.ask(usize::MAX);
    }
}
