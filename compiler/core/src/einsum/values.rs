//! The values of a tensor, and why a point has none: what the interpreter and its library operations share.
//!
//! Must not know how a value is computed.
//!
//! ```text
//! f32[2, 2]: 1 2 3 4      x[7] of x: f32[4]: position 7 of dimension 0, which has 4
//! ```

use ein_plan::{Function, Scalar};

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
    /// An integer is divided by zero.
    DivisionByZero,
    /// An integer has a negative exponent.
    NegativePower,
    /// `argmax` or `argmin` over nothing.
    NothingToChoose,
    /// A library operation has no result: a singular matrix, a value that is no number.
    Library(Function),
}
