//! How sites talk to each other: threads or MPI behind one trait.
//!
//! Sites exchange whole arrays. What comes from where, and in which shapes, follows from the plan, so
//! nothing but elements is ever sent. Must not know plans, keys or kernels.
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

use ein_array::Array;
use ein_plan::DType;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Element type and shape of an array that is about to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayKind {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<usize>,
}

impl ArrayKind {
    /// The kind of an array.
    pub fn of(array: &Array) -> ArrayKind {
        ArrayKind {
            dtype: array.dtype(),
            shape: array.shape().to_vec(),
        }
    }

    /// Bytes of its elements.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.size()
    }
}

impl fmt::Display for ArrayKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.dtype, self.shape)
    }
}

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
        outgoing: Vec<Vec<Arc<Array>>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Ticket, CommError>;

    /// What has come, by site, in an all-to-all that was begun; waits for it.
    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Arc<Array>>>, CommError>;

    /// Lets what was begun go on; returns at once.
    fn progress(&self) {}

    /// An all-to-all, begun and ended.
    fn exchange(
        &self,
        outgoing: Vec<Vec<Arc<Array>>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
        let ticket = self.begin(outgoing, incoming)?;
        self.end(ticket)
    }

    /// All-gather: `mine` goes to every site; `incoming[s]` says what comes from `s` and is the same list
    /// at every site.
    fn share(
        &self,
        mine: Vec<Arc<Array>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError>;

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
        outgoing: Vec<Vec<Arc<Array>>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Ticket, CommError> {
        (**self).begin(outgoing, incoming)
    }
    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
        (**self).end(ticket)
    }
    fn progress(&self) {
        (**self).progress();
    }
    fn share(
        &self,
        mine: Vec<Arc<Array>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
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

/// Whether the arrays are of the kinds that the plan promised; both transports ask before they hand them on.
fn check_kinds(site: u32, arrays: &[Arc<Array>], kinds: &[ArrayKind]) -> Result<(), CommError> {
    let matches = arrays.len() == kinds.len()
        && arrays
            .iter()
            .zip(kinds)
            .all(|(a, k)| a.dtype() == k.dtype && a.shape() == k.shape);
    if matches {
        return Ok(());
    }
    let list = |items: Vec<String>| items.join(", ");
    Err(CommError::of(
        site,
        format!(
            "sends [{}] where [{}] is expected",
            list(
                arrays
                    .iter()
                    .map(|a| ArrayKind::of(a).to_string())
                    .collect()
            ),
            list(kinds.iter().map(ToString::to_string).collect()),
        ),
    ))
}
