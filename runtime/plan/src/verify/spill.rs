//! What holds of spills. Everything else of a plan is verified before.
//!
//! Must not know why a relation rests.
//!
//! ```text
//! spills: r3 cannot rest before r5 until r9
//! ```

use crate::plan::Plan;
use std::collections::BTreeSet;

/// All spills of a plan.
pub(super) fn spills(plan: &Plan) -> Result<(), String> {
    if plan.spills.is_empty() {
        return Ok(());
    }
    if !plan.spills.is_sorted_by(|a, b| a < b) {
        return Err("they do not ascend".into());
    }
    let gaps: BTreeSet<_> = plan.gaps().into_iter().collect();
    match plan.spills.iter().find(|spill| !gaps.contains(spill)) {
        None => Ok(()),
        Some(spill) => Err(format!(
            "{} cannot rest before {} until {}",
            spill.relation, spill.before, spill.until
        )),
    }
}
