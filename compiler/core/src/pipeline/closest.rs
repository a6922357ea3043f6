//! A layout for a little less memory than there is, or a little more, whose plan fits.
//!
//! Must not know what is done where there is none.
//!
//! ```text
//! 100 MB: a layout for 100 MB has a plan of 104 MB, one for 96 MB a plan of 99 MB   ->   that one
//! ```

use super::{Compiled, Options, Stop, planned};
use crate::search::share::Shared;

/// Layouts for less memory than there is, or for more, that are looked at, and those of a program of more tensors than [`MANY`], which take long.
const TRIED: usize = 4;
const TRIED_OF_MANY: usize = 1;
const MANY: usize = 300;

/// The plan of a layout for the memory that there is, for less, or for more: a plan holds some values that no layout counts, those that a loop
/// begins and goes on with among them, and not all that it counts at once. How much is found by halves, between too little for any layout and
/// too much for its plan. A deterministic layout is what it is, whatever the memory.
pub(super) fn closest(
    shared: &Shared,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Result<Compiled, Stop> {
    let first = planned(shared, options, options.criteria.memory, deadline);
    let Some(limit) = options.criteria.memory.filter(|_| !options.deterministic) else {
        return first;
    };
    let (mut none, mut large, mut tried) = match &first {
        Err(Stop::TooLarge(_, missing, _)) => (0, limit, limit.saturating_sub(*missing)),
        Err(Stop::NoLayout(_, missing, _)) => (
            limit,
            limit.saturating_mul(2),
            limit.saturating_add(*missing),
        ),
        _ => return first,
    };
    let tries = match shared.program.tensors.len() > MANY {
        true => TRIED_OF_MANY,
        false => TRIED,
    };
    for _ in 0..tries {
        if none >= large || deadline() {
            break;
        }
        match planned(shared, options, Some(tried), deadline) {
            Err(Stop::NoPlan(..) | Stop::NoLayout(..)) => none = none.max(tried),
            Err(Stop::TooLarge(..)) => large = large.min(tried),
            other => return other,
        }
        tried = none.midpoint(large);
    }
    first
}
