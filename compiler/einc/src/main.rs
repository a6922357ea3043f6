//! The `einc` command: arguments, and one module a verb.
//!
//! Must not know how anything is done: the driver does it.
//!
//! ```text
//! einc run model.ein --dim N=1000 --sites 4
//! ```

mod allocator;
mod verbs;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use einc_codegen::shim;
use einc_driver::{environment, exit, launcher};
use std::env;

#[global_allocator]
static ALLOCATOR: allocator::BySize = allocator::BySize::new();

const AFTER_HELP: &str = "\
Examples:
  einc new knn && einc run knn/knn.ein       a first program
  einc check model.ein                       all errors of a program, nothing is run
  einc run model.ein --input X=points.npy    run it on your data, in this process
  einc run model.ein --sites 4               the same on four sites
  einc build model.ein                       an executable ./model that needs no einc
  mpirun -n 4 ./model --save C=c.npy         the executable on four ranks, one site a rank
  einc plan model.ein --sites 8              what would be computed where, and what it moves
  einc explain E0301                         what an error means, with examples

Exit status: 0 done, 1 the program or its data is wrong, 2 usage, 3 an error in einc itself.";

/// Compiles tensor programs in Einstein notation for one machine or many.
#[derive(Parser)]
#[command(name = "einc", version, after_help = AFTER_HELP, arg_required_else_help = true, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
#[allow(
    clippy::large_enum_variant,
    reason = "a process has one verb, and reads it once"
)]
enum Verb {
    Check(verbs::check::Arguments),
    Build(verbs::build::Arguments),
    Run(verbs::run::Arguments),
    Plan(verbs::plan::Arguments),
    Fmt(verbs::fmt::Arguments),
    New(verbs::new::Arguments),
    Explain(verbs::explain::Arguments),
    Rules(verbs::rules::Arguments),
    Doctor(verbs::doctor::Arguments),
    Calibrate(verbs::calibrate::Arguments),
    Completions(verbs::completions::Arguments),
}

fn main() {
    let status = match einc_codegen::own_payload() {
        Some(payload) => launcher::main(payload, shim::embedded(), env::args_os().collect()),
        None => command(),
    };
    std::process::exit(status);
}

/// Runs the `einc` command. A built program is a copy of this executable and runs its payload instead.
fn command() -> i32 {
    exit::guard(|| {
        let matches = match environment::without_empty(Cli::command()).try_get_matches() {
            Ok(matches) => matches,
            Err(error) => return exit::arguments(&error),
        };
        match Cli::from_arg_matches(&matches) {
            Ok(cli) => perform(cli.verb),
            Err(error) => exit::arguments(&error),
        }
    })
}

fn perform(verb: Verb) -> i32 {
    match verb {
        Verb::Check(arguments) => verbs::check::perform(arguments),
        Verb::Build(arguments) => verbs::build::perform(arguments),
        Verb::Run(arguments) => verbs::run::perform(arguments),
        Verb::Plan(arguments) => verbs::plan::perform(arguments),
        Verb::Fmt(arguments) => verbs::fmt::perform(arguments),
        Verb::New(arguments) => verbs::new::perform(arguments),
        Verb::Explain(arguments) => verbs::explain::perform(arguments),
        Verb::Rules(arguments) => verbs::rules::perform(arguments),
        Verb::Doctor(arguments) => verbs::doctor::perform(arguments),
        Verb::Calibrate(arguments) => verbs::calibrate::perform(arguments),
        Verb::Completions(arguments) => verbs::completions::perform::<Cli>(arguments),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
