//! Relations that rest between two uses: when they go to rest and come back. Must not know where they rest.
//!
//! ```text
//! step 5 to rest: r3   step 9 from rest: r3
//! ```

use crate::error::RunError;
use crate::resting::Spilled;
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_plan::RelationId;
use std::sync::atomic::Ordering;

impl Walker<'_> {
    /// Puts to rest what rests from a step on, and fetches what is needed from it on.
    pub fn rest(&mut self, number: usize) {
        self.current.store(number, Ordering::Relaxed);
        if let Err(error) = self.rested(RelationId(number as u32)) {
            self.failure = Some(self.located(error, number));
        }
    }

    fn rested(&mut self, at: RelationId) -> Result<(), RunError> {
        let plan = self.plan;
        for spill in plan.spills.iter().filter(|spill| spill.before == at) {
            let tuples = self.store.give(spill.relation.into());
            let tuples = tuples.ok_or_else(|| {
                RunError::internal(format!("r{} rests after its end", spill.relation.0))
            })?;
            self.at_rest.write(spill.relation, &tuples)?;
        }
        for spill in plan.spills.iter().filter(|spill| spill.until == at) {
            let kind = plan.kind(spill.relation);
            let keys = kind.keys_at(self.comm.site(), &plan.mesh);
            let again = !plan.is_last(spill);
            let tuples = self.at_rest.read(spill.relation, kind, keys, again)?;
            self.store.insert(spill.relation.into(), tuples);
        }
        Ok(())
    }

    /// Has what is needed from the step behind this one on fetched meanwhile.
    pub fn expect_behind(&self, number: usize) {
        for spill in &self.plan.spills {
            if spill.until.0 as usize == number + 1 {
                self.at_rest.expect_all(spill.relation);
            }
        }
    }

    /// Bytes that went to rest and came back at this site while the steps were taken.
    pub fn spilled(&self) -> Spilled {
        Spilled {
            whole: self.took,
            ..self.at_rest.spilled
        }
    }
}
