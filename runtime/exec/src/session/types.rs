//! What a session is given, and what it tells.
//!
//! Must not know how anything is walked.
//!
//! ```text
//! train.1: 1437 rows by 64, 690 steps; plans for 64 and 29 rows   ->   step 0: loss 2.31, step 1: loss 2.28, …
//! ```

use crate::error::RunError;
use ein_plan::{Plan, training};
use std::path::PathBuf;
use std::sync::Arc;

/// A session: everything that is walked, decided before it begins.
pub type Session = training::Training<Arc<Plan>>;

/// One loop over steps.
pub type Block = training::TrainBlock<Arc<Plan>>;

/// Rounds of steps that every site makes by itself.
pub type Rounds = training::Rounds<Arc<Plan>>;

/// What is told while a session runs, at site 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A checkpoint that is damaged or of another run is left out; says why.
    Refused(String),
    /// The first step comes next.
    Begun {
        /// The checkpoint that is continued, and the steps that had been made.
        resumed: Option<(PathBuf, u64)>,
    },
    /// A step was made, and what was validated after it.
    Step {
        /// Which block, from 0.
        block: usize,
        /// The step of the block, from 0.
        step: u64,
        /// The epoch of the block, from 0.
        epoch: u64,
        /// Steps of all blocks that have been made.
        made: u64,
        /// Rows of the batch.
        rows: u64,
        /// The loss over the batch, before the update.
        loss: f64,
        /// The rate of the params that are in no group, if the optimizer has one.
        rate: Option<f64>,
        /// What was validated, and its value.
        validated: Option<(String, f64)>,
        /// Seconds since the session began.
        seconds: f64,
    },
    /// A checkpoint was written.
    Saved {
        /// Where.
        folder: PathBuf,
        /// Steps of all blocks that have been made.
        made: u64,
    },
}

/// Who is told. An error ends the session, if it comes before the first step.
pub type Watch<'a> = dyn Fn(&Event) -> Result<(), RunError> + Sync + 'a;
