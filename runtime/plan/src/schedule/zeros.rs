//! Terms of a product that are 0 because a mask took them out of a factor.
//!
//! They are left out where that changes nothing: where what the 0 is multiplied by is a number, and what it is divided by is one other than 0.
//! Values decide that block by block; the plan says which terms, and of which member. Must not know how products are computed.
//!
//! ```text
//! [t, d | s] sum m1[t, s] * a0[s, d] / m2[t]   with m1 0 outside s < t + 1   ->   skips zeros of m1 along s
//! ```

use super::leaves::{leaves, value};
use super::mask::Masked;
use super::outline::{Origin, Outline};
use crate::{IndexId, Kernel, Node, NodeId};
use serde::{Deserialize, Serialize};

/// Terms of a product that may be 0.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Zeros {
    /// The member that is 0 there.
    pub of: u32,
    /// The index of the terms, which are the columns of that member.
    pub terms: IndexId,
}

/// A factor of a product that is read.
pub struct ReadFactor<'k> {
    /// The operand.
    pub operand: u32,
    /// Its positions.
    pub positions: &'k [NodeId],
    /// True if the product is divided by it.
    pub divides: bool,
}

/// The factors of a kernel's terms if each is read, or a number that leaves a 0 what it is.
pub fn factors_read(kernel: &Kernel) -> Option<Vec<ReadFactor<'_>>> {
    let graph = &kernel.graph;
    let mut read = vec![];
    for (leaf, divides) in leaves(graph, kernel.root, |_| false)?.factors {
        match (graph.node(value(graph, leaf)), graph.node(leaf)) {
            (
                Node::Read {
                    operand,
                    positions,
                    otherwise: None,
                    ..
                },
                _,
            ) => read.push(ReadFactor {
                operand: *operand,
                positions,
                divides,
            }),
            (_, Node::Constant(number)) if leaves_zero(number.as_f64(), divides) => {}
            _ => return None,
        }
    }
    Some(read)
}

/// Returns whether 0 times a number, or divided by it, is 0.
#[inline]
pub fn leaves_zero(x: f64, divides: bool) -> bool {
    match divides {
        false => x.is_finite(),
        true => !x.is_nan() && x != 0.0,
    }
}

/// The terms of a product that one masked member may make 0.
pub(super) fn zeros(
    members: &[Outline<'_>],
    masked: &[Option<Masked>],
    number: usize,
) -> Option<Zeros> {
    let member = &members[number];
    if !member.kernel.is_product() {
        return None;
    }
    let factors = factors_read(member.kernel)?;
    let mut found = factors.iter().filter_map(|factor| {
        let origin = member.operands[factor.operand as usize];
        let Origin::Made(of) = origin else {
            return None;
        };
        (masked[of].is_some() && !factor.divides).then_some((of, factor.positions))
    });
    let (of, positions) = found.next()?;
    let terms = terms(member.kernel, positions)?;
    // The columns of the member are all of the terms.
    let at = terms.0 as usize;
    let whole = members[of].ranges.last() == member.ranges.get(at)
        && members[of].cuts.last() == member.cuts.get(at);
    whole.then_some(Zeros {
        of: of as u32,
        terms,
    })
}

/// The index that is summed over at the last position, where the others are output indices.
fn terms(kernel: &Kernel, positions: &[NodeId]) -> Option<IndexId> {
    let (last, others) = positions.split_last()?;
    let index = |position: &NodeId| kernel.graph.as_index(*position);
    let outer =
        |position: &NodeId| index(position).is_some_and(|IndexId(i)| i < kernel.output_rank);
    let terms = index(last)?;
    (terms.0 >= kernel.output_rank && others.iter().all(outer)).then_some(terms)
}
