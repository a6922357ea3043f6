//! Relations that rest on disk.
//!
//! A relation is a file without a name, which the system removes when it is closed, however the process ends. What is in it are the columns of
//! its tuples, as they are in memory, in the order in which they came. Must not know when a relation rests.
//!
//! ```text
//! r3 {i: 9/3} f32[i, 5] at site 0: (0,) 60 bytes
//! ```

use crate::error::{ErrorKind, RunError};
use crate::resting_place::{RestingPlace, absent};
use crate::store::Tuple;
use ein_data::DataError;
use ein_device::{Buffer, Device};
use ein_plan::{RelationId, RelationType};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// A relation on disk.
struct Resting {
    file: File,
    /// By key: where its tuple begins.
    starts: HashMap<Vec<u32>, u64>,
    /// Bytes of all that came so far.
    end: u64,
}

/// The relations on disk at a site.
pub(crate) struct Disk {
    folder: PathBuf,
    device: Arc<dyn Device>,
    relations: HashMap<RelationId, Resting>,
}

impl Disk {
    /// Nothing yet; files will be in this folder, and what comes back from them in the memory of a device.
    pub fn new(folder: PathBuf, device: Arc<dyn Device>) -> Disk {
        Disk {
            folder,
            device,
            relations: HashMap::new(),
        }
    }

    fn not_written(&self, error: &io::Error) -> RunError {
        failed(DataError::of_writing(self.folder.display(), error))
    }
}

impl RestingPlace for Disk {
    fn open(&mut self, relation: RelationId) -> Result<(), RunError> {
        let file = tempfile::tempfile_in(&self.folder).map_err(|error| self.not_written(&error))?;
        let resting = Resting {
            file,
            starts: HashMap::new(),
            end: 0,
        };
        self.relations.insert(relation, resting);
        Ok(())
    }

    fn has(&self, relation: RelationId) -> bool {
        self.relations.contains_key(&relation)
    }

    fn put(
        &mut self,
        relation: RelationId,
        key: Vec<u32>,
        tuple: &[Buffer],
    ) -> Result<(), RunError> {
        let resting = self.relations.get_mut(&relation);
        let resting = resting.ok_or_else(|| absent(relation))?;
        let mut write = || -> io::Result<u64> {
            resting.file.seek(SeekFrom::Start(resting.end))?;
            write_tuple(&mut resting.file, tuple)
        };
        match write() {
            Ok(bytes) => {
                resting.starts.insert(key, resting.end);
                resting.end += bytes;
                Ok(())
            }
            Err(error) => Err(self.not_written(&error)),
        }
    }

    fn get(
        &self,
        relation: RelationId,
        kind: &RelationType,
        key: &[u32],
    ) -> Result<Tuple, RunError> {
        let resting = self.relations.get(&relation);
        let start = resting.and_then(|resting| Some((&resting.file, *resting.starts.get(key)?)));
        let (mut file, start) = start.ok_or_else(|| absent(relation))?;
        let read = file
            .seek(SeekFrom::Start(start))
            .and_then(|_| read_tuple(&mut file, kind, key, &*self.device));
        read.map_err(|error| failed(DataError::of_reading(self.folder.display(), &error)))
    }

    fn expect(&self, relation: RelationId, tuple: Option<(&RelationType, &[u32])>) {
        let Some(resting) = self.relations.get(&relation) else {
            return;
        };
        match tuple {
            Some((kind, key)) => {
                if let Some(start) = resting.starts.get(key) {
                    fetch(&resting.file, *start, kind.tuple_bytes(key));
                }
            }
            None => fetch(&resting.file, 0, 0),
        }
    }

    fn close(&mut self, relation: RelationId) {
        self.relations.remove(&relation);
    }
}

fn failed(error: DataError) -> RunError {
    let help = "name a folder with more room, `--spill=FOLDER`, or allow more memory, `--memory`";
    RunError::data(ErrorKind::Output, error.help(help))
}

/// Has the system fetch so many bytes of a file (0: all behind `start`) into its cache, as far as it likes: they are read all the same.
#[cfg(target_os = "linux")]
fn fetch(file: &File, start: u64, bytes: u64) {
    let bytes = std::num::NonZeroU64::new(bytes);
    let _advised = rustix::fs::fadvise(file, start, bytes, rustix::fs::Advice::WillNeed);
}

#[cfg(not(target_os = "linux"))]
fn fetch(_: &File, _: u64, _: u64) {}

/// Writes a tuple's columns; how many bytes they are.
fn write_tuple(file: &mut impl Write, tuple: &[Buffer]) -> io::Result<u64> {
    let mut bytes = 0;
    for buffer in tuple {
        let array = buffer.to_host();
        file.write_all(array.data().bytes())?;
        bytes += array.data().bytes().len() as u64;
    }
    Ok(bytes)
}

/// Reads the columns of the tuple with a key.
fn read_tuple(
    file: &mut impl Read,
    kind: &RelationType,
    key: &[u32],
    device: &dyn Device,
) -> io::Result<Tuple> {
    let ranges = kind.ranges(key);
    let shape: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let mut tuple = vec![];
    for dtype in &kind.array.columns {
        let mut array = device.staging(*dtype, &shape);
        file.read_exact(array.data_mut().bytes_mut())?;
        tuple.push(device.adopt(array.into()));
    }
    Ok(tuple)
}
