//! What a training run tells of itself: a progress line, JSON lines, CSV, TensorBoard events and learning curves; and a
//! trace of any run's steps.
//!
//! A [`Recorder`] takes one [`Record`] a step and writes it wherever it was asked to. One process of a run has one. Must not know
//! programs, plans, sites, or clocks: the time is part of a record.
//!
//! ```text
//! epoch 3/30  step 69/690  loss 0.1234  accuracy 0.9861  12.3k examples/s  0:12 left
//! ```

mod curves;
mod lines;
mod progress;
mod record;
mod tensorboard;
mod trace;

pub use progress::{Progress, Show};
pub use record::{Extent, Record};
pub use trace::{Slice, Trace};

use curves::Curves;
use lines::Lines;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tensorboard::Events;

/// A file of records cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError {
    /// The file, as the user named it.
    pub file: String,
    /// What is wrong.
    pub message: String,
    /// Whether the disk is full.
    pub full: bool,
}

impl RecordError {
    fn new(file: &Path, what: &str, error: &io::Error) -> RecordError {
        let text = error.to_string();
        let words = text.split(" (os error").next().unwrap_or(&text);
        RecordError {
            file: file.display().to_string(),
            message: format!("{what}: {}", words.to_lowercase()),
            full: matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
        }
    }
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)
    }
}

impl std::error::Error for RecordError {}

/// Where records go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Destinations {
    /// A file of JSON objects, one a line.
    pub json_lines: Option<PathBuf>,
    /// A table with a heading.
    pub csv: Option<PathBuf>,
    /// A folder that `tensorboard --logdir` is given.
    pub tensorboard: Option<PathBuf>,
    /// Learning curves, written at the end.
    pub curves: Option<PathBuf>,
}

/// Writes records to all their destinations.
#[derive(Debug)]
pub struct Recorder {
    progress: Progress,
    lines: Vec<Lines>,
    events: Option<Events>,
    curves: Option<Curves>,
}

impl Recorder {
    /// Opens all destinations. `resumed` is the step that a resumed run continues after: what earlier runs recorded up to it is kept,
    /// what they recorded beyond it is dropped. A run that begins anew replaces its files (TensorBoard keeps every run's).
    ///
    /// # Errors
    /// Says which file cannot be written, or which one is not what a resumed run could continue.
    pub fn open(
        to: &Destinations,
        progress: Progress,
        resumed: Option<u64>,
        now: SystemTime,
    ) -> Result<Recorder, RecordError> {
        let mut lines = vec![];
        if let Some(path) = &to.json_lines {
            lines.push(Lines::json(path, resumed)?);
        }
        if let Some(path) = &to.csv {
            lines.push(Lines::csv(path, resumed)?);
        }
        let mut curves = to.curves.as_deref().map(Curves::new).transpose()?;
        if let (Some(curves), Some(before)) = (&mut curves, lines.first()) {
            before.earlier().for_each(|record| curves.add(&record));
        }
        let events = match &to.tensorboard {
            Some(folder) => Some(Events::open(folder, resumed, now)?),
            None => None,
        };
        Ok(Recorder {
            progress,
            lines,
            events,
            curves,
        })
    }

    /// Takes the record of a step. Text formats are readable up to this step when it returns.
    ///
    /// # Errors
    /// Says which file could not be written.
    pub fn record(&mut self, record: &Record) -> Result<(), RecordError> {
        self.progress.show(record);
        for lines in &mut self.lines {
            lines.add(record)?;
        }
        if let Some(events) = &mut self.events {
            events.add(record)?;
        }
        if let Some(curves) = &mut self.curves {
            curves.add(record);
        }
        Ok(())
    }

    /// Prints a line of text on standard error without disturbing the progress line.
    pub fn say(&self, text: &str) {
        self.progress.say(text);
    }

    /// Ends the progress line and draws the curves.
    ///
    /// # Errors
    /// Says which file could not be written.
    pub fn finish(mut self) -> Result<(), RecordError> {
        self.progress.finish();
        if let Some(events) = &mut self.events {
            events.flush()?;
        }
        match &self.curves {
            Some(curves) => curves.draw(),
            None => Ok(()),
        }
    }
}
