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
    bind::Purpose,
    exit, session,
    settings::Settings,
};
use std::path::PathBuf;

/// Find all errors of a program, without building or running it
///
/// Up to 20 errors are shown, in source order. Data need not be there: sizes that only they would give stay open,
/// and what depends on them is checked when they come.
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc check model.ein
  einc check model.ein --input X=points.npy   with the sizes of these data
  einc check model.ein --format json          one JSON object a line, for editors")]
pub struct Arguments {
    /// The program
    #[arg(value_name = "FILE.ein")]
    file: PathBuf,
    #[command(flatten)]
    bind: BindArguments,
    /// How errors are printed
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Format,
}

pub fn perform(arguments: Arguments) -> i32 {
    let program = match super::load(&arguments.file, arguments.format) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let mut settings = Settings::default();
    settings.bind(arguments.bind);
    match session::check(&program, &settings, Purpose::Look) {
        Ok(checked) => {
            let wrong = checked.diagnostics.iter().any(|d| d.is_error());
            exit::show(checked.diagnostics, &program.texts(), arguments.format);
            i32::from(wrong)
        }
        Err(failure) => exit::fail(failure, &program, arguments.format),
    }
}
