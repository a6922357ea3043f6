//! `einc fmt`: programs in one style.
//!
//! Must not know the style.
//!
//! ```text
//! $ echo 'y[i]=x[i]+1' | einc fmt
//! y[i] = x[i] + 1
//! ```

use super::migrate;
use clap::Args;
use einc_diag::Diagnostic;
use einc_driver::{arguments::Format, exit, render::Text};
use std::{
    io::{self, Read},
    path::{Path, PathBuf},
};

/// Format programs in place, or standard input to standard output
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc fmt model.ein layers.ein
  einc fmt --check *.ein            names the files that are not formatted, status 1 if there are any
  einc fmt --migrate model.ein      also writes what an older version meant in the words of this one
  einc fmt < model.ein")]
pub struct Arguments {
    /// Programs; none: standard input
    #[arg(value_name = "FILE.ein")]
    files: Vec<PathBuf>,
    /// Change nothing; status 1 if something is not formatted
    #[arg(long)]
    check: bool,
    /// Also rewrite what an older version of the language meant and this one warns of or refuses
    #[arg(long, requires = "files")]
    migrate: bool,
}

pub fn perform(arguments: Arguments) -> i32 {
    if arguments.files.is_empty() {
        return standard_input(arguments.check);
    }
    let mut status = 0;
    for path in &arguments.files {
        status = status.max(file(path, &arguments));
    }
    status
}

fn standard_input(check: bool) -> i32 {
    let mut text = String::new();
    if let Err(error) = io::stdin().read_to_string(&mut text) {
        let message = format!("cannot read standard input: {error}");
        return super::complain(Diagnostic::error("E0190", message), Format::Text);
    }
    match formatted("<stdin>", &text) {
        Ok(new) if check => i32::from(new != text),
        Ok(new) => {
            exit::say(&new);
            0
        }
        Err(status) => status,
    }
}

fn file(path: &Path, arguments: &Arguments) -> i32 {
    let text = match einc_driver::text::read(path) {
        Ok(text) => text,
        Err(diagnostic) => return super::complain(diagnostic, Format::Text),
    };
    let migrated = match arguments.migrate {
        true => migrate::migrated(path, text.clone()),
        false => text.clone(),
    };
    match formatted(&path.display().to_string(), &migrated) {
        Ok(new) if new == text => 0,
        Ok(_) if arguments.check => {
            exit::say(&format!("{}\n", path.display()));
            1
        }
        Ok(new) => match super::replace(path, &new) {
            Ok(()) => 0,
            Err(error) => {
                let message = format!("cannot write {}: {error}", path.display());
                super::complain(Diagnostic::error("E0192", message), Format::Text)
            }
        },
        Err(status) => status,
    }
}

fn formatted(name: &str, text: &str) -> Result<String, i32> {
    einc_syntax::format(text).map_err(|diagnostics| {
        exit::show(diagnostics, &[Text { name, text }], Format::Text);
        1
    })
}
