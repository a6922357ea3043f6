//! Settings: everything that is asked of a program besides its text.
//!
//! Must not know where the settings come from: a command line, a bundle, a test.
//!
//! ```text
//! {N: 1000}  {eps: 1e-5}  {X: points.npy}  4 sites, seed 0
//! ```

use crate::arguments::{
    BindArguments, Data, DeviceKind, PlanArguments, RunArguments, Save, Weights,
};
use crate::devices;
use ein_cuda::Images;
use ein_exec::session::Begin;
use ein_plan::{FileRef, Scalar};
use ein_records::{Destinations, Show};
use einc_core::pipeline::{Criteria, GpuMemory};
use einc_diag::Diagnostic;
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

/// Everything that is asked of a program besides its text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Sizes of dims.
    pub dims: BTreeMap<String, i64>,
    /// Values of consts.
    pub constants: BTreeMap<String, Scalar>,
    /// Files of inputs, with absolute paths.
    pub inputs: BTreeMap<String, FileRef>,
    /// Numbers that fill inputs, in the place of files.
    pub numbers: BTreeMap<String, Scalar>,
    /// Files that outputs and other definitions are written to.
    pub saves: BTreeMap<String, PathBuf>,
    /// An archive for all outputs that have no file of their own.
    pub archive: Option<PathBuf>,
    /// True if the run stops at the first statement that gives NaN.
    pub check_nan: bool,
    /// Definitions that are printed beside the outputs.
    pub shows: Vec<String>,
    /// Number of sites; `None`: one, or under a launcher the number of ranks.
    pub sites: Option<u32>,
    /// True if results do not depend on the number of sites in any bit.
    pub deterministic: bool,
    /// The criteria by which the plan is chosen.
    pub criteria: Criteria,
    /// File of the figures of the machine; `None`: the usual one.
    pub machine: Option<PathBuf>,
    /// Folder for what rests on disk; `None`: /var/tmp.
    pub spill: Option<PathBuf>,
    /// Seconds after which planning takes the best so far.
    pub time_limit: Option<f64>,
    /// Seed of random sources.
    pub seed: u64,
    /// Threads of this process; `None`: its share of the cores.
    pub threads: Option<usize>,
    /// The device that computes kernels.
    pub device: DeviceKind,
    /// Images of kernels that GPUs need not compile.
    pub images: Arc<Images>,
    /// True if the run ends with figures.
    pub stats: bool,
    /// After how long a site that waits for others says so.
    pub patience: Option<Duration>,
    /// A file for a trace of the run.
    pub profile: Option<PathBuf>,
    /// How training begins where checkpoints are written.
    pub begin: Begin,
    /// A file for the trained params.
    pub export: Option<PathBuf>,
    /// How progress of training is shown.
    pub progress: Show,
    /// True if the program only evaluates, with params that it is given.
    pub inference: bool,
    /// Files of params, by full name.
    pub weights: Vec<Weights>,
    /// Where the steps of training are recorded.
    pub records: Destinations,
}

impl Settings {
    /// Takes over values for dims, consts and inputs, in the place of earlier ones.
    ///
    /// # Errors
    /// E0737: the arguments give one name two values.
    pub fn bind(&mut self, arguments: BindArguments) -> Result<(), Diagnostic> {
        given_once("--dim", &arguments.dims)?;
        given_once("--set", &arguments.constants)?;
        given_once("--input", &arguments.inputs)?;
        self.dims.extend(arguments.dims);
        self.constants.extend(arguments.constants);
        for (name, data) in arguments.inputs {
            match data {
                Data::File(file) => {
                    self.numbers.remove(&name);
                    self.inputs.insert(name, file);
                }
                Data::Number(number) => {
                    self.inputs.remove(&name);
                    self.numbers.insert(name, number);
                }
            }
        }
        Ok(())
    }

