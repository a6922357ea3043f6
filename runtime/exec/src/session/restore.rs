//! How a session begins: anew, or where a checkpoint was written, on any number of sites and with any plans.
//!
//! Must not know how files are laid out.
//!
//! ```text
//! run/ckpt/step-000000120: W, b, W.m, W.v -> train.1 goes on with step 121
//! ```

use super::files::{exported, facts, folders, saved};
use super::keep::{BLOCK, Begin, Position, STEP, UPDATES, unread, unwritten};
use super::{Event, Runner};
use crate::error::{ErrorKind, RunError};
use crate::meet::{agree, share_numbers};
use crate::store::Tuples;
use ein_array::Array;
use ein_data::checkpoint::{self, Checkpoint};
use ein_data::{DataError, Named, Reader, SetWriter};
use ein_device::Device;
use ein_plan::{Mesh, RelationType, Source};
use std::path::Path;

impl Runner<'_> {
    /// Finds where the session begins and looks whether what it will write can be written. Every site calls it first.
    pub(super) fn begin(&mut self) -> Result<Position, RunError> {
        let keeping = &self.options.keeping;
        let first = self.comm.site() == 0;
        let mut failure = None;
        if let (true, Some(path)) = (first, &keeping.export) {
            failure = self.exportable(path).err().map(unwritten);
        }
        agree(self.comm, failure)?;
        match keeping.begin {
            Begin::Resume => self.resume(),
            begin => {
                let mut failure = None;
                if first {
                    let ready = self.anew(begin == Begin::Restart);
                    let begun = Event::Begun { resumed: None };
                    failure = ready.and_then(|()| self.tell(&begun)).err();
                }
                agree(self.comm, failure)?;
                Ok(Position::default())
            }
        }
    }

    /// Looks whether the params can be exported (site 0): makes room for all of them and gives it back. Better now than after the last
    /// step.
    fn exportable(&self, path: &Path) -> Result<(), DataError> {
        let made_later = |folder: &&Path| path.starts_with(folder) && !folder.exists();
        if folders(self.session).iter().any(made_later) {
            return ein_data::supported(path);
        }
        let params = exported(self.session);
        SetWriter::create(path, &params, &self.token).map(SetWriter::discard)
    }

    /// Makes the folders of checkpoints ready for a run that begins anew (site 0).
    fn anew(&mut self, restart: bool) -> Result<(), RunError> {
        for folder in folders(self.session) {
            self.hold(folder)?;
            let there = checkpoint::list(folder);
            if let (false, Some((step, _))) = (restart, there.first()) {
                let message = format!(
                    "`{}` holds checkpoints of an earlier run, up to step {step}",
                    folder.display()
                );
                return Err(RunError::new("E0709", ErrorKind::Output, message)
                    .help("`--resume` continues that run; `--restart` removes its checkpoints and begins anew"));
            }
            checkpoint::prepare(folder, restart).map_err(unwritten)?;
            self.hold(folder)?;
        }
        Ok(())
    }

    /// Keeps other runs out of a folder of checkpoints, if it is there (site 0).
    fn hold(&mut self, folder: &Path) -> Result<(), RunError> {
        if self.held.iter().any(|held| held.is(folder)) {
            return Ok(());
        }
        let held = checkpoint::hold(folder).map_err(|checkpoint::InUse| {
            let folder = folder.display();
            let message = format!("another run keeps its checkpoints in `{folder}` now");
            RunError::new("E0709", ErrorKind::Output, message)
                .help("wait until it ends, or let `checkpoint:` name another folder")
        })?;
        self.held.extend(held);
        Ok(())
    }

    /// Finds the newest good checkpoint, at site 0, and opens it at every site.
    fn resume(&mut self) -> Result<Position, RunError> {
        let (tensors, facts) = (
            saved(self.session),
            facts(self.session, self.options.seed, self.comm.sites()),
        );
        let folders = folders(self.session);
        let mut best: Option<(usize, u64)> = None;
        let mut failure = None;
        if self.comm.site() == 0 {
            let mut refused = vec![];
            for (number, folder) in folders.iter().enumerate() {
                if let Err(error) = self.hold(folder) {
                    failure = Some(error);
                    break;
                }
                checkpoint::sweep(folder);
                let found = checkpoint::newest(folder, &tensors, &facts);
                refused.extend(found.refused);
                if let Some(step) = found.checkpoint.map(|c| c.manifest().step)
                    && best.is_none_or(|(_, other)| other < step)
                {
                    best = Some((number, step));
                }
            }
            match best {
                _ if failure.is_some() => {}
                None => failure = Some(nothing(&folders, &refused)),
                Some(_) => {
                    let told = refused.iter();
                    let mut told = told.map(|error| self.tell(&Event::Refused(error.to_string())));
                    failure = told.find_map(Result::err);
                }
            }
        }
        agree(self.comm, failure)?;
        let (number, step) = best.unwrap_or_default();
        let all = share_numbers(self.comm, vec![number as i64, step as i64])?;
        let (number, step) = (all[0][0] as usize, all[0][1] as u64);
        let opened = folders
            .get(number)
            .ok_or_else(|| RunError::internal("site 0 has found a checkpoint in no folder"))
            .and_then(|folder| self.open(&checkpoint::folder_of(folder, step), &tensors));
        agree(self.comm, opened.as_ref().err().cloned())?;
        opened
    }

    /// Opens a checkpoint that site 0 has found to be whole.
    fn open(&mut self, folder: &Path, tensors: &[Named]) -> Result<Position, RunError> {
        let found = Checkpoint::open(folder).map_err(unread)?;
        // All are opened now: the checkpoint may be removed before the last is read.
        for tensor in tensors {
            let reader = found.reader(&tensor.name).map_err(unread)?;
            self.restored.insert(tensor.name.clone(), reader);
        }
        let manifest = found.manifest();
        let number = |name: &str| manifest.counters.get(name).copied().unwrap_or(0);
        for (name, count) in &manifest.counters {
            if let Some(optimizer) = name.strip_prefix(UPDATES) {
                self.updates.insert(optimizer.to_owned(), *count);
            }
        }
        self.steps = manifest.step;
        let position = Position {
            block: number(BLOCK),
            step: number(STEP),
        };
        self.tell(&Event::Begun {
            resumed: Some((folder.to_owned(), self.steps)),
        })?;
        Ok(position)
    }

    /// This site's tuples of something carried, as the session begins: from the checkpoint, or from its source.
    pub(super) fn made(
        &self,
        name: &str,
        kind: &RelationType,
        mesh: &Mesh,
    ) -> Result<Tuples, RunError> {
        let place = (self.comm.site(), mesh);
        if let Some(reader) = self.restored.get(name) {
            return read(reader, kind, place, &*self.options.device);
        }
        let Some(carried) = self.session.carried.get(name) else {
            return Err(RunError::internal(format!("`{name}` is not carried")));
        };
        if let Source::Stacked { leading, parts } = &carried.begin {
            let readers = parts.iter().map(|part| self.restored.get(&part.name));
            if let Some(readers) = readers.collect::<Option<Vec<_>>>() {
                let device = &*self.options.device;
                return read_stacked(&readers, *leading as usize, kind, (place, device));
            }
        }
        self.pool.install(|| {
            crate::source::source((name, name), &carried.begin, kind, place, &[], self.options)
        })
    }
}

