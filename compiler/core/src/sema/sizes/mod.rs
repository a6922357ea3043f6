//! Sizes as polynomials over dims, the range of every index, and proofs that positions stay inside their tensors.
//!
//! Must not know syntax or types.
//!
//! ```text
//! 2*y + r - 1 with y < 28, r < 3   =>   -1 … 56
//! ```

pub(crate) mod linear;
pub(crate) mod prove;
mod provisional;
pub(crate) mod ranges;
pub(crate) mod size;
