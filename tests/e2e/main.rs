//! The `einc` command and what it builds, end to end, as a user meets them.
#![allow(clippy::unwrap_used)]

mod blas;
mod complex;
mod digits;
mod examples;
mod families;
mod functions;
mod functions_of_functions;
mod fuzz;
mod gpu;
mod language;
mod learning;
mod lookups;
mod loops;
mod machines;
mod methods;
mod odd;
mod operations;
mod other_data;
mod out_of_core;
mod over;
mod plans;
mod properties;
mod readme;
mod recompute;
mod requests;
mod resume;
mod shims;
mod shorthand;
mod small_loops;
mod sparse_files;
mod spill;
mod subnets;
mod sweeps;
mod windows;
mod wrong_input;
