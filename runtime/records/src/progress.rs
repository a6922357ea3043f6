//! The progress line: on a terminal one line that is drawn anew, elsewhere a plain line at the end of each epoch. Its loss is the mean
//! over the epoch so far; without epochs, since the last plain line was due.
//!
//! Must not know files.
//!
//! ```text
//! epoch 3/30  step 69/690  loss 0.1234  accuracy 0.9861  12.3k examples/s  0:12 left
//! ```

use crate::record::{Extent, Record, clock, digits, thousands};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::VecDeque;
use std::io::{IsTerminal, Write};

/// How progress is shown, on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// A line that is drawn anew on a terminal, plain lines elsewhere.
    #[default]
    Automatic,
    /// Plain lines.
    Plain,
    /// Nothing.
    Nothing,
}

/// Where a run counted in steps has no epochs, so many plain lines are printed in all.
const LINES: u64 = 20;
/// The speed is that of so many of the last records.
const WINDOW: usize = 50;

/// The progress of a run.
#[derive(Debug)]
pub struct Progress {
    extent: Extent,
    bar: Option<ProgressBar>,
    plain: bool,
    /// Step, examples and seconds of the last records.
    recent: VecDeque<(u64, u64, f64)>,
    /// What was validated last, by name.
    validation: Vec<(String, f64)>,
    /// Loss times examples, and examples, since the epoch began.
    mean: (f64, u64),
}

impl Progress {
    /// Begins; nothing is shown before the first record.
    pub fn new(show: Show, extent: Extent) -> Progress {
        match show {
            Show::Automatic if std::io::stderr().is_terminal() => {
                Progress::on(ProgressDrawTarget::stderr(), extent)
            }
            Show::Automatic | Show::Plain => Progress::quiet(true, extent),
            Show::Nothing => Progress::quiet(false, extent),
        }
    }

    /// Draws on a given target.
    pub fn on(target: ProgressDrawTarget, extent: Extent) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(extent.steps), target);
        bar.set_style(
            ProgressStyle::with_template("{bar:12} {wide_msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar())
                .progress_chars("━╸ "),
        );
        bar.set_position(extent.made);
        Progress {
            bar: Some(bar),
            ..Progress::quiet(false, extent)
        }
    }

    fn quiet(plain: bool, extent: Extent) -> Progress {
        Progress {
            extent,
            bar: None,
            plain,
            recent: VecDeque::new(),
            validation: vec![],
            mean: (0.0, 0),
        }
    }

    /// Takes a record over, and shows it if it is time.
    pub fn show(&mut self, record: &Record) {
        if let Some(line) = self.line(record) {
            match &self.bar {
                Some(bar) => {
                    bar.set_position(record.step);
                    bar.set_message(line);
                }
                None => complain(&line),
            }
        }
    }

    /// The line that is to be shown after this record, if one is.
    pub fn line(&mut self, record: &Record) -> Option<String> {
        for (name, value) in &record.validation {
            match self.validation.iter_mut().find(|(known, _)| known == name) {
                Some(known) => known.1 = *value,
                None => self.validation.push((name.clone(), *value)),
            }
        }
        if self.recent.is_empty() {
            self.recent.push_back((self.extent.made, 0, 0.0));
        }
        let before = self.recent.back().map_or(0, |last| last.1);
        let rows = record.examples.saturating_sub(before);
        if let Some(loss) = record.loss
            && rows > 0
        {
            self.mean.0 += loss * rows as f64;
            self.mean.1 += rows;
        }
        self.recent
            .push_back((record.step, record.examples, record.seconds));
        if self.recent.len() > WINDOW + 1 {
            self.recent.pop_front();
        }
        let every = self.extent.steps.div_ceil(LINES).max(1);
        let due = match self.extent.epochs {
            Some(_) => record.epoch_ends,
            None => record.step.is_multiple_of(every),
        };
        let last = record.step == self.extent.steps;
        let shown = self.bar.is_some() || self.plain && (due || last);
        let line = shown.then(|| self.text(record));
        if due {
            self.mean = (0.0, 0);
        }
        line
    }

    /// Prints text above the line.
    pub fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text.trim_end_matches('\n')),
            None => complain(text.trim_end_matches('\n')),
        }
    }

    /// Leaves the line as it is and goes to the next.
    pub fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.abandon();
        }
    }

    fn text(&self, record: &Record) -> String {
        let mut parts = vec![];
        if let Some(epochs) = self.extent.epochs {
            parts.push(format!("epoch {}/{epochs}", record.epoch));
        }
        parts.push(format!("step {}/{}", record.step, self.extent.steps));
        if self.mean.1 > 0 {
            parts.push(format!("loss {}", digits(self.mean.0 / self.mean.1 as f64)));
        }
        for (name, value) in &self.validation {
            parts.push(format!("{name} {}", digits(*value)));
        }
        if let (Some(first), Some(last)) = (self.recent.front(), self.recent.back()) {
            let seconds = last.2 - first.2;
            let (examples, steps) = (
                last.1.saturating_sub(first.1),
                last.0.saturating_sub(first.0),
            );
            if seconds > 0.0 && examples > 0 {
                parts.push(format!(
                    "{} examples/s",
                    thousands(examples as f64 / seconds)
                ));
            }
            let left = self.extent.steps.saturating_sub(record.step);
            if seconds > 0.0 && steps > 0 && left > 0 {
                let left = left as f64 * seconds / steps as f64;
                parts.push(format!("{} left", clock(left)));
            }
        }
        parts.join("  ")
    }
}

/// Writes a line to standard error, if anyone reads it.
fn complain(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
