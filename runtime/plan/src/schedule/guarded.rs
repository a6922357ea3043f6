//! Reductions of the points at which a guard holds: scatters, look-ups and scans.
//!
//! Must not know how a loop is carried out.
//!
//! ```text
//! [v: 1000 | n: 50] sum a0[n] if a1[n] == v   ->   scatter to v
//! [n: 50 | v: 1000] max a0[v] if v == a1[n]   ->   look-up of v
//! [n: 4 | m: 4] sum a0[m] if m <= n           ->   scan of m along n
//! [n: 4 | m: 4] sum a0[m] if m > n            ->   scan of m against n
//! ```

use super::Scan;
use super::facts::Facts;
use super::reason::Reason;
use crate::{DType, IndexId, Reduction};

/// The output indices that the guard gives a value.
pub(super) fn scatter(facts: &Facts<'_>) -> Result<Vec<IndexId>, Reason> {
    let kernel = facts.kernel;
    use Reduction as R;
    if !matches!(kernel.reduction, Some(R::Sum | R::Prod | R::Max | R::Min))
        || facts.value() == DType::Bool
    {
        return Err(Reason::of("what is reduced needs more than one number"));
    }
    let indices = kernel.scattered();
    match indices.is_empty() {
        true => Err(Reason::of("the guard gives no output index a value")),
        false => Ok(indices),
    }
}

/// The reduced indices that the guard gives a value for each value of the others.
pub(super) fn lookup(facts: &Facts<'_>) -> Result<Vec<IndexId>, Reason> {
    let indices = facts.kernel.looked_up();
    match indices.is_empty() {
        true => Err(Reason::of("the guard gives no reduced index a value")),
        false => Ok(indices),
    }
}

/// The indices of which the guard compares a reduced with an output one.
pub(super) fn scan(facts: &Facts<'_>) -> Result<Scan, Reason> {
    let kernel = facts.kernel;
    let scan = kernel.compared().ok_or(Reason::of(
        "the guard compares no reduced with an output index",
    ))?;
    match kernel.scanned() {
        None => Err(Reason::of("what is chosen is a number of several indices")),
        Some(_) => Ok(scan),
    }
}
