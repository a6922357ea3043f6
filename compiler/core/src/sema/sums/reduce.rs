//! Reductions, bounds of indices, and `where`: what holds for an index while its body is read.
//!
//! Must not know how ranges are solved.
//!
//! ```text
//! sum[s <= t] x[s]   =>   sum[v1] where le(v1, v0) of read x (v1)
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, Ty, VarId},
    expressions::scope::Context,
    resolve::forms::bound_index,
    sizes::ranges::{Stated, StatedBy},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Reduction};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind, Position};

impl<'a> Checker<'a> {
    pub(crate) fn reduce(
        &mut self,
        context: &mut Context<'_, 'a>,
        (reduction, reduction_span): (Reduction, Span),
        indices: &'a [Position],
        body: &'a Expr,
    ) -> Option<ExprId> {
        let (before, path) = (context.indices.len(), self.open_path().len());
        let (mut vars, mut guard, mut failed) = (vec![], None, false);
        for index in indices {
            let Some((name, span, bound)) = bound_index(index) else {
                failed = true;
                continue;
            };
            let new = self.index_vars(context.scope, name, span, Some(reduction));
            vars.extend(&new);
            context.indices.push((name, new.clone()));
            let (Some((bound, inclusive)), [var]) = (bound, new.as_slice()) else {
                continue;
            };
            match self.bound(context, *var, bound, inclusive) {
                Some(None) => {}
                Some(Some(condition)) => {
                    self.open_path().push(condition);
                    guard = match guard {
                        None => Some(condition),
                        Some(other) => self.apply(Function::And, vec![other, condition], span),
                    };
                }
                None => failed = true,
            }
        }
        if reduction.is_arg() && vars.len() != 1 {
            self.report.push(
                Diagnostic::error("E0206", format!("`{}` takes one index", reduction.name()))
                    .at(reduction_span, format!("it has {} here", vars.len()))
                    .help("its result is the number of that index"),
            );
            failed = true;
        }
        let value = self.expr(context, body);
        context.indices.truncate(before);
        self.open_path().truncate(path);
        let (value, ty) = self.reduction_types(reduction, value?, body.span)?;
        if failed {
            return None;
        }
        if vars.is_empty() {
            // `..` stands for no index: one point.
            vars.push(self.unit_var(reduction_span, reduction));
        }
        let form = Form::Reduce {
            reduction,
            vars,
            guard,
            body: value,
        };
        Some(self.arena.add(form, ty))
    }

    /// Gives an index its bound: as its size, or, if it depends on other indices or on data, as a condition.
    pub(crate) fn bound(
        &mut self,
        context: &mut Context<'_, 'a>,
        var: VarId,
        bound: &'a Expr,
        inclusive: bool,
    ) -> Option<Option<ExprId>> {
        let floor = std::mem::replace(&mut context.floor, true);
        let value = self.expr(context, bound);
        context.floor = floor;
        let value = self.integer(value?, bound.span, "a bound")?;
        if let Some(size) = self.arena.as_size(value) {
            let size = if inclusive {
                match size.plus(&Size::number(1)) {
                    Ok(size) => size,
                    Err(error) => {
                        self.size_error(error, bound.span);
                        return None;
                    }
                }
            } else {
                size
            };
            self.state_range(var, size, bound.span)?;
            return Some(None);
        }
        if let ExprKind::Name(name) = &*bound.kind
            && let Some([other]) = context.index(name)
        {
            let pair = (var, *other);
            self.open_related().push(pair);
        }
        let index = self.arena.add(Form::Index(var), Ty::Number { whole: true });
        let index = self.coerce(index, DType::I64, bound.span)?;
        let value = self.position_value(value, bound.span)?;
        let function = if inclusive {
            Function::Le
        } else {
            Function::Lt
        };
        self.apply(function, vec![index, value], bound.span)
            .map(Some)
    }

    /// Notes that an index runs over `size` by its bound.
    pub(crate) fn state_range(&mut self, var: VarId, size: Size, span: Span) -> Option<()> {
        if size.at_least_zero() == Some(false) {
            self.report.push(
                Diagnostic::error("E0307", format!("a negative size: {size}"))
                    .at(span, format!("this is {size}")),
            );
            return None;
        }
        self.indices.vars[var.0 as usize].stated = Some(Stated {
            size,
            span,
            by: StatedBy::Bound,
        });
        Some(())
    }

    pub(crate) fn where_(
        &mut self,
        context: &mut Context<'_, 'a>,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<ExprId> {
        let [condition, a, b] = arguments else {
            return None;
        };
        let test = self.expr(context, &condition.value);
        let test = test.and_then(|test| self.condition("`where`", (test, condition.value.span)));
        let not = test.and_then(|test| self.apply(Function::Not, vec![test], span));
        let mut branches = vec![];
        for (branch, assumed) in [(a, test), (b, not)] {
            let path = self.open_path().len();
            self.open_path().extend(assumed);
            branches.push(self.expr(context, &branch.value));
            self.open_path().truncate(path);
        }
        let (x, y) = ((branches[0]?, a.value.span), (branches[1]?, b.value.span));
        let (x, y) = self.unify(x, y, "`where`")?;
        self.apply(Function::Select, vec![test?, x, y], span)
    }
}
