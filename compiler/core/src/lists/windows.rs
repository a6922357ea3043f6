//! Short windows over a list, written out: each of their terms reads the list at moved places, which has a list of its own.
//!
//! A position of two indices, one of which is summed over a few values, says nothing of the places of a list; with each of these values it
//! does (`views`). Must not know how a statement goes over a list.
//!
//! ```text
//! y: f32[9] = [i: 9 | r: 2, j: 9] sum A[i + r - 1, j] else 0.0 * x[j]                  with elements of A listed
//! y: f32[9] = [i: 9 | j: 9] sum A[i - 1, j] else 0.0 * x[j] + A[i, j] * x[j]
//! ```

use crate::einsum::{Definition, Program, Rewriting, Rewritten, Statement, canonical};
use crate::rules::{over, short_window};
use ein_plan::source::Listing;
use ein_plan::{Kernel, Node, Reduction};
use std::collections::BTreeMap;

/// Most values that are written out.
const MOST: u64 = 9;

/// Returns the program in which such windows are sums of terms.
pub(super) fn written(program: &Program, listed: &BTreeMap<String, Listing>) -> Program {
    let mut program = program.clone();
    loop {
        let next = Rewriting::of_statements(&program, |statement| one(&statement, listed));
        if next == program {
            return next;
        }
        program = next;
    }
}

/// The statement with one window less.
fn one(statement: &Rewritten<'_>, listed: &BTreeMap<String, Listing>) -> Option<Statement> {
    let kernel = statement.kernel;
    let is_sum = kernel.reduction == Some(Reduction::Sum);
    if !is_sum || kernel.guard.is_some() || kernel.library().is_some() {
        return None;
    }
    let index = kernel.graph.iter().find_map(|(_, node, _)| {
        let Node::Read {
            operand, positions, ..
        } = node
        else {
            return None;
        };
        let tensor = statement.operand(*operand);
        let is_input = matches!(tensor.definition, Definition::Source(_));
        if !is_input || !listed.contains_key(&tensor.name) {
            return None;
        }
        positions.iter().find_map(|position| {
            let form = kernel.graph.as_affine(*position)?;
            let mut indices = form.terms.iter().map(|(index, _)| *index);
            let is_short = |index: &ein_plan::IndexId| {
                index.0 >= kernel.output_rank && kernel.indices[index.0 as usize].extent <= MOST
            };
            (form.terms.len() > 1).then(|| indices.find(is_short))?
        })
    })?;
    let own = index.0 as usize;
    let others = (0..kernel.indices.len()).filter(|at| *at != own);
    let order: Vec<usize> = others.chain([own]).collect();
    let inner = Kernel {
        output_rank: order.len() as u32 - 1,
        ..kernel.clone()
    };
    let inner = short_window::over_window(&over(inner, kernel, &order))?;
    let whole = Kernel {
        output_rank: kernel.output_rank,
        reduction: kernel
            .reduction
            .filter(|_| inner.output_rank > kernel.output_rank),
        ..inner
    };
    Some(canonical::statement(whole, statement.operands))
}
