//! Records as text, a line each: JSON lines and CSV. A resumed run continues the file that is there.
//!
//! A CSV file has a column for each thing validated; its heading is that of the first record, and is written anew if a later one has
//! more. What is counted from the beginning of a process goes on from the last line that is kept. Must not know the other destinations.
//!
//! ```text
//! {"step":69,"epoch":3,"loss":0.1234,"rate":0.018,"validation":{"accuracy":0.9861},"examples":4416,"seconds":0.36}
//! ```

use crate::RecordError;
use crate::record::Record;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, value::RawValue};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The columns that every record has; what was validated follows.
const COLUMNS: [&str; 6] = ["step", "epoch", "loss", "rate", "examples", "seconds"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
}

/// A file of lines.
#[derive(Debug)]
pub(crate) struct Lines {
    form: Form,
    path: PathBuf,
    file: File,
    /// Names of what was validated, in the order of the columns (CSV).
    extra: Vec<String>,
    /// What an earlier run recorded, up to the step that this one continues after.
    earlier: Vec<Record>,
}

impl Lines {
    /// Opens a file of JSON lines.
    pub fn json(path: &Path, resumed: Option<u64>) -> Result<Lines, RecordError> {
        Lines::open(Form::Json, path, resumed)
    }

    /// Opens a CSV file.
    pub fn csv(path: &Path, resumed: Option<u64>) -> Result<Lines, RecordError> {
        Lines::open(Form::Csv, path, resumed)
    }

    /// What an earlier run recorded, up to the step that this one continues after.
    pub fn earlier(&self) -> impl Iterator<Item = Record> {
        self.earlier.iter().cloned()
    }

    /// Writes a record.
    pub fn add(&mut self, record: &Record) -> Result<(), RecordError> {
        let new: Vec<&str> = record
            .validation
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| !self.extra.iter().any(|known| known == name))
            .collect();
        let widened = !new.is_empty() && self.form == Form::Csv;
        self.extra.extend(new.into_iter().map(str::to_owned));
        if widened {
            self.widen()?;
        }
        let (examples, seconds) = self.before();
        let line = self.text(&Record {
            examples: record.examples + examples,
            seconds: record.seconds + seconds,
            ..record.clone()
        });
        self.file
            .write_all(line.as_bytes())
            .map_err(|error| RecordError::new(&self.path, "cannot be written", &error))
    }

    /// The examples and seconds of the runs that this one continues.
    fn before(&self) -> (u64, f64) {
        let last = self.earlier.last();
        last.map_or((0, 0.0), |record| (record.examples, record.seconds))
    }

    fn open(form: Form, path: &Path, resumed: Option<u64>) -> Result<Lines, RecordError> {
        let unwritable = |error: io::Error| RecordError::new(path, "cannot be written", &error);
        let earlier = match resumed {
            None => vec![],
            Some(step) => read(form, path, step)?,
        };
        let mut extra: Vec<String> = vec![];
        for (name, _) in earlier.iter().flat_map(|record| &record.validation) {
            if !extra.contains(name) {
                extra.push(name.clone());
            }
        }
        let mut lines = Lines {
            form,
            path: path.to_owned(),
            file: File::create(path).map_err(unwritable)?,
            extra,
            earlier,
        };
        let text = lines.whole();
        lines.file.write_all(text.as_bytes()).map_err(unwritable)?;
        Ok(lines)
    }

    /// Everything from before, with its heading.
    fn whole(&self) -> String {
        let mut text = match self.form {
            Form::Json => String::new(),
            Form::Csv => self.heading(),
        };
        for record in &self.earlier {
            text += &self.text(record);
        }
        text
    }

    fn heading(&self) -> String {
        let names = COLUMNS
            .iter()
            .copied()
            .chain(self.extra.iter().map(String::as_str));
        joined(names) + "\n"
    }

    /// Gives every line of a CSV file the columns that the heading has now.
    fn widen(&self) -> Result<(), RecordError> {
        let unwritable =
            |error: io::Error| RecordError::new(&self.path, "cannot be written", &error);
        let text = std::fs::read_to_string(&self.path).map_err(unwritable)?;
        let mut wider = self.heading();
        let width = COLUMNS.len() + self.extra.len();
        for line in text.lines().skip(1) {
            let have = split(line).len();
            wider += line;
            wider += &",".repeat(width.saturating_sub(have));
            wider.push('\n');
        }
        let mut file = &self.file;
        io::Seek::rewind(&mut file).map_err(unwritable)?;
        file.set_len(0).map_err(unwritable)?;
        file.write_all(wider.as_bytes()).map_err(unwritable)
    }

    fn text(&self, record: &Record) -> String {
        let mut line = match self.form {
            Form::Json => json(record),
            Form::Csv => {
                let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
                let mut cells = vec![
                    record.step.to_string(),
                    record.epoch.to_string(),
                    number(record.loss),
                    number(record.rate),
                    record.examples.to_string(),
                    record.seconds.to_string(),
                ];
                cells.extend(self.extra.iter().map(|name| {
                    let found = record.validation.iter().find(|(known, _)| known == name);
                    number(found.map(|(_, value)| *value))
                }));
                cells.join(",")
            }
        };
        line.push('\n');
        line
    }
}

