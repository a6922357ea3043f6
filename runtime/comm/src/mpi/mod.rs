//! Sites as the ranks of an MPI job.
//!
//! A program is not linked to MPI: a shim for each MPI implementation travels inside it as bytes, and the
//! one that fits the launcher is opened only when a launcher has started the program.
//!
//! ```text
//! mpirun -n 3 ./matmul   ->   OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=3: the shim "openmpi"
//! ```

mod launcher;
mod library;
mod table;

pub use launcher::{Launcher, launched, unconnected_tasks};
pub use table::VERSION as SHIM_VERSION;

use crate::{CommError, Communicator, Ticket, check_types};
use ein_array::Array;
use ein_device::{Buffer, BufferType};
use library::{Bytes, Library, Room, Transfer};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A shim: a shared library that was built against one MPI.
#[derive(Clone, Debug)]
pub struct Shim<'a> {
    /// `openmpi`, `mpich`, or `mpi` for the only MPI of a machine, whichever it is.
    pub name: String,
    /// Where it comes from, for messages.
    pub origin: String,
    /// The bytes of the library.
    pub library: &'a [u8],
}

/// Arrays up to this many bytes are packed into one message for each pair of sites.
const SMALL: usize = 1 << 16;

/// What was begun and not ended.
#[derive(Default)]
struct Transfers {
    /// How many were begun so far.
    calls: u64,
    transfers: BTreeMap<Ticket, Open>,
}

struct Open {
    transfer: Transfer,
    /// The parcel to oneself.
    own: Vec<Buffer>,
    /// What comes from each site.
    incoming: Vec<Vec<BufferType>>,
}

/// One rank. Dropping it ends MPI, or, after a failure or in a panic, the whole job.
pub struct Mpi {
    library: Library,
    site: u32,
    sites: u32,
    failed: AtomicBool,
    open: Mutex<Transfers>,
}

