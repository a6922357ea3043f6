//! The sorts of names: each is a scalar, a tensor or something to call, as far as the text tells.
//!
//! Must not know sizes or types.
//!
//! ```text
//! a = X: a tensor if X is one;   b = f(x): what f gives;   c[i] = …: a tensor
//! ```

use crate::sema::{
    calls::callee::result_kind,
    resolve::forms::unbracket,
    resolve::names::{Declared, EntityId, EntityKind, Found, Names, Shape, Visible},
    resolve::static_scope::{Local, StaticScope},
};
use einc_diag::FileId;
use einc_syntax::ast::{Expr, ExprKind, ItemKind, Role, Statement, Target, Type};
use std::collections::BTreeMap;

impl<'a> Names<'a> {
    /// Returns whether a name is a scalar, a tensor or a function, as far as the text tells.
    pub(crate) fn shape_of(&self, id: EntityId) -> Shape {
        match self.entity(id).kind {
            EntityKind::Dim(_) => Shape::Scalar,
            EntityKind::Input { ty, .. } => match ty {
                Type::Tensor { shape: Some(_), .. } => Shape::Tensor,
                Type::Tensor { shape: None, .. } => Shape::Scalar,
                Type::Module { .. } => Shape::Poison,
            },
            EntityKind::Definition {
                target, ty, value, ..
            } => {
                self.definition_shape(self.entity(id).file, &BTreeMap::new(), target, ty, value, 0)
            }
            EntityKind::Scatter { .. } => Shape::Tensor,
            EntityKind::Part { at, value, .. } => {
                self.part_shape(self.entity(id).file, &BTreeMap::new(), at, value)
            }
            EntityKind::Function(_) | EntityKind::Module(_) | EntityKind::Instance(_) => {
                Shape::Function
            }
            EntityKind::Repeat(_) => Shape::Scalar,
            EntityKind::OfRepeat { visible, .. } => {
                self.visible_shape(None, self.entity(id).file, visible)
            }
            EntityKind::Poison => Shape::Poison,
        }
    }

    /// Returns the sort of something that an instance owns: `head.w`.
    pub(crate) fn member_shape(&self, instance: EntityId, path: &str) -> Shape {
        match self.entity(instance).kind {
            EntityKind::Instance(declared) => {
                self.path_shape(self.entity(instance).file, declared, path)
            }
            _ => Shape::Poison,
        }
    }

    /// Returns the sort of a path whose first instance is declared so, in that file.
    pub(crate) fn path_shape(
        &self,
        mut file: FileId,
        mut declared: Declared<'a>,
        path: &str,
    ) -> Shape {
        let mut names = path.split('.').skip(1).peekable();
        while names.peek().is_some() {
            // Numbers say which instances of an array.
            for _ in declared.shape.into_iter().flatten() {
                if !names.next().is_some_and(is_number) {
                    return Shape::Function;
                }
            }
            let Some(name) = names.next() else {
                return Shape::Function;
            };
            let Some((id, module)) = self.module(file, &declared.module.text) else {
                return Shape::Poison;
            };
            let member = module.body.iter().find_map(|item| match &item.kind {
                ItemKind::Param { name: own, ty, .. } if own.text == name => Some(ty),
                _ => None,
            });
            let Some(ty) = member else {
                return Shape::Function;
            };
            match (Declared::of(ty), names.peek()) {
                (Some(inner), Some(_)) => {
                    (declared, file) = (inner, self.entity(id).file);
                }
                (None, None) => {
                    return match ty {
                        Type::Tensor { shape: Some(_), .. } => Shape::Tensor,
                        _ => Shape::Scalar,
                    };
                }
                _ => return Shape::Function,
            }
        }
        Shape::Function
    }

    /// Returns the sort of one of the names of `a, b = f(x)`.
    pub(crate) fn part_shape(
        &self,
        file: FileId,
        inner: &BTreeMap<&'a str, EntityId>,
        at: usize,
        value: &Expr,
    ) -> Shape {
        let ExprKind::Call { callee, arguments } = &*unbracket(value).kind else {
            return Shape::Poison;
        };
        if let Some(operation) = self.library_of(file, callee, arguments.len()) {
            return operation.part_shape(at);
        }
        let callable = self.callee_of(file, inner, callee);
        let result = callable.and_then(|(_, callable)| callable.results.get(at));
        result.map_or(Shape::Poison, result_kind)
    }

