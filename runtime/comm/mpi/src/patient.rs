//! Waiting that tells, once, for which ranks it waits.
//!
//! What is received from whom is known in an exchange. In a collective, which no rank leaves before all have come, it is not: there a rank that has waited long says so to all others,
//! those that wait as well answer, and whoever keeps silent is missing. Must not know what is waited for.
//!
//! ```text
//! rank 0: waits, tells 1 2 3     rank 1, rank 3: wait, answer     rank 2: computes     rank 0 says: 2 is missing
//! ```

use crate::Posted;
use crate::table::Tell;
use mpi::ffi;
use std::ffi::{c_int, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Nanoseconds; 0: for ever.
static PATIENCE: AtomicU64 = AtomicU64::new(0);
/// Whom to tell.
static TELL: Mutex<Option<Tell>> = Mutex::new(None);
/// Whether this host has more ranks than cores.
static CROWDED: AtomicBool = AtomicBool::new(false);
/// Collective calls so far; the same number at every rank that is at the same call.
static CALLS: AtomicU64 = AtomicU64::new(0);

/// The tag of what waiting ranks say to each other.
const TAG: c_int = 1;
/// How long others have for an answer.
const ANSWERS: Duration = Duration::from_millis(700);
/// How often a waiting rank looks before it sleeps, on a host with more ranks than cores, and how long it sleeps then.
const LOOKS: u32 = 100;
const SLEEPS: Duration = Duration::from_micros(50);
/// How often a waiting rank listens.
const LISTENS: Duration = Duration::from_millis(50);

/// Says how many ranks this host has.
pub fn ranks_here(ranks: usize) {
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online");
    let cores = online.ok().and_then(|list| cores(&list));
    CROWDED.store(cores.is_some_and(|cores| ranks > cores), Ordering::Relaxed);
}

/// How many cores a list such as `0-3,8` names: all of the host, where [`std::thread::available_parallelism`] counts those that this rank is
/// bound to.
fn cores(list: &str) -> Option<usize> {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    };
    list.trim().split(',').map(count).sum()
}

/// What a waiting rank does between two looks: leaves its core to who is there too. One that sleeps does not count as busy, so that the
/// system moves a rank that computes to its core.
fn pause(looked: &mut u32) {
    *looked = looked.saturating_add(1);
    match *looked > LOOKS && CROWDED.load(Ordering::Relaxed) {
        true => std::thread::sleep(SLEEPS),
        false => std::thread::yield_now(),
    }
}

pub fn set(nanoseconds: u64, tell: Tell) {
    PATIENCE.store(nanoseconds, Ordering::Relaxed);
    if let Ok(mut known) = TELL.lock() {
        *known = Some(tell);
    }
}

fn tell(missing: &[u32]) {
    if let Ok(known) = TELL.lock()
        && let Some(tell) = *known
    {
        // SAFETY: the list has that many numbers until the call returns.
        unsafe { tell(missing.as_ptr(), missing.len() as u64) }
    }
}

/// Waits for messages; MPI's code.
pub fn all(posted: &mut Posted) -> c_int {
    let Posted {
        requests,
        ranks,
        receives,
    } = posted;
    let Ok(count) = c_int::try_from(requests.len()) else {
        return ffi::MPI_ERR_COUNT as c_int;
    };
    let patience = PATIENCE.load(Ordering::Relaxed);
    if patience > 0 && count > 0 {
        let (began, mut looked) = (Instant::now(), 0);
        loop {
            let mut done = 0;
            // SAFETY: `count` requests, all posted.
            let code = unsafe {
                ffi::MPI_Testall(
                    count,
                    requests.as_mut_ptr(),
                    &mut done,
                    ffi::RSMPI_STATUSES_IGNORE,
                )
            };
            if code != ffi::MPI_SUCCESS as c_int || done != 0 {
                return code;
            }
            if began.elapsed().as_nanos() >= u128::from(patience) {
                break;
            }
            pause(&mut looked);
        }
        let missing = |range: std::ops::Range<usize>| {
            let mut missing: Vec<u32> = vec![];
            for (request, rank) in requests[range.clone()].iter().zip(&ranks[range]) {
                let mut done = 0;
                // SAFETY: a request that is posted, or null, which counts as done.
                unsafe {
                    ffi::MPI_Request_get_status(*request, &mut done, ffi::RSMPI_STATUS_IGNORE)
                };
                if done == 0 && !missing.contains(rank) {
                    missing.push(*rank);
                }
            }
            missing.sort_unstable();
            missing
        };
        // Whoever has not sent is missing; where nothing is to come, whoever has not received.
        let mut ranks = missing(0..*receives);
        if ranks.is_empty() {
            ranks = missing(*receives..requests.len());
        }
        tell(&ranks);
    }
    // SAFETY: `count` requests, all posted.
    unsafe { ffi::MPI_Waitall(count, requests.as_mut_ptr(), ffi::RSMPI_STATUSES_IGNORE) }
}

