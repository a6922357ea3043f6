//! The lines of a `train` block: every key once, with what it may say.
//!
//! Must not know gradients, optimizers' rules or how steps are run.
//!
//! ```text
//! data: (X, y) over N by 64 shuffle, epochs: 3   =>   N: 1437 rows, 64 a batch, 23 steps an epoch, 69 in all
//! ```

use crate::sema::{
    Checker,
    expressions::arena::TensorRef,
    expressions::scope::Scope,
    sizes::size::Size,
    train::lines::{Group, Line, Lines},
    train::strategy::Strategy,
};
use ein_plan::training::{Checkpoints, Every};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{Expr, ExprKind, ItemKind, Name, Suffix, Train, TrainEntry};

/// The keys, for messages.
const KEYS: [&str; 12] = [
    "loss",
    "data",
    "epochs",
    "steps",
    "accumulate",
    "clip",
    "optimizer",
    "schedule",
    "strategy",
    "validate",
    "checkpoint",
    "group",
];

/// A block, read.
#[derive(Clone)]
pub(crate) struct Settings<'a> {
    /// The item's number.
    pub(crate) number: usize,
    /// Its first line.
    pub(crate) head: Span,
    pub(crate) loss: (&'a str, Span),
    /// The batched dim, with its place.
    pub(crate) over: Option<(&'a str, Span)>,
    /// Tensors of the data that are listed, with the place of the list.
    pub(crate) listed: Option<(Vec<&'a str>, Span)>,
    /// Rows of the data and of a batch, where they are known.
    pub(crate) rows: Option<i64>,
    pub(crate) batch: Option<i64>,
    pub(crate) shuffle: bool,
    pub(crate) steps_per_epoch: Option<i64>,
    pub(crate) total_steps: Option<i64>,
    pub(crate) parts: i64,
    pub(crate) clip: Option<f64>,
    /// Rows of all sites in a step are so many times a batch.
    pub(crate) sites: i64,
    pub(crate) strategy: Strategy,
    pub(crate) optimizer: &'a Expr,
    pub(crate) schedule: Vec<&'a Expr>,
    pub(crate) groups: Vec<Group<'a>>,
    pub(crate) validate: Option<Validate<'a>>,
    pub(crate) checkpoint: Option<Checkpoints>,
}

/// `validate: D on (Xv, yv) every 1 epoch`.
#[derive(Clone)]
pub(crate) struct Validate<'a> {
    pub(crate) name: (&'a str, Span),
    pub(crate) on: Option<&'a [Name]>,
    pub(crate) every: Every,
    /// D, and the inputs that it depends on, in the order of their declarations, once the text has been read.
    pub(crate) tensor: Option<TensorRef>,
    pub(crate) reads: Vec<String>,
}

impl<'a> Checker<'a> {
    /// The `train` blocks of the program, in order, with their numbers among the items.
    pub(crate) fn trains(&self) -> Vec<(usize, &'a Train, Span)> {
        let program = self.names.sources.files.first();
        let items = program.map_or(&[][..], |file| &file.ast.items);
        items
            .iter()
            .enumerate()
            .filter_map(|(number, item)| match &item.kind {
                ItemKind::Train(train) => Some((number, train, item.span)),
                _ => None,
            })
            .collect()
    }

    fn wrong(&mut self, span: Span, message: impl Into<String>, label: &str, help: &str) {
        let error = Diagnostic::error("E0620", message).at(span, label);
        self.report.push(if help.is_empty() {
            error
        } else {
            error.help(help)
        });
    }

    fn twice(&mut self, again: &Name, first: &Name) {
        self.report.push(
            Diagnostic::error("E0620", format!("`{}` is given twice", again.text))
                .at(again.span, "again here")
                .at(first.span, "first here"),
        );
    }

    /// Reads a block; `None` after an error.
    pub(crate) fn read_train(
        &mut self,
        number: usize,
        train: &'a Train,
        span: Span,
    ) -> Option<Settings<'a>> {
        let head = self.names.head(span);
        let mark = self.report.mark();
        let lines = self.lines_of(train);
        for line in &lines.lines {
            self.check_form(*line);
        }
        if !self.names.sources.incomplete {
            self.check_required(&lines, head);
        }
        self.check_length(&lines, head);
        let strategy = match lines.find("strategy") {
            Some(line) => self.strategy(line.value, line.span),
            None => Some(Strategy::default()),
        };
        // Of a line that could not be parsed nothing more is said.
        let failed = lines.are_broken() || self.readings.failed_items.contains(&number);
        if self.report.mark() > mark || failed {
            return None;
        }
        let mut settings = self.settings(number, head, &lines, strategy?)?;
        if let Some(line) = lines.find("data") {
            self.data(line, &mut settings)?;
        }
        if let (Some(rounds), None) = (&settings.strategy.rounds, settings.over) {
            self.wrong(
                rounds.span,
                "the sites have no rows to make steps with",
                "every site makes its steps with rows of its own",
                "say which data, and how many rows a site takes: `data: (X, y) over N by 64`",
            );
            return None;
        }
        settings.total_steps = match (lines.find("epochs"), lines.find("steps")) {
            (Some(line), _) => {
                let epochs = self.count(line, 0)?.known();
                epochs
                    .zip(settings.steps_per_epoch)
                    .and_then(|(epochs, steps)| epochs.checked_mul(steps))
            }
            (_, Some(line)) => self.count(line, 0)?.known(),
            _ => None,
        };
        self.warn_of_no_step(&lines, &settings);
        if let Some(line) = lines.find("validate") {
            settings.validate = Some(self.validate(line)?);
        }
        if let Some(line) = lines.find("checkpoint") {
            settings.checkpoint = Some(self.checkpoint(line)?);
        }
        Some(settings)
    }

    /// Warns of a block that is written as if it trained, and makes no step.
    fn warn_of_no_step(&mut self, lines: &Lines<'a>, settings: &Settings<'a>) {
        let length = lines.find("epochs").or_else(|| lines.find("steps"));
        let (Some(0), Some(line)) = (settings.total_steps, length) else {
            return;
        };
        self.report.push(
            Diagnostic::warning(
                "E0630",
                "this block makes no step, so that it trains nothing",
            )
            .at(line.key.span, "0 steps")
            .help("say a number of at least 1, or remove the block"),
        );
    }

    /// The lines and groups of a block; a key that does not exist or stands twice is an error.
    fn lines_of(&mut self, train: &'a Train) -> Lines<'a> {
        let (mut lines, mut groups): (Vec<Line<'a>>, Vec<Group<'a>>) = (vec![], vec![]);
        for entry in &train.entries {
            match entry {
                TrainEntry::Setting {
                    key,
                    value,
                    then,
                    suffixes,
                    span,
                } => {
                    if !KEYS.contains(&key.text.as_str()) {
                        let near = did_you_mean(&key.text, KEYS);
                        let help = near.map_or_else(
                            || format!("there are {}", KEYS.join(", ")),
                            |near| format!("did you mean `{near}`?"),
                        );
                        let message = format!("`train` has no key `{}`", key.text);
                        self.wrong(key.span, message, "no such key", &help);
                    } else if let Some(first) = lines.iter().find(|l| l.key.text == key.text) {
                        self.twice(key, first.key);
                    }
                    lines.push(Line {
                        key,
                        value: value.as_ref(),
                        then,
                        suffixes,
                        span: *span,
                    });
                }
                TrainEntry::Group {
                    patterns,
                    settings,
                    span,
                } => {
                    let names: Vec<&Name> =
                        settings.iter().filter_map(|s| s.name.as_ref()).collect();
                    for (at, name) in names.iter().enumerate() {
                        if let Some(first) = names[..at].iter().find(|n| n.text == name.text) {
                            self.twice(name, first);
                        }
                    }
                    groups.push(Group {
                        patterns,
                        settings,
                        span: *span,
                    });
                }
            }
        }
        Lines { lines, groups }
    }

    /// Reports the keys that every block needs and that this one lacks.
    fn check_required(&mut self, lines: &Lines<'a>, head: Span) {
        for (key, example) in [
            ("loss", "loss: loss"),
            ("optimizer", "optimizer: sgd(lr: 0.1)"),
        ] {
            // Of a line that cannot be read nobody knows what it says.
            let meant = |line: &Line<'_>| did_you_mean(&line.key.text, KEYS) == Some(key);
            if lines.find(key).is_none() && !lines.lines.iter().any(meant) {
                let help = format!("write a line such as `{example}`");
                self.wrong(
                    head,
                    format!("`train` without `{key}`"),
                    "in this block",
                    &help,
                );
            }
        }
    }

    /// Reports a block that does not say once how long training lasts.
    fn check_length(&mut self, lines: &Lines<'a>, head: Span) {
        match (lines.find("epochs"), lines.find("steps")) {
            (Some(epochs), Some(steps)) => self.report.push(
                Diagnostic::error("E0620", "`epochs` and `steps` say the same thing")
                    .at(steps.key.span, "this says how long training lasts")
                    .at(epochs.key.span, "and so does this")
                    .help("leave one of them out"),
            ),
            (None, None) if !self.names.sources.incomplete => self.wrong(
                head,
                "nothing says how long training lasts",
                "in this block",
                "write `epochs: 10` or `steps: 1000`",
            ),
            _ => {}
        }
    }

    /// The settings of a block whose lines have the right form, without its data and what depends on them.
    fn settings(
        &mut self,
        number: usize,
        head: Span,
        lines: &Lines<'a>,
        strategy: Strategy,
    ) -> Option<Settings<'a>> {
        let loss = self.named(lines.find("loss")?.value?, "the loss")?;
        let optimizer = lines.find("optimizer")?.value?;
        let parts = match lines.find("accumulate") {
            Some(line) => self.count(line, 1)?.known().unwrap_or(1),
            None => 1,
        };
        let clip = match lines.find("clip") {
            Some(line) => Some(self.positive(line)?),
            None => None,
        };
        let schedule = lines.find("schedule");
        let schedule = schedule.map(|line| line.value.into_iter().chain(line.then));
        let rounds = strategy.rounds.as_ref();
        Some(Settings {
            number,
            head,
            loss,
            over: None,
            listed: None,
            rows: None,
            batch: None,
            shuffle: false,
            steps_per_epoch: Some(1),
            total_steps: None,
            parts,
            clip,
            sites: rounds.map_or(1, |rounds| rounds.sites as i64),
            strategy,
            optimizer,
            schedule: schedule.into_iter().flatten().collect(),
            groups: lines.groups.clone(),
            validate: None,
            checkpoint: None,
        })
    }

    /// `validate: D on (Xv, yv) every 1 epoch`.
    fn validate(&mut self, line: Line<'a>) -> Option<Validate<'a>> {
        let name = self.named(line.value?, "what is validated")?;
        let on = line.suffixes.iter().find_map(|suffix| match suffix {
            Suffix::On(names) => Some(names.as_slice()),
            _ => None,
        });
        Some(Validate {
            name,
            on,
            every: self.every(line)?,
            tensor: None,
            reads: vec![],
        })
    }

    /// `checkpoint: "run/ckpt" every 1 epoch keep 3`.
    fn checkpoint(&mut self, line: Line<'a>) -> Option<Checkpoints> {
        let path = match &*line.value?.kind {
            ExprKind::String(path) if !path.is_empty() => Some(path),
            _ => None,
        };
        let Some(path) = path else {
            self.wrong(
                line.span,
                "a checkpoint needs a folder",
                "no path",
                "as in `checkpoint: \"run/ckpt\" every 1 epoch keep 3`",
            );
            return None;
        };
        let keep = line.suffixes.iter().find_map(|suffix| match suffix {
            Suffix::Keep(count) => Some(count),
            _ => None,
        });
        let keep = match keep {
            Some(count) => Some(self.at_least(count, "`keep`", 1)?.known().unwrap_or(1) as u64),
            None => None,
        };
        Some(Checkpoints {
            folder: path.into(),
            every: self.every(line)?,
            keep,
        })
    }

    /// Returns whether a line has the suffixes of its key, and a value where it needs one.
    fn check_form(&mut self, line: Line<'a>) {
        let key = line.key.text.as_str();
        let allowed: &[&str] = match key {
            "data" => &["over", "by", "shuffle"],
            "validate" => &["on", "every"],
            "checkpoint" => &["every", "keep"],
            _ => &[],
        };
        for suffix in line.suffixes {
            let (word, span) = match suffix {
                Suffix::Over(name) => ("over", name.span),
                Suffix::By(expr) => ("by", expr.span),
                Suffix::Shuffle(span) => ("shuffle", *span),
                Suffix::Every { unit, .. } => ("every", unit.span),
                Suffix::Keep(expr) => ("keep", expr.span),
                Suffix::On(names) => ("on", names.first().map_or(line.span, |name| name.span)),
            };
            if !allowed.contains(&word) {
                self.wrong(
                    span,
                    format!("`{word}` does not belong to `{key}`"),
                    "here",
                    "",
                );
            }
        }
        if line.value.is_none() && key != "data" {
            self.wrong(
                line.span,
                format!("`{key}` has no value"),
                "nothing here",
                "",
            );
        }
        if !line.then.is_empty() && key != "schedule" {
            let message = format!("`then` does not belong to `{key}`");
            self.wrong(line.span, message, "`then` joins schedules", "");
        }
    }

    fn named(&mut self, value: &'a Expr, what: &str) -> Option<(&'a str, Span)> {
        if let ExprKind::Name(name) = &*value.kind {
            return Some((name, value.span));
        }
        let help = "define it, and write its name";
        self.wrong(
            value.span,
            format!("{what} is a name"),
            "an expression",
            help,
        );
        None
    }

    fn count(&mut self, line: Line<'a>, least: i64) -> Option<Size> {
        let what = format!("`{}`", line.key.text);
        self.at_least(line.value?, &what, least)
    }

    pub(crate) fn at_least(&mut self, expr: &'a Expr, what: &str, least: i64) -> Option<Size> {
        let size = self.size(&Scope::file(FileId(0)), expr, what)?;
        if size.known().is_some_and(|number| number < least) {
            let code = if what == "a batch" { "E0621" } else { "E0620" };
            self.report.push(
                Diagnostic::error(code, format!("{what} is {least} or more, not {size}"))
                    .at(expr.span, format!("this is {size}")),
            );
            return None;
        }
        Some(size)
    }

    fn positive(&mut self, line: Line<'a>) -> Option<f64> {
        let expr = line.value?;
        let value = self.closed(&Scope::file(FileId(0)), expr)?;
        let number = self.arena.as_number(value);
        match number.filter(|number| *number > 0.0) {
            Some(number) => Some(number),
            None => {
                let message = format!("`{}` is a number above 0", line.key.text);
                self.wrong(expr.span, message, "not such a number", "");
                None
            }
        }
    }

    /// `every 2 epochs`; without it, every epoch.
    fn every(&mut self, line: Line<'a>) -> Option<Every> {
        let every = line.suffixes.iter().find_map(|suffix| match suffix {
            Suffix::Every { count, unit } => Some((count, unit)),
            _ => None,
        });
        let Some((count, unit)) = every else {
            return Some(Every::Epochs(1));
        };
        let number = self.at_least(count, "`every`", 1)?.known().unwrap_or(1) as u64;
        match unit.text.trim_end_matches('s') {
            "epoch" => Some(Every::Epochs(number)),
            "step" => Some(Every::Steps(number)),
            _ => {
                let help = "`every 2 epochs` or `every 100 steps`";
                self.wrong(unit.span, "neither epochs nor steps", "not a unit", help);
                None
            }
        }
    }
}
