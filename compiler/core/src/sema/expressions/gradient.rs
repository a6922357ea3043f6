//! `grad(loss, W)` and `jacobian(y, x)`: what they name, and their statements once the program is put together. `directional` holds `jvp` and `hvp`.
//!
//! Must not know how derivatives are taken.
//!
//! ```text
//! grad(loss, W)[d,h]   =>   a tensor like W, read at (v0, v1)
//! grad(l[n], W)[d,h]   =>   a tensor with the dimensions of l and W, read at (n, v0, v1)
//! ```

use crate::autodiff::{Gradient, Gradients};
use crate::einsum::{Program, Role, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    expressions::builtins::{HVP, JACOBIAN, JVP},
    expressions::scope::{Binding, Context, View},
    resolve::forms::unbracket,
    sizes::ranges::Open,
};
use ein_plan::DType;
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
                let name = match &*callee.kind {
                    ExprKind::Name(name) => name,
                    _ => "",
                };
                Some(self.derivative(context, (name, arguments), value.span))
            }
            _ => None,
        }
    }

    /// A gradient by a scalar.
    pub(crate) fn gradient_value(
        &mut self,
        context: &mut Context<'_, 'a>,
        (name, arguments): (&str, &'a [Argument]),
        span: Span,
    ) -> Option<ExprId> {
        let view = self.derivative(context, (name, arguments), span)?;
        self.scalar_read(view, span)
    }

    /// The tensor of any derivative, at its positions.
    fn derivative(
        &mut self,
        context: &mut Context<'_, 'a>,
        (name, arguments): (&str, &'a [Argument]),
        span: Span,
    ) -> Option<View> {
        match name {
            JVP | HVP => self.along(context, (name, arguments), span),
            _ => self.gradient(context, (name, arguments), span),
        }
    }

    /// The tensor of a gradient; by a slice, the same slice of it, and of a value at each point, the slice at the point.
    fn gradient(
        &mut self,
        context: &mut Context<'_, 'a>,
        (name, arguments): (&str, &'a [Argument]),
        span: Span,
    ) -> Option<View> {
        let [loss, wrt] = arguments else {
            self.report.push(
                Diagnostic::error(
                    "E0502",
                    format!("`{name}` takes 2 arguments, not {}", arguments.len()),
                )
                .at(span, "what is differentiated, and by what"),
            );
            return None;
        };
        self.by_position(name, arguments)?;
        let of = match name {
            JACOBIAN => self.differentiated_whole(context, &loss.value),
            _ => self.loss(context, &loss.value),
        };
        let wrt = self.differentiated_by(context, &wrt.value);
        let ((loss, mut leading), wrt) = (of?, wrt?);
        self.one_complex(loss, wrt.tensor, span)?;
        let sliced = self.leading(wrt).to_vec();
        let points = self.built.tensors[loss.0 as usize].shape.clone();
        let tensor = self.gradient_tensor(loss, wrt.tensor, span);
        if !sliced.is_empty() && leading.len() != points.len() {
            let of = self.slice(loss, leading);
            return self.between_slices(tensor, (of, wrt), span);
        }
        leading.extend(sliced);
        Some(self.slice(tensor, leading))
    }

    /// The derivative of a slice by a slice: of the derivative of one tensor by the other, the part that is at both.
    fn between_slices(
        &mut self,
        derivative: TensorRef,
        (of, wrt): (View, View),
        span: Span,
    ) -> Option<View> {
        let around = self.captured(&[Binding::Tensor(of), Binding::Tensor(wrt)]);
        self.pin(&around, span)?;
        let mut shape = vec![];
        for var in &around {
            shape.push(self.extent(*var)?);
        }
        let (mut vars, mut positions) = (around.clone(), vec![]);
        self.indices.open.push(Open::default());
        for view in [of, wrt] {
            positions.extend(self.leading(view).iter());
            for size in self.view_shape(view) {
                let var = self.fresh_var(format!("i{}", vars.len() + 1), size.clone(), span);
                positions.push(self.index(var));
                vars.push(var);
                shape.push(size);
            }
        }
        self.close();
        self.check_elements(&shape, span)?;
        let dtype = self.built.tensors[derivative.0 as usize].dtype;
        let read = self.element(derivative, positions, dtype);
        let name = self.instance_name(FileId(0), "jacobian");
        let tensor = self.add_statement(name, read, vars, shape, span, Role::Hidden);
        let at = around.iter().map(|var| self.index(*var)).collect();
        Some(self.slice(tensor, at))
    }

    /// Refuses a derivative of complex elements by complex ones, which is no complex number.
    fn one_complex(&mut self, of: TensorRef, by: TensorRef, span: Span) -> Option<()> {
        let complex = |at: TensorRef| self.built.tensors[at.0 as usize].dtype.is_complex();
        if !complex(of) || !complex(by) {
            return Some(());
        }
        self.report.push(
            Diagnostic::error("E0606", "`jacobian` of complex values by complex values")
                .at(span, "such a derivative has four parts")
                .help("take that of a real part, defined first: `u[…] = re(y[…])`, `jacobian(u, z)`, and of `im`")
                .help("or that along a direction, `jvp(y, z, v)`"),
        );
        None
    }

    /// The tensor of the derivative of each element of a tensor, or of a scalar, by another.
    pub(crate) fn gradient_tensor(
        &mut self,
        loss: TensorRef,
        wrt: TensorRef,
        span: Span,
    ) -> TensorRef {
        let of = &self.built.tensors[loss.0 as usize];
        let mut like = self.built.tensors[wrt.0 as usize].clone();
        if self.inference.untyped.contains_key(&wrt) {
            like.dtype = of.dtype;
        }
        // Of a complex tensor by a real one.
        if of.dtype.is_complex()
            && let Some(complex) = like.dtype.compute().complex()
        {
            like.dtype = complex;
        }
        let shape = of.shape.iter().cloned().chain(like.shape).collect();
        self.add_tensor(Tensor {
            name: format!("grad.{}", like.name),
            dtype: like.dtype.compute(),
            shape,
            role: Role::Hidden,
            definition: Definition::Gradient { loss, wrt },
            span,
        })
    }

    /// The tensor whose elements are all differentiated, with the positions of the slice that it is.
    fn differentiated_whole(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
    ) -> Option<(TensorRef, Vec<ExprId>)> {
        if !matches!(&*unbracket(value).kind, ExprKind::Name(_)) {
            let text = self.names.text(value.span);
            let left = if text.contains('[') { "y[…]" } else { "y" };
            self.report.push(
                Diagnostic::error("E0606", format!("`{text}` is no tensor's name"))
                    .at(value.span, "an expression")
                    .help(format!(
                        "define it first, `{left} = {text}`, and write `jacobian(y, …)`"
                    )),
            );
            return None;
        }
        let view = self.differentiated_by(context, value)?;
        if self.view_shape(view).is_empty() {
            let text = self.names.text(value.span);
            let error = Diagnostic::error("E0606", format!("`{text}` is a scalar"));
            let error = error.at(value.span, "a Jacobian is of a tensor");
            self.report
                .push(error.help("of a scalar, write `grad(…, …)`"));
            return None;
        }
        Some((view.tensor, self.leading(view).to_vec()))
    }

    /// The value that is differentiated, as a tensor: a scalar, or of a value at each point the tensor of all points, with the
    /// positions of this one.
    pub(crate) fn loss(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
    ) -> Option<(TensorRef, Vec<ExprId>)> {
        self.differentiated(context, value, false)
    }

    /// Returns the tensor and the positions of a value that is differentiated; if `complex`, it may be complex.
    pub(crate) fn differentiated(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
        complex: bool,
    ) -> Option<(TensorRef, Vec<ExprId>)> {
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
                .help("sum it, say of which element, `grad(y[n], W)`, or write `jacobian(…, …)` for all of them"),
            );
            return None;
        }
        let id = self.expr(context, value)?;
        let id = self.settle(id, value.span)?;
        let suits = |dtype: DType| dtype.is_float() || (complex && dtype.is_complex());
        if !matches!(self.arena.ty(id), Ty::Typed(dtype) if suits(dtype)) {
            let have = self.type_name(id);
            self.report.push(
                Diagnostic::error(
                    "E0606",
                    format!("only floating-point values have gradients, not {have}"),
                )
                .at(value.span, format!("this is {have}"))
                .help(match self.complex_type(id) {
                    Some(_) => "of complex numbers take a real value: `re(…)`, `abs(…)^2`",
                    None => "convert it: `f32(…)`",
                }),
            );
            return None;
        }
        let vars = self.arena.free(id);
        if !vars.is_empty() {
            return self.loss_at_points(id, &vars, value.span);
        }
        if let Form::Read {
            tensor,
            positions,
            otherwise: None,
        } = &*self.arena.form(id)
            && positions.is_empty()
        {
            return Some((*tensor, vec![]));
        }
        let name = self.instance_name(FileId(0), "grad.loss");
        let loss = self.add_statement(name, id, vec![], vec![], value.span, Role::Hidden);
        Some((loss, vec![]))
    }

    /// A value for every value of some indices, as a tensor over them with their positions.
    fn loss_at_points(
        &mut self,
        id: ExprId,
        vars: &[VarId],
        span: Span,
    ) -> Option<(TensorRef, Vec<ExprId>)> {
        if let Form::Read {
            tensor,
            positions,
            otherwise: None,
        } = &*self.arena.form(id)
        {
            let is_index = |at: &ExprId| matches!(&*self.arena.form(*at), Form::Index(_));
            if positions.len() == vars.len() && positions.iter().all(is_index) {
                return Some((*tensor, positions.clone()));
            }
        }
        let mut shape = vec![];
        for var in vars {
            if self.extent(*var).is_none() {
                let known = &self.indices.vars[var.0 as usize];
                if known.stated.is_none() && known.uses.is_empty() {
                    let name = known.name.clone();
                    let error =
                        Diagnostic::error("E0306", format!("nothing says how far `{name}` runs"));
                    let error = error.at(span, "the gradient of a value for each of its values");
                    self.report
                        .push(error.help("define the value as a tensor first"));
                    return None;
                }
                if !self.solve(*var) {
                    return None;
                }
            }
            shape.push(self.extent(*var)?);
        }
        let name = self.instance_name(FileId(0), "grad.loss");
        let loss = self.add_statement(name, id, vars.to_vec(), shape, span, Role::Hidden);
        let positions = vars.iter().map(|var| self.index(*var)).collect();
        Some((loss, positions))
    }

    /// The tensor that a gradient is taken by.
    pub(crate) fn differentiated_by(
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
        if self.is_open_list(view.tensor) {
            let declared = record.span;
            self.report.push(
                Diagnostic::error("E0606", format!("`{text}` has no type of its own"))
                    .at(value.span, "a gradient is taken by this")
                    .at(declared, "declared here")
                    .help(format!("give it one: `const {text}: f32[…] = …`")),
            );
            return None;
        }
        if !record.dtype.is_float() && !record.dtype.is_complex() {
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
        let named = self.built.tensors.iter().filter(|tensor| {
            !matches!(
                tensor.definition,
                Definition::Gradient { .. } | Definition::Along(_)
            )
        });
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
        let derivative = match program.tensor(of).shape.is_empty() {
            true => gradients.derivative(program, of, by),
            false => gradients.at_points(program, of, by),
        };
        let derivative = derivative.map(|found| Gradient {
            depends: found.depends || !self.complex.is_independent(loss, wrt),
            ..found
        });
        self.derived(program, derivative, (of, by), span)
    }

    /// The tensor of a derivative that has been taken; zeros come with a warning.
    pub(crate) fn derived(
        &mut self,
        program: &Program,
        derivative: Result<Gradient, Diagnostic>,
        (of, by): (TensorId, TensorId),
        span: Span,
    ) -> Option<TensorId> {
        match derivative {
            Ok(gradient) => {
                if !gradient.depends {
                    let (of, by) = (program.tensor(of), &program.tensor(by).name);
                    let name = self.complex.name_of(&of.name);
                    let of = match of.role {
                        Role::Hidden if name == of.name => "what is differentiated".to_owned(),
                        _ => format!("`{name}`"),
                    };
                    let by = self.complex.name_of(by);
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
