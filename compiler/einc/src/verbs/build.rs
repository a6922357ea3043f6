//! `einc build`: an executable.
//!
//! Must not know how an executable carries a program.
//!
//! ```text
//! $ einc build matmul.ein
//! $ ./matmul --sites 4
//! ```

use clap::Args;
use einc_diag::Diagnostic;
use einc_driver::{
    arguments::{BindArguments, DeviceKind, Format, PlanArguments},
    bundle::Bundle,
    devices::{self, Architecture, Images},
    exit,
    failure::Failure,
    infer,
    planned::Planned,
    program::Program,
    purpose::Purpose,
    session::{self, Checked},
    settings::Settings,
    shims, target,
};
use std::{path::PathBuf, sync::Arc};

/// Build an executable that needs neither einc nor Rust
///
/// The executable runs alone, on `--sites K` threads, and under `mpirun -n K`; it takes `--input`, `--save`, `--dim`,
/// `--set` and `--seed` as `einc run` does. What is bound here are its defaults. Its default data stay relative to
/// the folder of the program; outputs go to the folder that it is run in.
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc build model.ein                   writes ./model
  einc build model.ein -o bin/model
  einc build model.ein --dim N=1000      1000 unless the executable is told otherwise
  einc build model.ein --infer logits    ./model --weights model.safetensors evaluates logits
  einc build model.ein --gpu-arch sm_80,sm_90    kernels are compiled now for these GPUs
  einc build model.ein --sites 4         planned beforehand for 4 sites, its default")]
pub struct Arguments {
    /// The program
    #[arg(value_name = "FILE.ein")]
    file: PathBuf,
    /// The executable (default: the program's name without .ein, in this folder)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave training out: the executable evaluates this definition, with params from `--weights`;
    /// repeat for more
    #[arg(long, value_name = "NAME")]
    infer: Vec<String>,
    /// Compile the kernels for GPUs of these architectures, so that the executable needs no CUDA
    /// compiler; this machine needs one, but no GPU
    #[arg(long, value_name = "ARCHITECTURES", value_delimiter = ',')]
    gpu_arch: Vec<Architecture>,
    #[command(flatten)]
    bind: BindArguments,
    #[command(flatten)]
    plan: PlanArguments,
    /// How errors are printed
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Messages"
    )]
    format: Format,
}

pub fn perform(arguments: Arguments) -> i32 {
    super::look_at_variables(arguments.format);
    let format = arguments.format;
    let mut program = match super::load(&arguments.file, format) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let mut settings = Settings::default();
    let bound = settings.bind(arguments.bind);
    if let Err(diagnostic) = bound.and_then(|()| settings.plan(&arguments.plan, DeviceKind::Cpu)) {
        return super::complain(diagnostic, format);
    }
    if !arguments.infer.is_empty() {
        settings.inference = true;
        if let Err(diagnostic) = infer::reduce(&mut program, &arguments.infer) {
            let failure = Failure::usage(vec![diagnostic]);
            return exit::fail(failure, &program, format);
        }
    }
    let mut checked = match session::check(&program, &settings, Purpose::Look) {
        Ok(checked) => checked,
        Err(failure) => return exit::fail(failure, &program, format),
    };
    let warnings = std::mem::take(&mut checked.diagnostics);
    let wrong = warnings.iter().any(|d| d.is_error());
    exit::show(warnings, &program.texts(), format);
    if wrong {
        return 1;
    }
    // Sizes that come with the data leave the planning to the executable.
    let planned = match checked.program.is_some() {
        false => None,
        true => match planned(checked, &program, &settings) {
            Ok(planned) => planned,
            Err(failure) => return exit::fail(failure, &program, format),
        },
    };
    if !arguments.gpu_arch.is_empty() {
        match images(planned.as_ref(), &arguments.gpu_arch) {
            Ok(images) => settings.images = Arc::new(images),
            Err(failure) => return exit::fail(failure, &program, format),
        }
    }
    let bundle = Bundle::new(&program, &settings, planned).with_shims(shims::of_user());
    let bundle = match bundle.encode() {
        Ok(bundle) => bundle,
        Err(error) => exit::internal(&format!("the program cannot be encoded: {error}")),
    };
    let output = arguments
        .output
        .unwrap_or_else(|| PathBuf::from(&program.name));
    if let Err(diagnostic) = target::whole("--output", &output, &settings.inputs) {
        return super::complain(diagnostic, format);
    }
    match einc_codegen::build(&bundle, &output) {
        Ok(()) => 0,
        Err(diagnostic) => super::complain(diagnostic, format),
    }
}

/// Plans the program that the executable carries. A training for which no number of sites is asked is planned for one; if it needs more, it is planned at
/// its start.
fn planned(
    mut checked: Checked,
    program: &Program,
    settings: &Settings,
) -> Result<Option<Planned>, Failure> {
    let sites = settings.sites.unwrap_or(1);
    let open = checked.training.is_some() && settings.sites.is_none();
    if open {
        // A strategy may ask for more than one.
        checked = session::check_for(program, settings, Purpose::Look, Some(sites))?;
        if checked.program.is_none() {
            return Ok(None);
        }
    }
    match session::prepare(checked, sites, settings.time_limit) {
        Ok((planned, _)) => Ok(Some(planned)),
        // What does not fit on one site is told at the start, if it is for one.
        Err(failure) if open && failure.needs_more_memory() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Compiles the kernels of the plan that the executable carries.
fn images(planned: Option<&Planned>, architectures: &[Architecture]) -> Result<Images, Failure> {
    let planned = planned.ok_or_else(|| {
        let message = "the kernels cannot be compiled for GPUs: the program is planned when it starts, when its sizes or sites are known";
        let help = "name its data or sizes here (`--input`, `--dim`), and the sites (`--sites`)";
        Failure::usage(vec![Diagnostic::error("E0738", message).help(help)])
    })?;
    devices::images(planned, architectures)
}
