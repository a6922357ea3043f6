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

pub use launcher::{Launcher, launched};

use crate::{ArrayKind, CommError, Communicator, check_kinds};
use ein_array::Array;
use library::Library;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A shim: a shared library that was built against one MPI.
#[derive(Clone, Debug)]
pub struct Shim<'a> {
    /// `openmpi`, `mpich`, or `mpi` for the only MPI of a machine, whichever it is.
    pub name: String,
    /// The bytes of the library.
    pub library: &'a [u8],
}

/// Arrays up to this many bytes are packed into one message for each pair of sites.
const SMALL: usize = 1 << 16;

/// One rank. Dropping it ends MPI, or, after a failure or in a panic, the whole job.
pub struct Mpi {
    library: Library,
    site: u32,
    sites: u32,
    failed: AtomicBool,
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
            "the launcher is {title}'s, but einc was built without support for {title} (built in: {known}); \
             build einc where the development files of {title} are installed"
        )));
    };
    let library = Library::open(shim.library).map_err(|why| {
        CommError::new(format!(
            "the launcher is {title}'s, but the {title} library cannot be opened: {why}; \
             install the {title} that the program was built for: {packages}"
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
    fn promised(&self, parcel: &[Arc<Array>], kinds: &[ArrayKind]) -> Result<(), CommError> {
        check_kinds(self.site, parcel, kinds)
            .inspect_err(|_| self.failed.store(true, Ordering::Relaxed))
    }

    /// Sends `outgoing[s]` to each other site `s` and receives what `incoming` promises; `own` is handed on.
    fn swap(
        &self,
        outgoing: &[&[Arc<Array>]],
        own: Vec<Arc<Array>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
        let others = |site: &u32| *site != self.site;
        let packed: Vec<Vec<u8>> = outgoing.iter().map(|parcel| pack(parcel)).collect();
        let mut sends: Vec<(u32, &[u8])> = vec![];
        for site in (0..self.sites).filter(others) {
            sends.push((site, &packed[site as usize]));
            let large = outgoing[site as usize].iter().map(|a| a.data().bytes());
            sends.extend(large.filter(|b| b.len() > SMALL).map(|bytes| (site, bytes)));
        }
        let mut parcels: Vec<Parcel> = incoming
            .iter()
            .zip(0..)
            .map(|(kinds, site)| Parcel::new(if others(&site) { kinds } else { &[] }))
            .collect();
        let mut receives: Vec<(u32, &mut [u8])> = vec![];
        for (site, parcel) in (0..).zip(&mut parcels) {
            receives.push((site, &mut parcel.small));
            let large = parcel.arrays.iter_mut().map(|a| a.data_mut().bytes_mut());
            receives.extend(large.filter(|b| b.len() > SMALL).map(|bytes| (site, bytes)));
        }
        if let Err(message) = self.library.exchange(&sends, &mut receives) {
            // Messages may still be under way into memory that is about to be given back.
            self.abort(&format!("MPI: {message}"));
            return Err(CommError::of(self.site, format!("MPI: {message}")));
        }
        let mut arrived: Vec<Vec<Arc<Array>>> = parcels.into_iter().map(Parcel::unpack).collect();
        arrived[self.site as usize] = own;
        Ok(arrived)
    }

    /// The same for a single sender, by MPI's broadcast.
    fn spread(
        &self,
        root: u32,
        mine: Vec<Arc<Array>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
        let mut arrived: Vec<Vec<Arc<Array>>> = incoming
            .iter()
            .map(|kinds| Parcel::new(kinds).unpack())
            .collect();
        if root == self.site {
            self.checked(self.library.broadcast(root, &pack(&mine)))?;
            for bytes in mine
                .iter()
                .map(|a| a.data().bytes())
                .filter(|b| b.len() > SMALL)
            {
                self.checked(self.library.broadcast(root, bytes))?;
            }
            arrived[root as usize] = mine;
        } else {
            let mut parcel = Parcel::new(&incoming[root as usize]);
            self.checked(self.library.receive_broadcast(root, &mut parcel.small))?;
            for array in &mut parcel.arrays {
                let bytes = array.data_mut().bytes_mut();
                if bytes.len() > SMALL {
                    self.checked(self.library.receive_broadcast(root, bytes))?;
                }
            }
            arrived[root as usize] = parcel.unpack();
        }
        Ok(arrived)
    }
}

/// The small arrays of a parcel, one after the other.
fn pack(arrays: &[Arc<Array>]) -> Vec<u8> {
    let bytes = arrays.iter().map(|array| array.data().bytes());
    bytes
        .filter(|b| b.len() <= SMALL)
        .flatten()
        .copied()
        .collect()
}

/// Room for what comes from one site.
struct Parcel {
    small: Vec<u8>,
    arrays: Vec<Array>,
}

impl Parcel {
    fn new(kinds: &[ArrayKind]) -> Parcel {
        let arrays: Vec<Array> = kinds
            .iter()
            .map(|kind| Array::room(kind.dtype, &kind.shape))
            .collect();
        let sizes = arrays.iter().map(|array| array.data().bytes().len());
        Parcel {
            small: vec![0; sizes.filter(|size| *size <= SMALL).sum()],
            arrays,
        }
    }

    fn unpack(self) -> Vec<Arc<Array>> {
        let mut at = 0;
        let unpacked = self.arrays.into_iter().map(|mut array| {
            let bytes = array.data_mut().bytes_mut();
            if bytes.len() <= SMALL {
                bytes.copy_from_slice(&self.small[at..at + bytes.len()]);
                at += bytes.len();
            }
            Arc::new(array)
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

    fn exchange(
        &self,
        mut outgoing: Vec<Vec<Arc<Array>>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
        let own = std::mem::take(&mut outgoing[self.site as usize]);
        self.promised(&own, &incoming[self.site as usize])?;
        let outgoing: Vec<&[Arc<Array>]> = outgoing.iter().map(Vec::as_slice).collect();
        self.swap(&outgoing, own, incoming)
    }

    fn share(
        &self,
        mine: Vec<Arc<Array>>,
        incoming: &[Vec<ArrayKind>],
    ) -> Result<Vec<Vec<Arc<Array>>>, CommError> {
        self.promised(&mine, &incoming[self.site as usize])?;
        let has_something =
            |kinds: &Vec<ArrayKind>| kinds.iter().any(|kind| !kind.shape.contains(&0));
        let mut senders = (0..)
            .zip(incoming)
            .filter(|(_, kinds)| has_something(kinds));
        if let (Some((root, _)), None) = (senders.next(), senders.next()) {
            return self.spread(root, mine, incoming);
        }
        let outgoing = vec![mine.as_slice(); self.sites as usize];
        self.swap(&outgoing, mine.clone(), incoming)
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

    fn abort(&self, message: &str) {
        eprintln!("rank {}: {message}", self.site);
        self.failed.store(true, Ordering::Relaxed);
        // A launcher that is told to end the job may do so before it has passed the message on.
        std::thread::sleep(TIME_TO_SPEAK);
        self.library.abort(1);
    }
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
        } else if let Err(message) = self.library.finish() {
            eprintln!("rank {}: MPI: {message}", self.site);
        }
    }
}
