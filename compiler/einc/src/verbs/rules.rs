//! `einc rules`: every rewrite rule with its law and its conditions.
//!
//! Must not know any rule.
//!
//! ```text
//! $ einc rules R2-5
//! R2-5  (thesis 3.3.2, repartition)
//!   left   …
//! ```

use clap::Args;
use einc_core::rules::{self, RuleInfo};
use einc_diag::did_you_mean;
use einc_driver::exit;

/// List the rewrite rules by which programs and plans are changed
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc rules                                    every rule, a line each
  einc rules R2-5                               one rule: its law, its conditions, its source
  einc plan model.ein --disable-rule factor  a plan without a rule")]
pub struct Arguments {
    /// A rule's name
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

pub fn perform(arguments: Arguments) -> i32 {
    let rules = rules::all();
    let Some(name) = arguments.name else {
        exit::say(&list(&rules));
        return 0;
    };
    if let Some(rule) = rules.iter().find(|rule| rule.name == name) {
        exit::say(&page(rule));
        return 0;
    }
    let near = did_you_mean(&name, rules.iter().map(|rule| rule.name));
    let hint = near.map_or(String::new(), |near| format!("; did you mean {near}?"));
    exit::complain(&format!(
        "error: there is no rule `{name}`{hint}\nhelp: `einc rules` lists them all\n"
    ));
    2
}

/// A line a rule, under its family.
fn list(rules: &[RuleInfo]) -> String {
    let width = rules.iter().map(|rule| rule.name.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    let mut family = "";
    for rule in rules {
        if rule.family != family {
            family = rule.family;
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&format!("{family}\n"));
        }
        text.push_str(&format!(
            "  {:<width$}  {}  =>  {}\n",
            rule.name, rule.left, rule.right
        ));
    }
    text
}

/// All that is known of a rule.
fn page(rule: &RuleInfo) -> String {
    let mut text = format!("{}  ({}; {})\n", rule.name, rule.family, rule.paper);
    text.push_str(&format!(
        "  left   {}\n  right  {}\n",
        rule.left, rule.right
    ));
    for condition in rule.conditions {
        text.push_str(&format!("  where  {condition}\n"));
    }
    if !rule.note.is_empty() {
        text.push_str(&format!("  note   {}\n", rule.note));
    }
    text
}
