//! The verbs of `einc`, one a file: its arguments, and what it does with them, down to an exit status.
//!
//! A verb must not know another verb.
//!
//! ```text
//! einc fmt --check model.ein   ->   fmt::perform(Arguments { check: true, … }) -> 1
//! ```

pub mod build;
pub mod calibrate;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod explain;
pub mod fmt;
mod migrate;
pub mod new;
pub mod plan;
pub mod rules;
pub mod run;

use einc_diag::Diagnostic;
use einc_driver::{arguments::Format, environment, exit, load, program::Program};
use std::{
    fs,
    io::{self, Write},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

/// Loads a program; if its file cannot even be read, says so and gives the exit status.
fn load(path: &Path, format: Format) -> Result<Program, i32> {
    load::load(path).map_err(|diagnostic| complain(diagnostic, format))
}

/// Warns of variables that are named like those of einc and are none.
fn look_at_variables(format: Format) {
    exit::show(environment::unknown(), &[], format);
}

/// Prints an error that has no place in a program and returns its exit status.
fn complain(diagnostic: Diagnostic, format: Format) -> i32 {
    exit::show(vec![diagnostic], &[], format);
    1
}

/// Writes a file in one go, or leaves it as it was; one that is there keeps its permissions, and a link stays a link.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let (path, permissions) = match fs::canonicalize(path) {
        Ok(path) => (path.clone(), Some(fs::metadata(&path)?.permissions())),
        Err(_) => (PathBuf::from(path), None),
    };
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let mut new = tempfile::Builder::new()
        .prefix(".einc-")
        // The umask takes from it what the user wants taken.
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        new.as_file().set_permissions(permissions)?;
    }
    new.as_file().sync_all()?;
    new.persist(&path)?;
    Ok(())
}
