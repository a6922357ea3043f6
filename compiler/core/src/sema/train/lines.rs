//! The lines of a `train` block as they stand, and the expressions in them.
//!
//! Must not know what a key means.
//!
//! ```text
//! data: (X, y) over N by 64 shuffle   =>   key data, value (X, y), suffixes over N, by 64, shuffle
//! ```

use einc_diag::Span;
use einc_syntax::ast::{Argument, Expr, ExprKind, Name, Suffix, Train, TrainEntry};

/// The lines and groups of a block.
pub(crate) struct Lines<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    pub(crate) groups: Vec<Group<'a>>,
}

impl<'a> Lines<'a> {
    /// The line of a key.
    pub(crate) fn find(&self, key: &str) -> Option<Line<'a>> {
        let mut lines = self.lines.iter();
        lines.find(|line| line.key.text == key).copied()
    }

    /// Returns whether a line could not be parsed.
    pub(crate) fn are_broken(&self) -> bool {
        let values = self.lines.iter().filter_map(|line| line.value);
        values
            .into_iter()
            .any(|value| matches!(*value.kind, ExprKind::Error))
    }
}

/// A line `key: value suffixes`.
#[derive(Clone, Copy)]
pub(crate) struct Line<'a> {
    pub(crate) key: &'a Name,
    pub(crate) value: Option<&'a Expr>,
    pub(crate) then: &'a [Expr],
    pub(crate) suffixes: &'a [Suffix],
    pub(crate) span: Span,
}

/// A line `group patterns { settings }`.
#[derive(Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) patterns: &'a [Name],
    pub(crate) settings: &'a [Argument],
    pub(crate) span: Span,
}

/// The expressions of a block that names are looked up in before anything is evaluated.
pub(crate) fn expressions_of(train: &Train) -> Vec<&Expr> {
    let mut found = vec![];
    for entry in &train.entries {
        let (key, value, then, suffixes) = match entry {
            TrainEntry::Group { settings, .. } => {
                values_of(settings, &mut found);
                continue;
            }
            TrainEntry::Setting {
                key,
                value,
                then,
                suffixes,
                ..
            } => (key.text.as_str(), value, then, suffixes),
        };
        if ["optimizer", "schedule", "strategy"].contains(&key) {
            for rule in value.iter().chain(then) {
                if let ExprKind::Call { arguments, .. } = &*rule.kind {
                    // Words of a strategy are no names of the program.
                    let words = ["neurons", "state", "average", "layers"];
                    let is_word = |a: &&Argument| {
                        let name = a.name.as_ref().map_or("", |name| name.text.as_str());
                        key == "strategy" && words.contains(&name)
                    };
                    values_of(arguments.iter().filter(|a| !is_word(a)), &mut found);
                }
            }
        }
        if ["epochs", "steps", "accumulate", "clip"].contains(&key) {
            found.extend(value);
        }
        for suffix in suffixes {
            match suffix {
                Suffix::By(expr) | Suffix::Keep(expr) => found.push(expr),
                Suffix::Every { count, .. } => found.push(count),
                _ => {}
            }
        }
    }
    found
}

fn values_of<'e>(arguments: impl IntoIterator<Item = &'e Argument>, found: &mut Vec<&'e Expr>) {
    for argument in arguments {
        match &*argument.value.kind {
            ExprKind::List(items) => found.extend(items),
            _ => found.push(&argument.value),
        }
    }
}