    /// Takes over the number of sites, the order of sums and what a plan is chosen by, for a device.
    ///
    /// # Errors
    /// The machine's figures cannot be read.
    pub fn plan(
        &mut self,
        arguments: &PlanArguments,
        device: DeviceKind,
    ) -> Result<(), Diagnostic> {
        self.sites = arguments.sites.or(self.sites);
        self.deterministic |= arguments.deterministic;
        let criteria = &mut self.criteria;
        self.machine = arguments.machine.clone().or(self.machine.take());
        if let Some(objective) = arguments.objective(device)? {
            criteria.objective = objective;
        }
        match (arguments.gpu_memory, &mut criteria.gpu_memory) {
            (Some(limit), Some(limits)) => limits.limit = limit,
            (Some(limit), none) => {
                let host = criteria.memory;
                *none = Some(GpuMemory { limit, host });
            }
            (None, _) => {}
        }
        match &mut criteria.gpu_memory {
            Some(limits) => {
                limits.host = arguments.memory.or(limits.host);
                criteria.memory = Some(devices::working_space(limits.limit).1);
            }
            None => criteria.memory = arguments.memory.or(criteria.memory),
        }
        criteria.spill |= arguments.spill.is_some();
        self.spill = arguments.spill.clone().or(self.spill.take());
        criteria.balance = arguments.balance.unwrap_or(criteria.balance);
        if !arguments.disabled_rules.is_empty() {
            criteria.disabled_rules = arguments.disabled_rules.clone();
        }
        if !arguments.formats.is_empty() {
            criteria.formats = arguments.formats();
        }
        self.time_limit = arguments.time_limit.or(self.time_limit);
        Ok(())
    }

    /// Takes over what only a run needs.
    ///
    /// # Errors
    /// E0723: an output, or all of them, is to be saved in two files.
    pub fn run(&mut self, arguments: RunArguments) -> Result<(), Diagnostic> {
        for save in arguments.saves {
            let (what, path, first) = match save {
                Save::One(name, path) => {
                    let first = self.saves.insert(name.clone(), path.clone());
                    (format!("`{name}`"), path, first)
                }
                Save::All(path) => {
                    let first = self.archive.replace(path.clone());
                    ("all outputs".to_owned(), path, first)
                }
            };
            if let Some(first) = first.filter(|first| *first != path) {
                let (first, second) = (first.display(), path.display());
                let what = format!("`--save` gives {what} two files: {first} and {second}");
                return Err(Diagnostic::error("E0723", what)
                    .help("name one of them, and copy that if you need two"));
            }
        }
        self.check_nan |= arguments.check_nan;
        if self.check_nan {
            // The statements of the text are computed, not equivalent ones, so that the first with NaN is one of them.
            let rules = einc_core::rules::logic().into_iter();
            self.criteria.disabled_rules = rules.map(|rule| rule.name.to_owned()).collect();
        }
        self.shows.extend(arguments.shows);
        self.seed = arguments.seed;
        self.threads = arguments.threads.map(|threads| threads as usize);
        self.device = match arguments.device {
            DeviceKind::Auto if !devices::has_gpu(&self.images) => DeviceKind::Cpu,
            device => device,
        };
        // The processor computes in the host's memory, and a GPU holds nothing.
        if self.device == DeviceKind::Cpu
            && let Some(limits) = self.criteria.gpu_memory.take()
        {
            self.criteria.memory = limits.host;
        }
        self.stats = arguments.stats;
        self.profile = arguments.profile;
        self.patience = arguments.stall.0;
        let training = arguments.training;
        self.begin = match (training.resume, training.restart) {
            (true, _) => Begin::Resume,
            (_, true) => Begin::Restart,
            _ => Begin::Anew,
        };
        self.export = training.export;
        self.weights = training.weights;
        self.progress = training.progress.into();
        self.records = Destinations {
            json_lines: training.json_lines,
            csv: training.csv,
            tensorboard: training.tensorboard,
            curves: training.curves,
        };
        Ok(())
    }
}

/// Refuses two different values of an option for one name.
fn given_once<T: PartialEq>(option: &str, given: &[(String, T)]) -> Result<(), Diagnostic> {
    let mut values = BTreeMap::new();
    for (name, value) in given {
        if values
            .insert(name, value)
            .is_some_and(|first| first != value)
        {
            let what = format!("`{option}` gives `{name}` two values");
            return Err(Diagnostic::error("E0737", what).help("leave one of them out"));
        }
    }
    Ok(())
}
