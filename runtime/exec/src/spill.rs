//! Relations that rest on disk between two uses.
//!
//! A relation is a file without a name, which the system removes when it is closed, however the process ends. What is in it follows
//! from the relation's type: the columns of its tuples in key order, as they are in memory. Must not know when a relation rests.
//!
//! ```text
//! r3 {i: 9/3} f32[i, 5] at site 0: (0,) 60 bytes
//! ```

use crate::error::{ErrorKind, RunError};
use crate::meet::share_numbers;
use crate::store::Tuples;
use crate::walk::Walker;
use ein_array::Array;
use ein_comm::Communicator;
use ein_plan::{RelationId, RelationType};
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind as Io, Read, Seek, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
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

/// What rests at a site.
pub(crate) struct Disk {
    folder: PathBuf,
    files: HashMap<RelationId, File>,
    pub spilled: Spilled,
}

impl Disk {
    /// Nothing yet; files will be in this folder.
    pub fn new(folder: PathBuf) -> Disk {
        Disk {
            folder,
            files: HashMap::new(),
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
            for array in tuples.values().flatten() {
                file.write_all(array.data().bytes())?;
                bytes += array.data().bytes().len() as u64;
            }
            Ok((file, bytes))
        })();
        let (file, bytes) = written.map_err(|error| self.failed("written", &error))?;
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
        let file = file.ok_or_else(|| {
            RunError::internal(format!("r{} is read before it is written", relation.0))
        })?;
        let mut bytes = 0;
        let read = (|| {
            file.rewind()?;
            let mut tuples = Tuples::new();
            for key in keys {
                let shape: Vec<usize> =
                    kind.ranges(&key).iter().map(|(_, n)| *n as usize).collect();
                let mut tuple = vec![];
                for dtype in &kind.array.columns {
                    let mut array = Array::room(*dtype, &shape);
                    file.read_exact(array.data_mut().bytes_mut())?;
                    bytes += array.data().bytes().len() as u64;
                    tuple.push(Arc::new(array));
                }
                tuples.insert(key, tuple);
            }
            Ok(tuples)
        })();
        let tuples = read.map_err(|error| self.failed("read", &error))?;
        if !again {
            self.files.remove(&relation);
        }
        self.spilled.read += bytes;
        self.spilled.time += began.elapsed();
        Ok(tuples)
    }

    fn failed(&self, what: &str, error: &std::io::Error) -> RunError {
        let folder = self.folder.display();
        let (code, why) = match error.kind() {
            Io::StorageFull => ("E0707", "the disk is full".to_owned()),
            Io::QuotaExceeded => ("E0707", "your disk quota is used up".to_owned()),
            Io::FileTooLarge => (
                "E0707",
                "a file may not be that large here (see `ulimit -f`)".to_owned(),
            ),
            _ => {
                let text = error.to_string();
                let words = text
                    .split_once(" (os error")
                    .map(|(words, _)| words.to_lowercase());
                ("E0705", words.unwrap_or(text))
            }
        };
        let mut failure = RunError::new(
            code,
            ErrorKind::Output,
            format!("what rests on disk in {folder} cannot be {what}: {why}"),
        );
        failure.help = Some(
            "name a folder with more room, `--spill=FOLDER`, or allow more memory, `--memory`"
                .into(),
        );
        failure
    }
}

impl Walker<'_> {
    /// Puts on disk what rests from a step on, and fetches what is needed from it on.
    pub fn rest(&mut self, number: usize) {
        self.current.store(number, Ordering::Relaxed);
        if let Err(error) = self.rested(RelationId(number as u32)) {
            self.failure = Some(self.located(error, number));
        }
    }

    fn rested(&mut self, at: RelationId) -> Result<(), RunError> {
        let plan = self.plan;
        for spill in plan.spills.iter().filter(|spill| spill.before == at) {
            let tuples = self.store.give(spill.relation);
            let tuples = tuples.ok_or_else(|| {
                RunError::internal(format!("r{} rests after its end", spill.relation.0))
            })?;
            self.disk.write(spill.relation, &tuples)?;
        }
        for spill in plan.spills.iter().filter(|spill| spill.until == at) {
            let kind = plan.kind(spill.relation);
            let keys = kind.keys_at(self.comm.site(), &plan.mesh);
            let again = !plan.is_last(spill);
            let tuples = self.disk.read(spill.relation, kind, keys, again)?;
            self.store.insert(spill.relation.into(), tuples);
        }
        Ok(())
    }

    /// What rested at every site; known at every site.
    pub fn spilled(&self) -> Result<Vec<Spilled>, RunError> {
        if self.plan.spills.is_empty() {
            return Ok(vec![]);
        }
        let own = self.disk.spilled;
        let mine = [
            own.written,
            own.read,
            nanoseconds(own.time),
            nanoseconds(self.took),
        ];
        let mine = mine.into_iter().map(|number| number as i64).collect();
        let all = share_numbers(*self.comm.inner(), mine)?;
        let of = |site: &Vec<i64>| Spilled {
            written: site[0] as u64,
            read: site[1] as u64,
            time: Duration::from_nanos(site[2] as u64),
            whole: Duration::from_nanos(site[3] as u64),
        };
        Ok(all.iter().map(of).collect())
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_array::Data;

    #[test]
    fn what_was_written_comes_back_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let mut disk = Disk::new(folder.path().into());
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
        tuples.insert(vec![0], vec![Arc::new(array)]);
        let array = Array::new(vec![2, 3], values(9, 6)).unwrap();
        tuples.insert(vec![1], vec![Arc::new(array)]);
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
        let mut disk = Disk::new("/no/such/folder".into());
        let error = disk.write(RelationId(0), &Tuples::new()).unwrap_err();
        assert_eq!(error.code, "E0705");
        assert!(error.message.contains("/no/such/folder"), "{error:?}");
    }
}
