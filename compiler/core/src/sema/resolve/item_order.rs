//! The order in which items are checked: every name after what it uses. Cycles are reported with their way.
//!
//! Must not know sizes or types.
//!
//! ```text
//! a uses b, b uses a   =>   E0203: a → b → a
//! ```

use crate::sema::{
    calls::callee::{Callable, wrong_results},
    library::operands::wrong_parts,
    report::Report,
    resolve::Readings,
    resolve::Resolver,
    resolve::cycles::sort,
    resolve::forms::{item_name, stands_in, unbracket},
    resolve::names::{Declared, EntityId, EntityKind, Found, Names},
    resolve::static_scope::{StaticScope, Unit},
    resolve::walk::{Walk, walk_source},
    train::data_override::{needed_by_wanted, with_replacements},
    train::training::Mode,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Expr, ExprKind, Item, ItemKind, Statement, Target, Type};
use std::collections::HashSet;

/// The order in which one pass of the checker reads entities.
pub(crate) struct Order {
    /// Every entity that the pass needs, after what it uses.
    pub(crate) entities: Vec<EntityId>,
    /// Entities that are defined by themselves.
    pub(crate) circular: HashSet<EntityId>,
}

/// Puts entities in the order of their uses, those alone that the mode asks for, and reports cycles.
pub(crate) fn order(
    names: &Names<'_>,
    readings: &Readings<'_>,
    mode: &Mode,
    report: &mut Report,
) -> Order {
    let replaced = with_replacements(names, mode, &readings.uses);
    let edges = replaced.as_deref().unwrap_or(&readings.uses);
    let (order, cycles) = sort(edges);
    let mut circular = HashSet::new();
    for cycle in cycles {
        let member = |(member, _): &(usize, Span)| EntityId(*member as u32);
        let members: Vec<EntityId> = cycle.iter().map(member).collect();
        let functions = members.iter().all(|id| names.callable(*id).is_some());
        let name = |id: &EntityId| names.entity(*id).name;
        let spelled: Vec<&str> = members.iter().map(|id| name(id).text.as_str()).collect();
        let code = if functions { "E0504" } else { "E0203" };
        let place = members.first().map(|id| name(id).span);
        report.extend(place.map(|place| cycle_error(code, &spelled, &cycle, place)));
        circular.extend(members);
    }
    let needed = needed_by_wanted(names, mode, edges);
    let entities = order.into_iter().filter(|number| needed[*number]);
    Order {
        entities: entities.map(|number| EntityId(number as u32)).collect(),
        circular,
    }
}

/// Returns the error for a cycle: numbers with the place of the use of the next one. `names` are those of its members.
fn cycle_error(
    code: &'static str,
    names: &[&str],
    cycle: &[(usize, Span)],
    place: Span,
) -> Diagnostic {
    let way: Vec<String> = names
        .iter()
        .chain(names.first())
        .map(|n| format!("`{n}`"))
        .collect();
    let what = if code == "E0504" {
        "calls itself"
    } else {
        "is defined by itself"
    };
    let mut error = Diagnostic::error(code, format!("`{}` {what}: {}", names[0], way.join(" → ")))
        .at(place, "defined here");
    for (at, (_, span)) in cycle.iter().enumerate().take(8) {
        error = error.at(
            *span,
            format!("`{}` uses `{}`", names[at], names[(at + 1) % names.len()]),
        );
    }
    if code == "E0203" {
        error = error.help(
            "a name has one value; what changes from round to round is a `state` in a `repeat`",
        );
    }
    error
}

impl<'a> Resolver<'a> {
    /// Walks all items.
    pub(crate) fn walk(&mut self) {
        for number in 0..self.names.entities.len() {
            let id = EntityId(number as u32);
            let unit = self.walk_entity(id);
            if unit.failed {
                self.readings.failed.insert(id);
            }
            let uses = unit.uses.iter();
            let uses = uses.map(|(id, span)| (id.0 as usize, *span)).collect();
            self.readings.uses.push(uses);
        }
        self.walk_items();
    }

