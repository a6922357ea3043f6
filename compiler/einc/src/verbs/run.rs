//! `einc run`: build in memory and run.
//!
//! Must not know how a program is run.
//!
//! ```text
//! $ einc run digits_knn.ein
//! accuracy = 0.9888889
//! ```

use clap::Args;
use einc_driver::{
    arguments::{BindArguments, Format, PlanArguments, RunArguments},
    failure::Failure,
    run,
    settings::Settings,
    shims::ShimsByName,
};
use std::path::PathBuf;

/// Run a program in this process, or on the ranks of mpirun
///
/// Outputs are written to the files that the program names, or printed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc run model.ein --dim N=1000
  einc run model.ein --input X=points.npy --save dist=dist.npy
  einc run model.ein --sites 4 --deterministic
  mpirun -n 4 einc run model.ein")]
pub struct Arguments {
    /// The program
    #[arg(value_name = "FILE.ein")]
    file: PathBuf,
    #[command(flatten)]
    bind: BindArguments,
    #[command(flatten)]
    run: RunArguments,
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
    let mut settings = Settings::default();
    let bound = settings.bind(arguments.bind);
    let taken = bound.and_then(|()| settings.plan(&arguments.plan, arguments.run.device));
    if let Err(diagnostic) = taken.and_then(|()| settings.run(arguments.run)) {
        return super::complain(diagnostic, arguments.format);
    }
    let file = arguments.file;
    run::run(
        || {
            einc_driver::load::load(&file)
                .map(|program| (program, None))
                .map_err(|diagnostic| Failure::wrong(vec![diagnostic]))
        },
        &settings,
        (&ShimsByName::new(), einc_codegen::shim::embedded()),
        arguments.format,
    )
}
