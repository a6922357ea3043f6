//! The registers of one type.
//!
//! Must not know operations.
//!
//! ```text
//! register 2 of 64 lanes, a view of a0[7, 0..64]: nothing is copied
//! ```

use crate::program::Register;

/// Registers of one type. A register that holds neighbouring elements of a chunk as they are
/// is a view of them.
pub(super) struct Bank<'a, T> {
    pub(super) values: Vec<T>,
    pub(super) views: Vec<Option<&'a [T]>>,
    /// Lanes of a register.
    pub(super) width: usize,
}

/// The registers before one that is written: arguments stand before their users.
pub(super) struct Before<'b, 'a, T> {
    pub(super) values: &'b [T],
    pub(super) views: &'b [Option<&'a [T]>],
    pub(super) width: usize,
}

impl<'b, 'a, T: Copy + Default> Before<'b, 'a, T> {
    #[inline(always)]
    pub(super) fn lanes(&self, register: Register, n: usize) -> &'b [T] {
        match self.views[register.slot as usize] {
            // A read that no lane of this strip needs is skipped: its view is still that of an earlier, perhaps
            // shorter strip, and what is taken from here is left out by the guard.
            Some(view) if view.len() >= n => &view[..n],
            _ => &self.values[register.slot as usize * self.width..][..n],
        }
    }
}

impl<'a, T: Copy + Default> Bank<'a, T> {
    /// Registers in `values`, which may hold anything: every lane is written before it is read, or left out by a guard.
    pub(super) fn new(mut values: Vec<T>, registers: usize, width: usize) -> Bank<'a, T> {
        if values.len() < registers * width {
            values.resize(registers * width, T::default());
        }
        Bank {
            values,
            views: vec![None; registers],
            width,
        }
    }

    #[inline(always)]
    pub(super) fn lanes(&self, register: Register, n: usize) -> &[T] {
        let (values, views, width) = (&self.values[..], &self.views[..], self.width);
        let before = Before {
            values,
            views,
            width,
        };
        before.lanes(register, n)
    }

    /// The registers before `to`'s, and `to`'s.
    #[inline(always)]
    pub(super) fn split(&mut self, to: Register, n: usize) -> (Before<'_, 'a, T>, &mut [T]) {
        let (values, after) = self.values.split_at_mut(to.slot as usize * self.width);
        let (views, width) = (&self.views[..], self.width);
        let before = Before {
            values,
            views,
            width,
        };
        (before, &mut after[..n])
    }

    /// The first lane of a register that is the same in all.
    pub(super) fn first(&self, register: Register) -> T {
        self.values[register.slot as usize * self.width]
    }

    /// Copies the first lane of a register to as many lanes as a strip may have.
    pub(super) fn splat(&mut self, register: Register, lanes: usize) {
        let at = register.slot as usize * self.width;
        let x = self.values[at];
        self.values[at..at + lanes].fill(x);
    }
}
