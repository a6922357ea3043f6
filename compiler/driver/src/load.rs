//! Reads a program from a file or a text. Its imports are relative to the file that has them.
//!
//! Must not know what names mean, nor which files a program imports.
//!
//! ```text
//! model.ein: use "layers.ein", use std.nn   ->   files [model.ein, layers.ein, std/nn.ein]
//! ```

use crate::{disk::Disk, program::Program};
use einc_core::sema::world::{self, Loaded, Place};
use einc_diag::{Diagnostic, did_you_mean};
use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// Reads a program from a file. What is wrong with it or its imports is among the program's diagnostics.
///
/// # Errors
/// E0190 and E0191 if the program's own file cannot be read or is not UTF-8.
pub fn load(path: &Path) -> Result<Program, Diagnostic> {
    let text = read(path)?;
    let absolute = std::path::absolute(path)
        .map_err(|error| Diagnostic::error("E0190", format!("no working directory: {error}")))?;
    let base = absolute.parent().unwrap_or(Path::new("/")).to_path_buf();
    let name = path
        .file_stem()
        .map_or("program".into(), |stem| stem.to_string_lossy().into_owned());
    let shown = path.display().to_string();
    Ok(load_text(&name, &shown, text, Some(path), base))
}

/// Makes a program of a text, with imports relative to `base`. `shown` is what messages call the text, `path` the
/// file it is from, if it is from one.
pub fn load_text(
    name: &str,
    shown: &str,
    text: String,
    path: Option<&Path>,
    base: PathBuf,
) -> Program {
    let place = Place {
        name: shown.into(),
        path: path.map_or_else(|| base.join("_"), Path::to_path_buf),
        identity: path.map_or_else(PathBuf::new, identity),
    };
    let Loaded {
        sources,
        diagnostics,
    } = world::load(&Disk::of_files(), place, text);
    Program {
        name: name.into(),
        base,
        sources,
        diagnostics,
    }
}

pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// Returns one path for all paths that lead to a file that exists.
pub(crate) fn identity(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

/// The text of a file.
///
/// # Errors
/// E0190 if it cannot be read, E0191 if it is not UTF-8.
pub fn read(path: &Path) -> Result<String, Diagnostic> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
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
