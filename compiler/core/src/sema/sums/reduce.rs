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
    sizes::ranges::{DependentBound, Stated, StatedBy},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Reduction};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind, Position};
use std::collections::HashMap;

/// A replacement for an index.
#[derive(Clone, Copy)]
enum Place {
    /// A value of i64.
    Number(ExprId),
    /// An index of the same range.
    Index(VarId),
}

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
        let value = self.expr(context, body);
        context.indices.truncate(before);
        self.open_path().truncate(path);
        let mut value = value?;
        let is_unsigned = self.is_unsigned(value);
        let reduction = match is_unsigned {
            true => Checker::unsigned_reduction(reduction),
            false => reduction,
        };
        let is_order = matches!(reduction, Reduction::Max | Reduction::Min) || reduction.is_arg();
        let in_order = is_unsigned && is_order;
        if in_order {
            value = self.in_order(value);
        }
        let (value, ty) = self.reduction_types(reduction, value, body.span)?;
        if failed {
            return None;
        }
        if vars.is_empty() {
            // `..` stands for no index: one point.
            vars.push(self.unit_var(reduction_span, reduction));
        }
        if reduction.is_arg() && vars.len() > 1 {
            return self.flat_position((reduction, reduction_span), &vars, guard, value);
        }
        let form = Form::Reduce {
            reduction,
            vars,
            guard,
            body: value,
        };
        let reduced = self.arena.add(form, ty);
        Some(match in_order && !reduction.is_arg() {
            true => self.out_of_order(reduced),
            false => reduced,
        })
    }

    /// `argmax[i,j] e` as `first * size(j) + argmax[j] e`, where `first` is `argmax[i] max[j] e` of the rows with a point, and the second reduction looks at
    /// the row `first` alone. So the lowest position wins among equal values, as it does over one index.
    fn flat_position(
        &mut self,
        (reduction, span): (Reduction, Span),
        vars: &[VarId],
        guard: Option<ExprId>,
        value: ExprId,
    ) -> Option<ExprId> {
        let (first, rest) = vars.split_first()?;
        let i64 = Ty::Typed(DType::I64);
        if rest.is_empty() {
            let vars = vec![*first];
            let form = Form::Reduce {
                reduction,
                vars,
                guard,
                body: value,
            };
            return Some(self.arena.add(form, i64));
        }
        if !self.solve_early(*first) {
            return None;
        }
        let each = self.points_of(rest, span)?;
        let best = match reduction {
            Reduction::ArgMin => Reduction::Min,
            _ => Reduction::Max,
        };
        // The best of a row is compared as its elements are: before a narrow type rounds or wraps it.
        let computed = match self.arena.ty(value) {
            Ty::Typed(dtype) if dtype.is_narrow() => {
                let form = Form::Convert(value);
                self.arena.add(form, Ty::Typed(dtype.compute()))
            }
            _ => value,
        };
        // Its indices are others than those of the second reduction, which reads `first` within, and so are those that are reduced in it.
        let mut known = HashMap::new();
        let mut body = self.with_own_indices(computed, &mut known)?;
        let mut within = match guard {
            Some(guard) => Some(self.with_own_indices(guard, &mut known)?),
            None => None,
        };
        let mut own = vec![];
        for var in rest {
            let known = &self.indices.vars[var.0 as usize];
            let (name, span) = (known.name.clone(), known.span);
            let extent = self.extent(*var)?;
            let other = self.fresh_var(name, extent, span);
            if !self.solve(other) {
                return None;
            }
            let mut known = HashMap::new();
            within =
                within.map(|guard| self.at_place(guard, (*var, Place::Index(other)), &mut known));
            body = self.at_place(body, (*var, Place::Index(other)), &mut known);
            own.push(other);
        }
        let (body, ty) = self.reduction_types(best, body, span)?;
        // A row without a point is none to choose, though the best of nothing may be the best value that there is.
        let chooses = within.map(|within| {
            let form = Form::Reduce {
                reduction: Reduction::Any,
                vars: own.clone(),
                guard: None,
                body: within,
            };
            self.arena.add(form, Ty::Typed(DType::Bool))
        });
        let form = Form::Reduce {
            reduction: best,
            vars: own,
            guard: within,
            body,
        };
        let best = self.arena.add(form, ty);
        let body = self.settle(best, span)?;
        let form = Form::Reduce {
            reduction,
            vars: vec![*first],
            guard: chooses,
            body,
        };
        let row = self.arena.add(form, i64);
        let mut known = HashMap::new();
        let place = Place::Number(row);
        let guard = guard.map(|guard| self.at_place(guard, (*first, place), &mut known));
        let value = self.at_place(value, (*first, place), &mut known);
        let within = self.flat_position((reduction, span), rest, guard, value)?;
        let each = self.arena.whole(each);
        let each = self.coerce(each, DType::I64, span)?;
        let before = self.apply(Function::Mul, vec![row, each], span)?;
        self.apply(Function::Add, vec![before, within], span)
    }

    /// How many points some indices have together.
    fn points_of(&mut self, vars: &[VarId], span: Span) -> Option<Size> {
        let mut each = Size::number(1);
        for var in vars {
            if !self.solve_early(*var) {
                return None;
            }
            each = match each.times(&self.extent(*var)?) {
                Ok(each) => each,
                Err(error) => {
                    self.size_error(error, span);
                    return None;
                }
            };
        }
        Some(each)
    }

    /// The expression with other indices in the place of those that its reductions go through.
    fn with_own_indices(
        &mut self,
        id: ExprId,
        known: &mut HashMap<ExprId, ExprId>,
    ) -> Option<ExprId> {
        if let Some(done) = known.get(&id) {
            return Some(*done);
        }
        let mut form = (*self.arena.form(id)).clone();
        for argument in form.arguments_mut() {
            *argument = self.with_own_indices(*argument, known)?;
        }
        if let Form::Reduce {
            vars, guard, body, ..
        } = &mut form
        {
            for var in vars {
                let old = &self.indices.vars[var.0 as usize];
                let (name, span) = (old.name.clone(), old.span);
                if !self.solve_early(*var) {
                    return None;
                }
                let extent = self.extent(*var)?;
                let other = self.fresh_var(name, extent, span);
                if !self.solve(other) {
                    return None;
                }
                let mut placed = HashMap::new();
                for part in guard.iter_mut().chain([&mut *body]) {
                    *part = self.at_place(*part, (*var, Place::Index(other)), &mut placed);
                }
                *var = other;
            }
        }
        let ty = self.arena.ty(id);
        let own = self.arena.add(form, ty);
        known.insert(id, own);
        Some(own)
    }

    /// The expression with something else in the place of an index.
    fn at_place(
        &mut self,
        id: ExprId,
        (var, place): (VarId, Place),
        known: &mut HashMap<ExprId, ExprId>,
    ) -> ExprId {
        if !self.arena.free(id).contains(&var) {
            return id;
        }
        if let Some(done) = known.get(&id) {
            return *done;
        }
        let ty = self.arena.ty(id);
        let mut form = (*self.arena.form(id)).clone();
        let result = match &mut form {
            Form::Index(_) => match (place, ty) {
                (Place::Index(other), _) => self.arena.add(Form::Index(other), ty),
                (Place::Number(number), Ty::Typed(DType::I64)) => number,
                (Place::Number(number), _) => self.arena.add(Form::Convert(number), ty),
            },
            Form::SizeOf(_) => id,
            other => {
                for argument in other.arguments_mut() {
                    *argument = self.at_place(*argument, (var, place), known);
                }
                self.arena.add(form, ty)
            }
        };
        known.insert(id, result);
        result
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
        self.open_dependent_bounds().push(DependentBound {
            index: var,
            value,
            inclusive,
            span: bound.span,
        });
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
