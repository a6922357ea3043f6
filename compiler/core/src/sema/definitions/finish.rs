//! The end of a program: assertions, outputs, sizes that are still missing.
//!
//! Must not know the forms of expressions.
//!
//! ```text
//! output y -> "y.npy"
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    definitions::tensors::{Assertion, Output},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, Scope},
    modules::instances::NoMember,
    resolve::names::{EntityId, EntityKind, Shape},
    sizes::ranges::Open,
};
use ein_plan::{DType, Reduction};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Expr, ItemKind, Name, StringLiteral, output_name};
use std::collections::{BTreeMap, HashSet};

impl<'a> Checker<'a> {
    /// Checks assertions and outputs.
    pub(crate) fn finish_items(&mut self) {
        let sources = self.names.sources;
        if self.task.mode.step.is_some() {
            // Without all of its outputs a step is no program.
            self.built.open_source |= self.assemble_step().is_none();
            return;
        }
        if !self.task.mode.wanted.is_empty() {
            let mode = self.task.mode;
            for name in &mode.wanted {
                self.output(name, None, name.span);
            }
            return;
        }
        let Some(program) = sources.files.first() else {
            return;
        };
        let mut seen: BTreeMap<String, Span> = BTreeMap::new();
        let (mut outputs, mut trains, mut library) = (0, false, true);
        for (number, item) in program.ast.items.iter().enumerate() {
            match &item.kind {
                ItemKind::Assert { condition, message } => {
                    library = false;
                    if !self.readings.failed_items.contains(&number) {
                        let scope = Scope::file(FileId(0));
                        let message = message.as_ref();
                        if let Some(value) = self.assert(&scope, (condition, message)) {
                            self.assert_at_run(value, (condition, message), None);
                        }
                    }
                }
                ItemKind::Output { name, on, file } => {
                    outputs += 1;
                    let full = output_name(name, on.as_deref());
                    if let Some(first) = seen.get(&full) {
                        self.report.push(
                            Diagnostic::error("E0202", format!("`{full}` is given out twice"))
                                .at(name.span, "again here")
                                .at(*first, "first here"),
                        );
                        continue;
                    }
                    seen.insert(full, name.span);
                    match on {
                        None => self.output(name, file.as_ref(), item.span),
                        Some(on) => self.output_on(name, on, file.as_ref(), item.span),
                    }
                }
                ItemKind::Train(_) => trains = true,
                ItemKind::Input { .. } | ItemKind::Param { .. } | ItemKind::Statement(_) => {
                    library = false
                }
                _ => {}
            }
        }
        self.read_blocks();
        if self.names.sources.incomplete {
            // What could not be read, and has been reported, may be an output.
            return;
        }
        if program.ast.items.is_empty() {
            self.report.push(
                Diagnostic::error("E0209", "the program is empty")
                    .note(format!("`{}` holds no items", program.name)),
            );
        } else if outputs == 0 && !trains && (!library || self.task.bindings.require_sizes) {
            let message = "the program gives nothing out";
            let diagnostic = if self.task.bindings.require_sizes {
                Diagnostic::error("E0209", message)
            } else {
                Diagnostic::warning("E0209", message)
            };
            self.report
                .push(diagnostic.help("write `output` and the name of what is wanted"));
        }
    }

    /// Returns whether the checker reads the whole program, not one training step or a few definitions.
    pub(crate) fn checks_all(&self) -> bool {
        self.task.mode.step.is_none() && self.task.mode.wanted.is_empty()
    }

    /// Reports outputs that were not made although no error was found. That is a defect of the compiler; it must not end in a
    /// program with fewer outputs than the text has.
    pub(crate) fn verify_outputs(&mut self) {
        if !self.checks_all() || self.report.failed() || self.names.sources.incomplete {
            return;
        }
        let made: HashSet<Span> = self
            .built
            .outputs
            .iter()
            .map(|output| output.span)
            .collect();
        let items = self
            .names
            .sources
            .files
            .first()
            .map_or(&[][..], |file| &file.ast.items);
        for item in items {
            let ItemKind::Output { name, .. } = &item.kind else {
                continue;
            };
            if !made.contains(&item.span) {
                let what = format!("internal error: the output `{}` was not made", name.text);
                self.report
                    .push(Diagnostic::error("E0999", what).at(item.span, "no error says why"));
            }
        }
    }

