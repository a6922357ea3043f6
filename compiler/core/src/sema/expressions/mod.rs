//! Expressions of the text as typed expressions over index variables, in one graph that all statements share.
//!
//! Must not know kernels, files or training.
//!
//! ```text
//! exp(z[n] - max[k] z[k])   =>   exp(sub(read z (v0), max[v1] read z (v1)))
//! ```

pub(crate) mod access;
pub(crate) mod arena;
pub(crate) mod builtins;
mod composed;
pub(crate) mod directional;
pub(crate) mod expr;
pub(crate) mod gradient;
pub(crate) mod scope;
