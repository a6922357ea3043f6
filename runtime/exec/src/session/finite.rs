//! What becomes of a loss that is not finite: the run ends, and says which tensor went bad.
//!
//! Must not know what is trained.
//!
//! ```text
//! the loss is NaN at step 17 (epoch 2): `h` is the first tensor that holds a value that is not finite
//! ```

use super::Runner;
use super::feed::Batch;
use crate::error::{ErrorKind, RunError};
use crate::meet::share_numbers;
use ein_plan::Plan;

impl Runner<'_> {
    /// Stops the run at every site if the loss, known at site 0, is not finite: the same step is walked again, and the first tensor that is
    /// not finite named, of those that the loss depends on. `known`: whether all sites know that it is finite.
    pub(super) fn finite(
        &mut self,
        plan: &Plan,
        batch: &Batch<'_>,
        (loss, known): (f64, bool),
    ) -> Result<(), RunError> {
        if known {
            return Ok(());
        }
        let bad = (self.comm.site() == 0 && !loss.is_finite()).then(|| loss.to_string());
        let Some((_, loss)) = self.comm.agree(bad)? else {
            return Ok(());
        };
        let walked = self.walk(plan, Some(batch), true)?;
        let none = i64::MAX;
        let mine = walked.faulty.map_or(none, |step| step as i64);
        let all = share_numbers(self.comm, vec![mine])?;
        let first = all.iter().map(|numbers| numbers[0]).min().unwrap_or(none);
        // Counted from 1, as the progress and the records count them.
        let (step, epoch) = (batch.step + 1, batch.epoch + 1);
        let of = match self.session.blocks.len() {
            1 => "",
            _ => " of its `train` block",
        };
        let message = format!("the loss is {loss} at step {step} (epoch {epoch}){of}");
        let error = |message| RunError::new("E0801", ErrorKind::Program, message);
        let help = "lower the learning rate, clip the gradients (`clip: 1`), or look at the data of that step";
        Err(
            match usize::try_from(first)
                .ok()
                .and_then(|at| plan.steps.get(at))
            {
                None => error(message).help(help),
                Some(found) => {
                    let what = format!(
                        "{message}: `{}` is the first tensor that holds a value that is not finite",
                        found.tensor
                    );
                    error(what).in_step(plan, first as usize).help(help)
                }
            },
        )
    }
}
