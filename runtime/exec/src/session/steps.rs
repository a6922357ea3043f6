//! The plans of the steps of one block of a training.
//!
//! Must not walk them.
//!
//! ```text
//! batch 64 of 1,000 rows   ->   plans for 64 rows and for 40
//! ```

use super::Block;
use crate::error::RunError;
use ein_plan::Plan;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The plans of a block's steps: of all sites together, or of one by itself.
#[derive(Clone, Copy)]
pub(super) struct Steps<'s> {
    pub step: &'s BTreeMap<u64, Arc<Plan>>,
    pub apply: Option<&'s Arc<Plan>>,
    /// In how many parts a batch is taken.
    pub parts: u64,
}

impl<'s> Steps<'s> {
    pub fn of(block: &'s Block) -> Steps<'s> {
        Steps {
            step: &block.step,
            apply: block.apply.as_ref(),
            parts: block.parts,
        }
    }

    /// The plan for a number of rows.
    pub fn planned(&self, rows: usize) -> Result<&'s Arc<Plan>, RunError> {
        let plan = self.step.get(&(rows as u64));
        plan.ok_or_else(|| RunError::internal(format!("there is no step for {rows} rows")))
    }
}
