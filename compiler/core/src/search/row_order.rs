//! Hidden tensors lie so that the elements of a row that data name are neighbours.
//!
//! A row of which data say which one it is, to be read or to be added to, is gone through element by element, and a tensor that no user sees may lie
//! either way. The dimensions that data count come first, the others last. Must not know placements, nor who made a tensor.
//!
//! ```text
//! xw: f32[4, 9] = [k: 4, j: 9 | f: 8] sum X[j, f] * W[f, k]
//! h: f32[9, 4] = [i: 9, k: 4 | e: 5] sum a[e] * xw[k, src[e]] if i == dst[e]
//!
//! xw: f32[9, 4] = [j: 9, k: 4 | f: 8] sum X[j, f] * W[f, k]
//! h: f32[9, 4] = [i: 9, k: 4 | e: 5] sum a[e] * xw[src[e], k] if i == dst[e]
//! ```

use crate::einsum::{Definition, Program, Role, canonical};
use crate::rules::{permute_operands, permute_output};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{Function, Kernel, Node, NodeId};

/// The program with hidden tensors in the order of the rows that data name.
pub fn rows_together(program: &Program) -> Program {
    let orders = orders(program);
    let own = |order: &[u32]| (0..).zip(order).all(|(dim, to)| dim == *to);
    if orders.iter().all(|order| own(order)) {
        return program.clone();
    }
    let mut program = program.clone();
    for (tensor, order) in program.tensors.iter_mut().zip(&orders) {
        let Definition::Statement { kernel, operands } = &mut tensor.definition else {
            continue;
        };
        let read: Vec<Vec<u32>> = (operands.iter())
            .map(|operand| orders[operand.0 as usize].clone())
            .collect();
        let permuted = permute_output(&permute_operands(kernel, &read), order);
        (*kernel, *operands) = canonical::statement(permuted, operands);
        let shape = tensor.shape.clone();
        for (extent, to) in shape.iter().zip(order) {
            tensor.shape[*to as usize] = *extent;
        }
    }
    program
}

/// By tensor: where each of its dimensions goes.
fn orders(program: &Program) -> Vec<Vec<u32>> {
    let mut by_data: Vec<Vec<bool>> = vec![];
    let mut free: Vec<bool> = vec![];
    for tensor in &program.tensors {
        by_data.push(vec![false; tensor.shape.len()]);
        free.push(tensor.role == Role::Hidden);
    }
    for (number, tensor) in program.tensors.iter().enumerate() {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            free[number] = false;
            continue;
        };
        let is_library = kernel.library().is_some();
        free[number] &= !is_library;
        for dim in sent(kernel) {
            by_data[number][dim] = true;
        }
        for (operand, positions) in kernel.graph.reads() {
            let read = operands[operand as usize].0 as usize;
            free[read] &= !is_library;
            for (dim, at) in positions.iter().enumerate() {
                by_data[read][dim] |= is_data(kernel, *at);
            }
        }
    }
    let blocks = program.blocks.iter();
    let ends = blocks.flat_map(|block| {
        let states = block
            .states
            .iter()
            .flat_map(|state| [state.initial, state.next]);
        states.chain(block.collected.iter().map(|collected| collected.value))
    });
    for end in ends.chain(program.outputs.iter().map(|output| output.tensor)) {
        free[end.0 as usize] = false;
    }
    let order = |(by_data, free): (&Vec<bool>, bool)| {
        let rank = by_data.len() as u32;
        let mut dims: Vec<u32> = (0..rank).collect();
        if free {
            dims.sort_by_key(|dim| !by_data[*dim as usize]);
        }
        let to = |dim| {
            dims.iter()
                .position(|own| *own == dim)
                .map_or(dim, |at| at as u32)
        };
        (0..rank).map(to).collect()
    };
    by_data.iter().zip(free).map(order).collect()
}

/// The dimensions of a kernel's output to which data send its points.
fn sent(kernel: &Kernel) -> Vec<usize> {
    let Some(guard) = kernel.guard.filter(|_| kernel.reduction.is_some()) else {
        return vec![];
    };
    let of = |index: NodeId, row: NodeId| {
        let index = kernel
            .graph
            .as_index(index)
            .filter(|index| index.0 < kernel.output_rank)?;
        is_data(kernel, row).then_some(index.0 as usize)
    };
    let parts = conjuncts(&kernel.graph, guard).into_iter();
    let sent = parts.filter_map(|part| match kernel.graph.node(part) {
        Node::Apply(Function::Eq, sides) => {
            of(sides[0], sides[1]).or_else(|| of(sides[1], sides[0]))
        }
        _ => None,
    });
    sent.collect()
}

/// Returns whether a position follows from data, not from indices alone.
fn is_data(kernel: &Kernel, position: NodeId) -> bool {
    let mut open = vec![position];
    while let Some(id) = open.pop() {
        let node = kernel.graph.node(id);
        match node {
            Node::Read { positions, .. } if !positions.is_empty() => return true,
            _ => open.extend(node.arguments()),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::parse::parse;

    #[test]
    fn rows_that_data_name_come_first() {
        let text = |xw: &str, read: &str, g: &str, got: &str| {
            format!(
                "input X: f32[9, 8] = unbound\ninput W: f32[8, 4] = unbound\n\
                input src: i64[5] = unbound\ninput dst: i64[5] = unbound\n\
                hidden xw: {xw} | f: 8] sum X[j, f] * W[f, k]\n\
                h: f32[9, 4] = [i: 9, k: 4 | e: 5] sum xw[{read}] if i == dst[e]\n\
                hidden g: {g} | e: 5] sum h[dst[e], k] if j == src[e]\n\
                d: f32[8, 4] = [f: 8, k: 4 | j: 9] sum X[j, f] * g[{got}]\noutput h\noutput d\n"
            )
        };
        let (along, across) = ("f32[4, 9] = [k: 4, j: 9", "f32[9, 4] = [j: 9, k: 4");
        let before = parse(&text(along, "k, src[e]", along, "k, j")).unwrap();
        let after = text(across, "src[e], k", across, "j, k");
        assert_eq!(rows_together(&before).to_string(), after);
        // Tensors that have a name lie as they are written.
        let named = text(along, "k, src[e]", along, "k, j").replace("hidden ", "");
        let named = parse(&named).unwrap();
        assert_eq!(rows_together(&named), named);
    }
}
