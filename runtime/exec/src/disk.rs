//! Relations on disk: whole ones, which rest there, and those that lie there tuple by tuple.
//!
//! A relation is a file without a name, which the system removes when it is closed, however the process ends. What is in it follows
//! from the relation's type: the columns of its tuples, as they are in memory, in key order or as they came. Must not know when a relation rests.
//!
//! ```text
//! r3 {i: 9/3} f32[i, 5] at site 0: (0,) 60 bytes
//! ```

use crate::error::{ErrorKind, RunError};
use crate::meet::share_numbers;
use crate::store::{Tuple, Tuples};
use ein_comm::Communicator;
use ein_data::DataError;
use ein_device::{Buffer, Device};
use ein_plan::{RelationId, RelationType};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What went to disk and came back at a site, and how long it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spilled {
    /// Bytes written.
    pub written: u64,
    /// Bytes read.
    pub read: u64,
    /// How long the site was busy with both.
    pub time: Duration,
    /// How long it took all steps.
    pub whole: Duration,
}

impl Spilled {
    /// How many times as long the steps took as they would have without it.
    pub fn slowdown(&self) -> f64 {
        let rest = self.whole.saturating_sub(self.time).as_secs_f64();
        self.whole.as_secs_f64() / rest.max(1e-9)
    }
}

impl Spilled {
    /// The figures of every site, known at every site; none if nothing went to disk anywhere.
    pub(crate) fn at_all_sites(self, comm: &dyn Communicator) -> Result<Vec<Spilled>, RunError> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mine = [
            self.written,
            self.read,
            nanoseconds(self.time),
            nanoseconds(self.whole),
        ];
        let mine = mine.into_iter().map(|number| number as i64).collect();
        let all = share_numbers(comm, mine)?;
        let of = |site: &Vec<i64>| Spilled {
            written: site[0] as u64,
            read: site[1] as u64,
            time: Duration::from_nanos(site[2] as u64),
            whole: Duration::from_nanos(site[3] as u64),
        };
        let all: Vec<Spilled> = all.iter().map(of).collect();
        match all.iter().any(|site| site.written > 0) {
            true => Ok(all),
            false => Ok(vec![]),
        }
    }
}

impl AddAssign for Spilled {
    fn add_assign(&mut self, other: Spilled) {
        self.written += other.written;
        self.read += other.read;
        self.time += other.time;
        self.whole += other.whole;
    }
}

/// A relation that lies on disk tuple by tuple.
struct Stream {
    file: File,
    /// By key: where its tuple begins.
    starts: HashMap<Vec<u32>, u64>,
    /// Bytes of all that came so far.
    end: u64,
}

/// What rests at a site.
pub(crate) struct Disk {
    folder: PathBuf,
    device: Arc<dyn Device>,
    files: HashMap<RelationId, File>,
    streams: HashMap<RelationId, Stream>,
    pub spilled: Spilled,
}

impl Disk {
    /// Nothing yet; files will be in this folder, and what comes back from them in the memory of a device.
    pub fn new(folder: PathBuf, device: Arc<dyn Device>) -> Disk {
        Disk {
            folder,
            device,
            files: HashMap::new(),
            streams: HashMap::new(),
            spilled: Spilled::default(),
        }
    }

    /// Writes a relation, unless it is there.
    pub fn write(&mut self, relation: RelationId, tuples: &Tuples) -> Result<(), RunError> {
        if self.files.contains_key(&relation) {
            return Ok(());
        }
        let began = Instant::now();
        let written = (|| {
            let mut file = tempfile::tempfile_in(&self.folder)?;
            let mut bytes = 0;
            for tuple in tuples.values() {
                bytes += write_tuple(&mut file, tuple)?;
            }
            Ok((file, bytes))
        })();
        let (file, bytes) = written
            .map_err(|error| self.failed(DataError::of_writing(self.folder.display(), &error)))?;
        self.files.insert(relation, file);
        self.spilled.written += bytes;
        self.spilled.time += began.elapsed();
        Ok(())
    }

    /// Reads a relation of this type, tuples with these keys; it is kept on disk if it is to rest `again`.
    pub fn read(
        &mut self,
        relation: RelationId,
        kind: &RelationType,
        keys: impl Iterator<Item = Vec<u32>>,
        again: bool,
    ) -> Result<Tuples, RunError> {
        let began = Instant::now();
        let file = self.files.get_mut(&relation);
        let file = file.ok_or_else(|| absent(relation))?;
        let mut bytes = 0;
        let read = (|| {
            file.rewind()?;
            let mut tuples = Tuples::new();
            for key in keys {
                let tuple = read_tuple(file, kind, &key, &*self.device)?;
                bytes += kind.tuple_bytes(&key);
                tuples.insert(key, tuple);
            }
            Ok(tuples)
        })();
        let tuples = read
            .map_err(|error| self.failed(DataError::of_reading(self.folder.display(), &error)))?;
        if !again {
            self.files.remove(&relation);
        }
        self.spilled.read += bytes;
        self.spilled.time += began.elapsed();
        Ok(tuples)
    }

