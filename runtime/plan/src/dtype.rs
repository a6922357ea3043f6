//! Element types and typed scalars.
//!
//! Must not know how arrays are laid out.
//!
//! ```text
//! f16 bf16 f32 f64 u8 u16 u32 u64 i8 i16 i32 i64 bool, and for programs and files c64 c128
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;

/// The type of one element of an array, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DType {
    /// IEEE half precision; arithmetic is done in `F32`.
    F16,
    /// bfloat16; arithmetic is done in `F32`.
    BF16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
    /// Unsigned byte; arithmetic is done in `I32`.
    U8,
    /// Unsigned, 16 bits; arithmetic is done in `I32`.
    U16,
    /// Unsigned, 32 bits; arithmetic is done in `I64`.
    U32,
    /// Unsigned, 64 bits. Arithmetic is done in `I64` on the same bits; what depends on the sign, such as an order or a quotient, is put
    /// together of what does not before there is a plan, so that in a plan an element is the `I64` of its bits.
    U64,
    /// Signed byte; arithmetic is done in `I32`.
    I8,
    /// Signed, 16 bits; arithmetic is done in `I32`.
    I16,
    /// 32-bit integer, wrapping.
    I32,
    /// 64-bit integer, wrapping.
    I64,
    /// Truth value, one byte, 0 or 1.
    Bool,
    /// A complex number, a pair of `F32`. Programs and files name it; what is computed are its two parts, so that no plan has it.
    C64,
    /// A complex number, a pair of `F64`; see [`DType::C64`].
    C128,
}

impl DType {
    /// Every element type that arrays have, in the order of the language reference.
    pub const ALL: [DType; 13] = [
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::Bool,
    ];

    /// The complex types.
    pub const COMPLEX: [DType; 2] = [DType::C64, DType::C128];

    /// The type of the real and the imaginary part of a complex type.
    pub const fn part(self) -> Option<DType> {
        match self {
            DType::C64 => Some(DType::F32),
            DType::C128 => Some(DType::F64),
            _ => None,
        }
    }

    /// Returns whether this is a complex type.
    pub const fn is_complex(self) -> bool {
        self.part().is_some()
    }

    /// The complex type whose parts are of this type.
    pub const fn complex(self) -> Option<DType> {
        match self {
            DType::F32 => Some(DType::C64),
            DType::F64 => Some(DType::C128),
            _ => None,
        }
    }

    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::U8 | DType::I8 | DType::Bool => 1,
            DType::F16 | DType::BF16 | DType::U16 | DType::I16 => 2,
            DType::F32 | DType::U32 | DType::I32 => 4,
            DType::F64 | DType::U64 | DType::I64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The type in which values of this type are computed: one of `F32 F64 I32 I64 Bool`.
    pub const fn compute(self) -> DType {
        match self {
            DType::F16 | DType::BF16 => DType::F32,
            DType::U8 | DType::U16 | DType::I8 | DType::I16 => DType::I32,
            DType::U32 | DType::U64 => DType::I64,
            other => other,
        }
    }

    /// Returns whether a value that was computed may be another one when it is stored: rounded, or wrapped.
    pub const fn is_narrow(self) -> bool {
        match self {
            DType::F16 | DType::BF16 => true,
            DType::U8 | DType::U16 | DType::U32 | DType::I8 | DType::I16 => true,
            DType::F32 | DType::F64 | DType::U64 | DType::I32 | DType::I64 | DType::Bool => false,
            DType::C64 | DType::C128 => false,
        }
    }

    /// Whether this is a floating-point type.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F16 | DType::BF16 | DType::F32 | DType::F64)
    }

    /// Whether this is an integer type (`bool` is not).
    pub const fn is_integer(self) -> bool {
        self.whole_range().is_some()
    }

    /// The least and the greatest value of an integer type, as it is computed: of `U64` those of its bits.
    pub const fn whole_range(self) -> Option<(i64, i64)> {
        Some(match self {
            DType::U8 => (0, u8::MAX as i64),
            DType::U16 => (0, u16::MAX as i64),
            DType::U32 => (0, u32::MAX as i64),
            DType::I8 => (i8::MIN as i64, i8::MAX as i64),
            DType::I16 => (i16::MIN as i64, i16::MAX as i64),
            DType::I32 => (i32::MIN as i64, i32::MAX as i64),
            DType::U64 | DType::I64 => (i64::MIN, i64::MAX),
            DType::F16 | DType::BF16 | DType::F32 | DType::F64 => return None,
            DType::Bool | DType::C64 | DType::C128 => return None,
        })
    }

    /// The name used in the language.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::U8 => "u8",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::Bool => "bool",
            DType::C64 => "c64",
            DType::C128 => "c128",
        }
    }

    /// The type of that name in the language, if there is one.
    pub fn from_name(name: &str) -> Option<DType> {
        let mut all = DType::ALL.into_iter().chain(DType::COMPLEX);
        all.find(|dtype| dtype.name() == name)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One value; which type it has is said beside it (a node's type, an array's type).
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub enum Scalar {
    /// A value of a floating-point type.
    Float(f64),
    /// A value of an integer type.
    Int(i64),
    /// A truth value.
    Bool(bool),
}

impl Scalar {
    /// Bit-exact identity (so that NaN equals itself and 0.0 differs from -0.0): what hash-consing needs.
    pub fn bits(self) -> (u8, u64) {
        match self {
            Scalar::Float(x) => (0, x.to_bits()),
            Scalar::Int(x) => (1, x as u64),
            Scalar::Bool(x) => (2, u64::from(x)),
        }
    }

    /// The value as `f64`; truth values are 0 and 1.
    pub fn as_f64(self) -> f64 {
        match self {
            Scalar::Float(x) => x,
            Scalar::Int(x) => x as f64,
            Scalar::Bool(x) => f64::from(u8::from(x)),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.bits() == other.bits()
    }
}
impl Eq for Scalar {}
impl std::hash::Hash for Scalar {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.bits().hash(state);
    }
}
