//! `einc plan`: what would be computed where, what it moves, what it needs, and why it was chosen.
//!
//! Must not know how a plan is made or written.
//!
//! ```text
//! $ einc plan matmul.ein --sites 4
//! plan for 4 sites: transfer 67108864 floats …
//! ```

use clap::{Args, ValueEnum};
use einc_core::pipeline::{self, report::PlanReport};
use einc_diag::Diagnostic;
use einc_driver::{
    arguments::{BindArguments, DeviceKind, Format, PlanArguments, Weights, weights},
    devices, exit,
    machine::RankPlace,
    prediction::Outputs,
    purpose::Purpose,
    session::{self, ReportOptions},
    settings::Settings,
    target,
};
use std::{
    fs,
    path::{Path, PathBuf},
};

/// Show what would be computed where, what it moves, the memory it needs, and why it was chosen
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc plan model.ein --sites 8
  einc plan model.ein --sites 8 --dim N=1_000_000   data need not be there if the sizes are given
  einc plan model.ein --sites 8 --compare           beside the best other plans, and why each lost
  einc plan model.ein --sites 8 --memory 8GiB       a plan that fits, or what is missing
  einc plan model.ein --kernels                     which loops compute each step, and why these
  einc plan model.ein --kernels=cuda                what a GPU would run
  einc plan model.ein --format html -o plan.html    a page with the plan as a graph
  einc plan model.ein --format json -o plan.json    for programs; then, later:
  einc plan model.ein --diff plan.json              what changed")]
pub struct Arguments {
    /// The program
    #[arg(value_name = "FILE.ein")]
    file: PathBuf,
    #[command(flatten)]
    bind: BindArguments,
    #[command(flatten)]
    plan: PlanArguments,
    /// File of params that sizes are taken from, as `einc run` takes it; repeat for more
    #[arg(long, value_name = "FILE.safetensors[::NAMES]", value_parser = weights)]
    weights: Vec<Weights>,
    /// Device that the plan is for: with `--cost time`, that of the figures by which it is chosen (gpu: also tell what is copied to it and back; auto: also which one is predicted to be faster)
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "DEVICE",
        help_heading = "Planning"
    )]
    device: DeviceKind,
    /// How the plan is written
    #[arg(long, value_enum, default_value_t, value_name = "FORM")]
    format: Form,
    /// Write to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also show the best other plans, what each would cost and why it lost
    #[arg(long)]
    compare: bool,
    /// Show the plan's own text instead: every kernel, which loops compute it, and why no others do (`--kernels=cuda`: the CUDA C++ that a GPU
    /// would run)
    #[arg(long, value_enum, value_name = "FOR", num_args = 0..=1, require_equals = true, default_missing_value = "cpu", conflicts_with_all = ["format", "compare", "explain_rewrites"])]
    kernels: Option<KernelsFor>,
    /// Also show every rewrite between the program and the plan
    #[arg(long)]
    explain_rewrites: bool,
    /// Show what changed since a plan that was written with `--format json`
    #[arg(long, value_name = "OLD.json", conflicts_with_all = ["format", "kernels"])]
    diff: Option<PathBuf>,
}

/// How a plan is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people
    #[default]
    Text,
    /// For programs; compiler/PLAN.md documents the fields
    Json,
    /// A graph for Graphviz
    Dot,
    /// A page for a browser
    Html,
}

/// The device whose kernels are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum KernelsFor {
    /// The processor: the plan, with the loops of each kernel
    Cpu,
    /// A GPU: the functions of CUDA C++ that `--device gpu` runs, and what is left to the cores
    Cuda,
}

pub fn perform(arguments: Arguments) -> i32 {
    super::look_at_variables(Format::Text);
    let program = match super::load(&arguments.file, Format::Text) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let mut settings = Settings::default();
    let bound = settings.bind(arguments.bind);
    settings.weights = arguments.weights;
    if let Err(diagnostic) = bound.and_then(|()| settings.plan(&arguments.plan, arguments.device)) {
        return super::complain(diagnostic, Format::Text);
    }
    let old = match arguments.diff.as_deref().map(read).transpose() {
        Ok(old) => old,
        Err(diagnostic) => return super::complain(diagnostic, Format::Text),
    };
    let sites = settings.sites.unwrap_or(1);
    let options = ReportOptions {
        others: arguments.compare,
        rewrites: arguments.explain_rewrites || matches!(arguments.format, Form::Json | Form::Html),
    };
    let planned = session::check(&program, &settings, Purpose::Plan).and_then(|checked| {
        session::report(checked, &program, sites, options, settings.time_limit)
    });
    let (mut report, warnings, shown) = match planned {
        Ok(planned) => planned,
        Err(failure) => return exit::fail(failure, &program, Format::Text),
    };
    exit::show(warnings, &program.texts(), Format::Text);
    let outputs = match &shown {
        Some(_) => Outputs::Stay,
        None => Outputs::Leave,
    };
    if let Some(shown) = shown {
        exit::complain(&format!(
            "the program trains; this is the plan of {shown}\n"
        ));
    }
    if !arguments.explain_rewrites {
        report.rewrites.clear();
    }
    let text = match (&old, arguments.format) {
        (Some(old), _) => pipeline::diff::diff(old, &report),
        (None, Form::Text) if arguments.kernels == Some(KernelsFor::Cpu) => report.kernels.clone(),
        (None, Form::Text) if arguments.kernels.is_some() => devices::kernels_of_gpu(&report),
        (None, Form::Text) if arguments.device == DeviceKind::Auto => {
            let cores = (RankPlace::here().threads / sites.max(1) as usize).max(1);
            let machine = (settings.machine.as_deref(), cores);
            match devices::predicted(&report, outputs, machine) {
                Ok(line) => line + &devices::copied(&report, outputs) + &pipeline::explain(&report),
                Err(diagnostic) => return super::complain(diagnostic, Format::Text),
            }
        }
        (None, Form::Text) if arguments.device == DeviceKind::Gpu => {
            devices::copied(&report, outputs) + &pipeline::explain(&report)
        }
        (None, Form::Text) => pipeline::explain(&report),
        (None, Form::Dot) => pipeline::dot::dot(&report),
        (None, Form::Html) => pipeline::html::html(&report),
        (None, Form::Json) => {
            let json = serde_json::to_string_pretty(&report);
            format!(
                "{}\n",
                json.expect("a report has only names and finite numbers")
            )
        }
    };
    match &arguments.output {
        None => exit::say(&text),
        Some(path) => {
            if let Err(diagnostic) = target::whole("--output", path, &settings.inputs) {
                return super::complain(diagnostic, Format::Text);
            }
            if let Err(error) = super::replace(path, &text) {
                let what = format!("cannot write {}: {error}", path.display());
                return super::complain(Diagnostic::error("E0192", what), Format::Text);
            }
        }
    }
    0
}

/// A report that was written before.
fn read(path: &Path) -> Result<PlanReport, Diagnostic> {
    let wrong = |what: String| {
        Diagnostic::error("E0190", format!("cannot read {}: {what}", path.display()))
            .help("`einc plan --format json -o FILE` writes one")
    };
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let report: PlanReport =
        serde_json::from_str(&text).map_err(|error| wrong(format!("no plan: {error}")))?;
    match report.schema == pipeline::report::SCHEMA {
        true => Ok(report),
        false => Err(wrong(format!(
            "its schema is {:?}, not {:?}",
            report.schema,
            pipeline::report::SCHEMA
        ))),
    }
}
