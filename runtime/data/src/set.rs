//! Writes several arrays into one .safetensors file: all sites write their boxes into one temporary, which then replaces the target.
//!
//! Must not know what the arrays are for.
//!
//! ```text
//! model.safetensors   W1 f32[64, 256] at 152, b1 f32[256] at 65688
//! ```

use crate::error::{DataError, Place, UNREADABLE, UNWRITABLE};
use crate::format::safetensors;
use crate::header::Header;
use crate::temporary::{hidden, join, make, reserve, take_name, write_box};
use crate::writer::supported;
use ein_array::Array;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// An array of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Its key in the file.
    pub name: String,
    /// Element type and shape.
    pub header: Header,
}

/// The names of the arrays in a .safetensors file.
///
/// # Errors
/// `E0701` if it cannot be read or is no such file, `E0702` if it is damaged.
pub fn keys(path: &Path) -> Result<Vec<String>, DataError> {
    let place = Place {
        file: path.display().to_string(),
        key: None,
    };
    if kind_of(path).as_deref() != Some("safetensors") {
        let error = place.error(UNREADABLE, "is no .safetensors file");
        return Err(error.help("only those hold several arrays by their full names"));
    }
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
    let (total, file) = opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => place.error(UNREADABLE, "there is no such file"),
        _ => place.read_failed(&error),
    })?;
    safetensors::keys(&file, total, &place)
}

fn kind_of(path: &Path) -> Option<String> {
    path.extension().map(|e| e.to_string_lossy().to_lowercase())
}

/// One site's end of a file of several arrays. The writer that [`SetWriter::create`] made removes the temporary when it is dropped
/// unfinished.
#[derive(Debug)]
pub struct SetWriter {
    place: Place,
    arrays: Vec<(Named, u64)>,
    size: u64,
    target: PathBuf,
    temporary: PathBuf,
    file: File,
    owner: bool,
}

impl SetWriter {
    /// Makes the temporary with its full size (site 0). `token` tells runs apart that write the same target at once; all sites of a
    /// run give the same, and the same arrays in the same order.
    ///
    /// # Errors
    /// `E0705` if the path is none for such a file or cannot be written, `E0707` if the disk is full.
    pub fn create(path: &Path, arrays: &[Named], token: &str) -> Result<SetWriter, DataError> {
        supported(path)?;
        let (planned, head) = Planned::new(path, arrays, token)?;
        let file = make(&planned.temporary, &planned.place)?;
        let writer = planned.writer(file, true);
        let what = format!("a file of {} arrays", arrays.len());
        reserve(
            &writer.file,
            writer.size,
            &what,
            &writer.target,
            &writer.place,
        )?;
        writer
            .file
            .write_all_at(&head, 0)
            .map_err(|error| writer.place.write_failed(&error))?;
        Ok(writer)
    }

    /// Opens the temporary that site 0 has made (the other sites), with the same arguments.
    ///
    /// # Errors
    /// `E0705` if this site does not see it.
    pub fn attach(path: &Path, arrays: &[Named], token: &str) -> Result<SetWriter, DataError> {
        let (planned, _) = Planned::new(path, arrays, token)?;
        let file = join(&planned.temporary, &planned.place)?;
        Ok(planned.writer(file, false))
    }

    /// Writes the box `ranges` (start and length, one a dimension) of the array of that number, which nobody else writes.
    ///
    /// # Errors
    /// `E0705` if there is no such array or the box is none of it, `E0707` if the disk is full.
    pub fn write(
        &self,
        number: usize,
        ranges: &[(u64, u64)],
        array: &Array,
    ) -> Result<(), DataError> {
        let Some((named, offset)) = self.arrays.get(number) else {
            let why = format!("has no array number {number}");
            return Err(self.place.error(UNWRITABLE, why));
        };
        let place = Place {
            key: Some(named.name.clone()),
            ..self.place.clone()
        };
        write_box(&self.file, *offset, &named.header, ranges, array, &place)
    }

    /// Waits until what this site wrote is on the disk, where other machines see it.
    ///
    /// # Errors
    /// `E0705` or `E0707` if it cannot be.
    pub fn settle(&self) -> Result<(), DataError> {
        let done = self.file.sync_all();
        done.map_err(|error| self.place.write_failed(&error))
    }

    /// Replaces the target by the temporary (site 0, when every site has written). On failure the target stays as it was.
    ///
    /// # Errors
    /// `E0705` if the file cannot be put in place.
    pub fn finish(self) -> Result<(), DataError> {
        let replaced = self
            .file
            .sync_all()
            .and_then(|()| take_name(&self.temporary, &self.target));
        // Dropping this writer removes the temporary.
        replaced.map_err(|error| self.place.write_failed(&error))
    }

    /// Gives the file up: the temporary is removed, the target stays as it was. Any site may do it.
    pub fn discard(mut self) {
        self.owner = true;
    }
}

impl Drop for SetWriter {
    fn drop(&mut self) {
        if self.owner {
            // After a rename there is nothing left to remove; otherwise nothing better can be done.
            let _ = std::fs::remove_file(&self.temporary);
        }
    }
}

/// What all sites compute alike from the same arguments.
struct Planned {
    place: Place,
    arrays: Vec<(Named, u64)>,
    size: u64,
    target: PathBuf,
    temporary: PathBuf,
}

impl Planned {
    fn new(path: &Path, arrays: &[Named], token: &str) -> Result<(Planned, Vec<u8>), DataError> {
        let place = Place {
            file: path.display().to_string(),
            key: None,
        };
        if kind_of(path).as_deref() != Some("safetensors") {
            return Err(place
                .error(UNWRITABLE, "cannot hold several arrays by their names")
                .help("end its name in .safetensors"));
        }
        let listed: Vec<_> = arrays
            .iter()
            .map(|array| (array.name.as_str(), &array.header))
            .collect();
        let (head, starts) = safetensors::table(&listed, &place)?;
        let data: u64 = arrays.iter().filter_map(|array| array.header.bytes()).sum();
        // A link to a file stays a link: what it points to is replaced.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let planned = Planned {
            temporary: hidden(&target, token),
            arrays: arrays.iter().cloned().zip(starts).collect(),
            size: head.len() as u64 + data,
            target,
            place,
        };
        Ok((planned, head))
    }

    fn writer(self, file: File, owner: bool) -> SetWriter {
        SetWriter {
            place: self.place,
            arrays: self.arrays,
            size: self.size,
            target: self.target,
            temporary: self.temporary,
            file,
            owner,
        }
    }
}
