//! Floats as the elements of a segment.
//!
//! Must not know what is done with them.
//!
//! ```text
//! f32::elements(Segment::F32(1 2 3))   ->   1 2 3
//! ```

use crate::accumulate::Float;
use crate::segment::Segment;
use std::ops::Sub;

/// An element that can be compared.
pub(crate) trait Element: Float + Default + Sub<Output = Self> {
    /// The elements of a segment that has this type.
    fn elements<'s>(segment: &'s mut Segment<'_>) -> &'s mut [Self];
}

impl Element for f32 {
    #[inline(always)]
    fn elements<'s>(segment: &'s mut Segment<'_>) -> &'s mut [f32] {
        match segment {
            Segment::F32(elements) => elements,
            _ => &mut [],
        }
    }
}

impl Element for f64 {
    #[inline(always)]
    fn elements<'s>(segment: &'s mut Segment<'_>) -> &'s mut [f64] {
        match segment {
            Segment::F64(elements) => elements,
            _ => &mut [],
        }
    }
}
