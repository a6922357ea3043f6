//! The allocator of the command, and of built programs, which are copies of it.
//!
//! Checking and planning make millions of small trees, on which glibc's allocator takes a third longer than mimalloc. Tensors stay with the
//! system, which gives their memory back as soon as they are freed, so that a process holds what its plan states. Where memory is refused, the
//! process ends with E0717. Must not know who asks.
//!
//! ```text
//! 48 bytes of an expression -> mimalloc; 40 MB of a tensor -> the system
//! ```
#![allow(unsafe_code, reason = "allocators are unsafe to write")]

use einc_driver::exit;
use libmimalloc_sys::{
    mi_free, mi_malloc_aligned, mi_option_set, mi_option_t, mi_realloc_aligned, mi_zalloc_aligned,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes up to which a piece of memory is a small one.
const SMALL: usize = 64 << 10;

/// mimalloc's `arena_eager_commit`. On, it asks for huge pages for all of its memory, of which each thread touches a few.
const EAGER_COMMIT: mi_option_t = 4;

/// mimalloc's `arena_reserve`: the KiB of addresses that it takes at once, 1 GiB if it is not told. Under a limit on addresses tensors lack them.
const ARENA_RESERVE: mi_option_t = 23;

thread_local! {
    /// True once this thread ends the process.
    static ENDING: Cell<bool> = const { Cell::new(false) };
}

/// Gives small pieces of memory from mimalloc and large ones from the system.
pub struct BySize {
    ready: AtomicBool,
}

impl BySize {
    pub const fn new() -> BySize {
        BySize {
            ready: AtomicBool::new(false),
        }
    }

    /// Returns whether mimalloc gives pieces of this size; before the first one it is told not to ask for huge pages, nor for many addresses.
    fn is_small(&self, size: usize) -> bool {
        if !self.ready.load(Ordering::Relaxed) {
            // SAFETY: an option of mimalloc may be set at any time by any thread, and each sets the same.
            unsafe {
                mi_option_set(EAGER_COMMIT, 0);
                mi_option_set(ARENA_RESERVE, 64 << 10);
            }
            self.ready.store(true, Ordering::Relaxed);
        }
        // mimalloc takes many addresses at once, of which there may be none; the system has room for a message.
        size <= SMALL && !ENDING.get()
    }
}

/// The piece, if there is one; else ends the process, unless the thread asks only whether there is memory.
fn given(piece: *mut u8, size: usize) -> *mut u8 {
    if piece.is_null() && !ein_array::is_asking() && !ENDING.replace(true) {
        exit::no_memory(size);
    }
    piece
}

// SAFETY: the size alone says which allocator a piece is from, and its layout comes back with it. `realloc` leaves a piece with its
// allocator only if both sizes belong there, and else copies as many bytes as both pieces have. A thread that ends the process frees
// nothing.
unsafe impl GlobalAlloc for BySize {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of this very method.
        let piece = unsafe {
            match self.is_small(layout.size()) {
                true => mi_malloc_aligned(layout.size(), layout.align()).cast(),
                false => System.alloc(layout),
            }
        };
        given(piece, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let piece = unsafe {
            match self.is_small(layout.size()) {
                true => mi_zalloc_aligned(layout.size(), layout.align()).cast(),
                false => System.alloc_zeroed(layout),
            }
        };
        given(piece, layout.size())
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        // SAFETY: the layout is the one that `piece` was allocated with, so its size names the same allocator.
        unsafe {
            match self.is_small(layout.size()) {
                true => mi_free(piece.cast()),
                // Nobody knows which allocator it is from.
                false if ENDING.get() => {}
                false => System.dealloc(piece, layout),
            }
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: `size` is not 0 and fits with the alignment, as the caller promises; a piece that changes its allocator is copied into
        // a new one, which does not overlap it, and freed only if there is a new one.
        let piece = unsafe {
            // While the process ends a piece of any allocator is copied and left where it is.
            match (self.is_small(layout.size()), self.is_small(size)) {
                (true, true) => mi_realloc_aligned(piece.cast(), size, layout.align()).cast(),
                (false, false) if !ENDING.get() => System.realloc(piece, layout, size),
                _ => {
                    let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                    if !new.is_null() {
                        ptr::copy_nonoverlapping(piece, new, layout.size().min(size));
                        self.dealloc(piece, layout);
                    }
                    new
                }
            }
        };
        given(piece, size)
    }
}
