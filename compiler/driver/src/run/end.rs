//! How a run ends: its records and its trace written, its figures told, the exit status.
//!
//! Must not know how it was started.
//!
//! ```text
//! SIGTERM after step 120: saved; `--resume` continues
//! ```

use crate::{
    arguments::Format, exit, failure::INTERNAL, interrupt::Signal, planned::Prepared, profile,
    program::Program, records::Records, report, settings::Settings,
};
use ein_exec::session::{Event, Session, Watch};
use ein_exec::{Report, RunError};
use ein_records::{RecordError, Trace};
use einc_diag::Diagnostic;

/// Runs a session with records of its steps. Also returns the exit status that these call for.
pub(super) fn recorded(
    session: &Session,
    settings: &Settings,
    format: Format,
    walk: impl FnOnce(&Watch<'_>) -> Result<Report, RunError>,
) -> (Result<Report, RunError>, i32) {
    let records = Records::new(session, settings);
    let watch = |event: &Event| records.tell(event);
    let found = walk(&watch);
    let status = match records.finish() {
        Ok(()) => 0,
        Err(error) => unwritten(&error, format),
    };
    (found, status)
}

/// The trace that is asked for, of the process that writes it.
pub(super) fn trace(settings: &Settings, first: bool) -> Result<Option<Trace>, RecordError> {
    let path = settings.profile.as_ref().filter(|_| first);
    path.map(|path| Trace::new(path)).transpose()
}

/// Writes the trace of a run; the exit status that this calls for.
pub(super) fn traced(
    trace: Option<Trace>,
    planned: &Prepared,
    found: &Result<Report, RunError>,
    format: Format,
) -> i32 {
    let profile = found.as_ref().ok().and_then(|found| found.profile.as_ref());
    let written = trace
        .zip(profile)
        .map(|(trace, profile)| profile::write(trace, planned, profile));
    match written {
        Some(Err(error)) => unwritten(&error, format),
        _ => 0,
    }
}

/// Says that a record cannot be written, and returns the exit status.
pub(super) fn unwritten(error: &RecordError, format: Format) -> i32 {
    let code = if error.full { "E0707" } else { "E0705" };
    exit::show(
        vec![Diagnostic::error(code, error.to_string())],
        &[],
        format,
    );
    1
}

/// Says that a session ended early, if this process is to speak, and returns the exit status.
pub(super) fn ended(signal: usize, steps: u64, speak: bool) -> i32 {
    let signal = Signal::numbered(signal);
    if speak {
        exit::complain(&format!(
            "{} after step {steps}: saved; `--resume` continues\n",
            signal.name()
        ));
    }
    signal.status()
}

/// Prints the stated and the measured figures.
pub(super) fn stated(
    planned: &Prepared,
    found: &Report,
    resident: Option<u64>,
    seed: u64,
) -> String {
    let steps = found.profile.as_ref();
    let steps = steps.map_or(String::new(), |steps| profile::figures(planned, steps));
    steps
        + &match planned {
            Prepared::Plan(plan) => report::figures(plan, found, resident),
            Prepared::Session(session) => report::session_figures(session, found, resident, seed),
        }
}

/// Prints why a run stopped, if this process is to speak, and returns the exit status.
pub(super) fn stopped(error: &RunError, program: &Program, format: Format, speak: bool) -> i32 {
    match report::diagnostic(error) {
        None if speak => exit::internal(&error.to_string()),
        None => INTERNAL,
        Some(diagnostic) => {
            if speak {
                exit::show(vec![diagnostic], &program.texts(), format);
            }
            1
        }
    }
}
