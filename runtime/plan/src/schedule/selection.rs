//! Kernels that select an element, a row or a box of an operand: the guard fixes every reduced index, and nothing is computed of what is read.
//!
//! Must not know how it is copied.
//!
//! ```text
//! [d: 8 | n: 100] max a0[n, d] if n == a1[]        row a1 of a0
//! ```

use super::guard::conjuncts;
use crate::{IndexId, Kernel, Node, NodeId, Reduction};

/// The parts of such a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The operand of which a part is given.
    pub operand: u32,
    /// Its column.
    pub column: u32,
    /// By dimension of the operand: the index that reads it. Those of the result stand in its order.
    pub indices: Vec<IndexId>,
}

/// Returns the parts of a kernel of this form.
pub fn selection(kernel: &Kernel) -> Option<Selection> {
    let of_one = [
        Reduction::Max,
        Reduction::Min,
        Reduction::Any,
        Reduction::All,
    ];
    let reduction = kernel.reduction?;
    let rank = kernel.output_rank as usize;
    let conditions = conjuncts(&kernel.graph, kernel.guard?).len();
    let fixes_all = kernel.fixed().len() == conditions && conditions + rank == kernel.indices.len();
    if !of_one.contains(&reduction) || !fixes_all {
        return None;
    }
    let Node::Read {
        operand,
        column,
        positions,
        otherwise: None,
    } = kernel.graph.node(kernel.root)
    else {
        return None;
    };
    let index = |at: &NodeId| kernel.graph.as_index(*at);
    let indices: Vec<IndexId> = positions.iter().map(index).collect::<Option<_>>()?;
    let in_result = indices.iter().filter(|index| index.0 < kernel.output_rank);
    let mut distinct = indices.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let is_box = in_result.is_sorted()
        && distinct.len() == indices.len()
        && indices.len() == kernel.indices.len()
        && kernel.output == [kernel.operands[*operand as usize].columns[*column as usize]];
    is_box.then_some(Selection {
        operand: *operand,
        column: *column,
        indices,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_box_at_fixed_places_is_a_selection() {
        let of = |text: &str| selection(&text.parse().unwrap());
        let row = of("(f32[9, 4], i64[]) [d: 4 | n: 9] f32 = max a0[n, d] if n == a1[]");
        let indices = vec![IndexId(1), IndexId(0)];
        assert_eq!(
            row,
            Some(Selection {
                operand: 0,
                column: 0,
                indices
            })
        );
        for other in [
            // Something is computed; the guard leaves an index, or asks for more; the type is another; dimensions change places.
            "(f32[9, 4], i64[]) [d: 4 | n: 9] f32 = max -a0[n, d] if n == a1[]",
            "(f32[9, 4], i64[]) [d: 4 | n: 9] f32 = sum a0[n, d] if n == a1[]",
            "(f32[9, 4], i64[]) [| d: 4, n: 9] f32 = max a0[n, d] if n == a1[]",
            "(f32[9, 4], i64[]) [d: 4 | n: 9] f32 = max a0[n, d] if and(n == a1[], d < 3)",
            "(f32[9, 4], i64[]) [d: 4 | n: 9] f64 = max f64(a0[n, d]) if n == a1[]",
            "(f32[9, 4, 3], i64[]) [e: 3, d: 4 | n: 9] f32 = max a0[n, d, e] if n == a1[]",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
