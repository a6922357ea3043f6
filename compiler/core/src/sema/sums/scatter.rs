//! Scatters: `G[tok[n,t], d]: f32[V, D] += dE[n,t,d]`.
//!
//! A scatter is a reduction whose guard says which points go to a place: every position of the left side that is not an
//! index alone has an index of its own in `G`, and holds where the two are equal. A position that depends on data is
//! looked up in a list of the places of that dimension, so that one outside of it stops the run with its name. Must not
//! know kernels. With `else drop` the position itself is compared, and values without a place go nowhere.
//!
//! ```text
//! G[tok[n], d]: f32[V, D] += E[n,d]
//!   =>   G.target1: i64[V] = iota
//!        G[p1, d] = sum[n] where G.target1[tok[n]] == p1 of E[n, d]
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, SourceForm, Target, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    expressions::scope::{Binding, Context, Scope},
    resolve::Resolver,
    resolve::forms::{bare_name, bound_index, key, stands_alone},
    resolve::static_scope::{StaticScope, Unit},
    resolve::walk::Walk,
    sizes::ranges::{Obligation, Open, Stated, StatedBy},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Reduction, Source};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{self, Combine, Expr, ExprKind, Position, Type};

/// A type, as far as it is written: the element type and the sizes.
pub(crate) type Written = (Option<DType>, Option<Vec<Option<Size>>>);

/// A dimension of what a scatter defines.
pub(crate) enum Place<'a> {
    /// An index alone.
    Own(VarId),
    /// An expression.
    At(&'a Expr),
    /// An index with a bound.
    Bounded(VarId, Span),
}

/// True if a position is an index with a bound.
fn has_bound(position: &Position) -> bool {
    matches!(bound_index(position), Some((_, _, Some(_))))
}

impl<'a> Walk<'_, 'a> {
    /// A scatter: every index of its left side is bound there.
    fn scatter(&mut self, target: &'a ast::Target, ty: Option<&'a Type>, value: &'a Expr) {
        if let Some(Type::Tensor {
            shape: Some(shape), ..
        }) = ty
        {
            self.size_list(shape);
        }
        let Some(positions) = &target.positions else {
            self.fail(
                Diagnostic::error("E0506", "a scatter needs positions on its left side")
                    .at(target.span, "no positions here")
                    .help("they say where each value goes: `g[at[n]]: f32[V] += x[n]`"),
            );
            return;
        };
        // An index may stand in front of its bound: `a[j, j < 3]`.
        let bounded = positions.iter().filter(|position| has_bound(position));
        for position in positions.iter().flat_map(bounded_inside).chain(bounded) {
            self.bind(position, true);
        }
        self.left = true;
        for position in positions.iter().filter(|position| !has_bound(position)) {
            match position {
                Position::Rest(_) => self.bind(position, true),
                Position::Expr(expr) => self.position(expr),
            }
        }
        self.left = false;
        // A block's counter whose name the right side has as an index is that index on the left, too.
        for (name, span) in self.counters.clone() {
            if stands_alone(value, name) {
                self.note_implicit(name, span);
            }
        }
        self.settle_pending();
        let indices = std::mem::take(&mut self.implicit);
        self.bound.extend(indices);
        let names = self.bound.iter().map(|(name, _)| *name).collect();
        self.resolver.readings.scatters.insert(key(value), names);
        self.value(value);
    }
}

impl<'a> Resolver<'a> {
    /// Walks one scatter.
    pub(crate) fn walk_scatter(
        &mut self,
        scope: &StaticScope<'a>,
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Unit {
        let scope = scope.of_statement(value);
        let mut walk = Walk::new(self, &scope);
        walk.scatter(target, ty, value);
        walk.unit
    }
}

impl<'a> Checker<'a> {
    /// Checks one scatter.
    pub(crate) fn define_scatter(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        (combine, drops): (Combine, bool),
    ) -> Option<Binding> {
        let scope = &*self.scope_of_statement(scope, target.value)?;
        let (dtype, sizes) = self.scatter_type(scope, &target)?;
        let reduction = match combine {
            Combine::Add => Reduction::Sum,
            Combine::Max => Reduction::Max,
            Combine::Min => Reduction::Min,
            Combine::Once => return self.define_rearranged(scope, target, (dtype, sizes)),
        };
        let sizes = self.scatter_sizes(&target, sizes)?;
        let mut context = Context::new(scope);
        self.indices.open.push(Open::default());
        let known: Vec<Option<Size>> = sizes.iter().cloned().map(Some).collect();
        let read = self.scatter_parts(&mut context, &target, Some(&known), reduction);
        let value = self.expr(&mut context, target.value);
        let (Some((places, mut reduced)), Some(value)) = (read, value) else {
            self.indices.open.pop();
            return None;
        };
        let (mut own, mut equal, mut lists) = (vec![], vec![], vec![]);
        for (at, (place, size)) in places.into_iter().zip(&sizes).enumerate() {
            let position = match place {
                Place::Own(var) => {
                    own.push(var);
                    continue;
                }
                Place::At(expr) => self
                    .scatter_position(&mut context, expr)
                    .map(|p| (p, expr.span)),
                Place::Bounded(var, span) => Some((self.index(var), span)),
            };
            let var = self.fresh_var(format!("p{}", at + 1), size.clone(), target.target.span);
            own.push(var);
            let Some((position, span)) = position else {
                self.indices.open.pop();
                return None;
            };
            if drops {
                equal.push((position, None, var));
                continue;
            }
            let list = self.places(&target, size);
            self.open_obligations().push(Obligation {
                position,
                size: size.clone(),
                span,
                tensor: list,
                dimension: at,
                written: true,
                path: vec![],
            });
            lists.push((list, at));
            equal.push((position, Some(list), var));
        }
        if reduced.is_empty() {
            reduced.push(self.unit_var(target.target.span, reduction));
        }
        if !self.close() {
            return None;
        }
        for (list, at) in lists {
            let number = if sizes.len() == 1 {
                String::new()
            } else {
                (at + 1).to_string()
            };
            self.built.tensors[list.0 as usize].name = format!("{}.target{number}", target.name);
        }
        let guard = self.scatter_guard(equal, target.target.span)?;
        self.scattered(
            scope,
            target,
            (own, reduced),
            (reduction, guard, value),
            dtype,
        )
    }

