//! How the sites share a block's steps: together, or each by itself for a while.
//!
//! Must not know what a step computes, nor how neurons are found.
//!
//! ```text
//! strategy: ist(local_steps: 10, state: reset), 4 sites   =>   rounds of 10 steps, 4 parts, states begin anew
//! ```

use crate::sema::Checker;
use crate::subnets::Asked;
use ein_plan::training::States;
use einc_diag::{Diagnostic, Span, did_you_mean};
use einc_syntax::ast::{Argument, Expr, ExprKind};

/// Rounds of steps that every site makes by itself.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rounds {
    /// Steps of a round.
    pub(crate) local_steps: u64,
    /// Into how many parts the neurons are dealt; `None`: they are not.
    pub(crate) parts: Option<u64>,
    pub(crate) states: States,
    pub(crate) asked: Asked,
    /// Sites that make steps side by side.
    pub(crate) sites: u64,
    pub(crate) span: Span,
}

/// The line `strategy:`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Strategy {
    /// `None`: the sites make every step together.
    pub(crate) rounds: Option<Rounds>,
    /// Rows that statistics are estimated with.
    pub(crate) statistics: Option<(u64, Span)>,
}

const NAMES: [&str; 3] = ["sync", "ist", "local_sgd"];

/// The settings of a strategy, if there is one of that name.
fn settings_of(name: &str) -> Option<&'static [&'static str]> {
    match name {
        "sync" => Some(&["statistics"]),
        "ist" => Some(&[
            "local_steps",
            "parts",
            "state",
            "neurons",
            "layers",
            "statistics",
        ]),
        "local_sgd" => Some(&["steps", "average", "statistics"]),
        _ => None,
    }
}

