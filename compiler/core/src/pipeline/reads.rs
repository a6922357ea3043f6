//! Reads that keep a table whole, written in another way, where a layout moves anything.
//!
//! A read at positions that data say, or that go around an end, needs its table whole along the dimensions that it looks at, and so do a
//! running reduction along the dimension that it runs and a search for the largest values: either the table moves, or it rests where others pay for it. The program is laid out again with these reads in the other form; the
//! cheaper layout is taken. Must not know how reads are written.
//!
//! ```text
//! x moves, 400000000 floats   =>   tok and the rows that are found move, 640 floats
//! ```

use super::layouts::Layouts;
use super::report::Rewrite;
use crate::einsum::{Definition, Program, Tensor, TensorId};
use crate::rules::{Expand, RuleUse, lookup, running, topk_parts, wrapped};
use crate::search::Found;
use crate::search::problem::Problem;
use std::cmp::Ordering;

/// Most tables that are tried one by one where they are no gain together.
const MOST: usize = 4;

/// Rules that write the reads of tables in another way.
pub(super) struct Family {
    /// The tables that have such reads.
    tables: fn(&Program) -> Vec<TensorId>,
    /// The program with the reads of some tables written in the other way.
    expand: Expand,
    /// The operations of the busiest site that a layout states of the new reads alone: of the program before, and of the new one.
    added: fn(&Program, &Program, &Found) -> f64,
}

/// Every family, in the order in which they are tried.
pub(super) const FAMILIES: [Family; 4] = [
    Family {
        tables: topk_parts::tables,
        expand: topk_parts::expand,
        added: choosing,
    },
    Family {
        tables: lookup::tables,
        expand: lookup::expand,
        added: copying,
    },
    Family {
        tables: wrapped::tables,
        expand: wrapped::expand,
        added: choosing,
    },
    Family {
        tables: running::tables,
        expand: running::expand,
        added: choosing,
    },
];

/// A program whose reads are written in another way, and its layout.
pub(super) struct Better {
    pub program: Program,
    pub found: Found,
    pub rewrites: Vec<Rewrite>,
}

impl Family {
    /// Looks for a cheaper layout of the program with other reads. `most`: the most operations of the busiest site; `tried` counts
    /// the programs that are laid out.
    pub(super) fn improve(
        &self,
        (program, found): (&Program, &Found),
        disabled: &[String],
        (layouts, most): (&Layouts<'_>, f64),
        tried: &mut usize,
    ) -> Option<Better> {
        let tables = (self.tables)(program);
        if tables.is_empty() || found.price.transfer == 0.0 {
            return None;
        }
        let mut attempt = |program: &Program, found: &Found, tables: &[TensorId]| {
            if (layouts.deadline)() {
                return None;
            }
            let rewritten = (self.expand)(program, disabled, &|id| tables.contains(&id))?;
            *tried += 1;
            let next = layouts.next(&rewritten.program, Some(found)).ok()?;
            let objective = &layouts.wanted.objective;
            let cheaper = next.price.compare(&found.price, objective) == Ordering::Less;
            let load = next.price.load - (self.added)(program, &rewritten.program, &next);
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
        // One by one, those that move. A table whose reads stay keeps its name, but not its number.
        let conversions = &found.price.conversions;
        let moves = |table: &&TensorId| conversions.iter().any(|moved| moved.tensor == **table);
        let moved = tables.iter().filter(moves);
        let names: Vec<String> = moved.map(|id| program.tensor(*id).name.clone()).collect();
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
}

/// A rewrite, with the floats that the program transfers with it and without it.
fn priced(rule: &RuleUse, [with, without]: [f64; 2]) -> Rewrite {
    let mut rewrite = Rewrite::from(rule);
    rewrite.after += &format!("  // {with} floats in all, {without} without it");
    rewrite
}

/// The operations that a layout states of look-ups: they compute nothing, and the reads that they replace were counted as
/// nothing.
fn copying(_: &Program, program: &Program, found: &Found) -> f64 {
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

/// The operations that choose between the two sides of an end, or put blocks together: the load that is there only since the program has
/// more of them.
fn choosing(before: &Program, program: &Program, found: &Found) -> f64 {
    let work = |program| Problem::new(program).total;
    found.price.load * (1.0 - work(before) / work(program)).max(0.0)
}