    /// The tensor of a scatter: a reduction of the points that its guard lets through.
    pub(crate) fn scattered(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        (own, reduced): (Vec<VarId>, Vec<VarId>),
        (reduction, guard, value): (Reduction, Option<ExprId>, ExprId),
        dtype: Option<DType>,
    ) -> Option<Binding> {
        let span = target.value.span;
        let value = match dtype {
            Some(dtype) => match self.arena.ty(value) {
                Ty::Typed(have) if have != dtype && self.as_complex(value, dtype).is_none() => {
                    self.declared_type(dtype, have, &target, span);
                    return None;
                }
                _ => self.coerce(value, dtype, span)?,
            },
            None => self.settle(value, span)?,
        };
        let in_order = self.is_unsigned(value) && reduction != Reduction::Sum;
        let value = match in_order {
            true => self.in_order(value),
            false => value,
        };
        let stored = self.arena.ty(value);
        let (body, ty) = self.reduction_types(reduction, value, span)?;
        let form = Form::Reduce {
            reduction,
            vars: reduced,
            guard,
            body,
        };
        let mut root = self.arena.add(form, ty);
        if ty != stored {
            root = self.arena.add(Form::Convert(root), stored);
        }
        if in_order {
            root = self.out_of_order(root);
        }
        self.add_definition(scope, target, own, root)
    }

    /// The element type and the sizes of what a scatter defines, as far as they are written.
    fn scatter_type(&mut self, scope: &Scope<'a>, target: &Target<'a>) -> Option<Written> {
        let dtype = match target.ty {
            Some(Type::Tensor { dtype, .. }) => Some(*dtype),
            _ => None,
        };
        if let Some(Type::Tensor {
            shape: Some(shape), ..
        }) = target.ty
        {
            let sizes = self.declared_sizes(scope, shape)?;
            return Some((dtype, Some(sizes.into_iter().map(Some).collect())));
        }
        let stated = target.stated.as_ref().map(|(sizes, ..)| sizes.clone());
        Some((dtype, stated))
    }

    /// All sizes of what a scatter defines; reports those that are missing.
    fn scatter_sizes(
        &mut self,
        target: &Target<'a>,
        sizes: Option<Vec<Option<Size>>>,
    ) -> Option<Vec<Size>> {
        let known: Option<Vec<Size>> = sizes.and_then(|sizes| sizes.into_iter().collect());
        if known.is_none() {
            let name = &target.target.name.text;
            self.report.push(
                Diagnostic::error("E0506", format!("a scatter needs the sizes of `{name}`"))
                    .at(target.target.span, "nothing says how many places there are")
                    .help(format!(
                        "write its type: `{}: f32[…] += …`",
                        self.names.text(target.target.span)
                    )),
            );
        }
        known
    }

