//! What holds of streams. Everything else of a plan is verified before.
//!
//! Must not know why a relation is streamed.
//!
//! ```text
//! streams: r3 cannot lie on disk tuple by tuple
//! ```

use crate::plan::Plan;
use std::collections::BTreeSet;

/// All streams of a plan.
pub(super) fn streams(plan: &Plan) -> Result<(), String> {
    if plan.streams.is_empty() {
        return Ok(());
    }
    if !plan.streams.is_sorted_by(|a, b| a < b) {
        return Err("they do not ascend".into());
    }
    let may: BTreeSet<_> = plan.streamable().into_iter().collect();
    match plan.streams.iter().find(|relation| !may.contains(relation)) {
        None => Ok(()),
        Some(relation) => Err(format!("{relation} cannot lie on disk tuple by tuple")),
    }
}
