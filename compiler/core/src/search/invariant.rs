//! Reductions that are the same along an index of the result, computed once.
//!
//! Must not know placements.
//!
//! ```text
//! y: f32[70, 8] = [g: 70, h: 8 | n: 900] sum x[n, h]
//! y.once: f32[8] = [h: 8 | n: 900] sum x[n, h];   y: f32[70, 8] = [g: 70, h: 8] y.once[h]
//! ```

use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::{element, elementwise, over};
use ein_plan::Kernel;

/// Returns the program in which what is the same along an index is reduced once.
pub fn once(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (mut once, kept) = without(statement.kernel)?;
        let kernel = statement.kernel;
        let dtype = kernel.output[0].compute();
        once.output = vec![dtype];
        let once = statement.add("once", canonical::statement(once, statement.operands));
        let mut whole = elementwise(kernel);
        let operands = (&mut whole.graph, &mut whole.operands);
        whole.root = element(operands, kernel, &kept, dtype);
        Some(canonical::statement(whole, &statement.operands_and(once)))
    })
}

/// The reduction over the output indices that it depends on, and these.
fn without(kernel: &Kernel) -> Option<(Kernel, Vec<usize>)> {
    let rank = kernel.output_rank as usize;
    let plain = kernel.reduction.is_some() && kernel.finish && kernel.indices.len() < 128;
    if !plain || kernel.indices.iter().any(|index| index.extent == 0) {
        return None;
    }
    let depends = kernel.graph.dependencies();
    let roots = [Some(kernel.root), kernel.guard].into_iter().flatten();
    let held = roots.fold(0, |held, id| held | depends[id.0 as usize]);
    let kept: Vec<usize> = (0..rank).filter(|i| held >> i & 1 == 1).collect();
    let repeated = (0..rank).any(|i| held >> i & 1 == 0 && kernel.indices[i].extent > 1);
    let own: Vec<usize> = kept
        .iter()
        .copied()
        .chain(rank..kernel.indices.len())
        .collect();
    repeated.then(|| {
        let once = Kernel {
            output_rank: kept.len() as u32,
            ..over(kernel.clone(), kernel, &own)
        };
        (once, kept)
    })
}
