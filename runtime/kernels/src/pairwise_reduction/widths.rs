//! The widths of the panels that suit a type, and boxes in the widest instructions.
//!
//! Must not know how a box is computed.
//!
//! ```text
//! f32: panels of 64 and 16 columns   f64: panels of 32 and 8
//! ```

use super::blocks::{Panels, Task};
use super::term::{Number, OfRule, Rule, of_rule};
use crate::wide::Job;

/// A type of elements with the widths of its panels.
pub(crate) trait Paneled: Number {
    /// Computes a box where the widest vectors have so many bytes.
    fn run<R: Rule, const BYTES: usize>(task: Task<'_, Self>, rule: R);
    /// Columns as panels.
    fn pack(task: &Task<'_, Self>, batch: usize) -> Panels<Self>;
}

macro_rules! panels {
    ($t:ty, $panel:literal, $narrow:literal) => {
        impl Paneled for $t {
            #[inline(always)]
            fn run<R: Rule, const BYTES: usize>(task: Task<'_, Self>, rule: R) {
                task.run::<R, BYTES, $panel, $narrow>(rule);
            }
            fn pack(task: &Task<'_, Self>, batch: usize) -> Panels<Self> {
                task.pack_to::<$panel, $narrow>(batch)
            }
        }
    };
}

panels!(f32, 64, 16);
panels!(f64, 32, 8);

/// A task, to be run in the widest instructions.
pub(super) struct Each<'t, T: Paneled>(pub Task<'t, T>);

impl<T: Paneled> Job for Each<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        of_rule(self.0.pairs.term, In::<T, BYTES>(self.0));
    }
}

/// A task where the widest vectors have so many bytes.
struct In<'t, T: Paneled, const BYTES: usize>(Task<'t, T>);

impl<T: Paneled, const BYTES: usize> OfRule for In<'_, T, BYTES> {
    type Output = ();
    #[inline(always)]
    fn call<R: Rule>(self, rule: R) {
        T::run::<R, BYTES>(self.0, rule);
    }
}
