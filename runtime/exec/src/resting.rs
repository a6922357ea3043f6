//! Relations that rest between two uses: whole ones, and those that lie in the resting place tuple by tuple.
//!
//! A resting place is a disk, or the host's memory where a device has one of its own. Must not know when a relation rests.
//!
//! ```text
//! r3 {i: 9/3} f32[i, 5] at site 0: (0,) 60 bytes written in 0.1 ms
//! ```

use crate::Options;
use crate::disk::Disk;
use crate::error::RunError;
use crate::host_memory::HostMemory;
use crate::meet::share_numbers;
use crate::resting_place::RestingPlace;
use crate::store::{Tuple, Tuples};
use ein_comm::Communicator;
use ein_device::Buffer;
use ein_plan::{Plan, RelationId, RelationType, Resting};
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The bytes that went to rest and came back at a site, and how long that took.
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
    /// The figures of every site, known at every site; none if nothing went to rest anywhere.
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

/// The relations that rest at a site, and how much went there and came back.
pub(crate) struct AtRest {
    place: Box<dyn RestingPlace>,
    pub spilled: Spilled,
}

impl AtRest {
    /// Nothing yet, in the resting place of a plan.
    pub fn new(plan: &Plan, options: &Options) -> AtRest {
        let device = Arc::clone(&options.device);
        AtRest {
            place: match plan.resting {
                Resting::Disk => Box::new(Disk::new(options.spill.clone(), device)),
                Resting::HostMemory => Box::new(HostMemory::new(device)),
            },
            spilled: Spilled::default(),
        }
    }

    /// Puts a relation to rest, unless it is there.
    pub fn write(&mut self, relation: RelationId, tuples: &Tuples) -> Result<(), RunError> {
        if self.place.has(relation) {
            return Ok(());
        }
        self.open(relation)?;
        for (key, tuple) in tuples {
            self.put(relation, key.clone(), tuple)?;
        }
        Ok(())
    }

    /// Returns a relation of this type, tuples with these keys; it stays if it is to rest `again`.
    pub fn read(
        &mut self,
        relation: RelationId,
        kind: &RelationType,
        keys: impl Iterator<Item = Vec<u32>>,
        again: bool,
    ) -> Result<Tuples, RunError> {
        let mut tuples = Tuples::new();
        for key in keys {
            let tuple = self.get(relation, kind, &key)?;
            tuples.insert(key, tuple);
        }
        if !again {
            self.close(relation);
        }
        Ok(tuples)
    }

    /// Makes room for a relation that comes tuple by tuple.
    pub fn open(&mut self, relation: RelationId) -> Result<(), RunError> {
        self.place.open(relation)
    }

    /// Puts a tuple of a relation to rest.
    pub fn put(
        &mut self,
        relation: RelationId,
        key: Vec<u32>,
        tuple: &[Buffer],
    ) -> Result<(), RunError> {
        let began = Instant::now();
        self.place.put(relation, key, tuple)?;
        self.spilled.written += tuple.iter().map(Buffer::bytes).sum::<u64>();
        self.spilled.time += began.elapsed();
        Ok(())
    }

    /// Returns a tuple of a relation of this type, in a step.
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

    /// Returns the tuple of a relation of this type with a key.
    pub fn tuple(
        &self,
        relation: RelationId,
        kind: &RelationType,
        key: &[u32],
    ) -> Result<Tuple, RunError> {
        self.place.get(relation, kind, key)
    }

    /// Has a tuple of a relation of this type fetched while something else is done, since it is read soon.
    pub fn expect(&self, relation: RelationId, kind: &RelationType, key: &[u32]) {
        self.place.expect(relation, Some((kind, key)));
    }

    /// Has all of a relation fetched while something else is done, since it is read soon.
    pub fn expect_all(&self, relation: RelationId) {
        self.place.expect(relation, None);
    }

    /// Drops a relation, if it is there.
    pub fn close(&mut self, relation: RelationId) {
        self.place.close(relation);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use ein_array::{Array, Data};

    #[test]
    fn what_was_written_comes_back_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let options = Options {
            spill: folder.path().into(),
            ..Options::on(ein_device_cpu::device())
        };
        let plan: Plan = "plan for 1 sites
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
        let keys = || kind.keys_at(0, &plan.mesh);
        for resting in [Resting::Disk, Resting::HostMemory] {
            let plan = Plan {
                resting,
                ..plan.clone()
            };
            let mut at_rest = AtRest::new(&plan, &options);
            at_rest.write(RelationId(0), &tuples).unwrap();
            for again in [true, false] {
                let back = at_rest.read(RelationId(0), kind, keys(), again).unwrap();
                assert_eq!(back, tuples);
            }
            let Spilled { written, read, .. } = at_rest.spilled;
            assert_eq!((written, read), (120, 240));
            assert!(at_rest.read(RelationId(0), kind, keys(), false).is_err());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let mut disk = Disk::new("/no/such/folder".into(), ein_device_cpu::device());
        let error = disk.open(RelationId(0)).unwrap_err();
        assert_eq!(error.code, "E0705");
        assert!(error.message.contains("/no/such/folder"), "{error:?}");
    }
}
