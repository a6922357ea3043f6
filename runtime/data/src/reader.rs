//! Reads boxes of one stored array.
//!
//! Must not know formats beyond their table.
//!
//! ```text
//! open x.npz "a" → f32[1000, 64]; read [(500, 250), (0, 64)]
//! ```

use crate::error::{DataError, Place, UNREADABLE, plain};
use crate::format::npz::{Compressed, Stored};
use crate::format::{Format, Opened};
use crate::header::Header;
use crate::layout::Order;
use crate::region::Region;
use ein_array::Array;
use ein_plan::DType;
use ein_plan::source::FileRef;
use std::fs::{File, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// One stored array, opened. Reads are positioned, so that several threads may read at once.
#[derive(Debug)]
pub struct Reader {
    file: File,
    place: Place,
    region: Region,
    kept: Kept,
}

/// How the elements stand in the file.
#[derive(Debug)]
enum Kept {
    /// As they are.
    Plain,
    /// As they are, in an entry whose checksum is looked at before the first read.
    Stored(Stored, OnceLock<()>),
    /// Compressed, and inflated before the first read.
    Compressed(Compressed, OnceLock<Arc<File>>),
}

impl Reader {
    /// Opens the file and reads its header. Fails if the file is missing, no regular file, not readable, of an
    /// unknown format, not as long as its header says, or holds no element type of the language; or if the key
    /// is missing or needed (a file with one array needs none).
    pub fn open(from: &FileRef) -> Result<Reader, DataError> {
        let mut place = Place {
            file: from.path.clone(),
            key: None,
        };
        let path = Path::new(&from.path);
        let about = std::fs::metadata(path).map_err(|error| missing(path, &error, &place))?;
        if !about.is_file() {
            // Looked at before opening: opening a pipe would wait for its other end.
            return Err(place.error(
                UNREADABLE,
                format_args!("is {}, not a regular file", kind(about.file_type())),
            ));
        }
        let format = Format::of(path, true)?;
        let file = File::open(path).map_err(|error| missing(path, &error, &place))?;
        let opened = (format.open)(&file, about.len(), from.key.as_deref(), &mut place)?;
        let (region, kept) = match opened {
            Opened::InPlace(region) => (region, Kept::Plain),
            Opened::Stored(region, entry) => (region, Kept::Stored(entry, OnceLock::new())),
            Opened::Compressed(region, entry) => (region, Kept::Compressed(entry, OnceLock::new())),
        };
        Ok(Reader {
            file,
            place,
            region,
            kept,
        })
    }

    /// Element type and shape.
    pub fn header(&self) -> &Header {
        &self.region.header
    }

    /// Where in the file an array that is not compressed begins.
    pub(crate) fn offset(&self) -> u64 {
        self.region.offset
    }

    /// The box `ranges` (start and length, one a dimension) as a row-major array in the machine's byte order. Only
    /// the bytes of the box are read, except that gaps of less than a page are read over, and that an entry of an
    /// archive is inflated or compared with its checksum as a whole before the first read. Truth values other than 0 and 1 become 1.
    pub fn read(&self, ranges: &[(u64, u64)]) -> Result<Array, DataError> {
        self.region.read(self.bytes()?, ranges, &self.place)
    }

    /// The same into the bytes of an array, or of a part of one, that is as long as the box.
    pub fn read_into(&self, ranges: &[(u64, u64)], target: &mut [u8]) -> Result<(), DataError> {
        let bytes = self.bytes()?;
        self.region.read_into(bytes, ranges, target, &self.place)
    }

    /// The file and where the elements begin in it, if they stand there just as in a row-major array: an array of them is a copy.
    ///
    /// # Errors
    /// `E0702` if they do not have the checksum that the file says.
    pub fn plain(&self) -> Result<Option<(&File, u64)>, DataError> {
        let Region {
            header,
            offset,
            order,
            swapped,
        } = &self.region;
        let plain = !matches!(self.kept, Kept::Compressed(..))
            && *order == Order::C
            && !swapped
            && header.dtype != DType::Bool;
        if !plain {
            return Ok(None);
        }
        Ok(Some((self.bytes()?, *offset)))
    }

    /// What is wrong if its bytes cannot be read.
    pub fn unreadable(&self, error: &io::Error) -> DataError {
        self.place.read_failed(error)
    }

    /// The file that the elements stand in.
    fn bytes(&self) -> Result<&File, DataError> {
        let (entry, inflated) = match &self.kept {
            Kept::Plain => return Ok(&self.file),
            Kept::Stored(entry, checked) => {
                if checked.get().is_none() {
                    entry.check(&self.file, &self.place)?;
                    checked.get_or_init(|| ());
                }
                return Ok(&self.file);
            }
            Kept::Compressed(entry, inflated) => (entry, inflated),
        };
        if let Some(file) = inflated.get() {
            return Ok(file);
        }
        let bytes = self.header().bytes().unwrap_or(u64::MAX);
        let size = bytes.saturating_add(self.region.offset);
        let file = entry.inflate(&self.file, size, &self.place)?;
        Ok(inflated.get_or_init(|| file))
    }
}

fn missing(path: &Path, error: &io::Error, place: &Place) -> DataError {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let error = place.error(UNREADABLE, "there is no such file");
            match similar(path) {
                Some(name) => error.help(format!("did you mean `{name}`?")),
                None => error,
            }
        }
        io::ErrorKind::PermissionDenied => place.error(UNREADABLE, "cannot be read: no permission"),
        _ => place.error(UNREADABLE, format_args!("cannot be read: {}", plain(error))),
    }
}

/// A file of nearly that name in the same folder.
fn similar(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    entries
        .take(1000)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .map(|name| (strsim::damerau_levenshtein(&name, wanted), name))
        .filter(|(distance, _)| *distance <= 2)
        .min()
        .map(|(_, name)| path.with_file_name(name).display().to_string())
}

/// What a thing in the file system is, with its article.
pub(crate) fn kind(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a directory"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "something else"
    }
}
