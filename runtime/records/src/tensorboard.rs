//! TensorBoard's event files: a sequence of records, each a length, an event in protocol buffers, and masked CRC-32Cs of both.
//!
//! The messages are those of TensorFlow's `event.proto` and `summary.proto`, as far as scalars need them. Must not know the other
//! destinations.
//!
//! ```text
//! events.out.tfevents.1764000000.einc.4711.v2   loss 0.1234 @ 69, rate 0.018 @ 69, accuracy 0.9861 @ 69
//! ```

use crate::RecordError;
use crate::record::Record;
use prost::Message;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that TensorBoard follows while it is written.
#[derive(Debug)]
pub(crate) struct Events {
    path: PathBuf,
    file: BufWriter<File>,
    /// Seconds since 1970 at which the run began.
    began: f64,
    /// Seconds of the run that were in the file when it was last flushed.
    flushed: f64,
}

/// A second's records may wait in memory.
const PATIENCE: f64 = 1.0;

#[derive(Clone, PartialEq, Message)]
struct Event {
    #[prost(double, tag = "1")]
    wall_time: f64,
    #[prost(int64, tag = "2")]
    step: i64,
    #[prost(oneof = "What", tags = "3, 5, 7")]
    what: Option<What>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(message, tag = "7")]
    Session(SessionLog),
}

#[derive(Clone, PartialEq, Message)]
struct Summary {
    #[prost(message, repeated, tag = "1")]
    value: Vec<Scalar>,
}

#[derive(Clone, PartialEq, Message)]
struct Scalar {
    #[prost(string, tag = "1")]
    tag: String,
    // Written even where it is 0: without it the summary would have no value.
    #[prost(float, optional, tag = "2")]
    simple_value: Option<f32>,
}

#[derive(Clone, PartialEq, Message)]
struct SessionLog {
    /// 1: the session starts, and what other files of the folder have from this step on is void.
    #[prost(int32, tag = "1")]
    status: i32,
}

impl Events {
    /// Begins a file in a folder, which is made if it is not there.
    pub fn open(
        folder: &Path,
        resumed: Option<u64>,
        now: SystemTime,
    ) -> Result<Events, RecordError> {
        let failed = |error| RecordError::new(folder, "cannot be written", &error);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let began = now
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        // TensorBoard reads a folder's files in the order of their names.
        let name = |number: u32| {
            let (seconds, process) = (began as u64, std::process::id());
            format!("events.out.tfevents.{seconds:010}.einc.{process}.{number}.v2")
        };
        let mut number = 0;
        let (path, file) = loop {
            let path = folder.join(name(number));
            match File::create_new(&path) {
                Ok(file) => break (path, file),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(failed(error)),
            }
        };
        let mut events = Events {
            path,
            file: BufWriter::new(file),
            began,
            flushed: 0.0,
        };
        events.write(0.0, 0, What::FileVersion("brain.Event:2".into()))?;
        if let Some(step) = resumed {
            let first = i64::try_from(step).unwrap_or(i64::MAX).saturating_add(1);
            events.write(0.0, first, What::Session(SessionLog { status: 1 }))?;
        }
        events.flush()?;
        Ok(events)
    }

    /// Writes a record.
    pub fn add(&mut self, record: &Record) -> Result<(), RecordError> {
        let named = [("loss", record.loss), ("rate", record.rate)];
        let named = named
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)));
        let validated = record
            .validation
            .iter()
            .map(|(name, value)| (name.as_str(), *value));
        let value: Vec<Scalar> = named
            .chain(validated)
            .map(|(name, value)| Scalar {
                tag: name.to_owned(),
                simple_value: Some(value as f32),
            })
            .collect();
        let step = i64::try_from(record.step).unwrap_or(i64::MAX);
        self.write(record.seconds, step, What::Summary(Summary { value }))?;
        if record.epoch_ends || record.seconds - self.flushed >= PATIENCE {
            self.flushed = record.seconds;
            self.flush()?;
        }
        Ok(())
    }

    /// Hands everything to the system.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let done = self.file.flush();
        done.map_err(|error| RecordError::new(&self.path, "cannot be written", &error))
    }

    fn write(&mut self, seconds: f64, step: i64, what: What) -> Result<(), RecordError> {
        let event = Event {
            wall_time: self.began + seconds,
            step,
            what: Some(what),
        };
        let data = event.encode_to_vec();
        let length = (data.len() as u64).to_le_bytes();
        let mut bytes = length.to_vec();
        bytes.extend(masked(&length).to_le_bytes());
        bytes.extend(&data);
        bytes.extend(masked(&data).to_le_bytes());
        let done = self.file.write_all(&bytes);
        done.map_err(|error| RecordError::new(&self.path, "cannot be written", &error))
    }
}

/// The checksum of a checksum would be weak, so TensorFlow turns and shifts it.
fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
        .rotate_right(15)
        .wrapping_add(0xa282_ead8)
}
