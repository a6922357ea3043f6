//! The factor on an optimizer's rate, as an untyped number made of the numbers of a step; and how optimizers and schedules are
//! found by their names.
//!
//! Such numbers are computed in f64 and rounded where they meet a tensor. Must not know params or gradients.
//!
//! ```text
//! schedule: warmup(steps: 10) then poly(power: 2), 100 steps in all
//!   =>   where(step < 10, (step + 1) / 10, (1 - (step - 10) / 90)^2)
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::callee::{Body, Callable},
    definitions::tensors::{Definition, SourceForm, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, Scope},
    resolve::names::EntityId,
    sizes::size::Size,
    train::block::Settings,
    train::rules::{NUMBERS, length_name, schedule_name},
    train::training::{EPOCH, STEP},
};
use ein_plan::{DType, Function, Source};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{Argument, Expr, ExprKind, Formal, Name};
use std::collections::BTreeSet;

/// The rule that `name(arguments)` in a block names.
#[derive(Clone, Copy)]
pub(crate) struct Rule<'a> {
    pub(crate) entity: EntityId,
    pub(crate) callable: Callable<'a>,
    pub(crate) name: &'a str,
    pub(crate) arguments: &'a [Argument],
    pub(crate) span: Span,
}

/// A schedule of a block, as the factor that it has become.
pub(crate) struct Rated<'a> {
    pub(crate) rule: Rule<'a>,
    pub(crate) value: ExprId,
    /// Its arguments, with the place of what was given, or of the call.
    pub(crate) arguments: Vec<(&'a str, ExprId, Span)>,
}

