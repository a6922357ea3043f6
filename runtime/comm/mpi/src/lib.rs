//! The MPI shim: rsmpi inside, a C ABI outside.
//!
//! Built once for each MPI (`MPICC=mpicc.openmpi cargo build -p ein-mpi`); programs carry the libraries as
//! bytes and open the one that fits their launcher. Must not know arrays, plans or sites.
//!
//! ```text
//! libein_mpi.so   ein_mpi_table() -> { version: 3, start, rank, size, begin, end, … }
//! ```
#![allow(unsafe_code)]

#[path = "../../src/mpi/table.rs"]
#[allow(dead_code)]
mod table;

mod patient;

use mpi::ffi;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;
use table::{Begun, Outcome, Segment, Table, Tell, VERSION};

/// The table; see its type for what the functions promise.
#[unsafe(no_mangle)]
pub extern "C" fn ein_mpi_table() -> *const Table {
    static TABLE: Table = Table {
        version: VERSION,
        start,
        rank,
        size,
        begin,
        end,
        progress,
        broadcast,
        all_gather,
        barrier,
        abort,
        finish,
        patience,
    };
    &TABLE
}

/// One tag serves all: messages between two ranks are matched in the order in which they are posted.
const TAG: c_int = 0;

/// Null for success, else MPI's own text. The text is never freed: a run has at most one error.
fn outcome(code: c_int) -> Outcome {
    if code == ffi::MPI_SUCCESS as c_int {
        return ptr::null();
    }
    let mut text: [c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1] =
        [0; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the buffer has the length that MPI asks for, and MPI ends the text in NUL.
    let text = unsafe {
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut length);
        CStr::from_ptr(text.as_ptr()).to_owned()
    };
    text.into_raw()
}

fn refused(why: &CStr) -> Outcome {
    CString::from(why).into_raw()
}

/// The first failure of several calls.
fn all(codes: impl IntoIterator<Item = c_int>) -> Outcome {
    codes
        .into_iter()
        .map(outcome)
        .find(|outcome| !outcome.is_null())
        .unwrap_or(ptr::null())
}

unsafe extern "C" fn start() -> Outcome {
    let mut provided = 0;
    // SAFETY: called once, before anything else; MPI accepts absent arguments.
    unsafe {
        let code = ffi::MPI_Init_thread(
            ptr::null_mut(),
            ptr::null_mut(),
            ffi::RSMPI_THREAD_FUNNELED,
            &mut provided,
        );
        let started = all([
            code,
            ffi::MPI_Comm_set_errhandler(ffi::RSMPI_COMM_WORLD, ffi::RSMPI_ERRORS_RETURN),
        ]);
        if started.is_null() {
            patient::ranks_here(ranks_here());
        }
        started
    }
}

unsafe extern "C" fn rank(rank: *mut u32) -> Outcome {
    let mut number = 0;
    // SAFETY: `rank` points to a number of the caller's.
    unsafe {
        let code = ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut number);
        *rank = number as u32;
        outcome(code)
    }
}

unsafe extern "C" fn size(size: *mut u32) -> Outcome {
    let mut number = 0;
    // SAFETY: `size` points to a number of the caller's.
    unsafe {
        let code = ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut number);
        *size = number as u32;
        outcome(code)
    }
}

/// Messages that are under way.
struct Posted {
    /// Receives, then sends.
    requests: Vec<ffi::MPI_Request>,
    /// By request: the other rank.
    ranks: Vec<u32>,
    /// How many receives there are.
    receives: usize,
}

/// The messages of a segment: first byte and length, each at most `round`.
fn messages(segment: &Segment, round: u64) -> impl Iterator<Item = (*mut u8, c_int)> {
    let (address, bytes) = (segment.address, segment.bytes);
    let round = round.clamp(1, i32::MAX as u64);
    (0..bytes.div_ceil(round)).map(move |number| {
        let from = number * round;
        (
            address.wrapping_add(from as usize),
            round.min(bytes - from) as c_int,
        )
    })
}

