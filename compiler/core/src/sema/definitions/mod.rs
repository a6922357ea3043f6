//! Items of a program: dims, consts, inputs, params, definitions, assertions and outputs.
//!
//! Must not know the forms of expressions, nor how training runs.
//!
//! ```text
//! O[n,y]: f32[N, H/2] = …   =>   tensor O f32[N, H/2] over (v0, v1)
//! ```

pub(crate) mod declare;
pub(crate) mod finish;
pub(crate) mod inputs;
pub(crate) mod lists;
mod source_tensors;
pub(crate) mod sources;
pub(crate) mod statement;
pub(crate) mod tensors;
