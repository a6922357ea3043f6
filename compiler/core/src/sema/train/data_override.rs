//! Definitions evaluated on other data: `output D on (Xv, yv)`, `validate: D on (Xv, yv)`.
//!
//! The text is read again for what D needs, with the data replaced in order and their dims bound anew; constants keep their
//! values, and params are those of the program. What this gives is joined with the program. Must not know steps of training.
//!
//! ```text
//! N = 400, Xv: f32[50, 64], output z on (Xv)   =>   z.on.Xv: f32[50, 10] beside z: f32[400, 10]
//! ```

use crate::einsum::{Definition as Defined, Program, Role};
use crate::sema::{
    Analysis, Bindings, Checker, Text,
    definitions::tensors::Definition,
    expressions::arena::{ExprId, TensorRef},
    resolve::names::{EntityId, EntityKind, Found, Names},
    sizes::size::Size,
    train::training::{Base, CarriedKind, EVALUATED, Mode, Other},
};
use ein_plan::{Scalar, Source};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{ExprKind, Name, Position, StringLiteral, Type, on_suffix};
use std::collections::BTreeMap;

/// The carried tensors that a pass reads.
pub(crate) type Read = Vec<(String, CarriedKind, Source)>;

impl<'a> Checker<'a> {
    /// Notes `output D on (…)`; D itself is computed with the program, so that it is checked, and constants that it needs are there.
    pub(crate) fn output_on(
        &mut self,
        name: &'a Name,
        on: &'a [Name],
        file: Option<&'a StringLiteral>,
        span: Span,
    ) {
        let id = match self.names.find(FileId(0), &name.text) {
            Found::Entity(id) => Some(id),
            _ => None,
        };
        if let Some(EntityKind::Input { .. } | EntityKind::Dim(_)) =
            id.map(|id| self.names.entity(id).kind)
        {
            self.report.push(
                Diagnostic::error("E0621", format!("`{}` is not a definition", name.text))
                    .at(name.span, "this depends on no data")
                    .help("what is evaluated on other data is computed from data"),
            );
            return;
        }
        let before = self.built.outputs.len();
        self.output(name, None, span);
        let Some(output) = self.built.outputs.get_mut(before) else {
            return;
        };
        let mark = format!("{EVALUATED}{before}");
        output.file = Some(mark.clone());
        let other = Other {
            mark,
            name,
            on,
            file,
            reads: vec![],
        };
        self.training.others.push((other, output.tensor));
    }

    /// The outputs on other data, with the inputs that they depend on.
    pub(crate) fn others(&self) -> Vec<Other<'a>> {
        let others = self.training.others.iter();
        others
            .map(|(other, tensor)| Other {
                reads: self.inputs_of(*tensor),
                ..other.clone()
            })
            .collect()
    }

    /// The inputs that a tensor depends on, in the order of their declarations.
    pub(crate) fn inputs_of(&self, tensor: TensorRef) -> Vec<String> {
        let reached = self.reached(vec![tensor]);
        let mut found: Vec<(Span, &str)> = self
            .built
            .tensors
            .iter()
            .zip(reached)
            .filter(|(tensor, reached)| {
                *reached
                    && tensor.role == Role::Input
                    && matches!(tensor.definition, Definition::Source(_))
            })
            .map(|(tensor, _)| (tensor.span, tensor.name.as_str()))
            .collect();
        found.sort_by_key(|(span, _)| span.start);
        found.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// The shapes of the program's inputs; a dimension that is a dim with its name.
    pub(crate) fn shapes_of_inputs(&self) -> BTreeMap<String, Vec<(Option<&'a str>, Size)>> {
        let mut shapes = BTreeMap::new();
        for entity in &self.names.entities {
            let EntityKind::Input {
                ty: Type::Tensor { shape, .. },
                param: false,
                ..
            } = entity.kind
            else {
                continue;
            };
            let is = |t: &&crate::sema::definitions::tensors::Tensor| t.name == entity.name.text;
            let Some(tensor) = self.built.tensors.iter().find(is) else {
                continue;
            };
            let names = shape.iter().flatten().map(|position| match position {
                Position::Expr(expr) => match &*expr.kind {
                    ExprKind::Name(name) => Some(name.as_str()),
                    _ => None,
                },
                Position::Rest(_) => None,
            });
            let dims: Vec<_> = names.zip(tensor.shape.iter().map(Size::plain)).collect();
            shapes.insert(tensor.name.clone(), dims);
        }
        shapes
    }

    /// The number that an expression is, if it is one.
    pub(crate) fn number_of(&self, value: ExprId) -> Option<Scalar> {
        self.arena.as_scalar(value)
    }
}

