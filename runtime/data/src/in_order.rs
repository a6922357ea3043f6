//! Arrays whose elements stand one behind the other: in a file, or in an entry of an archive.
//!
//! Must not know formats.
//!
//! ```text
//! a.npy in x.npz, f32[1000, 64]; its checksum is compared, then box [(500, 250), (0, 64)] is read
//! ```

use crate::archive::{Compressed, Stored};
use crate::error::{DataError, Place};
use crate::header::Header;
use crate::layout::Order;
use crate::region::Region;
use ein_plan::DType;
use std::fs::File;
use std::sync::{Arc, OnceLock};

/// An array in a file.
#[derive(Debug)]
pub(crate) struct InOrder {
    region: Region,
    kept: Kept,
}

/// How the elements are kept in the file.
#[derive(Debug)]
enum Kept {
    /// As they are.
    Plain,
    /// As they are, in an entry whose checksum is looked at before the first read.
    Stored(Stored, OnceLock<()>),
    /// Compressed, and inflated before the first read.
    Compressed(Compressed, OnceLock<Arc<File>>),
}

impl InOrder {
    /// In the file itself.
    pub fn plain(region: Region) -> InOrder {
        InOrder {
            region,
            kept: Kept::Plain,
        }
    }

    /// In an entry that is stored as it is.
    pub fn stored(region: Region, entry: Stored) -> InOrder {
        InOrder {
            region,
            kept: Kept::Stored(entry, OnceLock::new()),
        }
    }

    /// In an entry that is compressed.
    pub fn compressed(region: Region, entry: Compressed) -> InOrder {
        InOrder {
            region,
            kept: Kept::Compressed(entry, OnceLock::new()),
        }
    }

    /// Element type and shape.
    pub fn header(&self) -> &Header {
        &self.region.header
    }

    /// Where in the file the elements begin, if they are not compressed.
    pub fn offset(&self) -> u64 {
        self.region.offset
    }

    /// Reads a box into the bytes of a row-major array, which is as long.
    pub fn read_into(
        &self,
        file: &File,
        ranges: &[(u64, u64)],
        target: &mut [u8],
        place: &Place,
    ) -> Result<(), DataError> {
        let bytes = self.bytes(file, place)?;
        self.region.read_into(bytes, ranges, target, place)
    }

    /// The file and where the elements begin in it, if they stand there just as in a row-major array.
    pub fn copied<'a>(
        &'a self,
        file: &'a File,
        place: &Place,
    ) -> Result<Option<(&'a File, u64)>, DataError> {
        let plain = !matches!(self.kept, Kept::Compressed(..))
            && self.region.order == Order::C
            && !self.region.swapped
            && self.region.header.dtype != DType::Bool;
        if !plain {
            return Ok(None);
        }
        Ok(Some((self.bytes(file, place)?, self.region.offset)))
    }

    /// The file that the elements stand in.
    fn bytes<'a>(&'a self, file: &'a File, place: &Place) -> Result<&'a File, DataError> {
        let (entry, inflated) = match &self.kept {
            Kept::Plain => return Ok(file),
            Kept::Stored(entry, checked) => {
                if checked.get().is_none() {
                    entry.check(file, place)?;
                    checked.get_or_init(|| ());
                }
                return Ok(file);
            }
            Kept::Compressed(entry, inflated) => (entry, inflated),
        };
        if let Some(done) = inflated.get() {
            return Ok(done);
        }
        let bytes = self.header().bytes().unwrap_or(u64::MAX);
        let size = bytes.saturating_add(self.region.offset);
        let done = entry.inflate(file, size, place)?;
        Ok(inflated.get_or_init(|| done))
    }
}
