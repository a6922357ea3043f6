//! Steps at which sites talk, one at a time: what moves is made, kept, and noted. Must not know transports, nor which tuples go where.
//!
//! ```text
//! step 4 r4 = broadcast r3   no site has failed; tuples go; r4 is kept, r3 freed
//! ```

use crate::error::{ErrorKind, RunError};
use crate::movement;
use crate::store::Tuples;
use crate::walk::Walker;
use ein_comm::Communicator;
use ein_plan::{Operation, Step};

impl Walker<'_> {
    /// Takes a step at which sites talk.
    pub fn movement(&mut self, number: usize) -> Result<(), RunError> {
        let plan = self.plan;
        let step = &plan.steps[number];
        let began = self.recorder.and_then(|(recorder, _)| recorder.begins());
        self.enter(number, 1)?;
        self.comm.begin(number);
        let comm = *self.comm.inner();
        let streamed = plan.moved_in(step).filter(|_| plan.is_visited(step));
        let moved = match streamed {
            Some(input) => self.stream_movement(step, input),
            None => self.moved(step).map(Some),
        };
        let tuples = moved.map_err(|error| {
            if error.kind != ErrorKind::Lost {
                // The others wait for what this site cannot send.
                comm.abort(&error.message);
            }
            self.located(error, number)
        })?;
        match tuples {
            Some(tuples) => self.keep(number, step, tuples),
            None => self.free(step),
        }
        self.note(number, began);
        Ok(())
    }

    fn moved(&self, step: &Step) -> Result<Tuples, RunError> {
        let places = (&self.comm as &dyn Communicator, &*self.options.device);
        let mesh = &self.plan.mesh;
        match &step.operation {
            Operation::Broadcast { input } | Operation::Shuffle { input } => {
                let (from, tuples) = (self.plan.kind(*input), self.tuples(*input)?);
                movement::movement(places, mesh, from, &step.kind, tuples)
            }
            Operation::Window { input } => {
                let (from, tuples) = (self.plan.kind(*input), self.tuples(*input)?);
                movement::exchanged(places, mesh, (from, true), &step.kind, tuples)
            }
            _ => Err(RunError::internal("a local step moves nothing")),
        }
    }
}
