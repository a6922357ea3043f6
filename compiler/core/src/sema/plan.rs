//! The order in which items are checked: every name after what it uses. Cycles are reported with their way.
//!
//! Must not know sizes or types.
//!
//! ```text
//! a uses b, b uses a   =>   E0203: a → b → a
//! ```

use super::{
    Checker,
    calls::formal_shape,
    expr::unsupported,
    names::{EntityId, EntityKind, Shape},
    order::{defined_in, item_name, sort},
    resolve::{Local, StaticScope, Unit, Walk},
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{
    Expr, ExprKind, Formal, Function, FunctionBody, Item, ItemKind, Position, Role, Statement,
    Target, Type,
};
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Walks all items, and puts entities in the order of their uses.
    pub(super) fn plan(&mut self) {
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
        let edges: Vec<Vec<(usize, Span)>> = units
            .iter()
            .map(|unit| {
                unit.uses
                    .iter()
                    .map(|(id, span)| (id.0 as usize, *span))
                    .collect()
            })
            .collect();
        let (order, cycles) = sort(&edges);
        for cycle in cycles {
            let members: Vec<EntityId> = cycle
                .iter()
                .map(|(member, _)| EntityId(*member as u32))
                .collect();
            let functions = members
                .iter()
                .all(|id| matches!(self.entity(*id).kind, EntityKind::Function(_)));
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
        self.order = order
            .into_iter()
            .map(|number| EntityId(number as u32))
            .collect();
    }

    fn report_cycle(
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
            rest: false,
        };
        match self.entity(id).kind {
            EntityKind::Poison => Unit {
                failed: true,
                ..Unit::default()
            },
            EntityKind::Function(function) => self.walk_function(id, file, function),
            EntityKind::Dim(value) => {
                let mut walk = Walk::new(self, &scope);
                if let Some(value) = value {
                    walk.closed(value);
                }
                walk.unit
            }
            EntityKind::Input { ty, source, .. } => {
                let is_source = source.map(|s| self.source_static(&scope, s));
                let mut walk = Walk::new(self, &scope);
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
            EntityKind::Definition {
                target, ty, value, ..
            } => self.walk_definition(&scope, target, ty, value),
        }
    }

    fn source_static(&self, scope: &StaticScope<'a>, expr: &'a Expr) -> bool {
        let scope_file = super::expr::Scope::file(scope.file);
        self.source_name(&scope_file, expr)
            .is_some_and(|name| !scope.locals.contains_key(name))
    }

    fn walk_definition(
        &mut self,
        scope: &StaticScope<'a>,
        target: &'a Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Unit {
        if let Some(Type::Module { span, .. }) = ty {
            self.report.push(unsupported("E0601", "a module", *span));
            return Unit {
                failed: true,
                ..Unit::default()
            };
        }
        let is_source = self.source_static(scope, value);
        let mut inner = value;
        while let ExprKind::Bracket(next) = &*inner.kind {
            inner = next;
        }
        let mut walk = Walk::new(self, scope);
        if is_source {
            for position in target.positions.iter().flatten() {
                walk.bind(position, true);
            }
            if let Some(Type::Tensor {
                shape: Some(shape), ..
            }) = ty
            {
                walk.size_list(shape);
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
        }
    }

    fn walk_function(&mut self, id: EntityId, file: FileId, function: &'a Function) -> Unit {
        let mut unit = Unit::default();
        let letters = self.letters(file, function);
        let mut scope = StaticScope {
            file,
            locals: letters
                .iter()
                .map(|letter| (*letter, Local::Letter))
                .collect(),
            rest: false,
        };
        for formal in &function.formals {
            let expression = matches!(function.body, FunctionBody::Expression(_));
            let local = match formal_shape(formal) {
                Some(_) => Local::Tensor,
                None if expression && formal.ty.is_none() => Local::Any,
                None => Local::Scalar,
            };
            if let Some(first) = function
                .formals
                .iter()
                .find(|f| f.name.text == formal.name.text)
                .filter(|first| first.name.span != formal.name.span)
            {
                self.report.push(
                    Diagnostic::error(
                        "E0202",
                        format!("`{}` stands twice in the signature", formal.name.text),
                    )
                    .at(formal.name.span, "again here")
                    .at(first.name.span, "first here"),
                );
                unit.failed = true;
            }
            scope.locals.insert(&formal.name.text, local);
        }
        let has_rest = |formal: &Formal| {
            formal_shape(formal)
                .is_some_and(|shape| shape.iter().any(|p| matches!(p, Position::Rest(_))))
        };
        scope.rest = function.formals.iter().any(has_rest);
        let mut signature = Walk::new(self, &scope);
        for formal in &function.formals {
            if let Some(shape) = formal_shape(formal) {
                signature.size_list(shape);
            }
            if let Some(default) = &formal.default {
                signature.closed(default);
            }
        }
        merge(&mut unit, signature.unit);
        match &function.body {
            FunctionBody::Expression(value) => {
                let mut walk = Walk::new(self, &scope);
                walk.value(value);
                merge(&mut unit, walk.unit);
            }
            FunctionBody::Block { results, body } => {
                let [result] = results.as_slice() else {
                    if file.0 == 0 {
                        let span = results.get(1).map_or(function.name.span, |r| r.name.span);
                        self.report.push(unsupported(
                            "E0602",
                            "a function with several results",
                            span,
                        ));
                    }
                    unit.failed = true;
                    return unit;
                };
                self.walk_body(id, scope, function, result, body, &mut unit);
            }
        }
        unit
    }

    fn walk_body(
        &mut self,
        id: EntityId,
        mut scope: StaticScope<'a>,
        function: &'a Function,
        result: &'a Formal,
        body: &'a [Item],
        unit: &mut Unit,
    ) {
        let in_program = scope.file.0 == 0;
        let mut names: BTreeMap<&'a str, Span> = BTreeMap::new();
        for (number, item) in body.iter().enumerate() {
            let (name, shape) = match &item.kind {
                ItemKind::Dim { name, .. } => (name, Shape::Scalar),
                ItemKind::Const { target, ty, value } => (
                    &target.name,
                    self.local_shape(&scope, function, body, target, ty.as_ref(), value, 0),
                ),
                ItemKind::Statement(Statement::Definition {
                    role: Role::Plain,
                    targets,
                    ty,
                    value,
                    ..
                }) if targets.len() == 1 => (
                    &targets[0].name,
                    self.local_shape(&scope, function, body, &targets[0], ty.as_ref(), value, 0),
                ),
                ItemKind::Assert { .. } => continue,
                other => {
                    let (code, what, span) = match other {
                        ItemKind::Param { name, .. } => {
                            ("E0601", "a param in a function", name.span)
                        }
                        ItemKind::Statement(Statement::Scatter { span, .. }) => {
                            ("E0604", "a scatter", *span)
                        }
                        ItemKind::Statement(Statement::Repeat { span, .. }) => {
                            ("E0605", "`repeat`", *span)
                        }
                        ItemKind::Statement(Statement::Definition { targets, span, .. })
                            if targets.len() > 1 =>
                        {
                            ("E0602", "a definition of several results", *span)
                        }
                        ItemKind::Error => {
                            unit.failed = true;
                            continue;
                        }
                        _ => ("E0605", "this in a function", item.span),
                    };
                    for name in defined_in(item) {
                        scope
                            .locals
                            .entry(name)
                            .or_insert(Local::Item(number, Shape::Poison));
                    }
                    let span = self.head(span);
                    let diagnostic = unsupported(code, what, span);
                    if in_program {
                        self.report.push(diagnostic);
                    } else {
                        self.on_call.entry(id).or_insert(diagnostic);
                    }
                    unit.failed = true;
                    continue;
                }
            };
            let formal = function
                .formals
                .iter()
                .find(|f| f.name.text == name.text)
                .map(|f| f.name.span);
            if let Some(first) = names.get(name.text.as_str()).copied().or(formal) {
                self.report.push(
                    Diagnostic::error("E0202", format!("`{}` is defined twice", name.text))
                        .at(name.span, "defined again here")
                        .at(first, "first defined here")
                        .help("a name has one definition; give one of them another name"),
                );
                unit.failed = true;
                continue;
            }
            names.insert(&name.text, name.span);
            scope.locals.insert(&name.text, Local::Item(number, shape));
        }
        if !names.contains_key(result.name.text.as_str()) && !unit.failed {
            self.report.push(
                Diagnostic::error(
                    "E0508",
                    format!(
                        "`{}` never defines its result `{}`",
                        function.name.text, result.name.text
                    ),
                )
                .at(result.name.span, "promised here")
                .help(format!(
                    "define it in the body: `{}[…] = …`",
                    result.name.text
                )),
            );
            unit.failed = true;
        }
        if let Some(shape) = formal_shape(result) {
            let mut walk = Walk::new(self, &scope);
            walk.size_list(shape);
            merge(unit, walk.unit);
        }
        let mut edges = vec![vec![]; body.len()];
        for (number, item) in body.iter().enumerate() {
            let inner = match &item.kind {
                ItemKind::Dim { value, .. } => {
                    let mut walk = Walk::new(self, &scope);
                    if let Some(value) = value {
                        walk.closed(value);
                    }
                    walk.unit
                }
                ItemKind::Const { target, ty, value } => {
                    self.walk_definition(&scope, target, ty.as_ref(), value)
                }
                ItemKind::Statement(Statement::Definition {
                    targets, ty, value, ..
                }) if targets.len() == 1 => {
                    self.walk_definition(&scope, &targets[0], ty.as_ref(), value)
                }
                ItemKind::Assert { condition } => {
                    let mut walk = Walk::new(self, &scope);
                    walk.closed(condition);
                    walk.unit
                }
                _ => continue,
            };
            edges[number] = inner.items.clone();
            merge(unit, inner);
        }
        let (order, cycles) = sort(&edges);
        for cycle in cycles {
            let spelled: Vec<&str> = cycle.iter().map(|(n, _)| item_name(&body[*n])).collect();
            self.report_cycle("E0203", &spelled, &cycle, |_, n| body[n].span);
            unit.failed = true;
        }
        self.plans.insert(id, order);
    }

    /// Whether a definition of a body is a scalar or a tensor.
    #[allow(clippy::too_many_arguments)]
    fn local_shape(
        &self,
        scope: &StaticScope<'a>,
        function: &'a Function,
        body: &'a [Item],
        target: &Target,
        ty: Option<&Type>,
        value: &Expr,
        depth: usize,
    ) -> Shape {
        let local = match &*self.shaped_like(scope.file, value).kind {
            ExprKind::Name(name) if depth < 64 && target.positions.is_none() => {
                if let Some(formal) = function.formals.iter().find(|f| f.name.text == *name) {
                    Some(if formal_shape(formal).is_some() {
                        Shape::Tensor
                    } else {
                        Shape::Scalar
                    })
                } else {
                    body.iter().find_map(|item| match &item.kind {
                        ItemKind::Statement(Statement::Definition {
                            targets, ty, value, ..
                        }) if targets.len() == 1 && targets[0].name.text == *name => {
                            let next = &targets[0];
                            Some(self.local_shape(
                                scope,
                                function,
                                body,
                                next,
                                ty.as_ref(),
                                value,
                                depth + 1,
                            ))
                        }
                        _ => None,
                    })
                }
            }
            _ => None,
        };
        local.unwrap_or_else(|| self.definition_shape(scope.file, target, ty, value, 0))
    }
}

fn walk_source<'a>(walk: &mut Walk<'_, 'a>, expr: &'a Expr) {
    if let ExprKind::Call { arguments, .. } = &*expr.kind {
        for argument in arguments {
            if !matches!(&*argument.value.kind, ExprKind::String(_)) {
                walk.value(&argument.value);
            }
        }
    }
}

fn merge(unit: &mut Unit, other: Unit) {
    unit.uses.extend(other.uses);
    unit.failed |= other.failed;
}
