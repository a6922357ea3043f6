//! A world in memory: of tests, examples, editors and programs that are built by calls.
//!
//! Must not know a disk.
//!
//! ```text
//! texts: main.ein, layers/dense.ein; libraries: std.nn; headers: X: f32[5, 3]
//! ```

use super::{Header, Input, Place, World};
use einc_diag::Diagnostic;
use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

/// Texts, libraries and headers of data by their names.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Texts by path; `use "b.ein"` in `a/main.ein` means `a/b.ein`.
    pub texts: BTreeMap<PathBuf, String>,
    /// The name for messages and the text of each library, by its path: `std.nn`.
    pub libraries: BTreeMap<String, (String, String)>,
    /// The headers of the data of inputs and params, by their names.
    pub headers: BTreeMap<String, Header>,
}

impl Memory {
    /// The place of one of its texts.
    pub fn place_of(&self, path: &str) -> Place {
        Place {
            name: path.to_owned(),
            path: path.into(),
            identity: plain(Path::new(path)),
        }
    }
}

impl World for Memory {
    fn library(&self, path: &str) -> Option<(String, String)> {
        self.libraries.get(path).cloned()
    }

    fn libraries(&self) -> Vec<String> {
        self.libraries.keys().cloned().collect()
    }

    fn place(&self, from: &Place, path: &str) -> Place {
        let joined = from.path.parent().unwrap_or(Path::new("")).join(path);
        Place {
            name: joined.display().to_string(),
            identity: plain(&joined),
            path: joined,
        }
    }

    fn text(&self, place: &Place) -> Result<String, Diagnostic> {
        let missing = || Diagnostic::error("E0190", format!("there is no file {}", place.name));
        self.texts.get(&place.identity).cloned().ok_or_else(missing)
    }

    fn bound(&self) -> Vec<String> {
        self.headers.keys().cloned().collect()
    }

    fn header(&self, input: &Input) -> Result<Option<Header>, Diagnostic> {
        Ok(self.headers.get(&input.name).cloned())
    }
}

/// A path without `.` and, where it can be left out, without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}
