//! What of a session is kept on disk: checkpoints while it runs, the params at its end.
//!
//! What is carried is written by the sites that hold it, each box once, and read back as the plans ask for it, so a run continues on any
//! number of sites and with any plans. Must not know how files are laid out.
//!
//! ```text
//! after step 120 of train.1: W, b, W.m, W.v -> run/ckpt/step-000000120
//! ```

use super::files::{exported, facts, holders, saved};
use super::resident::{Resident, whole_kind};
use super::{Block, Checkpoints, Event, Runner};
use crate::error::{ErrorKind, RunError};
use crate::meet::agree;
use ein_array::Array;
use ein_data::checkpoint::CheckpointWriter;
use ein_data::{DataError, Named, SetWriter};
use ein_plan::{Mesh, Placement, RelationType};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a session keeps on disk, and how it begins; equal at all sites, except for the signal.
#[derive(Clone, Debug, Default)]
pub struct Keeping {
    /// How it begins where checkpoints are written.
    pub begin: Begin,
    /// A file for the params, at the end.
    pub export: Option<PathBuf>,
    /// Not 0 once this process has been asked to end: the number of the signal.
    pub signal: Arc<AtomicUsize>,
}

/// How a run begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Begin {
    /// Anew; checkpoints that are there are an error.
    #[default]
    Anew,
    /// Anew; checkpoints that are there are removed.
    Restart,
    /// With the newest good checkpoint.
    Resume,
}

/// Where a resumed session goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub block: u64,
    pub step: u64,
}

/// The counters of a checkpoint: the block, its next step, and, by optimizer, the updates that it has made.
pub(super) const BLOCK: &str = "block";
pub(super) const STEP: &str = "step of the block";
pub(super) const UPDATES: &str = "updates of ";

/// A writer of boxes of several tensors.
trait Target: Sized {
    fn write(&self, number: usize, ranges: &[(u64, u64)], array: &Array) -> Result<(), DataError>;
    fn settle(&self) -> Result<(), DataError>;
    fn discard(self);
}

impl Target for CheckpointWriter {
    fn write(&self, number: usize, ranges: &[(u64, u64)], array: &Array) -> Result<(), DataError> {
        CheckpointWriter::write(self, number, ranges, array)
    }
    fn settle(&self) -> Result<(), DataError> {
        CheckpointWriter::settle(self)
    }
    fn discard(self) {
        CheckpointWriter::discard(self);
    }
}

impl Target for SetWriter {
    fn write(&self, number: usize, ranges: &[(u64, u64)], array: &Array) -> Result<(), DataError> {
        SetWriter::write(self, number, ranges, array)
    }
    fn settle(&self) -> Result<(), DataError> {
        SetWriter::settle(self)
    }
    fn discard(self) {
        SetWriter::discard(self);
    }
}

pub(super) fn unwritten(error: DataError) -> RunError {
    RunError::data(ErrorKind::Output, error)
}

pub(super) fn unread(error: DataError) -> RunError {
    RunError::data(ErrorKind::Data, error)
}

