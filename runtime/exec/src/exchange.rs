//! Exchanges: movements that are one message for each pair of sites, and those that steps are taken beside.
//!
//! Must not know which movements those are, nor transports.
//!
//! ```text
//! exchange r9, r14 until r16:   begin [r9, r14]   step 15   step 16   end, r9 and r14 are there, free what step 16 frees
//! ```

use crate::error::{ErrorKind, RunError};
use crate::movement::{Begun, Parcels, parcels};
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_device::BufferType;
use ein_plan::Operation;
use std::time::Instant;

impl Walker<'_> {
    /// Sends what the members of an exchange send.
    pub fn begin_exchange(&mut self, number: usize) -> Result<(), RunError> {
        let plan = self.plan;
        let exchange = &plan.exchanges[number];
        let last = exchange.last().0 as usize;
        let began = self.recorder.and_then(|(recorder, _)| recorder.begins());
        let first = exchange.members[0].0 as usize;
        self.enter(first, exchange.members.len())?;
        let comm = *self.comm.inner();
        let begun = self.posted(number).map_err(|error| {
            if error.kind != ErrorKind::Lost {
                // The others wait for what this site cannot send.
                comm.abort(&error.message);
            }
            self.located(error, last)
        })?;
        self.begun.push(Begun { began, ..begun });
        Ok(())
    }

    fn posted(&self, number: usize) -> Result<Begun, RunError> {
        let plan = self.plan;
        let sites = self.comm.sites() as usize;
        let mut outgoing = vec![vec![]; sites];
        let mut incoming: Vec<Vec<BufferType>> = vec![vec![]; sites];
        let mut members = vec![];
        for member in &plan.exchanges[number].members {
            let step = plan.step(*member);
            let inputs = step.operation.inputs();
            let input = inputs
                .first()
                .ok_or_else(|| RunError::internal("a local step moves nothing"))?;
            let (from, tuples) = (plan.kind(*input), self.tuples(*input)?);
            let own = match &step.operation {
                Operation::Window { .. } => {
                    let places = (&self.comm as &dyn Communicator, &*self.options.device);
                    Parcels::of_windows(places, &plan.mesh, from, &step.kind, tuples)?
                }
                _ => parcels(&self.comm, &plan.mesh, from, &step.kind, tuples)?,
            };
            self.comm.begin(member.0 as usize);
            self.comm.count(&own.outgoing);
            members.push((own.incoming.iter().map(Vec::len).collect(), own.place));
            for (all, own) in outgoing.iter_mut().zip(own.outgoing) {
                all.extend(own);
            }
            for (all, own) in incoming.iter_mut().zip(own.incoming) {
                all.extend(own);
            }
        }
        let ticket = self.comm.inner().begin(outgoing, &incoming)?;
        Ok(Begun {
            number,
            ticket,
            members,
            began: None,
        })
    }

    /// Waits for the exchanges that end with a step, keeps what has arrived, and frees what that step frees.
    pub fn end_exchanges(&mut self, step: usize) -> Result<(), RunError> {
        let plan = self.plan;
        let ends = |begun: &Begun| plan.exchanges[begun.number].until.0 as usize == step;
        let (ended, others) = std::mem::take(&mut self.begun).into_iter().partition(ends);
        self.begun = others;
        let ended: Vec<Begun> = ended;
        for begun in ended {
            self.end_exchange(begun)?;
        }
        if self.failure.is_none() {
            self.free_all(&plan.steps[step].frees);
        }
        Ok(())
    }

    fn end_exchange(&mut self, begun: Begun) -> Result<(), RunError> {
        let plan = self.plan;
        let exchange = &plan.exchanges[begun.number];
        let (first, last) = (exchange.members[0].0 as usize, exchange.last().0 as usize);
        self.waits_for(first, exchange.members.len());
        // What is computed meanwhile is noted by itself; what is left is the wait.
        let began = match exchange.until == exchange.last() {
            true => begun.began,
            false => begun.began.map(|_| Instant::now()),
        };
        let arrived = self.comm.inner().end(begun.ticket);
        let arrived = arrived.map_err(|error| self.located(error.into(), last))?;
        let mut arrived: Vec<_> = arrived.into_iter().map(Vec::into_iter).collect();
        for (member, (counts, place)) in exchange.members.iter().zip(begun.members) {
            let step = plan.step(*member);
            let parts = arrived.iter_mut().zip(counts);
            let own = parts.map(|(all, count)| all.by_ref().take(count).collect());
            let tuples = place.filled(&step.kind, own.collect(), &*self.options.device);
            if self.failure.is_none() {
                self.hold(member.0 as usize, step, tuples);
            }
        }
        self.note(last, began);
        Ok(())
    }
}
