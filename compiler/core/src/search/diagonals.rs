//! Elements with one index in two dimensions, read beside other indices: a tensor of their own.
//!
//! Of `W[i, j] = Z[i, j] / sqrt(Z[i, i] * Z[j, j])` a site with some rows would need the square in which their diagonal lies, and all of it for the
//! columns. The diagonal by itself is computed where it lies, and is small. Must not know placements.
//!
//! ```text
//! W: f32[90, 90] = [i: 90, j: 90] Z[i, j] / Z[j, j]
//! Z.diagonal: f32[90] = [j: 90] Z[j, j];  W: f32[90, 90] = [i: 90, j: 90] Z[i, j] / Z.diagonal[j]
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::{element, elementwise, over};
use ein_plan::{Kernel, Node, NodeId};

/// Fewest elements of a tensor whose diagonal is one of its own.
const FEWEST: u64 = 1 << 12;

/// Returns the program in which such elements are tensors.
pub fn named(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let kernel = statement.kernel;
        if kernel.library().is_some() {
            return None;
        }
        let reads: Vec<(NodeId, Vec<usize>)> = (kernel.graph.iter())
            .filter_map(|(id, _, _)| Some((id, diagonal(kernel, id)?)))
            .collect();
        if reads.is_empty() {
            return None;
        }
        let mut operands = statement.operands.to_vec();
        let mut described = kernel.operands.clone();
        for (read, own) in &reads {
            let dtype = kernel.graph.dtype(*read);
            let line = Kernel {
                output_rank: own.len() as u32,
                output: vec![dtype],
                root: *read,
                ..elementwise(kernel)
            };
            let line = canonical::statement(over(line, kernel, own), statement.operands);
            operands.push(statement.add("diagonal", line));
        }
        let named = kernel.clone().rewritten(|graph, id, node, dtype| {
            match reads.iter().position(|(read, _)| *read == id) {
                Some(at) => element((graph, &mut described), kernel, &reads[at].1, dtype),
                None => graph.add(node, dtype),
            }
        });
        let named = Kernel {
            operands: described,
            ..named
        };
        Some(canonical::statement(named, &operands))
    })
}

/// The indices of an element that has one of them in two dimensions, if the kernel goes through others, too.
fn diagonal(kernel: &Kernel, read: NodeId) -> Option<Vec<usize>> {
    let Node::Read {
        operand,
        positions,
        otherwise: None,
        ..
    } = kernel.graph.node(read)
    else {
        return None;
    };
    let positions = positions.iter();
    let own = positions.map(|position| kernel.graph.as_index(*position));
    let all = own.map(|index| index.map(|index| index.0 as usize));
    let all: Vec<usize> = all.collect::<Option<_>>()?;
    let mut own = all.clone();
    own.sort_unstable();
    own.dedup();
    let shape = &kernel.operands[*operand as usize].shape;
    let elements = shape
        .iter()
        .fold(1, |all: u64, extent| all.saturating_mul(*extent));
    let is_part = own.len() < all.len() && own.len() < kernel.indices.len();
    // A condition may leave out points that are outside: the diagonal has none.
    let inside = all.iter().zip(shape);
    let mut inside = inside.map(|(index, extent)| kernel.indices[*index].extent <= *extent);
    let is_inside = inside.all(|inside| inside);
    // A result of its own has the type that is stored.
    let dtype = kernel.graph.dtype(read);
    let is_kept = kernel.operands[*operand as usize].columns == [dtype];
    (is_part && is_inside && is_kept && elements >= FEWEST).then_some(own)
}
