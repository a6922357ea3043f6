//! The members of a sweep without their data: what each computes, and where its operands come from.
//!
//! Must not know what is decided of them.
//!
//! ```text
//! m1 = max a0[n, d] of given 0   m2 = exp(a0[n, d] - a1[n]) of given 0 and made 0, kept
//! ```

use crate::{Graph, IndexId, Kernel, NodeId};

/// A member of a sweep, without its data.
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    /// The kernel that is computed.
    pub kernel: &'a Kernel,
    /// Start and length of each index.
    pub ranges: Vec<(u64, u64)>,
    /// The key of the tuples that cuts each index, if one does: ranges of the same length that different keys cut are not the same values.
    pub cuts: Vec<Option<u32>>,
    /// Where each operand comes from.
    pub operands: Vec<Origin>,
    /// True if its result is wanted whole.
    pub kept: bool,
    /// True if its result takes the memory of an operand.
    pub over: bool,
}

/// Where an operand comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is there; the number tells it from others.
    Given(usize),
    /// An earlier member makes it.
    Made(usize),
}

impl Outline<'_> {
    /// Returns whether it reduces all of its rows to one number.
    pub fn gathers(&self) -> bool {
        self.kernel.reduction.is_some() && self.kernel.output_rank == 0
    }
}

/// Returns whether positions are the first indices, each once, in their order.
pub fn ascends(graph: &Graph, positions: &[NodeId]) -> bool {
    let mut positions = (0..).zip(positions);
    positions.all(|(dim, position)| graph.as_index(*position) == Some(IndexId(dim)))
}
