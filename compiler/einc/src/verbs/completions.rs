//! `einc completions`: what a shell needs to complete einc's arguments.
//!
//! Must not know the arguments.
//!
//! ```text
//! $ einc completions bash > ~/.local/share/bash-completion/completions/einc
//! ```

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use einc_driver::exit;

/// Print a shell's completions of einc's arguments
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc completions bash > ~/.local/share/bash-completion/completions/einc
  einc completions zsh > ~/.zfunc/_einc
  einc completions fish > ~/.config/fish/completions/einc.fish")]
pub struct Arguments {
    /// Which shell
    shell: Shell,
}

pub fn perform<C: CommandFactory>(arguments: Arguments) -> i32 {
    let mut script = vec![];
    clap_complete::generate(arguments.shell, &mut C::command(), "einc", &mut script);
    exit::say(&String::from_utf8_lossy(&script));
    0
}
