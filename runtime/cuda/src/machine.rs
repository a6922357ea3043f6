//! The duties of a GPU towards the device: it keeps memory, compiles texts, launches functions and multiplies matrices.
//!
//! Where a GPU stops, because of a mistake in a text or a fault of its own, the call panics with [`ein_device::DeviceFault`].
//!
//! Must not know kernels of plans.
//!
//! ```text
//! load [k0, k1] -> a module; launch k1, 3 blocks of 256 threads, (i0_start 0, i0_length 600, a0 at 0x7f…, 2400 bytes, …)
//! ```

pub use ein_nvidia::{Element, Matrices, Matrix};

use crate::text::Text;
use ein_device::MemorySpace;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A place in a machine's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address(pub u64);

/// An argument of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A number.
    Whole(i64),
    /// Memory of so many bytes.
    Memory(Address, u64),
}

/// Bytes that arrays take of a memory.
#[derive(Debug, Default)]
pub struct Usage {
    now: AtomicU64,
    most: AtomicU64,
}

impl Usage {
    /// Counts bytes that are taken.
    pub fn take(&self, bytes: u64) {
        let now = self.now.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    /// Counts bytes that are given back.
    pub fn give(&self, bytes: u64) {
        self.now.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Returns the most bytes that were taken at one time.
    pub fn most(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}

/// The memory, compiler and launches of one GPU.
pub trait Machine: fmt::Debug + Send + Sync {
    /// Its memory.
    fn space(&self) -> MemorySpace;

    /// Room for so many bytes, with any values.
    ///
    /// # Panics
    /// With [`ein_array::NoMemory`] or [`ein_device::DeviceFault`] if the memory is refused.
    fn allocate(&self, bytes: usize) -> Address;

    /// Gives back what was allocated; nothing uses it any more.
    fn free(&self, address: Address, bytes: usize);

    /// Bytes that arrays take of its memory.
    fn usage(&self) -> &Usage;

    /// Bytes that can still be allocated, if it knows.
    fn free_bytes(&self) -> Option<u64>;

    /// Fills so many bytes with zeros.
    fn clear(&self, address: Address, bytes: usize);

    /// Copies bytes of the host to the machine.
    fn write(&self, to: Address, from: &[u8]);

    /// Copies bytes of the machine to the host, when all launches before are done.
    fn read(&self, from: Address, to: &mut [u8]);

    /// Copies bytes within the machine; the two places do not overlap.
    fn copy(&self, to: Address, from: Address, bytes: usize);

    /// Returns when all launches before are done.
    fn synchronize(&self);

    /// Says whether it has a library for products of matrices; without one they are computed by texts, like other kernels.
    fn multiplies(&self) -> bool;

    /// Multiplies matrices by that library.
    fn multiply(&self, matrices: &Matrices);

    /// Compiles texts as one unit.
    ///
    /// # Errors
    /// The compiler's words, and the place where they and the unit are kept.
    fn load(&self, texts: &[&Text]) -> Result<Arc<dyn Module>, String>;
}

/// Compiled texts.
pub trait Module: fmt::Debug + Send + Sync {
    /// Launches a function, by its number in the unit; `arguments` are one for each parameter, of its kind.
    ///
    /// # Errors
    /// The mistake of the text that the machine has found.
    fn launch(
        &self,
        function: usize,
        blocks: u32,
        threads: u32,
        arguments: &[Argument],
    ) -> Result<(), String>;
}
