//! Calls of the user's functions: functions that take functions, written out; which argument each parameter takes, the sizes of the signature, and the tensors that the body makes.
//!
//! Must not know kernels.
//!
//! ```text
//! dense(X, W, b)   x: X, w: W, b: b, `..`: N, d: 64, h: 10   =>   tensor dense.1.y
//! ```

pub(crate) mod arguments;
pub(crate) mod callee;
pub(crate) mod functions;
mod results;
pub(crate) mod signature;
pub(crate) mod slices;
pub(crate) mod specialise;
