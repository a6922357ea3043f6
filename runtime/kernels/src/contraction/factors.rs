//! The two factors of a matrix product and the number beside them.
//!
//! Must not know how factors are multiplied.
//!
//! ```text
//! a0[i, k] * a1[k, j] / sqrt(c)   ->   a0[i, k], a1[k, j], 1 / sqrt(c)
//! ```

use crate::Chunk;
use crate::machine::Machine;
use crate::packed::Packed;
use crate::program::{Program, Request};
use ein_plan::schedule::factors;
use ein_plan::schedule::matmul::Matmul;
use ein_plan::{DType, Graph, Kernel, NodeId};

/// The factors of the body, with the value of those without indices.
pub(super) struct Factors {
    pub graph: Graph,
    pub left: (NodeId, u128),
    pub right: (NodeId, u128),
    pub number: f64,
    /// Factors of whole rows of the result, and whether each divides.
    pub of_rows: Vec<(NodeId, bool)>,
    /// The role of each index of more than one value.
    pub roles: Matmul,
}

/// Evaluates the numbers of factors that were found. `None` if one faults, or their product is no ordinary number: it could hide overflow or make
/// it, so the strips have to look at each term.
pub(super) fn valued<T: Packed>(
    kernel: &Kernel,
    operands: &[Chunk<'_>],
    ranges: &[(i64, i64)],
    (found, roles): (factors::Factors, Matmul),
) -> Option<Factors> {
    let mut number = if found.negative { -1.0 } else { 1.0 };
    for (id, divides) in found.numbers {
        let value = value_of(kernel, operands, ranges, id)?;
        match divides {
            false => number *= value,
            true => number /= value,
        }
    }
    if !number.is_normal() || !T::from_f64(number).to_f64().is_normal() {
        return None;
    }
    let (left, right) = match roles.turned {
        true => (found.right, found.left),
        false => (found.left, found.right),
    };
    Some(Factors {
        graph: found.graph,
        left,
        right,
        number,
        of_rows: found.of_rows,
        roles,
    })
}

/// The value of a node without indices; `None` if it faults.
fn value_of(
    kernel: &Kernel,
    operands: &[Chunk<'_>],
    ranges: &[(i64, i64)],
    id: NodeId,
) -> Option<f64> {
    let lengths = vec![1; ranges.len()];
    let program = Program::new(&Request {
        graph: &kernel.graph,
        operands,
        root: id,
        guard: None,
        reduction: None,
        output: &[],
        reduced: &[],
        ranges,
        lengths: &lengths,
        lanes: None,
        apart: false,
        patches: false,
    });
    let start = ranges.iter().map(|(start, _)| *start).collect();
    let mut machine = Machine::new(&program, start, false);
    machine.execute(0);
    if machine.poison(program.root).is_some() {
        return None;
    }
    match program.value() {
        DType::F32 => Some(f64::from(machine.f32s(program.root)[0])),
        DType::F64 => Some(machine.f64s(program.root)[0]),
        _ => None,
    }
}
