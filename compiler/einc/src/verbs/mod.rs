//! The verbs of `einc`, one a file: its arguments, and what it does with them, down to an exit status.
//!
//! A verb must not know another verb.
//!
//! ```text
//! einc fmt --check model.ein   ->   fmt::perform(Arguments { check: true, … }) -> 1
//! ```

pub mod build;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod fmt;
pub mod new;
pub mod plan;
pub mod run;

use einc_diag::Diagnostic;
use einc_driver::{arguments::Format, exit, load, program::Program};
use std::path::Path;

/// Loads a program; if its file cannot even be read, says so and gives the exit status.
fn load(path: &Path, format: Format) -> Result<Program, i32> {
    load::load(path).map_err(|diagnostic| complain(diagnostic, format))
}

/// Prints an error that has no place in a program and returns its exit status.
fn complain(diagnostic: Diagnostic, format: Format) -> i32 {
    exit::show(vec![diagnostic], &[], format);
    1
}
