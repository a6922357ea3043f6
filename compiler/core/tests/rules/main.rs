//! The rewrite rules: each row by execution, its conditions, whole programs, contraction orders.
#![allow(clippy::unwrap_used)]

mod barred;
mod laws;
mod lookup;
mod panels;
mod programs;
mod rounds;
mod rows;
mod running;
mod support;
mod topk_parts;
mod wrapped;
