//! Reads a program from a file or a text. Its imports are relative to the file that has them.
//!
//! Must not know what names mean, nor which files a program imports.
//!
//! ```text
//! model.ein: use "layers.ein", use std.nn   ->   files [model.ein, layers.ein, std/nn.ein]
//! ```

use crate::{
    disk::Disk,
    program::Program,
    text::{identity, read},
};
use einc_core::sema::world::{self, Loaded, Place};
use einc_diag::Diagnostic;
use std::path::{Path, PathBuf};

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
