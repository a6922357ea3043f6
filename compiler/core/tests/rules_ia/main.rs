//! The e-graph of placed relations: every row by execution, proofs of plans, extraction.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod conditions;
mod evaluate;
mod extraction;
mod proofs;
mod soundness;
mod terms;
