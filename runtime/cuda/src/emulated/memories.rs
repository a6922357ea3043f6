//! The memory of the emulated GPU: by address, so that a copy to an address that was not given out is found.
//!
//! Must not know what lies there.
//!
//! ```text
//! allocate 12 bytes -> 0x5600; write 0x5600; lent [0x5600], all at once to a launch; free 0x5600
//! ```

use crate::machine::Address;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Whole words, so that elements of any type are aligned.
type Words = Arc<Mutex<Vec<u64>>>;

/// All memory that is allocated.
#[derive(Debug, Default)]
pub(super) struct Memories {
    at: Mutex<BTreeMap<u64, Words>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Memories {
    /// Room for so many bytes, with values that are no ordinary numbers.
    pub fn allocate(&self, bytes: usize) -> Address {
        let length = bytes.div_ceil(8).max(1);
        let mut words = vec![];
        if words.try_reserve_exact(length).is_err() {
            std::panic::resume_unwind(Box::new(ein_array::NoMemory { bytes }));
        }
        words.resize(length, u64::MAX);
        let address = words.as_ptr().addr() as u64;
        locked(&self.at).insert(address, Arc::new(Mutex::new(words)));
        Address(address)
    }

    pub fn free(&self, address: Address) {
        let gone = locked(&self.at).remove(&address.0);
        drop(gone.expect("memory is given back once"));
    }

    fn words(&self, address: Address) -> Words {
        let all = locked(&self.at);
        let words = all.get(&address.0).expect("the memory is there");
        Arc::clone(words)
    }

    /// All bytes of a memory, whole words, for `change`.
    pub fn whole<R>(&self, address: Address, change: impl FnOnce(&mut [u8]) -> R) -> R {
        let words = self.words(address);
        let mut words = locked(&words);
        change(bytemuck::cast_slice_mut(&mut words))
    }

    /// The first bytes of a memory, for `change`.
    pub fn with<R>(
        &self,
        address: Address,
        bytes: usize,
        change: impl FnOnce(&mut [u8]) -> R,
    ) -> R {
        self.whole(address, |all| change(&mut all[..bytes]))
    }

    /// Copies so many bytes from one memory to another.
    pub fn copy(&self, to: Address, from: Address, bytes: usize) {
        let copy = self.with(from, bytes, |from| from.to_vec());
        self.with(to, bytes, |to| to.copy_from_slice(&copy));
    }

    /// Lends memories to `launch`, to it alone, which is given the number of each address among them.
    pub fn lend<R>(
        &self,
        addresses: BTreeSet<u64>,
        launch: impl FnOnce(&dyn Fn(u64) -> usize, &mut [&mut [u64]]) -> R,
    ) -> R {
        // All launches lock in the order of addresses, so that no two wait for each other.
        let addresses: Vec<u64> = addresses.into_iter().collect();
        let owners: Vec<Words> = (addresses.iter())
            .map(|address| self.words(Address(*address)))
            .collect();
        let mut guards: Vec<MutexGuard<'_, Vec<u64>>> =
            owners.iter().map(|words| locked(words)).collect();
        let mut lent: Vec<&mut [u64]> = guards.iter_mut().map(|words| &mut words[..]).collect();
        let number = |address: u64| {
            let found = addresses.binary_search(&address);
            found.expect("all memory of a launch is lent")
        };
        launch(&number, &mut lent)
    }
}
