//! The compiler proper: from a syntax tree to a plan.
//!
//! Pure: no files, environment, clock, processes or MPI. Modules import downwards only:
//! sema > {autodiff, subnets} > einsum > tra > ia > {rules, cost} > {hoist, lists, search} > lower.

pub mod autodiff;
pub mod build;
pub mod cost;
pub mod einsum;
pub mod hoist;
pub mod ia;
pub mod lists;
pub mod lower;
pub mod pipeline;
pub mod rules;
pub mod search;
pub mod sema;
pub mod subnets;
pub mod tra;
