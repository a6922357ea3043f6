//! Writes a checkpoint: all sites write their boxes into a hidden folder, which takes its name when it is whole.
//!
//! Must not know which site writes what.
//!
//! ```text
//! site 0 create, the others attach; all write and settle; site 0 finishes: checksums, manifest, rename, the oldest goes
//! ```

use crate::checkpoint::manifest::Manifest;
use crate::checkpoint::{MANIFEST, PREFIX, TENSORS, folder_of, list, read};
use crate::error::{DataError, Place, UNWRITABLE, plain};
use crate::set::{Named, SetWriter};
use crate::temporary::{hidden, in_the_way, settle};
use ein_array::Array;
use rustix::fs::{CWD, RenameFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// One site's end of a checkpoint. The writer that [`CheckpointWriter::create`] made removes what it wrote when it is dropped
/// unfinished.
#[derive(Debug)]
pub struct CheckpointWriter {
    place: Place,
    root: PathBuf,
    step: u64,
    tensors: Vec<Named>,
    hidden: PathBuf,
    /// `None` once its file is closed.
    set: Option<SetWriter>,
    owner: bool,
}

/// A folder of checkpoints that nobody else writes to, until this is dropped or the process ends, however it does.
#[derive(Debug)]
pub struct Held {
    folder: PathBuf,
    /// What is closed is no longer locked.
    _open: File,
}

impl Held {
    /// Whether this is the folder, however it is named.
    pub fn is(&self, root: &Path) -> bool {
        root.canonicalize()
            .is_ok_and(|folder| folder == self.folder)
    }
}

/// Keeps other runs from writing checkpoints to a folder; `None` if there is no such folder. Where the file system knows no locks, nobody is kept.
///
/// # Errors
/// Another run holds it.
pub fn hold(root: &Path) -> Result<Option<Held>, InUse> {
    let Some(folder) = root.canonicalize().ok().filter(|folder| folder.is_dir()) else {
        return Ok(None);
    };
    let Ok(open) = File::open(&folder) else {
        return Ok(None);
    };
    match open.try_lock() {
        Err(TryLockError::WouldBlock) => Err(InUse),
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(Held {
            folder,
            _open: open,
        })),
    }
}

/// Another run writes checkpoints to a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InUse;

