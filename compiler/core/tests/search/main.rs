//! The placement search: exactness, prices of the papers, limits, invariances.
#![allow(clippy::unwrap_used)]

mod conditions;
mod exact;
mod limits;
mod named;
mod orders;
mod papers;
mod programs;
mod sums;
mod windows;