/// The uses with one more for every input that is replaced: it stands behind its replacement. `None` if nothing is replaced.
pub(crate) fn with_replacements(
    names: &Names<'_>,
    mode: &Mode,
    uses: &[Vec<(usize, Span)>],
) -> Option<Vec<Vec<(usize, Span)>>> {
    let mut edges = (!mode.replaced.is_empty()).then(|| uses.to_vec())?;
    for (from, to) in &mode.replaced {
        let found = (names.find(FileId(0), from), names.find(FileId(0), to));
        if let (Found::Entity(from), Found::Entity(to)) = found {
            let place = names.entity(to).name.span;
            edges[from.0 as usize].push((to.0 as usize, place));
        }
    }
    Some(edges)
}

/// By entity, whether the mode asks for it, or something that it asks for uses it.
pub(crate) fn needed_by_wanted(
    names: &Names<'_>,
    mode: &Mode,
    uses: &[Vec<(usize, Span)>],
) -> Vec<bool> {
    let mut needed = vec![mode.wanted.is_empty(); uses.len()];
    let roots = mode
        .wanted
        .iter()
        .filter_map(|name| match names.find(FileId(0), &name.text) {
            Found::Entity(EntityId(id)) | Found::Member(EntityId(id)) => Some(id as usize),
            _ => None,
        });
    let mut open: Vec<usize> = roots.collect();
    while let Some(id) = open.pop() {
        if !std::mem::replace(&mut needed[id], true) {
            open.extend(uses[id].iter().map(|(used, _)| *used));
        }
    }
    needed
}

