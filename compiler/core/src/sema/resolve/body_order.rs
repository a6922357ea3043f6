//! The walk over functions: what their names are, and the order in which the items of a body are checked.
//!
//! Must not know sizes or types.
//!
//! ```text
//! fn f(x[n]) -> y[n] { y[n] = m * x[n]; m = max[n] x[n] }   =>   m, y
//! ```

use crate::sema::{
    calls::callee::{Body, Callable},
    resolve::Resolver,
    resolve::cycles::{defined_in, sort},
    resolve::forms::formal_shape,
    resolve::names::{Declared, EntityId, EntityKind, Shape},
    resolve::static_scope::{Local, Owned, StaticScope, Unit},
    resolve::walk::Walk,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{
    Expr, ExprKind, Formal, Item, ItemKind, Position, Role, Statement, Target, Type,
};
use std::collections::BTreeMap;

impl<'a> Resolver<'a> {
    pub(crate) fn walk_callable(
        &mut self,
        id: EntityId,
        file: FileId,
        function: Callable<'a>,
    ) -> Unit {
        let mut unit = Unit::default();
        let letters = self.names.letters(file, function);
        let mut scope = StaticScope {
            file,
            locals: letters
                .iter()
                .map(|letter| (*letter, Local::Letter))
                .collect(),
            inner: BTreeMap::new(),
            owned: BTreeMap::new(),
            rest: false,
        };
        for formal in function.options.iter().chain(function.formals) {
            let expression = !function.is_block();
            let local = match formal_shape(formal) {
                Some(_) => Local::Tensor,
                None if expression && formal.ty.is_none() => Local::Any,
                None => Local::Scalar,
            };
            if let Some(first) = function
                .options
                .iter()
                .chain(function.formals)
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
        for formal in function.options.iter().chain(function.formals) {
            if let Some(shape) = formal_shape(formal) {
                signature.size_list(shape);
            }
            if let Some(default) = &formal.default {
                signature.setting(default);
            }
        }
        unit.merge(signature.unit);
        match function.body {
            Body::Expression(value) => {
                let mut walk = Walk::new(self, &scope);
                walk.value(value);
                unit.merge(walk.unit);
            }
            Body::Block(body) => self.walk_body(id, scope, function, body, &mut unit),
        }
        unit
    }

    fn walk_body(
        &mut self,
        id: EntityId,
        mut scope: StaticScope<'a>,
        function: Callable<'a>,
        body: &'a [Item],
        unit: &mut Unit,
    ) {
        let in_program = scope.file.0 == 0;
        let is_module = matches!(self.names.entity(id).kind, EntityKind::Module(_));
        if is_module && !self.check_states(body, "step") {
            unit.failed = true;
        }
        if !self.check_nexts(function, body) {
            unit.failed = true;
        }
        let mut names: BTreeMap<&'a str, Span> = BTreeMap::new();
        for (number, item) in body.iter().enumerate() {
            let defined = match &item.kind {
                ItemKind::Dim { name, .. } => vec![(name, Shape::Scalar)],
                ItemKind::Const { target, ty, value } => vec![(
                    &target.name,
                    self.local_shape(&scope, function, body, target, ty.as_ref(), value, 0),
                )],
                ItemKind::Param { name, ty, .. } if is_module => {
                    if let Some(declared) = Declared::of(ty)
                        && let Some((module, _)) =
                            self.names.module(scope.file, &declared.module.text)
                    {
                        let owned = Owned {
                            module: id,
                            item: number,
                            declared,
                        };
                        scope.inner.insert(&name.text, module);
                        scope.owned.insert(&name.text, owned);
                    }
                    let shape = match ty {
                        Type::Module { .. } => Shape::Function,
                        Type::Tensor { shape: Some(_), .. } => Shape::Tensor,
                        Type::Tensor { shape: None, .. } => Shape::Scalar,
                    };
                    vec![(name, shape)]
                }
                ItemKind::Statement(Statement::Definition {
                    role: Role::Next, ..
                }) if is_module => continue,
                ItemKind::Statement(Statement::Definition {
                    role,
                    targets,
                    ty,
                    value,
                    ..
                }) if *role == Role::Plain || is_module => match targets.as_slice() {
                    [target] => vec![(
                        &target.name,
                        self.local_shape(&scope, function, body, target, ty.as_ref(), value, 0),
                    )],
                    several => several
                        .iter()
                        .enumerate()
                        .map(|(at, target)| {
                            (
                                &target.name,
                                self.names.part_shape(scope.file, &scope.inner, at, value),
                            )
                        })
                        .collect(),
                },
                ItemKind::Statement(Statement::Scatter { target, .. }) => {
                    vec![(&target.name, Shape::Tensor)]
                }
                ItemKind::Statement(repeat @ Statement::Repeat { .. }) => self
                    .names
                    .visible_names(repeat)
                    .into_iter()
                    .map(|v| {
                        (
                            v.name(),
                            self.names.visible_shape(Some(&scope), scope.file, v),
                        )
                    })
                    .collect(),
                ItemKind::Assert { .. } => continue,
                other => {
                    let (code, what, span) = match other {
                        ItemKind::Param { name, .. } => {
                            ("E0510", "a param in a function", name.span)
                        }
                        ItemKind::Statement(Statement::Definition { span, .. }) => {
                            ("E0513", "`state` and `next` outside of a `repeat`", *span)
                        }
                        ItemKind::Error(_) => {
                            unit.failed = true;
                            continue;
                        }
                        _ => ("E0513", "this cannot stand in a function", item.span),
                    };
                    for name in defined_in(item) {
                        scope
                            .locals
                            .entry(name)
                            .or_insert(Local::Item(number, Shape::Poison));
                    }
                    let span = self.names.head(span);
                    let diagnostic = match code {
                        "E0510" => Diagnostic::error(code, what)
                            .at(span, "a function owns nothing")
                            .help("make it a `module`, or pass the param"),
                        _ => Diagnostic::error(code, what)
                            .at(span, "in a function")
                            .help("a state stands in a `repeat`, or in a `module`"),
                    };
                    if in_program {
                        self.report.push(diagnostic);
                    } else {
                        self.readings.on_call.entry(id).or_insert(diagnostic);
                    }
                    unit.failed = true;
                    continue;
                }
            };
            for (name, shape) in defined {
                let formal = function
                    .options
                    .iter()
                    .chain(function.formals)
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
        }
        let complete = !unit.failed;
        for result in function.results {
            if !complete || names.contains_key(result.name.text.as_str()) {
                continue;
            }
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
        let sizes = self.scope_of_sizes(&scope, function);
        for shape in function.results.iter().filter_map(formal_shape) {
            let mut walk = Walk::new(self, &sizes);
            walk.size_list(shape);
            unit.merge(walk.unit);
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
                ItemKind::Param { name, ty, source } if is_module => match Declared::of(ty) {
                    Some(declared) => self.walk_instances(&scope, declared),
                    None => self.walk_input(&scope, ty, source.as_ref()),
                },
                ItemKind::Statement(Statement::Definition {
                    role,
                    targets,
                    ty,
                    value,
                    ..
                }) if *role == Role::Plain || is_module => match targets.as_slice() {
                    [target] => self.walk_definition(&scope, target, ty.as_ref(), value),
                    several => self.walk_several(&scope, several, ty.as_ref(), value),
                },
                ItemKind::Statement(Statement::Scatter {
                    target, ty, value, ..
                }) => {
                    let mut walk = Walk::new(self, &scope);
                    walk.scatter(target, ty.as_ref(), value);
                    walk.unit
                }
                ItemKind::Assert { condition } => {
                    let mut walk = Walk::new(self, &scope);
                    walk.closed(condition);
                    walk.unit
                }
                ItemKind::Statement(repeat @ Statement::Repeat { .. }) => {
                    self.walk_repeat(&scope, repeat, body.len())
                }
                _ => continue,
            };
            edges[number] = inner.items.clone();
            unit.merge(inner);
        }
        let (order, cycles) = sort(&edges);
        for cycle in cycles {
            self.report_cycle(body, &cycle);
            unit.failed = true;
        }
        if is_module {
            let owned = owned(body, &edges, &order);
            self.readings.owned.insert(id, owned);
        }
        self.readings.plans.insert(id, order);
    }

    /// Returns the names that the sizes of results may use. A letter of the signature stays a letter there, also where the body
    /// defines a tensor of that name.
    fn scope_of_sizes(&self, scope: &StaticScope<'a>, function: Callable<'a>) -> StaticScope<'a> {
        let mut sizes = scope.clone();
        for letter in self.names.letters(scope.file, function) {
            let local = sizes.locals.entry(letter).or_insert(Local::Letter);
            if !matches!(local, Local::Scalar | Local::Item(_, Shape::Scalar)) {
                *local = Local::Letter;
            }
        }
        sizes
    }

    /// Whether a definition of a body is a scalar or a tensor.
    #[allow(clippy::too_many_arguments)]
    fn local_shape(
        &self,
        scope: &StaticScope<'a>,
        function: Callable<'a>,
        body: &'a [Item],
        target: &Target,
        ty: Option<&Type>,
        value: &Expr,
        depth: usize,
    ) -> Shape {
        let local = match &*self.names.shaped_like(scope.file, value).kind {
            ExprKind::Name(name) if depth < 64 && target.positions.is_none() => {
                if let Some(owned) = scope.owner_of(name) {
                    Some(self.names.path_shape(scope.file, owned.declared, name))
                } else if let Some(formal) = function.formals.iter().find(|f| f.name.text == *name)
                {
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
        local.unwrap_or_else(|| {
            self.names
                .definition_shape(scope.file, &scope.inner, target, ty, value, 0)
        })
    }
}

/// The params of a body, with the dims and consts that they need, in order.
fn owned(body: &[Item], edges: &[Vec<(usize, Span)>], order: &[usize]) -> Vec<usize> {
    let mut needed: Vec<bool> = body
        .iter()
        .map(|item| matches!(item.kind, ItemKind::Param { .. }))
        .collect();
    // Uses stand before their users.
    for number in order.iter().rev() {
        if needed[*number] {
            edges[*number]
                .iter()
                .for_each(|(used, _)| needed[*used] = true);
        }
    }
    let mut owned = order.to_vec();
    owned.retain(|number| {
        let kind = &body[*number].kind;
        let made = matches!(
            kind,
            ItemKind::Param { .. } | ItemKind::Dim { .. } | ItemKind::Const { .. }
        );
        needed[*number] && made
    });
    owned
}
