//! The purpose for which a program is read; it decides which facts must be known.
//!
//! Must not know programs.
//!
//! ```text
//! einc check   ->   Look        einc plan   ->   Plan        einc run   ->   Run
//! ```

/// What is going to be done with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It is looked at; data need not be there yet.
    Look,
    /// It is planned: all sizes must be known, data need not be there.
    Plan,
    /// It is run: every input needs data.
    Run,
}
