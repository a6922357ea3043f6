//! Writes one array: all sites write their boxes into one temporary file, which then replaces the target.
//!
//! The temporary stands beside the target and has its full size from the beginning, so that a full disk is found
//! before anything is computed. Must not know formats beyond their table.
//!
//! ```text
//! .dist.npy.7f3a.part   128 bytes head, f32[150000] at 128; at the end renamed to dist.npy
//! ```

use crate::error::{DISK_FULL, DataError, Place, UNWRITABLE, plain};
use crate::format::{Format, Pack};
use crate::header::Header;
use crate::layout::{Order, runs};
use crate::reader::kind;
use crate::region::{check_box, swap};
use ein_array::Array;
use ein_plan::DType;
use rustix::fs::{Access, FallocateFlags};
use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// One site's end of an output. The writer that [`Writer::create`] made removes the temporary when it is dropped
/// unfinished.
#[derive(Debug)]
pub struct Writer {
    place: Place,
    key: String,
    header: Header,
    head: u64,
    target: PathBuf,
    temporary: PathBuf,
    file: File,
    pack: Option<&'static Pack>,
    owner: bool,
}

/// Checks, before anything is computed, that an output may have this path: the extension is known, the folder
/// exists and is writable, and what may be there already is a file that may be replaced (`E0705`).
pub fn supported(path: &Path) -> Result<(), DataError> {
    Format::of(path, false)?;
    let place = Place {
        file: path.display().to_string(),
        key: None,
    };
    let folder = folder(path);
    match std::fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(place
                .error(
                    UNWRITABLE,
                    format_args!("there is no folder `{}`", folder.display()),
                )
                .help(format!("make it: mkdir -p {}", folder.display())));
        }
        Err(error) => return Err(place.write_failed(&error)),
        Ok(about) if !about.is_dir() => {
            return Err(place.error(
                UNWRITABLE,
                format_args!("`{}` is not a folder", folder.display()),
            ));
        }
        Ok(_) => {}
    }
    if let Err(error) = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK) {
        let why = match error {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => "no permission".to_owned(),
            other => plain(&other.into()),
        };
        return Err(place.error(
            UNWRITABLE,
            format_args!(
                "the folder `{}` cannot be written to: {why}",
                folder.display()
            ),
        ));
    }
    match std::fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(place.write_failed(&error)),
        Ok(about) if !about.is_file() => Err(place.error(
            UNWRITABLE,
            format_args!("is {}, not a regular file", kind(about.file_type())),
        )),
        Ok(_) => match rustix::fs::access(path, Access::WRITE_OK) {
            Ok(()) => Ok(()),
            Err(_) => Err(place.error(UNWRITABLE, "is there already and is write-protected")),
        },
    }
}

