//! The passes over a program's statements, in the order in which they run, before plans are searched for.
//!
//! Each makes other statements of some, which give the same values in less time; what comes of all of them is verified. Must not know sites.
//!
//! ```text
//! select single_points … edges, share, values_in_order written_in … select, share
//! ```

use crate::einsum::{Program, verify};
use crate::search::share::{Shared, share};
use crate::{rules, search};

/// A pass.
type Pass = fn(&Program) -> Program;

/// Passes that see each statement as it was written.
const WRITTEN: &[Pass] = &[
    search::constants::read,
    |program| search::select::select(program).settled(),
    search::single_points::named,
    search::diagonals::named,
    search::invariant::once,
    search::named_conditions::written,
    search::one_hot::chosen,
    search::masked_products::chosen,
    search::truth_products::multiplied,
    search::other_points::counted,
    search::group_values::at_places,
    rules::conditions::conditioned,
    search::named_indices::read_there,
    search::group_positions::scattered,
    search::recount::recounted,
    search::gathered_rows::apart,
    search::factors::factored,
    search::inner_sums::first,
    search::means::as_sums,
    search::grouped::by_one_number,
    search::pairs::each_first,
    search::bands::windowed,
    search::between::from_below,
    search::ranked::sorted,
    search::axes::by_axis,
    search::scatters::summed,
    search::overlaps::parted,
    search::weights::multiplied,
    search::digits::taken,
    search::divided::by_block,
    search::long_windows::stepped,
    search::short::written,
    search::edges::parted,
];

/// Passes that ask who reads a value; of equal values one is left before them.
const READ: &[Pass] = &[
    search::values_in_order::sorted,
    search::written_in::written_in,
    search::row_order::rows_together,
    search::memory_order::in_memory_order,
    search::repeats::once,
    |program| search::select::select(program).settled(),
];

/// Returns the program that plans are searched for, or what in it does not verify.
pub(super) fn run(program: &Program) -> Result<Shared, String> {
    let named = share(&after(WRITTEN, program));
    let shared = share(&after(READ, &named.program));
    verify::verify(&shared.program).map_err(|what| format!("einsum: {what}"))?;
    Ok(Shared {
        // Outputs keep the names that they had before any became one tensor.
        output_names: named.output_names,
        ..shared
    })
}

fn after(passes: &[Pass], program: &Program) -> Program {
    let first = program.clone();
    passes.iter().fold(first, |program, pass| pass(&program))
}
