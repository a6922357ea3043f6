//! Look-ups at the owner, for the tables that a layout moves.
//!
//! A program whose layout moves a table that is only looked up at some positions is laid out again with these reads at the
//! sites that have the rows; the cheaper one is taken. Must not know how a look-up is written.
//!
//! ```text
//! x moves, 400000000 floats   =>   tok and the rows that are found move, 640 floats
//! ```

use super::report::Rewrite;
use crate::einsum::{Definition, Program, Tensor, TensorId};
use crate::rules::{RuleUse, lookup};
use crate::search::{self, Found, SearchOptions};
use std::cmp::Ordering;

/// Most tables that are tried one by one where they are no gain together.
const MOST: usize = 4;

/// A program with look-ups at the owner, and its layout.
pub(super) struct Better {
    pub program: Program,
    pub found: Found,
    pub rewrites: Vec<Rewrite>,
}

/// Looks for a cheaper layout with look-ups at the owner. `most`: the most operations of the busiest site; `tried` counts
/// the programs that are laid out.
pub(super) fn improve(
    program: &Program,
    found: &Found,
    disabled: &[String],
    (wanted, most): (&SearchOptions, f64),
    tried: &mut usize,
    deadline: &dyn Fn() -> bool,
) -> Option<Better> {
    let tables = moved(program, found);
    if tables.is_empty() {
        return None;
    }
    let mut attempt = |program: &Program, found: &Found, tables: &[TensorId]| {
        if deadline() {
            return None;
        }
        let rewritten = lookup::expand(program, disabled, &|id| tables.contains(&id))?;
        *tried += 1;
        let cheaper = SearchOptions {
            ceiling: found.price.under(&wanted.objective),
            ..wanted.clone()
        };
        let next = search::layout(&rewritten.program, &cheaper, deadline).ok()?;
        let cheaper = next.price.compare(&found.price, &wanted.objective) == Ordering::Less;
        let load = next.price.load - copying(&rewritten.program, &next);
        let floats = [&next, found].map(|found| found.price.transfer);
        (cheaper && load <= most).then(|| Better {
            rewrites: rewritten
                .rules
                .iter()
                .map(|rule| priced(rule, floats))
                .collect(),
            program: rewritten.program,
            found: next,
        })
    };
    if let Some(better) = attempt(program, found, &tables) {
        return Some(better);
    }
    if tables.len() == 1 {
        return None;
    }
    // A table that is not looked up at the owner keeps its name, but not its number.
    let names: Vec<String> = tables
        .iter()
        .map(|id| program.tensor(*id).name.clone())
        .collect();
    let mut best: Option<Better> = None;
    for name in names.iter().take(MOST) {
        let (program, found) = match &best {
            Some(best) => (&best.program, &best.found),
            None => (program, found),
        };
        let numbered = (0..).map(TensorId).zip(&program.tensors);
        let table: Vec<TensorId> = numbered
            .filter(|(_, tensor)| tensor.name == *name)
            .map(|(id, _)| id)
            .collect();
        if let Some(mut better) = attempt(program, found, &table) {
            let before = best.take().map_or(vec![], |best| best.rewrites);
            better.rewrites.splice(0..0, before);
            best = Some(better);
        }
    }
    best
}

/// A rewrite, with the floats that the program transfers with it and without it.
fn priced(rule: &RuleUse, [with, without]: [f64; 2]) -> Rewrite {
    let mut rewrite = Rewrite::from(rule);
    rewrite.after += &format!("  // {with} floats in all, {without} where the table moves");
    rewrite
}

/// The operations that a layout states of look-ups: they compute nothing, and the reads that they replace were counted as
/// nothing.
fn copying(program: &Program, found: &Found) -> f64 {
    let copies = |tensor: &Tensor| match &tensor.definition {
        Definition::Statement { kernel, .. } => {
            let reduced = kernel.indices.len() - kernel.output_rank as usize;
            reduced > 0 && kernel.looked_up().len() == reduced
        }
        _ => false,
    };
    let loads = program.tensors.iter().zip(&found.price.loads);
    loads
        .filter(|(tensor, _)| copies(tensor))
        .map(|(_, load)| load)
        .sum()
}

/// The tables that could be looked up at the owner, and that a layout moves.
fn moved(program: &Program, found: &Found) -> Vec<TensorId> {
    let mut tables = lookup::tables(program);
    tables.retain(|table| {
        let mut conversions = found.price.conversions.iter();
        conversions.any(|conversion| conversion.tensor == *table)
    });
    tables
}
