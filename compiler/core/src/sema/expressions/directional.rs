//! `jvp(y, x, v)` and `hvp(loss, x, v)`: what they name, and the direction as a tensor of the shape of `x`.
//!
//! Where the direction or what moves is a slice at an index, there is a direction for every value of the index, and the result has the
//! index as a dimension in front. Must not know how derivatives are taken.
//!
//! ```text
//! jvp(y, x, v)[n]      =>   a tensor like y, read at (v0)
//! jvp(y, x, V[p])[n]   =>   a tensor with the dimensions of p and y, read at (p, v0)
//! hvp(loss, x, v)[d]   =>   jvp(g, x, v)[d] with g = grad(loss, x)
//! ```

use crate::autodiff::{Gradient, Gradients};
use crate::einsum::{Program, Role, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::{Along, Definition, Tensor},
    expressions::arena::{ExprId, TensorRef, Ty, VarId},
    expressions::builtins::HVP,
    expressions::scope::{Binding, Context, View},
    resolve::forms::unbracket,
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::{DType, Function};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind};
use std::collections::HashMap;

impl<'a> Checker<'a> {
    /// The tensor of a derivative along a direction, at the positions at which the statement reads it.
    pub(crate) fn along(
        &mut self,
        context: &mut Context<'_, 'a>,
        (name, arguments): (&str, &'a [Argument]),
        span: Span,
    ) -> Option<View> {
        let [of, wrt, direction] = arguments else {
            let given = arguments.len();
            self.report.push(
                Diagnostic::error("E0502", format!("`{name}` takes 3 arguments, not {given}")).at(
                    span,
                    "what is differentiated, by what, and along which direction",
                ),
            );
            return None;
        };
        self.by_position(name, arguments)?;
        let differentiated = match name {
            HVP => self.loss(context, &of.value),
            _ => self.moved(context, &of.value),
        };
        let moves = self.differentiated_by(context, &wrt.value);
        let (of, leading) = differentiated?;
        let moves = moves?;
        let (direction, points) = self.direction(context, (name, &direction.value), moves, span)?;
        let (of, leading) = match name {
            HVP => (self.gradient_tensor(of, moves.tensor, span), leading),
            _ => (of, leading),
        };
        let mut sizes: Vec<Size> = vec![];
        for var in &points {
            sizes.push(self.extent(*var)?);
        }
        let like = self.built.tensors[of.0 as usize].clone();
        let shape: Vec<Size> = sizes.into_iter().chain(like.shape).collect();
        self.check_elements(&shape, span)?;
        let along = Along {
            of,
            wrt: moves.tensor,
            direction,
        };
        let tensor = self.add_tensor(Tensor {
            name: format!("{name}.{}", like.name),
            dtype: like.dtype.compute(),
            shape,
            role: Role::Hidden,
            definition: Definition::Along(along),
            span,
        });
        let mut positions: Vec<ExprId> = points.iter().map(|var| self.index(*var)).collect();
        positions.extend(leading);
        if name == HVP {
            positions.extend(self.leading(moves).iter());
        }
        Some(self.slice(tensor, positions))
    }

    /// The tensor of which each element is differentiated, and its positions here: a tensor's name, or a value at each point.
    fn moved(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
    ) -> Option<(TensorRef, Vec<ExprId>)> {
        let is_whole = match &*unbracket(value).kind {
            ExprKind::Name(name) => {
                context.index(name).is_none()
                    && matches!(
                        self.binding(context.scope, name),
                        Some(Binding::Tensor(view)) if !self.view_shape(view).is_empty()
                    )
            }
            _ => false,
        };
        if !is_whole {
            return self.differentiated(context, value, true);
        }
        let view = self.differentiated_by(context, value)?;
        Some((view.tensor, self.leading(view).to_vec()))
    }

    /// The direction as a tensor with the shape of the tensor that moves, and the indices for whose values there is one each.
    fn direction(
        &mut self,
        context: &mut Context<'_, 'a>,
        (name, value): (&str, &'a Expr),
        moves: View,
        span: Span,
    ) -> Option<(TensorRef, Vec<VarId>)> {
        let dtype = self.built.tensors[moves.tensor.0 as usize].dtype.compute();
        let own = self.view_shape(moves);
        let given = match own.is_empty() {
            true => self.direction_of_scalar(context, value, dtype)?,
            false => {
                let path = std::mem::take(self.open_path());
                let view = self.library_argument(context, name, value);
                *self.open_path() = path;
                self.fitting_direction(name, view?, moves, value.span)?
            }
        };
        let vars = self.captured(&[Binding::Tensor(given), Binding::Tensor(moves)]);
        if given.is_whole() && moves.is_whole() {
            return Some((given.tensor, vec![]));
        }
        self.pin(&vars, span)?;
        let shape = self.built.tensors[moves.tensor.0 as usize].shape.clone();
        self.indices.open.push(Open::default());
        let mut dims = vec![];
        for (at, size) in shape.iter().enumerate() {
            dims.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let slice = self.leading(moves);
        let mut positions = self.leading(given).to_vec();
        positions.extend(dims[slice.len()..].iter().map(|var| self.index(*var)));
        let stored = self.built.tensors[given.tensor.0 as usize].dtype;
        let read = self.element(given.tensor, positions, stored);
        let mut root = self.converted(read, dtype);
        // The rest of the tensor does not move.
        for (var, position) in dims.iter().zip(slice.iter()) {
            let here = self.index(*var);
            let equal = self.apply(Function::Eq, vec![here, *position], span)?;
            let zero = self.arena.whole(Size::number(0));
            let zero = self.coerce(zero, dtype, span)?;
            root = self.apply(Function::Select, vec![equal, root, zero], span)?;
        }
        let mut sizes = vec![];
        for var in &vars {
            sizes.push(self.extent(*var)?);
        }
        let shape: Vec<Size> = sizes.into_iter().chain(shape).collect();
        self.check_elements(&shape, span)?;
        let all = vars.iter().copied().chain(dims).collect();
        let hidden = self.instance_name(FileId(0), &format!("{name}.direction"));
        let tensor = self.add_statement(hidden, root, all, shape, span, Role::Hidden);
        Some((tensor, vars))
    }

    /// The direction in which a scalar moves: a number, or a value at each point.
    fn direction_of_scalar(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
        dtype: DType,
    ) -> Option<View> {
        let id = self.expr(context, value)?;
        let id = match self.arena.ty(id) {
            Ty::Typed(own) if own.is_float() && own.compute() == dtype => self.converted(id, dtype),
            Ty::Typed(own) if own.is_float() && own.compute().complex() == Some(dtype) => {
                let real = self.converted(id, own.compute());
                self.as_complex(real, dtype)?
            }
            _ => self.coerce(id, dtype, value.span)?,
        };
        if let Binding::Tensor(view) = self.passed_scalar(id, value.span)? {
            return Some(view);
        }
        let name = self.instance_name(FileId(0), "direction");
        let tensor = self.add_statement(name, id, vec![], vec![], value.span, Role::Hidden);
        Some(View::of(tensor))
    }

    /// The direction, if it has the sizes and the type of what moves.
    fn fitting_direction(
        &mut self,
        name: &str,
        given: View,
        moves: View,
        span: Span,
    ) -> Option<View> {
        let (have, own) = (self.view_shape(given), self.view_shape(moves));
        let declared = self.built.tensors[moves.tensor.0 as usize].span;
        let (this, that) = (self.view_text(given), self.view_text(moves));
        let differs = |(a, b): (&Size, &Size)| a.differs(b);
        if have.len() != own.len() || have.iter().zip(&own).any(differs) {
            let what = format!("the direction of `{name}` has not the sizes of what moves");
            let mut error = Diagnostic::error("E0501", what)
                .at(span, format!("this is {this}"))
                .at(declared, format!("what moves is {that}"));
            if have.len() > own.len() {
                error = error.help("for several directions pass a slice for each: `V[p]`");
            }
            self.report.push(error);
            return None;
        }
        let moved = self.built.tensors[moves.tensor.0 as usize].dtype;
        let given = self.view_in(given, moved.part().unwrap_or(moved.compute()), span)?;
        let record = &self.built.tensors[given.tensor.0 as usize];
        let types = [given, moves].map(|view| self.built.tensors[view.tensor.0 as usize].dtype);
        let open = |view: View| self.inference.untyped.contains_key(&view.tensor);
        let fits = match (record.dtype.is_float(), types[1].part()) {
            // A real direction changes real parts alone.
            (true, Some(part)) => types[0].compute() == part,
            (true, None) => types[0].compute() == types[1].compute(),
            (false, _) => types[0].is_complex() && types[0] == types[1],
        };
        if !fits && !open(given) && !open(moves) {
            self.report.push(
                Diagnostic::error(
                    "E0401",
                    format!(
                        "the direction of `{name}` is {}, and what moves {}",
                        types[0], types[1]
                    ),
                )
                .at(span, format!("this is {this}"))
                .at(declared, format!("what moves is {that}"))
                .help(match types[0].is_complex() && !types[1].is_complex() {
                    true => "take a part of it: `t[…] = re(…)`".to_owned(),
                    false => format!("convert it first: `t[…] = {}(…)`", types[1]),
                }),
            );
            return None;
        }
        Some(given)
    }

    /// The statements of a derivative along a direction, appended to the program.
    pub(crate) fn lower_along(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        gradients: &mut Gradients,
        along: Along,
        span: Span,
    ) -> Option<TensorId> {
        let (of, by) = (*numbers.get(&along.of)?, *numbers.get(&along.wrt)?);
        let direction = *numbers.get(&along.direction)?;
        let found = gradients.along(program, (of, by), direction);
        let found = found.map(|found| Gradient {
            depends: found.depends || !self.complex.is_independent(along.of, along.wrt),
            ..found
        });
        self.derived(program, found, (of, by), span)
    }

    /// Checks a derivative along a direction against all of the program.
    pub(crate) fn check_along(
        &mut self,
        program: &Program,
        numbers: &HashMap<TensorRef, TensorId>,
        gradients: &mut Gradients,
        along: Along,
        span: Span,
    ) -> Option<()> {
        let (of, by) = (*numbers.get(&along.of)?, *numbers.get(&along.wrt)?);
        let direction = *numbers.get(&along.direction)?;
        let checked = gradients.check_direction(program, (of, by), direction);
        let wrong = checked.map_err(|diagnostic| diagnostic.at(span, "differentiated here"));
        wrong
            .map_err(|diagnostic| self.report.push(diagnostic))
            .ok()
    }
}
