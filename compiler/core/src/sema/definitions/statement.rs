//! Definitions: indices of the left side, its type, the value, whole tensors, and the tensors they make.
//!
//! Must not know kernels or files.
//!
//! ```text
//! O[n,y]: f32[N, H/2] = …   =>   tensor O f32[N, H/2] over (v0, v1)
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, Target, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    expressions::scope::{Binding, Context, Scope, View},
    report::dimensions,
    resolve::forms::{access_with_rest, bound_index, unbracket},
    resolve::names::Shape,
    sizes::ranges::{Stated, StatedBy},
    sizes::size::Size,
};
use ein_plan::DType;
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, Position, Type};
use std::borrow::Cow;

impl<'a> Checker<'a> {
    /// Adds a tensor that a statement computes.
    pub(crate) fn add_statement(
        &mut self,
        name: String,
        root: ExprId,
        vars: Vec<VarId>,
        shape: Vec<Size>,
        span: Span,
        role: Role,
    ) -> TensorRef {
        let dtype = self.settled_type(root);
        self.add_tensor(Tensor {
            name,
            dtype,
            shape,
            role,
            definition: Definition::Statement { vars, root },
            span,
        })
    }

    pub(crate) fn add_tensor(&mut self, tensor: Tensor) -> TensorRef {
        self.built.tensors.push(tensor);
        TensorRef(self.built.tensors.len() as u32 - 1)
    }

    /// Checks one definition.
    pub(crate) fn define(&mut self, scope: &Scope<'a>, target: Target<'a>) -> Option<Binding> {
        let scope = &*self.scope_of_statement(scope, target.value)?;
        let value = unbracket(target.value);
        let (dtype, declared) = match target.ty {
            Some(Type::Tensor { dtype, shape, .. }) => (Some(*dtype), shape.as_ref()),
            _ => (None, None),
        };
        if self.source_name(scope, target.value).is_some() {
            return self.define_source(scope, &target, dtype, declared);
        }
        if target.target.positions.is_none()
            && declared.is_some()
            && !self.is_block_call(scope, value)
            && self.is_number(scope, target.value)
        {
            return self.define_source(scope, &target, dtype, declared);
        }
        if target.target.positions.is_none() {
            match &*value.kind {
                ExprKind::Name(name) => match self.binding(scope, name)? {
                    Binding::Tensor(view) if !self.view_shape(view).is_empty() => {
                        return self.whole(scope, target, view, value.span);
                    }
                    Binding::Poison => return None,
                    _ => {}
                },
                ExprKind::Call { callee, .. } if self.names.is_gradient(scope.file, callee) => {
                    self.indices
                        .open
                        .push(crate::sema::sizes::ranges::Open::default());
                    let gradient = self.whole_gradient(&mut Context::new(scope), value);
                    let solved = self.close_behind(gradient == Some(None));
                    let view = gradient.filter(|_| solved)??;
                    if !self.view_shape(view).is_empty() {
                        return self.whole(scope, target, view, value.span);
                    }
                }
                ExprKind::Call { callee, arguments }
                    if self.gives_tensors(scope, (callee, arguments)) =>
                {
                    return self.define_library(scope, target, value);
                }
                ExprKind::Call { callee, arguments } => {
                    if let Some((_, callable)) = self.callee(scope, callee)
                        && callable.shape() == Shape::Tensor
                    {
                        let hint = target.named.map(|span| (target.name.clone(), span));
                        self.indices
                            .open
                            .push(crate::sema::sizes::ranges::Open::default());
                        let mut context = Context::new(scope);
                        let hints = hint.as_slice();
                        let result =
                            self.call_one(&mut context, callee, arguments, value.span, hints);
                        let solved = self.close_behind(result.is_none());
                        return match result.filter(|_| solved)? {
                            Binding::Tensor(view) => self.whole(scope, target, view, value.span),
                            other => Some(other),
                        };
                    }
                }
                _ => {}
            }
        }
        self.define_points(scope, target, dtype, declared)
    }

