//! Memory for results: buffers of arrays that are gone, else fresh ones that the system backs by huge pages where it can.
//!
//! The first touch of a page costs a fault; with pages of 4 KiB, filling a large result takes several times as long
//! for the faults as for the values. Must not know what is computed.
//!
//! ```text
//! zeros(f32, [8192, 8192])   256 MiB   128 faults, not 65536
//! ```
#![allow(unsafe_code)]

use ein_array::Array;
use ein_plan::DType;

/// Arrays of fewer bytes are left to the allocator.
const LARGE: usize = 1 << 22;
/// Size of a huge page.
const HUGE: usize = 1 << 21;

/// An array of zeros.
pub(crate) fn zeros(dtype: DType, shape: &[usize]) -> Array {
    backed(Array::zeros(dtype, shape))
}

/// An array with any values, for a writer of all of them.
pub fn room(dtype: DType, shape: &[usize]) -> Array {
    backed(Array::room(dtype, shape))
}

/// So many numbers, all of them 0.
pub(crate) fn blank<T: Clone + Default>(count: usize) -> Vec<T> {
    let mut numbers = vec![T::default(); count];
    advise(numbers.as_mut_slice());
    numbers
}

fn backed(mut array: Array) -> Array {
    advise(array.data_mut().bytes_mut());
    array
}

/// Asks for huge pages below what is large.
fn advise<T>(numbers: &mut [T]) {
    if size_of_val(numbers) >= LARGE {
        ask_for_huge_pages(numbers);
    }
}

/// Advises the system on the huge pages that lie wholly within `numbers`. That it may refuse changes nothing but speed.
#[cfg(target_os = "linux")]
fn ask_for_huge_pages<T>(numbers: &mut [T]) {
    let start = numbers.as_mut_ptr().cast::<u8>();
    let skipped = start.align_offset(HUGE);
    let length = size_of_val(numbers).saturating_sub(skipped) / HUGE * HUGE;
    if length == 0 {
        return;
    }
    let start = start.wrapping_add(skipped);
    // SAFETY: the range is part of a live, exclusively borrowed allocation, and this advice keeps its contents.
    let _refused =
        unsafe { rustix::mm::madvise(start.cast(), length, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_huge_pages<T>(_: &mut [T]) {}
