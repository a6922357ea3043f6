//! Plans with large products in panels, where no plan of whole products fits in `--memory`.
//!
//! Panels become narrower until a plan fits. Must not know how a product is written in panels, or how a layout is found.
//!
//! ```text
//! C[i,j] = A[i,k] * B[k,j], 40 GB each, 1000 sites of 300 MB: panels of 75 MB at a site, of 19 MB, of 5 MB
//! ```

use super::closest::closest;
use super::report::Rewrite;
use super::{Compiled, Options, Stop};
use crate::rules;
use crate::search::share::Shared;

/// Which parts of the memory of a site the panels of a product may take, the largest first.
const PARTS: [u64; 3] = [4, 16, 64];

/// The plan of the program in the widest panels for which one fits.
pub(super) fn of_products(
    shared: &Shared,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<Option<Compiled>, String> {
    let may = options.sites > 1 && !options.deterministic;
    let Some(limit) = options.criteria.memory.filter(|_| may) else {
        return Ok(None);
    };
    for part in PARTS {
        let disabled = &options.criteria.disabled_rules;
        let found = rules::panels::expand(&shared.program, disabled, (options.sites, limit / part));
        let Some(found) = found.filter(|_| !deadline()) else {
            continue;
        };
        let shared = Shared {
            program: found.program,
            output_names: shared.output_names.clone(),
        };
        match closest(&shared, options, deadline) {
            Ok(mut compiled) => {
                let rewrites = found.rules.iter().map(Rewrite::from);
                compiled.chosen.rewrites.splice(0..0, rewrites);
                return Ok(Some(compiled));
            }
            Err(Stop::Internal(what)) => return Err(what),
            Err(Stop::NoPlan(..) | Stop::NoLayout(..) | Stop::TooLarge(..)) => {}
        }
    }
    Ok(None)
}
