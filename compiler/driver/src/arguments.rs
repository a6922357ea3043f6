//! The arguments that `einc` and every built program share, and how their values are written.
//!
//! Must not know what a program is: whether `N` is one of its dims is found in [`crate::bind`].
//!
//! ```text
//! --dim N=1_000 --set eps=1e-5 --input X=points.npz::train --save C=c.npy --sites 4 --seed 7
//! ```

mod values;

use crate::{calibration, machine_file};
use clap::{Args, ValueEnum};
use ein_plan::{FileRef, Scalar};
use ein_records::Show;
use einc_core::lists::Form;
use einc_core::pipeline::{Formats, Objective};
use einc_core::search::TimeModel;
use einc_diag::Diagnostic;
use std::path::PathBuf;
use values::{balance, patience, seconds};

pub use values::{Patience, bytes, constant, dim, input, save, sites, weights};

/// The options that give values to the dims, consts and inputs of a program; at build or at run, where the run's win.
#[derive(Clone, Debug, Default, Args)]
pub struct BindArguments {
    /// Size of a dim, such as N=1_000; repeat for more
    #[arg(long = "dim", value_name = "NAME=SIZE", value_parser = dim, help_heading = "Values")]
    pub dims: Vec<(String, i64)>,
    /// Value of a const, such as eps=1e-5; repeat for more
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = constant, help_heading = "Values")]
    pub constants: Vec<(String, Scalar)>,
    /// File of an input (.npy, .npz, .safetensors, .mtx, .svm), or a number for each of its elements; FILE::KEY names a tensor inside a file; repeat for more
    #[arg(long = "input", value_name = "NAME=FILE|NUMBER", value_parser = input, help_heading = "Values")]
    pub inputs: Vec<(String, Data)>,
}

/// The data that a command line gives an input.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    /// A file, with its absolute path.
    File(FileRef),
    /// One number for each element.
    Number(Scalar),
}

/// A file of params on the command line.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The file.
    pub path: PathBuf,
    /// The names that are taken; `None`: all, and none may be missing.
    pub pattern: Option<String>,
}

/// A request of the command line to write values.
#[derive(Clone, Debug, PartialEq)]
pub enum Save {
    /// An output or another definition, to a file.
    One(String, PathBuf),
    /// All outputs that have no file of their own, to one archive.
    All(PathBuf),
}

/// On how many sites, whether sums are bit for bit the same on any number of them, and what a plan is chosen by.
#[derive(Clone, Debug, Default, Args)]
pub struct PlanArguments {
    /// Sites to compute on: threads of this process; under mpirun the number of ranks
    #[arg(long, allow_negative_numbers = true, value_name = "K", value_parser = values::sites, help_heading = "Execution")]
    pub sites: Option<u32>,
    /// Bit-for-bit the same results on any number of sites
    #[arg(long, help_heading = "Execution")]
    pub deterministic: bool,
    /// The quantity that the plan minimises
    #[arg(long, value_enum, value_name = "MODEL", help_heading = "Planning")]
    pub cost: Option<CostModel>,
    /// The machine's figures, a file that `einc calibrate` wrote; without `--cost`, the plan is chosen by time
    #[arg(long, value_name = "FILE", help_heading = "Planning")]
    pub machine: Option<PathBuf>,
    /// Seconds after which planning takes the best plan found so far; what was left out is reported
    #[arg(long, allow_negative_numbers = true, value_name = "SECONDS", value_parser = seconds, help_heading = "Planning")]
    pub time_limit: Option<f64>,
    /// Bytes that a site may hold, such as 8GiB: a plan that needs more is not chosen
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = bytes, help_heading = "Planning")]
    pub memory: Option<u64>,
    /// Let values rest on disk between two uses where no plan fits in `--memory`; in this folder, by default /var/tmp
    #[arg(long, env = "EIN_SPILL", value_name = "FOLDER", num_args = 0..=1, require_equals = true, default_missing_value = "/var/tmp", help_heading = "Planning")]
    pub spill: Option<PathBuf>,
    /// Bytes that a site may hold in the memory of its GPU, such as 16GiB: values that do not fit there rest in the host's memory between two uses
    #[arg(long, allow_negative_numbers = true, value_name = "BYTES", value_parser = bytes, help_heading = "Planning")]
    pub gpu_memory: Option<u64>,
    /// How many times its even share of the arithmetic a site may do (default: 1.25)
    #[arg(long, allow_negative_numbers = true, value_name = "TIMES", value_parser = balance, help_heading = "Planning")]
    pub balance: Option<f64>,
    /// Plan without a rule, by the name that `einc rules` lists; repeat for more
    #[arg(long = "disable-rule", value_name = "NAME", help_heading = "Planning")]
    pub disabled_rules: Vec<String>,
    /// The forms of inputs whose files list elements: auto (the default), list, dense, NAME=list, NAME=dense
    #[arg(long, value_name = "FORMS", value_delimiter = ',', value_parser = values::form, help_heading = "Planning")]
    pub formats: Vec<FormatChoice>,
}

