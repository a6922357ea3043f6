//! The rewrite rules: each row by execution, its conditions, whole programs, contraction orders.
#![allow(clippy::unwrap_used)]

mod barred;
mod laws;
mod programs;
mod rows;
mod support;
