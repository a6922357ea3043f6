//! Relations that rest on disk between two uses: when they go there and come back. Must not know files.
//!
//! ```text
//! step 5 to disk: r3   step 9 from disk: r3
//! ```

use crate::disk::Spilled;
use crate::error::RunError;
use crate::meet::share_numbers;
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_plan::RelationId;
use std::sync::atomic::Ordering;
use std::time::Duration;

impl Walker<'_> {
    /// Puts on disk what rests from a step on, and fetches what is needed from it on.
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
            self.disk.write(spill.relation, &tuples)?;
        }
        for spill in plan.spills.iter().filter(|spill| spill.until == at) {
            let kind = plan.kind(spill.relation);
            let keys = kind.keys_at(self.comm.site(), &plan.mesh);
            let again = !plan.is_last(spill);
            let tuples = self.disk.read(spill.relation, kind, keys, again)?;
            self.store.insert(spill.relation.into(), tuples);
        }
        Ok(())
    }

    /// Has what is needed from the step behind this one on fetched meanwhile.
    pub fn expect_behind(&self, number: usize) {
        for spill in &self.plan.spills {
            if spill.until.0 as usize == number + 1 {
                self.disk.expect_all(spill.relation);
            }
        }
    }

    /// What rested at every site; known at every site.
    pub fn spilled(&self) -> Result<Vec<Spilled>, RunError> {
        if self.plan.spills.is_empty() && self.plan.streams.is_empty() {
            return Ok(vec![]);
        }
        let own = self.disk.spilled;
        let mine = [
            own.written,
            own.read,
            nanoseconds(own.time),
            nanoseconds(self.took),
        ];
        let mine = mine.into_iter().map(|number| number as i64).collect();
        let all = share_numbers(*self.comm.inner(), mine)?;
        let of = |site: &Vec<i64>| Spilled {
            written: site[0] as u64,
            read: site[1] as u64,
            time: Duration::from_nanos(site[2] as u64),
            whole: Duration::from_nanos(site[3] as u64),
        };
        Ok(all.iter().map(of).collect())
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
