//! Records of a training: the events of a session, written wherever the user wants them.
//!
//! Must not know how steps are run, or the formats of records.
//!
//! ```text
//! Event::Step { block 0, step 68, loss 0.41, … }   ->   record 69, epoch 3   ->   progress line, --json-lines, --csv, …
//! ```

use crate::settings::Settings;
use crate::{exit, render};
use ein_exec::RunError;
use ein_exec::session::{Event, Session};
use ein_records::{Destinations, Extent, Progress, Record, RecordError, Recorder, Show};
use einc_diag::Diagnostic;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Who is told of the events of a session, at site 0.
#[derive(Debug)]
pub struct Records {
    destinations: Destinations,
    show: Show,
    /// By block: steps of an epoch, and the epochs before it.
    blocks: Vec<(u64, u64)>,
    extent: Extent,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    recorder: Option<Recorder>,
    examples: u64,
    /// The error of a record that could not be written.
    lost: Option<RecordError>,
}

impl Records {
    /// Nothing is told yet.
    pub fn new(session: &Session, settings: &Settings) -> Records {
        let mut blocks = vec![];
        let (mut steps, mut epochs) = (0, 0);
        for block in &session.blocks {
            let per_epoch = block.steps_per_epoch.max(1);
            blocks.push((per_epoch, epochs));
            epochs += block.steps.div_ceil(per_epoch);
            steps += block.steps;
        }
        Records {
            destinations: settings.records.clone(),
            show: settings.progress,
            blocks,
            extent: Extent {
                steps,
                // Where every step is an epoch, nothing is batched.
                epochs: (epochs < steps).then_some(epochs),
                made: 0,
            },
            state: Mutex::default(),
        }
    }

    /// Tells of an event.
    ///
    /// # Errors
    /// `E0705` or `E0707` if a file for records cannot be opened, which happens at the first event.
    pub fn tell(&self, event: &Event) -> Result<(), RunError> {
        let mut state = self.state();
        match event {
            Event::Begun { resumed } => {
                let made = resumed.as_ref().map(|(_, steps)| *steps);
                let extent = Extent {
                    made: made.unwrap_or(0),
                    ..self.extent
                };
                let progress = Progress::new(self.show, extent);
                let opened = Recorder::open(&self.destinations, progress, made, SystemTime::now());
                state.recorder = Some(opened.map_err(|error| {
                    let code = if error.full { "E0707" } else { "E0705" };
                    RunError::output(code, error.to_string())
                })?);
                if let Some((folder, steps)) = resumed {
                    let text = format!("continuing {} after step {steps}", folder.display());
                    state.say(&text);
                }
            }
            Event::Refused(reason) => {
                let warning =
                    Diagnostic::warning("E0709", format!("a checkpoint is left out: {reason}"));
                exit::complain(&format!("{}\n", render::text(&warning, &[])));
            }
            Event::Saved { .. } => {}
            Event::Step {
                block,
                step,
                epoch,
                made,
                rows,
                loss,
                rate,
                validated,
                seconds,
            } => {
                let (per_epoch, before) = self.blocks.get(*block).copied().unwrap_or((1, 0));
                state.examples += rows;
                let record = Record {
                    epoch: before + epoch + 1,
                    step: *made,
                    loss: Some(*loss),
                    rate: *rate,
                    validation: validated
                        .iter()
                        .map(|(name, value)| (column(name), *value))
                        .collect(),
                    examples: state.examples,
                    seconds: *seconds,
                    epoch_ends: (step + 1).is_multiple_of(per_epoch),
                };
                if state.lost.is_none()
                    && let Some(recorder) = &mut state.recorder
                {
                    state.lost = recorder.record(&record).err();
                }
            }
        }
        Ok(())
    }

    /// Ends the progress line and draws what is drawn at the end; says what could not be recorded.
    pub fn finish(&self) -> Result<(), RecordError> {
        let mut state = self.state();
        let finished = state.recorder.take().map_or(Ok(()), Recorder::finish);
        state.lost.take().map_or(finished, Err)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the name of a validated definition in records, where every record has some names already.
fn column(name: &str) -> String {
    match name {
        "step" | "epoch" | "loss" | "rate" | "examples" | "seconds" => format!("validation.{name}"),
        _ => name.to_owned(),
    }
}

impl State {
    fn say(&self, text: &str) {
        match &self.recorder {
            Some(recorder) => recorder.say(text),
            None => exit::complain(&format!("{text}\n")),
        }
    }
}
