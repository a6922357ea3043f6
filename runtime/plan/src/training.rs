//! Trainings: the blocks of steps that a session makes, what it carries from step to step, and the programs that it needs.
//!
//! One set of types for the checker, whose programs are Einstein programs, and for the run time, whose programs are plans: [`Training::planned`]
//! turns the one into the other. Must not know what a program is, nor how it is walked.
//!
//! ```text
//! train.1: 1437 rows by 64, 690 steps; programs for 64 and 29 rows, for the validation, for the end
//! ```

use crate::dtype::DType;
use crate::source::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A training: everything that is walked, decided before it begins. `P` is a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Training<P> {
    /// The blocks in order.
    pub blocks: Vec<TrainBlock<P>>,
    /// Everything that is carried from program to program, by name.
    pub carried: BTreeMap<String, Carried>,
    /// Gives the constants that depend on data, if there are any; its outputs are carried.
    pub constants: Option<P>,
    /// Gives the outputs at the end, if there are any.
    pub last: Option<P>,
}

/// A tensor that is carried.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Carried {
    /// Its kind to the user.
    pub kind: CarriedKind,
    /// How it begins; `Unbound`: it is a constant, given by the program of the constants.
    pub begin: Source,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// True if its last dimension holds the parts of complex numbers, to the user.
    pub complex: bool,
}

/// The kind of a carried tensor, to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CarriedKind {
    /// A param, trained or not.
    Param,
    /// A state of an optimizer.
    State,
    /// A state of a module.
    Running,
    /// A sum of gradients, which begins anew with every batch.
    Gradient,
    /// An input that is not batched.
    Input,
    /// A constant that depends on data.
    Constant,
}

impl CarriedKind {
    /// True if checkpoints hold it: params and states.
    pub fn is_saved(self) -> bool {
        self.is_model() || self == CarriedKind::State
    }

    /// True if the model consists of it: params and states of modules, not those of optimizers.
    pub fn is_model(self) -> bool {
        matches!(self, CarriedKind::Param | CarriedKind::Running)
    }
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

/// A `train` block: one loop over steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainBlock<P> {
    /// Its name, `train.1` for the first: the stream of its shuffles.
    pub name: String,
    /// Rows of the data; 1 where nothing is batched.
    pub rows: u64,
    /// Rows of a batch.
    pub batch: u64,
    /// True if the rows of every epoch are shuffled.
    pub shuffle: bool,
    /// Steps of an epoch.
    pub steps_per_epoch: u64,
    /// Steps of the block.
    pub steps: u64,
    /// In how many parts a batch is taken.
    pub parts: u64,
    /// The data that the steps read.
    pub inputs: Vec<BatchInput>,
    /// By number of rows: a step or, with several parts, the gradients of a part. The first output is the loss; the others replace
    /// what is carried. Empty if there are `rounds`.
    pub step: BTreeMap<u64, P>,
    /// With several parts: takes the gradients to the new params.
    pub apply: Option<P>,
    /// The optimizer's name: blocks with the same one share its states and the number of its updates.
    pub optimizer: String,
    /// The scalar that is validated.
    pub validate: Option<Validation<P>>,
    /// Where checkpoints are written.
    pub checkpoints: Option<Checkpoints>,
    /// If the sites make steps by themselves: how.
    pub rounds: Option<Rounds<P>>,
    /// Gives the states of modules that are statistics of rows, with how many rows; walked before anything is evaluated.
    pub statistics: Option<(u64, P)>,
}

/// A tensor of the data, of which a step sees some rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchInput {
    /// Its full name, in the steps and in the data.
    pub name: String,
    /// The dimension that the rows are counted by.
    pub axis: usize,
    /// Element type.
    pub dtype: DType,
    /// Extents of all of it.
    pub shape: Vec<u64>,
    /// Where it comes from; `Unbound` also for a constant.
    pub source: Source,
    /// True if it is a constant of the program, not an input.
    pub constant: bool,
}

/// A scalar that is evaluated beside the steps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation<P> {
    /// Its name.
    pub name: String,
    /// Gives it as its only output.
    pub program: P,
    /// How often it is evaluated.
    pub every: Every,
}

/// Where the checkpoints of a block go.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// The folder that they are in.
    pub folder: PathBuf,
    /// How often one is written, besides at the end of the block.
    pub every: Every,
    /// How many are kept.
    pub keep: Option<u64>,
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
    /// Returns whether it is done after this step (counted from 0).
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

/// Rounds of steps that every site makes by itself, on rows of its own. Sites and parts: site `s` has part `s % parts`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rounds<P> {
    /// Steps of a round.
    pub local_steps: u64,
    /// Sites whose batches a step has side by side.
    pub sites: u32,
    /// Into how many parts neurons are dealt; 1: every site has all.
    pub parts: u32,
    /// The fate of the optimizer's states between rounds.
    pub states: States,
    /// The layers: names and numbers of neurons.
    pub neurons: Vec<(String, u64)>,
    /// The carried tensors that are dealt: by name the dimensions that count neurons, with the number of the layer.
    pub dealt: BTreeMap<String, Vec<(usize, usize)>>,
    /// Everything that a step gives on, in the order of its outputs.
    pub learnt: Vec<String>,
    /// Weights of sums over neurons that no statistic follows, with the number n of dealt indices of the sum, which has parts^n
    /// times as many terms in the whole net.
    pub summed: Vec<(String, u32)>,
    /// Steps of a subnet, by the sizes of its layers; each is for one site.
    pub subnets: Vec<Subnet<P>>,
    /// By part, which subnet it is of.
    pub of_part: Vec<usize>,
}

