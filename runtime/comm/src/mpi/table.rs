//! The C ABI between a program and the MPI shim: one versioned table of functions.
//!
//! The shim crate compiles this same file. Only pointers, lengths and numbers cross; which MPI is on the
//! other side cannot be told from here.
//!
//! ```text
//! ein_mpi_table() -> { version: 3, start, rank, size, begin, end, broadcast, all_gather, abort, … }
//! ```

use std::ffi::c_char;

/// The symbol that the shim exports: a function without arguments that returns a `*const Table`.
pub const SYMBOL: &str = "ein_mpi_table";

/// Raised with every change of `Table` or `Segment`.
pub const VERSION: u32 = 3;

/// Null if all went well, else a text that ends in NUL and stays valid.
pub type Outcome = *const c_char;

/// Is told for which ranks a call waits.
pub type Tell = unsafe extern "C" fn(ranks: *const u32, count: u64);

/// Bytes that go to a rank or come from one.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Segment {
    /// The first byte.
    pub address: *mut u8,
    /// How many.
    pub bytes: u64,
    /// The other rank.
    pub rank: u32,
}

/// What was begun and not ended; known to the shim alone.
#[repr(C)]
pub struct Begun {
    _private: [u8; 0],
}

/// What the shim does. All but `abort` are called by the thread that called `start`.
#[repr(C)]
pub struct Table {
    /// [`VERSION`] of the shim; the rest may be read only if it is the program's.
    pub version: u32,
    /// `MPI_Init_thread`, and errors are returned from then on.
    pub start: unsafe extern "C" fn() -> Outcome,
    /// This process's number in the world.
    pub rank: unsafe extern "C" fn(rank: *mut u32) -> Outcome,
    /// Number of processes of the world.
    pub size: unsafe extern "C" fn(size: *mut u32) -> Outcome,
    /// Begins to send and receive segments; between two ranks they go together in order, and have the same lengths
    /// on both sides. Every message has at most `round` bytes (at most `i32::MAX`). The bytes stay where they are until
    /// `end` has returned.
    pub begin: unsafe extern "C" fn(
        sends: *const Segment,
        send_count: u64,
        receives: *const Segment,
        receive_count: u64,
        round: u64,
        begun: *mut *mut Begun,
    ) -> Outcome,
    /// Waits for what was begun.
    pub end: unsafe extern "C" fn(begun: *mut Begun) -> Outcome,
    /// Lets what was begun go on; returns at once.
    pub progress: unsafe extern "C" fn(),
    /// `MPI_Bcast` of any number of bytes, at most `round` at a time. The root's bytes are only read.
    pub broadcast:
        unsafe extern "C" fn(root: u32, address: *mut u8, bytes: u64, round: u64) -> Outcome,
    /// `MPI_Allgather` of eight bytes a rank.
    pub all_gather: unsafe extern "C" fn(mine: u64, all: *mut u64) -> Outcome,
    /// `MPI_Barrier`.
    pub barrier: unsafe extern "C" fn() -> Outcome,
    /// `MPI_Abort`: ends all processes of the job.
    pub abort: unsafe extern "C" fn(status: i32),
    /// `MPI_Finalize`.
    pub finish: unsafe extern "C" fn() -> Outcome,
    /// From now on `end` and the collective calls call `tell`, once each, when they have waited so many nanoseconds (0: never).
    pub patience: unsafe extern "C" fn(nanoseconds: u64, tell: Tell),
}
