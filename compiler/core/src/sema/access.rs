//! Accesses `X[i, 2*y + r, tok[n], ..]`: which tensor, how many positions, and what each position asks for.
//!
//! A bare index gives its range; everything else must be in range, which is proved once all ranges are known,
//! or is looked up at run time. Must not know how ranges are found.
//!
//! ```text
//! I[n, c, 2*y + r - 1] else 0   =>   read I (v0, v1, add(mul(2, v2), …)), use v0: N, use v1: C
//! ```

use super::{
    Checker,
    arena::{ExprId, Form, TensorRef, Ty, VarId},
    expr::{Binding, Context, dimensions},
    ranges::{Obligation, StatedBy, Use},
};
use ein_plan::DType;
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, Position};

impl<'a> Checker<'a> {
    /// A read of a tensor; with `lenient`, what is out of range is someone else's care (`else`).
    pub(super) fn access(
        &mut self,
        context: &mut Context<'_, 'a>,
        base: &'a Expr,
        positions: &'a [Position],
        lenient: bool,
        span: Span,
    ) -> Option<ExprId> {
        let tensor = self.access_base(context, base);
        let floor = std::mem::replace(&mut context.floor, true);
        let mut values: Vec<Option<(ExprId, Span, Option<VarId>)>> = vec![];
        for position in positions {
            match position {
                Position::Rest(span) => {
                    for var in context.index("..").unwrap_or_default().to_vec() {
                        values.push(Some((self.index(var), *span, Some(var))));
                    }
                }
                Position::Expr(expr) => values.push(self.position(context, expr)),
            }
        }
        context.floor = floor;
        let tensor = tensor?;
        let record = &self.tensors[tensor.0 as usize];
        let (dtype, shape, declared) = (record.dtype, record.shape.clone(), record.span);
        if shape.len() != values.len() {
            let name = self.text(base.span);
            let given = values.len();
            self.report.push(
                Diagnostic::error(
                    "E0304",
                    format!("`{name}` has {}, not {given}", dimensions(shape.len())),
                )
                .at(
                    span,
                    format!("{given} position{} here", super::expr::plural(given)),
                )
                .at(declared, format!("it is {} here", self.shape_text(tensor))),
            );
            return None;
        }
        let mut read = vec![];
        for (dimension, (value, size)) in values.into_iter().zip(shape).enumerate() {
            let Some((id, place, bare)) = value else {
                continue;
            };
            read.push(id);
            // A bounded index says its range itself, so it is a position like any other.
            let bounded = |var: &VarId| {
                let stated = &self.vars[var.0 as usize].stated;
                stated.as_ref().is_some_and(|s| s.by == StatedBy::Bound)
            };
            match bare.filter(|var| !bounded(var)) {
                Some(var) => self.vars[var.0 as usize].uses.push(Use {
                    size,
                    span: place,
                    tensor,
                    lenient,
                }),
                None if !lenient => {
                    let path = self.open_path().clone();
                    self.open_obligations().push(Obligation {
                        position: id,
                        size,
                        span: place,
                        tensor,
                        dimension,
                        path,
                    });
                }
                None => {}
            }
        }
        if read.len() != self.tensors[tensor.0 as usize].shape.len() {
            return None;
        }
        self.reads.push((tensor, read.clone()));
        let form = Form::Read {
            tensor,
            positions: read,
            otherwise: None,
        };
        Some(self.arena.add(form, Ty::Typed(dtype)))
    }

    fn access_base(&mut self, context: &mut Context<'_, 'a>, base: &'a Expr) -> Option<TensorRef> {
        match &*base.kind {
            ExprKind::Name(name) => match self.binding(context.scope, name)? {
                Binding::Tensor(tensor) => Some(tensor),
                Binding::Scalar(_) => {
                    self.report.push(
                        Diagnostic::error("E0304", format!("`{name}` is not a tensor"))
                            .at(base.span, "a scalar was passed for it")
                            .help(format!("write `{name}` alone, or pass a tensor")),
                    );
                    None
                }
                Binding::Poison => None,
            },
            ExprKind::Call { callee, arguments } => {
                if let Some(gradient) = self.whole_gradient(context, base) {
                    return gradient;
                }
                let ExprKind::Name(name) = &*callee.kind else {
                    return None;
                };
                let Some((entity, function)) = self.user_function(context.scope, name) else {
                    self.report.push(
                        Diagnostic::error("E0304", format!("`{name}` gives a scalar"))
                            .at(base.span, "a scalar has no positions"),
                    );
                    return None;
                };
                match self.call_user(context, entity, function, arguments, base.span, None)? {
                    Binding::Tensor(tensor) => Some(tensor),
                    Binding::Scalar(_) => {
                        self.report.push(
                            Diagnostic::error("E0304", format!("`{name}` gives a scalar"))
                                .at(base.span, "a scalar has no positions")
                                .help(format!("give it elements: `{name}(x[i])`")),
                        );
                        None
                    }
                    Binding::Poison => None,
                }
            }
            _ => None,
        }
    }

    pub(super) fn index(&mut self, var: VarId) -> ExprId {
        self.arena.add(Form::Index(var), Ty::Typed(DType::I64))
    }

    /// One position as an `i64`, with its variable if it is nothing but an index.
    fn position(
        &mut self,
        context: &mut Context<'_, 'a>,
        expr: &'a Expr,
    ) -> Option<(ExprId, Span, Option<VarId>)> {
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
    pub(super) fn shape_text(&self, tensor: TensorRef) -> String {
        let record = &self.tensors[tensor.0 as usize];
        let sizes: Vec<String> = record.shape.iter().map(ToString::to_string).collect();
        if sizes.is_empty() {
            record.dtype.name().into()
        } else {
            format!("{}[{}]", record.dtype, sizes.join(", "))
        }
    }
}
