//! The data of a `train` block: what the line says, and whether the loss reads just that.
//!
//! Must not know how rows are chosen or read.
//!
//! ```text
//! (X, y) over N by 64, N = 1437   =>   1437 rows, 23 steps an epoch
//! ```

use crate::sema::{
    Checker,
    resolve::names::{EntityKind, Found},
    train::block::Settings,
    train::lines::Line,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Expr, ExprKind, Suffix};

impl<'a> Checker<'a> {
    /// `(X, y) over N by 64 shuffle`.
    pub(crate) fn data(&mut self, line: Line<'a>, settings: &mut Settings<'a>) -> Option<()> {
        let over = line.suffixes.iter().find_map(|suffix| match suffix {
            Suffix::Over(name) => Some(name),
            _ => None,
        });
        let by = line.suffixes.iter().find_map(|suffix| match suffix {
            Suffix::By(expr) => Some(expr),
            _ => None,
        });
        let (Some(over), Some(by)) = (over, by) else {
            return self.refuse(
                line.span,
                "the data of `train` need a dim and a batch size".into(),
                "one of them is missing",
                "as in `data: (X, y) over N by 64`",
            );
        };
        let dim = match self.names.find(FileId(0), &over.text) {
            Found::Entity(id) if matches!(self.names.entity(id).kind, EntityKind::Dim(_)) => id,
            Found::Poison => return None,
            _ => {
                return self.refuse(
                    over.span,
                    format!("`{}` is not a dim", over.text),
                    "batches are taken over a dim",
                    "name the dim that the rows of the data are counted by",
                );
            }
        };
        settings.over = Some((&over.text, over.span));
        settings.shuffle = line
            .suffixes
            .iter()
            .any(|suffix| matches!(suffix, Suffix::Shuffle(_)));
        let rows = self.whole_number(dim);
        let batch = self.with_whole(|c| c.at_least(by, "a batch", 1))?;
        settings.rows = rows;
        settings.batch = batch.known();
        settings.steps_per_epoch = None;
        self.steps_per_epoch(settings, over.span)?;
        if let Some(value) = line.value {
            settings.listed = Some((self.listed_data(value)?, value.span));
        }
        Some(())
    }

    /// Finds how many steps an epoch has, where rows and batch are known.
    fn steps_per_epoch(&mut self, settings: &mut Settings<'a>, over: Span) -> Option<()> {
        let (Some(rows), Some(batch)) = (settings.rows, settings.batch) else {
            return Some(());
        };
        if rows == 0 {
            return self.refuse(
                over,
                "there are no data to train on".into(),
                "this dim is 0",
                "bind data that have rows",
            );
        }
        settings.batch = Some(batch.min(rows));
        // Every site has a batch; what is left for a last step has a row for every site, or is left out.
        let all = batch.saturating_mul(settings.sites);
        settings.steps_per_epoch = Some(rows / all + i64::from(rows % all >= settings.sites));
        if settings.steps_per_epoch == Some(0) {
            return self.refuse(
                over,
                format!("{rows} rows for {} sites", settings.sites),
                "every site needs a row of its own in a step",
                "use fewer sites",
            );
        }
        Some(())
    }

    /// The inputs of a list of data, each once.
    fn listed_data(&mut self, value: &'a Expr) -> Option<Vec<&'a str>> {
        let inner = crate::sema::resolve::forms::unbracket(value);
        let list: Vec<&'a Expr> = match &*inner.kind {
            ExprKind::Tuple(list) => list.iter().collect(),
            _ => vec![inner],
        };
        let mut names = vec![];
        for item in list {
            let ExprKind::Name(name) = &*item.kind else {
                return self.refuse(
                    item.span,
                    "the data of `train` are inputs".into(),
                    "not a name",
                    "list the names of inputs: `data: (X, y) over N by 64`",
                );
            };
            let input = match self.names.find(FileId(0), name) {
                Found::Entity(id) => {
                    matches!(
                        self.names.entity(id).kind,
                        EntityKind::Input { param: false, .. }
                    )
                }
                Found::Poison => return None,
                _ => false,
            };
            if !input {
                return self.refuse(
                    item.span,
                    format!("`{name}` is not an input"),
                    "only inputs are data",
                    "declare it with `input`",
                );
            }
            if names.contains(&name.as_str()) {
                return self.refuse(
                    item.span,
                    format!("`{name}` is listed twice"),
                    "again here",
                    "leave it out",
                );
            }
            names.push(name.as_str());
        }
        Some(names)
    }

    fn refuse<T>(&mut self, span: Span, message: String, label: &str, help: &str) -> Option<T> {
        let error = Diagnostic::error("E0621", message).at(span, label.to_owned());
        self.report.push(error.help(help));
        None
    }

    /// Returns whether the listed data are all inputs over the batched dim that the loss reaches.
    pub(crate) fn check_data(&mut self, settings: &Settings<'a>, reached: &[bool]) -> Option<()> {
        let (Some((listed, span)), Some((over, _))) = (&settings.listed, settings.over) else {
            return Some(());
        };
        let batched = |name: &str| {
            self.training
                .step
                .batch
                .iter()
                .any(|b| b.name == name && !b.constant)
        };
        let mut errors = vec![];
        for name in listed {
            let read = self.built.tensors.iter().zip(reached);
            let read = read.filter(|(tensor, reached)| **reached && tensor.name == *name);
            let what = match (batched(name), read.count()) {
                (false, _) => format!("`{name}` is not over `{over}`"),
                (true, 0) => format!("`{}` does not depend on `{name}`", settings.loss.0),
                _ => continue,
            };
            errors.push((what, format!("`{name}` is listed here"), "leave it out"));
        }
        for (tensor, reached) in self.built.tensors.iter().zip(reached) {
            let name = tensor.name.as_str();
            if *reached && batched(name) && !listed.contains(&name) {
                errors.push((
                    format!("`{name}` is over `{over}` and not among the data"),
                    format!("`{}` depends on it as well", settings.loss.0),
                    "list all inputs over the dim that the loss depends on",
                ));
            }
        }
        let failed = !errors.is_empty();
        for (message, label, help) in errors {
            let error = Diagnostic::error("E0621", message).at(*span, label);
            self.report.push(error.help(help));
        }
        (!failed).then_some(())
    }
}
