//! A part of an array as an array, while nobody writes to it.
//!
//! Must not know who reads it.
//!
//! ```text
//! elements 16 .. 32 of a result over [8, 4], as the block of rows 4 to 7:   f32[4, 4]
//! ```
#![allow(unsafe_code)]

use crate::segment::Segment;
use ein_array::{Array, Data};
use std::marker::PhantomData;
use std::mem::{self, ManuallyDrop};

/// An array whose elements are those of a segment, which stays borrowed.
pub(super) struct View<'s> {
    /// It never owns its elements: they are taken away from it before it goes.
    array: ManuallyDrop<Array>,
    of: PhantomData<&'s Segment<'s>>,
}

impl<'s> View<'s> {
    /// Of this shape, which has as many elements.
    pub(super) fn of(segment: &'s Segment<'_>, shape: Vec<usize>) -> View<'s> {
        /// # Safety
        /// Nothing may be done to what this gives out but reading and forgetting it, and that while the elements are borrowed.
        unsafe fn lent<T>(elements: &[T], wanted: usize) -> Vec<T> {
            let (first, count) = (elements.as_ptr().cast_mut(), elements.len());
            assert_eq!(count, wanted, "a block has the elements of its shape");
            // SAFETY: so many elements are there; none is written, and the allocator never sees the address, since the caller forgets it.
            unsafe { Vec::from_raw_parts(first, count, count) }
        }
        let wanted = shape.iter().product();
        // SAFETY: only shared references to the array are given out, no longer than the segment is borrowed; `drop` forgets the elements.
        let data = unsafe {
            match segment {
                Segment::F16(v) => Data::F16(lent(v, wanted)),
                Segment::BF16(v) => Data::BF16(lent(v, wanted)),
                Segment::F32(v) => Data::F32(lent(v, wanted)),
                Segment::F64(v) => Data::F64(lent(v, wanted)),
                Segment::U8(v) => Data::U8(lent(v, wanted)),
                Segment::U16(v) => Data::U16(lent(v, wanted)),
                Segment::U32(v) => Data::U32(lent(v, wanted)),
                Segment::U64(v) => Data::U64(lent(v, wanted)),
                Segment::I8(v) => Data::I8(lent(v, wanted)),
                Segment::I16(v) => Data::I16(lent(v, wanted)),
                Segment::I32(v) => Data::I32(lent(v, wanted)),
                Segment::I64(v) => Data::I64(lent(v, wanted)),
                Segment::Bool(v) => Data::Bool(lent(v, wanted)),
            }
        };
        let array = Array::new(shape, data).expect("so many elements were lent");
        View {
            array: ManuallyDrop::new(array),
            of: PhantomData,
        }
    }

    /// The array.
    pub(super) fn array(&self) -> &Array {
        &self.array
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        // SAFETY: this is the only place where it is taken, and the view is gone after it.
        let array = unsafe { ManuallyDrop::take(&mut self.array) };
        mem::forget(array.into_data());
    }
}

#[cfg(test)]
mod tests {
    use super::View;
    use crate::segment::Segment;
    use ein_array::Data;

    #[test]
    fn elements_are_seen_and_stay_where_they_are() {
        let mut all = Data::F32((0..12).map(|x| x as f32).collect());
        let (_, behind) = Segment::of(&mut all).split(4);
        let (mut middle, _) = behind.split(6);
        let view = View::of(&middle, vec![2, 3]);
        assert_eq!(view.array().shape(), [2, 3]);
        assert_eq!(
            view.array().data(),
            &Data::F32(vec![4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
        );
        drop(view);
        middle.set_float(0, -1.0);
        assert_eq!(all.get(4).as_f64(), -1.0);
        assert_eq!(all.get(11).as_f64(), 11.0);
    }
}
