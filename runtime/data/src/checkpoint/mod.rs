//! Checkpoints: what a training run needs to continue, in global index order, so that any number of sites reads it back.
//!
//! A checkpoint is a folder `step-000000120` with `tensors.safetensors` (parameters and states) and `manifest.json` (format, counters, what
//! the program is, a checksum of everything). It appears under its name when it is whole and on the disk. Must not know what
//! the counters and tensors mean, or who holds which part of them.
//!
//! ```text
//! run/ckpt/  step-000000100  step-000000120  .step-000000140-….part
//! ```

mod manifest;
mod read;
mod write;

pub use manifest::Manifest;
pub use read::{Checkpoint, Found, newest};
pub use write::{CheckpointWriter, Held, InUse, hold, prepare, sweep};

use std::path::{Path, PathBuf};

const TENSORS: &str = "tensors.safetensors";
const MANIFEST: &str = "manifest.json";
const PREFIX: &str = "step-";

/// The folder of the checkpoint of a step.
pub fn folder_of(root: &Path, step: u64) -> PathBuf {
    root.join(format!("{PREFIX}{step:09}"))
}

/// The checkpoints in a folder, by step, the newest first, whole or not. A folder that is not there has none.
pub fn list(root: &Path) -> Vec<(u64, PathBuf)> {
    let Ok(entries) = std::fs::read_dir(root) else {
        return vec![];
    };
    let mut found: Vec<(u64, PathBuf)> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let step = path.file_name()?.to_str()?.strip_prefix(PREFIX)?;
            let step = step.parse().ok()?;
            path.is_dir().then_some((step, path))
        })
        .collect();
    found.sort_by(|a, b| b.cmp(a));
    found
}
