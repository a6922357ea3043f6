//! `einc check`: every error of a program, nothing is built or run.
//!
//! Must not know what is checked.
//!
//! ```text
//! $ einc check model.ein
//! error[E0201]: …
//! ```

use clap::Args;
use einc_driver::{
    arguments::{BindArguments, Format},
    exit,
    purpose::Purpose,
    session,
    settings::Settings,
};
use std::path::{Path, PathBuf};

/// Find all errors of programs, without building or running them
///
/// Up to 20 errors are shown, in source order. Data need not be there: sizes that only they would give stay open,
/// and what depends on them is checked when they come.
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc check model.ein layers.ein
  einc check model.ein --input X=points.npy   with the sizes of these data
  einc check model.ein --format json          one JSON object a line, for editors")]
pub struct Arguments {
    /// The programs
    #[arg(value_name = "FILE.ein", required = true)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    bind: BindArguments,
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
    if let Err(diagnostic) = settings.bind(arguments.bind) {
        return super::complain(diagnostic, arguments.format);
    }
    let statuses = arguments
        .files
        .iter()
        .map(|path| file(path, &settings, arguments.format));
    statuses.max().unwrap_or(0)
}

fn file(path: &Path, settings: &Settings, format: Format) -> i32 {
    let program = match super::load(path, format) {
        Ok(program) => program,
        Err(status) => return status,
    };
    match session::check(&program, settings, Purpose::Look) {
        Ok(checked) => {
            let wrong = checked.diagnostics.iter().any(|d| d.is_error());
            exit::show(checked.diagnostics, &program.texts(), format);
            i32::from(wrong)
        }
        Err(failure) => exit::fail(failure, &program, format),
    }
}