impl<'a> Checker<'a> {
    /// An optimizer or schedule by what a block says: of the program, of a file that it imports, or of the library.
    pub(crate) fn rule(
        &mut self,
        expr: &'a Expr,
        what: &str,
        library: &str,
        naming: fn(&str) -> String,
    ) -> Option<Rule<'a>> {
        let named = match &*expr.kind {
            ExprKind::Name(name) => Some((name, &[][..])),
            ExprKind::Call { callee, arguments } => match &*callee.kind {
                ExprKind::Name(name) => Some((name, arguments.as_slice())),
                _ => None,
            },
            _ => None,
        };
        let Some((name, arguments)) = named else {
            let known = self.known_rules(library, naming);
            self.report.push(
                Diagnostic::error("E0623", format!("this names no {what}"))
                    .at(expr.span, "expected a name, or a call with arguments")
                    .help(format!("there are {}", known.join(", "))),
            );
            return None;
        };
        let found = self.rule_named(name, library, naming);
        let Some((entity, callable)) = found.and_then(|id| Some((id, self.names.callable(id)?)))
        else {
            let known = self.known_rules(library, naming);
            let error = Diagnostic::error("E0623", format!("there is no {what} `{name}`"))
                .at(expr.span, "no such name");
            let near = did_you_mean(name, known.iter().map(String::as_str));
            self.report.push(match near {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None if known.is_empty() => error,
                None => error.help(format!("there are {}", known.join(", "))),
            });
            return None;
        };
        if self.is_failed(entity) {
            if let Some(diagnostic) = self.readings.on_call.get(&entity) {
                let diagnostic = diagnostic.clone();
                self.report.push(diagnostic.at(expr.span, "used here"));
            }
            return None;
        }
        Some(Rule {
            entity,
            callable,
            name,
            arguments,
            span: expr.span,
        })
    }

    /// The names of the program's optimizers or schedules, and of the library's; once where both have one.
    fn known_rules(&self, library: &str, naming: fn(&str) -> String) -> Vec<String> {
        let prefix = naming("");
        let files = self.names.sources.libraries.get(library).copied();
        let files = std::iter::once(FileId(0)).chain(files);
        let names: BTreeSet<&str> = files
            .flat_map(|file| self.names.files[file.0 as usize].names.keys())
            .filter_map(|name| name.strip_prefix(&prefix))
            .collect();
        names.into_iter().map(str::to_owned).collect()
    }

    fn rule_named(
        &self,
        name: &str,
        library: &str,
        naming: fn(&str) -> String,
    ) -> Option<EntityId> {
        let of = |file: FileId, name: &str| {
            let names = &self.names.files[file.0 as usize].names;
            names.get(naming(name).as_str()).copied()
        };
        let imported = || {
            let (alias, rest) = name.split_once('.')?;
            let (file, _) = self.names.files[0].aliases.get(alias)?;
            of((*file)?, rest)
        };
        of(FileId(0), name)
            .or_else(imported)
            .or_else(|| of(*self.names.sources.libraries.get(library)?, name))
    }

    /// A tensor that the session gives, in every pass the same.
    pub(crate) fn fed(
        &mut self,
        name: String,
        dtype: DType,
        shape: Vec<Size>,
        role: Role,
        span: Span,
    ) -> TensorRef {
        self.add_tensor(Tensor {
            name,
            dtype,
            shape,
            role,
            definition: Definition::Source(SourceForm::Ready(Source::Fed)),
            span,
        })
    }

    /// A number of the step as an untyped whole number.
    pub(crate) fn counter(&mut self, name: &'static str, span: Span) -> ExprId {
        let tensor = match self.training.step.counters.get(name) {
            Some(tensor) => *tensor,
            None => {
                let tensor = self.fed(name.into(), DType::I64, vec![], Role::Input, span);
                self.training.step.counters.insert(name, tensor);
                tensor
            }
        };
        self.untyped(tensor, true)
    }

    pub(crate) fn untyped(&mut self, tensor: TensorRef, whole: bool) -> ExprId {
        let form = Form::Read {
            tensor,
            positions: vec![],
            otherwise: None,
        };
        self.arena.add(form, Ty::Number { whole })
    }

    /// A number without a type: a typed one is kept in f64.
    fn loosen(&mut self, id: ExprId, span: Span) -> Option<ExprId> {
        match self.arena.ty(id) {
            Ty::Number { .. } => Some(id),
            Ty::Typed(DType::Bool) => {
                self.wrong_type("a schedule", "a number", (id, span));
                None
            }
            Ty::Typed(dtype) => {
                let exact = match dtype {
                    DType::F64 => id,
                    _ => self.arena.add(Form::Convert(id), Ty::Typed(DType::F64)),
                };
                let tensor = self.scalar_statement(exact, span);
                Some(self.untyped(tensor, false))
            }
        }
    }

    pub(crate) fn scalar_statement(&mut self, root: ExprId, span: Span) -> TensorRef {
        let name = self.instance_name(FileId(0), "train.number");
        self.add_statement(name, root, vec![], vec![], span, Role::Hidden)
    }

    /// The untyped number that an expression of step numbers is, computed once a step, in `dtype`.
    pub(crate) fn hoisted(&mut self, id: ExprId, dtype: DType) -> Option<ExprId> {
        if self.training.step.hoisting || !dtype.is_float() || !self.counts(id) {
            return None;
        }
        self.training.step.hoisting = true;
        let exact = self.coerce(id, DType::F64, self.training.step.span);
        self.training.step.hoisting = false;
        let tensor = self.scalar_statement(exact?, self.training.step.span);
        let form = Form::Read {
            tensor,
            positions: vec![],
            otherwise: None,
        };
        let read = self.arena.add(form, Ty::Typed(DType::F64));
        Some(match dtype {
            DType::F64 => read,
            _ => self.arena.add(Form::Convert(read), Ty::Typed(dtype)),
        })
    }

    /// Returns whether an untyped expression is a function of the numbers of the step and of nothing else.
    fn counts(&self, id: ExprId) -> bool {
        if self.training.step.counters.is_empty() || !self.arena.free(id).is_empty() {
            return false;
        }
        let (mut open, mut found) = (vec![id], false);
        if !matches!(&*self.arena.form(id), Form::Apply(..)) {
            return false;
        }
        while let Some(next) = open.pop() {
            let form = self.arena.form(next);
            match &*form {
                Form::Read { .. } if matches!(self.arena.ty(next), Ty::Number { .. }) => {
                    found = true;
                }
                Form::Read { .. } | Form::Reduce { .. } => return false,
                _ => open.extend(form.arguments()),
            }
        }
        found
    }

    /// The numbers of a step, for signatures.
    pub(crate) fn numbers(
        &mut self,
        settings: &Settings<'a>,
        step: ExprId,
        total: ExprId,
    ) -> Vec<(&'static str, ExprId)> {
        let unknown = |name: &str| Size::dim(name);
        let per_epoch = settings.steps_per_epoch;
        let per_epoch = per_epoch.map_or_else(|| unknown("steps_per_epoch"), Size::number);
        let per_epoch = self.arena.whole(per_epoch);
        let batch = match settings.over {
            None => Size::number(1),
            Some(_) => settings
                .batch
                .map_or_else(|| unknown("batch"), Size::number),
        };
        let batch = self.arena.whole(batch);
        let epoch = self.counter(EPOCH, settings.head);
        NUMBERS
            .into_iter()
            .zip([step, epoch, total, per_epoch, batch])
            .collect()
    }

    /// The factor on the rate; `None` after an error.
    pub(crate) fn factor(&mut self, settings: &Settings<'a>) -> Option<ExprId> {
        let step = self.counter(STEP, settings.head);
        let total = settings.total_steps;
        let total = total.map_or_else(|| Size::dim("total_steps"), Size::number);
        let total = self.arena.whole(total);
        let mut rules = vec![];
        for expr in &settings.schedule {
            rules.push(self.rule(expr, "schedule", "std.schedule", schedule_name)?);
        }
        let mut rated = vec![];
        let factor = self.chained(settings, &rules, (step, total), &mut rated)?;
        self.check_factor(settings, factor, &rated)?;
        Some(factor)
    }

    fn chained(
        &mut self,
        settings: &Settings<'a>,
        rules: &[Rule<'a>],
        (step, total): (ExprId, ExprId),
        rated: &mut Vec<Rated<'a>>,
    ) -> Option<ExprId> {
        let [rule, rest @ ..] = rules else {
            return Some(self.arena.whole(Size::number(1)));
        };
        let span = rule.span;
        let length = match self.rule_named(rule.name, "std.schedule", length_name) {
            None if !rest.is_empty() => {
                let what = format!("`{}` has no length, so nothing can follow it", rule.name);
                self.report.push(
                    Diagnostic::error("E0623", what)
                        .at(span, "it lasts to the end")
                        .help("only a schedule with `for` can stand before `then`"),
                );
                return None;
            }
            None => None,
            Some(id) => {
                let callable = self.names.callable(id)?;
                let length = self.evaluated_rule(settings, *rule, (id, callable), (step, total))?;
                let length = self.whole_steps(length.value);
                if let Some(steps) = self.arena.as_number(length)
                    && !(steps >= 0.0 && steps.is_finite())
                {
                    let what = format!("`{}` would last {steps} steps", rule.name);
                    let error = Diagnostic::error("E0623", what);
                    (self.report).push(error.at(span, "a length is a finite number, 0 or more"));
                    return None;
                }
                Some(length)
            }
        };
        let (step_of_it, total_of_it) = match (length, rest) {
            (None, _) => (step, total),
            // Behind its end the last one keeps its last value.
            (Some(length), []) => {
                let one = self.arena.whole(Size::number(1));
                let last = self.apply(Function::Sub, vec![length, one], span)?;
                (self.apply(Function::Min, vec![step, last], span)?, length)
            }
            (Some(length), _) => (step, length),
        };
        let this = (rule.entity, rule.callable);
        let made = self.evaluated_rule(settings, *rule, this, (step_of_it, total_of_it))?;
        let value = made.value;
        rated.push(made);
        let (Some(length), [_, ..]) = (length, rest) else {
            return Some(value);
        };
        let after = self.apply(Function::Sub, vec![step, length], span)?;
        let left = self.apply(Function::Sub, vec![total, length], span)?;
        let other = self.chained(settings, rest, (after, left), rated)?;
        let first = self.apply(Function::Lt, vec![step, length], span)?;
        self.apply(Function::Select, vec![first, value, other], span)
    }

    /// A length in whole steps: a part of a step is one.
    fn whole_steps(&mut self, length: ExprId) -> ExprId {
        match self.arena.as_number(length) {
            Some(number) if number.fract() != 0.0 && number.is_finite() => {
                let near = (number - number.round()).abs() <= 1e-9 * number.abs();
                let steps = if near { number.round() } else { number.ceil() };
                self.arena.whole(Size::number(steps as i64))
            }
            _ => length,
        }
    }

    /// The value of a schedule's function.
    fn evaluated_rule(
        &mut self,
        settings: &Settings<'a>,
        rule: Rule<'a>,
        (entity, callable): (EntityId, Callable<'a>),
        (step, total): (ExprId, ExprId),
    ) -> Option<Rated<'a>> {
        let own = callable.formals.len() - NUMBERS.len();
        let shown = Callable {
            formals: &callable.formals[..own],
            name: rule.callable.name,
            ..callable
        };
        let slots = self.match_arguments(shown, rule.arguments, rule.span)?;
        let mut scope = Scope::file(self.names.entity(entity).file);
        let numbers = self.numbers(settings, step, total);
        bind_numbers(&mut scope, callable, &numbers);
        let mut arguments = vec![];
        for (formal, slot) in shown.formals.iter().zip(slots) {
            let given = slot.map(|argument| &argument.value);
            self.bind_setting(&mut scope, rule, formal, given)?;
            let name = formal.name.text.as_str();
            if let Some(Binding::Scalar(value)) = scope.locals.get(name) {
                arguments.push((name, *value, given.map_or(rule.span, |given| given.span)));
            }
        }
        let Body::Expression(body) = callable.body else {
            return None;
        };
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let value = self.expr(
            &mut crate::sema::expressions::scope::Context::new(&scope),
            body,
        );
        let solved = self.close();
        let value = value.filter(|_| solved)?;
        if self.complex_type(value).is_some() {
            self.real_needed(rule.name, (value, body.span));
            return None;
        }
        let value = self.loosen(value, rule.span)?;
        Some(Rated {
            rule,
            value,
            arguments,
        })
    }
}

/// Gives the numbers of a step to the formals behind the rule's own.
pub(crate) fn bind_numbers<'a>(
    scope: &mut Scope<'a>,
    callable: Callable<'a>,
    numbers: &[(&'static str, ExprId)],
) {
    let first = callable.formals.len() - numbers.len();
    let formals: &'a [Formal] = &callable.formals[first..];
    for (formal, (_, value)) in formals.iter().zip(numbers) {
        let name: &'a Name = &formal.name;
        scope.locals.insert(&name.text, Binding::Scalar(*value));
    }
}
