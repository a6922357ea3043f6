//! How sites talk to each other: threads or MPI behind one trait.
//!
//! Sites exchange whole buffers, wherever their elements lie; what arrives may lie in the host's memory, and the receiver gives it to its
//! device. What comes from where, and in which shapes, follows from the plan, so nothing but elements is ever sent. Must not know
//! plans, keys, kernels or devices.
//!
//! ```text
//! site 0 of 3   exchange   out [1 array, 0, 2 arrays]   in [1 array, 1 array, 0]
//! ```

mod counting;
mod in_process;
pub mod mpi;
mod stall;

pub use counting::{Counting, Moved};
pub use in_process::{InProcess, in_process};

use ein_device::{Buffer, BufferType};
use std::fmt;
use std::time::Duration;

/// Why a call did not come about. After one, the communicator is of no more use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommError {
    /// Which site failed or is missing, where that is known.
    pub site: Option<u32>,
    /// What happened, in one sentence; does not repeat the site.
    pub message: String,
}

impl CommError {
    /// An error that no single site is to blame for.
    pub fn new(message: impl Into<String>) -> CommError {
        CommError {
            site: None,
            message: message.into(),
        }
    }

    /// A failure of one site.
    pub fn of(site: u32, message: impl Into<String>) -> CommError {
        CommError {
            site: Some(site),
            message: message.into(),
        }
    }
}

impl fmt::Display for CommError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.site {
            Some(site) => write!(f, "site {site}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for CommError {}

/// An all-to-all that was begun at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// One site's end of the line to all sites. Every method but `site`, `sites` and `abort` is collective:
/// all sites call it, in the same order. It is called by one thread of the site, the one that made it.
pub trait Communicator: Send + Sync {
    /// This site's number, from 0.
    fn site(&self) -> u32;

    /// Number of sites, at least 1.
    fn sites(&self) -> u32;

    /// Whether all sites are threads of one process, so that equal computations give equal bits at all of them.
    fn is_one_process(&self) -> bool {
        false
    }

    /// Begins an all-to-all: `outgoing[s]` goes to site `s`; `incoming[s]` says what comes from `s`. The parcel to
    /// oneself is passed through. Other calls may be made before it is ended.
    fn begin(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError>;

    /// What has come, by site, in an all-to-all that was begun; waits for it.
    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError>;

    /// Lets what was begun go on; returns at once.
    fn progress(&self) {}

    /// An all-to-all, begun and ended.
    fn exchange(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        let ticket = self.begin(outgoing, incoming)?;
        self.end(ticket)
    }

    /// All-gather: `mine` goes to every site; `incoming[s]` says what comes from `s` and is the same list
    /// at every site.
    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError>;

    /// Returns when every site has called it.
    fn barrier(&self) -> Result<(), CommError>;

    /// Every site learns the failure of the lowest site that has one.
    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError>;

    /// Says what the calls that follow are for. A call that waits longer than `patience` (none: for ever) tells on standard
    /// error what it waits for and which sites are missing, once, and goes on waiting; of several sites that wait, one tells
    /// it where they can agree on that.
    fn doing(&self, what: String, patience: Option<Duration>) {
        let _ = (what, patience);
    }

    /// Ends the run at every site because of a failure here: calls of other sites return a [`CommError`]
    /// with this message, or their processes end.
    fn abort(&self, message: &str);
}

impl<C: Communicator + ?Sized> Communicator for &C {
    fn site(&self) -> u32 {
        (**self).site()
    }
    fn sites(&self) -> u32 {
        (**self).sites()
    }
    fn is_one_process(&self) -> bool {
        (**self).is_one_process()
    }
    fn begin(
        &self,
        outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        (**self).begin(outgoing, incoming)
    }
    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError> {
        (**self).end(ticket)
    }
    fn progress(&self) {
        (**self).progress();
    }
    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        (**self).share(mine, incoming)
    }
    fn barrier(&self) -> Result<(), CommError> {
        (**self).barrier()
    }
    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError> {
        (**self).agree(mine)
    }
    fn doing(&self, what: String, patience: Option<Duration>) {
        (**self).doing(what, patience);
    }
    fn abort(&self, message: &str) {
        (**self).abort(message);
    }
}

/// Checks that buffers have the types that the plan promised; both transports ask before they hand them on.
fn check_types(site: u32, buffers: &[Buffer], types: &[BufferType]) -> Result<(), CommError> {
    let is_it = |(buffer, wanted): (&Buffer, &BufferType)| {
        buffer.dtype() == wanted.dtype
            && buffer.shape() == wanted.shape
            && buffer.format() == wanted.format
    };
    let matches = buffers.len() == types.len() && buffers.iter().zip(types).all(is_it);
    if matches {
        return Ok(());
    }
    let list = |items: Vec<String>| items.join(", ");
    Err(CommError::of(
        site,
        format!(
            "sends [{}] where [{}] is expected",
            list(
                buffers
                    .iter()
                    .map(|buffer| buffer.buffer_type().to_string())
                    .collect()
            ),
            list(types.iter().map(ToString::to_string).collect()),
        ),
    ))
}