    /// The dimensions of the left side, and the indices that are gone through without being one.
    pub(crate) fn scatter_parts(
        &mut self,
        context: &mut Context<'_, 'a>,
        target: &Target<'a>,
        sizes: Option<&[Option<Size>]>,
        reduction: Reduction,
    ) -> Option<(Vec<Place<'a>>, Vec<VarId>)> {
        let names = self.readings.scatters.get(&key(target.value)).cloned()?;
        let (mut places, mut reduced, mut failed) = (vec![], vec![], false);
        let positions = target.target.positions.iter().flatten();
        for position in positions.clone().flat_map(bounded_inside) {
            let bounded = self.bounded_place(context, position, reduction);
            failed |= bounded.is_none();
            reduced.extend(bounded.map(|(var, _)| var));
        }
        let mut bounded = vec![];
        for position in positions.clone().filter(|position| has_bound(position)) {
            let (var, span) = self.bounded_place(context, position, reduction)?;
            reduced.push(var);
            bounded.push(Place::Bounded(var, span));
        }
        let mut bounded = bounded.into_iter();
        for position in positions {
            match position {
                _ if has_bound(position) => places.extend(bounded.next()),
                Position::Rest(span) => {
                    let vars = self.index_vars(context.scope, "..", *span, None);
                    context.indices.push(("..", vars.clone()));
                    places.extend(vars.into_iter().map(Place::Own));
                }
                Position::Expr(expr) => {
                    let index = bare_name(position)
                        .filter(|(name, _)| names.contains(name) && context.index(name).is_none());
                    match index {
                        Some((name, span)) => {
                            let var = self.index_vars(context.scope, name, span, None)[0];
                            context.indices.push((name, vec![var]));
                            places.push(Place::Own(var));
                        }
                        None => places.push(Place::At(expr)),
                    }
                }
            }
        }
        for name in names {
            if context.index(name).is_none() {
                let span = target.target.span;
                let vars = self.index_vars(context.scope, name, span, Some(reduction));
                context.indices.push((name, vars.clone()));
                reduced.extend(vars);
            }
        }
        let unknown = vec![None; places.len()];
        let sizes = sizes.unwrap_or(&unknown);
        if places.len() != sizes.len() {
            let name = &target.target.name.text;
            self.report.push(
                Diagnostic::error(
                    "E0304",
                    format!(
                        "`{name}` has {} position{} on the left, but is declared with {}",
                        places.len(),
                        crate::sema::report::plural(places.len()),
                        crate::sema::report::dimensions(sizes.len())
                    ),
                )
                .at(target.target.span, "the left side"),
            );
            return None;
        }
        for (place, size) in places.iter().zip(sizes) {
            if let (Place::Own(var), Some(size)) = (place, size) {
                let var = &mut self.indices.vars[var.0 as usize];
                var.stated = Some(Stated {
                    size: size.clone(),
                    span: target.target.span,
                    by: StatedBy::LeftType,
                });
            }
        }
        (!failed).then_some((places, reduced))
    }

    /// An index that the left side binds with a bound, and its place.
    fn bounded_place(
        &mut self,
        context: &mut Context<'_, 'a>,
        position: &'a Position,
        reduction: Reduction,
    ) -> Option<(VarId, Span)> {
        let (name, span, bound) = bound_index(position)?;
        let (bound, inclusive) = bound?;
        let var = self.index_vars(context.scope, name, span, Some(reduction))[0];
        context.indices.push((name, vec![var]));
        let mut size = self.size(context.scope, bound, "a bound on the left")?;
        if inclusive {
            size = size.plus(&Size::number(1)).ok()?;
        }
        self.state_range(var, size, bound.span)?;
        Some((var, span))
    }

    pub(crate) fn scatter_position(
        &mut self,
        context: &mut Context<'_, 'a>,
        expr: &'a Expr,
    ) -> Option<ExprId> {
        let floor = std::mem::replace(&mut context.floor, true);
        context.left = true;
        let value = self.expr(context, expr);
        context.left = false;
        context.floor = floor;
        let value = self.integer(value?, expr.span, "a position")?;
        self.position_value(value, expr.span)
    }

    /// The list of the places of one dimension. Until all is proved it has the name of what is defined.
    fn places(&mut self, target: &Target<'a>, size: &Size) -> TensorRef {
        self.add_tensor(Tensor {
            name: target.name.clone(),
            dtype: DType::I64,
            shape: vec![size.clone()],
            role: Role::Hidden,
            definition: Definition::Source(SourceForm::Ready(Source::Iota)),
            span: target.target.span,
        })
    }

    /// The condition that a point goes to a place. Positions without a list of places may lie outside, and equal none then.
    pub(crate) fn scatter_guard(
        &mut self,
        equal: Vec<(ExprId, Option<TensorRef>, VarId)>,
        span: Span,
    ) -> Option<Option<ExprId>> {
        let mut guard = None;
        for (position, list, var) in equal {
            // An affine position has been proved to be in range.
            let place = match list.filter(|_| self.linear(position).is_none()) {
                None => position,
                Some(tensor) => {
                    let form = Form::Read {
                        tensor,
                        positions: vec![position],
                        otherwise: None,
                    };
                    self.arena.add(form, Ty::Typed(DType::I64))
                }
            };
            let index = self.index(var);
            let here = self.apply(Function::Eq, vec![place, index], span)?;
            guard = Some(match guard {
                None => here,
                Some(guard) => self.apply(Function::And, vec![guard, here], span)?,
            });
        }
        Some(guard)
    }
}

/// The positions inside of a place that bind an index with a bound: `z < 4` in `letter[z < 4]`.
fn bounded_inside(place: &Position) -> Vec<&Position> {
    let (mut found, mut open) = (vec![], vec![]);
    if let (Position::Expr(expr), None) = (place, bound_index(place)) {
        open.push(expr);
    }
    while let Some(expr) = open.pop() {
        if let ExprKind::Access { positions, .. } = &*expr.kind {
            let bounded = |p: &&Position| matches!(bound_index(p), Some((_, _, Some(_))));
            found.extend(positions.iter().filter(bounded));
        }
        open.extend(expr.kind.children().into_iter().rev());
    }
    found
}
