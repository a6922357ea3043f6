//! Types of expressions: numbers take the type of the expressions that they meet, and functions of known numbers are folded.
//!
//! Must not know syntax, sizes or tensors.
//!
//! ```text
//! X[n] * (2 * pi)   =>   mul(f32, 6.2831855 as f32)
//! ```

pub(crate) mod coerce;
pub(crate) mod fold;
pub(crate) mod guesses;
pub(crate) mod open_lists;
pub(crate) mod unsigned;
pub(crate) mod whole;
