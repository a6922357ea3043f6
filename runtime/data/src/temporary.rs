//! Files under a hidden name until they are finished: made with room for all of them, written by all sites in boxes, renamed.
//!
//! Must not know formats, or what a file is for.
//!
//! ```text
//! .dist-npy-7f3a-….part   600128 bytes reserved; box [(500, 250)] at 128 + 4·500; renamed to dist.npy
//! ```

use crate::error::{DISK_FULL, DataError, Place, UNWRITABLE};
use crate::header::Header;
use crate::layout::{Order, runs};
use crate::region::{check_box, swap};
use ein_array::Array;
use rustix::fs::FallocateFlags;
use std::borrow::Cow;
use std::fmt::Display;
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A hidden name beside the target that tells targets and runs apart and fits any file system.
pub(crate) fn hidden(target: &Path, token: &str) -> PathBuf {
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

/// Makes the temporary, which nobody may have made before (site 0).
pub(crate) fn make(temporary: &Path, place: &Place) -> Result<File, DataError> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(temporary)
        .map_err(|error| in_the_way(temporary, &error, place))
}

/// Why a temporary could not be made.
pub(crate) fn in_the_way(temporary: &Path, error: &io::Error, place: &Place) -> DataError {
    match error.kind() {
        io::ErrorKind::AlreadyExists => place
            .error(
                UNWRITABLE,
                format_args!("`{}` is in the way", temporary.display()),
            )
            .help("if no other run is writing this output, remove that file"),
        _ => place.write_failed(error),
    }
}

/// Opens the temporary that site 0 has made (the other sites).
pub(crate) fn join(temporary: &Path, place: &Place) -> Result<File, DataError> {
    OpenOptions::new()
        .write(true)
        .open(temporary)
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => place
                .error(
                    UNWRITABLE,
                    format_args!(
                        "site 0 made `{}`, but this site does not see it",
                        temporary.display()
                    ),
                )
                .help("write outputs to a folder that all machines share"),
            _ => place.write_failed(&error),
        })
}

/// Gives a file its size and the room for it; `what` needs it.
pub(crate) fn reserve(
    file: &File,
    bytes: u64,
    what: &dyn Display,
    target: &Path,
    place: &Place,
) -> Result<(), DataError> {
    use rustix::io::Errno;
    if bytes == 0 {
        return Ok(());
    }
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
                .map_err(|error| place.write_failed(&error));
        }
        Err(errno) => errno.into(),
    };
    if error.kind() != io::ErrorKind::StorageFull {
        return Err(place.write_failed(&error));
    }
    let folder = folder(target);
    let free = rustix::fs::statvfs(folder)
        .map(|about| about.f_bavail.saturating_mul(about.f_frsize))
        .unwrap_or(0);
    Err(place
        .error(
            DISK_FULL,
            format_args!(
                "the disk is full: {what} needs {}, and {} are free in `{}`",
                megabytes(bytes),
                megabytes(free),
                folder.display()
            ),
        )
        .help("free some room, or write to another disk"))
}

/// Writes the box `ranges` (start and length, one a dimension) of an array whose elements begin at `offset`, in C order and
/// little-endian.
pub(crate) fn write_box(
    file: &File,
    offset: u64,
    header: &Header,
    ranges: &[(u64, u64)],
    array: &Array,
    place: &Place,
) -> Result<(), DataError> {
    let header = &header.stored();
    let fits = array.dtype() == header.dtype
        && array.shape().len() == ranges.len()
        && array
            .shape()
            .iter()
            .zip(ranges)
            .all(|(extent, (_, len))| *extent as u64 == *len);
    if !fits {
        return Err(place.error(
            UNWRITABLE,
            format_args!(
                "a part {}{:?} does not fit the box {ranges:?} of {header}",
                array.dtype(),
                array.shape()
            ),
        ));
    }
    check_box(&header.shape, ranges).map_err(|why| place.error(UNWRITABLE, why))?;
    let size = header.dtype.size();
    let mut bytes = Cow::Borrowed(array.data().bytes());
    if cfg!(target_endian = "big") {
        swap(bytes.to_mut(), size);
    }
    runs(&header.shape, Order::C, ranges, |run| {
        let from = run.array * size;
        file.write_all_at(
            &bytes[from..from + run.len * size],
            offset + run.file * size as u64,
        )
    })
    .map_err(|error| place.write_failed(&error))
}

/// Gives a finished file the target's name. The target keeps its owner and permissions.
pub(crate) fn take_name(finished: &Path, target: &Path) -> io::Result<()> {
    if let Ok(about) = std::fs::metadata(target) {
        // Only the superuser may give a file away; for others it is theirs, as with any new file.
        let _ = std::os::unix::fs::chown(finished, Some(about.uid()), Some(about.gid()));
        let mode = std::fs::Permissions::from_mode(about.mode() & 0o7777);
        std::fs::set_permissions(finished, mode)?;
    }
    std::fs::rename(finished, target)?;
    settle(folder(target));
    Ok(())
}

/// Waits until what was renamed in a folder is on the disk. The data is safe by then; not every file system can sync a folder.
pub(crate) fn settle(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// The folder that a path is in.
pub(crate) fn folder(path: &Path) -> &Path {
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
