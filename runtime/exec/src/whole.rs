//! Loops of small steps, whose rounds the device makes in one piece.
//!
//! The round with a fault is left to be made step by step, which finds out what is wrong. Must not know what a round computes.
//!
//! ```text
//! repeat b0 t < 1000, made 0   ->   states, made 1000        fault in round 417   ->   states before it, made 417
//! ```

use crate::error::RunError;
use crate::schedule::WholeRounds;
use crate::store::Name;
use crate::walk::Walker;
use ein_device::Buffer;
use ein_plan::BlockId;
use ein_plan::small_rounds::Ended;

impl Walker<'_> {
    /// Makes rounds of a loop until there are `most`, as far as the device makes them in one piece and nobody looks at the values of steps; whether
    /// the loop has ended before. Their time is noted as that of the first value that is had behind the loop.
    pub fn whole_rounds(
        &mut self,
        block: BlockId,
        most: u64,
        made: &mut u64,
    ) -> Result<bool, RunError> {
        let schedule = self.schedule;
        let Some(whole) = &schedule.whole[block.0 as usize] else {
            return Ok(false);
        };
        if self.failure.is_some() || self.looking || self.options.check_nan {
            return Ok(false);
        }
        let states = (0..whole.rounds.body.states.len() as u32).map(|n| Name::State(block, n));
        let collected = whole.collected.iter().map(|n| Name::Collected(block, *n));
        let (states, collected): (Vec<Name>, Vec<Name>) = (states.collect(), collected.collect());
        let given = whole.rounds.given.iter();
        let given = given.map(|(relation, _)| Name::from(*relation));
        let carried = states.iter().chain(&collected).copied();
        // A site that takes no part has none of them.
        if !given.chain(carried).all(|name| self.store.has(name)) {
            return Ok(false);
        }
        let began = self.recorder.and_then(|(recorder, _)| recorder.begins());
        let mut own = self.buffers(&states)?;
        let mut rooms = self.buffers(&collected)?;
        let given = self.given(whole)?;
        let now = whole
            .prepared
            .run(&given, &mut own, &mut rooms, (*made, most));
        *made = now.rounds;
        for ((inner, _), made) in whole.rounds.inner.iter().zip(now.inner) {
            self.made[inner.0 as usize] += made;
        }
        for (name, buffer) in states
            .into_iter()
            .chain(collected)
            .zip(own.into_iter().chain(rooms))
        {
            let tuples = [(vec![], vec![buffer])];
            self.store.insert(name, tuples.into());
        }
        self.note(whole.timed, began);
        Ok(now.ended == Ended::Until)
    }

    /// The buffers that are held under these names, one each, for good.
    fn buffers(&mut self, names: &[Name]) -> Result<Vec<Buffer>, RunError> {
        let buffers = names.iter().map(|name| {
            let tuples = self.store.give(*name).unwrap_or_default();
            let first = tuples.into_values().flatten().next();
            first.ok_or_else(|| RunError::internal("a loop does not have what it carries"))
        });
        buffers.collect()
    }

    fn given(&self, whole: &WholeRounds) -> Result<Vec<&Buffer>, RunError> {
        let given = whole.rounds.given.iter().map(|(relation, _)| {
            let tuples = self.tuples(*relation)?;
            let first = tuples.values().flatten().next();
            first.ok_or_else(|| RunError::internal(format!("r{} has no tuple", relation.0)))
        });
        given.collect()
    }
}
