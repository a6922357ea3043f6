//! Instances of modules: the params and states that each owns, by path, and arrays of instances that are stored together.
//!
//! Must not know what a body computes.
//!
//! ```text
//! param enc: encoder(8, 2)[3]   =>   params enc.0.att.wq, …, enc.2.up.w
//! ```

pub(crate) mod instances;
pub(crate) mod stack;
pub(crate) mod stacks;
pub(crate) mod states;