/// Removes what a killed run left of checkpoints that it did not finish. Nobody else may be writing checkpoints to this folder.
pub fn sweep(root: &Path) {
    let Ok(entries) = fs::read_dir(root) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&format!(".{PREFIX}")) && name.ends_with(".part") {
            // What cannot be removed now is in nobody's way.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes a folder ready for the checkpoints of a run that begins anew (site 0): what a killed run left is swept out and, if `empty`,
/// the checkpoints that are there are removed.
///
/// # Errors
/// `E0705` if the folder cannot be made, or nothing can be written into it.
pub fn prepare(root: &Path, empty: bool) -> Result<(), DataError> {
    let place = Place {
        file: root.display().to_string(),
        key: None,
    };
    fs::create_dir_all(root).map_err(|error| no_folder(&place, root, &error))?;
    sweep(root);
    // Better now than after the steps up to the first checkpoint.
    let trial = root.join(format!(".{PREFIX}{}.part", std::process::id()));
    fs::create_dir(&trial)
        .and_then(|()| fs::remove_dir(&trial))
        .map_err(|error| place.write_failed(&error))?;
    if empty {
        list(root).iter().for_each(|(_, folder)| remove(folder));
    }
    match list(root).first() {
        Some((_, folder)) if empty => Err(place.error(
            UNWRITABLE,
            format_args!("`{}` cannot be removed", folder.display()),
        )),
        _ => Ok(()),
    }
}

impl CheckpointWriter {
    /// Makes the hidden folder, with room for all tensors (site 0); `root` itself, too, if it is not there. `token` tells runs apart;
    /// all sites of a run give the same, and the same tensors in the same order.
    ///
    /// # Errors
    /// `E0705` if the folder cannot be made, `E0707` if the disk is full.
    pub fn create(
        root: &Path,
        step: u64,
        tensors: &[Named],
        token: &str,
    ) -> Result<CheckpointWriter, DataError> {
        let mut writer = CheckpointWriter::new(root, step, tensors, token);
        fs::create_dir_all(root).map_err(|error| no_folder(&writer.place, root, &error))?;
        fs::create_dir(&writer.hidden)
            .map_err(|error| in_the_way(&writer.hidden, &error, &writer.place))?;
        writer.owner = true;
        writer.open(SetWriter::create, token)?;
        Ok(writer)
    }

    /// Opens the folder that site 0 has made (the other sites), with the same arguments.
    ///
    /// # Errors
    /// `E0705` if this site does not see it.
    pub fn attach(
        root: &Path,
        step: u64,
        tensors: &[Named],
        token: &str,
    ) -> Result<CheckpointWriter, DataError> {
        let mut writer = CheckpointWriter::new(root, step, tensors, token);
        writer.open(SetWriter::attach, token)?;
        Ok(writer)
    }

    /// Writes the box `ranges` (start and length, one a dimension) of the tensor of that number, which nobody else writes.
    ///
    /// # Errors
    /// `E0705` if the box is none of the tensor, `E0707` if the disk is full.
    pub fn write(
        &self,
        number: usize,
        ranges: &[(u64, u64)],
        array: &Array,
    ) -> Result<(), DataError> {
        let written = match &self.set {
            Some(set) => set.write(number, ranges, array),
            None => Err(self.place.error(UNWRITABLE, "is closed already")),
        };
        written.map_err(|error| self.named(error))
    }

    /// Waits until what this site wrote is on the disk. Every site does it before site 0 finishes.
    ///
    /// # Errors
    /// `E0705` or `E0707` if it cannot be.
    pub fn settle(&self) -> Result<(), DataError> {
        let settled = self.set.as_ref().map_or(Ok(()), SetWriter::settle);
        settled.map_err(|error| self.named(error))
    }

    /// Gives the checkpoint its name (site 0, when every site has written and settled), replacing one of the same step, and removes
    /// the oldest so that `keep` are left. Returns its folder. On failure nothing that was there before is lost.
    ///
    /// # Errors
    /// `E0705` if it cannot be put in place.
    pub fn finish(
        mut self,
        counters: BTreeMap<String, u64>,
        facts: BTreeMap<String, String>,
        keep: Option<u64>,
    ) -> Result<PathBuf, DataError> {
        if let Some(set) = self.set.take() {
            set.finish().map_err(|error| self.named(error))?;
        }
        let target = folder_of(&self.root, self.step);
        let (table, checksums) = read::checksums(&self.hidden.join(TENSORS), &self.tensors)
            .map_err(|error| self.named(error))?;
        let manifest = Manifest {
            step: self.step,
            counters,
            facts,
            tensors: self.tensors.clone(),
            checksums,
            table,
        };
        let placed = manifest
            .print()
            .map_err(io::Error::from)
            .and_then(|text| write_whole(&self.hidden.join(MANIFEST), text.as_bytes()))
            .and_then(|()| {
                settle(&self.hidden);
                replace(&self.hidden, &target)
            });
        placed.map_err(|error| self.place.write_failed(&error))?;
        settle(&self.root);
        for (_, old) in list(&self.root).into_iter().skip(most(keep)) {
            // The newest are never removed, and what cannot be removed only takes room.
            if old != target {
                remove(&old);
            }
        }
        Ok(target)
    }

    /// Gives the checkpoint up. Any site may do it.
    pub fn discard(mut self) {
        self.owner = true;
    }

    fn new(root: &Path, step: u64, tensors: &[Named], token: &str) -> CheckpointWriter {
        let target = folder_of(root, step);
        CheckpointWriter {
            place: Place {
                file: target.display().to_string(),
                key: None,
            },
            root: root.to_owned(),
            step,
            tensors: tensors.to_vec(),
            hidden: hidden(&target, token),
            set: None,
            owner: false,
        }
    }

    fn open(
        &mut self,
        opening: fn(&Path, &[Named], &str) -> Result<SetWriter, DataError>,
        token: &str,
    ) -> Result<(), DataError> {
        let set = opening(&self.hidden.join(TENSORS), &self.tensors, token);
        self.set = Some(set.map_err(|error| self.named(error))?);
        Ok(())
    }

    /// The error with the checkpoint's name instead of the hidden one.
    fn named(&self, error: DataError) -> DataError {
        DataError {
            file: self.place.file.clone(),
            ..error
        }
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        if self.owner {
            self.set = None;
            // After the rename there is nothing left to remove.
            let _ = fs::remove_dir_all(&self.hidden);
        }
    }
}

fn most(keep: Option<u64>) -> usize {
    keep.map_or(usize::MAX, |keep| {
        usize::try_from(keep.max(1)).unwrap_or(usize::MAX)
    })
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    io::Write::write_all(&mut file, bytes)?;
    file.sync_all()
}

/// Gives a folder the name of another, which goes.
fn replace(folder: &Path, target: &Path) -> io::Result<()> {
    if !target.exists() {
        return fs::rename(folder, target);
    }
    match rustix::fs::renameat_with(CWD, folder, CWD, target, RenameFlags::EXCHANGE) {
        // The old one has the hidden name now.
        Ok(()) => fs::remove_dir_all(folder),
        // Not every file system can do that in one step.
        Err(_) => {
            remove(target);
            fs::rename(folder, target)
        }
    }
}

/// Removes a checkpoint, under a hidden name so that half of it is never taken for one.
fn remove(folder: &Path) {
    let aside = hidden(folder, "removed");
    let gone = match fs::rename(folder, &aside) {
        Ok(()) => aside,
        Err(_) => folder.to_owned(),
    };
    let _ = fs::remove_dir_all(gone);
}

fn no_folder(place: &Place, root: &Path, error: &io::Error) -> DataError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => place.write_failed(error),
        io::ErrorKind::PermissionDenied => place.error(
            UNWRITABLE,
            format_args!(
                "the folder `{}` cannot be made: no permission",
                root.display()
            ),
        ),
        _ => place.error(
            UNWRITABLE,
            format_args!(
                "the folder `{}` cannot be made: {}",
                root.display(),
                plain(error)
            ),
        ),
    }
}
