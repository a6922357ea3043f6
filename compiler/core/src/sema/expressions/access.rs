//! Accesses `X[i, 2*y + r, tok[n], ..]`: which tensor, how many positions, and what each position asks for.
//!
//! A bare index gives its range; everything else must be in range, which is proved once all ranges are known,
//! or is looked up at run time. Must not know how ranges are found.
//!
//! ```text
//! I[n, c, 2*y + r - 1] else 0   =>   read I (v0, v1, add(mul(2, v2), …)), use v0: N, use v1: C
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    expressions::scope::{Binding, Context, View},
    report::dimensions,
    resolve::forms::bound_index,
    sizes::ranges::{Obligation, StatedBy, Use},
};
use ein_plan::DType;
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, Position};

/// A position with its place, and its variable if it is nothing but an index; `None` after an error.
type Written = Option<(ExprId, Span, Option<VarId>)>;

impl<'a> Checker<'a> {
    /// A read of a tensor; with `lenient`, what is out of range is someone else's care (`else`).
    pub(crate) fn access(
        &mut self,
        context: &mut Context<'_, 'a>,
        base: &'a Expr,
        positions: &'a [Position],
        lenient: bool,
        span: Span,
    ) -> Option<ExprId> {
        let view = self.access_base(context, base);
        let values = self.positions(context, positions);
        let view = view?;
        self.check_rank(base, view, values.len(), span)?;
        self.read(view, values, lenient)
    }

    /// `X[i - 1] else 0`.
    pub(crate) fn otherwise(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
        fallback: &'a Expr,
    ) -> Option<ExprId> {
        match &*value.kind {
            ExprKind::Access { base, positions } => {
                let read = self.access(context, base, positions, true, value.span);
                let other = self.expr(context, fallback);
                let (mut read, other) = (read?, other?);
                if let Ty::Typed(dtype) = self.arena.ty(other) {
                    read = self.list_beside(read, dtype, value.span)?;
                }
                let (_, mut other) =
                    self.unify((read, value.span), (other, fallback.span), "`else`")?;
                let mut ty = self.arena.ty(read);
                match (ty, self.arena.ty(other)) {
                    (Ty::Typed(dtype), _) => other = self.coerce(other, dtype, fallback.span)?,
                    (Ty::Number { whole }, Ty::Number { whole: with }) => {
                        ty = Ty::Number {
                            whole: whole && with,
                        };
                    }
                    // A state whose type is not known yet.
                    (Ty::Number { .. }, with) => ty = with,
                }
                match &*self.arena.form(read) {
                    Form::Read {
                        tensor, positions, ..
                    } => {
                        let form = Form::Read {
                            tensor: *tensor,
                            positions: positions.clone(),
                            otherwise: Some(other),
                        };
                        Some(self.arena.add(form, ty))
                    }
                    _ => Some(read),
                }
            }
            _ => None,
        }
    }

    /// `A[p]` as an argument: a slice if it has fewer positions than the tensor has dimensions, else a value.
    pub(crate) fn slice_argument(
        &mut self,
        context: &mut Context<'_, 'a>,
        base: &'a Expr,
        positions: &'a [Position],
        span: Span,
    ) -> Option<Binding> {
        let view = self.access_base(context, base);
        let values = self.positions(context, positions);
        let view = view?;
        if values.len() < self.view_shape(view).len() {
            let leading = self.read_positions(view, values, false)?;
            return Some(Binding::Tensor(self.slice(view.tensor, leading)));
        }
        self.check_rank(base, view, values.len(), span)?;
        self.read(view, values, false).map(Binding::Scalar)
    }

    fn check_rank(&mut self, base: &Expr, view: View, given: usize, span: Span) -> Option<()> {
        let rank = self.view_shape(view).len();
        if rank == given {
            return Some(());
        }
        let name = self.names.text(base.span);
        let declared = self.built.tensors[view.tensor.0 as usize].span;
        self.report.push(
            Diagnostic::error(
                "E0304",
                format!("`{name}` has {}, not {given}", dimensions(rank)),
            )
            .at(
                span,
                format!(
                    "{given} position{} here",
                    crate::sema::report::plural(given)
                ),
            )
            .at(declared, format!("it is {} here", self.view_text(view))),
        );
        None
    }

    /// The values of written positions.
    fn positions(
        &mut self,
        context: &mut Context<'_, 'a>,
        positions: &'a [Position],
    ) -> Vec<Written> {
        let floor = std::mem::replace(&mut context.floor, true);
        let mut values: Vec<Written> = vec![];
        for position in positions {
            match position {
                Position::Rest(span) => {
                    for var in context.index("..").unwrap_or_default().to_vec() {
                        values.push(Some((self.index(var), *span, Some(var))));
                    }
                }
                Position::Expr(expr) => {
                    let index = match bound_index(position) {
                        Some((name, place, Some(_))) if context.left => {
                            context.index(name).map(|vars| (vars[0], place))
                        }
                        _ => None,
                    };
                    values.push(match index {
                        Some((var, place)) => Some((self.index(var), place, Some(var))),
                        None => self.position(context, expr),
                    });
                }
            }
        }
        context.floor = floor;
        values
    }