/// A record as a JSON object. What is not finite, which JSON has no number for, is a string.
#[derive(Serialize)]
struct Object {
    step: u64,
    epoch: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    validation: Map<String, Value>,
    examples: u64,
    seconds: Value,
}

fn json(record: &Record) -> String {
    let number = |value: f64| {
        Number::from_f64(value).map_or_else(|| Value::String(value.to_string()), Value::Number)
    };
    let validation = record.validation.iter();
    let object = Object {
        step: record.step,
        epoch: record.epoch,
        loss: record.loss.map(number),
        rate: record.rate.map(number),
        validation: validation
            .map(|(name, value)| (name.clone(), number(*value)))
            .collect(),
        examples: record.examples,
        seconds: number(record.seconds),
    };
    serde_json::to_string(&object).expect("the keys of maps are strings")
}

/// The records of a file up to a step. A line that a kill cut off at the end is left out; a file that is not there has none.
fn read(form: Form, path: &Path, step: u64) -> Result<Vec<Record>, RecordError> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(vec![]),
        Err(error) => return Err(RecordError::new(path, "cannot be read", &error)),
    };
    let mut lines = text.split_inclusive('\n').enumerate();
    let heading = match form {
        Form::Json => vec![],
        Form::Csv => lines
            .next()
            .map_or(vec![], |(_, line)| split(line.trim_end())),
    };
    let mut records = vec![];
    for (number, line) in lines {
        let whole = line.ends_with('\n');
        let record = match form {
            Form::Json => from_json(line),
            Form::Csv => from_csv(&heading, line.trim_end()),
        };
        match record {
            Some(record) if record.step <= step => records.push(record),
            Some(_) => {}
            None if !whole => {}
            None => {
                return Err(RecordError {
                    file: path.display().to_string(),
                    message: format!(
                        "line {} is no record, so a resumed run cannot continue this file",
                        number + 1
                    ),
                    full: false,
                });
            }
        }
    }
    Ok(records)
}

/// A line of JSON. Its numbers are taken as text, since `Value` may round them to a neighbour, and would be written back so.
#[derive(Deserialize)]
struct Line {
    step: u64,
    epoch: u64,
    loss: Option<Box<RawValue>>,
    rate: Option<Box<RawValue>>,
    #[serde(default)]
    validation: BTreeMap<String, Box<RawValue>>,
    examples: u64,
    seconds: Box<RawValue>,
}

fn from_json(line: &str) -> Option<Record> {
    let line: Line = serde_json::from_str(line).ok()?;
    let number = |value: Box<RawValue>| value.get().trim_matches('"').parse().ok();
    Some(Record {
        step: line.step,
        epoch: line.epoch,
        loss: line.loss.and_then(number),
        rate: line.rate.and_then(number),
        examples: line.examples,
        seconds: number(line.seconds)?,
        validation: line
            .validation
            .into_iter()
            .filter_map(|(name, value)| Some((name, number(value)?)))
            .collect(),
        epoch_ends: false,
    })
}

fn from_csv(heading: &[String], line: &str) -> Option<Record> {
    let mut record = Record::default();
    let cells = split(line);
    if cells.len() != heading.len() || cells.len() < COLUMNS.len() {
        return None;
    }
    for (name, cell) in heading.iter().zip(cells) {
        let value = match cell.as_str() {
            "" => None,
            text => Some(text.parse::<f64>().ok()?),
        };
        match name.as_str() {
            "step" => record.step = cell.parse().ok()?,
            "epoch" => record.epoch = cell.parse().ok()?,
            "examples" => record.examples = cell.parse().ok()?,
            "seconds" => record.seconds = value?,
            "loss" => record.loss = value,
            "rate" => record.rate = value,
            _ => record
                .validation
                .extend(value.map(|value| (name.clone(), value))),
        }
    }
    Some(record)
}

/// Cells as a line without its end, quoted where they have to be.
fn joined<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(vec![]);
    let written = writer
        .write_record(cells)
        .and_then(|()| Ok(writer.flush()?));
    let bytes = match written {
        Ok(()) => writer.into_inner().unwrap_or_default(),
        Err(_) => vec![],
    };
    String::from_utf8_lossy(&bytes).trim_end().to_owned()
}

/// The cells of a line.
fn split(line: &str) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .from_reader(line.as_bytes());
    let first = reader.records().next().and_then(Result::ok);
    first.map_or(vec![], |cells| cells.iter().map(str::to_owned).collect())
}
