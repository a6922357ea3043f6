//! Reductions go through their points in the order of memory, however their indices are written.
//!
//! `sum[j, i] A[i, j]` says the same as `sum[i, j] A[i, j]`, and takes ten times as long where the loops follow the text: neighbours of one index lie a row
//! apart. The index along which the reads lie closest comes last. A reduction that gives a place counts in the order that is written, a guard
//! may have an order of its own, and products of matrices choose their loops by themselves. As with any reordered sum, rounding may differ.
//! Must not know programs.
//!
//! ```text
//! y: f64[] = [| j: 4, i: 9] sum abs(A[i, j])   ->   y: f64[] = [| i: 9, j: 4] sum abs(A[i, j])
//! ```

use super::renamed;
use ein_plan::{IndexId, Kernel, Node};

/// The kernel whose reduction goes through memory in order; `None` if it does, or is not to.
pub(crate) fn in_memory_order(kernel: &Kernel) -> Option<Kernel> {
    let order = order(kernel)?;
    Some(reordered(kernel, &order))
}

/// The reduced indices of a kernel, outermost first, if they are to stand in another order.
fn order(kernel: &Kernel) -> Option<Vec<u32>> {
    let plain = kernel.guard.is_none() && kernel.library().is_none() && !kernel.is_product();
    let free = kernel
        .reduction
        .is_some_and(|reduction| !reduction.is_arg());
    let reduced: Vec<u32> = (kernel.output_rank..kernel.indices.len() as u32).collect();
    if !plain || !free || reduced.len() < 2 || kernel.indices.len() > 127 {
        return None;
    }
    let strides = strides(kernel);
    let mut order = reduced.clone();
    order.sort_by_key(|index| std::cmp::Reverse(strides[*index as usize]));
    (order != reduced).then_some(order)
}

/// By index: the elements that its neighbours are apart in the reads, added up.
fn strides(kernel: &Kernel) -> Vec<u128> {
    let depends = kernel.graph.dependencies();
    let mut strides = vec![0u128; kernel.indices.len()];
    for (_, node, _) in kernel.graph.iter() {
        let Node::Read {
            operand, positions, ..
        } = node
        else {
            continue;
        };
        let shape = &kernel.operands[*operand as usize].shape;
        let mut apart = 1u128;
        for (position, extent) in positions.iter().zip(shape).rev() {
            let own = depends[position.0 as usize];
            for (index, stride) in strides.iter_mut().enumerate() {
                if own >> index & 1 == 1 {
                    *stride = stride.saturating_add(apart);
                }
            }
            apart = apart.saturating_mul(u128::from(*extent));
        }
    }
    strides
}

/// The kernel whose reduced indices stand in that order.
fn reordered(kernel: &Kernel, order: &[u32]) -> Kernel {
    let place = |index: IndexId| {
        let found = (0u32..).zip(order).find(|(_, old)| **old == index.0);
        found.map_or(index, |(at, _)| IndexId(kernel.output_rank + at))
    };
    let mut result = renamed(kernel.clone(), &place);
    for (at, old) in order.iter().enumerate() {
        result.indices[kernel.output_rank as usize + at] = kernel.indices[*old as usize].clone();
    }
    result
}