    fn read(&mut self, view: View, values: Vec<Written>, lenient: bool) -> Option<ExprId> {
        let ty = self.read_type(view.tensor);
        let positions = self.read_positions(view, values, lenient)?;
        self.indices.reads.push((view.tensor, positions.clone()));
        let form = Form::Read {
            tensor: view.tensor,
            positions,
            otherwise: None,
        };
        Some(self.arena.add(form, ty))
    }

    /// All positions of a read or slice; notes what must be in range.
    fn read_positions(
        &mut self,
        view: View,
        values: Vec<Written>,
        lenient: bool,
    ) -> Option<Vec<ExprId>> {
        let tensor = view.tensor;
        let mut read = self.leading(view).to_vec();
        let (skip, count) = (read.len(), values.len());
        let shape = self.built.tensors[tensor.0 as usize].shape.clone();
        for (dimension, (value, size)) in values.into_iter().zip(&shape[skip..]).enumerate() {
            let Some((id, place, bare)) = value else {
                continue;
            };
            read.push(id);
            // A bounded index says its range itself, so it is a position like any other.
            let bounded = |var: &VarId| {
                let stated = &self.indices.vars[var.0 as usize].stated;
                stated.as_ref().is_some_and(|s| s.by == StatedBy::Bound)
            };
            match bare.filter(|var| !bounded(var)) {
                Some(var) => self.indices.vars[var.0 as usize].uses.push(Use {
                    size: size.clone(),
                    span: place,
                    tensor,
                    lenient,
                }),
                None if !lenient => {
                    let path = self.open_path().clone();
                    self.open_obligations().push(Obligation {
                        position: id,
                        size: size.clone(),
                        span: place,
                        tensor,
                        dimension: skip + dimension,
                        written: false,
                        path,
                    });
                }
                None => {}
            }
        }
        (read.len() == skip + count).then_some(read)
    }

    fn access_base(&mut self, context: &mut Context<'_, 'a>, base: &'a Expr) -> Option<View> {
        let (binding, name) = match &*base.kind {
            ExprKind::Name(name) => match self.binding(context.scope, name)? {
                Binding::Scalar(_) => {
                    self.report.push(
                        Diagnostic::error("E0304", format!("`{name}` is not a tensor"))
                            .at(base.span, "a scalar was passed for it")
                            .help(format!("write `{name}` alone, or pass a tensor")),
                    );
                    return None;
                }
                binding => (binding, name.as_str()),
            },
            ExprKind::Call { callee, arguments } => {
                if let Some(gradient) = self.whole_gradient(context, base) {
                    return gradient;
                }
                if let Some(result) = self.whole_library(context, base, &[]) {
                    return result;
                }
                let name = self.names.text(callee.span);
                if self.callee(context.scope, callee).is_none() {
                    self.report.push(
                        Diagnostic::error("E0304", format!("`{name}` gives a scalar"))
                            .at(base.span, "a scalar has no positions"),
                    );
                    return None;
                }
                let binding = self.call_one(context, callee, arguments, base.span, &[])?;
                (binding, name)
            }
            _ => return None,
        };
        match binding {
            Binding::Tensor(view) => Some(view),
            Binding::Scalar(_) => {
                self.report.push(
                    Diagnostic::error("E0304", format!("`{name}` gives a scalar"))
                        .at(base.span, "a scalar has no positions")
                        .help(format!("give it elements: `{name}(x[i])`")),
                );
                None
            }
            Binding::Instance(_) | Binding::Poison => None,
        }
    }

    pub(crate) fn index(&mut self, var: VarId) -> ExprId {
        self.arena.add(Form::Index(var), Ty::Typed(DType::I64))
    }

    /// One position as an `i64`, with its variable if it is nothing but an index.
    fn position(&mut self, context: &mut Context<'_, 'a>, expr: &'a Expr) -> Written {
        if let ExprKind::Name(name) = &*expr.kind
            && let Some([var]) = context.index(name)
        {
            let var = *var;
            return Some((self.index(var), expr.span, Some(var)));
        }
        let value = self.expr(context, expr)?;
        let value = self.integer(value, expr.span, "a position")?;
        let value = self.position_value(value, expr.span)?;
        Some((value, expr.span, None))
    }

    /// A tensor's type in the user's terms.
    pub(crate) fn shape_text(&self, tensor: TensorRef) -> String {
        self.view_text(View::of(tensor))
    }
}
