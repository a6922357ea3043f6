//! The placement search: exactness, prices of the papers, invariances.
#![allow(clippy::unwrap_used)]

mod papers;
mod programs;
mod timing;
