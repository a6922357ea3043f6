//! The values of a tensor, and why a point has none: what the interpreter and its library operations share.
//!
//! Must not know how a value is computed.
//!
//! ```text
//! f32[2, 2]: 1 2 3 4      x[7] of x: f32[4]: position 7 of dimension 0, which has 4
//! ```

use super::scalar::{convert, stored};
use ein_plan::{DType, Function, Scalar, Source};

/// The values of a tensor, in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// Extents.
    pub shape: Vec<u64>,
    /// Elements: `Float` for floating-point types, `Int` for integer types, `Bool` for `bool`.
    pub data: Vec<Scalar>,
}

/// Why a run stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An operand without `else` is read outside its range.
    OutOfRange {
        /// Which operand of the statement.
        operand: u32,
        /// Which dimension of it.
        dimension: u32,
        /// Where it would be read.
        position: i64,
        /// How many positions there are.
        extent: u64,
    },
    /// A position that is checked is not one of a dimension's.
    NotWithin {
        /// The position.
        position: i64,
        /// How many positions there are.
        extent: i64,
    },
    /// An integer is divided by zero.
    DivisionByZero,
    /// An integer has a negative exponent.
    NegativePower,
    /// `argmax` or `argmin` over nothing.
    NothingToChoose,
    /// A library operation has no result: a singular matrix, a value that is no number.
    Library(Function),
}

/// The elements of a source that needs nothing from outside.
pub(crate) fn filled(source: &Source, count: u64, dtype: DType) -> Option<Vec<Scalar>> {
    let kept = |value: Scalar| stored(convert(value, dtype.compute()), dtype);
    match source {
        Source::Full(value) => Some((0..count).map(|_| kept(*value)).collect()),
        Source::Iota => Some((0..count).map(|at| kept(Scalar::Int(at as i64))).collect()),
        Source::Numbers(values) => Some(values.iter().map(|value| kept(*value)).collect()),
        Source::Stacked { parts, .. } => {
            let each = count / (parts.len() as u64).max(1);
            let parts = parts.iter().map(|part| filled(&part.source, each, dtype));
            Some(parts.collect::<Option<Vec<_>>>()?.concat())
        }
        _ => None,
    }
}