    /// Reports items of a body, or of a block, that are defined by themselves.
    pub(crate) fn report_cycle(&mut self, body: &[Item], cycle: &[(usize, Span)]) {
        if let [(only, _)] = cycle
            && let ItemKind::Statement(Statement::Repeat { counter, bound, .. }) = &body[*only].kind
            && stands_in(bound, &counter.text)
        {
            let name = &counter.text;
            self.report.push(
                Diagnostic::error(
                    "E0203",
                    format!("the bound of the counter `{name}` names `{name}` itself"),
                )
                .at(bound.span, format!("`{name}` is not yet known here"))
                .at(counter.span, "the counter")
                .help(
                    "give the counter a name that nothing else has, also no size of the signature",
                ),
            );
            return;
        }
        let spelled: Vec<&str> = cycle.iter().map(|(n, _)| item_name(&body[*n])).collect();
        let place = cycle.first().map(|(first, _)| body[*first].span);
        self.report
            .extend(place.map(|place| cycle_error("E0203", &spelled, cycle, place)));
    }

    fn walk_entity(&mut self, id: EntityId) -> Unit {
        let file = self.names.entity(id).file;
        let scope = StaticScope::of_file(file);
        if self.names.function_formal(id).is_some() {
            return Unit::default();
        }
        match self.names.entity(id).kind {
            EntityKind::Poison => Unit {
                failed: true,
                ..Unit::default()
            },
            EntityKind::Repeat(repeat) => self.walk_repeat(&scope, repeat, 0),
            EntityKind::OfRepeat { repeat, visible } => Unit {
                uses: vec![(repeat, visible.name().span)],
                ..Unit::default()
            },
            EntityKind::Function(function) => {
                self.walk_callable(id, file, Callable::of_function(function))
            }
            EntityKind::Module(module) => self.walk_callable(id, file, Callable::of_module(module)),
            EntityKind::Instance(declared) => self.walk_instances(&scope, declared),
            EntityKind::Dim(value) => {
                let mut walk = Walk::new(self, &scope);
                if let Some(value) = value {
                    walk.closed(value);
                }
                walk.unit
            }
            EntityKind::Input { ty, source, .. } => self.walk_input(&scope, ty, source),
            EntityKind::Definition {
                target, ty, value, ..
            } => self.walk_definition(&scope, target, ty, value),
            EntityKind::Scatter {
                target, ty, value, ..
            } => self.walk_scatter(&scope, target, ty, value),
            EntityKind::Part {
                targets, ty, value, ..
            } => self.walk_several(&scope, targets, ty, value),
        }
    }

    /// The type and source of an input or param.
    pub(crate) fn walk_input(
        &mut self,
        scope: &StaticScope<'a>,
        ty: &'a Type,
        source: Option<&'a Expr>,
    ) -> Unit {
        let is_source = source.map(|s| self.names_source(scope, s));
        let mut walk = Walk::new(self, scope);
        if let Type::Tensor {
            shape: Some(shape), ..
        } = ty
        {
            walk.size_list(shape);
        }
        match (source, is_source) {
            (Some(expr), Some(true)) => walk_source(&mut walk, expr),
            (Some(expr), _) => walk.value(expr),
            _ => {}
        }
        walk.unit
    }

    /// `param head: linear(4, 2)`.
    pub(crate) fn walk_instances(
        &mut self,
        scope: &StaticScope<'a>,
        declared: Declared<'a>,
    ) -> Unit {
        let (name, span) = (&declared.module.text, declared.module.span);
        let module = self.names.module(scope.file, name).map(|(id, _)| id);
        let found = self.names.find(scope.file, name);
        let mut walk = Walk::new(self, scope);
        walk.refer_outside(name, span);
        match (module, found) {
            (Some(id), _) if walk.resolver.names.function_formal(id).is_some() => {
                walk.no_function(id, declared.arguments, span);
            }
            (Some(id), _) => walk.unit.uses.push((id, span)),
            (None, Found::Nothing) => {
                walk.unit.failed = true;
                walk.resolver.unknown(scope.file, name, span, &[], true);
            }
            (None, Found::Poison) => walk.unit.failed = true,
            _ => walk.fail(
                Diagnostic::error("E0510", format!("`{name}` is not a module"))
                    .at(span, "a param is a tensor or an instance of a module"),
            ),
        }
        for argument in declared.arguments {
            walk.closed(&argument.value);
        }
        walk.size_list(declared.shape.map(Vec::as_slice).unwrap_or_default());
        walk.unit
    }

