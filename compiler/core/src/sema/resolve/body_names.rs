//! The names of a body: what its items define, and what cannot stand in it.
//!
//! Must not know the order of items.
//!
//! ```text
//! fn f(x[n]) -> y[n] { y[n] = m * x[n]; m = max[n] x[n] }   =>   y: tensor of item 0, m: scalar of item 1
//! ```

use crate::sema::{
    calls::callee::Callable,
    hir::Kind,
    resolve::Resolver,
    resolve::cycles::defined_in,
    resolve::forms::formal_shape,
    resolve::names::{Declared, EntityId, Shape},
    resolve::static_scope::{Counters, Local, Owned, StaticScope, Unit},
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, Item, ItemKind, Name, Role, Statement, Target, Type};
use std::collections::BTreeMap;

/// A body, and the function or module that it is of.
#[derive(Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) id: EntityId,
    pub(crate) function: Callable<'a>,
    pub(crate) body: &'a [Item],
    pub(crate) is_module: bool,
}

impl<'a> Resolver<'a> {
    /// Adds the names that a body defines to the scope, and returns them with their places.
    pub(crate) fn body_names(
        &mut self,
        around: Around<'a>,
        scope: &mut StaticScope<'a>,
        unit: &mut Unit,
    ) -> BTreeMap<&'a str, Span> {
        let mut names: BTreeMap<&'a str, Span> = BTreeMap::new();
        let mut counters = Counters::new();
        let Around { function, body, .. } = around;
        for (number, item) in body.iter().enumerate() {
            let Some(defined) = self.defined_by(around, scope, number) else {
                self.misplaced(around, scope, number);
                unit.failed = true;
                continue;
            };
            for (name, shape) in defined {
                let mut formals = function.options.iter().chain(function.formals);
                let formal = formals.find(|formal| formal.name.text == name.text);
                let formal = formal.map(|formal| formal.name.span);
                let again = self.counts_again(&mut counters, item, name);
                if let Some(first) = names.get(name.text.as_str()).copied().or(formal) {
                    // Blocks may count with the same name.
                    if again {
                        self.define(&name.text, name.span, Kind::Counter);
                        continue;
                    }
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
                self.define_local(scope, name, kind_in(item, name));
                let local = match counters.contains_key(name.text.as_str()) {
                    true => Local::Counter(number),
                    false => Local::Item(number, shape),
                };
                scope.locals.insert(&name.text, local);
            }
        }
        scope.counters = counters;
        names
    }

    /// Returns the names that an item of a body defines, with their sorts; `None` if it cannot stand there.
    fn defined_by(
        &self,
        around: Around<'a>,
        scope: &mut StaticScope<'a>,
        number: usize,
    ) -> Option<Vec<(&'a Name, Shape)>> {
        let (item, is_module) = (&around.body[number], around.is_module);
        Some(match &item.kind {
            ItemKind::Dim { name, .. } => vec![(name, Shape::Scalar)],
            ItemKind::Const { target, ty, value } => vec![(
                &target.name,
                self.local_shape(around, scope, (target, ty.as_ref(), value), 0),
            )],
            ItemKind::Param { name, ty, .. } if is_module => {
                self.note_owned(around, scope, number, (name, ty));
                let shape = match ty {
                    Type::Module { .. } => Shape::Function,
                    Type::Tensor { shape: Some(_), .. } => Shape::Tensor,
                    Type::Tensor { shape: None, .. } => Shape::Scalar,
                };
                vec![(name, shape)]
            }
            ItemKind::Statement(Statement::Definition {
                role: Role::Next, ..
            }) if is_module => vec![],
            ItemKind::Statement(Statement::Definition {
                role,
                targets,
                ty,
                value,
                ..
            }) if *role == Role::Plain || is_module => match targets.as_slice() {
                [target] => vec![(
                    &target.name,
                    self.local_shape(around, scope, (target, ty.as_ref(), value), 0),
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
                        self.names.visible_shape(Some(scope), scope.file, v),
                    )
                })
                .collect(),
            ItemKind::Assert { .. } => vec![],
            _ => return None,
        })
    }

    /// Notes an instance inside a module.
    fn note_owned(
        &self,
        around: Around<'a>,
        scope: &mut StaticScope<'a>,
        item: usize,
        (name, ty): (&'a Name, &'a Type),
    ) {
        let Some(declared) = Declared::of(ty) else {
            return;
        };
        if let Some((module, _)) = self.names.module(scope.file, &declared.module.text) {
            let owned = Owned {
                module: around.id,
                item,
                declared,
            };
            scope.inner.insert(&name.text, module);
            scope.owned.insert(&name.text, owned);
        }
    }

    /// Reports an item that cannot stand in a body: where it stands, or in a file that is imported, where the function is called.
    fn misplaced(&mut self, around: Around<'a>, scope: &mut StaticScope<'a>, number: usize) {
        let item = &around.body[number];
        let (code, what, span) = match &item.kind {
            ItemKind::Param { name, .. } => ("E0510", "a param in a function", name.span),
            ItemKind::Statement(Statement::Definition { span, .. }) => {
                ("E0513", "`state` and `next` outside of a `repeat`", *span)
            }
            ItemKind::Error(_) => {
                return;
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
        if scope.file.0 == 0 {
            self.report.push(diagnostic);
        } else {
            self.readings.on_call.entry(around.id).or_insert(diagnostic);
        }
    }

    /// Returns whether a definition of a body is a scalar or a tensor.
    fn local_shape(
        &self,
        around: Around<'a>,
        scope: &StaticScope<'a>,
        (target, ty, value): (&Target, Option<&Type>, &Expr),
        depth: usize,
    ) -> Shape {
        let local = match &*self.names.shaped_like(scope.file, value).kind {
            ExprKind::Name(name) if depth < 64 && target.positions.is_none() => {
                if let Some(owned) = scope.owner_of(name) {
                    Some(self.names.path_shape(scope.file, owned.declared, name))
                } else if let Some(formal) = around
                    .function
                    .formals
                    .iter()
                    .find(|f| f.name.text == *name)
                {
                    Some(if formal_shape(formal).is_some() {
                        Shape::Tensor
                    } else {
                        Shape::Scalar
                    })
                } else {
                    around.body.iter().find_map(|item| match &item.kind {
                        ItemKind::Statement(Statement::Definition {
                            targets, ty, value, ..
                        }) if targets.len() == 1 && targets[0].name.text == *name => {
                            let next = &targets[0];
                            Some(self.local_shape(
                                around,
                                scope,
                                (next, ty.as_ref(), value),
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

/// The kind of a name that an item of a body or block defines.
pub(crate) fn kind_in(item: &Item, name: &Name) -> Kind {
    match &item.kind {
        ItemKind::Dim { .. } => Kind::Dim,
        ItemKind::Const { .. } => Kind::Const,
        ItemKind::Param { ty, .. } => match ty {
            Type::Module { .. } => Kind::Instance,
            Type::Tensor { .. } => Kind::Param,
        },
        ItemKind::Statement(Statement::Definition {
            role: Role::State, ..
        }) => Kind::State,
        ItemKind::Statement(Statement::Repeat { counter, body, .. }) => {
            let is_state = |item: &Item| match &item.kind {
                ItemKind::Statement(Statement::Definition {
                    role: Role::State,
                    targets,
                    ..
                }) => targets.iter().any(|target| target.name == *name),
                _ => false,
            };
            match counter == name {
                true => Kind::Counter,
                false if body.iter().any(is_state) => Kind::State,
                false => Kind::Value,
            }
        }
        _ => Kind::Value,
    }
}
