//! Where a program's operands lie, and the reads of them, prepared for strips.
//!
//! Shapes alone are needed, so a program can be made before there are data. Must not know other operations.
//!
//! ```text
//! a0[2 * y + r - 1] of 14 elements from 0 on, strip over y   ->   -1 + 2 y + r, lanes 2 apart, checked
//! ```

use super::operation::{Followed, Form, Position, Read};
use crate::Chunk;
use crate::nest::{Nest, Strides};
use ein_plan::schedule::access::Place;
use ein_plan::schedule::forms::PositionForm;
use ein_plan::{Node, NodeId};

/// The place of a chunk's elements.
pub(crate) fn place_of(chunk: &Chunk<'_>) -> Place {
    let lengths = chunk.columns[0].shape().iter().map(|n| *n as u64);
    let ranges: Vec<(u64, u64)> = chunk.start.iter().copied().zip(lengths).collect();
    Place::new(&ranges)
}

/// Returns whether a place is that of a chunk's elements.
pub(crate) fn is_place_of(place: &Place, chunk: &Chunk<'_>) -> bool {
    let starts = chunk.start.iter().map(|start| *start as i64);
    let lengths = chunk.columns[0].shape().iter().map(|n| *n as i64);
    starts.eq(place.start.iter().copied()) && lengths.eq(place.shape.iter().copied())
}

/// For each position of a read, whether it is proved to be inside the chunk.
pub(crate) fn proved(node: &Node, forms: &[Option<PositionForm>], places: &[Place]) -> Vec<bool> {
    let Node::Read {
        operand, positions, ..
    } = node
    else {
        return vec![];
    };
    let place = &places[*operand as usize];
    positions
        .iter()
        .enumerate()
        .map(|(d, position)| {
            let start = place.start[d];
            forms[position.0 as usize]
                .as_ref()
                .is_some_and(|form| form.low >= start && form.high < start + place.shape[d])
        })
        .collect()
}

/// For each index, the distance in elements between neighbours along it.
pub(crate) fn read_strides(
    place: &Place,
    positions: &[NodeId],
    forms: &[Option<PositionForm>],
    depends: &[u128],
    indices: usize,
) -> Strides {
    let mut total = vec![0; indices];
    for (position, stride) in positions.iter().zip(&place.strides) {
        match &forms[position.0 as usize] {
            Some(form) => {
                // A quotient changes rarely.
                let terms = form.terms.iter().filter(|_| form.divisor == 1);
                for (index, coefficient) in terms {
                    total[*index] = coefficient
                        .wrapping_mul(*stride)
                        .wrapping_add(total[*index]);
                }
            }
            None => {
                for (index, total) in total.iter_mut().enumerate() {
                    if depends[position.0 as usize] >> index & 1 == 1 {
                        *total = total.wrapping_add(1 << 20);
                    }
                }
            }
        }
    }
    total
}

/// A read, prepared.
#[allow(clippy::too_many_arguments)]
pub(crate) fn prepare_read(
    (operand, column): (usize, usize),
    place: &Place,
    positions: &[NodeId],
    otherwise: Option<NodeId>,
    forms: &[Option<PositionForm>],
    inside: &[bool],
    nest: &Nest,
    depends: &[u128],
) -> Read {
    let mut lanes = vec![0; nest.strip.len()];
    let bits = |indices: &[usize]| indices.iter().fold(0u128, |bits, i| bits | 1 << i);
    let inner = nest.strip.len().saturating_sub(1);
    let (strip, inner) = (bits(&nest.strip), bits(&nest.strip[inner..]));
    let (mut scattered, mut by_rows) = (false, true);
    let dims = positions
        .iter()
        .zip(&place.strides)
        .enumerate()
        .map(|(d, (position, stride))| {
            let form = match &forms[position.0 as usize] {
                Some(form) => {
                    let own: Vec<i64> = nest
                        .strip
                        .iter()
                        .map(|s| {
                            let term = form.terms.iter().find(|(i, _)| i == s);
                            term.map_or(0, |(_, c)| *c)
                        })
                        .collect();
                    for (total, c) in lanes.iter_mut().zip(&own) {
                        let step = if form.divisor == 1 { *c } else { 0 };
                        *total = step.wrapping_mul(*stride).wrapping_add(*total);
                    }
                    let evenly = form.divisor == 1 && form.modulus.is_none();
                    by_rows &= evenly || own.last().is_none_or(|step| *step == 0);
                    Form::Followed(Followed {
                        constant: form.constant,
                        terms: form.terms.clone(),
                        lanes: own,
                        divisor: form.divisor,
                        modulus: form.modulus,
                        checked: !inside[d],
                    })
                }
                None => {
                    scattered |= depends[position.0 as usize] & strip != 0;
                    by_rows &= depends[position.0 as usize] & inner == 0;
                    Form::Value(position.0)
                }
            };
            Position {
                start: place.start[d],
                length: place.shape[d],
                stride: *stride,
                form,
            }
        })
        .collect();
    Read {
        operand,
        column,
        dims,
        otherwise: otherwise.map(|o| o.0),
        lanes,
        scattered,
        by_rows,
    }
}