    pub(crate) fn output(&mut self, name: &'a Name, file: Option<&'a StringLiteral>, span: Span) {
        let binding = match self.names.find(FileId(0), &name.text) {
            crate::sema::resolve::names::Found::Entity(id) => {
                if self.names.shape_of(id) == Shape::Function {
                    let none = BTreeMap::new();
                    let instance = self.names.no_value(FileId(0), &none, &name.text, name.span);
                    let diagnostic = instance.unwrap_or_else(|| {
                        Diagnostic::error("E0204", format!("`{}` is a function", name.text))
                            .at(name.span, "only tensors and numbers are given out")
                    });
                    self.report.push(diagnostic);
                    return;
                }
                let counts = matches!(self.names.entity(id).kind, EntityKind::Repeat(_));
                let several = self.names.two_counters(FileId(0), &name.text, name.span);
                if let (true, Some(error)) = (counts, several) {
                    self.report.push(error);
                    return;
                }
                self.entities.values.get(&id).copied()
            }
            crate::sema::resolve::names::Found::Member(id) => {
                let path = name.text.split_once('.').map_or("", |(_, path)| path);
                let owner = self.entities.values.get(&id).copied();
                let owner = owner.filter(|owner| *owner != Binding::Poison);
                match owner.map(|owner| self.member_binding(owner, path)) {
                    Some(Ok(Binding::Instance(_)) | Err(NoMember::Unknown)) => {
                        self.report.push(self.names.unknown(
                            FileId(0),
                            &name.text,
                            name.span,
                            &[],
                            false,
                        ));
                        None
                    }
                    Some(Err(NoMember::Outside { number, count })) => {
                        self.no_instance(&name.text, name.span, number, count);
                        None
                    }
                    Some(Ok(member)) => Some(member),
                    None => None,
                }
            }
            crate::sema::resolve::names::Found::Poison => None,
            crate::sema::resolve::names::Found::Nothing => {
                self.report.push(
                    self.names
                        .unknown(FileId(0), &name.text, name.span, &[], false),
                );
                None
            }
        };
        let tensor = match binding {
            Some(Binding::Tensor(view)) if view.is_whole() => view.tensor,
            Some(Binding::Tensor(view)) => {
                self.copy(view, &[], (name.text.clone(), Role::Named, name.span))
            }
            Some(Binding::Scalar(value)) => {
                self.warn_of_quotients(value, name.span, false);
                let Some(value) = self.settle(value, name.span) else {
                    return;
                };
                self.add_statement(
                    name.text.clone(),
                    value,
                    vec![],
                    vec![],
                    name.span,
                    Role::Named,
                )
            }
            _ => return,
        };
        self.built.outputs.push(Output {
            file: file.map(|file| file.text.clone()),
            ..Output::of(tensor, span)
        });
    }

    /// A condition: an error if sizes show it to be false. Returns the value of one that depends on data.
    pub(crate) fn assert(
        &mut self,
        scope: &Scope<'a>,
        (condition, message): (&'a Expr, Option<&'a StringLiteral>),
    ) -> Option<ExprId> {
        let value = self.closed(scope, condition)?;
        let value = self.condition("`assert`", (value, condition.span))?;
        match self.arena.as_truth(value) {
            Some(true) => {}
            Some(false) => {
                let (text, values) = (
                    self.names.text(condition.span),
                    self.assert_values(scope, condition),
                );
                let said = match message {
                    Some(message) => message.text.clone(),
                    None => format!("`{text}` does not hold"),
                };
                self.report
                    .push(Diagnostic::error("E0308", said).at(condition.span, values));
            }
            None if self.depends_on_data(value) => return Some(value),
            None => {}
        }
        None
    }

    /// An assertion in a body, for every value of the indices that it is called for.
    pub(crate) fn assert_in_body(
        &mut self,
        scope: &Scope<'a>,
        (condition, message): (&'a Expr, Option<&'a StringLiteral>),
    ) {
        let Some(value) = self.assert(scope, (condition, message)) else {
            return;
        };
        // Steps and definitions for sessions are evaluated without assertions.
        if self.checks_all()
            && let Some(value) = self.at_all_calls(value, condition.span)
        {
            self.assert_at_run(value, (condition, message), Some(vec![]));
            if let Some(assertion) = self.built.asserts.last_mut() {
                assertion.block = scope.block;
            }
        }
    }

