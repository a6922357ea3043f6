//! The opened shim behind safe functions.
//!
//! All `unsafe` of this crate stands here. Must not know sites' arrays or launchers.
//!
//! ```text
//! bytes of libein_mpi.so -> memfd -> dlopen("/proc/self/fd/5") -> table, version 3
//! ```
#![allow(unsafe_code)]

use super::table::{Begun, Outcome, SYMBOL, Segment, Table, Tell, VERSION};
use ein_array::Array;
use libloading::os::unix::{Library as Dynamic, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::CStr;
use std::fs::File;
use std::io::Write;
use std::mem::ManuallyDrop;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

/// Most bytes of one MPI message: counts are 32-bit, and some implementations compute with them.
const ROUND: u64 = 1 << 30;

/// A shim that is opened; it stays open until the process ends.
pub(super) struct Library {
    table: &'static Table,
    round: u64,
}

/// Bytes that are sent; on the heap.
pub(super) enum Bytes {
    Packed(Vec<u8>),
    Array(Arc<Array>),
}

impl Bytes {
    fn bytes(&self) -> &[u8] {
        match self {
            Bytes::Packed(bytes) => bytes,
            Bytes::Array(array) => array.data().bytes(),
        }
    }
}

/// Bytes that are filled; on the heap.
pub(super) enum Room {
    Packed(Vec<u8>),
    Array(Array),
}

impl Room {
    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Room::Packed(bytes) => bytes,
            Room::Array(array) => array.data_mut().bytes_mut(),
        }
    }
}

/// What is under way. What it holds is dropped only by [`Library::end`].
pub(super) struct Transfer {
    begun: *mut Begun,
    sends: ManuallyDrop<Vec<(u32, Bytes)>>,
    receives: ManuallyDrop<Vec<(u32, Room)>>,
}

// SAFETY: the pointer is the shim's and only handed back to it; the rest is owned.
unsafe impl Send for Transfer {}

impl Library {
    /// Opens a shim from its bytes; the error is the loader's text.
    pub fn open(library: &[u8]) -> Result<Library, String> {
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = rustix::fs::memfd_create("ein-mpi", flags)
            .map(File::from)
            .map_err(|error| format!("no memory for it: {error}"))?;
        file.write_all(library)
            .map_err(|error| format!("no memory for it: {error}"))?;
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        // SAFETY: the bytes are a shim's, whose initialisers (and MPI's) run here. MPI's plug-ins look for its
        // symbols, so they are made visible to all.
        let library = unsafe { Dynamic::open(Some(&path), RTLD_NOW | RTLD_GLOBAL) }
            .map_err(|error| loader_text(&error).replace(&format!("{path}: "), ""))?;
        // SAFETY: the shim exports the symbol with this type.
        let table = unsafe {
            let entry = library
                .get::<extern "C" fn() -> *const Table>(SYMBOL.as_bytes())
                .map_err(|error| loader_text(&error))?;
            &*entry()
        };
        // MPI libraries do not survive being closed: threads and exit handlers of theirs go on.
        std::mem::forget(library);
        if table.version != VERSION {
            return Err(format!(
                "it has version {}, and this program needs version {VERSION}",
                table.version
            ));
        }
        Ok(Library {
            table,
            round: ROUND,
        })
    }

    /// Another size of messages, for tests.
    pub fn set_round(&mut self, round: u64) {
        self.round = round;
    }

    /// Starts MPI; called once.
    pub fn start(&self) -> Result<(), String> {
        // SAFETY: the first call, by the thread that goes on to make all others.
        check(unsafe { (self.table.start)() })
    }

    /// This process's rank and the number of ranks.
    pub fn place(&self) -> Result<(u32, u32), String> {
        let (mut rank, mut size) = (0, 0);
        // SAFETY: MPI is started; the numbers outlive the calls.
        unsafe {
            check((self.table.rank)(&mut rank))?;
            check((self.table.size)(&mut size))?;
        }
        Ok((rank, size))
    }

