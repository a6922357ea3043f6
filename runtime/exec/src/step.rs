//! What a local step makes of the relations that are there. Must not know in what order steps are taken.
//!
//! ```text
//! step 3 join k0 (r0, r2)   source, join, fold, aggregate, concat, tile, filter, or a value of a loop
//! ```

use crate::error::RunError;
use crate::local::{self, Place};
use crate::over;
use crate::rearrange;
use crate::source;
use crate::store::Tuples;
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_plan::{Operation, RelationId, Step};

impl Walker<'_> {
    /// What a step makes; nothing if it is had under another name.
    pub fn local(&mut self, step: &Step) -> Result<Option<Tuples>, RunError> {
        if let Operation::Loop { value } = step.operation {
            return self.loop_value(step, value);
        }
        if self.plan.is_visited(step) {
            return self.stream(step);
        }
        self.compute(step).map(Some)
    }

    fn compute(&mut self, step: &Step) -> Result<Tuples, RunError> {
        match &step.operation {
            Operation::Source { name, source } => {
                let rounds: Vec<u64> = self.rounds.iter().map(|(_, round)| *round).collect();
                let place = (self.comm.site(), &self.plan.mesh);
                let next = self.plan.steps.get(step.result.0 as usize + 1);
                let list = source::list_for(source, next, self.options)?;
                let made = match self.feed {
                    Some(feed) if source.is_given() => {
                        feed.tuples(name, &step.kind, place, self.options)
                    }
                    _ => {
                        let stream = self.feed.and_then(|feed| feed.stream(name));
                        let names = (name.as_str(), stream.as_deref().unwrap_or(name));
                        source::source(names, source, &step.kind, place, &rounds, self.options)
                    }
                };
                // The list before was there until now, since it may be the same one.
                self.list = list;
                made
            }
            Operation::LocalJoin {
                inputs,
                kernel,
                ranges,
                fold,
            } => {
                let prepared = self.schedule.kernels.of(step.result);
                let join = local::Join {
                    inputs,
                    kernel: &self.plan.kernels[kernel.0 as usize],
                    ranges,
                    prepared: prepared
                        .ok_or_else(|| RunError::internal("a kernel has not been prepared"))?,
                };
                if let Some((relation, update)) = &self.schedule.updates[step.result.0 as usize] {
                    let changes = local::changes(&self.place(), &join, update, &step.kind)?;
                    return self.change(*relation, changes);
                }
                let ends = self.schedule.overwrites[step.result.0 as usize];
                if let Some((operand, relation)) = self.succeeds(step.result).or(ends)
                    && let Some((tuples, addresses)) = self.store.take(relation)
                {
                    let over = (operand as usize, tuples);
                    let made = over::join(&self.place(), &join, over, &step.kind)?;
                    self.store.forget(addresses, &made);
                    return Ok(made);
                }
                match fold {
                    None => local::join(&self.place(), &join, &step.kind),
                    Some(fold) => local::fold(&self.place(), &join, fold, &step.kind),
                }
            }
            Operation::LocalAggregate {
                input,
                keep,
                reduction,
            } => self.consumed(step, *input, |place, tuples| {
                let from = place.plan.kind(*input);
                rearrange::aggregate(place, tuples, from, keep, *reduction, &step.kind)
            }),
            Operation::LocalConcat { input, array_dim } => {
                self.consumed(step, *input, |place, tuples| {
                    let from = place.plan.kind(*input);
                    rearrange::concat(place, tuples, from, *array_dim, &step.kind)
                })
            }
            Operation::LocalTile { input, array_dim } => {
                rearrange::tile(&self.place(), *input, *array_dim, &step.kind)
            }
            Operation::LocalFilter { input, key, value } => {
                rearrange::filter(&self.place(), *input, *key, *value, &step.kind)
            }
            Operation::Broadcast { .. }
            | Operation::Shuffle { .. }
            | Operation::Window { .. }
            | Operation::Loop { .. } => Err(RunError::internal("this step makes nothing here")),
        }
    }

    /// The tuples of a relation that ends here, with these changes made where they lie.
    fn change(
        &mut self,
        relation: RelationId,
        changes: local::Changes,
    ) -> Result<Tuples, RunError> {
        let tuples = self.store.give(relation.into());
        let mut tuples = tuples
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", relation.0)))?;
        local::change(&*self.options.device, &mut tuples, changes)?;
        Ok(tuples)
    }

    /// Gives a step its input's tuples for good if this is their last use, else copies of the references.
    fn consumed(
        &mut self,
        step: &Step,
        input: RelationId,
        body: impl FnOnce(&Place<'_>, Tuples) -> Result<Tuples, RunError>,
    ) -> Result<Tuples, RunError> {
        let last = step.frees.contains(&input);
        if !last {
            let tuples = self.tuples(input)?.clone();
            return body(&self.place(), tuples);
        }
        let taken = self.store.take(input);
        let (tuples, addresses) = taken
            .ok_or_else(|| RunError::internal(format!("r{} is used after its end", input.0)))?;
        let made = body(&self.place(), tuples)?;
        self.store.forget(addresses, &made);
        Ok(made)
    }
}
