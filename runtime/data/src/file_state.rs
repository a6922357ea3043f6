//! A file as it is now: what was read of it is still true as long as this is the same. Must not know formats.
//!
//! ```text
//! device 2, inode 71, 800 bytes, changed at 17 s 5 ns
//! ```

use crate::error::{DataError, Place};
use std::fs::File;
use std::os::unix::fs::MetadataExt;

/// Which file it is, its size, and when it was changed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileState {
    device: u64,
    inode: u64,
    bytes: u64,
    /// Seconds and nanoseconds.
    changed: (i64, i64),
}

impl FileState {
    /// Fails if the system tells nothing about the file.
    pub fn of(file: &File, place: &Place) -> Result<FileState, DataError> {
        let about = file.metadata().map_err(|error| place.read_failed(&error))?;
        Ok(FileState {
            device: about.dev(),
            inode: about.ino(),
            bytes: about.size(),
            changed: (about.mtime(), about.mtime_nsec()),
        })
    }
}
