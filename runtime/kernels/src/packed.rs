//! What factors are packed as: the types, and the part of each index that a block covers.
//!
//! Must not know where a factor lies, nor how it is copied.
//!
//! ```text
//! block of 2 rows from the third on, of n: 10, c: 3   ->   start [2, 0], size [2, 3]
//! ```

use crate::product::Element;
use crate::segment::Segment;
use crate::strided::Plain;
use ein_array::Data;
use ein_plan::DType;

/// A type that factors are packed in.
pub(crate) trait Packed: Element + Plain {
    const DTYPE: DType;
    fn slice(data: &Data) -> Option<&[Self]>;
    fn slice_mut(data: &mut Data) -> Option<&mut [Self]>;
    fn segment(slice: &mut [Self]) -> Segment<'_>;
}

macro_rules! packed {
    ($t:ty, $kind:ident) => {
        impl Packed for $t {
            const DTYPE: DType = DType::$kind;
            fn slice(data: &Data) -> Option<&[$t]> {
                match data {
                    Data::$kind(v) => Some(v),
                    _ => None,
                }
            }
            fn slice_mut(data: &mut Data) -> Option<&mut [$t]> {
                match data {
                    Data::$kind(v) => Some(v),
                    _ => None,
                }
            }
            fn segment(slice: &mut [$t]) -> Segment<'_> {
                Segment::$kind(slice)
            }
        }
    };
}
packed!(f32, F32);
packed!(f64, F64);

/// The part of each index that a block covers: first values, counted from the ranges' starts, and numbers of values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub start: Vec<usize>,
    pub size: Vec<usize>,
}

impl Part {
    /// Number of points along some indices.
    pub(crate) fn count(&self, indices: &[usize]) -> usize {
        indices.iter().map(|i| self.size[*i]).product()
    }
}
