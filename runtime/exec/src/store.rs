//! The tuples that a site holds, and how many bytes they are.
//!
//! Arrays are shared between relations (and sites of one process) by reference count; an array that
//! several relations hold is counted once. Must not know steps.
//!
//! ```text
//! r0: {(0,): [f32[5, 6]], (2,): [f32[4, 6]]}   216 bytes   peak 336
//! ```

use crate::error::RunError;
use ein_device::{Buffer, BufferIdentity};
use ein_plan::{BlockId, RelationId};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The columns of a tuple.
pub(crate) type Tuple = Vec<Buffer>;

/// Tuples by key, in key order.
pub(crate) type Tuples = BTreeMap<Vec<u32>, Tuple>;

/// A tuple that a placement says is here.
pub(crate) fn tuple(tuples: &Tuples, key: &[u32]) -> Result<Tuple, RunError> {
    tuples.get(key).cloned().ok_or_else(|| {
        RunError::internal(format!(
            "the tuple {key:?} to be sent is not where its placement says"
        ))
    })
}

/// What tuples are held as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Relation(RelationId),
    /// A state of a loop, between its rounds.
    State(BlockId, u32),
    /// What a loop has collected so far.
    Collected(BlockId, u32),
}

impl From<RelationId> for Name {
    fn from(relation: RelationId) -> Name {
        Name::Relation(relation)
    }
}

/// All relations of one site.
#[derive(Default)]
pub(crate) struct Store {
    relations: HashMap<Name, Tuples>,
    /// How many tuples hold a buffer.
    holders: HashMap<BufferIdentity, u32>,
    bytes: u64,
    peak: u64,
}

impl Store {
    /// The tuples of a relation that is there.
    pub fn get(&self, relation: RelationId) -> Option<&Tuples> {
        self.relations.get(&relation.into())
    }

    /// Returns whether there are tuples under a name.
    pub fn has(&self, name: Name) -> bool {
        self.relations
            .get(&name)
            .is_some_and(|tuples| !tuples.is_empty())
    }

    /// The tuples under a name, to be changed in place; no array may take another's place.
    pub fn get_mut(&mut self, name: Name) -> Option<&mut Tuples> {
        self.relations.get_mut(&name)
    }

    /// Gives tuples another name; whether there were any.
    pub fn rename(&mut self, from: Name, to: Name) -> bool {
        let tuples = self.relations.remove(&from);
        tuples.is_some_and(|tuples| {
            self.relations.insert(to, tuples);
            true
        })
    }

    /// The tuples of a relation that is not needed any more, to be taken apart. They count until
    /// [`Store::forget`] is called with what this returns second.
    pub fn take(&mut self, relation: RelationId) -> Option<(Tuples, Taken)> {
        let tuples = self.relations.remove(&relation.into())?;
        let taken = Taken(buffers(&tuples).collect());
        Some((tuples, taken))
    }

    /// The tuples under a name that is not needed any more; they do not count any longer.
    pub fn give(&mut self, name: Name) -> Option<Tuples> {
        let tuples = self.relations.remove(&name)?;
        for (buffer, bytes) in buffers(&tuples) {
            self.release(buffer, bytes);
        }
        Some(tuples)
    }

    /// What was taken has become `made`, which is yet to be inserted. Until then both count, except for
    /// arrays that were taken over.
    pub fn forget(&mut self, taken: Taken, made: &Tuples) {
        let kept: HashSet<BufferIdentity> = taken.0.iter().map(|(buffer, _)| *buffer).collect();
        let fresh: u64 = buffers(made)
            .filter(|(buffer, _)| !kept.contains(buffer))
            .map(|(_, bytes)| bytes)
            .sum();
        self.peak = self.peak.max(self.bytes + fresh);
        for (buffer, bytes) in taken.0 {
            self.release(buffer, bytes);
        }
    }

    /// Adds a relation.
    pub fn insert(&mut self, name: Name, tuples: Tuples) {
        for (buffer, bytes) in buffers(&tuples) {
            let holders = self.holders.entry(buffer).or_insert(0);
            *holders += 1;
            if *holders == 1 {
                self.bytes += bytes;
            }
        }
        self.peak = self.peak.max(self.bytes);
        self.relations.insert(name, tuples);
    }

    /// Drops a relation, if it is there.
    pub fn free(&mut self, name: Name) {
        if let Some(tuples) = self.relations.remove(&name) {
            for (buffer, bytes) in buffers(&tuples) {
                self.release(buffer, bytes);
            }
        }
    }

    /// Counts bytes that are in hand beside what is held.
    pub fn beside(&mut self, bytes: u64) {
        self.peak = self.peak.max(self.bytes + bytes);
    }

    /// The bytes that are held.
    pub fn held(&self) -> u64 {
        self.bytes
    }

    /// The most bytes that were held at once.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    fn release(&mut self, buffer: BufferIdentity, bytes: u64) {
        if let Some(holders) = self.holders.get_mut(&buffer) {
            *holders -= 1;
            if *holders == 0 {
                self.holders.remove(&buffer);
                self.bytes -= bytes;
            }
        }
    }
}

/// The buffers of a relation that was taken.
pub(crate) struct Taken(Vec<(BufferIdentity, u64)>);

/// Identity and bytes of every buffer that has elements.
fn buffers(tuples: &Tuples) -> impl Iterator<Item = (BufferIdentity, u64)> + '_ {
    let buffers = tuples.values().flatten();
    buffers.filter_map(|buffer| Some((buffer.identity()?, buffer.bytes())))
}
