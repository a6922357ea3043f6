//! What a training carries, handed to the step that writes over it.
//!
//! What the loss depends on is handed over once all sites know that the loss is finite. Must not know what becomes of it behind the step.
//!
//! ```text
//! step 7 loss 0.31 at all sites   step 9 W_next over W
//! ```

use crate::RunError;
use crate::local::Old;
use crate::store::Taken;
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_plan::{RelationId, Step, Succession, Sweep};
use rayon::ThreadPool;
use std::collections::BTreeMap;

impl Walker<'_> {
    /// Learns whether the loss is finite, the same at all sites; what fails here fails again at its turn.
    pub(crate) fn settle(&mut self, pool: &ThreadPool) -> Result<(), RunError> {
        let Some(settled) = self.schedule.settled.as_ref().filter(|_| !self.looking) else {
            return Ok(());
        };
        let plan = self.plan;
        let mut known = self.failure.is_none();
        for relation in &settled.ahead {
            let step: &Step = plan.step(*relation);
            let made = match known {
                true => pool.install(|| self.local(step)),
                false => Ok(None),
            };
            match made {
                Ok(Some(tuples)) => {
                    self.hold(relation.0 as usize, step, tuples);
                    self.ahead.insert(relation.0 as usize);
                    known &= self.failure.is_none();
                }
                Ok(None) | Err(_) => known = false,
            }
        }
        let loss = self.store.get(settled.loss);
        let arrays = || {
            loss.into_iter()
                .flat_map(|tuples| tuples.values().flatten())
        };
        let finite =
            |data: &ein_array::Data| (0..data.len()).all(|at| data.get(at).as_f64().is_finite());
        known &= loss.is_some() && arrays().all(|buffer| finite(buffer.to_host().data()));
        let unknown = (!known).then(String::new);
        self.settled = self.comm.inner().agree(unknown)?.is_none();
        Ok(())
    }

    /// What a step that is in no sweep is written over, and its operand.
    pub(crate) fn succeeds(&self, next: RelationId) -> Option<(u32, RelationId)> {
        let succession = self.schedule.successions.get(&next)?;
        let operand = succession.operand?;
        let may = self.may_take(succession);
        may.then_some((operand, succession.old))
    }

    /// Takes what members of a sweep are written over from what is held; it counts until each member is there.
    pub(crate) fn succeeded(&mut self, sweep: &Sweep) -> (Old, BTreeMap<RelationId, Taken>) {
        let (mut old, mut counted) = (vec![], BTreeMap::new());
        for member in &sweep.members {
            let succession = self.schedule.successions.get(member);
            let succession = succession.filter(|succession| self.may_take(succession));
            let ending = self.schedule.overwrites_in.get(member).copied();
            if let Some(relation) = succession.map(|s| s.old).or(ending)
                && let Some((tuples, addresses)) = self.store.take(relation)
            {
                old.push((*member, relation, tuples));
                counted.insert(*member, addresses);
            }
        }
        (old, counted)
    }

    fn may_take(&self, succession: &Succession) -> bool {
        !self.looking && (self.settled || !succession.waits)
    }
}
