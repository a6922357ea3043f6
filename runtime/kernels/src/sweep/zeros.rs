//! Terms of a product that are 0 because a mask took them out of a factor: they are left out where that changes nothing.
//!
//! It changes nothing where what the 0 is multiplied by is a number, and what it is divided by is one other than 0. Must not know how products
//! are computed.
//!
//! ```text
//! [t, d | s] sum m1[t, s] * a0[s, d] / m2[t]   m1 0 outside s ..=t, a0 finite, m2 not 0:   rows 64..128 need the terms s 0..128
//! ```

use super::mask::Masked;
use super::{Member, Operand};
use crate::Chunk;
use ein_array::{Array, Data};
use ein_plan::schedule::leaves::{leaves, value};
use ein_plan::{IndexId, Kernel, Node, NodeId};
use rayon::prelude::*;

/// Elements that one task looks at.
const TASK: usize = 1 << 16;

/// A product some of whose terms may be 0.
pub(super) struct Zeros {
    /// The member that is 0 there.
    pub of: usize,
    /// The index of the terms, which are its columns.
    pub terms: usize,
    /// What members make that it is multiplied by (`false`) or divided by.
    beside: Vec<(usize, bool)>,
}

impl Zeros {
    /// Of a member that is a product, if nothing that is given makes a 0 anything else.
    pub(super) fn of(
        members: &[Member<'_>],
        masked: &[Option<Masked>],
        member: &Member<'_>,
    ) -> Option<Zeros> {
        let kernel = member.kernel;
        if !kernel.is_product() {
            return None;
        }
        let (mut zeros, mut given) = (None, vec![]);
        let mut beside = vec![];
        for (leaf, divides) in leaves(&kernel.graph, kernel.root, |_| false)?.factors {
            let Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } = kernel.graph.node(value(&kernel.graph, leaf))
            else {
                let Node::Constant(number) = kernel.graph.node(leaf) else {
                    return None;
                };
                if !leaves_zero(number.as_f64(), divides) {
                    return None;
                }
                continue;
            };
            match &member.operands[*operand as usize] {
                Operand::Made(of) if masked[*of].is_some() && !divides && zeros.is_none() => {
                    let terms = terms(kernel, positions)?;
                    // The rows that it is 0 in are this one's.
                    let whole = members[*of].ranges.last() == member.ranges.get(terms);
                    zeros = Some((*of, terms)).filter(|_| whole);
                    zeros?;
                }
                Operand::Made(of) => beside.push((*of, divides)),
                Operand::Given(chunk) => given.push((chunk, divides)),
                Operand::Old(_) => return None,
            }
        }
        let (of, terms) = zeros?;
        let all = |(chunk, divides): &(&Chunk<'_>, bool)| {
            let mut columns = chunk.columns.iter();
            columns.all(|column| leave_zero(column.data(), *divides))
        };
        given.iter().all(all).then_some(Zeros { of, terms, beside })
    }

    /// Whether nothing that members made makes a 0 anything else.
    pub(super) fn hold(&self, made: &[Vec<Array>]) -> bool {
        self.beside.iter().all(|(of, divides)| {
            let mut columns = made[*of].iter();
            columns.all(|column| leave_zero(column.data(), *divides))
        })
    }
}

/// The index that is summed over at the last position, where the others are output indices.
fn terms(kernel: &Kernel, positions: &[NodeId]) -> Option<usize> {
    let (last, others) = positions.split_last()?;
    let index = |position: &NodeId| kernel.graph.as_index(*position);
    let outer =
        |position: &NodeId| index(position).is_some_and(|IndexId(i)| i < kernel.output_rank);
    let IndexId(terms) = index(last)?;
    (terms >= kernel.output_rank && others.iter().all(outer)).then_some(terms as usize)
}

/// Whether 0 times a number, or divided by it, is 0.
#[inline]
fn leaves_zero(x: f64, divides: bool) -> bool {
    match divides {
        false => x.is_finite(),
        true => !x.is_nan() && x != 0.0,
    }
}

/// The same of all elements, of floats.
fn leave_zero(data: &Data, divides: bool) -> bool {
    fn all<T: Copy + Into<f64> + Sync>(elements: &[T], divides: bool) -> bool {
        // No branch an element: parts are looked at whole.
        let each = |all: bool, x: &T| all & leaves_zero((*x).into(), divides);
        let part = |part: &[T]| part.iter().fold(true, each);
        match elements.len() {
            0..=TASK => part(elements),
            _ => elements.par_chunks(TASK).all(part),
        }
    }
    match data {
        Data::F32(elements) => all(elements, divides),
        Data::F64(elements) => all(elements, divides),
        _ => false,
    }
}
