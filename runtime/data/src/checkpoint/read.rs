//! Reads checkpoints back: each is checked, byte by byte, before it is used, and the newest good one is found.
//!
//! Must not know which site needs what.
//!
//! ```text
//! newest(run/ckpt)   step-000000140 refused: tensor `W1` is damaged;   step-000000120 good
//! ```

use crate::checkpoint::manifest::Manifest;
use crate::checkpoint::{MANIFEST, TENSORS, folder_of, list};
use crate::error::{DAMAGED, DataError, Place, UNREADABLE};
use crate::reader::Reader;
use crate::set::Named;
use ein_plan::FileRef;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes that are read at once.
const WINDOW: u64 = 1 << 20;
/// A table that is longer is none.
const LONGEST: u64 = 100_000_000;

/// A checkpoint whose manifest is whole.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    place: Place,
    folder: PathBuf,
    manifest: Manifest,
}

/// What [`newest`] found.
#[derive(Debug, Default)]
pub struct Found {
    /// The newest checkpoint that is whole and of this run.
    pub checkpoint: Option<Checkpoint>,
    /// Why newer ones were not taken, the newest first.
    pub refused: Vec<DataError>,
}

/// The newest checkpoint in a folder that is whole and has these tensors and facts.
pub fn newest(root: &Path, tensors: &[Named], facts: &BTreeMap<String, String>) -> Found {
    let mut found = Found::default();
    for (_, folder) in list(root) {
        let good = Checkpoint::open(&folder).and_then(|checkpoint| {
            let step = checkpoint.manifest.step;
            if folder != folder_of(root, step) {
                let what = format_args!("its name is not that of the step that it holds, {step}");
                return Err(checkpoint.place.error(DAMAGED, what));
            }
            checkpoint.expect(tensors, facts)?;
            checkpoint.verify()?;
            Ok(checkpoint)
        });
        match good {
            Ok(checkpoint) => {
                found.checkpoint = Some(checkpoint);
                break;
            }
            Err(error) => found.refused.push(error),
        }
    }
    found
}

impl Checkpoint {
    /// Reads the manifest of the checkpoint in a folder.
    ///
    /// # Errors
    /// `E0701` if it cannot be read, `E0702` if it is damaged, `E0708` if its format is another.
    pub fn open(folder: &Path) -> Result<Checkpoint, DataError> {
        let place = Place {
            file: folder.display().to_string(),
            key: None,
        };
        let file = folder.join(MANIFEST);
        is_file(&file, &place, MANIFEST)?;
        let text = fs::read(file).map_err(|error| missing(&place, MANIFEST, &error))?;
        let manifest = Manifest::parse(&text, &place)?;
        Ok(Checkpoint {
            place,
            folder: folder.to_owned(),
            manifest,
        })
    }

    /// What it says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it is.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Checks that it is of a run with these tensors and facts.
    ///
    /// # Errors
    /// `E0708` says what is different.
    pub fn expect(
        &self,
        tensors: &[Named],
        facts: &BTreeMap<String, String>,
    ) -> Result<(), DataError> {
        self.manifest.expect(tensors, facts, &self.place)
    }

    /// Reads every byte and checks it against the checksums.
    ///
    /// # Errors
    /// `E0702` names the tensor that is damaged, or says that the file is truncated.
    pub fn verify(&self) -> Result<(), DataError> {
        let file = self.folder.join(TENSORS);
        let (table, checksums) =
            checksums(&file, &self.manifest.tensors).map_err(|error| self.named(error))?;
        if table != self.manifest.table {
            return Err(self.place.error(DAMAGED, "its table of tensors is damaged"));
        }
        let wrong = self
            .manifest
            .tensors
            .iter()
            .zip(checksums.iter().zip(&self.manifest.checksums))
            .find(|(_, (have, said))| have != said);
        match wrong {
            None => Ok(()),
            Some((tensor, (have, said))) => Err(self.place.error(
                DAMAGED,
                format_args!(
                    "the tensor `{}` is damaged: its checksum is {have:08x}, not {said:08x}",
                    tensor.name
                ),
            )),
        }
    }

    /// Opens a tensor; any box of it can be read.
    ///
    /// # Errors
    /// `E0706` if there is no such tensor, `E0702` if the file is not what its table says.
    pub fn reader(&self, tensor: &str) -> Result<Reader, DataError> {
        Reader::open(&FileRef {
            path: self.folder.join(TENSORS).display().to_string(),
            key: Some(tensor.to_owned()),
        })
    }

    fn named(&self, error: DataError) -> DataError {
        DataError {
            file: self.place.file.clone(),
            ..error
        }
    }
}

/// The checksums of a file's length and table and of each tensor.
pub(crate) fn checksums(path: &Path, tensors: &[Named]) -> Result<(u32, Vec<u32>), DataError> {
    let place = Place {
        file: path.display().to_string(),
        key: None,
    };
    let failed = |error: io::Error| place.read_failed(&error);
    is_file(path, &place, TENSORS)?;
    let file = File::open(path).map_err(|error| missing(&place, TENSORS, &error))?;
    let mut length = [0; 8];
    file.read_exact_at(&mut length, 0).map_err(failed)?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST {
        return Err(place.error(DAMAGED, "its table of tensors is damaged"));
    }
    let table = checksum(&file, 0, 8 + length).map_err(failed)?;
    let mut found = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        let reader = Reader::open(&FileRef {
            path: place.file.clone(),
            key: Some(tensor.name.clone()),
        })?;
        if *reader.header() != tensor.header {
            return Err(place.error(
                DAMAGED,
                format_args!(
                    "the tensor `{}` is {} in the file and {} in the manifest",
                    tensor.name,
                    reader.header(),
                    tensor.header
                ),
            ));
        }
        let bytes = tensor.header.bytes().unwrap_or(0);
        found.push(checksum(&file, reader.offset(), bytes).map_err(failed)?);
    }
    Ok((table, found))
}

/// CRC-32C of a part of a file.
fn checksum(file: &File, from: u64, bytes: u64) -> io::Result<u32> {
    let mut window = vec![0; bytes.min(WINDOW) as usize];
    let (mut at, end) = (from, from + bytes);
    let mut sum = 0;
    while at < end {
        let window = &mut window[..(end - at).min(WINDOW) as usize];
        file.read_exact_at(window, at)?;
        sum = crc32c::crc32c_append(sum, window);
        at += window.len() as u64;
    }
    Ok(sum)
}

/// What is no file, a pipe or a device, may have no end, or keep its reader waiting.
fn is_file(path: &Path, place: &Place, name: &str) -> Result<(), DataError> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => Ok(()),
        Ok(_) => Err(place.error(DAMAGED, format_args!("is not whole: its {name} is no file"))),
        Err(error) => Err(missing(place, name, &error)),
    }
}

fn missing(place: &Place, name: &str, error: &io::Error) -> DataError {
    match error.kind() {
        io::ErrorKind::NotFound => {
            place.error(DAMAGED, format_args!("is not whole: it has no {name}"))
        }
        io::ErrorKind::PermissionDenied => place.error(
            UNREADABLE,
            format_args!("{name} cannot be read: no permission"),
        ),
        _ => place.read_failed(error),
    }
}