    /// Returns the sort of a definition; a whole tensor's name stands on the left without brackets.
    pub(crate) fn definition_shape(
        &self,
        file: FileId,
        inner: &BTreeMap<&'a str, EntityId>,
        target: &Target,
        ty: Option<&Type>,
        value: &Expr,
        depth: usize,
    ) -> Shape {
        if target.positions.is_some() || matches!(ty, Some(Type::Tensor { shape: Some(_), .. })) {
            return Shape::Tensor;
        }
        match &*self.shaped_like(file, value).kind {
            ExprKind::List(_) => Shape::Tensor,
            // `b = a`: a chain of such lines is followed for a while only.
            ExprKind::Name(name) if depth < 64 => match self.find(file, name) {
                Found::Entity(id) => match self.entity(id).kind {
                    // A state that begins with itself is told later.
                    EntityKind::Definition {
                        target, ty, value, ..
                    }
                    | EntityKind::OfRepeat {
                        visible: Visible::State(target, ty, value),
                        ..
                    } => self.definition_shape(
                        self.entity(id).file,
                        &BTreeMap::new(),
                        target,
                        ty,
                        value,
                        depth + 1,
                    ),
                    EntityKind::Function(_) => Shape::Scalar,
                    // An instance is no value, which is reported.
                    EntityKind::Module(_) | EntityKind::Instance(_) => Shape::Poison,
                    _ => self.shape_of(id),
                },
                Found::Member(id) => match self.member_shape(id, name) {
                    Shape::Function => Shape::Poison,
                    shape => shape,
                },
                Found::Poison => Shape::Poison,
                Found::Nothing => Shape::Scalar,
            },
            ExprKind::Call { callee, arguments } => match &*callee.kind {
                _ if self.callee_of(file, inner, callee).is_some() => self
                    .callee_of(file, inner, callee)
                    .map_or(Shape::Poison, |(_, callable)| callable.shape()),
                ExprKind::Name(name) => match self.find(file, name) {
                    Found::Poison => Shape::Poison,
                    _ => match self.library_of(file, callee, arguments.len()) {
                        Some(operation) => operation.shape(),
                        None => Shape::Scalar,
                    },
                },
                _ => Shape::Scalar,
            },
            _ => Shape::Scalar,
        }
    }

    /// The names of a block that are seen after it.
    pub(crate) fn visible_names(&self, repeat: &'a Statement) -> Vec<Visible<'a>> {
        let Statement::Repeat { counter, body, .. } = repeat else {
            return vec![];
        };
        let mut visible = vec![Visible::Counter(counter)];
        for item in body {
            let ItemKind::Statement(Statement::Definition {
                role,
                targets,
                ty,
                value,
                ..
            }) = &item.kind
            else {
                continue;
            };
            for target in targets {
                match role {
                    Role::State => visible.push(Visible::State(target, ty.as_ref(), value)),
                    Role::Plain => visible.extend(
                        self.collections
                            .get(&target.span)
                            .map(|collecting| Visible::Collected(&collecting.name)),
                    ),
                    Role::Next => {}
                }
            }
        }
        visible
    }

    /// Returns whether a visible name is a scalar or a tensor.
    pub(crate) fn visible_shape(
        &self,
        scope: Option<&StaticScope<'a>>,
        file: FileId,
        visible: Visible<'a>,
    ) -> Shape {
        match visible {
            Visible::Counter(_) => Shape::Scalar,
            Visible::Collected(_) => Shape::Tensor,
            Visible::State(target, ty, value) => self.shape_in(scope, file, target, ty, value),
        }
    }

    /// Returns whether a definition is a scalar or a tensor, where the names of `scope` are known.
    pub(crate) fn shape_in(
        &self,
        scope: Option<&StaticScope<'a>>,
        file: FileId,
        target: &Target,
        ty: Option<&Type>,
        value: &Expr,
    ) -> Shape {
        let none = BTreeMap::new();
        let inner = scope.map_or(&none, |scope| &scope.inner);
        if let (None, Some(scope)) = (&target.positions, scope)
            && let ExprKind::Name(name) = &*self.shaped_like(file, value).kind
            && let Some(owned) = scope.owner_of(name)
        {
            return self.path_shape(file, owned.declared, name);
        }
        if let (None, Some(scope)) = (&target.positions, scope)
            && let ExprKind::Name(name) = &*self.shaped_like(file, value).kind
            && let Some(local) = scope.locals.get(name.as_str())
        {
            return match local {
                Local::Tensor | Local::Item(_, Shape::Tensor) => Shape::Tensor,
                Local::Item(_, shape) => *shape,
                Local::Scalar | Local::Any | Local::Letter | Local::Counter(_) => Shape::Scalar,
            };
        }
        self.definition_shape(file, inner, target, ty, value, 0)
    }
}

/// Returns whether a part of a path is the number of an instance.
pub(crate) fn is_number(part: &str) -> bool {
    part.bytes().all(|byte| byte.is_ascii_digit())
}
