//! Checked tensors as an Einstein program.
//!
//! Must not know syntax.
//!
//! ```text
//! y[n] = exp(x[n] - max[k] x[k])   =>   y.1 = max x[k];  y = exp(x[n] - y.1[])
//! ```

pub(crate) mod blocks;
mod hidden;
pub(crate) mod outputs;
pub(crate) mod parts;
pub(crate) mod program;
