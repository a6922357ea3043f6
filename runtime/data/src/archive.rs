//! Entries of zip archives: found, compared with their checksums, inflated.
//!
//! A stored entry is read in place, after its checksum; a deflated one is inflated into a temporary file. Either is done once for all
//! readers of this process. Must not know arrays.
//!
//! ```text
//! x.npz: a.npy (stored), b.npy (deflated)
//! ```

use crate::error::{DAMAGED, DISK_FULL, DataError, Place, UNREADABLE, plain};
use crate::file_state::FileState;
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive};

/// Which compressed entry.
#[derive(Clone, Debug)]
pub(crate) struct Compressed {
    pub entry: usize,
}

/// Which stored entry.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub entry: usize,
}

/// The first bytes of an entry, at most `most`.
pub(crate) fn first_bytes(
    file: &File,
    name: &str,
    most: u64,
    place: &Place,
) -> Result<Vec<u8>, DataError> {
    let mut archive = archive(file, place)?;
    let entry = archive
        .by_name(name)
        .map_err(|error| zip_failed(&error, place))?;
    let mut bytes = Vec::new();
    let read = entry.take(most).read_to_end(&mut bytes);
    read.map_err(|error| place.read_failed(&error))?;
    Ok(bytes)
}

/// How an entry of `size` bytes is written: as it is, with the same date in every file.
pub(crate) fn entry_options(size: u64) -> SimpleFileOptions {
    SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .large_file(size >= u64::from(u32::MAX))
        .last_modified_time(zip::DateTime::default())
        .unix_permissions(0o644)
}

pub(crate) fn archive<'a>(
    file: &'a File,
    place: &Place,
) -> Result<ZipArchive<BufReader<&'a File>>, DataError> {
    let mut input = file;
    input.rewind().map_err(|error| place.read_failed(&error))?;
    ZipArchive::new(BufReader::new(input)).map_err(|error| zip_failed(&error, place))
}

pub(crate) fn zip_failed(error: &ZipError, place: &Place) -> DataError {
    match error {
        ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            place.error(UNREADABLE, format_args!("cannot be read: {}", plain(error)))
        }
        ZipError::UnsupportedArchive(why) => place
            .error(UNREADABLE, format_args!("cannot be unpacked: {why}"))
            .help("write it with numpy.savez or numpy.savez_compressed"),
        _ => place
            .error(
                DAMAGED,
                "is not a .npz file, or is truncated: it is no complete zip archive",
            )
            .help("write or copy the file again"),
    }
}

/// An entry of a file as it is now.
type Identity = (FileState, usize);

/// The members that this process has inflated and still uses.
static INFLATED: Mutex<Option<HashMap<Identity, Weak<File>>>> = Mutex::new(None);

/// The members whose checksum this process has compared.
static CHECKED: Mutex<BTreeSet<Identity>> = Mutex::new(BTreeSet::new());

impl Stored {
    /// Reads the whole entry and compares its CRC-32 with the archive's.
    pub fn check(&self, file: &File, place: &Place) -> Result<(), DataError> {
        let identity = (FileState::of(file, place)?, self.entry);
        // Held while reading, so that sites of one process wait for the first instead of doing it again.
        let mut checked = CHECKED.lock().unwrap_or_else(PoisonError::into_inner);
        if checked.contains(&identity) {
            return Ok(());
        }
        let mut archive = archive(file, place)?;
        let mut entry = archive
            .by_index(self.entry)
            .map_err(|error| zip_failed(&error, place))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match entry.read(&mut buffer) {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let what = "is damaged: its checksum (CRC-32) is not the one in the archive";
                    let help = "write or copy the file again";
                    return Err(place.error(DAMAGED, what).help(help));
                }
                Err(error) => return Err(place.read_failed(&error)),
            }
        }
        checked.insert(identity);
        Ok(())
    }
}

impl Compressed {
    /// The inflated entry, whose size is `size`.
    pub fn inflate(&self, file: &File, size: u64, place: &Place) -> Result<Arc<File>, DataError> {
        let identity = (FileState::of(file, place)?, self.entry);
        // Held while inflating, so that sites of one process wait for the first instead of doing it again.
        let mut table = INFLATED.lock().unwrap_or_else(PoisonError::into_inner);
        let table = table.get_or_insert_default();
        if let Some(done) = table.get(&identity).and_then(Weak::upgrade) {
            return Ok(done);
        }
        let done = Arc::new(self.unpack(file, size, place)?);
        table.retain(|_, file| file.strong_count() > 0);
        table.insert(identity, Arc::downgrade(&done));
        Ok(done)
    }

    fn unpack(&self, file: &File, size: u64, place: &Place) -> Result<File, DataError> {
        let mut archive = archive(file, place)?;
        let mut entry = archive
            .by_index(self.entry)
            .map_err(|error| zip_failed(&error, place))?;
        let folder = std::env::temp_dir();
        let no_room = |error: &io::Error| {
            place
                .error(
                    DISK_FULL,
                    format_args!(
                        "is compressed, and cannot be unpacked to {} ({size} bytes): {}",
                        folder.display(),
                        plain(error)
                    ),
                )
                .help("set TMPDIR to a folder with more room, or write it with numpy.savez, which is read in place")
        };
        let output = tempfile::tempfile_in(&folder).map_err(|error| no_room(&error))?;
        let mut writer = BufWriter::with_capacity(1 << 20, &output);
        let mut buffer = vec![0; 1 << 20];
        let mut done = 0;
        loop {
            let n = match entry.read(&mut buffer) {
                Ok(n) => n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    return Err(place.error(
                        DAMAGED,
                        format_args!("is damaged: {} after {done} bytes", plain(&error)),
                    ));
                }
            };
            done += n as u64;
            if n == 0 || done > size {
                break;
            }
            writer
                .write_all(&buffer[..n])
                .map_err(|error| no_room(&error))?;
        }
        writer.flush().map_err(|error| no_room(&error))?;
        drop(writer);
        if done != size {
            return Err(place.error(
                DAMAGED,
                format_args!(
                    "is not what the archive says: {size} bytes, but it unpacks to another number"
                ),
            ));
        }
        Ok(output)
    }
}
