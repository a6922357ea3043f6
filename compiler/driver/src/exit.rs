//! How a process ends: exit statuses, internal errors, text on standard output and standard error.
//!
//! 0: done; 1: the program or its data is wrong; 2: usage; 3: an internal error. Must not know programs.
//!
//! ```text
//! internal error: index out of bounds (compiler/core/src/ia/mod.rs:91)
//! This is a mistake in einc, not in your program. …
//! ```

use crate::{
    arguments::Format,
    environment,
    failure::{Failure, INTERNAL, shorten},
    interrupt,
    program::Program,
    render::{self, Text},
};
use ein_exec::RunError;
use einc_diag::Diagnostic;
use std::{
    io::Write,
    panic,
    sync::{Mutex, PoisonError},
};

/// Bytes of stack that the deepest program needs; what is not used is not there.
const STACK: usize = 256 << 20;

type Abort = Box<dyn Fn(&str) + Send>;

static ABORT: Mutex<Option<Abort>> = Mutex::new(None);

/// Runs `main` and turns a panic anywhere in the process into a message that asks for a report and exit status 3. `main`
/// gets a stack that the deepest program the parser lets through cannot use up.
pub fn guard(main: impl FnOnce() -> i32) -> i32 {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |at| {
            format!(" ({}:{})", at.file(), at.line())
        });
        let what = info.payload_as_str().unwrap_or("a panic without a message");
        internal(&format!("{what}{place}"));
    }));
    interrupt::outlive_long_files();
    let mut stack: Vec<u8> = vec![];
    if stack.try_reserve_exact(STACK).is_err() {
        no_memory(STACK);
    }
    drop(std::hint::black_box(stack));
    // Not a thread's stack: the heap of any thread but the first grows by one page at a time.
    let finished = stacker::grow(STACK, || panic::catch_unwind(panic::AssertUnwindSafe(main)));
    finished.unwrap_or(INTERNAL)
}

/// Sets the action that an internal error takes, besides its message, before the process ends: ending the other ranks of a job.
pub fn on_internal_error(abort: Option<Abort>) {
    *ABORT.lock().unwrap_or_else(PoisonError::into_inner) = abort;
}

/// Reports an internal error and ends the process, and the other ranks of its job, with status 3.
pub fn internal(what: &str) -> ! {
    complain(&format!(
        "internal error: {what}\n\
         This is a mistake in einc, not in your program. Please report it with the program, the command line and this\n\
         message. (einc {})\n",
        env!("CARGO_PKG_VERSION")
    ));
    abort_others(what);
    std::process::exit(INTERNAL)
}

/// Ends the other ranks of a job.
fn abort_others(what: &str) {
    // `try_lock`: the end may be the abort's own.
    if let Ok(abort) = ABORT.try_lock()
        && let Some(abort) = &*abort
    {
        abort(what);
    }
}

/// Reports that the system refused memory where no statement is known, and ends the process, and the other ranks of its job, with status 1.
pub fn no_memory(bytes: usize) -> ! {
    let error = RunError::no_memory(bytes);
    complain(&format!("error[{}]: {}\n", error.code, error.message));
    if let Some(help) = &error.help {
        complain(&format!("  = help: {help}\n"));
    }
    abort_others(&error.message);
    std::process::exit(1)
}

/// Writes text to standard output. A reader that has gone away ends the process quietly.
pub fn say(text: &str) {
    let mut out = anstream::stdout();
    if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        if error.kind() != std::io::ErrorKind::BrokenPipe {
            complain(&format!(
                "error: cannot write to standard output: {error}\n"
            ));
        }
        std::process::exit(1);
    }
}

/// Writes text to standard error, if anyone reads it.
pub fn complain(text: &str) {
    let mut err = anstream::stderr();
    let _ = err.write_all(text.as_bytes()).and_then(|()| err.flush());
}

/// Diagnostics as they are printed, at most 20 errors, and the number of the others.
pub fn drawn(diagnostics: Vec<Diagnostic>, files: &[Text<'_>], format: Format) -> String {
    let mut diagnostics = diagnostics;
    let hidden = shorten(&mut diagnostics);
    let mut text = String::new();
    for diagnostic in &diagnostics {
        match format {
            Format::Text => {
                text += &render::text(diagnostic, files);
                text.push('\n');
            }
            Format::Json => text += &render::json(diagnostic, files),
        }
    }
    if hidden > 0 && format == Format::Text {
        text += &format!(
            "… and {hidden} more error{}\n\n",
            if hidden == 1 { "" } else { "s" }
        );
    }
    text
}

/// Prints diagnostics: text to standard error, JSON to standard output.
pub fn show(diagnostics: Vec<Diagnostic>, files: &[Text<'_>], format: Format) {
    let text = drawn(diagnostics, files, format);
    match format {
        Format::Text => complain(&text),
        Format::Json => say(&text),
    }
}

/// Prints a failure and returns its exit status.
pub fn fail(failure: Failure, program: &Program, format: Format) -> i32 {
    show(failure.diagnostics, &program.texts(), format);
    failure.status
}

/// Prints what clap has to say, help or a usage error, and returns the exit status.
pub fn arguments(error: &clap::Error) -> i32 {
    // Nobody reads it any more if it cannot be printed.
    let _ = error.print();
    if let Some(variable) = environment::refused(error) {
        eprintln!("help: the value is that of the variable {variable}");
    }
    error.exit_code()
}