/// The forms of inputs whose files list elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormatChoice {
    /// The form of all of them; `None`: the faster one of each.
    All(Option<Form>),
    /// The form of one of them.
    Pinned(String, Form),
}

/// The quantity that is minimised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CostModel {
    /// Floats transferred: a broadcast of f floats to s sites costs f·s, a shuffle f
    Transfer,
    /// Words that the site receives that receives most, with ring and pairwise collectives
    Bytes,
    /// Seconds, by the figures that `einc calibrate` measured
    Time,
}

impl PlanArguments {
    /// Returns the forms that are asked for; of words for all inputs the last one counts.
    pub fn formats(&self) -> Formats {
        let mut formats = Formats::default();
        for word in &self.formats {
            match word {
                FormatChoice::All(form) => formats.all = *form,
                FormatChoice::Pinned(name, form) => {
                    formats.pinned.insert(name.clone(), *form);
                }
            }
        }
        formats
    }

    /// Returns the objective for a device, if one was named; the figures of a machine name time.
    ///
    /// # Errors
    /// E0193: the machine's figures cannot be read or lack the device's, or another objective has no use for them.
    pub fn objective(&self, device: DeviceKind) -> Result<Option<Objective>, Diagnostic> {
        let machine = self.machine.as_deref();
        let objective = match (self.cost, machine) {
            (None, None) => return Ok(None),
            (Some(CostModel::Time), _) | (None, Some(_)) => {
                let figures = calibration::read(machine)?;
                Objective::Time(match (device, figures.gpu) {
                    (DeviceKind::Gpu, Some(gpu)) => TimeModel {
                        compute: gpu.compute,
                        ..figures.cores
                    },
                    (DeviceKind::Gpu, None) => {
                        return Err(machine_file::no_gpu());
                    }
                    _ => figures.cores,
                })
            }
            (Some(_), Some(file)) => {
                let message = format!(
                    "the figures of {} are for `--cost time`, not for another quantity",
                    file.display()
                );
                let error = Diagnostic::error("E0193", message);
                return Err(error.help("leave `--cost` out, or say `--cost time`"));
            }
            (Some(CostModel::Transfer), None) => Objective::Transfer,
            (Some(CostModel::Bytes), None) => Objective::Bytes,
        };
        Ok(Some(objective))
    }
}

/// The options that only a run needs.
#[derive(Clone, Debug, Default, Args)]
pub struct RunArguments {
    /// Write an output, or any definition, to a file (.npy, .npz, .safetensors, .mtx), or all outputs into one .npz file; repeat for more
    #[arg(long = "save", value_name = "NAME=FILE|FILE.npz", value_parser = save, help_heading = "Values")]
    pub saves: Vec<Save>,
    /// Print a definition, input or param that is no output; repeat for more
    #[arg(long = "show", value_name = "NAME", help_heading = "Values")]
    pub shows: Vec<String>,
    /// Stop at the first statement that gives NaN, and name it and the place; slower
    #[arg(long = "check-nan", help_heading = "Messages")]
    pub check_nan: bool,
    /// Seed of everything random
    #[arg(
        long,
        allow_negative_numbers = true,
        value_name = "NUMBER",
        default_value_t = 0,
        value_parser = values::seed,
        help_heading = "Execution"
    )]
    pub seed: u64,
    /// Threads of this process, for all its sites together (default: its share of the cores that it may use)
    #[arg(long, allow_negative_numbers = true, env = "EIN_THREADS", value_name = "T", value_parser = values::threads, help_heading = "Execution")]
    pub threads: Option<u32>,
    /// Device that computes the kernels; the reference device is slow, and tells whether a kernel of the processor's is wrong
    #[arg(
        long,
        env = "EIN_DEVICE",
        value_enum,
        default_value_t,
        value_name = "DEVICE",
        help_heading = "Execution"
    )]
    pub device: DeviceKind,
    /// After the run, say what the plan stated and what was measured: memory of each site, floats and bytes moved by
    /// line of the program, and the time, arithmetic and memory of each step (on standard error)
    #[arg(long, help_heading = "Messages")]
    pub stats: bool,
    /// Seconds after which a site that waits for others tells for whom, and at which step; 0: never
    #[arg(long, allow_negative_numbers = true, env = "EIN_STALL", value_name = "SECONDS", default_value = "60", value_parser = patience, help_heading = "Messages")]
    pub stall: Patience,
    /// Write a trace of every step at every site, for Perfetto (ui.perfetto.dev) or chrome://tracing
    #[arg(long, value_name = "FILE.json", help_heading = "Messages")]
    pub profile: Option<PathBuf>,
    /// How training is run on and recorded
    #[command(flatten)]
    pub training: TrainingArguments,
}

