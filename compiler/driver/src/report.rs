//! What a run gave or why it stopped, for people.
//!
//! Must not know how text reaches a terminal.
//!
//! ```text
//! accuracy = 0.98888886
//! error[E0720]: position 9 is outside `table`, …
//! ```

use ein_comm::CommError;
use ein_exec::{ErrorKind, Report, RunError};
use einc_diag::{Diagnostic, FileId, Span};

/// The printed outputs, in the order of the program.
pub fn results(report: &Report) -> String {
    report
        .printed
        .iter()
        .map(|printed| format!("{printed}\n"))
        .collect()
}

/// Why a run stopped, with the line that asked for what failed. `None` for a mistake of einc's own.
pub fn diagnostic(error: &RunError) -> Option<Diagnostic> {
    if error.kind == ErrorKind::Internal {
        return None;
    }
    let mut diagnostic = Diagnostic::error(error.code, error.message.clone());
    if let Some(origin) = error.origin {
        let span = Span {
            file: FileId(origin.file),
            start: origin.start,
            end: origin.end,
        };
        let label = match (&error.tensor, error.kind) {
            (Some(tensor), ErrorKind::Output) => format!("`{tensor}` was to be written"),
            (Some(tensor), ErrorKind::Data) => format!("`{tensor}` is read"),
            (Some(tensor), _) => format!("while `{tensor}` was computed"),
            (None, _) => String::new(),
        };
        diagnostic = diagnostic.at(span, label);
    }
    if let (Some(site), ErrorKind::Data | ErrorKind::Output | ErrorKind::Setup) =
        (error.site, error.kind)
    {
        diagnostic = diagnostic.note(format!("found by site {site}"));
    }
    Some(match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    })
}

/// Why a rank could not join its job.
pub fn not_connected(error: &CommError) -> Diagnostic {
    Diagnostic::error("E0732", error.to_string())
        .help("`einc doctor` shows which MPIs are supported here and what to install")
}

/// Why a rank lost its job before the run began.
pub fn lost(error: &CommError) -> Diagnostic {
    Diagnostic::error("E0730", error.to_string())
}
