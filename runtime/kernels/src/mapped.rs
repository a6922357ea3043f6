//! Files that lie in memory as they are: what is read of them again and again comes out of the system's cache without a call.
//!
//! Must not know formats.
//!
//! ```text
//! train_x.npy, 160 MB   ->   bytes 128.. of it, of which rows are copied
//! ```
#![allow(unsafe_code)]

use memmap2::Mmap;
use std::fs::File;
use std::io;

/// A file's bytes.
#[derive(Debug)]
pub struct Mapped {
    file: File,
    bytes: Mmap,
}

impl Mapped {
    /// Maps a regular file that is not written to meanwhile. None if the system cannot map it.
    pub fn of(file: &File) -> Option<Mapped> {
        let file = file.try_clone().ok()?;
        // SAFETY: nothing here writes to it. If somebody else does, bytes that are copied are others, as they are when they are
        // read; `bytes` looks at the length each time.
        let bytes = unsafe { Mmap::map(&file) }.ok()?;
        Some(Mapped { file, bytes })
    }

    /// All bytes.
    ///
    /// # Errors
    /// The file has become shorter, or cannot be asked.
    pub fn bytes(&self) -> io::Result<&[u8]> {
        if self.file.metadata()?.len() < self.bytes.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(&self.bytes)
    }
}