impl Runner<'_> {
    /// Writes a checkpoint if it is time or a site was asked to end; returns the signal. `step` is the one that was made, from 0.
    pub(super) fn checkpoint(
        &mut self,
        number: usize,
        block: &Block,
        step: u64,
    ) -> Result<Option<usize>, RunError> {
        let Some(checkpoints) = &block.checkpoints else {
            return Ok(None);
        };
        let signal = self.asked()?;
        let last = step + 1 == block.steps;
        if signal.is_none() && !last && !checkpoints.every.due(step, block.steps_per_epoch) {
            return Ok(None);
        }
        self.save(number, checkpoints, step)?;
        Ok(signal)
    }

    /// The signal by which a site was asked to end.
    pub(super) fn asked(&self) -> Result<Option<usize>, RunError> {
        let mine = self.options.keeping.signal.load(Ordering::Relaxed);
        let asked = self.comm.agree((mine != 0).then(|| mine.to_string()))?;
        Ok(asked.map(|(_, signal)| signal.parse().unwrap_or(1)))
    }

    /// Writes a checkpoint after step `step` of a block.
    pub(super) fn save(
        &mut self,
        number: usize,
        checkpoints: &Checkpoints,
        step: u64,
    ) -> Result<(), RunError> {
        self.sound(number, step)?;
        let tensors = saved(self.session);
        let mut counters = BTreeMap::from([
            (BLOCK.to_owned(), number as u64),
            (STEP.to_owned(), step + 1),
        ]);
        for (optimizer, count) in &self.updates {
            counters.insert(format!("{UPDATES}{optimizer}"), *count);
        }
        let facts = facts(self.session, self.options.seed, self.comm.sites());
        let (folder, made, token) = (&checkpoints.folder, self.steps, self.token.clone());
        let saved = self.store(
            &tensors,
            &|| CheckpointWriter::create(folder, made, &tensors, &token),
            &|| CheckpointWriter::attach(folder, made, &tensors, &token),
            |writer| writer.finish(counters, facts, checkpoints.keep),
        )?;
        if let Some(folder) = saved {
            let made = self.steps;
            let _ = self.tell(&Event::Saved { folder, made });
        }
        Ok(())
    }

    /// Writes the params and the states of modules to the file that they are exported to.
    pub(super) fn export(&mut self) -> Result<(), RunError> {
        let Some(path) = &self.options.keeping.export else {
            return Ok(());
        };
        self.exports(path)?;
        let (params, token) = (exported(self.session), self.token.clone());
        self.store(
            &params,
            &|| SetWriter::create(path, &params, &token),
            &|| SetWriter::attach(path, &params, &token),
            SetWriter::finish,
        )?;
        Ok(())
    }

    /// All sites write what they hold; site 0 puts it in place, and returns what that gives.
    fn store<T: Target, R>(
        &mut self,
        tensors: &[Named],
        create: &dyn Fn() -> Result<T, DataError>,
        attach: &dyn Fn() -> Result<T, DataError>,
        finish: impl FnOnce(T) -> Result<R, DataError>,
    ) -> Result<Option<R>, RunError> {
        let holders = holders(self.session);
        let whole = |tensor: &Named| holders.get(tensor.name.as_str()).map(|(name, _)| *name);
        let mut names: Vec<&str> = tensors.iter().filter_map(whole).collect();
        names.dedup();
        for name in names {
            self.appear(name)?;
        }
        let first = self.comm.site() == 0;
        let mut writer = None;
        // The temporary must be there before the others look for it. A site that returns drops its writer, and with it the
        // temporary that it made.
        for turn in [true, false] {
            let mut failure = None;
            if turn == first {
                match if first { create() } else { attach() } {
                    Ok(made) => writer = Some(made),
                    Err(error) => failure = Some(unwritten(error)),
                }
            }
            agree(self.comm, failure)?;
        }
        let Some(writer) = writer else {
            return Err(RunError::internal("every site has a writer here"));
        };
        let written = self.boxes(tensors, &writer);
        let written = written.and_then(|()| writer.settle().map_err(unwritten));
        if let Err(error) = agree(self.comm, written.err()) {
            if error.kind == ErrorKind::Lost {
                // It may be site 0 that is lost, so whoever is left cleans up.
                writer.discard();
            }
            return Err(error);
        }
        let finished = match first {
            true => finish(writer).map(Some).map_err(unwritten),
            false => Ok(None),
        };
        agree(self.comm, finished.as_ref().err().cloned())?;
        finished
    }

    /// This site's tuples, or, where several sites hold the same, its share of them.
    fn boxes(&self, tensors: &[Named], target: &impl Target) -> Result<(), RunError> {
        let holders = holders(self.session);
        for (at, tensor) in tensors.iter().enumerate() {
            let missing = || RunError::internal(format!("`{}` is not held anywhere", tensor.name));
            let (name, place) = holders.get(tensor.name.as_str()).ok_or_else(missing)?;
            let resident = self.residents.get(name).ok_or_else(missing)?;
            let kind = &resident.kind;
            for (number, key) in kind.all_keys().enumerate() {
                let ranges = kind.ranges(&key);
                let (leading, own) = ranges.split_at(place.len());
                let inside = |(at, (start, count)): (&u64, &(u64, u64))| {
                    (*start..start + count).contains(at)
                };
                let holders = kind.holders(&key, &resident.mesh);
                if !place.iter().zip(leading).all(inside)
                    || holders[number % holders.len()] != self.comm.site()
                {
                    continue;
                }
                let tuple = resident.tuples.get(&key).and_then(|tuple| tuple.first());
                let array = tuple.ok_or_else(missing)?.to_host();
                let written = match place.is_empty() {
                    true => target.write(at, own, &array),
                    false => target.write(at, own, &part_of(&array, place, leading, own)),
                };
                written.map_err(unwritten)?;
            }
        }
        Ok(())
    }

    /// Makes what no plan has asked for yet, at the first site.
    fn appear(&mut self, name: &str) -> Result<(), RunError> {
        let Some(carried) = self.session.carried.get(name) else {
            return Ok(());
        };
        if self.residents.contains(name) {
            return Ok(());
        }
        let mesh = Mesh::row(self.comm.sites());
        let kind = RelationType {
            placement: Placement::one(&mesh),
            ..whole_kind(&carried.shape, carried.dtype, &mesh)
        };
        let made = self.made(name, &kind, &mesh);
        agree(self.comm, made.as_ref().err().cloned())?;
        self.residents.insert(
            name.to_owned(),
            Resident {
                tuples: made?,
                kind,
                mesh,
            },
        );
        Ok(())
    }
}

/// One of the tensors that an array holds behind each other: of the box `own`, that at `place`, where `leading` begins.
fn part_of(array: &Array, place: &[u64], leading: &[(u64, u64)], own: &[(u64, u64)]) -> Array {
    let extents: Vec<usize> = own.iter().map(|(_, n)| *n as usize).collect();
    let ones = vec![1; place.len()];
    let mut part = Array::zeros(array.dtype(), &[ones.as_slice(), &extents].concat());
    let mut from = vec![0; part.shape().len()];
    for (from, (at, (start, _))) in from.iter_mut().zip(place.iter().zip(leading)) {
        *from = (at - start) as usize;
    }
    let extent = part.shape().to_vec();
    part.copy_box(&vec![0; extent.len()], array, &from, &extent);
    part.reshaped(extents)
}
