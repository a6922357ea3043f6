//! Random valid layouts, for property tests of everything below the search.
//!
//! A seed gives one layout of a program on at most that many sites, always the same: meshes of one to three axes,
//! often with idle sites; any index of a statement, or none, along each axis; tensors resting cut, copied or at the
//! first coordinate. Nobody would choose most of them. Must not know costs.
//!
//! ```text
//! mesh 2x3   y0: (Index(1), Every) rests (Cut(0), First)
//! ```

use super::layout::{Layout, StatementRole, TensorRole};
use crate::einsum::random::numbers::Numbers;
use crate::einsum::{Definition, LoopValue, Program};
use ein_plan::{IndexId, Mesh};

const MESHES: [&[u32]; 13] = [
    &[1],
    &[2],
    &[3],
    &[2, 1],
    &[4],
    &[2, 2],
    &[1, 1, 3],
    &[5],
    &[2, 3],
    &[6],
    &[2, 2, 2],
    &[4, 2],
    &[8],
];

/// A layout of the program on at most `sites` sites.
pub fn layout(program: &Program, sites: u32, seed: u64) -> Layout {
    let mut numbers = Numbers::new(seed);
    let fitting: Vec<&[u32]> = MESHES
        .into_iter()
        .filter(|axes| axes.iter().product::<u32>() <= sites)
        .collect();
    // Larger meshes are the more interesting ones.
    let later = fitting.len() / 2;
    let axes = match numbers.one_in(4) {
        true => numbers.pick(&fitting),
        false => numbers.pick(&fitting[later..]),
    };
    on_mesh(
        program,
        Mesh {
            axes: axes.to_vec(),
        },
        seed,
    )
}

/// A layout on a mesh. Its roles depend on the number of axes, not on their counts.
pub fn on_mesh(program: &Program, mesh: Mesh, seed: u64) -> Layout {
    let mut numbers = Numbers::new(seed ^ 0x5555);
    let mut layout = Layout {
        mesh,
        ..Layout::default()
    };
    let axes = layout.mesh.axes.clone();
    for tensor in &program.tensors {
        let (indices, loaded) = match &tensor.definition {
            Definition::Source(source) => (None, !source.is_free()),
            Definition::Statement { kernel, .. } => (Some(kernel.indices.len() as i64), false),
            // The rounds that are collected are together.
            Definition::Loop(LoopValue::Collected(..)) => (Some(0), false),
            Definition::Loop(value) if value.is_carried() => {
                (Some(tensor.shape.len() as i64), false)
            }
            Definition::Loop(_) => (None, false),
        };
        let statement = axes.iter().map(|_| match indices {
            Some(count) if count > 0 && !numbers.one_in(3) => {
                StatementRole::Index(IndexId(numbers.between(0, count - 1) as u32))
            }
            _ if numbers.one_in(3) => StatementRole::First,
            _ => StatementRole::Every,
        });
        let statement: Vec<StatementRole> = statement.collect();
        let rank = tensor.shape.len() as i64;
        let rest = axes.iter().map(|_| {
            if rank > 0 && !numbers.one_in(3) {
                TensorRole::Cut(numbers.between(0, rank - 1) as u32)
            } else if loaded || numbers.one_in(3) {
                TensorRole::First
            } else {
                TensorRole::Every
            }
        });
        layout.rests.push(rest.collect());
        layout.statements.push(match indices {
            None => vec![],
            Some(_) => statement,
        });
    }
    layout
}
