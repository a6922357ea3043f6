//! The world of a program that lies on a disk: imports are files, data are files, libraries are those that come with einc.
//!
//! Only headers of data are read here, and lists of elements, which a run finds as they were read. Must not know what names mean.
//!
//! ```text
//! examples/model.ein: use "layers.ein", X = load("x.npy")   ->   examples/layers.ein, the header of examples/x.npy
//! ```

use crate::{
    purpose::Purpose,
    text::{folder_of, identity, read},
};
use ein_data::{DataError, Reader};
use ein_plan::FileRef;
use einc_core::sema::world::{Header, Input, Place, World};
use einc_diag::{Diagnostic, Span};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

/// A disk, seen from one program.
pub struct Disk<'a> {
    /// Default files are relative to it.
    base: PathBuf,
    /// Data that the user binds, by the name of the tensor.
    inputs: Option<&'a BTreeMap<String, FileRef>>,
    purpose: Purpose,
}

impl<'a> Disk<'a> {
    /// For a program whose texts are read.
    pub fn of_files() -> Disk<'a> {
        Disk {
            base: PathBuf::new(),
            inputs: None,
            purpose: Purpose::Look,
        }
    }

    /// For a program whose data are looked at.
    pub fn of_data(
        base: &Path,
        inputs: &'a BTreeMap<String, FileRef>,
        purpose: Purpose,
    ) -> Disk<'a> {
        Disk {
            base: base.to_path_buf(),
            inputs: Some(inputs),
            purpose,
        }
    }
}

impl World for Disk<'_> {
    fn library(&self, path: &str) -> Option<(String, String)> {
        let (name, text) = ein_stdlib::library(path)?;
        Some((name.to_owned(), text.to_owned()))
    }

    fn libraries(&self) -> Vec<String> {
        ein_stdlib::names().map(str::to_owned).collect()
    }

    fn place(&self, from: &Place, path: &str) -> Place {
        let joined = folder_of(&from.path).join(path);
        // Shown as the importing file is: relative to where the user stands.
        let shown = folder_of(Path::new(&from.name)).join(path);
        Place {
            name: shown.display().to_string(),
            identity: identity(&joined),
            path: joined,
        }
    }

    fn text(&self, place: &Place) -> Result<String, Diagnostic> {
        read(&place.path)
    }

    fn bound(&self) -> Vec<String> {
        self.inputs
            .into_iter()
            .flatten()
            .map(|(name, _)| name.clone())
            .collect()
    }

    fn header(&self, input: &Input) -> Result<Option<Header>, Diagnostic> {
        let name = &input.name;
        let given = self.inputs.and_then(|inputs| inputs.get(name)).cloned();
        let required = self.purpose == Purpose::Run || given.is_some();
        let default = input.file.as_ref().map(|file| FileRef {
            path: self.base.join(&file.path).to_string_lossy().into_owned(),
            key: file.key.clone(),
        });
        let Some(file) = given.or(default) else {
            if !input.unbound || self.purpose != Purpose::Run {
                return Ok(None);
            }
            let error = Diagnostic::error("E0710", format!("input `{name}` has no data"))
                .at(input.span, "declared here without a source")
                .help(format!(
                    "give it a file, or a number for each element: `--input {name}=FILE`"
                ));
            return Err(error);
        };
        if !required && !Path::new(&file.path).exists() {
            return Ok(None);
        }
        // Numbers in text files are real.
        let dtype = input.dtype.map(|dtype| dtype.part().unwrap_or(dtype));
        let header = Reader::open_as(&file, dtype).and_then(|reader| {
            let header = reader.header();
            let listed = reader.listed()?;
            if self.purpose == Purpose::Run {
                reader.keep_list()?;
            }
            Ok(Header {
                dtype: header.dtype,
                shape: header.shape.clone(),
                listed,
                at_least: reader.at_least(),
            })
        });
        match header {
            Ok(header) => Ok(Some(header)),
            Err(mut error) => {
                let is_given = self.inputs.is_some_and(|inputs| inputs.contains_key(name));
                if is_given && let Some(first) = error.keys.first() {
                    let key = if error.keys.contains(name) {
                        name
                    } else {
                        first
                    };
                    let here = std::env::current_dir().unwrap_or_default();
                    let path = Path::new(&file.path);
                    let path = path.strip_prefix(&here).unwrap_or(path).display();
                    error.help = Some(format!("write `--input {name}={path}::{key}`"));
                }
                Err(data_error(name, input.span, &error))
            }
        }
    }
}

/// The diagnostic for data of an input that cannot be read.
fn data_error(name: &str, span: Span, error: &DataError) -> Diagnostic {
    let message = if error.message.contains(&error.file) {
        format!("the data of `{name}`: {}", error.message)
    } else {
        format!("the data of `{name}`, {}: {}", error.file, error.message)
    };
    let diagnostic = Diagnostic::error(error.code, message).at(span, "bound to it");
    match &error.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}
