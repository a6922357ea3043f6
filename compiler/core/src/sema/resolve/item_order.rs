//! The order in which items are checked: every name after what it uses. Cycles are reported with their way.
//!
//! Must not know sizes or types.
//!
//! ```text
//! a uses b, b uses a   =>   E0203: a → b → a
//! ```

use crate::sema::{
    Checker,
    calls::callee::Callable,
    resolve::cycles::sort,
    resolve::forms::unbracket,
    resolve::names::{Declared, EntityId, EntityKind, Found},
    resolve::static_scope::{StaticScope, Unit},
    resolve::walk::{Walk, walk_source},
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Expr, ExprKind, ItemKind, Target, Type};
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Walks all items, and puts entities in the order of their uses.
    pub(crate) fn plan(&mut self) {
        let mut units = vec![];
        for number in 0..self.entities.len() {
            let id = EntityId(number as u32);
            let unit = self.walk_entity(id);
            if unit.failed {
                self.failed.insert(id);
            }
            units.push(unit);
        }
        self.walk_items();
        let mut edges: Vec<Vec<(usize, Span)>> = units
            .iter()
            .map(|unit| {
                unit.uses
                    .iter()
                    .map(|(id, span)| (id.0 as usize, *span))
                    .collect()
            })
            .collect();
        self.use_replacements(&mut edges);
        let (order, cycles) = sort(&edges);
        for cycle in cycles {
            let members: Vec<EntityId> = cycle
                .iter()
                .map(|(member, _)| EntityId(*member as u32))
                .collect();
            let functions = members.iter().all(|id| self.callable(*id).is_some());
            let names: Vec<&str> = members
                .iter()
                .map(|id| self.entity(*id).name.text.as_str())
                .collect();
            let code = if functions { "E0504" } else { "E0203" };
            self.report_cycle(code, &names, &cycle, |c, member| {
                c.entities[member].name.span
            });
            self.failed.extend(members);
        }
        let needed = self.needed_by_wanted(&edges);
        self.order = order
            .into_iter()
            .filter(|number| needed[*number])
            .map(|number| EntityId(number as u32))
            .collect();
    }

    pub(crate) fn report_cycle(
        &mut self,
        code: &'static str,
        names: &[&str],
        cycle: &[(usize, Span)],
        place: impl Fn(&Self, usize) -> Span,
    ) {
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
        let Some((first, _)) = cycle.first() else {
            return;
        };
        let mut error =
            Diagnostic::error(code, format!("`{}` {what}: {}", names[0], way.join(" → ")))
                .at(place(self, *first), "defined here");
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
        self.report.push(error);
    }

    fn walk_entity(&mut self, id: EntityId) -> Unit {
        let file = self.entity_files[id.0 as usize];
        let scope = StaticScope {
            file,
            locals: BTreeMap::new(),
            inner: BTreeMap::new(),
            owned: BTreeMap::new(),
            rest: false,
        };
        match self.entity(id).kind {
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
            } => {
                let mut walk = Walk::new(self, &scope);
                walk.scatter(target, ty, value);
                walk.unit
            }
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
        let is_source = source.map(|s| self.source_static(scope, s));
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
        let module = self.module(scope.file, name).map(|(id, _)| id);
        let found = self.find(scope.file, name);
        let mut walk = Walk::new(self, scope);
        match (module, found) {
            (Some(id), _) => walk.unit.uses.push((id, span)),
            (None, Found::Nothing) => {
                walk.unit.failed = true;
                walk.checker.unknown(scope.file, name, span, &[], true);
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
        walk.value(value);
        let mut unit = walk.unit;
        if unit.failed {
            return unit;
        }
        let called = match &*unbracket(value).kind {
            ExprKind::Call { callee, .. } => self.callee_of(scope.file, &scope.inner, callee),
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
        } else if let Some(operation) = self.operation_of(scope.file, value) {
            if operation.results.len() == targets.len() {
                return unit;
            }
            self.wrong_parts(operation, targets.len(), value.span);
        } else {
            match called {
                None => self.report.push(
                    error("several names need a call of a function with as many results")
                        .at(value.span, "this is one value")
                        .help("write one definition for each name"),
                ),
                Some((_, callable)) if callable.results.len() != targets.len() => {
                    self.wrong_results(callable, targets.len(), value.span);
                }
                Some(_) => return unit,
            }
        }
        unit.failed = true;
        unit
    }

    pub(crate) fn source_static(&self, scope: &StaticScope<'a>, expr: &'a Expr) -> bool {
        let scope_file = crate::sema::expressions::scope::Scope::file(scope.file);
        self.source_name(&scope_file, expr)
            .is_some_and(|name| !scope.locals.contains_key(name))
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
        let is_source = self.source_static(scope, value);
        let mut walk = Walk::new(self, scope);
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
        let sources = self.sources;
        let Some(program) = sources.files.first() else {
            return;
        };
        let scope = StaticScope {
            file: FileId(0),
            locals: BTreeMap::new(),
            inner: BTreeMap::new(),
            owned: BTreeMap::new(),
            rest: false,
        };
        for (number, item) in program.ast.items.iter().enumerate() {
            if let ItemKind::Assert { condition } = &item.kind {
                let mut walk = Walk::new(self, &scope);
                walk.closed(condition);
                if walk.unit.failed {
                    self.failed_items.insert(number);
                }
            }
            if let ItemKind::Train(train) = &item.kind {
                let mut walk = Walk::new(self, &scope);
                for expr in crate::sema::train::block::expressions_of(train) {
                    walk.value(expr);
                }
                if walk.unit.failed {
                    self.failed_items.insert(number);
                }
            }
        }
    }
}