    /// Closes what was opened for a value. Where an error stands in place of the value, nothing is said of its ranges.
    pub(crate) fn close_behind(&mut self, is_wrong: bool) -> bool {
        if is_wrong && self.report.failed() {
            self.indices.open.pop();
            return false;
        }
        self.close()
    }

    /// The scope of a statement with this right side. Where no signature has `..`, it stands for the further dimensions of the first
    /// tensor that is read with it.
    pub(crate) fn scope_of_statement<'s>(
        &mut self,
        scope: &'s Scope<'a>,
        value: &'a Expr,
    ) -> Option<Cow<'s, Scope<'a>>> {
        let read = match &scope.rest {
            Some(_) => None,
            None => access_with_rest(value),
        };
        let Some((base, positions)) = read else {
            return Some(Cow::Borrowed(scope));
        };
        let is_rest = |position: &Position| matches!(position, Position::Rest(_));
        let at = positions.iter().position(is_rest)?;
        let help = match &*base.kind {
            ExprKind::Name(name) => {
                let view = match self.binding(scope, name)? {
                    Binding::Tensor(view) => view,
                    Binding::Poison => return None,
                    // The read itself is reported.
                    _ => return Some(Cow::Borrowed(scope)),
                };
                let shape = self.view_shape(view);
                if let Some(count) = (shape.len() + 1).checked_sub(positions.len()) {
                    return Some(Cow::Owned(Scope {
                        rest: Some(shape[at..at + count].to_vec()),
                        ..scope.clone()
                    }));
                }
                format!("`{name}` has {}", dimensions(shape.len()))
            }
            _ => "give what is called a name, and read that with `..`".into(),
        };
        self.report.push(
            Diagnostic::error("E0309", "`..` stands for nothing here")
                .at(base.span, "it is to stand for further dimensions of this")
                .help(help),
        );
        None
    }

    /// `y = x` or `y = f(x)` for whole tensors: another name, and at the top level a tensor of that name.
    pub(crate) fn whole(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        view: View,
        span: Span,
    ) -> Option<Binding> {
        let record = self.built.tensors[view.tensor.0 as usize].clone();
        let shape = self.view_shape(view);
        if let Some(Type::Tensor { dtype, .. }) = target.ty
            && *dtype != record.dtype
        {
            self.declared_type(*dtype, record.dtype, &target, span);
            return None;
        }
        let mut stated = target.stated.clone();
        if let Some(Type::Tensor {
            shape: Some(shape),
            span,
            ..
        }) = target.ty
        {
            stated = Some((
                self.declared_sizes(scope, shape)?
                    .into_iter()
                    .map(Some)
                    .collect(),
                *span,
                StatedBy::LeftType,
            ));
        }
        if let Some((sizes, place, _)) = stated {
            let fits = sizes.len() == shape.len()
                && sizes
                    .iter()
                    .zip(&shape)
                    .all(|(s, r)| s.as_ref().is_none_or(|s| !s.differs(r)));
            if !fits {
                let sizes: Vec<String> = sizes
                    .iter()
                    .map(|s| s.as_ref().map_or("_".into(), ToString::to_string))
                    .collect();
                self.report.push(
                    Diagnostic::error(
                        "E0301",
                        format!("`{}` has two shapes", target.target.name.text),
                    )
                    .at(span, format!("this is {}", self.view_text(view)))
                    .at(place, format!("declared with [{}] here", sizes.join(", "))),
                );
                return None;
            }
        }
        if target.in_function || (record.name == target.name && view.is_whole()) {
            return Some(Binding::Tensor(view));
        }
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut vars = vec![];
        for (at, size) in shape.iter().enumerate() {
            let var = self.fresh_var(format!("i{}", at + 1), size.clone(), target.target.span);
            vars.push(var);
        }
        self.close();
        let mut positions = self.leading(view).to_vec();
        positions.extend(vars.iter().map(|var| self.index(*var)));
        let form = Form::Read {
            tensor: view.tensor,
            positions,
            otherwise: None,
        };
        let root = self.arena.add(form, Ty::Typed(record.dtype));
        let role = Role::Named;
        let copy = self.add_statement(target.name, root, vars, shape, target.target.span, role);
        Some(Binding::Tensor(View::of(copy)))
    }

    pub(crate) fn declared_sizes(
        &mut self,
        scope: &Scope<'a>,
        shape: &'a [Position],
    ) -> Option<Vec<Size>> {
        let mut sizes = vec![];
        let mut failed = false;
        for position in shape {
            match position {
                Position::Rest(_) => sizes.extend(scope.rest.clone().unwrap_or_default()),
                Position::Expr(expr) => match self.size(scope, expr, "a size") {
                    Some(size) if size.at_least_zero() == Some(false) => {
                        self.report.push(
                            Diagnostic::error("E0307", format!("a negative size: {size}"))
                                .at(expr.span, format!("this is {size}")),
                        );
                        failed = true;
                    }
                    Some(size) => sizes.push(size),
                    None => failed = true,
                },
            }
        }
        (!failed).then_some(sizes)
    }

    pub(crate) fn declared_type(
        &mut self,
        declared: DType,
        have: DType,
        target: &Target<'_>,
        span: Span,
    ) {
        let name = &target.target.name;
        let (text, shown) = (self.names.text(span), self.names.text(name.span));
        self.report.push(
            Diagnostic::error(
                "E0405",
                format!("`{shown}` is declared {declared}, but its value is {have}"),
            )
            .at(span, format!("this is {have}"))
            .at(name.span, format!("declared {declared} here"))
            .help(format!("convert the value: `{declared}({text})`")),
        );
    }

    /// The variables of the left side with the ranges that are written there, `None` after an error.
    pub(crate) fn left_side(
        &mut self,
        context: &mut Context<'_, 'a>,
        target: &Target<'a>,
        declared: Option<&'a Vec<Position>>,
    ) -> Option<Vec<VarId>> {
        let (mut vars, mut failed): (Vec<VarId>, bool) = (vec![], false);
        for position in target.target.positions.iter().flatten() {
            let (name, span, bound) = bound_index(position)?;
            let new = self.index_vars(context.scope, name, span, None);
            context.indices.push((name, new.clone()));
            vars.extend(&new);
            if let (Some((bound, inclusive)), [var]) = (bound, new.as_slice()) {
                let size = self.size(context.scope, bound, "a bound on the left");
                let size = match size {
                    Some(size) if inclusive => size.plus(&Size::number(1)).ok(),
                    other => other,
                };
                match size.and_then(|size| self.state_range(*var, size, bound.span)) {
                    Some(()) => {}
                    None => failed = true,
                }
            }
        }
        let mut lists = vec![];
        lists.extend(target.stated.clone());
        if let (Some(shape), Some(Type::Tensor { span, .. })) = (declared, target.ty) {
            let sizes = self.declared_sizes(context.scope, shape)?;
            lists.push((
                sizes.into_iter().map(Some).collect(),
                *span,
                StatedBy::LeftType,
            ));
        }
        for (sizes, place, by) in lists {
            if sizes.len() != vars.len() {
                self.report.push(
                    Diagnostic::error(
                        "E0304",
                        format!(
                            "`{}` has {} on the left, but is declared with {}",
                            target.target.name.text,
                            match vars.len() {
                                1 => "1 index".to_owned(),
                                n => format!("{n} indices"),
                            },
                            dimensions(sizes.len())
                        ),
                    )
                    .at(target.target.span, "the left side")
                    .at(
                        place,
                        format!("declared with {} here", dimensions(sizes.len())),
                    ),
                );
                return None;
            }
            for (var, size) in vars.iter().zip(sizes) {
                let Some(size) = size else {
                    continue;
                };
                let var = &mut self.indices.vars[var.0 as usize];
                match &var.stated {
                    Some(first) if first.size.differs(&size) => {
                        let name = var.name.clone();
                        let (one, there) = (first.size.clone(), first.span);
                        self.report.push(
                            Diagnostic::error(
                                "E0301",
                                format!("index `{name}` has two sizes: {one} and {size}"),
                            )
                            .at(place, format!("`{name}` runs over {size} here"))
                            .at(there, format!("and over {one} here")),
                        );
                        failed = true;
                    }
                    Some(first) if first.by == StatedBy::Bound => {}
                    Some(first) if first.by == StatedBy::Signature && by == StatedBy::State => {}
                    _ => {
                        var.stated = Some(Stated {
                            size,
                            span: place,
                            by,
                        });
                    }
                }
            }
        }
        (!failed).then_some(vars)
    }

    fn define_points(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        dtype: Option<DType>,
        declared: Option<&'a Vec<Position>>,
    ) -> Option<Binding> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::of(&target.name));
        let mut context = Context::new(scope);
        let vars = self.left_side(&mut context, &target, declared);
        let value = self.expr(&mut context, target.value);
        let (Some(vars), Some(value)) = (vars, value) else {
            self.indices.open.pop();
            return None;
        };
        let span = target.value.span;
        if !self.close() {
            return None;
        }
        let is_number = self.arena.as_number(value).is_some()
            || self.arena.as_size(value).is_some()
            || self.arena.as_truth(value).is_some()
            || self.is_complex_literal(value);
        let number = self.training.step.updating
            && dtype.is_none()
            && target.target.positions.is_none()
            && matches!(self.arena.ty(value), Ty::Number { .. });
        if number {
            return Some(Binding::Scalar(value));
        }
        let root = match dtype {
            Some(dtype) => match self.arena.ty(value) {
                Ty::Typed(have) if have != dtype && self.as_complex(value, dtype).is_none() => {
                    self.declared_type(dtype, have, &target, span);
                    return None;
                }
                _ => self.coerce(value, dtype, span)?,
            },
            None if target.constant && is_number && vars.is_empty() => {
                return Some(Binding::Scalar(value));
            }
            None => {
                if let Ty::Number { whole } = self.arena.ty(value)
                    && (target.guess.is_some() || !self.untyped_reads(value).is_empty())
                {
                    return self.guessed_definition(scope, target, vars, (value, whole));
                }
                self.warn_of_quotients(value, span, true);
                self.settle(value, span)?
            }
        };
        if target.constant && is_number && vars.is_empty() {
            return Some(Binding::Scalar(root));
        }
        self.add_definition(scope, target, vars, root)
    }

    /// The tensor of a definition: over the indices of its left side, behind those around the body that it stands in.
    pub(crate) fn add_definition(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        own: Vec<VarId>,
        root: ExprId,
    ) -> Option<Binding> {
        let outer = self.outer_indices(scope, root, &own);
        let vars: Vec<VarId> = outer.iter().map(|(var, _)| *var).chain(own).collect();
        let shape: Vec<Size> = vars
            .iter()
            .map(|var| self.extent(*var).unwrap_or_else(|| Size::number(0)))
            .collect();
        let place = target.target.span;
        self.check_elements(&shape, place)?;
        let (role, place) = match target.named {
            Some(span) => (Role::Named, span),
            None => (Role::Hidden, place),
        };
        let tensor = self.add_statement(target.name, root, vars, shape, place, role);
        Some(Binding::Tensor(self.inner_view(tensor, &outer)))
    }

    /// Reports a tensor whose bytes cannot be counted in 64 bits, if each element had 16 of them.
    pub(crate) fn check_elements(&mut self, shape: &[Size], span: Span) -> Option<()> {
        let known: Option<Vec<i64>> = shape.iter().map(Size::known).collect();
        let Some(known) = known else {
            return Some(());
        };
        let bytes = known
            .into_iter()
            .try_fold(16, |n: i64, size| n.checked_mul(size.max(1)));
        if bytes.is_none() {
            let sizes: Vec<String> = shape.iter().map(ToString::to_string).collect();
            self.report.push(
                Diagnostic::error(
                    "E0307",
                    format!("a tensor of {} elements is too large", sizes.join(" × ")),
                )
                .at(span, "its number of bytes does not fit into 64 bits"),
            );
            return None;
        }
        Some(())
    }
}
