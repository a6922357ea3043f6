//! `einc explain`: the page of an error code.
//!
//! Must not know any code.
//!
//! ```text
//! $ einc explain E0301
//! # E0301: an index has two sizes
//! ```

use clap::Args;
use einc_diag::{did_you_mean, registry};
use einc_driver::exit;

/// Explain an error code, with a program that has it and one that does not
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc explain E0301
  einc explain list      every code with its title")]
pub struct Arguments {
    /// A code such as E0301, or `list`
    #[arg(value_name = "CODE", default_value = "list")]
    code: String,
}

pub fn perform(arguments: Arguments) -> i32 {
    let code = arguments.code.trim();
    if code.eq_ignore_ascii_case("list") {
        let list: String = registry::PAGES
            .iter()
            .filter_map(|(_, page)| page.lines().next()?.strip_prefix("# "))
            .map(|title| format!("{title}\n"))
            .collect();
        exit::say(&list);
        return 0;
    }
    // `301` and `e301` mean E0301.
    let digits = code.trim_start_matches(['e', 'E']);
    let full = format!("E{digits:0>4}");
    if let Some(page) = registry::page(&full) {
        exit::say(&format!("{}\n", page.trim_end()));
        return 0;
    }
    let near = did_you_mean(&full, registry::PAGES.iter().map(|(code, _)| *code));
    let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    exit::complain(&format!(
        "error: there is no code `{code}`{hint}\nhelp: `einc explain list` lists them all\n"
    ));
    2
}