/// Waits for a collective call that all ranks make in the same order; MPI's code.
pub fn together(mut request: ffi::MPI_Request) -> c_int {
    let call = CALLS.fetch_add(1, Ordering::Relaxed) + 1;
    let patience = Duration::from_nanos(PATIENCE.load(Ordering::Relaxed));
    if !patience.is_zero() {
        let (began, mut looked) = (Instant::now(), 0);
        let (mut listened, mut said, mut told) = (began, None, false);
        let mut here: Vec<u32> = vec![];
        while !told {
            let mut done = 0;
            // SAFETY: a request that is posted.
            let code = unsafe { ffi::MPI_Test(&mut request, &mut done, ffi::RSMPI_STATUS_IGNORE) };
            if code != ffi::MPI_SUCCESS as c_int || done != 0 {
                return code;
            }
            if listened.elapsed() >= LISTENS {
                listened = Instant::now();
                let heard = heard(call);
                // Whoever asks gets an answer.
                if said.is_none() && (!heard.is_empty() || began.elapsed() >= patience) {
                    say(call);
                    said = Some(Instant::now());
                }
                here.extend(heard);
                let answered = said.is_some_and(|said| said.elapsed() >= ANSWERS);
                if answered && began.elapsed() >= patience {
                    told = true;
                }
            }
            pause(&mut looked);
        }
        let (me, ranks) = place();
        here.push(me);
        // One of those that wait says it.
        if here.iter().min() == Some(&me) {
            let missing: Vec<u32> = (0..ranks).filter(|rank| !here.contains(rank)).collect();
            tell(&missing);
        }
    }
    // SAFETY: a request that is posted.
    unsafe { ffi::MPI_Wait(&mut request, ffi::RSMPI_STATUS_IGNORE) }
}

/// Returns when all ranks have come here; MPI's code.
pub fn meet() -> c_int {
    // SAFETY: a constant of the library.
    let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
    // SAFETY: collective; MPI is started.
    let code = unsafe { ffi::MPI_Ibarrier(ffi::RSMPI_COMM_WORLD, &mut request) };
    match code == ffi::MPI_SUCCESS as c_int {
        true => together(request),
        false => code,
    }
}

fn place() -> (u32, u32) {
    let (mut rank, mut size) = (0, 0);
    // SAFETY: MPI is started, and both are numbers of this function's.
    unsafe {
        ffi::MPI_Comm_rank(ffi::RSMPI_COMM_WORLD, &mut rank);
        ffi::MPI_Comm_size(ffi::RSMPI_COMM_WORLD, &mut size);
    }
    (rank as u32, size as u32)
}

/// Says to all other ranks that this one waits at a call.
fn say(call: u64) {
    let (me, ranks) = place();
    for rank in (0..ranks).filter(|rank| *rank != me) {
        // It is sent while this function is long over, so it is never freed; this happens once a stall.
        let text: &'static u64 = Box::leak(Box::new(call));
        // SAFETY: the number lives for ever; the request is given up, and MPI ends it when the message has gone.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            ffi::MPI_Isend(
                std::ptr::from_ref(text).cast::<c_void>(),
                1,
                ffi::RSMPI_UINT64_T,
                rank as c_int,
                TAG,
                ffi::RSMPI_COMM_WORLD,
                &mut request,
            );
            ffi::MPI_Request_free(&mut request);
        }
    }
}

/// The ranks that have said since the last time that they wait at this call. What was said of earlier calls is forgotten.
pub fn heard(call: u64) -> Vec<u32> {
    let mut ranks = vec![];
    loop {
        let mut there = 0;
        // SAFETY: MPI is started; all places are this function's.
        let (from, said) = unsafe {
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            ffi::MPI_Iprobe(
                ffi::RSMPI_ANY_SOURCE,
                TAG,
                ffi::RSMPI_COMM_WORLD,
                &mut there,
                &mut status,
            );
            if there == 0 {
                return ranks;
            }
            let mut said = 0u64;
            ffi::MPI_Recv(
                (&raw mut said).cast::<c_void>(),
                1,
                ffi::RSMPI_UINT64_T,
                status.MPI_SOURCE,
                TAG,
                ffi::RSMPI_COMM_WORLD,
                ffi::RSMPI_STATUS_IGNORE,
            );
            (status.MPI_SOURCE as u32, said)
        };
        if said == call {
            ranks.push(from);
        }
    }
}