/// Joins what the program's `output D on (…)` need with the program, and puts their tensors into its outputs. `data` has the data of each
/// `train` block; where there is none, the data of D are the inputs that it depends on. `None` after an error.
pub(crate) fn outputs(
    reading: Reading<'_, '_>,
    data: &[Vec<String>],
    analysis: &mut Analysis,
) -> Option<()> {
    let base = reading.base;
    // Those on the same data are read in one pass, and share what they have in common.
    let mut groups: Vec<(Mode, Vec<&Other<'_>>)> = vec![];
    let mut failed = false;
    for other in &base.others {
        let (name, on) = ((other.name.text.as_str(), other.name.span), other.on);
        let mode = data_of(data, name, on, &other.reads, analysis)
            .and_then(|listed| replacing(base, analysis, &listed, on, other.name.clone()));
        let Some(mode) = mode else {
            failed = true;
            continue;
        };
        if let Some((known, others)) = (groups.iter_mut()).find(|(known, others)| {
            known.replaced == mode.replaced && on_suffix(others[0].on) == on_suffix(other.on)
        }) {
            known.wanted.extend(mode.wanted);
            others.push(other);
        } else {
            groups.push((mode, vec![other]));
        }
    }
    for (mode, others) in groups {
        let (found, _) = pass(reading, analysis, &mode);
        let Some(program) = &mut analysis.program else {
            continue;
        };
        let Some(found) = found else {
            failed = true;
            continue;
        };
        let tensors = program.join(&found, &on_suffix(others[0].on));
        for (other, tensor) in others.iter().zip(tensors) {
            let marked = |output: &&mut crate::einsum::Output| {
                output.file.as_deref() == Some(other.mark.as_str())
            };
            let output = program.outputs.iter_mut().find(marked)?;
            output.tensor = tensor;
            output.file = other.file.map(|file| file.text.clone());
        }
    }
    if let Some(program) = analysis.program.take_if(|_| !base.others.is_empty()) {
        analysis.program = Some(program.needed());
    }
    (!failed).then_some(())
}

/// The data in whose place `on` is read, in order; `reads` are the inputs that D depends on. `data` has those of each `train` block:
/// where no block has any, they are what D depends on.
pub(crate) fn data_of(
    data: &[Vec<String>],
    (name, span): (&str, Span),
    on: &[Name],
    reads: &[String],
    analysis: &mut Analysis,
) -> Option<Vec<String>> {
    let read = |name: &&String| reads.contains(*name);
    let none = data.iter().all(Vec::is_empty);
    // Those that D does not depend on may be left out.
    let replaced = |all: &[String]| -> Vec<String> {
        let own = all.iter().filter(read).cloned();
        match on.len() == all.len() {
            true => all.to_vec(),
            false => own.collect(),
        }
    };
    let read_of = data
        .iter()
        .filter(|list| list.iter().any(|name| read(&name)));
    let mut fitting: Vec<Vec<String>> = read_of.clone().map(|list| replaced(list)).collect();
    fitting.retain(|listed| listed.len() == on.len());
    let whole = |listed: &Vec<String>| listed.iter().all(|name| read(&name));
    if fitting.iter().any(whole) {
        fitting.retain(whole);
    }
    fitting.sort();
    fitting.dedup();
    if fitting.len() > 1 {
        let lists: Vec<String> = fitting.iter().map(|listed| listed.join(", ")).collect();
        let place = on.first().map_or(span, |name| name.span);
        analysis.diagnostics.push(
            Diagnostic::error(
                "E0621",
                format!("`{name}` depends on the data of several `train` blocks"),
            )
            .at(place, "these may replace one or the other")
            .help(format!(
                "give out what depends on one of them: {}",
                lists.join("; ")
            )),
        );
        return None;
    }
    if let Some(listed) = fitting.pop() {
        return Some(listed);
    }
    let all = match read_of.clone().next() {
        Some(list) => list.clone(),
        None if none && !reads.is_empty() => reads.to_vec(),
        None => {
            let what = match none {
                true => format!("`{name}` depends on no input"),
                false => format!("`{name}` does not depend on the data"),
            };
            analysis.diagnostics.push(
                Diagnostic::error("E0621", what)
                    .at(span, "the same on all data")
                    .help("give it out without `on`"),
            );
            return None;
        }
    };
    let listed = replaced(&all);
    if listed.len() != on.len() {
        let count = |n: usize| format!("{n} tensor{}", if n == 1 { "" } else { "s" });
        let place = on.first().map_or(span, |name| name.span);
        analysis.diagnostics.push(
            Diagnostic::error(
                "E0621",
                format!("{} in place of {}", count(on.len()), listed.len()),
            )
            .at(place, "these replace the data")
            .help(format!(
                "`{name}` depends on {}: name one tensor for each, in this order",
                listed.join(", ")
            )),
        );
        return None;
    }
    Some(listed)
}

/// The mode in which `listed` are replaced by as many others, in order, and `wanted` is evaluated.
pub(crate) fn replacing(
    base: &Base<'_>,
    analysis: &mut Analysis,
    listed: &[String],
    on: &[Name],
    wanted: Name,
) -> Option<Mode> {
    let wrong = |analysis: &mut Analysis, span: Span, what: String, label: &str, help: String| {
        let error = Diagnostic::error("E0621", what).at(span, label.to_owned());
        analysis.diagnostics.push(match help.is_empty() {
            true => error,
            false => error.help(help),
        });
        None
    };
    let mut mode = Mode {
        constants: base.constants.clone(),
        numbers: base.numbers.clone(),
        wanted: vec![wanted],
        ..Mode::default()
    };
    for (old, new) in listed.iter().zip(on) {
        let (Some(from), Some(to)) = (base.inputs.get(old), base.inputs.get(&new.text)) else {
            let near = did_you_mean(&new.text, base.inputs.keys().map(String::as_str));
            let help = near.map_or(String::new(), |near| format!("did you mean `{near}`?"));
            let what = format!("`{}` is not an input", new.text);
            return wrong(analysis, new.span, what, "only inputs are data", help);
        };
        if *old != new.text {
            if listed.contains(&new.text) {
                let what = format!("`{}` stands for `{old}`, and is replaced itself", new.text);
                return wrong(analysis, new.span, what, "one of the data", String::new());
            }
            mode.replaced.insert(old.clone(), new.text.clone());
        }
        for ((name, _), (_, to)) in from.iter().zip(to) {
            let Some(name) = name else {
                continue;
            };
            let known = mode.dims.insert((*name).to_owned(), to.clone());
            if let Some(known) = known.filter(|known| known.differs(to)) {
                let what = format!("`{name}` would be {known} and {to}");
                let help = format!(
                    "`{}` replaces `{old}`, which has the dim `{name}`",
                    new.text
                );
                return wrong(analysis, new.span, what, "another size than before", help);
            }
        }
    }
    Some(mode)
}

/// A text, what its sizes and data are bound to, and what it says as it stands.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'p, 'a> {
    pub(crate) text: Text<'a>,
    pub(crate) bindings: &'p Bindings,
    pub(crate) base: &'p Base<'a>,
}

