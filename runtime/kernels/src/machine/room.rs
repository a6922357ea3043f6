//! Memory of machines that are gone, kept for the next one of the thread.
//!
//! A small kernel takes less time than getting its registers from the allocator and filling them with zeros. Must not know what
//! registers hold.
//!
//! ```text
//! kernel 1: 12 registers of f32, fresh   kernel 2: 7 registers of f32, the first 7 of them
//! ```

use std::cell::RefCell;

/// Most machines of a thread whose memory is kept: as many as are alive at once.
const MOST: usize = 3;
/// Memory of more bytes is given back.
const LARGEST: usize = 1 << 20;

thread_local! {
    static KEPT: RefCell<Vec<Room>> = const { RefCell::new(vec![]) };
}

/// The memory of a machine.
#[derive(Default)]
pub(super) struct Room {
    pub f32s: Vec<f32>,
    pub f64s: Vec<f64>,
    pub i32s: Vec<i32>,
    pub i64s: Vec<i64>,
    pub truths: Vec<u8>,
    pub poison: Vec<u8>,
    pub offsets: Vec<i64>,
    pub missing: Vec<u8>,
}

impl Room {
    /// That of the machine that went last; empty if none is kept.
    pub fn take() -> Room {
        let kept = KEPT.try_with(|kept| kept.borrow_mut().pop());
        kept.ok().flatten().unwrap_or_default()
    }

    /// Keeps it for the next machine.
    pub fn give(self) {
        if self.bytes() > LARGEST {
            return;
        }
        // A thread that ends keeps nothing.
        let _ended = KEPT.try_with(|kept| {
            let mut kept = kept.borrow_mut();
            if kept.len() < MOST {
                kept.push(self);
            }
        });
    }

    fn bytes(&self) -> usize {
        4 * (self.f32s.capacity() + self.i32s.capacity())
            + 8 * (self.f64s.capacity() + self.i64s.capacity() + self.offsets.capacity())
            + self.truths.capacity()
            + self.poison.capacity()
            + self.missing.capacity()
    }
}
