//! What a file says of an array: element type and shape.
//!
//! Must not know files.
//!
//! ```text
//! f32[150000, 600]      c64[8], which is read and written as f32[8, 2]
//! ```

use crate::error::{DAMAGED, DataError, Place, WRONG_SHAPE, WRONG_TYPE};
use ein_plan::{DType, Format};
use std::fmt;

/// Element type and shape of a stored array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// Element type, as stored.
    pub dtype: DType,
    /// Extents; empty for a single number.
    pub shape: Vec<u64>,
}

impl Header {
    /// Bytes of all elements; `None` if that does not fit, whichever extents are 0.
    pub fn bytes(&self) -> Option<u64> {
        let counted = self.shape.iter().copied().filter(|extent| *extent > 0);
        let counted: Vec<u64> = counted.collect();
        let most = Format::default().bytes_of(self.dtype, &counted);
        i64::try_from(most).ok()?;
        Some(Format::default().bytes_of(self.dtype, &self.shape))
    }

    /// The array that is read and written: of complex numbers the pairs of their parts, in a last dimension of 2.
    pub fn stored(&self) -> Header {
        match self.dtype.part() {
            None => self.clone(),
            Some(dtype) => Header {
                dtype,
                shape: self.shape.iter().copied().chain([2]).collect(),
            },
        }
    }

    /// Checks that all elements have numbers and a size in bytes, or `E0702`.
    pub(crate) fn fits(&self, place: &Place) -> Result<(), DataError> {
        match self.bytes() {
            Some(_) => Ok(()),
            None => Err(place.error(
                DAMAGED,
                format_args!("is not what its header says: {self} is more than any file can hold"),
            )),
        }
    }

    /// Checks that `file` holds what a program declares: `E0703` for the element type, `E0704` for the shape.
    /// `None` in `shape` is an extent that the data decides. A program declares the array that is [`Header::stored`].
    pub fn expect(&self, file: &str, dtype: DType, shape: &[Option<u64>]) -> Result<(), DataError> {
        let place = Place {
            file: file.to_owned(),
            key: None,
        };
        let stored = self.stored();
        if stored.dtype != dtype {
            let numpy = match dtype {
                DType::F16 => "float16",
                DType::BF16 => "ml_dtypes.bfloat16",
                DType::F32 => "float32",
                DType::F64 => "float64",
                DType::U8 => "uint8",
                DType::U16 => "uint16",
                DType::U32 => "uint32",
                DType::U64 => "uint64",
                DType::I8 => "int8",
                DType::I16 => "int16",
                DType::I32 => "int32",
                DType::I64 => "int64",
                DType::Bool => "bool",
                DType::C64 => "complex64",
                DType::C128 => "complex128",
            };
            let quote = if dtype == DType::BF16 { "" } else { "\"" };
            return Err(place
                .error(
                    WRONG_TYPE,
                    format_args!("holds {self}, but the program declares {dtype}"),
                )
                .help(format!(
                    "declare {} in the program, or convert the data: x.astype({quote}{numpy}{quote})",
                    self.dtype
                )));
        }
        let fits = stored.shape.len() == shape.len()
            && stored
                .shape
                .iter()
                .zip(shape)
                .all(|(have, want)| want.is_none_or(|want| want == *have));
        if fits {
            return Ok(());
        }
        let wanted: Vec<_> = shape
            .iter()
            .map(|extent| extent.map_or("_".to_owned(), |extent| extent.to_string()))
            .collect();
        Err(place.error(
            WRONG_SHAPE,
            format_args!(
                "holds {self}, but the program declares {dtype}[{}]",
                wanted.join(", ")
            ),
        ))
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let extents: Vec<_> = self.shape.iter().map(u64::to_string).collect();
        write!(f, "{}[{}]", self.dtype, extents.join(", "))
    }
}
