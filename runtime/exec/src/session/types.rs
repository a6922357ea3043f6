//! What a session is given, and what it tells: plans and numbers, decided before it begins.
//!
//! Must not know how anything is walked.
//!
//! ```text
//! train.1: 1437 rows by 64, 690 steps; plans for 64 and 29 rows, for the validation, for the end
//! ```

use super::{Checkpoints, Keeping};
use crate::error::RunError;
use ein_plan::{DType, Plan, Source};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// A session: everything that is walked, decided before it begins.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Session {
    /// Blocks in order.
    pub blocks: Vec<Block>,
    /// What is carried, by name.
    pub carried: BTreeMap<String, Carried>,
    /// Gives constants that depend on data; its outputs are carried.
    pub constants: Option<Arc<Plan>>,
    /// What is evaluated at the end.
    pub last: Option<Arc<Plan>>,
    /// What is kept on disk; a run's own, which no built program carries.
    #[serde(skip)]
    pub keeping: Keeping,
}

/// A tensor that is carried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// How it begins; `Unbound`: it is given by the plan of the constants.
    pub begin: Source,
    /// Whether it begins anew with every batch.
    pub anew: bool,
    /// Whether checkpoints hold it: params and states.
    pub saved: bool,
    /// Whether the model consists of it: params and states of modules, not those of optimizers.
    pub model: bool,
    /// Whether it is a param.
    pub param: bool,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
}

impl Carried {
    /// The tensors that it is to files and settings: itself under its name, or those that are stored together.
    pub fn names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        match &self.begin {
            Source::Stacked { parts, .. } => parts.iter().map(|p| p.name.as_str()).collect(),
            _ => vec![name],
        }
    }
}

/// One loop over steps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Block {
    /// Its name: the stream of its shuffles.
    pub name: String,
    /// Rows of the data and of a batch.
    pub rows: u64,
    /// Rows of a batch.
    pub batch: u64,
    /// Whether the rows of each epoch are in random order.
    pub shuffle: bool,
    /// Steps of an epoch.
    pub steps_per_epoch: u64,
    /// Steps in all.
    pub steps: u64,
    /// In how many parts a batch is taken.
    pub parts: u64,
    /// What of the data is read by rows.
    pub inputs: Vec<BatchInput>,
    /// The output that is the loss.
    pub loss: String,
    /// By number of rows.
    pub step: BTreeMap<u64, Arc<Plan>>,
    /// With several parts: what is done with the sums of the gradients.
    pub apply: Option<Arc<Plan>>,
    /// Blocks with the same optimizer share its states and the number of its updates.
    pub optimizer: String,
    /// What is validated, by which plan, how often.
    pub validate: Option<(String, Arc<Plan>, Every)>,
    /// Where checkpoints are written.
    pub checkpoints: Option<Checkpoints>,
    /// If the sites make steps by themselves: how. `step` is empty then.
    pub rounds: Option<Rounds>,
    /// Gives states of modules that are statistics of so many rows; walked before anything is evaluated.
    pub statistics: Option<(u64, Arc<Plan>)>,
}

/// Rounds of steps that every site makes by itself, on rows of its own. Sites and parts: site `s` has part `s % parts`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Rounds {
    /// Steps of a round.
    pub local_steps: u64,
    /// Into how many parts the neurons are dealt; 1: every site has all.
    pub parts: u32,
    /// What becomes of the optimizer's states between rounds.
    pub states: States,
    /// The layers: names and numbers of neurons.
    pub neurons: Vec<(String, u64)>,
    /// By carried tensor its dimensions that count neurons, with the layer.
    pub dealt: BTreeMap<String, Vec<(usize, usize)>>,
    /// What a step gives on.
    pub learnt: Vec<String>,
    /// Weights of sums over neurons, with the number n of dealt indices of the sum, which has parts^n times as many terms in the
    /// whole net.
    pub summed: Vec<(String, u32)>,
    /// Steps of subnets, for one site.
    pub subnets: Vec<Block>,
    /// By part, which of them it walks.
    pub of_part: Vec<usize>,
}

/// What becomes of the optimizer's states between rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum States {
    /// They go where their params go.
    #[default]
    Travel,
    /// Every round begins with new ones.
    Reset,
    /// They stay at their sites; checkpoints and the end of the block average them.
    Stay,
}

/// A tensor of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchInput {
    /// Full name.
    pub name: String,
    /// The dimension along which its rows lie.
    pub axis: usize,
    /// Element type.
    pub dtype: DType,
    /// Extents of all of it.
    pub shape: Vec<u64>,
    /// Where it is from.
    pub source: Source,
    /// Whether it is one of the constants.
    pub constant: bool,
}

/// How often something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Every {
    /// After so many epochs.
    Epochs(u64),
    /// After so many steps.
    Steps(u64),
}

impl Every {
    /// Whether it is done after this step (counted from 0).
    pub fn due(self, step: u64, steps_per_epoch: u64) -> bool {
        match self {
            Every::Steps(count) => (step + 1).is_multiple_of(count.max(1)),
            Every::Epochs(count) => {
                let after = (step + 1) / steps_per_epoch.max(1);
                (step + 1).is_multiple_of(steps_per_epoch.max(1))
                    && after.is_multiple_of(count.max(1))
            }
        }
    }
}

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

impl Session {
    /// The plans that all sites walk together.
    pub fn plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.constants
            .iter()
            .chain(self.blocks.iter().flat_map(|block| {
                let validate = block.validate.as_ref().map(|(_, plan, _)| plan);
                let statistics = block.statistics.as_ref().map(|(_, plan)| plan);
                let steps = block.step.values().chain(&block.apply);
                steps.chain(validate).chain(statistics)
            }))
            .chain(&self.last)
    }

    /// The plans that all sites walk together, then those that they walk by themselves: in the order in which a profile numbers them.
    pub fn all_plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        self.plans().chain(self.own_plans())
    }

    /// The plans that sites walk by themselves, for one site each.
    pub fn own_plans(&self) -> impl Iterator<Item = &Arc<Plan>> {
        let rounds = self.blocks.iter().filter_map(|block| block.rounds.as_ref());
        let subnets = rounds.flat_map(|rounds| &rounds.subnets);
        subnets.flat_map(|subnet| subnet.step.values().chain(&subnet.apply))
    }
}
