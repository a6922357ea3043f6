//! The environment variables of einc: a misspelt one is told, as a misspelt option is; an empty one is as if it were not set.
//!
//! Must not know what they say; options and `machine` read them.
//!
//! ```text
//! EIN_THREAD=4 ./model   ->   warning [E0734]: einc reads no variable `EIN_THREAD`; did you mean `EIN_THREADS`?
//! ```

use crate::{
    arguments::{PlanArguments, RunArguments},
    machine,
};
use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{Args, Command};
use einc_diag::{Diagnostic, did_you_mean};
use std::{collections::BTreeSet, env, ffi::OsStr};

/// The beginning of the names of all of them.
const PREFIX: &str = "EIN_";

/// Of tests and benches, which start programs.
const OF_TESTS: [&str; 10] = [
    "EIN_ACCURACY_STEP",
    "EIN_BENCH_ROUNDS",
    "EIN_BENCH_SIZE",
    "EIN_PEER",
    "EIN_PEER_CLOCK",
    "EIN_PEER_ROUNDS",
    "EIN_TEST_INTERRUPT_CHILD",
    "EIN_TEST_SCENARIO",
    "EIN_TEST_SHIM",
    "EIN_UPDATE",
];

/// A warning for every variable of this process that is named like one of einc's and is none.
pub fn unknown() -> Vec<Diagnostic> {
    let names = env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    unknown_of(names)
}

/// The variable whose value an error of the command line is about; `None`: it is about something else.
pub fn refused(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (option, value) = (
        text(ContextKind::InvalidArg)?,
        text(ContextKind::InvalidValue)?,
    );
    // `--threads <T>`
    let long = option.strip_prefix("--")?.split_whitespace().next()?;
    let command = options();
    let mut all = command.get_arguments();
    let variable = all.find(|of| of.get_long() == Some(long))?.get_env()?;
    let said = env::var(variable).is_ok_and(|of| of == value);
    let own = format!("--{long}");
    let mut given = env::args_os().map(|given| given.to_string_lossy().into_owned());
    let given = given.any(|given| given.split('=').next() == Some(&own));
    (said && !given).then(|| variable.to_string_lossy().into_owned())
}

/// A command, and those under it, with options that do not look at variables that are empty.
pub fn without_empty(command: Command) -> Command {
    unset(command, |name| {
        env::var_os(name).is_some_and(|value| value.is_empty())
    })
}

fn unset(command: Command, empty: impl Fn(&OsStr) -> bool + Copy) -> Command {
    command
        .mut_args(|option| match option.get_env().is_some_and(empty) {
            true => option.env(Resettable::Reset),
            false => option,
        })
        .mut_subcommands(|under| unset(under, empty))
}

/// All options that may have a variable.
fn options() -> Command {
    PlanArguments::augment_args(RunArguments::augment_args(Command::new("einc")))
}

/// The variables that a program reads, by name: those of its options, and the BLAS.
fn known() -> BTreeSet<String> {
    let command = options();
    let of_options = command
        .get_arguments()
        .filter_map(|option| option.get_env());
    let names = of_options.map(|name| name.to_string_lossy().into_owned());
    names.chain([machine::BLAS.to_owned()]).collect()
}

fn unknown_of(names: impl Iterator<Item = String>) -> Vec<Diagnostic> {
    let known = known();
    let unknown: BTreeSet<String> = names
        .filter(|name| name.starts_with(PREFIX))
        .filter(|name| !known.contains(name) && !OF_TESTS.contains(&name.as_str()))
        .collect();
    let said = unknown.iter().map(|name| {
        let message = format!("einc reads no variable `{name}`");
        let help = match did_you_mean(name, known.iter().map(String::as_str)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!(
                "it reads {}",
                known.iter().cloned().collect::<Vec<_>>().join(", ")
            ),
        };
        Diagnostic::warning("E0734", message).help(help)
    });
    said.collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::{fs, path::Path};

    fn told(names: &[&str]) -> Vec<String> {
        let found = unknown_of(names.iter().map(|name| (*name).to_owned()));
        found
            .into_iter()
            .map(|d| format!("{}: {}", d.message, d.help.join("; ")))
            .collect()
    }

    #[test]
    fn the_nearest_variable_is_named() {
        let near = [
            ("THREAD", "THREADS"),
            ("BLASS", "BLAS"),
            ("STAL", "STALL"),
            ("SPIL", "SPILL"),
        ];
        for (wrong, right) in near {
            let said = told(&[&format!("{PREFIX}{wrong}"), "PATH", "EIN"]);
            let expected = format!(
                "einc reads no variable `{PREFIX}{wrong}`: did you mean `{PREFIX}{right}`?"
            );
            assert_eq!(said, [expected]);
        }
        let all =
            ["BLAS", "DEVICE", "SPILL", "STALL", "THREADS"].map(|name| format!("{PREFIX}{name}"));
        let far = told(&[&format!("{PREFIX}COLOUR_OF_MESSAGES")]);
        assert!(
            far[0].ends_with(&format!("it reads {}", all.join(", "))),
            "{far:?}"
        );
        let right: Vec<&str> = all.iter().map(String::as_str).chain(OF_TESTS).collect();
        assert!(told(&right).is_empty());
    }

    #[test]
    fn an_empty_variable_is_as_if_it_were_not_set() {
        let under = options().name("run");
        let command = Command::new("einc").subcommand(under);
        let left = |command: &Command| -> Vec<String> {
            let run = command.find_subcommand("run").unwrap();
            let names = run.get_arguments().filter_map(|option| option.get_env());
            names
                .map(|name| name.to_string_lossy().into_owned())
                .collect()
        };
        let all = left(&command);
        assert!(all.len() > 1, "{all:?}");
        let empty = |name: &OsStr| name == all[0].as_str();
        assert_eq!(left(&unset(command.clone(), empty)), all[1..]);
        assert_eq!(left(&unset(command, |_| false)), all);
    }

    /// Every variable that code of the project asks for is one that a program reads, or one of tests.
    #[test]
    fn no_variable_is_left_out() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let folders = ["compiler", "runtime", "stdlib", "tests", "examples"];
        let mut open: Vec<_> = folders.map(|name| root.join(name)).to_vec();
        let mut names = BTreeSet::new();
        while let Some(path) = open.pop() {
            if path.is_dir() {
                let entries = fs::read_dir(&path).unwrap();
                open.extend(entries.map(|entry| entry.unwrap().path()));
            } else if let Ok(text) = fs::read_to_string(&path) {
                let letter = |c: char| c.is_ascii_uppercase() || c == '_';
                let quoted = text.split('"').filter(|word| word.chars().all(letter));
                let own = quoted.filter(|word| word.starts_with(PREFIX) && *word != PREFIX);
                names.extend(own.map(str::to_owned));
            }
        }
        assert!(names.len() > OF_TESTS.len(), "{names:?}");
        let misspelt: Vec<String> = unknown_of(names.into_iter())
            .into_iter()
            .map(|d| d.message)
            .collect();
        assert!(misspelt.is_empty(), "{misspelt:?}");
    }
}
