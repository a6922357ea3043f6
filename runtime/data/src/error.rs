//! What can be wrong with a file, in the user's terms.
//!
//! Must not know formats.
//!
//! ```text
//! x.npy: its header says f32[3, 4] (48 bytes of data), but the file ends after 20 of them
//! ```

use std::fmt;
use std::io;

/// A file cannot be read or written. `message` says what is wrong without repeating the file's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataError {
    /// The page that explains this kind of error, such as `E0701`.
    pub code: &'static str,
    /// The file, as the user named it.
    pub file: String,
    /// What is wrong; names the key where there is one.
    pub message: String,
    /// What to do about it, where that is known.
    pub help: Option<String>,
    /// The arrays of the file, if one of them must be named.
    pub keys: Vec<String>,
}

impl fmt::Display for DataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.message)?;
        match &self.help {
            Some(help) => write!(f, "\nhelp: {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for DataError {}

/// The file cannot be read at all.
pub(crate) const UNREADABLE: &str = "E0701";
/// The file is not what its name or header says: truncated, too long, damaged.
pub(crate) const DAMAGED: &str = "E0702";
/// The element type is not the wanted one, or none of the language.
pub(crate) const WRONG_TYPE: &str = "E0703";
/// The shape is not the wanted one.
pub(crate) const WRONG_SHAPE: &str = "E0704";
/// The output cannot be written.
pub(crate) const UNWRITABLE: &str = "E0705";
/// The key is missing or not given.
pub(crate) const NO_KEY: &str = "E0706";
/// There is not enough room on the disk.
pub(crate) const DISK_FULL: &str = "E0707";
/// The checkpoint is of another program, other settings or another format.
pub(crate) const FOREIGN: &str = "E0708";

/// Which file, and which array in it, a message is about.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// As the user named it.
    pub file: String,
    /// The array in it, once it is known.
    pub key: Option<String>,
}

impl Place {
    /// A file as a whole.
    fn of(file: impl fmt::Display) -> Place {
        Place {
            file: file.to_string(),
            key: None,
        }
    }

    /// An error about this place.
    pub fn error(&self, code: &'static str, message: impl fmt::Display) -> DataError {
        let message = match &self.key {
            Some(key) => format!("array `{key}`: {message}"),
            None => message.to_string(),
        };
        DataError {
            code,
            file: self.file.clone(),
            message,
            help: None,
            keys: vec![],
        }
    }

    /// A failed read of bytes that the file's size promised.
    pub fn read_failed(&self, error: &io::Error) -> DataError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => self.error(
                DAMAGED,
                "the file ends before its data does; it is truncated, or became shorter while it was read",
            ),
            _ => self.error(UNREADABLE, format_args!("cannot be read: {}", plain(error))),
        }
    }

    /// A failed creation, write or replacement.
    pub fn write_failed(&self, error: &io::Error) -> DataError {
        match error.kind() {
            io::ErrorKind::StorageFull => self.error(DISK_FULL, "the disk is full"),
            io::ErrorKind::QuotaExceeded => self.error(DISK_FULL, "your disk quota is used up"),
            io::ErrorKind::FileTooLarge => self.error(
                DISK_FULL,
                "is larger than a file may be here (see `ulimit -f`)",
            ),
            io::ErrorKind::ReadOnlyFilesystem => {
                self.error(UNWRITABLE, "cannot be written: its disk is read-only")
            }
            io::ErrorKind::PermissionDenied => {
                self.error(UNWRITABLE, "cannot be written: no permission")
            }
            _ => self.error(
                UNWRITABLE,
                format_args!("cannot be written: {}", plain(error)),
            ),
        }
    }
}

impl DataError {
    /// A failed read of bytes that a file has.
    pub fn of_reading(file: impl fmt::Display, error: &io::Error) -> DataError {
        Place::of(file).read_failed(error)
    }

    /// A failed creation or write of a file, or in a folder.
    pub fn of_writing(file: impl fmt::Display, error: &io::Error) -> DataError {
        Place::of(file).write_failed(error)
    }

    /// The same with what to do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> DataError {
        self.help = Some(help.into());
        self
    }
}

/// The system's words without "(os error 5)".
pub(crate) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_lowercase(),
        None => text,
    }
}