unsafe extern "C" fn begin(
    sends: *const Segment,
    send_count: u64,
    receives: *const Segment,
    receive_count: u64,
    round: u64,
    begun: *mut *mut Begun,
) -> Outcome {
    // SAFETY: both lists have these lengths, their segments are valid until `end` returns, and those of
    // `receives` are written by nobody else. An empty list may have any address, so it is not looked at.
    let (sends, receives) = unsafe {
        let list = |address: *const Segment, count: u64| match count {
            0 => &[][..],
            _ => std::slice::from_raw_parts(address, count as usize),
        };
        (list(sends, send_count), list(receives, receive_count))
    };
    let mut requests = vec![];
    let mut code = ffi::MPI_SUCCESS as c_int;
    let mut post = |call: &dyn Fn(&mut ffi::MPI_Request) -> c_int| {
        if code != ffi::MPI_SUCCESS as c_int {
            return;
        }
        // SAFETY: a constant of the library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        code = call(&mut request);
        requests.push(request);
    };
    for segment in receives {
        for (address, bytes) in messages(segment, round) {
            // SAFETY: the message lies inside a segment; see above.
            post(&|request| unsafe {
                ffi::MPI_Irecv(
                    address.cast::<c_void>(),
                    bytes,
                    ffi::RSMPI_UINT8_T,
                    segment.rank as c_int,
                    TAG,
                    ffi::RSMPI_COMM_WORLD,
                    request,
                )
            });
        }
    }
    for segment in sends {
        for (address, bytes) in messages(segment, round) {
            // SAFETY: the message lies inside a segment; see above.
            post(&|request| unsafe {
                ffi::MPI_Isend(
                    address.cast::<c_void>(),
                    bytes,
                    ffi::RSMPI_UINT8_T,
                    segment.rank as c_int,
                    TAG,
                    ffi::RSMPI_COMM_WORLD,
                    request,
                )
            });
        }
    }
    if code != ffi::MPI_SUCCESS as c_int {
        // What was posted is never waited for: the caller ends the job.
        return outcome(code);
    }
    if c_int::try_from(requests.len()).is_err() {
        return refused(c"more messages at once than MPI can count");
    }
    // Receives were posted first.
    let segments = receives.iter().chain(sends);
    let ranks = segments.flat_map(|segment| messages(segment, round).map(|_| segment.rank));
    let posted = Posted {
        ranks: ranks.collect(),
        receives: (receives.iter().map(|s| messages(s, round).count())).sum(),
        requests,
    };
    // SAFETY: the place is the caller's.
    unsafe { *begun = Box::into_raw(Box::new(posted)).cast() };
    ptr::null()
}

unsafe extern "C" fn end(begun: *mut Begun) -> Outcome {
    // SAFETY: `begin` made it, and it is ended once.
    let mut posted = unsafe { Box::from_raw(begun.cast::<Posted>()) };
    outcome(patient::all(&mut posted))
}

unsafe extern "C" fn progress() {
    let mut there = 0;
    // SAFETY: MPI is started. What is looked for does not matter: MPI moves everything on that is under way.
    unsafe {
        ffi::MPI_Iprobe(
            ffi::RSMPI_ANY_SOURCE,
            TAG,
            ffi::RSMPI_COMM_WORLD,
            &mut there,
            ffi::RSMPI_STATUS_IGNORE,
        );
    }
}

