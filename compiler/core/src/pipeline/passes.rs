//! The passes over a program's statements, in the order in which they run, before plans are searched for.
//!
//! Each makes other statements of some, which give the same values in less time, and is verified. Must not know sites.
//!
//! ```text
//! conditions group_positions … short, share, values_in_order written_in … select, share
//! ```

use crate::einsum::{Program, verify};
use crate::search::share::{Shared, share};
use crate::{rules, search};

/// A pass and its name, which is that of its file.
type Pass = (&'static str, fn(&Program) -> Program);

/// Passes that see each statement as it was written.
const WRITTEN: &[Pass] = &[
    ("conditions", rules::conditions::conditioned),
    ("group_positions", search::group_positions::scattered),
    ("recount", search::recount::recounted),
    ("factors", search::factors::factored),
    ("pairs", search::pairs::each_first),
    ("ranked", search::ranked::sorted),
    ("axes", search::axes::by_axis),
    ("scatters", search::scatters::summed),
    ("overlaps", search::overlaps::parted),
    ("digits", search::digits::taken),
    ("short", search::short::written),
    ("edges", search::edges::parted),
];

/// Passes that ask who reads a value; of equal values one is left before them.
const READ: &[Pass] = &[
    ("values_in_order", search::values_in_order::sorted),
    ("written_in", search::written_in::written_in),
    ("row_order", search::row_order::rows_together),
    ("memory_order", search::memory_order::in_memory_order),
    ("repeats", search::repeats::once),
    ("select", |program| {
        search::select::select(program).settled()
    }),
];

/// Returns the program that plans are searched for, or which pass gave what does not verify.
pub(super) fn run(program: &Program) -> Result<Shared, String> {
    let named = share(&after(WRITTEN, program.clone())?);
    let shared = share(&after(READ, named.program)?);
    verified("share", &shared.program)?;
    Ok(Shared {
        // Outputs keep the names that they had before any became one tensor.
        output_names: named.output_names,
        ..shared
    })
}

fn after(passes: &[Pass], program: Program) -> Result<Program, String> {
    passes.iter().try_fold(program, |program, (name, pass)| {
        let program = pass(&program);
        verified(name, &program)?;
        Ok(program)
    })
}

fn verified(pass: &str, program: &Program) -> Result<(), String> {
    verify::verify(program).map_err(|what| format!("{pass}: {what}"))
}