    /// Makes room for a relation that comes tuple by tuple.
    pub fn open(&mut self, relation: RelationId) -> Result<(), RunError> {
        let file = tempfile::tempfile_in(&self.folder)
            .map_err(|error| self.failed(DataError::of_writing(self.folder.display(), &error)))?;
        let stream = Stream {
            file,
            starts: HashMap::new(),
            end: 0,
        };
        self.streams.insert(relation, stream);
        Ok(())
    }

    /// Writes a tuple of such a relation.
    pub fn put(
        &mut self,
        relation: RelationId,
        key: Vec<u32>,
        tuple: &[Buffer],
    ) -> Result<(), RunError> {
        let began = Instant::now();
        let stream = self.streams.get_mut(&relation);
        let stream = stream.ok_or_else(|| absent(relation))?;
        let written = (|| {
            stream.file.seek(SeekFrom::Start(stream.end))?;
            write_tuple(&mut stream.file, tuple)
        })();
        let written = match written {
            Ok(bytes) => {
                stream.starts.insert(key, stream.end);
                stream.end += bytes;
                bytes
            }
            Err(error) => {
                let error = DataError::of_writing(self.folder.display(), &error);
                return Err(self.failed(error));
            }
        };
        self.spilled.written += written;
        self.spilled.time += began.elapsed();
        Ok(())
    }

    /// Reads a tuple of such a relation, of this type, in a step.
    pub fn get(
        &mut self,
        relation: RelationId,
        kind: &RelationType,
        key: &[u32],
    ) -> Result<Tuple, RunError> {
        let began = Instant::now();
        let tuple = self.tuple(relation, kind, key)?;
        self.spilled.read += kind.tuple_bytes(key);
        self.spilled.time += began.elapsed();
        Ok(tuple)
    }

    /// The tuple of such a relation, of this type, with a key.
    pub fn tuple(
        &self,
        relation: RelationId,
        kind: &RelationType,
        key: &[u32],
    ) -> Result<Tuple, RunError> {
        let stream = self.streams.get(&relation);
        let start = stream.and_then(|stream| Some((&stream.file, *stream.starts.get(key)?)));
        let (mut file, start) = start.ok_or_else(|| absent(relation))?;
        let read = file
            .seek(SeekFrom::Start(start))
            .and_then(|_| read_tuple(&mut file, kind, key, &*self.device));
        read.map_err(|error| self.failed(DataError::of_reading(self.folder.display(), &error)))
    }

    /// Has a tuple of such a relation, of this type, fetched while something else is done, since it is read soon.
    pub fn expect(&self, relation: RelationId, kind: &RelationType, key: &[u32]) {
        let stream = self.streams.get(&relation);
        if let Some((stream, start)) = stream.and_then(|s| Some((s, s.starts.get(key)?))) {
            fetch(&stream.file, *start, kind.tuple_bytes(key));
        }
    }

    /// The same of all of a relation that rests.
    pub fn expect_all(&self, relation: RelationId) {
        if let Some(file) = self.files.get(&relation) {
            fetch(file, 0, 0);
        }
    }

    /// Drops a relation that lies on disk tuple by tuple, if it is there.
    pub fn close(&mut self, relation: RelationId) {
        self.streams.remove(&relation);
    }

    fn failed(&self, error: DataError) -> RunError {
        let help =
            "name a folder with more room, `--spill=FOLDER`, or allow more memory, `--memory`";
        RunError::data(ErrorKind::Output, error.help(help))
    }
}

fn absent(relation: RelationId) -> RunError {
    RunError::internal(format!("r{} is read before it is written", relation.0))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_array::{Array, Data};

    #[test]
    fn what_was_written_comes_back_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(folder.path().into(), ein_device_cpu::device());
        let plan: ein_plan::Plan = "plan for 1 sites
r0 x: {i: 5/2} f64[i, 3] @ PART(i) = source x from full(1.0)
output x = r0: f64[5, 3]
"
        .parse()
        .unwrap();
        let kind = plan.kind(RelationId(0));
        let values =
            |from: usize, n: usize| Data::F64((from..from + n).map(|v| v as f64).collect());
        let mut tuples = Tuples::new();
        let array = Array::new(vec![3, 3], values(0, 9)).unwrap();
        tuples.insert(vec![0], vec![array.into()]);
        let array = Array::new(vec![2, 3], values(9, 6)).unwrap();
        tuples.insert(vec![1], vec![array.into()]);
        disk.write(RelationId(0), &tuples).unwrap();
        let keys = || kind.keys_at(0, &plan.mesh);
        for again in [true, false] {
            let back = disk.read(RelationId(0), kind, keys(), again).unwrap();
            assert_eq!(back, tuples);
        }
        assert_eq!((disk.spilled.written, disk.spilled.read), (120, 240));
        assert!(disk.read(RelationId(0), kind, keys(), false).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut disk = Disk::new("/no/such/folder".into(), ein_device_cpu::device());
        let error = disk.write(RelationId(0), &Tuples::new()).unwrap_err();
        assert_eq!(error.code, "E0705");
        assert!(error.message.contains("/no/such/folder"), "{error:?}");
    }
}
