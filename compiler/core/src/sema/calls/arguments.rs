//! Arguments of calls: which parameter each is for, and what it is: a tensor, a number, a value at each point.
//!
//! Must not know sizes or bodies.
//!
//! ```text
//! dense(X, b: bias)   =>   x: X, w: missing, b: bias
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::callee::{Body, Callable},
    expressions::arena::{ExprId, Form, Ty, VarId},
    expressions::scope::{Binding, Context, Scope, View},
    report::{dimensions, plural},
    resolve::forms::{formal_shape, unbracket},
    resolve::names::Shape,
    sizes::size::Size,
};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{Argument, Expr, ExprKind, Formal, Type};
use std::collections::BTreeMap;

impl<'a> Checker<'a> {
    /// Refuses named arguments of what takes them by position alone.
    pub(crate) fn by_position(&mut self, name: &str, arguments: &[Argument]) -> Option<()> {
        let Some(named) = arguments.iter().find_map(|a| a.name.as_ref()) else {
            return Some(());
        };
        self.report.push(
            Diagnostic::error(
                "E0502",
                format!("`{name}` has no argument named `{}`", named.text),
            )
            .at(named.span, "named here")
            .help("its arguments are given by position"),
        );
        None
    }

    /// The argument of every formal; `None`: its default.
    pub(crate) fn match_arguments(
        &mut self,
        function: Callable<'a>,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<Vec<Option<&'a Argument>>> {
        let name = &function.name.text;
        let mut slots: Vec<Option<&'a Argument>> = vec![None; function.formals.len()];
        let mut failed = false;
        for (at, argument) in arguments.iter().enumerate() {
            let slot = match &argument.name {
                None => at,
                Some(given) => match function
                    .formals
                    .iter()
                    .position(|f| f.name.text == given.text)
                {
                    Some(slot) => slot,
                    None => {
                        let mut error = Diagnostic::error(
                            "E0502",
                            format!("`{name}` has no argument named `{}`", given.text),
                        )
                        .at(given.span, "named here")
                        .at(function.name.span, "the function");
                        let names = function.formals.iter().map(|f| f.name.text.as_str());
                        if let Some(near) = did_you_mean(&given.text, names) {
                            error = error.help(format!("did you mean `{near}`?"));
                        }
                        self.report.push(error);
                        failed = true;
                        continue;
                    }
                },
            };
            let Some(place) = slots.get_mut(slot) else {
                let takes = function.formals.len();
                self.report.push(
                    Diagnostic::error(
                        "E0502",
                        format!(
                            "`{name}` takes {takes} argument{}, not {}",
                            plural(takes),
                            arguments.len()
                        ),
                    )
                    .at(argument.value.span, "one too many")
                    .at(function.name.span, "the function"),
                );
                return None;
            };
            if let Some(first) = place {
                self.report.push(
                    Diagnostic::error(
                        "E0502",
                        format!(
                            "`{}` of `{name}` is given twice",
                            function.formals[slot].name.text
                        ),
                    )
                    .at(argument.value.span, "given again here")
                    .at(first.value.span, "first given here"),
                );
                failed = true;
                continue;
            }
            *place = Some(argument);
        }
        let missing: Vec<String> = function
            .formals
            .iter()
            .zip(&slots)
            .filter(|(formal, slot)| slot.is_none() && formal.default.is_none())
            .map(|(formal, _)| format!("`{}`", formal.name.text))
            .collect();
        if !missing.is_empty() && !failed {
            self.report.push(
                Diagnostic::error(
                    "E0502",
                    format!("`{name}` is called without {}", missing.join(", ")),
                )
                .at(span, "in this call")
                .at(function.name.span, "the function"),
            );
            failed = true;
        }
        (!failed).then_some(slots)
    }

    /// Reads one argument. An argument of a body is computed whatever conditions hold around the call.
    pub(crate) fn argument(
        &mut self,
        context: &mut Context<'_, 'a>,
        callable: Callable<'a>,
        formal: &'a Formal,
        value: &'a Expr,
    ) -> Option<Binding> {
        if !callable.is_block() {
            return self.passed(context, callable, formal, value);
        }
        let path = std::mem::take(self.open_path());
        let binding = self.passed(context, callable, formal, value);
        *self.open_path() = path;
        binding
    }

    fn passed(
        &mut self,
        context: &mut Context<'_, 'a>,
        callable: Callable<'a>,
        formal: &'a Formal,
        value: &'a Expr,
    ) -> Option<Binding> {
        let given = match &*unbracket(value).kind {
            ExprKind::Name(name) => match context.scope.locals.get(name.as_str()) {
                Some(binding) => Some(*binding),
                None if context.index(name).is_some() && formal_shape(formal).is_none() => None,
                None => self.binding(context.scope, name),
            },
            ExprKind::Call { callee, .. } if self.names.is_gradient(context.scope.file, callee) => {
                Some(Binding::Tensor(
                    self.whole_gradient(context, unbracket(value))??,
                ))
            }
            ExprKind::Call { callee, arguments }
                if (self.names)
                    .library_of(context.scope.file, callee, arguments.len())
                    .is_some() =>
            {
                let view = self.whole_library(context, unbracket(value), &[])??;
                Some(Binding::Tensor(view))
            }
            ExprKind::Call { callee, arguments } => match self.callee(context.scope, callee) {
                Some((_, inner)) if inner.shape() == Shape::Tensor => {
                    Some(self.call_one(context, callee, arguments, value.span, &[])?)
                }
                _ => None,
            },
            ExprKind::Access { base, positions } => {
                Some(self.slice_argument(context, base, positions, value.span)?)
            }
            _ => None,
        };
        let view = match given {
            Some(Binding::Poison) => return None,
            Some(Binding::Tensor(view)) => Some(view),
            _ => None,
        };
        let name = &formal.name.text;
        if formal_shape(formal).is_some() {
            return match view {
                Some(view) => self.tensor_argument(callable, formal, view, value),
                None => self.not_a_tensor(callable, formal, value),
            };
        }
        if let Some(view) = view {
            let rank = self.view_shape(view).len();
            if let Body::Expression(body) = callable.body
                && rank > 0
            {
                if crate::sema::resolve::forms::takes_whole(body, name) {
                    return Some(Binding::Tensor(view));
                }
                let (function, text) = (&callable.name.text, self.names.text(value.span));
                self.report.push(
                    Diagnostic::error("E0503", format!("`{name}` of `{function}` is a scalar"))
                        .at(value.span, format!("this has {}", dimensions(rank)))
                        .at(formal.name.span, "used as one value")
                        .help(format!("give it elements: `y[…] = {function}({text}[…])`")),
                );
                return None;
            }
            if rank > 0 {
                self.report.push(
                    Diagnostic::error(
                        "E0503",
                        format!("`{name}` of `{}` is a scalar", callable.name.text),
                    )
                    .at(value.span, format!("this has {}", dimensions(rank)))
                    .at(formal.name.span, "declared without brackets here")
                    .help(format!(
                        "a tensor is declared with its sizes: `{name}[n, d]` or `{name}[..]`"
                    )),
                );
                return None;
            }
        }
        let scalar = match given {
            Some(Binding::Scalar(scalar)) => scalar,
            Some(Binding::Tensor(view)) => self.scalar_read(view, value.span)?,
            _ => self.expr(context, value)?,
        };
        let scalar = self.formal_type(formal, scalar, value.span)?;
        if callable.is_block() {
            self.passed_scalar(scalar, value.span)
        } else {
            Some(Binding::Scalar(scalar))
        }
    }

    fn tensor_argument(
        &mut self,
        callable: Callable<'a>,
        formal: &'a Formal,
        view: View,
        value: &'a Expr,
    ) -> Option<Binding> {
        let view = match &formal.ty {
            Some(Type::Tensor { dtype, .. }) => self.view_in(view, *dtype, value.span)?,
            _ => view,
        };
        let have = self.built.tensors[view.tensor.0 as usize].dtype;
        if let Some(Type::Tensor { dtype, .. }) = &formal.ty
            && have != *dtype
            && !self.inference.untyped.contains_key(&view.tensor)
        {
            let (name, function) = (&formal.name.text, &callable.name.text);
            self.report.push(
                Diagnostic::error(
                    "E0405",
                    format!("`{name}` of `{function}` is {dtype}, not {have}"),
                )
                .at(value.span, format!("this is {have}"))
                .at(formal.name.span, format!("declared {dtype} here")),
            );
            return None;
        }
        Some(Binding::Tensor(view))
    }

    fn not_a_tensor(
        &mut self,
        callable: Callable<'a>,
        formal: &'a Formal,
        value: &'a Expr,
    ) -> Option<Binding> {
        let (name, text) = (&formal.name.text, self.names.text(value.span));
        self.report.push(
            Diagnostic::error(
                "E0503",
                format!("`{name}` of `{}` takes a whole tensor", callable.name.text),
            )
            .at(value.span, "this is a value at each point")
            .at(formal.name.span, "declared with brackets here")
            .help("pass the tensor's name, or a slice, `x[p]`, and write the positions behind the call: `f(x)[i]`")
            .help(format!("or define it first: `t[…] = {text}`")),
        );
        None
    }

    /// A scalar for a function with a body: a number, or an element of a tensor.
    pub(crate) fn passed_scalar(&mut self, scalar: ExprId, span: Span) -> Option<Binding> {
        if self.arena.as_number(scalar).is_some()
            || self.arena.as_size(scalar).is_some()
            || self.arena.as_truth(scalar).is_some()
            || self.is_complex_literal(scalar)
        {
            return Some(Binding::Scalar(scalar));
        }
        let is_whole = self.arena.ty(scalar) == Ty::Number { whole: true };
        if let Form::Read {
            tensor,
            positions,
            otherwise: None,
        } = &*self.arena.form(scalar)
            && (!is_whole || self.inference.untyped.contains_key(tensor))
        {
            return Some(Binding::Tensor(self.slice(*tensor, positions.clone())));
        }
        let value = self.settle(scalar, span)?;
        let name = self.instance_name(FileId(0), "argument");
        // A tensor over the indices of the statement around, read at them.
        let vars = self.arena.free(value).to_vec();
        self.pin(&vars, span)?;
        let outer: Vec<(VarId, Size)> = vars
            .iter()
            .filter_map(|var| Some((*var, self.extent(*var)?)))
            .collect();
        let shape = outer.iter().map(|(_, size)| size.clone()).collect();
        let tensor = self.add_statement(name, value, vars, shape, span, Role::Hidden);
        if is_whole {
            // A counter, and what is made of indices, takes the type of what it meets in the body.
            self.inference.untyped.insert(tensor, true);
            self.inference.lists.insert(tensor, BTreeMap::new());
        }
        Some(Binding::Tensor(self.inner_view(tensor, &outer)))
    }

    pub(crate) fn formal_type(
        &mut self,
        formal: &Formal,
        value: ExprId,
        span: Span,
    ) -> Option<ExprId> {
        match &formal.ty {
            Some(Type::Tensor { dtype, .. }) => self.coerce(value, *dtype, span),
            _ => Some(value),
        }
    }

    pub(crate) fn default(&mut self, scope: &Scope<'a>, formal: &'a Formal) -> Option<Binding> {
        let value = formal.default.as_ref()?;
        // A default made of the signature's sizes is a size itself, with floor division.
        let mut names = vec![];
        crate::sema::resolve::forms::names_in(value, &mut names);
        let sizes = names.iter().any(|name| scope.letters.contains_key(name));
        let mut context = if sizes {
            Context::of_sizes(scope)
        } else {
            Context::new(scope)
        };
        let id = self.expr(&mut context, value)?;
        let id = self.formal_type(formal, id, value.span)?;
        self.passed_scalar(id, value.span)
    }
}
