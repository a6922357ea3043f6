//! A wrapper that counts what leaves a site.
//!
//! Counts elements ("floats", of whatever type) and bytes that go to *other* sites; agreement and barriers
//! are not counted. Must not know what a tag means.
//!
//! ```text
//! step 3: 1024 floats, 4096 bytes
//! ```

use crate::{CommError, Communicator, Ticket};
use ein_device::{Buffer, BufferType};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How much left a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Elements, of whatever type.
    pub floats: u64,
    /// Bytes.
    pub bytes: u64,
}

impl std::ops::AddAssign for Moved {
    fn add_assign(&mut self, other: Moved) {
        self.floats += other.floats;
        self.bytes += other.bytes;
    }
}

/// A communicator that counts what it is given to send, by a tag set with [`Counting::begin`].
pub struct Counting<C> {
    inner: C,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    tag: usize,
    by_tag: BTreeMap<usize, Moved>,
}

impl<C: Communicator> Counting<C> {
    /// Counts under tag 0 until [`Counting::begin`].
    pub fn new(inner: C) -> Counting<C> {
        Counting {
            inner,
            counts: Mutex::default(),
        }
    }

    /// What is sent from now on is counted under this tag (a step's number).
    pub fn begin(&self, tag: usize) {
        self.lock().tag = tag;
    }

    /// What left this site so far, by tag; tags under which nothing was sent are absent.
    pub fn moved(&self) -> BTreeMap<usize, Moved> {
        self.lock().by_tag.clone()
    }

    /// Counts parcels, by the site that each goes to, which are then sent by what is wrapped.
    pub fn count(&self, outgoing: &[Vec<Buffer>]) {
        let me = self.site() as usize;
        for (site, parcel) in outgoing.iter().enumerate() {
            if site != me {
                self.add(parcel, 1);
            }
        }
    }

    /// What is wrapped.
    pub fn inner(&self) -> &C {
        &self.inner
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Counts> {
        // The counts are valid after every single statement that holds the lock.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, buffers: &[Buffer], times: u64) {
        let mut moved = Moved::default();
        for buffer in buffers {
            moved += Moved {
                floats: buffer.elements() as u64 * times,
                bytes: buffer.bytes() * times,
            };
        }
        if moved != Moved::default() {
            let mut counts = self.lock();
            let tag = counts.tag;
            *counts.by_tag.entry(tag).or_default() += moved;
        }
    }
}

impl<C: Communicator> Communicator for Counting<C> {
    fn site(&self) -> u32 {
        self.inner.site()
    }

    fn sites(&self) -> u32 {
        self.inner.sites()
    }

    fn is_one_process(&self) -> bool {
        self.inner.is_one_process()
    }

    fn begin(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        self.count(&outgoing);
        self.inner.begin(outgoing, incoming)
    }

    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.inner.end(ticket)
    }

    fn progress(&self) {
        self.inner.progress();
    }

    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.add(&mine, u64::from(self.sites()) - 1);
        self.inner.share(mine, incoming)
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.inner.barrier()
    }

    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError> {
        self.inner.agree(mine)
    }

    fn doing(&self, what: String, patience: Option<Duration>) {
        self.inner.doing(what, patience);
    }

    fn abort(&self, message: &str) {
        self.inner.abort(message);
    }
}
