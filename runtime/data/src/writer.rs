//! Writes one array: all sites write their boxes into one temporary file, which then replaces the target.
//!
//! The temporary stands beside the target and has its full size from the beginning, so that a full disk is found
//! before anything is computed. Must not know formats beyond their table.
//!
//! ```text
//! .dist.npy.7f3a.part   128 bytes head, f32[150000] at 128; at the end renamed to dist.npy
//! ```

use crate::error::{DataError, Place, UNWRITABLE, plain};
use crate::format::{Format, Pack, Run};
use crate::header::Header;
use crate::reader::kind;
use crate::temporary::{folder, hidden, join, make, reserve, take_name, write_box};
use ein_array::Array;
use ein_plan::DType;
use rustix::fs::Access;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
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
    /// Returns whether several outputs may have this path: they are arrays of one file then.
    pub fn holds_several(path: &Path) -> bool {
        Format::of(path, false).is_ok_and(Format::holds_several)
    }

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
        let file = make(&plan.temporary, &plan.place)?;
        let head = plan.bytes.clone();
        let writer = plan.writer(file, true);
        reserve(
            &writer.file,
            writer.size(),
            &writer.header,
            &writer.target,
            &writer.place,
        )?;
        if let Some(pack) = writer.pack {
            // The finished file needs room of its own; it is made now for the same reason.
            let packed = writer.packed();
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .open(&packed)
                .map_err(|error| writer.place.write_failed(&error))?;
            let bytes = writer.size() + (pack.overhead)(&writer.key);
            reserve(&file, bytes, &writer.header, &writer.target, &writer.place)?;
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
        let file = join(&plan.temporary, &plan.place)?;
        Ok(plan.writer(file, false))
    }

    /// Writes the box `ranges` (start and length, one a dimension), which nobody else writes.
    pub fn write(&self, ranges: &[(u64, u64)], array: &Array) -> Result<(), DataError> {
        write_box(
            &self.file,
            self.head,
            &self.header,
            ranges,
            array,
            &self.place,
        )
    }

    /// Replaces the target by the temporary (site 0, when every site has written). The target keeps its
    /// permissions; on failure it stays as it was.
    pub fn finish(self) -> Result<(), DataError> {
        Writer::finish_together(vec![self])
    }

    /// [`Writer::finish`] of the arrays of one `.npz` file, in their order, or of one array.
    pub fn finish_together(writers: Vec<Writer>) -> Result<(), DataError> {
        let Some(first) = writers.first() else {
            return Ok(());
        };
        match Writer::replace(&writers) {
            Ok(()) => Ok(()),
            // Dropping the writers removes the temporaries.
            Err(error) => Err(first.place.write_failed(&error)),
        }
    }

    /// Gives the output up: the temporary is removed, the target stays as it was. Any site may do it.
    pub fn discard(mut self) {
        self.owner = true;
    }

    fn replace(writers: &[Writer]) -> io::Result<()> {
        let Some((first, others)) = writers.split_first() else {
            return Ok(());
        };
        let Some(pack) = first.pack else {
            first.file.sync_all()?;
            take_name(&first.temporary, &first.target)?;
            return Writer::replace(others);
        };
        let packed = first.packed();
        let file = OpenOptions::new().read(true).write(true).open(&packed)?;
        let rest = match pack.run {
            Run::One(run) => {
                run(&first.file, &file, &first.key, first.size())?;
                others
            }
            Run::Several(run) => {
                // The room that was made for the others is that of the first now.
                for other in others {
                    std::fs::remove_file(other.packed())?;
                }
                let arrays = writers.iter().map(|w| (&w.file, w.key.as_str(), w.size()));
                run(&arrays.collect::<Vec<_>>(), &file)?;
                &[]
            }
        };
        file.sync_all()?;
        take_name(&packed, &first.target)?;
        Writer::replace(rest)
    }

    /// Bytes of head and elements.
    fn size(&self) -> u64 {
        self.head + self.header.bytes().unwrap_or(0)
    }

    /// Where the finished file is made, if that is a step of its own.
    fn packed(&self) -> PathBuf {
        self.temporary.with_extension("packed")
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
        let Some(head) = format.head else {
            let what = format_args!(".{} files are not written", format.extension);
            return Err(place.error(UNWRITABLE, what));
        };
        if dtype.is_complex() && !format.holds_complex() {
            let what = format_args!(
                "cannot hold {header}: .{} files hold real numbers",
                format.extension
            );
            return Err(place
                .error(UNWRITABLE, what)
                .help("write it as .npy or .npz"));
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
            bytes: head(&key, &header, &place)?,
            temporary: hidden(&target, token),
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