impl Writer {
    /// Makes the temporary with its full size (site 0). `token` tells runs apart that write the same target at
    /// once; all sites of a run give the same. `key` names the array in a .npz or .safetensors file (without
    /// one: the file's name without its extension); a .npy file has none.
    pub fn create(
        path: &Path,
        key: Option<&str>,
        dtype: DType,
        shape: &[u64],
        token: &str,
    ) -> Result<Writer, DataError> {
        supported(path)?;
        let plan = Planned::new(path, key, dtype, shape, token)?;
        let temporary = plan.temporary.clone();
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&temporary)
            .map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => plan
                    .place
                    .error(
                        UNWRITABLE,
                        format_args!("`{}` is in the way", temporary.display()),
                    )
                    .help("if no other run is writing this output, remove that file"),
                _ => plan.place.write_failed(&error),
            })?;
        let head = plan.bytes.clone();
        let writer = plan.writer(file, true);
        writer.reserve(&writer.file, writer.size())?;
        if let Some(pack) = writer.pack {
            // The finished file needs room of its own; it is made now for the same reason.
            let packed = writer.packed();
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&packed)
                .map_err(|error| writer.place.write_failed(&error))?;
            writer.reserve(&file, writer.size() + (pack.overhead)(&writer.key))?;
        }
        writer
            .file
            .write_all_at(&head, 0)
            .map_err(|error| writer.place.write_failed(&error))?;
        Ok(writer)
    }

    /// Opens the temporary that site 0 has made (the other sites), with the same arguments.
    pub fn attach(
        path: &Path,
        key: Option<&str>,
        dtype: DType,
        shape: &[u64],
        token: &str,
    ) -> Result<Writer, DataError> {
        let plan = Planned::new(path, key, dtype, shape, token)?;
        let file = OpenOptions::new()
            .write(true)
            .open(&plan.temporary)
            .map_err(|error| match error.kind() {
                io::ErrorKind::NotFound => plan
                    .place
                    .error(
                        UNWRITABLE,
                        format_args!(
                            "site 0 made `{}`, but this site does not see it",
                            plan.temporary.display()
                        ),
                    )
                    .help("write outputs to a folder that all machines share"),
                _ => plan.place.write_failed(&error),
            })?;
        Ok(plan.writer(file, false))
    }

    /// Writes the box `ranges` (start and length, one a dimension), which nobody else writes.
    pub fn write(&self, ranges: &[(u64, u64)], array: &Array) -> Result<(), DataError> {
        let fits = array.dtype() == self.header.dtype
            && array.shape().len() == ranges.len()
            && array
                .shape()
                .iter()
                .zip(ranges)
                .all(|(extent, (_, len))| *extent as u64 == *len);
        if !fits {
            return Err(self.place.error(
                UNWRITABLE,
                format_args!(
                    "a part {}{:?} does not fit the box {ranges:?} of {}",
                    array.dtype(),
                    array.shape(),
                    self.header
                ),
            ));
        }
        check_box(&self.header.shape, ranges).map_err(|why| self.place.error(UNWRITABLE, why))?;
        let size = self.header.dtype.size();
        let mut bytes = Cow::Borrowed(array.data().bytes());
        if cfg!(target_endian = "big") {
            swap(bytes.to_mut(), size);
        }
        runs(&self.header.shape, Order::C, ranges, |run| {
            let from = run.array * size;
            self.file.write_all_at(
                &bytes[from..from + run.len * size],
                self.head + run.file * size as u64,
            )
        })
        .map_err(|error| self.place.write_failed(&error))
    }

    /// Replaces the target by the temporary (site 0, when every site has written). The target keeps its
    /// permissions; on failure it stays as it was.
    pub fn finish(self) -> Result<(), DataError> {
        match self.replace() {
            Ok(()) => Ok(()),
            // Dropping this writer removes the temporary.
            Err(error) => Err(self.place.write_failed(&error)),
        }
    }

    /// Gives the output up: the temporary is removed, the target stays as it was. Any site may do it.
    pub fn discard(mut self) {
        self.owner = true;
    }

    fn replace(&self) -> io::Result<()> {
        let finished = match self.pack {
            None => self.temporary.clone(),
            Some(pack) => {
                let packed = self.packed();
                let file = OpenOptions::new().read(true).write(true).open(&packed)?;
                (pack.run)(&self.file, &file, &self.key, self.size())?;
                file.sync_all()?;
                packed
            }
        };
        if self.pack.is_none() {
            self.file.sync_all()?;
        }
        if let Ok(about) = std::fs::metadata(&self.target) {
            // Only the superuser may give a file away; for others it is theirs, as with any new file.
            let _ = std::os::unix::fs::chown(&finished, Some(about.uid()), Some(about.gid()));
            let mode = std::fs::Permissions::from_mode(about.mode() & 0o7777);
            std::fs::set_permissions(&finished, mode)?;
        }
        std::fs::rename(&finished, &self.target)?;
        // The data is safe by now; not every file system can sync a folder.
        if let Ok(folder) = File::open(folder(&self.target)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Bytes of head and elements.
    fn size(&self) -> u64 {
        self.head + self.header.bytes().unwrap_or(0)
    }

    /// Where the finished file is made, if that is a step of its own.
    fn packed(&self) -> PathBuf {
        self.temporary.with_extension("packed")
    }

    /// Gives a file its size and the room for it.
    fn reserve(&self, file: &File, bytes: u64) -> Result<(), DataError> {
        use rustix::io::Errno;
        let result = loop {
            match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
                Err(Errno::INTR) => {}
                other => break other,
            }
        };
        let error: io::Error = match result {
            Ok(()) => return Ok(()),
            // File systems without this operation find a full disk only when they are written to.
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                return file
                    .set_len(bytes)
                    .map_err(|error| self.place.write_failed(&error));
            }
            Err(errno) => errno.into(),
        };
        if error.kind() != io::ErrorKind::StorageFull {
            return Err(self.place.write_failed(&error));
        }
        let folder = folder(&self.target);
        let free = rustix::fs::statvfs(folder)
            .map(|about| about.f_bavail.saturating_mul(about.f_frsize))
            .unwrap_or(0);
        Err(self
            .place
            .error(
                DISK_FULL,
                format_args!(
                    "the disk is full: {} needs {}, and {} are free in `{}`",
                    self.header,
                    megabytes(bytes),
                    megabytes(free),
                    folder.display()
                ),
            )
            .help("free some room, or write to another disk"))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if self.owner {
            // After a rename there is nothing left to remove; otherwise nothing better can be done.
            let _ = std::fs::remove_file(&self.temporary);
            if self.pack.is_some() {
                let _ = std::fs::remove_file(self.packed());
            }
        }
    }
}

