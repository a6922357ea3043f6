//! The text of a file, and what leads to it.
//!
//! Must not know what a program is.
//!
//! ```text
//! examples/modle.ein   ->   E0190: there is no file examples/modle.ein; did you mean examples/model.ein?
//! ```

use einc_diag::{Diagnostic, did_you_mean};
use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The folder that a file is in.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// Returns one path for all paths that lead to a file that exists.
pub(crate) fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// Most bytes of a text: what is longer is no program, or a device that never ends.
const MOST: u64 = 1 << 26;

/// The text of a file.
///
/// # Errors
/// E0190 if it cannot be read or is longer than 64 MiB, E0191 if it is not UTF-8.
pub fn read(path: &Path) -> Result<String, Diagnostic> {
    let mut bytes = vec![];
    fs::File::open(path)
        .and_then(|file| file.take(MOST + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MOST {
        let what = format!("{} is longer than 64 MiB", path.display());
        return Err(Diagnostic::error("E0190", what).help("name a file of a program, `.ein`"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        Diagnostic::error(
            "E0191",
            format!(
                "{} is not UTF-8: line {line}, byte {good} of the file",
                path.display()
            ),
        )
        .help("save it as UTF-8; `iconv -f latin1 -t utf8` converts a file of an older editor")
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    if error.kind() != io::ErrorKind::NotFound {
        let diagnostic =
            Diagnostic::error("E0190", format!("cannot read {}: {error}", path.display()));
        return match error.kind() {
            io::ErrorKind::IsADirectory => {
                diagnostic.help("name the `.ein` file inside the folder")
            }
            _ => diagnostic,
        };
    }
    let diagnostic = Diagnostic::error("E0190", format!("there is no file {}", path.display()));
    match near(path) {
        Some(near) => diagnostic.help(format!("did you mean {}?", near.display())),
        None => diagnostic,
    }
}

/// A file of the same folder whose name is nearly this one.
fn near(path: &Path) -> Option<PathBuf> {
    let folder = folder_of(path);
    let listed = if folder == Path::new("") {
        PathBuf::from(".")
    } else {
        folder.clone()
    };
    let names: Vec<String> = fs::read_dir(listed)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".ein"))
        .collect();
    let wanted = path.file_name()?.to_str()?;
    let with_ending = format!("{wanted}.ein");
    let exact = names.iter().find(|name| **name == with_ending);
    let name = match exact {
        Some(name) => name.as_str(),
        None => did_you_mean(wanted, names.iter().map(String::as_str))?,
    };
    Some(folder.join(name))
}