    /// `a, b = f(x)`.
    pub(crate) fn walk_several(
        &mut self,
        scope: &StaticScope<'a>,
        targets: &'a [Target],
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Unit {
        let mut walk = Walk::new(self, scope);
        walk.several = true;
        walk.value(value);
        let mut unit = walk.unit;
        if unit.failed {
            return unit;
        }
        let called = match &*unbracket(value).kind {
            ExprKind::Call { callee, .. } => self.names.callee_of(scope.file, &scope.inner, callee),
            _ => None,
        };
        let error = |what: &str| Diagnostic::error("E0505", what.to_owned());
        if let Some(target) = targets.iter().find(|target| target.positions.is_some()) {
            self.report.push(
                error("several names are whole tensors and have no positions")
                    .at(target.span, "positions here")
                    .help("write the names alone, and a definition with positions behind it"),
            );
        } else if let Some(Type::Tensor { span, .. } | Type::Module { span, .. }) = ty {
            self.report.push(
                error("a type cannot say what several names are")
                    .at(*span, "one type for several names")
                    .help("leave it out: the function says what its results are"),
            );
        } else if let Some(operation) = self.names.operation_of(scope.file, value) {
            if operation.results.len() == targets.len() {
                return unit;
            }
            self.report
                .push(wrong_parts(operation, targets.len(), value.span));
        } else {
            match called {
                None => self.report.push(
                    error("several names need a call of a function with as many results")
                        .at(value.span, "this is one value")
                        .help("write one definition for each name"),
                ),
                Some((_, callable)) if callable.results.len() != targets.len() => {
                    self.report
                        .push(wrong_results(callable, targets.len(), value.span));
                }
                Some(_) => return unit,
            }
        }
        unit.failed = true;
        unit
    }

    /// Returns whether an expression names a source where it stands.
    pub(crate) fn names_source(&self, scope: &StaticScope<'a>, expr: &'a Expr) -> bool {
        let named = self.names.source_of(scope.file, expr);
        named.is_some_and(|name| !scope.locals.contains_key(name))
    }

    /// The error that the call behind one name gives several results.
    fn several_for_one(&self, scope: &StaticScope<'a>, value: &'a Expr) -> Option<Diagnostic> {
        let ExprKind::Call { callee, .. } = &*unbracket(value).kind else {
            return None;
        };
        match self.names.callee_of(scope.file, &scope.inner, callee) {
            Some((_, callable)) => {
                (callable.results.len() > 1).then(|| wrong_results(callable, 1, value.span))
            }
            None => {
                let operation = self.names.operation_of(scope.file, value)?;
                (operation.results.len() > 1).then(|| wrong_parts(operation, 1, value.span))
            }
        }
    }

    pub(crate) fn walk_definition(
        &mut self,
        scope: &StaticScope<'a>,
        target: &'a Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Unit {
        if let Some(Type::Module { span, .. }) = ty {
            self.report.push(
                Diagnostic::error("E0510", "a definition is not an instance of a module")
                    .at(*span, "a module as a type")
                    .help("declare the instance as a param, and apply it"),
            );
            return Unit {
                failed: true,
                ..Unit::default()
            };
        }
        if let Some(error) = self.several_for_one(scope, value) {
            self.report.push(error);
            return Unit {
                failed: true,
                ..Unit::default()
            };
        }
        let is_source = self.names_source(scope, value);
        let scope = scope.of_statement(value);
        let mut walk = Walk::new(self, &scope);
        if is_source {
            if let Some(Type::Tensor {
                shape: Some(shape), ..
            }) = ty
            {
                walk.size_list(shape);
            }
            for position in target.positions.iter().flatten() {
                walk.bind(position, true);
            }
            walk_source(&mut walk, value);
        } else {
            walk.definition(target, ty, value);
        }
        walk.unit
    }

    /// Walks what has no name: assertions.
    fn walk_items(&mut self) {
        let sources = self.names.sources;
        let Some(program) = sources.files.first() else {
            return;
        };
        let scope = StaticScope::of_file(FileId(0));
        for (number, item) in program.ast.items.iter().enumerate() {
            if let ItemKind::Assert { condition, .. } = &item.kind {
                let mut walk = Walk::new(self, &scope);
                walk.closed(condition);
                if walk.unit.failed {
                    self.readings.failed_items.insert(number);
                }
            }
            if let ItemKind::Output { name, .. } = &item.kind {
                Walk::new(self, &scope).refer_outside(&name.text, name.span);
            }
            if let ItemKind::Train(train) = &item.kind {
                let mut walk = Walk::new(self, &scope);
                for expr in crate::sema::train::lines::expressions_of(train) {
                    walk.value(expr);
                }
                if walk.unit.failed {
                    self.readings.failed_items.insert(number);
                }
            }
        }
    }
}