    /// Begins to send bytes to ranks and to fill bytes from ranks, in order between each two. After an error messages may
    /// still be under way, so the caller ends the job.
    pub fn begin(
        &self,
        sends: Vec<(u32, Bytes)>,
        mut receives: Vec<(u32, Room)>,
    ) -> Result<Transfer, String> {
        let segment = |rank: u32, address: *mut u8, bytes: usize| Segment {
            address,
            bytes: bytes as u64,
            rank,
        };
        let from: Vec<Segment> = sends
            .iter()
            .map(|(rank, bytes)| (rank, bytes.bytes()))
            .filter(|(_, bytes)| !bytes.is_empty())
            // Only read.
            .map(|(rank, bytes)| segment(*rank, bytes.as_ptr().cast_mut(), bytes.len()))
            .collect();
        let to: Vec<Segment> = receives
            .iter_mut()
            .map(|(rank, room)| (rank, room.bytes_mut()))
            .filter(|(_, bytes)| !bytes.is_empty())
            .map(|(rank, bytes)| segment(*rank, bytes.as_mut_ptr(), bytes.len()))
            .collect();
        let mut transfer = Transfer {
            begun: std::ptr::null_mut(),
            sends: ManuallyDrop::new(sends),
            receives: ManuallyDrop::new(receives),
        };
        // SAFETY: the bytes lie on the heap, where they stay while their owners are moved. The transfer owns them, gives none
        // of them out before `end`, and never drops them if that is not called.
        check(unsafe {
            (self.table.begin)(
                from.as_ptr(),
                from.len() as u64,
                to.as_ptr(),
                to.len() as u64,
                self.round,
                &mut transfer.begun,
            )
        })?;
        Ok(transfer)
    }

    /// Waits for what was begun: the filled rooms, in the order in which they were given.
    pub fn end(&self, mut transfer: Transfer) -> Result<Vec<(u32, Room)>, String> {
        // SAFETY: `begin` gave it, and the transfer is used up.
        check(unsafe { (self.table.end)(transfer.begun) })?;
        // SAFETY: nothing is under way any more, and both are taken once.
        unsafe {
            ManuallyDrop::drop(&mut transfer.sends);
            Ok(ManuallyDrop::take(&mut transfer.receives))
        }
    }

    /// Lets what was begun go on.
    pub fn progress(&self) {
        // SAFETY: MPI is started.
        unsafe { (self.table.progress)() }
    }

    /// Sends the same bytes to all ranks.
    pub fn broadcast(&self, me: u32, bytes: &[u8]) -> Result<(), String> {
        let (address, length) = (bytes.as_ptr().cast_mut(), bytes.len() as u64);
        // SAFETY: the root's bytes are only read.
        check(unsafe { (self.table.broadcast)(me, address, length, self.round) })
    }

    /// Takes part in the broadcast of another rank.
    pub fn receive_broadcast(&self, root: u32, bytes: &mut [u8]) -> Result<(), String> {
        // SAFETY: the bytes are borrowed exclusively until the call returns.
        check(unsafe {
            (self.table.broadcast)(root, bytes.as_mut_ptr(), bytes.len() as u64, self.round)
        })
    }

    /// Every rank's number, by rank.
    pub fn all_gather(&self, mine: u64, ranks: u32) -> Result<Vec<u64>, String> {
        let mut all = vec![0; ranks as usize];
        // SAFETY: one number for every rank.
        check(unsafe { (self.table.all_gather)(mine, all.as_mut_ptr()) })?;
        Ok(all)
    }

    /// Waits for all ranks.
    pub fn barrier(&self) -> Result<(), String> {
        // SAFETY: MPI is started.
        check(unsafe { (self.table.barrier)() })
    }

    /// Ends all processes of the job, this one included.
    pub fn abort(&self, status: i32) {
        // SAFETY: MPI is started. Where another thread than MPI's calls it, nothing else is done any more.
        unsafe { (self.table.abort)(status) }
    }

    /// How long exchanges and agreements wait without telling for which ranks; none: for ever.
    pub fn set_patience(&self, patience: Option<Duration>) {
        /// See [`super::missing`].
        unsafe extern "C" fn told(ranks: *const u32, count: u64) {
            // SAFETY: the shim passes that many numbers; an empty list may have any address.
            let ranks = match count {
                0 => &[],
                _ => unsafe { std::slice::from_raw_parts(ranks, count as usize) },
            };
            super::missing(ranks);
        }
        let tell: Tell = told;
        let nanoseconds = patience.map_or(0, |patience| patience.as_nanos() as u64);
        // SAFETY: the function is there as long as the program.
        unsafe { (self.table.patience)(nanoseconds, tell) }
    }

    /// Ends MPI; nothing may be called after it.
    pub fn finish(&self) -> Result<(), String> {
        // SAFETY: the last call.
        check(unsafe { (self.table.finish)() })
    }
}

/// What the loader says; the error's own text only says that there was something.
fn loader_text(error: &libloading::Error) -> String {
    match error {
        libloading::Error::DlOpen { source, .. } | libloading::Error::DlSym { source, .. } => {
            source.to_string()
        }
        other => other.to_string(),
    }
}

fn check(outcome: Outcome) -> Result<(), String> {
    if outcome.is_null() {
        return Ok(());
    }
    // SAFETY: a shim's texts end in NUL and are never freed.
    let text = unsafe { CStr::from_ptr(outcome) };
    Err(text.to_string_lossy().into_owned())
}
