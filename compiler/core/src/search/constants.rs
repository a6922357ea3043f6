//! Reads of hidden tensors that hold one number everywhere, as that number.
//!
//! The derivative of each element of a tensor begins with a tensor of ones; the product with it is what stands beside it. Must not know
//! placements.
//!
//! ```text
//! seed: f32[9] = full(1.0);   y: f32[9] = [n: 9] seed[n] * x[n]   ->   y: f32[9] = [n: 9] 1.0 * x[n]
//! ```

use crate::einsum::{Definition, Program, Role, Tensor, canonical};
use ein_plan::{DType, Node, Scalar, Source};

/// Returns the program in which what is read of such tensors are numbers.
pub fn read(program: &Program) -> Program {
    let numbers: Vec<Option<Scalar>> = program.tensors.iter().map(number).collect();
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        let Definition::Statement { kernel, operands } = &mut tensor.definition else {
            continue;
        };
        let known = |operand: u32| numbers[operands[operand as usize].0 as usize];
        if kernel.library().is_some() || !(0..operands.len() as u32).any(|o| known(o).is_some()) {
            continue;
        }
        let written = kernel.clone().rewritten(|graph, _, node, dtype| {
            // A read at places that data say may be outside.
            let node = match &node {
                Node::Read {
                    operand,
                    positions,
                    otherwise: None,
                    ..
                } if positions.iter().all(|at| graph.as_affine(*at).is_some()) => {
                    known(*operand).map_or(node, Node::Constant)
                }
                _ => node,
            };
            graph.add(node, dtype)
        });
        (*kernel, *operands) = canonical::statement(written, operands);
    }
    program.needed()
}

/// The number that a tensor holds everywhere, if it is stored as it is computed with.
fn number(tensor: &Tensor) -> Option<Scalar> {
    match (&tensor.definition, tensor.dtype) {
        _ if tensor.role != Role::Hidden => None,
        (Definition::Source(Source::Full(number)), DType::F32 | DType::F64) => Some(*number),
        _ => None,
    }
}
