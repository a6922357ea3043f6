//! The reason why a kind of loops was not taken, as `einc plan --kernels` tells it. Must not know kernels or kinds of loops.
//!
//! ```text
//! rows and columns: 2, fewer than 4
//! ```

use std::fmt;

/// Why a kind of loops was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reason {
    text: &'static str,
    /// A number of these, and the bound that it does not keep.
    bound: Option<(usize, &'static str, usize)>,
}

impl Reason {
    /// A reason without numbers.
    pub(super) fn of(text: &'static str) -> Reason {
        Reason { text, bound: None }
    }

    /// There are fewer of these than are worth it.
    pub(super) fn few(text: &'static str, found: usize, least: usize) -> Reason {
        let bound = Some((found, "fewer", least));
        Reason { text, bound }
    }

    /// There are more of these than are worth it.
    pub(super) fn many(text: &'static str, found: usize, most: usize) -> Reason {
        let bound = Some((found, "more", most));
        Reason { text, bound }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        match self.bound {
            Some((found, how, bound)) => write!(f, ": {found}, {how} than {bound}"),
            None => Ok(()),
        }
    }
}