unsafe extern "C" fn broadcast(root: u32, address: *mut u8, bytes: u64, round: u64) -> Outcome {
    let segment = Segment {
        address,
        bytes,
        rank: root,
    };
    // A rank may leave a broadcast before others have come to it, and nobody could tell who is missing; it does not leave this.
    let code = patient::meet();
    if code != ffi::MPI_SUCCESS as c_int {
        return outcome(code);
    }
    for (address, bytes) in messages(&segment, round) {
        // SAFETY: the message lies inside the caller's buffer, which has the same length at every rank.
        let code = unsafe {
            ffi::MPI_Bcast(
                address.cast::<c_void>(),
                bytes,
                ffi::RSMPI_UINT8_T,
                root as c_int,
                ffi::RSMPI_COMM_WORLD,
            )
        };
        if code != ffi::MPI_SUCCESS as c_int {
            return outcome(code);
        }
    }
    ptr::null()
}

unsafe extern "C" fn all_gather(mine: u64, all: *mut u64) -> Outcome {
    // SAFETY: a constant of the library.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: `all` has room for one number of every rank, and both places live until the call is waited for, below.
    let code = unsafe {
        ffi::MPI_Iallgather(
            (&raw const mine).cast::<c_void>(),
            1,
            ffi::RSMPI_UINT64_T,
            all.cast::<c_void>(),
            1,
            ffi::RSMPI_UINT64_T,
            ffi::RSMPI_COMM_WORLD,
            &mut request,
        )
    };
    if code != ffi::MPI_SUCCESS as c_int {
        return outcome(code);
    }
    outcome(patient::together(request))
}

unsafe extern "C" fn patience(nanoseconds: u64, tell: Tell) {
    patient::set(nanoseconds, tell);
}

unsafe extern "C" fn barrier() -> Outcome {
    outcome(patient::meet())
}

unsafe extern "C" fn abort(status: i32) {
    // SAFETY: MPI is started.
    unsafe {
        ffi::MPI_Abort(ffi::RSMPI_COMM_WORLD, status);
    }
}

unsafe extern "C" fn finish() -> Outcome {
    let apart = over_ucx() && several_hosts();
    let met = outcome(patient::meet());
    if !met.is_null() {
        return met;
    }
    // What waiting ranks have said to this one and nobody has read.
    patient::heard(0);
    if apart {
        std::thread::sleep(ALL_HAVE_LEFT);
    }
    // SAFETY: called once, when nothing is under way.
    outcome(unsafe { ffi::MPI_Finalize() })
}

/// Between hosts MPICH over UCX ends each connection by a message that the other rank must answer, and a rank whose own are answered waits
/// for all in a way that answers nobody (pmodels/mpich, pull request 6596): one that asks late waits for ever. So no rank begins to ask before all
/// have left the meeting, where they still answer; from then on each asks first and answers later.
const ALL_HAVE_LEFT: Duration = Duration::from_millis(250);

/// Whether this is MPICH over UCX.
fn over_ucx() -> bool {
    let mut text: [c_char; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1] =
        [0; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut length = 0;
    // SAFETY: the buffer has the length that MPI asks for, and MPI ends the text in NUL.
    let text = unsafe {
        ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut length);
        CStr::from_ptr(text.as_ptr())
    };
    text.to_string_lossy().contains("ch4:ucx")
}

/// Whether some ranks cannot share memory, the same at every rank; collective.
fn several_hosts() -> bool {
    let mut all = 0;
    // SAFETY: MPI is started.
    unsafe { ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut all) };
    (ranks_here() as c_int) < all
}

/// How many ranks share memory with this one, itself among them; collective.
fn ranks_here() -> usize {
    let mut here = 0;
    // SAFETY: collective; MPI is started, and the communicator is freed where it was made.
    unsafe {
        let mut host = ffi::RSMPI_COMM_NULL;
        let kind = ffi::RSMPI_COMM_TYPE_SHARED;
        let code = ffi::MPI_Comm_split_type(
            ffi::RSMPI_COMM_WORLD,
            kind,
            0,
            ffi::RSMPI_INFO_NULL,
            &mut host,
        );
        if code == ffi::MPI_SUCCESS as c_int {
            ffi::MPI_Comm_size(host, &mut here);
            ffi::MPI_Comm_free(&mut host);
        }
    }
    here as usize
}
