//! Buffers of arrays that are gone, kept for the next ones of their size.
//!
//! The first touch of memory costs far more than the next ones, so the buffer of a large array is not given back to the
//! system when the array goes. What is kept never makes the process hold more than its arrays alone did at their most: a
//! plan's stated peak stays true. An array may be in a larger buffer that would have to go otherwise; the first time that such arrays
//! make the process hold more than that is the last one that arrays get such buffers. Must not know what arrays are for.
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
    idle: 0,
    most: 0,
    kept: 0,
    thrifty: false,
    buffers: VecDeque::new(),
});

/// What is kept, and how much is in use; bytes of large buffers only.
struct Spare {
    live: usize,
    /// Of those in use, what their arrays do not need.
    idle: usize,
    most: usize,
    kept: usize,
    /// Whether arrays get no buffers that are much larger any more: they have made the process hold more than it would have.
    thrifty: bool,
    /// The longest kept first.
    buffers: VecDeque<Data>,
}

impl Spare {
    /// Takes away what does not fit beside the arrays in use and `more` bytes.
    fn shrink(&mut self, more: usize) -> Vec<Data> {
        let needed = (self.live + more).saturating_sub(self.idle);
        self.thrifty |= self.live + more > self.most && needed <= self.most;
        self.most = self.most.max(self.live + more);
        let mut gone = vec![];
        while self.live + more + self.kept > self.most
            && let Some(buffer) = self.buffers.pop_front()
        {
            self.kept -= bytes_of(&buffer);
            gone.push(buffer);
        }
        gone
    }

    /// A buffer is in use no longer.
    fn left(&mut self, data: &Data, bytes: usize) {
        self.live = self.live.saturating_sub(bytes);
        self.idle = self.idle.saturating_sub(idle_of(data));
    }

    /// The number of a buffer for so many elements: of about that size, the latest one, which is most likely still in a cache; or, if a fresh
    /// one would drive out others, the least one of at most twice that size.
    fn place(&self, dtype: DType, n: usize) -> Option<usize> {
        let own = |buffer: &Data| match buffer.dtype() == dtype {
            true => capacity(buffer),
            false => 0,
        };
        let fits = |buffer: &Data| (n..=n + n / 8).contains(&own(buffer));
        let near = self.buffers.iter().rposition(fits);
        if near.is_some() || self.thrifty {
            return near;
        }
        let fresh = self.live + n * dtype.size();
        if fresh + self.kept <= self.most.max(fresh) {
            return None;
        }
        let all = self.buffers.iter().enumerate();
        let larger = all.filter(|(_, buffer)| (n..=2 * n).contains(&own(buffer)));
        let least = larger.min_by_key(|(_, buffer)| own(buffer));
        least.map(|(at, _)| at)
    }
}

fn with<R>(body: impl FnOnce(&mut Spare) -> R) -> R {
    body(&mut SPARE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Elements that there is room for.
fn capacity(data: &Data) -> usize {
    each_data!(data, v => v.capacity())
}

/// Bytes of the buffer, of which the elements may take fewer.
fn bytes_of(data: &Data) -> usize {
    capacity(data) * data.dtype().size()
}

/// Bytes of the buffer that the elements do not take.
fn idle_of(data: &Data) -> usize {
    (capacity(data) - data.len()) * data.dtype().size()
}

/// `n` elements with any values: those of an array that is gone, else zeros. The second tells whether they are zeros.
pub(crate) fn room(dtype: DType, n: usize) -> (Data, bool) {
    let wanted = n.saturating_mul(dtype.size());
    if wanted < LARGE {
        return (Data::zeros(dtype, n), true);
    }
    let (found, gone) = with(|spare| {
        let at = spare.place(dtype, n);
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
            each_data!(&mut buffer, v => v.resize(n, Default::default()));
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
            spare.idle += idle_of(data);
            gone
        });
        drop(gone);
    }
}

/// An array has these elements no longer; somebody else does.
pub(crate) fn ends(data: &Data) {
    let bytes = bytes_of(data);
    if bytes >= LARGE {
        with(|spare| spare.left(data, bytes));
    }
}

/// An array is gone, and nobody else has its elements.
pub(crate) fn keep(data: Data) {
    let bytes = bytes_of(&data);
    if bytes < LARGE {
        return;
    }
    let gone = with(|spare| {
        spare.left(&data, bytes);
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
        spare.thrifty = false;
        std::mem::take(&mut spare.buffers)
    });
    drop(gone);
}

#[cfg(test)]
mod tests {
    use crate::{Array, release};
    use ein_plan::DType;
    use std::sync::{Mutex, PoisonError};

    fn address(array: &Array) -> usize {
        array.data().bytes().as_ptr() as usize
    }

    /// The buffers are the process's, so that one test at a time has them to itself.
    static ALONE: Mutex<()> = Mutex::new(());

    #[test]
    fn an_array_gets_a_larger_buffer_that_would_have_to_go() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        release();
        let zeros = |n: usize| Array::zeros(DType::F32, &[n << 18]);
        let thrifty = || super::with(|spare| spare.thrifty);
        let held = || super::with(|spare| spare.live + spare.kept);
        // The most is 4 + 6 MiB; 4 more beside a kept buffer of 6 are too much, in that buffer they are not.
        let (first, large) = (zeros(4), zeros(6));
        let (most, buffer) = (held(), address(&large));
        drop(large);
        let second = zeros(4);
        assert_eq!(address(&second), buffer);
        assert!(second.data().bytes().iter().all(|byte| *byte == 0));
        assert_eq!(second.shape(), [4 << 18]);
        assert_eq!(held(), most);
        // Once it is gone, 6 MiB find it again.
        drop(second);
        let mut large = zeros(6);
        assert_eq!(address(&large), buffer);
        large.data_mut().bytes_mut().fill(1);
        drop(large);
        assert!(zeros(6).data().bytes().iter().all(|byte| *byte == 0));
        assert!(!thrifty());
        // Less than half of it is too little.
        let small = zeros(2);
        assert_eq!(held(), most - (4 << 20), "4 + 2 MiB");
        drop(small);
        // Where the rest of it is missed, no array gets a larger one any more.
        drop(first);
        let (first, large) = (zeros(4), zeros(6));
        drop(large);
        let second = zeros(4);
        let third = zeros(2);
        assert!(thrifty(), "10 MiB of arrays are in buffers of 12");
        drop((first, second, third));
        release();
        assert!(!thrifty());
    }

    #[test]
    fn buffers_are_used_again_and_never_add_to_the_most_that_was_held() {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        release();
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
        release();
        assert_eq!(kept(), 0);
    }
}
