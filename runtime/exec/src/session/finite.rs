//! What becomes of a loss, or of params, that are not finite: the run ends, and says which tensor went bad.
//!
//! The loss is looked at in every step, params when they are to be kept: what a checkpoint holds can be continued. Must not know what is
//! trained.
//!
//! ```text
//! the loss is NaN at step 17 (epoch 2): `h` is the first tensor that holds a value that is not finite
//! ```

use super::feed::Batch;
use super::{Carried, CarriedKind, Runner};
use crate::error::{ErrorKind, RunError};
use crate::meet::{agree, share_numbers};
use ein_array::{Array, Data};
use ein_plan::Plan;
use half::{bf16, f16};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

const NOT_FINITE: &str = "is the first tensor that holds a value that is not finite";
const LOOK: &str = "a gradient is not finite: look at roots, powers and logarithms of 0, and at what is divided by it";

impl Runner<'_> {
    /// Stops the run at every site if the loss, known at site 0, is not finite: the same step is walked again, and the first tensor that is
    /// not finite named, of those that the loss depends on. `known`: whether all sites know that it is finite.
    pub(super) fn finite(
        &mut self,
        plan: &Arc<Plan>,
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
                    let what = format!("{message}: `{}` {NOT_FINITE}", found.tensor);
                    error(what).in_step(plan, first as usize).help(help)
                }
            },
        )
    }

    /// Stops the run at every site if steps have made a param or a state NaN, or a param or a state of a module infinite: what is written
    /// after step `step` of a block, from 0, would replace what is good. Minus infinity in a state of a module is left alone, which masks and
    /// maxima hold, and so are infinite states of optimizers, which rules may begin with.
    pub(super) fn sound(&self, number: usize, step: u64) -> Result<(), RunError> {
        let failure = self.unsound(|_| true).map(|name| {
            let block = self.session.blocks.get(number);
            let epoch = block.map_or(0, |block| step / block.steps_per_epoch.max(1)) + 1;
            let of = match self.session.blocks.len() {
                1 => "",
                _ => " of its `train` block",
            };
            let message = format!(
                "`{name}` {NOT_FINITE} after step {} (epoch {epoch}){of}, whose loss is finite: no checkpoint is written",
                step + 1
            );
            let help = format!("{LOOK}; checkpoints of earlier steps are left as they are");
            RunError::new("E0801", ErrorKind::Program, message).help(help)
        });
        agree(self.comm, failure)
    }

    /// The same for the file that the model is exported to: nothing good there is replaced.
    pub(super) fn exports(&self, path: &Path) -> Result<(), RunError> {
        let failure = self.unsound(|carried| carried.kind.is_model()).map(|name| {
            let path = path.display();
            let message =
                format!("`{name}` {NOT_FINITE} after the last step: {path} is not written");
            RunError::new("E0801", ErrorKind::Output, message).help(LOOK)
        });
        agree(self.comm, failure)
    }

    /// The first of the wanted params and states that steps have made and that holds what none should.
    fn unsound(&self, wanted: impl Fn(&Carried) -> bool) -> Option<&str> {
        let plans = self.session.all_programs();
        let outputs = plans.flat_map(|plan| plan.outputs.iter());
        let made: BTreeSet<&str> = outputs.filter_map(|o| o.replaces.as_deref()).collect();
        let mut bad = self.session.carried.iter().filter(|(name, carried)| {
            let resident = self.residents.get(name);
            let arrays = resident.map(|resident| resident.tuples.values().flatten());
            carried.kind.is_saved()
                && wanted(carried)
                && made.contains(name.as_str())
                && arrays.is_some_and(|mut all| {
                    all.any(|buffer| {
                        !is_sound(
                            &buffer.to_host(),
                            (carried.kind.is_model(), carried.kind == CarriedKind::Param),
                        )
                    })
                })
        });
        bad.next().map(|(name, _)| name.as_str())
    }
}

/// Whether no value is NaN; and, of what the model consists of, none is infinity, nor minus infinity in a param.
fn is_sound(array: &Array, (model, param): (bool, bool)) -> bool {
    // A part at a time without a branch for each value: nearly always all are looked at.
    macro_rules! all {
        ($values:expr, $most:expr) => {{
            let most = $most;
            $values.chunks(4096).all(|part| {
                part.iter().fold(true, |all, value| {
                    all & !value.is_nan()
                        & (!model | (*value != most))
                        & (!param | (*value != -most))
                })
            })
        }};
    }
    match array.data() {
        Data::F16(values) => all!(values, f16::INFINITY),
        Data::BF16(values) => all!(values, bf16::INFINITY),
        Data::F32(values) => all!(values, f32::INFINITY),
        Data::F64(values) => all!(values, f64::INFINITY),
        Data::U8(_) | Data::U16(_) | Data::U32(_) | Data::U64(_) | Data::I8(_) | Data::I16(_) => {
            true
        }
        Data::I32(_) | Data::I64(_) | Data::Bool(_) => true,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_value_among_many_is_found() {
        for at in [0, 1, 4095, 4096, 9999] {
            let sound = |value: f32, (model, param): (bool, bool)| {
                let mut values = vec![1.0; 10_000];
                values[at] = value;
                let halves = values.iter().map(|value| f16::from_f32(*value)).collect();
                let brains = values.iter().map(|value| bf16::from_f32(*value)).collect();
                let doubles = values.iter().map(|value| f64::from(*value)).collect();
                let all = [
                    Data::F32(values),
                    Data::F64(doubles),
                    Data::F16(halves),
                    Data::BF16(brains),
                ]
                .map(|data| is_sound(&Array::new(vec![100, 100], data).unwrap(), (model, param)));
                assert!(all.iter().all(|one| *one == all[0]), "{value}: {all:?}");
                all[0]
            };
            let (param, running, state) = ((true, true), (true, false), (false, false));
            for kind in [param, running, state] {
                assert!(sound(-2.0, kind) && !sound(f32::NAN, kind));
                assert_eq!(sound(f32::INFINITY, kind), kind == state);
                assert_eq!(sound(f32::NEG_INFINITY, kind), kind != param);
            }
        }
    }
}