/// The text read in a mode, with what it reads of what is carried. The program is missing after an error, and where sizes are not known.
pub(crate) fn pass(
    reading: Reading<'_, '_>,
    analysis: &mut Analysis,
    mode: &Mode,
) -> (Option<Program>, Read) {
    // Where the program begins with its params is not a matter of some of their uses.
    let bindings = Bindings {
        params_given: true,
        ..reading.bindings.clone()
    };
    let mut checker = crate::sema::settle(reading.text, crate::sema::Task::new(&bindings, mode));
    let carried = std::mem::take(&mut checker.training.step.carried);
    checker.check_left(reading.base);
    let found = checker.finish();
    analysis.add(&found);
    let mut program = found.program;
    if let (Some(found), Some(whole)) = (&mut program, &analysis.program)
        && let Err(error) = params_of(found, whole, mode)
    {
        analysis.diagnostics.push(error);
        program = None;
    }
    (program, carried)
}

impl Checker<'_> {
    /// Inputs with a dim that is bound anew are replaced as well.
    fn check_left(&mut self, base: &Base<'_>) {
        let mode = self.task.mode;
        let Some(wanted) = mode.wanted.first() else {
            return;
        };
        let outputs = self.built.outputs.iter();
        let reached = self.reached(outputs.map(|output| output.tensor).collect());
        let mut left = vec![];
        for (tensor, reached) in self.built.tensors.iter().zip(reached) {
            let replaces = mode.replaced.values().any(|new| *new == tensor.name);
            if !reached || replaces || tensor.role != Role::Input {
                continue;
            }
            let Some(shape) = base.inputs.get(&tensor.name) else {
                continue;
            };
            let anew = shape.iter().find_map(|(name, size)| {
                let anew = mode.dims.get((*name)?)?;
                anew.differs(size).then_some((*name)?)
            });
            left.extend(anew.map(|dim| (tensor.name.clone(), dim.to_owned(), tensor.span)));
        }
        for (name, dim, span) in left {
            self.report.push(
                Diagnostic::error("E0621", format!("`{name}` is over `{dim}`, and nothing stands for it"))
                    .at(wanted.span, "evaluated on other data here")
                    .at(span, format!("`{dim}` is bound anew"))
                    .help("only the data of `train` are replaced: make it one of them, or compute it from them"),
            );
        }
    }
}

/// Gives params the definitions that they have in the whole program.
fn params_of(found: &mut Program, whole: &Program, mode: &Mode) -> Result<(), Diagnostic> {
    for tensor in &mut found.tensors {
        let unbound = matches!(tensor.definition, Defined::Source(Source::Unbound));
        let like = whole.tensors.iter().find(|like| like.name == tensor.name);
        let Some(like) = like.filter(|_| unbound && tensor.role != Role::Input) else {
            continue;
        };
        if like.shape != tensor.shape {
            let dims: Vec<&str> = mode.dims.keys().map(String::as_str).collect();
            let span = mode
                .wanted
                .first()
                .map_or(Span::default(), |name| name.span);
            let what = format!(
                "the param `{}` would be {:?} in place of {:?}",
                tensor.name, tensor.shape, like.shape
            );
            return Err(Diagnostic::error("E0621", what)
                .at(span, "evaluated on other data here")
                .help(format!(
                    "it is over a dim that is bound anew: {}",
                    dims.join(", ")
                )));
        }
        if let Defined::Source(_) = &like.definition {
            tensor.definition = like.definition.clone();
        }
    }
    Ok(())
}
