//! `einc plan`: what would be computed where, what it moves, and what it needs.
//!
//! Must not know how a plan is made or written.
//!
//! ```text
//! $ einc plan matmul.ein --sites 4
//! plan for 4 sites: transfer 67108864 floats …
//! ```

use clap::Args;
use einc_core::pipeline;
use einc_driver::{
    arguments::{BindArguments, Format, PlanArguments},
    bind::Purpose,
    exit, session,
    settings::Settings,
};
use std::path::PathBuf;

/// Show what would be computed where, what it moves and the memory it needs
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc plan model.ein --sites 8
  einc plan model.ein --sites 8 --dim N=1_000_000   data need not be there if the sizes are given")]
pub struct Arguments {
    /// The program
    #[arg(value_name = "FILE.ein")]
    file: PathBuf,
    #[command(flatten)]
    bind: BindArguments,
    #[command(flatten)]
    plan: PlanArguments,
}

pub fn perform(arguments: Arguments) -> i32 {
    let program = match super::load(&arguments.file, Format::Text) {
        Ok(program) => program,
        Err(status) => return status,
    };
    let mut settings = Settings::default();
    settings.bind(arguments.bind);
    settings.plan(&arguments.plan);
    let compiled = session::check(&program, &settings, Purpose::Plan)
        .and_then(|checked| session::compile(checked, settings.sites.unwrap_or(1)));
    match compiled {
        Ok((compiled, _, warnings)) => {
            exit::show(warnings, &program.texts(), Format::Text);
            exit::say(&pipeline::explain(&compiled));
            0
        }
        Err(failure) => exit::fail(failure, &program, Format::Text),
    }
}
