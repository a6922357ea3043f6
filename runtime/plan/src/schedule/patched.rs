//! Kernels that give an operand back, but for the rows that another operand has.
//!
//! Data say of each row whether the other operand has it, and where. Must not know how rows are written.
//!
//! ```text
//! [i, h] (a1[a0[i], h] else a2[i, h])        rows of a2 replaced by those that a0 finds in a1
//! ```

use crate::{DType, IndexId, Kernel, Node, NodeId};

/// The parts of such a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patched {
    /// The operand that is given back where data find no row.
    pub old: u32,
    /// The operand that has the other rows.
    pub rows: u32,
    /// The operand that says, by row of the result, which row of `rows` it is.
    pub found: u32,
    /// The index that counts the rows of the result.
    pub index: IndexId,
}

/// Returns the parts of a kernel of this form.
pub fn patched(kernel: &Kernel) -> Option<Patched> {
    let rank = kernel.output_rank as usize;
    let is_plain = kernel.reduction.is_none() && kernel.guard.is_none() && kernel.output.len() == 1;
    if !is_plain || rank == 0 {
        return None;
    }
    let (rows, positions, otherwise) = read(kernel, kernel.root)?;
    let old = kernel.own_element(otherwise?)?;
    let index_of = |id: &NodeId| kernel.graph.as_index(*id);
    let is_own = |(dim, at): (u32, &NodeId)| index_of(at) == Some(IndexId(dim));
    let extents = || kernel.indices.iter().map(|index| index.extent);
    let operand = |number: u32| &kernel.operands[number as usize];
    let mut others = (0..).zip(positions).filter(|at| !is_own(*at));
    let (dim, at) = others.next()?;
    let (found, place, None) = read(kernel, *at)? else {
        return None;
    };
    let finds = place.len() == 1
        && index_of(&place[0]) == Some(IndexId(dim))
        && matches!(operand(found).columns[..], [DType::I64 | DType::U32])
        && extents().nth(dim as usize)? <= operand(found).shape[0];
    let inside = (0..).zip(operand(rows).shape.iter().zip(extents()));
    let mut inside = inside.filter(|(other, _)| *other != dim);
    let fits = others.next().is_none()
        && positions.len() == rank
        && operand(rows).columns == kernel.output
        && inside.all(|(_, (has, extent))| *has >= extent);
    let apart = rows != old && found != old && rows != found;
    (finds && fits && apart).then_some(Patched {
        old,
        rows,
        found,
        index: IndexId(dim),
    })
}

/// An operand with one column that a node reads, where, and the value if that is outside.
fn read(kernel: &Kernel, id: NodeId) -> Option<(u32, &[NodeId], Option<NodeId>)> {
    match kernel.graph.node(id) {
        Node::Read {
            operand,
            column: 0,
            positions,
            otherwise,
        } => Some((*operand, positions, *otherwise)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn rows_that_data_find_are_told_from_other_reads() {
        let of = |text: &str| patched(&text.parse().unwrap());
        let form = |old, rows, found, index| {
            Some(Patched {
                old,
                rows,
                found,
                index: IndexId(index),
            })
        };
        let text = "(i64[9], f32[5, 4], f32[9, 4]) [i: 9, h: 4] f32 = (a1[a0[i], h] else a2[i, h])";
        assert_eq!(of(text), form(2, 1, 0, 0));
        let text = "(u32[9], f64[4, 5], f64[4, 9]) [h: 4, i: 9] f64 = (a1[h, a0[i]] else a2[h, i])";
        assert_eq!(of(text), form(2, 1, 0, 1));
        for other in [
            "(i64[9], f32[5, 4], f32[9, 4]) [i: 9, h: 4] f32 = (a1[a0[i], h] else 0.0)",
            "(i64[9], f32[5, 4], f32[4, 4]) [i: 4, h: 4] f32 = (a1[a0[i], h] else a2[h, i])",
            "(i64[9], f32[5, 4], f32[9, 4]) [i: 9, h: 4] f32 = (a1[a0[i], h + 1] else a2[i, h])",
            "(i64[4], f32[9, 5], f32[9, 4]) [i: 9, h: 4] f32 = (a1[a0[h], h] else a2[i, h])",
            "(f32[5, 4], f32[9, 4]) [i: 9, h: 4] f32 = (a0[i, h] else a1[i, h])",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
