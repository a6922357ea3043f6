//! Why something was not done: what to tell the user, and the exit status.
//!
//! Must not know programs or how diagnostics are drawn.
//!
//! ```text
//! E0301 …   status 1: the program or its data is wrong
//! ```

use einc_diag::{Diagnostic, Severity};

/// No more errors than this are shown at once.
const MOST_ERRORS: usize = 20;

/// The exit status of an internal error.
pub const INTERNAL: i32 = 3;

/// The code of a compiler pass whose result does not verify.
const NOT_VERIFIED: &str = "E0999";

/// The code of a program for which there is no plan in the memory that is allowed.
const NO_ROOM: &str = "E0996";

/// Why something was not done.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The messages for the user.
    pub diagnostics: Vec<Diagnostic>,
    /// The exit status: 1 the program or its data is wrong, 2 usage, 3 a mistake of einc's own.
    pub status: i32,
}

impl Failure {
    /// The program or its data is wrong.
    pub fn wrong(diagnostics: Vec<Diagnostic>) -> Failure {
        Failure {
            diagnostics,
            status: 1,
        }
    }

    /// The command line is wrong.
    pub fn usage(diagnostics: Vec<Diagnostic>) -> Failure {
        Failure {
            diagnostics,
            status: 2,
        }
    }

    /// Makes a failure of the compiler's diagnostics: the program is wrong, or a pass of einc's own.
    pub fn of_compiler(diagnostics: Vec<Diagnostic>) -> Failure {
        let own = diagnostics.iter().any(|d| d.code == NOT_VERIFIED);
        Failure {
            status: if own { INTERNAL } else { 1 },
            diagnostics,
        }
    }

    /// Returns whether nothing is wrong but that a site may hold too little.
    pub fn needs_more_memory(&self) -> bool {
        let mut errors = self.diagnostics.iter().filter(|d| d.is_error());
        errors.next().is_some_and(|d| d.code == NO_ROOM) && errors.all(|d| d.code == NO_ROOM)
    }

    /// A mistake of einc's own.
    pub fn internal(what: &str) -> Failure {
        Failure::of_compiler(vec![Diagnostic::error(NOT_VERIFIED, what)])
    }
}

/// Leaves out the errors beyond the first that are shown at once, and returns how many those were.
pub fn shorten(diagnostics: &mut Vec<Diagnostic>) -> usize {
    let mut errors = 0;
    diagnostics.retain(|diagnostic| {
        errors += usize::from(diagnostic.severity == Severity::Error);
        diagnostic.severity != Severity::Error || errors <= MOST_ERRORS
    });
    errors.saturating_sub(MOST_ERRORS)
}