/// The options that only training needs.
#[derive(Clone, Debug, Default, Args)]
pub struct TrainingArguments {
    /// Continue with the newest good checkpoint of the program's `checkpoint:` folder
    #[arg(long, conflicts_with = "restart", help_heading = "Training")]
    pub resume: bool,
    /// Begin anew, and remove the checkpoints that are there
    #[arg(long, help_heading = "Training")]
    pub restart: bool,
    /// Write the trained params to a file
    #[arg(long, value_name = "FILE.safetensors", help_heading = "Training")]
    pub export: Option<PathBuf>,
    /// Begin with params from a file, such as one that was exported; of a part of them, with names such as enc.*; repeat for more
    #[arg(long, value_name = "FILE.safetensors[::NAMES]", value_parser = weights, help_heading = "Training")]
    pub weights: Vec<Weights>,
    /// How progress is shown, on standard error
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "HOW",
        help_heading = "Training"
    )]
    pub progress: ProgressForm,
    /// Record every step as a line of JSON
    #[arg(long = "json-lines", value_name = "FILE", help_heading = "Training")]
    pub json_lines: Option<PathBuf>,
    /// Record every step as a line of a table
    #[arg(long, value_name = "FILE", help_heading = "Training")]
    pub csv: Option<PathBuf>,
    /// Record every step for TensorBoard
    #[arg(long, value_name = "FOLDER", help_heading = "Training")]
    pub tensorboard: Option<PathBuf>,
    /// Draw learning curves at the end
    #[arg(long, value_name = "FILE.svg", help_heading = "Training")]
    pub curves: Option<PathBuf>,
}

/// A device that computes kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DeviceKind {
    /// The processor, all of its cores
    #[default]
    Cpu,
    /// A GPU where there is one, the plan fits in what is free of its memory, and the machine's figures do not say that it is slower (`einc
    /// calibrate`); else the processor
    Auto,
    /// An NVIDIA GPU; sites of one process, and ranks of one machine, take its GPUs in turn
    Gpu,
    /// Point by point, by the definitions of the language
    Reference,
    /// The kernels that a GPU would run, compiled and run by the system's C++ compiler; slow
    Emulated,
}

impl DeviceKind {
    /// The kind that `EIN_DEVICE` names, for what has no command line.
    ///
    /// # Errors
    /// There is no such device.
    pub fn of_environment() -> Result<DeviceKind, String> {
        match std::env::var("EIN_DEVICE") {
            Ok(name) if !name.is_empty() => DeviceKind::from_str(&name, false),
            _ => Ok(DeviceKind::default()),
        }
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressForm {
    /// A line that is drawn anew on a terminal, plain lines elsewhere
    #[default]
    Auto,
    /// A line an epoch
    Plain,
    /// Nothing
    None,
}

impl From<ProgressForm> for Show {
    fn from(form: ProgressForm) -> Show {
        match form {
            ProgressForm::Auto => Show::Automatic,
            ProgressForm::Plain => Show::Plain,
            ProgressForm::None => Show::Nothing,
        }
    }
}

/// How diagnostics are printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For editors: one JSON object a line, on standard output
    Json,
}
