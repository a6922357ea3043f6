//! `grad(loss, W)`: what it names, and its statements once the program is put together.
//!
//! Must not know how derivatives are taken.
//!
//! ```text
//! grad(loss, W)[d,h]   =>   a tensor like W, read at (v0, v1)
//! ```

use crate::autodiff::Gradients;
use crate::einsum::{Program, Role, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty},
    expressions::scope::{Binding, Context, View},
    resolve::forms::unbracket,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind};
use std::collections::HashMap;

impl<'a> Checker<'a> {
    /// The tensor that a whole value is, if it is a gradient; the inner `None`: it is wrong.
    pub(crate) fn whole_gradient(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
    ) -> Option<Option<View>> {
        match &*value.kind {
            ExprKind::Call { callee, arguments }
                if self.names.is_gradient(context.scope.file, callee) =>
            {
                Some(self.gradient(context, arguments, value.span))
            }
            _ => None,
        }
    }

    /// A gradient by a scalar.
    pub(crate) fn gradient_value(
        &mut self,
        context: &mut Context<'_, 'a>,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<ExprId> {
        let view = self.gradient(context, arguments, span)?;
        let text = self.names.text(span);
        self.scalar_read(view, text, span)
    }

    /// The tensor of a gradient; by a slice, the same slice of it.
    fn gradient(
        &mut self,
        context: &mut Context<'_, 'a>,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<View> {
        let [loss, wrt] = arguments else {
            self.report.push(
                Diagnostic::error(
                    "E0502",
                    format!("`grad` takes 2 arguments, not {}", arguments.len()),
                )
                .at(span, "a scalar, and what it is differentiated by"),
            );
            return None;
        };
        self.by_position("grad", arguments)?;
        let loss = self.loss(context, &loss.value);
        let wrt = self.differentiated_by(context, &wrt.value);
        let (loss, wrt) = (loss?, wrt?);
        let leading = self.leading(wrt).to_vec();
        let wrt = wrt.tensor;
        let mut like = self.built.tensors[wrt.0 as usize].clone();
        if self.inference.untyped.contains_key(&wrt) {
            like.dtype = self.built.tensors[loss.0 as usize].dtype;
        }
        let tensor = self.add_tensor(Tensor {
            name: format!("grad.{}", like.name),
            dtype: like.dtype.compute(),
            shape: like.shape,
            role: Role::Hidden,
            definition: Definition::Gradient { loss, wrt },
            span,
        });
        Some(self.slice(tensor, leading))
    }

    /// The scalar that is differentiated, as a tensor.
    fn loss(&mut self, context: &mut Context<'_, 'a>, value: &'a Expr) -> Option<TensorRef> {
        let inner = unbracket(value);
        if let ExprKind::Name(name) = &*inner.kind
            && context.index(name).is_none()
            && let Some(Binding::Tensor(view)) = self.binding(context.scope, name)
            && !self.view_shape(view).is_empty()
        {
            let declared = self.built.tensors[view.tensor.0 as usize].span;
            self.report.push(
                Diagnostic::error(
                    "E0606",
                    format!("`{name}` is no scalar, so it has no gradient"),
                )
                .at(value.span, "differentiated here")
                .at(declared, format!("it is {} here", self.view_text(view)))
                .help("sum it, or define a scalar loss from it"),
            );
            return None;
        }
        let id = self.expr(context, value)?;
        let id = self.settle(id, value.span)?;
        if !matches!(self.arena.ty(id), Ty::Typed(dtype) if dtype.is_float()) {
            let have = self.type_name(id);
            self.report.push(
                Diagnostic::error(
                    "E0606",
                    format!("only floating-point values have gradients, not {have}"),
                )
                .at(value.span, format!("this is {have}")),
            );
            return None;
        }
        if let Some(var) = self.arena.free(id).first() {
            let index = self.indices.vars[var.0 as usize].name.clone();
            self.report.push(
                Diagnostic::error("E0606", "the gradient of a value at each point")
                    .at(value.span, format!("this has a value for every `{index}`"))
                    .help(format!("sum it: `sum[{index}] …`")),
            );
            return None;
        }
        if let Form::Read {
            tensor,
            positions,
            otherwise: None,
        } = &*self.arena.form(id)
            && positions.is_empty()
        {
            return Some(*tensor);
        }
        let name = self.instance_name(FileId(0), "grad.loss");
        Some(self.add_statement(name, id, vec![], vec![], value.span, Role::Hidden))
    }

    /// The tensor that a gradient is taken by.
    fn differentiated_by(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
    ) -> Option<View> {
        let inner = unbracket(value);
        let refused = |c: &mut Self, what: String, label: &str| {
            let diagnostic = Diagnostic::error("E0606", what).at(value.span, label);
            c.report.push(diagnostic.help(
                "a gradient is taken by a param, an input or a definition as a whole: `grad(loss, W)[i,j]`",
            ));
            None
        };
        let text = self.names.text(value.span).to_owned();
        let ExprKind::Name(name) = &*inner.kind else {
            return refused(
                self,
                format!("`{text}` is no tensor's name"),
                "an expression",
            );
        };
        let view = match self.binding(context.scope, name) {
            Some(Binding::Tensor(view)) => view,
            Some(Binding::Scalar(id)) => match &*self.arena.form(id) {
                Form::Read {
                    tensor, positions, ..
                } if positions.is_empty() => View::of(*tensor),
                _ => return refused(self, format!("`{text}` is a number"), "no tensor"),
            },
            Some(Binding::Instance(_) | Binding::Poison) => return None,
            None if context.index(name).is_some() => {
                return refused(self, format!("`{text}` is an index"), "no tensor");
            }
            None => return None,
        };
        let record = &self.built.tensors[view.tensor.0 as usize];
        if !record.dtype.is_float() {
            let (dtype, declared) = (record.dtype, record.span);
            self.report.push(
                Diagnostic::error(
                    "E0606",
                    format!("`{text}` is {dtype}; only floating-point values have gradients"),
                )
                .at(value.span, format!("this is {dtype}"))
                .at(declared, "declared here"),
            );
            return None;
        }
        Some(view)
    }

    /// Nothing made yet; no tensor of the program loses its name.
    pub(crate) fn no_gradients(&self) -> Gradients {
        let named = self
            .built
            .tensors
            .iter()
            .filter(|tensor| !matches!(tensor.definition, Definition::Gradient { .. }));
        Gradients::new(named.map(|tensor| tensor.name.clone()))
    }

    /// The statements of a gradient, appended to the program.
    pub(crate) fn lower_gradient(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        gradients: &mut Gradients,
        (loss, wrt): (TensorRef, TensorRef),
        span: Span,
    ) -> Option<TensorId> {
        let (of, by) = (*numbers.get(&loss)?, *numbers.get(&wrt)?);
        match gradients.derivative(program, of, by) {
            Ok(gradient) => {
                if !gradient.depends {
                    let (of, by) = (program.tensor(of), &program.tensor(by).name);
                    let of = match of.role {
                        Role::Hidden => "what is differentiated".to_owned(),
                        _ => format!("`{}`", of.name),
                    };
                    let what = format!("{of} does not depend on `{by}`: the gradient is zeros");
                    self.report.push(Diagnostic::warning("E0606", what).at(
                        span,
                        "there is no way between the two that has a derivative",
                    ));
                }
                Some(gradient.tensor)
            }
            Err(diagnostic) => {
                self.report.push(diagnostic.at(span, "differentiated here"));
                None
            }
        }
    }

    /// Checks a gradient against all of the program.
    pub(crate) fn check_gradient(
        &mut self,
        program: &Program,
        numbers: &HashMap<TensorRef, TensorId>,
        gradients: &mut Gradients,
        (loss, wrt): (TensorRef, TensorRef),
        span: Span,
    ) -> Option<()> {
        let checked = gradients.check_rounds(program, *numbers.get(&loss)?, *numbers.get(&wrt)?);
        let wrong = checked.map_err(|diagnostic| diagnostic.at(span, "differentiated here"));
        wrong
            .map_err(|diagnostic| self.report.push(diagnostic))
            .ok()
    }
}
