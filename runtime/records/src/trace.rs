//! A trace of a run in the form that Perfetto and Chrome read: one track a site, one slice a step.
//!
//! Must not know plans or sites' clocks.
//!
//! ```text
//! {"traceEvents":[{"name":"C · model.ein:7","cat":"local join","ph":"X","pid":0,"tid":1,"ts":120.5,"dur":80.0,"args":{…}}, …]}
//! ```

use crate::RecordError;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// A slice of a track.
#[derive(Clone, Debug, Serialize)]
pub struct Slice<'a> {
    /// What is seen on it.
    pub name: &'a str,
    /// Its kind.
    #[serde(rename = "cat")]
    pub category: &'a str,
    /// The track.
    #[serde(rename = "tid")]
    pub site: usize,
    /// Microseconds from the beginning of the run.
    #[serde(rename = "ts")]
    pub start: f64,
    /// Microseconds that it lasts.
    #[serde(rename = "dur")]
    pub length: f64,
    /// Figures that are shown with it.
    pub args: &'a BTreeMap<&'static str, serde_json::Value>,
}

/// A file of a trace; it takes its name when it is whole.
pub struct Trace {
    path: PathBuf,
    temporary: PathBuf,
}

impl Trace {
    /// Looks whether the file can be written, so that a mistake is known before the run.
    ///
    /// # Errors
    /// It cannot.
    pub fn new(path: &Path) -> Result<Trace, RecordError> {
        // A link stays a link.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}-{}.part", std::process::id()));
        let trace = Trace {
            path: path.to_owned(),
            temporary,
        };
        let made = File::create(&trace.temporary).map_err(|error| trace.failed(&error))?;
        drop(made);
        // A run that is killed leaves nothing.
        fs::remove_file(&trace.temporary).map_err(|error| trace.failed(&error))?;
        Ok(trace)
    }

    /// Writes a trace of so many sites; `left_out` slices are not in it.
    ///
    /// # Errors
    /// The disk is full, or the file cannot be written for another reason.
    pub fn write<'a>(
        self,
        program: &str,
        sites: usize,
        left_out: i64,
        slices: impl IntoIterator<Item = Slice<'a>>,
    ) -> Result<(), RecordError> {
        let written = self.fill(program, sites, left_out, slices);
        let placed = written.and_then(|()| fs::rename(&self.temporary, &self.path));
        placed.map_err(|error| self.failed(&error))
    }

    fn fill<'a>(
        &self,
        program: &str,
        sites: usize,
        left_out: i64,
        slices: impl IntoIterator<Item = Slice<'a>>,
    ) -> io::Result<()> {
        let mut to = BufWriter::new(File::create(&self.temporary)?);
        let text = serde_json::to_string(program)?;
        let name = |what: &str, track: usize, name: &str| {
            format!(
                r#"{{"name":"{what}","ph":"M","pid":0,"tid":{track},"args":{{"name":{name}}}}}"#
            )
        };
        writeln!(
            to,
            r#"{{"displayTimeUnit":"ms","otherData":{{"slices left out":{left_out}}},"traceEvents":["#
        )?;
        write!(to, "{}", name("process_name", 0, &text))?;
        for site in 0..sites {
            let track = name("thread_name", site, &format!(r#""site {site}""#));
            write!(to, ",\n{track}")?;
        }
        for slice in slices {
            /// What every slice has beside its own fields.
            #[derive(Serialize)]
            struct Event<'a> {
                ph: &'static str,
                pid: u32,
                #[serde(flatten)]
                slice: Slice<'a>,
            }
            to.write_all(b",\n")?;
            serde_json::to_writer(
                &mut to,
                &Event {
                    ph: "X",
                    pid: 0,
                    slice,
                },
            )?;
        }
        to.write_all(b"\n]}\n")?;
        to.flush()?;
        to.get_ref().sync_all()
    }

    fn failed(&self, error: &io::Error) -> RecordError {
        RecordError::new(&self.path, "cannot be written", error)
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // After a success it has another name already; of a run that failed, nothing is left.
        let _gone = fs::remove_file(&self.temporary);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_trace_is_json_with_a_track_a_site() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        let args = BTreeMap::from([("bytes", serde_json::json!(12))]);
        let slice = |site, start| Slice {
            name: "C \"x\"",
            category: "local join",
            site,
            start,
            length: 1.5,
            args: &args,
        };
        let trace = Trace::new(&path).unwrap();
        trace
            .write("m.ein", 2, 7, [slice(0, 0.5), slice(1, 2.0)])
            .unwrap();
        let read: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let events = read["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 5);
        assert_eq!(events[2]["args"]["name"], "site 1");
        assert_eq!(events[4]["tid"], 1);
        assert_eq!(events[4]["args"]["bytes"], 12);
        assert_eq!(read["otherData"]["slices left out"], 7);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "no temporary is left"
        );
    }

    #[test]
    fn a_trace_that_is_not_finished_leaves_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.json");
        fs::write(&path, "old").unwrap();
        drop(Trace::new(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        let error = Trace::new(&folder.path().join("none/t.json"))
            .err()
            .unwrap();
        assert!(error.to_string().contains("cannot be written"), "{error}");
    }
}