    /// Returns the condition that a truth value holds for every value of the indices that it depends on.
    fn at_all_calls(&mut self, value: ExprId, span: Span) -> Option<ExprId> {
        let vars = self.arena.free(value).to_vec();
        if vars.is_empty() {
            return Some(value);
        }
        let mut shape = vec![];
        for var in &vars {
            shape.push(self.extent(*var)?);
        }
        let name = self.instance_name(FileId(0), "assert.each");
        let each = self.add_statement(name, value, vars, shape.clone(), span, Role::Hidden);
        self.indices.open.push(Open::default());
        let mut vars = vec![];
        for (at, size) in shape.iter().enumerate() {
            vars.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let at = vars.iter().map(|var| self.index(*var)).collect();
        let form = Form::Reduce {
            reduction: Reduction::All,
            vars,
            guard: None,
            body: self.element(each, at, DType::Bool),
        };
        Some(self.arena.add(form, Ty::Typed(DType::Bool)))
    }

    /// Notes of the assertions of a body, from the first of them on, what the call gives.
    pub(crate) fn assertions_of(&mut self, first: usize, results: &[Binding]) {
        let mut of = vec![];
        for result in results {
            match result {
                Binding::Tensor(view) => of.push(view.tensor),
                Binding::Scalar(value) => of.extend(self.tensors_in(*value)),
                Binding::Instance(_) | Binding::Poison => {}
            }
        }
        for assertion in &mut self.built.asserts[first..] {
            if assertion.of.as_ref().is_some_and(Vec::is_empty) {
                assertion.of = Some(of.clone());
            }
        }
    }

    /// An assertion on data: a truth value that the run looks at before it gives anything out.
    fn assert_at_run(
        &mut self,
        value: ExprId,
        (condition, message): (&'a Expr, Option<&'a StringLiteral>),
        of: Option<Vec<TensorRef>>,
    ) {
        let span = condition.span;
        let name = format!("assert.{}", self.built.asserts.len() + 1);
        let tensor = self.add_statement(name, value, vec![], vec![], span, Role::Hidden);
        let said = match message {
            Some(message) => message.text.clone(),
            None => {
                let text = self.names.text(span);
                let words: Vec<&str> = text.split_whitespace().collect();
                format!("`{}` does not hold", words.join(" "))
            }
        };
        self.built.asserts.push(Assertion {
            value: tensor,
            said,
            span,
            of,
            block: None,
        });
    }

    pub(crate) fn assert_values(&mut self, scope: &Scope<'a>, condition: &'a Expr) -> String {
        let mut names = vec![];
        crate::sema::resolve::forms::names_in(condition, &mut names);
        let mut values = vec![];
        for name in names {
            let known = match self.binding(scope, name) {
                Some(Binding::Scalar(value)) => match self.arena.as_size(value) {
                    Some(size) => Some(size.to_string()),
                    None => self.arena.as_number(value).map(|n| n.to_string()),
                },
                _ => scope.letters.get(name).map(|(size, _)| size.to_string()),
            };
            values.extend(known.map(|value| format!("`{name}` is {value}")));
        }
        values.join(", ")
    }

    /// Reports dims whose numbers a run would need. Data that do not fit their declaration say no sizes: they are reported alone.
    pub(crate) fn require_sizes(&mut self) {
        if self.report.has("E0704") {
            return;
        }
        for (id, entity) in self.names.entities.iter().enumerate() {
            let EntityKind::Dim(None) = entity.kind else {
                continue;
            };
            let Some(Binding::Scalar(value)) =
                self.entities.values.get(&EntityId(id as u32)).copied()
            else {
                continue;
            };
            if self
                .arena
                .as_size(value)
                .is_none_or(|size| size.known().is_some())
            {
                continue;
            }
            let name = &entity.name.text;
            let users: Vec<String> = self
                .built
                .tensors
                .iter()
                .filter(|t| {
                    t.role == Role::Input
                        && t.shape
                            .iter()
                            .any(|s| s.dims().iter().any(|d| **d == **name))
                })
                .map(|t| format!("`{}`", t.name))
                .collect();
            let help = match entity.file.0 {
                0 => format!("give it one: `--dim {name}=…`"),
                _ => format!("give it one in its file: `dim {name} = …`"),
            };
            let mut error = Diagnostic::error("E0714", format!("the size `{name}` is not known"))
                .at(entity.name.span, "it has no value")
                .help(help);
            if !users.is_empty() {
                error = error.help(format!(
                    "or bind data to {}: `--input name=file`",
                    users.join(" or ")
                ));
            }
            self.report.push(error);
        }
    }
}