/// The fate of the optimizer's states between rounds.
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

/// The programs of a net with some of the neurons.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subnet<P> {
    /// Neurons of each layer.
    pub sizes: Vec<u64>,
    /// By number of rows: a step or the gradients of a part.
    pub step: BTreeMap<u64, P>,
    /// Applies the gradients of parts.
    pub apply: Option<P>,
}

impl<P> Default for Training<P> {
    fn default() -> Self {
        Training {
            blocks: vec![],
            carried: BTreeMap::new(),
            constants: None,
            last: None,
        }
    }
}

/// Makes one kind of program of another, as a plan of a statement of what is computed.
pub type Planner<'a, P, Q, E> = dyn Fn(&P) -> Result<Q, E> + 'a;

impl<P> Training<P> {
    /// The training with other programs: `together` makes those that all sites walk, `alone` those of one site by itself.
    ///
    /// # Errors
    /// The first error of either.
    pub fn planned<Q, E>(
        self,
        together: &Planner<'_, P, Q, E>,
        alone: &Planner<'_, P, Q, E>,
    ) -> Result<Training<Q>, E> {
        Ok(Training {
            constants: self.constants.as_ref().map(together).transpose()?,
            last: self.last.as_ref().map(together).transpose()?,
            carried: self.carried,
            blocks: self
                .blocks
                .into_iter()
                .map(|block| block.planned(together, alone))
                .collect::<Result<_, E>>()?,
        })
    }

    /// The programs that all sites walk together.
    pub fn programs(&self) -> impl Iterator<Item = &P> {
        self.constants
            .iter()
            .chain(self.blocks.iter().flat_map(TrainBlock::programs))
            .chain(&self.last)
    }

    /// The programs that sites walk by themselves, for one site each.
    pub fn own_programs(&self) -> impl Iterator<Item = &P> {
        let rounds = self.blocks.iter().filter_map(|block| block.rounds.as_ref());
        let subnets = rounds.flat_map(|rounds| &rounds.subnets);
        subnets.flat_map(|subnet| subnet.step.values().chain(&subnet.apply))
    }

    /// The programs that all sites walk together, then those that they walk by themselves: in the order in which a profile numbers them.
    pub fn all_programs(&self) -> impl Iterator<Item = &P> {
        self.programs().chain(self.own_programs())
    }
}

impl<P> TrainBlock<P> {
    /// A block that makes no step: one row in one part, no programs.
    pub fn named(name: String) -> Self {
        TrainBlock {
            name,
            rows: 1,
            batch: 1,
            shuffle: false,
            steps_per_epoch: 1,
            steps: 0,
            parts: 1,
            inputs: vec![],
            step: BTreeMap::new(),
            apply: None,
            optimizer: String::new(),
            validate: None,
            checkpoints: None,
            rounds: None,
            statistics: None,
        }
    }

    /// The programs that all sites walk together.
    fn programs(&self) -> impl Iterator<Item = &P> {
        let validate = self.validate.as_ref().map(|validate| &validate.program);
        let statistics = self.statistics.as_ref().map(|(_, program)| program);
        let steps = self.step.values().chain(&self.apply);
        steps.chain(validate).chain(statistics)
    }

    fn planned<Q, E>(
        self,
        together: &Planner<'_, P, Q, E>,
        alone: &Planner<'_, P, Q, E>,
    ) -> Result<TrainBlock<Q>, E> {
        let rounds = self
            .rounds
            .map(|rounds| rounds.planned(alone))
            .transpose()?;
        let statistics = |(rows, program): (u64, P)| Ok((rows, together(&program)?));
        let validation = |validate: Validation<P>| {
            Ok(Validation {
                program: together(&validate.program)?,
                name: validate.name,
                every: validate.every,
            })
        };
        Ok(TrainBlock {
            step: steps(&self.step, together)?,
            apply: self.apply.as_ref().map(together).transpose()?,
            rounds,
            statistics: self.statistics.map(statistics).transpose()?,
            validate: self.validate.map(validation).transpose()?,
            name: self.name,
            rows: self.rows,
            batch: self.batch,
            shuffle: self.shuffle,
            steps_per_epoch: self.steps_per_epoch,
            steps: self.steps,
            parts: self.parts,
            inputs: self.inputs,
            optimizer: self.optimizer,
            checkpoints: self.checkpoints,
        })
    }
}

impl<P> Rounds<P> {
    fn planned<Q, E>(self, alone: &Planner<'_, P, Q, E>) -> Result<Rounds<Q>, E> {
        let subnet = |subnet: Subnet<P>| {
            Ok(Subnet {
                step: steps(&subnet.step, alone)?,
                apply: subnet.apply.as_ref().map(alone).transpose()?,
                sizes: subnet.sizes,
            })
        };
        Ok(Rounds {
            subnets: self
                .subnets
                .into_iter()
                .map(subnet)
                .collect::<Result<_, E>>()?,
            local_steps: self.local_steps,
            sites: self.sites,
            parts: self.parts,
            states: self.states,
            neurons: self.neurons,
            dealt: self.dealt,
            learnt: self.learnt,
            summed: self.summed,
            of_part: self.of_part,
        })
    }
}

/// Other steps, by the number of their rows.
fn steps<P, Q, E>(
    steps: &BTreeMap<u64, P>,
    plan: &Planner<'_, P, Q, E>,
) -> Result<BTreeMap<u64, Q>, E> {
    let steps = steps.iter();
    steps
        .map(|(rows, program)| Ok((*rows, plan(program)?)))
        .collect()
}
