//! Buffers of arrays that are gone, kept for the next ones of their size.
//!
//! The first touch of memory costs far more than the next ones, so the buffer of a large array is not given back to the
//! system when the array goes. What is kept makes the process hold hardly more than its arrays alone did at their most ([`BEYOND`]): a
//! plan's stated peak stays true. Must not know what arrays are for.
//!
//! ```text
//! round 0: A fresh, B fresh, A gone   round 1: A' is in A's buffer   most held: A + B
//! ```

use crate::{Data, each_data};
use ein_plan::DType;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Buffers of fewer bytes are left to the allocator, which keeps them itself.
const LARGE: usize = 1 << 20;

static SPARE: Mutex<Spare> = Mutex::new(Spare {
    live: 0,
    most: 0,
    kept: 0,
    buffers: VecDeque::new(),
});

/// What is kept may take a process beyond the most that its arrays held by this part of it, so that a small array does not cost a large buffer.
const BEYOND: usize = 32;

/// What is kept, and how much is in use; bytes of large buffers only.
struct Spare {
    live: usize,
    most: usize,
    kept: usize,
    /// The longest kept first.
    buffers: VecDeque<Data>,
}

impl Spare {
    /// Takes away what does not fit beside the arrays in use and `more` bytes: the least buffer that is enough, else the longest kept.
    fn shrink(&mut self, more: usize) -> Vec<Data> {
        self.most = self.most.max(self.live + more);
        let fits = self.most + self.most / BEYOND;
        let mut gone = vec![];
        while let Some(excess) = (self.live + more + self.kept).checked_sub(fits)
            && excess > 0
        {
            let sizes = self.buffers.iter().map(bytes_of).enumerate();
            let enough = sizes.filter(|(_, bytes)| *bytes >= excess);
            let least = enough.min_by_key(|(_, bytes)| *bytes);
            let Some(buffer) = self.buffers.remove(least.map_or(0, |(at, _)| at)) else {
                break;
            };
            self.kept -= bytes_of(&buffer);
            gone.push(buffer);
        }
        gone
    }
}

fn with<R>(body: impl FnOnce(&mut Spare) -> R) -> R {
    body(&mut SPARE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Bytes of the buffer, of which the elements may take fewer.
fn bytes_of(data: &Data) -> usize {
    each_data!(data, v => v.capacity()) * data.dtype().size()
}

/// `n` elements with any values: those of an array that is gone, else zeros. The second tells whether they are zeros.
pub(crate) fn room(dtype: DType, n: usize) -> (Data, bool) {
    let wanted = n.saturating_mul(dtype.size());
    if wanted < LARGE {
        return (Data::zeros(dtype, n), true);
    }
    // An eighth more than wanted is not too much; the latest one is most likely still in a cache.
    let fits = |buffer: &Data| buffer.dtype() == dtype && (n..=n + n / 8).contains(&buffer.len());
    let (found, gone) = with(|spare| {
        let at = spare.buffers.iter().rposition(fits);
        match at.and_then(|at| spare.buffers.remove(at)) {
            Some(buffer) => {
                spare.kept -= bytes_of(&buffer);
                (Some(buffer), vec![])
            }
            None => (None, spare.shrink(wanted)),
        }
    });
    drop(gone);
    match found {
        Some(mut buffer) => {
            each_data!(&mut buffer, v => v.truncate(n));
            (buffer, false)
        }
        None => (Data::zeros(dtype, n), true),
    }
}

/// An array has these elements now.
pub(crate) fn begins(data: &Data) {
    let bytes = bytes_of(data);
    if bytes >= LARGE {
        let gone = with(|spare| {
            let gone = spare.shrink(bytes);
            spare.live += bytes;
            gone
        });
        drop(gone);
    }
}

/// An array has these elements no longer; somebody else does.
pub(crate) fn ends(data: &Data) {
    let bytes = bytes_of(data);
    if bytes >= LARGE {
        with(|spare| spare.live = spare.live.saturating_sub(bytes));
    }
}

/// An array is gone, and nobody else has its elements.
pub(crate) fn keep(data: Data) {
    let bytes = bytes_of(&data);
    if bytes < LARGE {
        return;
    }
    let gone = with(|spare| {
        spare.live = spare.live.saturating_sub(bytes);
        spare.kept += bytes;
        spare.buffers.push_back(data);
        spare.shrink(0)
    });
    drop(gone);
}

/// Gives all kept buffers back to the system: a run has ended.
pub fn release() {
    let gone = with(|spare| {
        spare.most = spare.live;
        spare.kept = 0;
        std::mem::take(&mut spare.buffers)
    });
    drop(gone);
}

#[cfg(test)]
mod tests {
    use crate::{Array, release};
    use ein_plan::DType;

    fn address(array: &Array) -> usize {
        array.data().bytes().as_ptr() as usize
    }

    #[test]
    fn buffers_are_used_again_and_hardly_add_to_the_most_that_was_held() {
        let shape = [3 << 18];
        let (a, b) = (
            Array::zeros(DType::F32, &shape),
            Array::zeros(DType::F32, &shape),
        );
        let (first, second) = (address(&a), address(&b));
        drop((a, b));
        let c = Array::room(DType::F32, &shape);
        assert_eq!(address(&c), second, "the latest one");
        let mut d = Array::zeros(DType::F32, &[(3 << 18) - 5]);
        assert_eq!(address(&d), first, "a little smaller");
        d.data_mut().bytes_mut().fill(1);
        drop(d);
        let zeros = Array::zeros(DType::F32, &[(3 << 18) - 5]);
        assert!(zeros.data().bytes().iter().all(|byte| *byte == 0));
        drop((c, zeros));
        let kept = || super::with(|spare| spare.kept);
        assert!(kept() > 0);
        // As large as both: there is no room for them beside it.
        let both = Array::zeros(DType::F32, &[3 << 19]);
        assert_eq!(kept(), 0);
        drop(both);
        // A small one that was not held beside it costs no large buffer.
        let large = || Array::room(DType::F32, &[12 << 20]);
        let first = address(&large());
        for _ in 0..3 {
            drop(Array::room(DType::F32, &[1 << 18]));
            assert_eq!(address(&large()), first);
        }
        release();
        assert_eq!(kept(), 0);
    }
}
