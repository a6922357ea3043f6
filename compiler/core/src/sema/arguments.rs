//! Arguments of calls: which parameter each is for, and what it is: a tensor, a number, a value at each point.
//!
//! Must not know sizes or bodies.
//!
//! ```text
//! dense(X, b: bias)   =>   x: X, w: missing, b: bias
//! ```

use super::{
    Checker,
    arena::{ExprId, Form, TensorRef},
    calls::formal_shape,
    expr::{Binding, Context, Scope, dimensions, plural, unsupported},
    names::{Shape, result_shape},
};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{Argument, Expr, ExprKind, Formal, Function, FunctionBody, Type};

impl<'a> Checker<'a> {
    /// The argument of every formal; `None`: its default.
    pub(super) fn match_arguments(
        &mut self,
        function: &'a Function,
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

    pub(super) fn argument(
        &mut self,
        context: &mut Context<'_, 'a>,
        function: &'a Function,
        formal: &'a Formal,
        value: &'a Expr,
    ) -> Option<Binding> {
        let block = matches!(function.body, FunctionBody::Block { .. });
        let mut inner = value;
        while let ExprKind::Bracket(next) = &*inner.kind {
            inner = next;
        }
        let given = match &*inner.kind {
            ExprKind::Name(name) => match context.scope.locals.get(name.as_str()) {
                Some(binding) => Some(*binding),
                None if context.index(name).is_some() && formal_shape(formal).is_none() => None,
                None => self.binding(context.scope, name),
            },
            ExprKind::Call { callee, .. } if self.is_gradient(context.scope.file, callee) => {
                Some(Binding::Tensor(self.whole_gradient(context, inner)??))
            }
            ExprKind::Call { callee, arguments } => match &*callee.kind {
                ExprKind::Name(name) => match self.user_function(context.scope, name) {
                    Some((entity, callee)) if result_shape(callee) == Shape::Tensor => {
                        Some(self.call_user(context, entity, callee, arguments, inner.span, None)?)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let tensor = match given {
            Some(Binding::Poison) => return None,
            Some(Binding::Tensor(tensor)) => Some(tensor),
            _ => None,
        };
        let name = &formal.name.text;
        if formal_shape(formal).is_none() {
            if let Some(tensor) = tensor {
                let rank = self.tensors[tensor.0 as usize].shape.len();
                if let FunctionBody::Expression(body) = &function.body
                    && rank > 0
                {
                    if super::order::takes_whole(body, name) {
                        return Some(Binding::Tensor(tensor));
                    }
                    let (function, text) = (&function.name.text, self.text(value.span));
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
                            format!("`{name}` of `{}` is a scalar", function.name.text),
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
            let scalar = self.expr(context, value)?;
            let scalar = self.formal_type(formal, scalar, value.span)?;
            return if block {
                self.passed_scalar(scalar, value.span)
            } else {
                Some(Binding::Scalar(scalar))
            };
        }
        if let Some(tensor) = tensor {
            if let Some(Type::Tensor { dtype, .. }) = &formal.ty
                && self.tensors[tensor.0 as usize].dtype != *dtype
            {
                let have = self.tensors[tensor.0 as usize].dtype;
                self.report.push(
                    Diagnostic::error(
                        "E0405",
                        format!(
                            "`{name}` of `{}` is {dtype}, not {have}",
                            function.name.text
                        ),
                    )
                    .at(value.span, format!("this is {have}"))
                    .at(formal.name.span, format!("declared {dtype} here")),
                );
                return None;
            }
            return Some(Binding::Tensor(tensor));
        }
        if let ExprKind::Access { base, positions } = &*inner.kind
            && let ExprKind::Name(of) = &*base.kind
            && let Some(Binding::Tensor(of)) = self.binding(context.scope, of)
            && positions.len() < self.tensors[of.0 as usize].shape.len()
        {
            self.report
                .push(unsupported("E0603", "a slice as an argument", value.span));
            return None;
        }
        let text = self.text(value.span);
        self.report.push(
            Diagnostic::error(
                "E0503",
                format!("`{name}` of `{}` takes a whole tensor", function.name.text),
            )
            .at(value.span, "this is a value at each point")
            .at(formal.name.span, "declared with brackets here")
            .help("pass the tensor's name and write the positions behind the call: `f(x)[i]`")
            .help(format!("or define it first: `t[…] = {text}`")),
        );
        None
    }

    /// A scalar for a function with a body: a number, or a tensor without dimensions.
    pub(super) fn passed_scalar(&mut self, scalar: ExprId, span: Span) -> Option<Binding> {
        if self.arena.as_number(scalar).is_some()
            || self.arena.as_size(scalar).is_some()
            || self.arena.as_truth(scalar).is_some()
        {
            return Some(Binding::Scalar(scalar));
        }
        if let Form::Read {
            tensor, positions, ..
        } = &*self.arena.form(scalar)
            && positions.is_empty()
        {
            return Some(Binding::Tensor(*tensor));
        }
        if let Some(var) = self.arena.free(scalar).first() {
            let index = self.vars[var.0 as usize].name.clone();
            self.report.push(unsupported(
                "E0603",
                &format!("a call for every `{index}`"),
                span,
            ));
            return None;
        }
        let value = self.settle(scalar, span)?;
        let name = self.instance_name(FileId(0), "argument");
        Some(Binding::Tensor(self.add_scalar(name, value, span)))
    }

    pub(super) fn formal_type(
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

    pub(super) fn default(&mut self, scope: &Scope<'a>, formal: &'a Formal) -> Option<Binding> {
        let value = formal.default.as_ref()?;
        // A default made of the signature's sizes is a size itself, with floor division.
        let mut names = vec![];
        super::order::names_in(value, &mut names);
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

    /// A hidden tensor without dimensions.
    pub(super) fn add_scalar(&mut self, name: String, value: ExprId, span: Span) -> TensorRef {
        self.add_statement(
            name,
            value,
            vec![],
            vec![],
            span,
            crate::einsum::Role::Hidden,
        )
    }
}