/// What all sites compute alike from the same arguments.
struct Planned {
    place: Place,
    key: String,
    header: Header,
    bytes: Vec<u8>,
    target: PathBuf,
    temporary: PathBuf,
    pack: Option<&'static Pack>,
}

impl Planned {
    fn new(
        path: &Path,
        key: Option<&str>,
        dtype: DType,
        shape: &[u64],
        token: &str,
    ) -> Result<Planned, DataError> {
        let format = Format::of(path, false)?;
        let place = Place {
            file: path.display().to_string(),
            key: None,
        };
        let header = Header {
            dtype,
            shape: shape.to_vec(),
        };
        if header
            .bytes()
            .is_none_or(|bytes| bytes > i64::MAX as u64 / 2)
        {
            return Err(place.error(
                UNWRITABLE,
                format_args!("cannot hold {header}: that is more than any file can hold"),
            ));
        }
        // A link to a file stays a link: what it points to is replaced.
        let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let key = match key {
            Some(key) => key.to_owned(),
            None => path
                .file_stem()
                .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned()),
        };
        Ok(Planned {
            bytes: (format.head)(&key, &header, &place)?,
            temporary: temporary(&target, token),
            pack: format.pack.as_ref(),
            place,
            key,
            header,
            target,
        })
    }

    fn writer(self, file: File, owner: bool) -> Writer {
        Writer {
            head: self.bytes.len() as u64,
            place: self.place,
            key: self.key,
            header: self.header,
            target: self.target,
            temporary: self.temporary,
            file,
            pack: self.pack,
            owner,
        }
    }
}

/// A hidden name beside the target that tells targets and runs apart and fits any file system.
fn temporary(target: &Path, token: &str) -> PathBuf {
    let name = target
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    let mut hash = DefaultHasher::new();
    (&name, token).hash(&mut hash);
    let readable = |text: &str, most: usize| -> String {
        text.chars()
            .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
            .take(most)
            .collect()
    };
    target.with_file_name(format!(
        ".{}-{}-{:016x}.part",
        readable(&name, 60),
        readable(token, 40),
        hash.finish()
    ))
}

fn folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

fn megabytes(bytes: u64) -> String {
    if bytes < 10_000_000 {
        format!("{bytes} bytes")
    } else {
        format!("{} MB", bytes / 1_000_000)
    }
}
