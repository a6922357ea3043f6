//! The choice of a layout: how every statement runs and where every tensor rests.
//!
//! Program and sites in, [`crate::ia::layout::Layout`] out; what follows (lowering, placement, plan) carries any
//! layout out. Must not know plans.
//!
//! ```text
//! C[i,j] = sum A[i,k] * B[k,j] on 4 sites: axis 0 cuts i; A rests cut by its rows, B at the first site
//! ```

pub mod greedy;
pub mod share;
