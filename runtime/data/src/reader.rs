//! Reads boxes of one stored array.
//!
//! Must not know formats beyond their table.
//!
//! ```text
//! open x.npz "a" → f32[1000, 64]; read [(500, 250), (0, 64)]
//! ```

use crate::error::{DataError, Place, UNREADABLE, WRONG_SHAPE, plain};
use crate::format::{Format, Opened, Wanted};
use crate::header::Header;
use crate::in_order::InOrder;
use crate::listed::{Listed, Unread};
use crate::region::check_box;
use ein_array::Array;
use ein_plan::source::Listing;
use ein_plan::{DType, FileRef, ListColumn};
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
    elements: Elements,
}

/// Where the elements are.
#[derive(Debug)]
enum Elements {
    /// All of them, one behind the other.
    InOrder(InOrder),
    /// Some of them, each with its place; read as a whole before the first box.
    Listed(Unread, OnceLock<Arc<Listed>>),
}

impl Reader {
    /// Opens the file and reads its header. Fails if the file is missing, no regular file, not readable, of an
    /// unknown format, not as long as its header says, or holds no element type of the language; or if the key
    /// is missing or needed (a file with one array needs none).
    pub fn open(from: &FileRef) -> Result<Reader, DataError> {
        Reader::open_as(from, None)
    }

    /// Opens a file whose array a program declares with an element type. Numbers in a text file are read as that type; of other files the
    /// header says the type. Fails as [`Reader::open`] does.
    pub fn open_as(from: &FileRef, dtype: Option<DType>) -> Result<Reader, DataError> {
        Reader::open_wanted(from, dtype, None)
    }

    /// Opens a file as an array of that type and shape; its header is another if the file holds another array. Fails as [`Reader::open`] does.
    pub fn open_for(from: &FileRef, dtype: DType, shape: &[u64]) -> Result<Reader, DataError> {
        Reader::open_wanted(from, Some(dtype), Some(shape))
    }

    fn open_wanted(
        from: &FileRef,
        dtype: Option<DType>,
        shape: Option<&[u64]>,
    ) -> Result<Reader, DataError> {
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
        let wanted = Wanted {
            key: from.key.as_deref(),
            dtype,
            shape,
        };
        let elements = match (format.open)(&file, about.len(), &wanted, &mut place)? {
            Opened::InOrder(array) => Elements::InOrder(array),
            Opened::Listed(list) => Elements::Listed(list, OnceLock::new()),
        };
        Ok(Reader {
            file,
            place,
            elements,
        })
    }

    /// Element type and shape. What is read are the elements of [`Header::stored`].
    pub fn header(&self) -> &Header {
        match &self.elements {
            Elements::InOrder(array) => array.header(),
            Elements::Listed(list, _) => &list.header,
        }
    }

    /// Returns whether the file says only how long the last dimension is at least.
    pub fn at_least(&self) -> bool {
        matches!(&self.elements, Elements::Listed(list, _) if list.at_least)
    }

    /// Where in the file an array begins whose elements stand one behind the other, not compressed; else 0.
    pub(crate) fn offset(&self) -> u64 {
        match &self.elements {
            Elements::InOrder(array) => array.offset(),
            Elements::Listed(..) => 0,
        }
    }

    /// The box `ranges` (start and length, one a dimension) as a row-major array in the machine's byte order. Only
    /// the bytes of the box are read, except that gaps of less than a page are read over, that an entry of an
    /// archive is inflated or compared with its checksum as a whole before the first read, and that a list of elements is read as a
    /// whole. Truth values other than 0 and 1 become 1.
    pub fn read(&self, ranges: &[(u64, u64)]) -> Result<Array, DataError> {
        let Header { dtype, shape } = self.header().stored();
        check_box(&shape, ranges).map_err(|why| self.place.error(UNREADABLE, why))?;
        let extents: Vec<usize> = ranges.iter().map(|(_, len)| *len as usize).collect();
        let mut array = Array::room(dtype, &extents);
        self.read_into(ranges, array.data_mut().bytes_mut())?;
        Ok(array)
    }

    /// The same into the bytes of an array, or of a part of one, that is as long as the box.
    pub fn read_into(&self, ranges: &[(u64, u64)], target: &mut [u8]) -> Result<(), DataError> {
        match &self.elements {
            Elements::InOrder(array) => array.read_into(&self.file, ranges, target, &self.place),
            Elements::Listed(unread, read) => {
                let list = self.list(unread, read)?;
                list.read_into(ranges, target, &self.place)
            }
        }
    }

    /// The file, as it was named.
    pub fn path(&self) -> &str {
        &self.place.file
    }

