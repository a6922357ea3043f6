//! Typed mutable parts of an array, handed to the tasks that fill them.
//!
//! Must not know kernels.
//!
//! ```text
//! f32[6] -> f32[0..2], f32[2..6]
//! ```
#![allow(unsafe_code)]

use crate::stream;
use ein_array::Data;
use half::{bf16, f16};
use std::ops::Range;

/// A part of an array's elements.
pub(crate) enum Segment<'a> {
    F16(&'a mut [f16]),
    BF16(&'a mut [bf16]),
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    U8(&'a mut [u8]),
    U16(&'a mut [u16]),
    U32(&'a mut [u32]),
    U64(&'a mut [u64]),
    I8(&'a mut [i8]),
    I16(&'a mut [i16]),
    I32(&'a mut [i32]),
    I64(&'a mut [i64]),
    Bool(&'a mut [u8]),
}

macro_rules! each_segment {
    ($segment:expr, $v:ident, $wrap:ident => $body:expr) => {
        match $segment {
            Segment::F16($v) => {
                use Segment::F16 as $wrap;
                $body
            }
            Segment::BF16($v) => {
                use Segment::BF16 as $wrap;
                $body
            }
            Segment::F32($v) => {
                use Segment::F32 as $wrap;
                $body
            }
            Segment::F64($v) => {
                use Segment::F64 as $wrap;
                $body
            }
            Segment::U8($v) => {
                use Segment::U8 as $wrap;
                $body
            }
            Segment::U16($v) => {
                use Segment::U16 as $wrap;
                $body
            }
            Segment::U32($v) => {
                use Segment::U32 as $wrap;
                $body
            }
            Segment::U64($v) => {
                use Segment::U64 as $wrap;
                $body
            }
            Segment::I8($v) => {
                use Segment::I8 as $wrap;
                $body
            }
            Segment::I16($v) => {
                use Segment::I16 as $wrap;
                $body
            }
            Segment::I32($v) => {
                use Segment::I32 as $wrap;
                $body
            }
            Segment::I64($v) => {
                use Segment::I64 as $wrap;
                $body
            }
            Segment::Bool($v) => {
                use Segment::Bool as $wrap;
                $body
            }
        }
    };
}

/// An array's elements, of which several tasks write parts that lie anywhere.
pub(crate) struct Pieces<'a> {
    start: *mut u8,
    length: usize,
    /// The segment of so many elements from a number on.
    piece: unsafe fn(*mut u8, usize, usize) -> Segment<'a>,
}

/// # Safety
/// So many elements from number `from` on are there, and nobody else has them.
unsafe fn elements<'a, T>(start: *mut u8, from: usize, length: usize) -> &'a mut [T] {
    // SAFETY: the caller vouches for the elements.
    unsafe { std::slice::from_raw_parts_mut(start.cast::<T>().add(from), length) }
}

// SAFETY: what is done from several threads is making pieces, which do not overlap.
unsafe impl Sync for Pieces<'_> {}

impl<'a> Pieces<'a> {
    pub(crate) fn of(all: Segment<'a>) -> Pieces<'a> {
        each_segment!(all, v, Wrap => Pieces {
            start: v.as_mut_ptr().cast(),
            length: v.len(),
            // SAFETY: the caller vouches for the elements.
            piece: |start, from, length| Wrap(unsafe { elements(start, from, length) }),
        })
    }

    /// Some elements.
    ///
    /// # Safety
    /// No two pieces that are alive hold the same element.
    pub(crate) unsafe fn piece(&self, elements: Range<usize>) -> Segment<'a> {
        assert!(elements.start <= elements.end && elements.end <= self.length);
        // SAFETY: the elements are there, and no other piece has them.
        unsafe { (self.piece)(self.start, elements.start, elements.len()) }
    }
}

impl<'a> Segment<'a> {
    /// All elements of an array.
    pub(crate) fn of(data: &'a mut Data) -> Segment<'a> {
        match data {
            Data::F16(v) => Segment::F16(v),
            Data::BF16(v) => Segment::BF16(v),
            Data::F32(v) => Segment::F32(v),
            Data::F64(v) => Segment::F64(v),
            Data::U8(v) => Segment::U8(v),
            Data::U16(v) => Segment::U16(v),
            Data::U32(v) => Segment::U32(v),
            Data::U64(v) => Segment::U64(v),
            Data::I8(v) => Segment::I8(v),
            Data::I16(v) => Segment::I16(v),
            Data::I32(v) => Segment::I32(v),
            Data::I64(v) => Segment::I64(v),
            Data::Bool(v) => Segment::Bool(v),
        }
    }

    /// The address behind the last element, as a number.
    pub(crate) fn end(&self) -> usize {
        fn behind<T>(elements: &[T]) -> usize {
            elements.as_ptr_range().end.addr()
        }
        match self {
            Segment::F16(v) => behind(v),
            Segment::BF16(v) => behind(v),
            Segment::F32(v) => behind(v),
            Segment::F64(v) => behind(v),
            Segment::U8(v) | Segment::Bool(v) => behind(v),
            Segment::U16(v) => behind(v),
            Segment::U32(v) => behind(v),
            Segment::U64(v) => behind(v),
            Segment::I8(v) => behind(v),
            Segment::I16(v) => behind(v),
            Segment::I32(v) => behind(v),
            Segment::I64(v) => behind(v),
        }
    }

    /// The first `n` elements and the others.
    pub(crate) fn split(self, n: usize) -> (Segment<'a>, Segment<'a>) {
        each_segment!(self, v, Wrap => {
            let (head, tail) = v.split_at_mut(n);
            (Wrap(head), Wrap(tail))
        })
    }

    /// Copies elements of the same type, past the caches if there are many in all.
    pub(crate) fn copy(&mut self, from: &Data, streams: bool) {
        macro_rules! copied {
            ($($kind:ident)*) => {
                match (self, from) {
                    $((Segment::$kind(to), Data::$kind(from)) => stream::copy(to, from, streams),)*
                    _ => {}
                }
            };
        }
        copied!(F16 BF16 F32 F64 U8 U16 U32 U64 I8 I16 I32 I64 Bool);
    }

    /// Copies the elements to those of the same type.
    pub(crate) fn read(&self, to: &mut Data) {
        macro_rules! copied {
            ($($kind:ident)*) => {
                match (self, to) {
                    $((Segment::$kind(from), Data::$kind(to)) => to.copy_from_slice(from),)*
                    _ => {}
                }
            };
        }
        copied!(F16 BF16 F32 F64 U8 U16 U32 U64 I8 I16 I32 I64 Bool);
    }

    /// Sets floats of a compute type to the one at `at`; whether that is 0.
    pub(crate) fn repeat(&mut self, at: usize, elements: Range<usize>) -> bool {
        fn repeat<T: Copy>(v: &mut [T], at: usize, elements: Range<usize>) -> T {
            let x = v[at];
            v[elements].fill(x);
            x
        }
        match self {
            Segment::F32(v) => repeat(v, at, elements) == 0.0,
            Segment::F64(v) => repeat(v, at, elements) == 0.0,
            _ => false,
        }
    }

    /// Writes a floating-point value at `at`, converted to the element type.
    pub(crate) fn set_float(&mut self, at: usize, x: f64) {
        match self {
            Segment::F16(v) => v[at] = f16::from_f64(x),
            Segment::BF16(v) => v[at] = bf16::from_f64(x),
            Segment::F32(v) => v[at] = x as f32,
            Segment::F64(v) => v[at] = x,
            Segment::U8(v) => v[at] = x as i32 as u8,
            Segment::U16(v) => v[at] = x as i64 as u16,
            Segment::U32(v) => v[at] = x as i64 as u32,
            Segment::U64(v) => v[at] = x as i64 as u64,
            Segment::I8(v) => v[at] = x as i64 as i8,
            Segment::I16(v) => v[at] = x as i64 as i16,
            Segment::I32(v) => v[at] = x as i32,
            Segment::I64(v) => v[at] = x as i64,
            Segment::Bool(v) => v[at] = u8::from(x != 0.0),
        }
    }

    /// Writes floating-point values from `at` on, converted to the element type.
    pub(crate) fn set_floats(&mut self, at: usize, values: &[f64]) {
        match self {
            Segment::F32(v) => {
                for (to, x) in v[at..].iter_mut().zip(values) {
                    *to = *x as f32;
                }
            }
            Segment::F64(v) => v[at..at + values.len()].copy_from_slice(values),
            _ => {
                for (number, x) in values.iter().enumerate() {
                    self.set_float(at + number, *x);
                }
            }
        }
    }

    /// Writes an integer at `at`, converted to the element type (narrower integers wrap).
    pub(crate) fn set_integer(&mut self, at: usize, x: i64) {
        match self {
            Segment::F16(v) => v[at] = f16::from_f64(x as f64),
            Segment::BF16(v) => v[at] = bf16::from_f64(x as f64),
            Segment::F32(v) => v[at] = x as f32,
            Segment::F64(v) => v[at] = x as f64,
            Segment::U8(v) => v[at] = x as u8,
            Segment::U16(v) => v[at] = x as u16,
            Segment::U32(v) => v[at] = x as u32,
            Segment::U64(v) => v[at] = x as u64,
            Segment::I8(v) => v[at] = x as i8,
            Segment::I16(v) => v[at] = x as i16,
            Segment::I32(v) => v[at] = x as i32,
            Segment::I64(v) => v[at] = x,
            Segment::Bool(v) => v[at] = u8::from(x != 0),
        }
    }

    /// Writes integers from `at` on, converted to the element type (narrower integers wrap).
    pub(crate) fn set_integers(&mut self, at: usize, values: &[i64]) {
        match self {
            Segment::I64(v) => v[at..at + values.len()].copy_from_slice(values),
            Segment::I32(v) => {
                for (to, x) in v[at..at + values.len()].iter_mut().zip(values) {
                    *to = *x as i32;
                }
            }
            _ => {
                for (number, x) in values.iter().enumerate() {
                    self.set_integer(at + number, *x);
                }
            }
        }
    }
}