/// Starts MPI with the shim that fits the launcher. Fails if no launcher started this process, if there is no
/// such shim or its MPI is not installed here, and if MPI sees another number of processes than the launcher
/// started (which is how the library of another MPI shows).
pub fn connect(shims: &[Shim<'_>]) -> Result<Mpi, CommError> {
    let launcher = launched()
        .ok_or_else(|| CommError::new("no MPI launcher (mpirun, srun) started this process"))?;
    let (title, packages) = match launcher.shim {
        "openmpi" => (
            "Open MPI",
            "`apt-get install openmpi-bin` or `dnf install openmpi`",
        ),
        _ => ("MPICH", "`apt-get install mpich` or `dnf install mpich`"),
    };
    let named = |name: &str| shims.iter().find(|shim| shim.name == name);
    let Some(shim) = named(launcher.shim).or_else(|| named("mpi")) else {
        let known: Vec<&str> = shims.iter().map(|shim| shim.name.as_str()).collect();
        let known = match known.as_slice() {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        return Err(CommError::new(format!(
            "the launcher is {title}'s, but there is no shim for {title} (there are: {known}); \
             install the development files of {title} and run `einc doctor --fix`, which builds one"
        )));
    };
    let library = Library::open(shim.library).map_err(|why| {
        CommError::new(format!(
            "the launcher is {title}'s, but the {title} library cannot be opened: {why}; \
             install the {title} that its shim ({}) was built for: {packages}",
            shim.origin
        ))
    })?;
    let failed = |why: String| CommError::new(format!("{title} does not start: {why}"));
    library.start().map_err(failed)?;
    let (site, sites) = library.place().map_err(failed)?;
    let mpi = Mpi {
        library,
        site,
        sites,
        failed: AtomicBool::new(false),
        open: Mutex::default(),
    };
    let alone = launcher.size == 0 && sites == 1 && launcher.rank > 0;
    if alone || (launcher.size != 0 && sites != launcher.size) {
        let started = match launcher.size {
            0 => format!("more than {}", launcher.rank),
            size => size.to_string(),
        };
        return Err(CommError::new(format!(
            "the launcher started {started} processes, but {title} sees {sites}: \
             the launcher belongs to another MPI than the {title} that is installed"
        )));
    }
    Ok(mpi)
}

impl Mpi {
    /// Ends MPI, after what is under way: a run that ends with an error ends between the two ends of an exchange at all ranks alike.
    fn finish(&self) -> Result<(), String> {
        let transfers = std::mem::take(&mut self.open().transfers);
        for (_, open) in transfers {
            self.library.end(open.transfer)?;
        }
        self.library.finish()
    }

    /// Messages of at most this many bytes instead of 1 GiB, for tests.
    #[doc(hidden)]
    pub fn with_messages_of(mut self, bytes: u64) -> Mpi {
        self.library.set_round(bytes);
        self
    }

    fn checked<T>(&self, result: Result<T, String>) -> Result<T, CommError> {
        result.map_err(|message| {
            self.failed.store(true, Ordering::Relaxed);
            CommError::of(self.site, format!("MPI: {message}"))
        })
    }

    /// Checks an own parcel before it is sent, so that both sides agree on every length.
    fn promised(&self, parcel: &[Buffer], kinds: &[BufferType]) -> Result<(), CommError> {
        check_types(self.site, parcel, kinds)
            .inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Begins to send `outgoing[s]` to each other site `s` and to receive what `incoming` promises; `own` is handed on.
    fn post(
        &self,
        outgoing: &[&[Buffer]],
        own: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        let mut sends: Vec<(u32, Bytes)> = vec![];
        let mut receives: Vec<(u32, Room)> = vec![];
        for site in (0..self.sites).filter(|site| *site != self.site) {
            let parcel = outgoing[site as usize];
            sends.push((site, Bytes::Packed(pack(parcel))));
            let large = parcel.iter().filter(|buffer| !is_small(buffer.bytes()));
            sends.extend(large.map(|buffer| (site, Bytes::Array(buffer.to_host()))));
            let (small, large): (Vec<&BufferType>, Vec<&BufferType>) = incoming[site as usize]
                .iter()
                .partition(|kind| is_small(kind.bytes()));
            let small = small.iter().map(|kind| kind.bytes() as usize).sum();
            receives.push((site, Room::Packed(vec![0; small])));
            let large = large.iter().map(|k| Array::room(k.dtype, &k.shape));
            receives.extend(large.map(|array| (site, Room::Array(array))));
        }
        let transfer = self.library.begin(sends, receives).map_err(|message| {
            // Messages may still be under way into memory that is about to be given back.
            self.abort(&format!("MPI: {message}"));
            CommError::of(self.site, format!("MPI: {message}"))
        })?;
        let mut open = self.open();
        open.calls += 1;
        let ticket = Ticket(open.calls);
        open.transfers.insert(
            ticket,
            Open {
                transfer,
                own,
                incoming: incoming.to_vec(),
            },
        );
        Ok(ticket)
    }

    fn open(&self) -> MutexGuard<'_, Transfers> {
        // The lists are valid after every single statement that holds the lock.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for a single sender, by MPI's broadcast.
    fn spread(
        &self,
        root: u32,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        let mut arrived: Vec<Vec<Buffer>> = incoming
            .iter()
            .map(|kinds| Parcel::new(kinds).unpack())
            .collect();
        if root == self.site {
            self.checked(self.library.broadcast(root, &pack(&mine)))?;
            for buffer in mine.iter().filter(|buffer| !is_small(buffer.bytes())) {
                let array = buffer.to_host();
                self.checked(self.library.broadcast(root, array.data().bytes()))?;
            }
            arrived[root as usize] = mine;
        } else {
            let mut parcel = Parcel::new(&incoming[root as usize]);
            self.checked(self.library.receive_broadcast(root, &mut parcel.small))?;
            for array in &mut parcel.arrays {
                let bytes = array.data_mut().bytes_mut();
                if !is_small(bytes.len() as u64) {
                    self.checked(self.library.receive_broadcast(root, bytes))?;
                }
            }
            arrived[root as usize] = parcel.unpack();
        }
        Ok(arrived)
    }
}

/// Returns whether an array of so many bytes is packed with others.
fn is_small(bytes: u64) -> bool {
    bytes <= SMALL as u64
}

/// The small arrays of a parcel, one after the other.
fn pack(buffers: &[Buffer]) -> Vec<u8> {
    let mut packed = vec![];
    for buffer in buffers.iter().filter(|buffer| is_small(buffer.bytes())) {
        packed.extend_from_slice(buffer.to_host().data().bytes());
    }
    packed
}

/// The arrays of a parcel from its rooms: that of the small ones, and one for each large one.
fn unpack(kinds: &[BufferType], rooms: &mut impl Iterator<Item = Room>) -> Vec<Buffer> {
    let small = match rooms.next() {
        Some(Room::Packed(bytes)) => bytes,
        _ => vec![],
    };
    let mut rest = small.as_slice();
    let arrays = kinds.iter().map(|kind| {
        let large = match is_small(kind.bytes()) {
            true => None,
            false => rooms.next(),
        };
        if let Some(Room::Array(array)) = large {
            return array.into();
        }
        let mut array = Array::room(kind.dtype, &kind.shape);
        let (own, others) = rest.split_at(kind.bytes() as usize);
        array.data_mut().bytes_mut().copy_from_slice(own);
        rest = others;
        array.into()
    });
    arrays.collect()
}

/// Room for what comes from one site.
struct Parcel {
    small: Vec<u8>,
    arrays: Vec<Array>,
}

impl Parcel {
    fn new(kinds: &[BufferType]) -> Parcel {
        let arrays: Vec<Array> = kinds
            .iter()
            .map(|kind| Array::room(kind.dtype, &kind.shape))
            .collect();
        let sizes = kinds.iter().map(BufferType::bytes);
        let small: u64 = sizes.filter(|bytes| is_small(*bytes)).sum();
        Parcel {
            small: vec![0; small as usize],
            arrays,
        }
    }

    fn unpack(self) -> Vec<Buffer> {
        let mut at = 0;
        let unpacked = self.arrays.into_iter().map(|mut array| {
            let bytes = array.data_mut().bytes_mut();
            if is_small(bytes.len() as u64) {
                bytes.copy_from_slice(&self.small[at..at + bytes.len()]);
                at += bytes.len();
            }
            array.into()
        });
        unpacked.collect()
    }
}

impl Communicator for Mpi {
    fn site(&self) -> u32 {
        self.site
    }

    fn sites(&self) -> u32 {
        self.sites
    }

    fn begin(
        &self,
        mut outgoing: Vec<Vec<Buffer>>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Ticket, CommError> {
        let own = std::mem::take(&mut outgoing[self.site as usize]);
        self.promised(&own, &incoming[self.site as usize])?;
        let outgoing: Vec<&[Buffer]> = outgoing.iter().map(Vec::as_slice).collect();
        self.post(&outgoing, own, incoming)
    }

    fn end(&self, ticket: Ticket) -> Result<Vec<Vec<Buffer>>, CommError> {
        let open = self.open().transfers.remove(&ticket);
        let Some(open) = open else {
            self.failed.store(true, Ordering::Relaxed);
            return Err(CommError::of(self.site, "ends what it has not begun"));
        };
        let rooms = self.checked(self.library.end(open.transfer))?;
        let mut rooms = rooms.into_iter().map(|(_, room)| room);
        let mut own = Some(open.own);
        let parcels = (0..).zip(&open.incoming).map(|(site, kinds)| {
            match own.take_if(|_| site == self.site) {
                Some(own) => own,
                None => unpack(kinds, &mut rooms),
            }
        });
        Ok(parcels.collect())
    }

    fn progress(&self) {
        self.library.progress();
    }

    fn share(
        &self,
        mine: Vec<Buffer>,
        incoming: &[Vec<BufferType>],
    ) -> Result<Vec<Vec<Buffer>>, CommError> {
        self.promised(&mine, &incoming[self.site as usize])?;
        let has_something =
            |kinds: &Vec<BufferType>| kinds.iter().any(|kind| !kind.shape.contains(&0));
        let mut senders = (0..)
            .zip(incoming)
            .filter(|(_, kinds)| has_something(kinds));
        if let (Some((root, _)), None) = (senders.next(), senders.next()) {
            return self.spread(root, mine, incoming);
        }
        let outgoing = vec![mine.as_slice(); self.sites as usize];
        let ticket = self.post(&outgoing, mine.clone(), incoming)?;
        self.end(ticket)
    }

    fn barrier(&self) -> Result<(), CommError> {
        self.checked(self.library.barrier())
    }

    fn agree(&self, mine: Option<String>) -> Result<Option<(u32, String)>, CommError> {
        // 0 for no failure, else the length of its text and one.
        let length = mine.as_ref().map_or(0, |text| text.len() as u64 + 1);
        let lengths = self.checked(self.library.all_gather(length, self.sites))?;
        let Some((site, length)) = (0..).zip(&lengths).find(|(_, length)| **length > 0) else {
            return Ok(None);
        };
        if site == self.site {
            let text = mine.unwrap_or_default();
            self.checked(self.library.broadcast(site, text.as_bytes()))?;
            return Ok(Some((site, text)));
        }
        let mut bytes = vec![0; *length as usize - 1];
        self.checked(self.library.receive_broadcast(site, &mut bytes))?;
        Ok(Some((site, String::from_utf8_lossy(&bytes).into_owned())))
    }

    fn doing(&self, what: String, patience: Option<Duration>) {
        let mut doing = DOING.lock().unwrap_or_else(PoisonError::into_inner);
        if doing.patience != patience {
            self.library.set_patience(patience);
        }
        *doing = Doing {
            site: self.site,
            what,
            patience,
        };
    }

    fn abort(&self, message: &str) {
        eprintln!("rank {}: {message}", self.site);
        self.failed.store(true, Ordering::Relaxed);
        // A launcher that is told to end the job may do so before it has passed the message on.
        std::thread::sleep(TIME_TO_SPEAK);
        self.library.abort(1);
    }
}

/// What this rank's calls are for.
static DOING: Mutex<Doing> = Mutex::new(Doing {
    site: 0,
    what: String::new(),
    patience: None,
});

struct Doing {
    site: u32,
    what: String,
    patience: Option<Duration>,
}

/// Says that a call waits for ranks.
fn missing(ranks: &[u32]) {
    let doing = DOING.lock().unwrap_or_else(PoisonError::into_inner);
    let patience = doing.patience.unwrap_or_default();
    eprintln!(
        "{}",
        crate::stall::told(doing.site, &doing.what, patience, ranks)
    );
}

/// How long an aborting rank leaves its launcher to read what it printed.
const TIME_TO_SPEAK: std::time::Duration = std::time::Duration::from_millis(500);

impl Drop for Mpi {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.abort("panicked");
        } else if self.failed.load(Ordering::Relaxed) {
            // The others may wait for this rank for ever.
            self.abort("cannot go on");
        } else if let Err(message) = self.finish() {
            eprintln!("rank {}: MPI: {message}", self.site);
        }
    }
}