fn read(
    reader: &Reader,
    kind: &RelationType,
    (site, mesh): (u32, &Mesh),
    device: &dyn Device,
) -> Result<Tuples, RunError> {
    let mut tuples = Tuples::new();
    for key in kind.keys_at(site, mesh) {
        let part = crate::source::read(reader, &kind.ranges(&key), device).map_err(unread)?;
        tuples.insert(key, vec![part]);
    }
    Ok(tuples)
}

/// As [`read`], of tensors that are stored together.
fn read_stacked(
    readers: &[&Reader],
    leading: usize,
    kind: &RelationType,
    ((site, mesh), device): ((u32, &Mesh), &dyn Device),
) -> Result<Tuples, RunError> {
    let [dtype] = kind.array.columns.as_slice() else {
        return Err(RunError::internal("what is carried has one column"));
    };
    let counts: Vec<u64> = kind.array.dims.iter().map(|dim| dim.extent).collect();
    let mut tuples = Tuples::new();
    for key in kind.keys_at(site, mesh) {
        let ranges = kind.ranges(&key);
        let (first, own) = ranges.split_at(leading);
        let extents: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let mut array = Array::zeros(*dtype, &extents);
        for at in crate::source::places(first) {
            let number = crate::source::number_of(&at, &counts);
            let part = readers[number as usize].read(own).map_err(unread)?;
            crate::source::put(&mut array, part, &at, first);
        }
        tuples.insert(key, vec![device.adopt(array.into())]);
    }
    Ok(tuples)
}

/// There is no checkpoint to continue.
fn nothing(folders: &[&Path], refused: &[DataError]) -> RunError {
    let error = |message: String| RunError::new("E0709", ErrorKind::Data, message);
    match (folders, refused) {
        ([], _) => error("there is nothing to resume: no `train` block has a `checkpoint:`".into())
            .help("checkpoint: \"run/ckpt\" every 1 epoch"),
        (folders, []) => {
            let names: Vec<_> = folders
                .iter()
                .map(|f| format!("`{}`", f.display()))
                .collect();
            error(format!(
                "there is nothing to resume: no checkpoint is in {}",
                names.join(", ")
            ))
            .help("leave `--resume` out to begin anew")
        }
        (_, refused) => {
            let reasons: Vec<_> = refused.iter().map(ToString::to_string).collect();
            error(format!(
                "no checkpoint can be resumed: {}",
                reasons.join("; ")
            ))
            .help("leave `--resume` out and give `--restart` to begin anew")
        }
    }
}
