//! `repeat`: states, the statements of a round, the end of the rounds, and the tensors that are seen after them.
//!
//! Must not know kernels.
//!
//! ```text
//! repeat t < 9 { state x = 1.0; next x = x / 2 }   =>   block t of 9 rounds, x is its last value
//! ```

pub(crate) mod after;
pub(crate) mod asserted;
pub(crate) mod block;
pub(crate) mod desugar;
pub(crate) mod repeat;
pub(crate) mod scan;
pub(crate) mod states;
pub(crate) mod unroll;
