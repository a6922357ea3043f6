//! Writes the file of a built program: a copy of einc's executable with a payload behind it.
//!
//! Works in a temporary folder beside the output, which is replaced in one go at the end. Must not know what
//! the payload means.
//!
//! ```text
//! build(bundle, ./model):  einc + mark(start, 5310, checksum) + bundle -> ./.einc-a1b2c3/model -> ./model
//! ```

use crate::payload::{Extent, numbers_in, own_file};
use einc_diag::Diagnostic;
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

/// Writes an executable that carries `bundle`; an existing file of that name is replaced only when the new one is complete.
///
/// # Errors
/// E0902: einc's own file cannot be copied; E0903: the output cannot be written; E0904: no space is left for it.
pub fn build(bundle: &[u8], output: &Path) -> Result<(), Diagnostic> {
    if output.is_dir() {
        return Err(Diagnostic::error(
            "E0903",
            format!("cannot write {}: it is a folder", output.display()),
        )
        .help("name the result with `-o FILE`"));
    }
    let name = output.file_name().ok_or_else(|| {
        Diagnostic::error(
            "E0903",
            format!("`{}` does not name a file", output.display()),
        )
    })?;
    let folder = match output.parent() {
        Some(parent) if parent != Path::new("") => parent.to_path_buf(),
        _ => PathBuf::from("."),
    };
    let beside = tempfile::Builder::new()
        .prefix(".einc-")
        .tempdir_in(&folder)
        .map_err(|error| unwritable(output, &error))?;
    let executable = fs::read(own_file()).map_err(|error| not_copied(&error.to_string()))?;
    let numbers = numbers_in(&executable)
        .ok_or_else(|| not_copied("the place that tells of a program was not found in it"))?;
    let whole = beside.path().join(name);
    write(&executable, numbers, bundle, &whole)
        .and_then(|()| fs::rename(&whole, output))
        .map_err(|error| unwritable(output, &error))
}

/// Writes the bytes of an executable to a new file, with the payload behind them and its numbers in the mark.
fn write(executable: &[u8], numbers: usize, payload: &[u8], to: &Path) -> io::Result<()> {
    let extent = Extent {
        start: executable.len() as u64,
        length: payload.len() as u64,
        checksum: crc32c::crc32c(payload),
    };
    let extent = extent.numbers();
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        // The umask takes from it what the user wants taken.
        .mode(0o777)
        .open(to)?;
    file.write_all(&executable[..numbers])?;
    file.write_all(&extent)?;
    file.write_all(&executable[numbers + extent.len()..])?;
    file.write_all(payload)
}

fn not_copied(why: &str) -> Diagnostic {
    Diagnostic::error(
        "E0902",
        format!("einc's own executable cannot be copied: {why}"),
    )
}

fn unwritable(path: &Path, error: &io::Error) -> Diagnostic {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Diagnostic::error(
            "E0904",
            format!("no space is left on the disk for {}", path.display()),
        )
        .help("free some space; nothing was replaced"),
        io::ErrorKind::NotFound => Diagnostic::error(
            "E0903",
            format!("cannot write {}: its folder does not exist", path.display()),
        ),
        _ => Diagnostic::error("E0903", format!("cannot write {}: {error}", path.display())),
    }
}