    /// How many elements the file lists with their places, each place once; `None` if it holds all elements one behind the other. Reads the
    /// list.
    pub fn listed(&self) -> Result<Option<Listing>, DataError> {
        let Elements::Listed(unread, read) = &self.elements else {
            return Ok(None);
        };
        Ok(Some(self.list(unread, read)?.listing().clone()))
    }

    /// Keeps the list, if this has read one, until another reader of this process asks for it.
    ///
    /// # Errors
    /// If the system tells nothing about the file.
    pub fn keep_list(&self) -> Result<(), DataError> {
        match &self.elements {
            Elements::Listed(unread, read) => match read.get() {
                Some(list) => unread.keep(list, &self.file, &self.place),
                None => Ok(()),
            },
            Elements::InOrder(_) => Ok(()),
        }
    }

    /// How many elements the file lists; `None` if it holds all of them. Reads the list.
    pub fn count_listed(&self) -> Result<Option<u64>, DataError> {
        let Elements::Listed(unread, read) = &self.elements else {
            return Ok(None);
        };
        Ok(Some(self.list(unread, read)?.count()))
    }

    /// A column of the list of some rows, which are counted anew in that order: first by row, then in ascending order of places. There is room
    /// for `room` elements; what is left of it are zeros in the last row. Positions are of the type `dtype`, `U32` or `I64`.
    ///
    /// # Errors
    /// `E0704` if the file lists no elements, or more than there is room for.
    pub fn read_column_of_rows(
        &self,
        (column, dtype): (ListColumn, DType),
        rows: &[u64],
        room: usize,
    ) -> Result<Array, DataError> {
        let wrong = |what: &dyn std::fmt::Display| self.place.error(WRONG_SHAPE, what);
        let Elements::Listed(unread, read) = &self.elements else {
            return Err(wrong(&"holds all elements, and no list of them"));
        };
        let data = (self.list(unread, read)?).column_of_rows((column, dtype), rows, room);
        let data = data.ok_or_else(|| {
            wrong(&"was changed after the program was planned: it lists more elements in some rows")
        })?;
        Ok(Array::new(vec![room], data).expect("as many elements as there is room for"))
    }

    /// Fills an array with a column of the list, from an element on (of starts, from a position), in ascending order of places along the dimension `by`,
    /// and then in row-major order. Positions and starts are of the type `U32` or `I64`.
    ///
    /// # Errors
    /// `E0704` if the file lists no elements, or not so many.
    pub fn read_column_into(
        &self,
        column: ListColumn,
        (by, first): (u32, u64),
        array: &mut Array,
    ) -> Result<(), DataError> {
        let wrong = |what: &dyn std::fmt::Display| self.place.error(WRONG_SHAPE, what);
        let Elements::Listed(unread, read) = &self.elements else {
            return Err(wrong(&"holds all elements, and no list of them"));
        };
        let list = self.list(unread, read)?;
        let last = match column {
            ListColumn::Values | ListColumn::Starts => by,
            ListColumn::Positions(dim) => dim.max(by),
        };
        let shape = &self.header().shape;
        if last as usize >= shape.len() {
            return Err(wrong(&format_args!("has no dimension {last}")));
        }
        let (all, what) = match column {
            ListColumn::Starts => {
                let positions = shape[by as usize];
                let what = format!("has {positions} positions along dimension {by}");
                (positions + 1, what)
            }
            _ => (list.count(), format!("lists {} elements", list.count())),
        };
        let data = array.data_mut();
        if first.saturating_add(data.len() as u64) > all {
            return Err(wrong(&what));
        }
        let (by, first) = (by as usize, first as usize);
        match column {
            ListColumn::Values => list.copy_values(by, first, data.bytes_mut()),
            ListColumn::Positions(dim) => list.copy_positions(dim as usize, (by, first), data),
            ListColumn::Starts => list.copy_starts(by, first, data),
        }
        Ok(())
    }

    fn list<'a>(
        &self,
        unread: &Unread,
        read: &'a OnceLock<Arc<Listed>>,
    ) -> Result<&'a Listed, DataError> {
        if let Some(list) = read.get() {
            return Ok(list);
        }
        let list = unread.read(&self.file, &self.place)?;
        Ok(read.get_or_init(|| list))
    }

    /// The file and where the elements begin in it, if they stand there just as in a row-major array: an array of them is a copy.
    ///
    /// # Errors
    /// `E0702` if they do not have the checksum that the file says.
    pub fn plain(&self) -> Result<Option<(&File, u64)>, DataError> {
        match &self.elements {
            Elements::InOrder(array) => array.copied(&self.file, &self.place),
            Elements::Listed(..) => Ok(None),
        }
    }

    /// What is wrong if its bytes cannot be read.
    pub fn unreadable(&self, error: &io::Error) -> DataError {
        self.place.read_failed(error)
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