impl<'a> Checker<'a> {
    /// Reads the value of the line and the line's place; `None` after an error.
    pub(crate) fn strategy(&mut self, value: Option<&'a Expr>, whole: Span) -> Option<Strategy> {
        let value = value?;
        let (name, arguments) = match &*value.kind {
            ExprKind::Name(name) => (name.as_str(), &[][..]),
            // What the parser has said.
            ExprKind::Error => return None,
            ExprKind::Call { callee, arguments } => match &*callee.kind {
                ExprKind::Name(name) => (name.as_str(), arguments.as_slice()),
                _ => ("", &[][..]),
            },
            _ => ("", &[][..]),
        };
        let Some(known) = settings_of(name) else {
            let near = did_you_mean(name, NAMES);
            let help = near.map_or_else(
                || format!("there are {}", NAMES.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            let what = "there is no such strategy";
            return self.not_so(value.span, what, "not a strategy", &help);
        };
        let given = self.arguments_of(name, known, arguments)?;
        let find = |key: &str| {
            given
                .iter()
                .find(|(own, _)| *own == key)
                .map(|(_, value)| *value)
        };
        let mut strategy = Strategy::default();
        if let Some(value) = find("statistics") {
            let rows = self.strategy_number(value, "statistics")?;
            strategy.statistics = Some((rows, value.span));
        }
        if name == "sync" {
            return Some(strategy);
        }
        let steps = if name == "ist" {
            "local_steps"
        } else {
            "steps"
        };
        let Some(value) = find(steps) else {
            let what = format!("`{name}` does not say how many steps a site makes by itself");
            let help = format!("as in `{name}({steps}: 10)`");
            return self.not_so(whole, &what, "here", &help);
        };
        let local_steps = self.strategy_number(value, steps)?;
        let sites = u64::from(self.task.bindings.sites.unwrap_or(1));
        let mut rounds = Rounds {
            local_steps,
            parts: (name == "ist").then_some(sites),
            states: if name == "ist" {
                States::Travel
            } else {
                States::Stay
            },
            asked: Asked::default(),
            sites,
            span: value.span.to(whole),
        };
        if let Some(value) = find("parts") {
            rounds.parts = Some(self.parts(value, sites)?);
        }
        if let Some(value) = find("state") {
            rounds.states = self.one_of(
                value,
                "state",
                &[("travel", States::Travel), ("reset", States::Reset)],
            )?;
        }
        if let Some(value) = find("average") {
            let both = [
                ("params", States::Stay),
                ("params_and_state", States::Travel),
            ];
            rounds.states = self.one_of(value, "average", &both)?;
        }
        if let Some(value) = find("layers") {
            rounds.asked.dense =
                self.one_of(value, "layers", &[("all", false), ("dense", true)])?;
        }
        if let Some(value) = find("neurons") {
            rounds.asked.names = Some(self.names_of(value)?);
        }
        strategy.rounds = Some(rounds);
        Some(strategy)
    }

    /// The named arguments of a strategy, each once.
    fn arguments_of(
        &mut self,
        name: &str,
        known: &[&'static str],
        arguments: &'a [Argument],
    ) -> Option<Vec<(&'a str, &'a Expr)>> {
        let mut given: Vec<(&'a str, &'a Expr)> = vec![];
        for argument in arguments {
            let key = self.argument_of(name, known, argument)?;
            if given.iter().any(|(other, _)| *other == key) {
                let what = format!("`{key}` is given twice");
                return self.not_so(
                    argument.value.span,
                    &what,
                    "again here",
                    "leave one of them out",
                );
            }
            given.push((key, &argument.value));
        }
        Some(given)
    }

    /// `parts:`: no more than there are sites.
    fn parts(&mut self, value: &'a Expr, sites: u64) -> Option<u64> {
        let parts = self.strategy_number(value, "parts")?;
        if parts > sites && self.task.bindings.sites.is_some() {
            let on = match sites {
                1 => "one site".to_owned(),
                _ => format!("{sites} sites"),
            };
            let error = Diagnostic::error("E0627", format!("{parts} parts on {on}"))
                .at(value.span, "every part needs a site of its own");
            self.report.push(
                error.help(
                    "fewer parts than sites are fine: sites with the same part then average it",
                ),
            );
            return None;
        }
        Some(parts)
    }

    fn not_so<T>(&mut self, span: Span, message: &str, label: &str, help: &str) -> Option<T> {
        let error = Diagnostic::error("E0620", message).at(span, label);
        self.report.push(error.help(help));
        None
    }

    /// The name of an argument; `None` after an error.
    fn argument_of(
        &mut self,
        strategy: &str,
        known: &[&'static str],
        argument: &'a Argument,
    ) -> Option<&'a str> {
        let list = known.join(", ");
        let Some(name) = &argument.name else {
            let what = format!("the settings of `{strategy}` have names");
            return self.not_so(
                argument.value.span,
                &what,
                "no name",
                &format!("there are {list}"),
            );
        };
        if !known.contains(&name.text.as_str()) {
            let near = did_you_mean(&name.text, known.iter().copied());
            let help = near.map_or_else(
                || format!("there are {list}"),
                |near| format!("did you mean `{near}`?"),
            );
            let what = format!("`{strategy}` has no setting `{}`", name.text);
            return self.not_so(name.span, &what, "no such setting", &help);
        }
        Some(&name.text)
    }

    /// A number of steps, parts or rows, at least 1.
    fn strategy_number(&mut self, value: &'a Expr, what: &str) -> Option<u64> {
        let size = self.size(
            &crate::sema::expressions::scope::Scope::file(einc_diag::FileId(0)),
            value,
            what,
        )?;
        let number = size.known().unwrap_or(1);
        if number >= 1 {
            return Some(number as u64);
        }
        let reason = match what {
            "local_steps" | "steps" => "a round has at least one step",
            "parts" => "a net has at least one part",
            _ => "statistics need at least one row",
        };
        let error = Diagnostic::error("E0626", format!("`{what}` is {number}"));
        self.report.push(error.at(value.span, reason));
        None
    }

    fn one_of<T: Copy>(&mut self, value: &'a Expr, what: &str, known: &[(&str, T)]) -> Option<T> {
        if let ExprKind::Name(name) = &*value.kind
            && let Some((_, found)) = known.iter().find(|(own, _)| own == name)
        {
            return Some(*found);
        }
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let message = format!("`{what}` is one of {}", names.join(", "));
        self.not_so(value.span, &message, "not one of them", "")
    }

    fn names_of(&mut self, value: &'a Expr) -> Option<Vec<String>> {
        let ExprKind::List(items) = &*value.kind else {
            return self.not_so(
                value.span,
                "`neurons` is a list of names",
                "not a list",
                "as in `neurons: [h1, h2]`",
            );
        };
        let mut names = vec![];
        for item in items {
            match &*item.kind {
                ExprKind::Name(name) => names.push(name.clone()),
                _ => {
                    let help =
                        "name definitions that have the neurons, or the weights that make them";
                    return self.not_so(
                        item.span,
                        "`neurons` is a list of names",
                        "not a name",
                        help,
                    );
                }
            }
        }
        Some(names)
    }
}
