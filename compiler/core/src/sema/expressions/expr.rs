//! Expressions of the text as typed expressions over index variables.
//!
//! Contract: the text has passed the walk of `resolve`, so every name has a meaning and implicit sums have
//! their places. `None` means that an error has been reported. Must not know kernels.
//!
//! ```text
//! exp(z[n] - max[k] z[k])   =>   exp(sub(read z (v0), max[v1] read z (v1)))
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, Ty},
    expressions::builtins::{self, Builtin},
    expressions::scope::{Binding, Context, Scope, View},
    report::{dimensions, plural},
    resolve::forms::{key, spine},
    resolve::names::Found,
    sizes::size::Size,
};
use ein_plan::{DType, Function, Reduction, Scalar};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Binary, Expr, ExprKind};

/// The magnitude of the least i64, which is more than the greatest one.
const LEAST: u64 = i64::MIN.unsigned_abs();

impl<'a> Checker<'a> {
    /// An expression; its implicit sum, if it has one, around it.
    pub(crate) fn expr(&mut self, context: &mut Context<'_, 'a>, expr: &'a Expr) -> Option<ExprId> {
        let value = self.summed(context, expr)?;
        if self.task.tabled {
            self.built.expressions.push((expr.span, value));
        }
        Some(value)
    }

    fn summed(&mut self, context: &mut Context<'_, 'a>, expr: &'a Expr) -> Option<ExprId> {
        let Some(names) = self.readings.sums.get(&key(expr)) else {
            return self.plain(context, expr);
        };
        let (before, mut vars) = (context.indices.len(), vec![]);
        for name in names.clone() {
            let new = self.index_vars(context.scope, name, expr.span, Some(Reduction::Sum));
            vars.extend(&new);
            context.indices.push((name, new));
        }
        let body = self.plain(context, expr);
        context.indices.truncate(before);
        let (body, ty) = self.reduction_types(Reduction::Sum, body?, expr.span)?;
        let form = Form::Reduce {
            reduction: Reduction::Sum,
            vars,
            guard: None,
            body,
        };
        Some(self.arena.add(form, ty))
    }

    pub(crate) fn plain(
        &mut self,
        context: &mut Context<'_, 'a>,
        expr: &'a Expr,
    ) -> Option<ExprId> {
        let span = expr.span;
        match &*expr.kind {
            ExprKind::Integer(value) => match i64::try_from(*value) {
                Ok(value) => Some(self.arena.whole(Size::number(value))),
                Err(_) => Some(self.unsigned_literal(*value)),
            },
            ExprKind::Float(value) => Some(self.arena.real(*value)),
            ExprKind::Bool(value) => Some(self.arena.truth(*value)),
            ExprKind::Name(name) => self.name(context, name, span),
            ExprKind::Bracket(inner) => self.expr(context, inner),
            ExprKind::Negate(inner) if matches!(&*inner.kind, ExprKind::Integer(LEAST)) => {
                Some(self.arena.whole(Size::number(i64::MIN)))
            }
            ExprKind::Negate(inner) if matches!(&*inner.kind, ExprKind::Integer(LEAST..)) => {
                self.beyond_64_bits(span);
                None
            }
            ExprKind::Negate(inner) => {
                let x = self.expr(context, inner)?;
                if self.arena.ty(x) == Ty::Typed(DType::Bool) {
                    self.wrong_type("-", "numbers", (x, inner.span));
                    return None;
                }
                self.apply(Function::Neg, vec![x], span)
            }
            ExprKind::Not(inner) => {
                let x = self.expr(context, inner)?;
                let x = self.condition("`not`", (x, inner.span))?;
                self.apply(Function::Not, vec![x], span)
            }
            ExprKind::Binary { .. } => self.binaries(context, expr),
            ExprKind::Chain { first, rest } => {
                let mut operands = vec![(self.expr(context, first), first.span)];
                for (_, operand) in rest {
                    operands.push((self.expr(context, operand), operand.span));
                }
                let mut all = self.arena.truth(true);
                for (pair, (operator, _)) in operands.windows(2).zip(rest) {
                    let (left, right) = ((pair[0].0?, pair[0].1), (pair[1].0?, pair[1].1));
                    let next = self.binary(*operator, left, right, context.floor, span)?;
                    all = self.apply(Function::And, vec![all, next], span)?;
                }
                Some(all)
            }
            ExprKind::Else { value, fallback } => self.otherwise(context, value, fallback),
            ExprKind::Reduce {
                reduction,
                reduction_span,
                indices,
                body,
            } => self.reduce(context, (*reduction, *reduction_span), indices, body),
            ExprKind::Access { base, positions } => {
                self.access(context, base, positions, false, span)
            }
            ExprKind::Call { callee, arguments } => self.call(context, callee, arguments, span),
            ExprKind::String(_)
            | ExprKind::Next(_)
            | ExprKind::Tuple(_)
            | ExprKind::List(_)
            | ExprKind::Error => None,
        }
    }

    pub(crate) fn name(
        &mut self,
        context: &mut Context<'_, 'a>,
        name: &'a str,
        span: Span,
    ) -> Option<ExprId> {
        if context.sizes
            && let Some((size, _)) = context.scope.letters.get(name)
        {
            let size = size.clone();
            return Some(self.arena.whole(size));
        }
        if let Some([var]) = context.index(name) {
            let form = Form::Index(*var);
            return Some(self.arena.add(form, Ty::Number { whole: true }));
        }
        let Some(binding) = self.binding(context.scope, name) else {
            self.without_number(context.scope, name, span);
            return None;
        };
        match binding {
            Binding::Scalar(scalar) => Some(scalar),
            Binding::Tensor(view) => self.scalar_read(view, span),
            Binding::Instance(_) | Binding::Poison => None,
        }
    }

    /// Reports a name for which no number is known where one is needed: an index in what is made before the run, or a size of a result alone.
    /// Of other names without a meaning it has been said already what is wrong.
    fn without_number(&mut self, scope: &Scope<'a>, name: &str, span: Span) {
        let is_item = self.names.find(scope.file, name) != Found::Nothing;
        if is_item || self.report.failed() || self.names.sources.incomplete {
            return;
        }
        self.report.push(
            Diagnostic::error("E0208", format!("`{name}` has no number here"))
                .at(span, "an index, or a size that nothing says")
                .help("sizes, bounds on the left and lists are made of numbers, dims, consts and sizes of what is passed"),
        );
    }

    /// Finds the meaning of a name that is no index.
    pub(crate) fn binding(&mut self, scope: &Scope<'a>, name: &str) -> Option<Binding> {
        if let Some(binding) = scope.locals.get(name) {
            return Some(*binding);
        }
        if let Some((head, path)) = name.split_once('.')
            && let Some(instance) = scope.locals.get(head)
        {
            return self.member_binding(*instance, path).ok();
        }
        if name == "training" && self.names.find(scope.file, name) == Found::Nothing {
            return Some(Binding::Scalar(
                self.arena.truth(self.task.mode.step.is_some()),
            ));
        }
        let constant = match name {
            "inf" => Some(f64::INFINITY),
            "nan" => Some(f64::NAN),
            "pi" => Some(std::f64::consts::PI),
            _ => None,
        };
        if let Some(value) = constant {
            return Some(Binding::Scalar(self.arena.real(value)));
        }
        match self.names.find(scope.file, name) {
            Found::Entity(id) => self.entities.values.get(&id).copied(),
            Found::Member(id) => {
                let (_, path) = name.split_once('.')?;
                self.member_binding(*self.entities.values.get(&id)?, path)
                    .ok()
            }
            _ => None,
        }
    }

    /// A tensor without dimensions as a value.
    pub(crate) fn scalar_read(&mut self, view: View, span: Span) -> Option<ExprId> {
        let (rank, positions) = (self.view_shape(view).len(), self.leading(view).to_vec());
        let record = &self.built.tensors[view.tensor.0 as usize];
        if rank == 0 {
            let ty = self.read_type(view.tensor);
            let form = Form::Read {
                tensor: view.tensor,
                positions,
                otherwise: None,
            };
            return Some(self.arena.add(form, ty));
        }
        let (declared, name) = (record.span, self.names.text(span));
        self.report.push(
            Diagnostic::error(
                "E0304",
                format!("`{name}` has {}, so it needs positions", dimensions(rank)),
            )
            .at(span, "used as a scalar here")
            .at(declared, format!("it is {} here", self.view_text(view)))
            .help(format!(
                "write `{name}[{}]`",
                ["i", "j", "k", "l", "m", "n"][..rank.min(6)].join(",")
            )),
        );
        None
    }

    pub(crate) fn binaries(
        &mut self,
        context: &mut Context<'_, 'a>,
        expr: &'a Expr,
    ) -> Option<ExprId> {
        let (first, rest) = spine(expr);
        // An implicit sum stands around the operands up to the product that has it.
        let cut = rest[..rest.len() - 1]
            .iter()
            .rposition(|(whole, ..)| self.readings.sums.contains_key(&key(whole)));
        let (start, rest) = match cut {
            Some(at) => (rest[at].0, &rest[at + 1..]),
            None => (first, &rest[..]),
        };
        let (mut left, mut left_span) = (self.expr(context, start), start.span);
        let mut failed = left.is_none();
        for (whole, operator, operand) in rest {
            let right = self.expr(context, operand);
            left = match (left, right) {
                (Some(l), Some(r)) => self.binary(
                    *operator,
                    (l, left_span),
                    (r, operand.span),
                    context.floor,
                    whole.span,
                ),
                _ => None,
            };
            failed |= left.is_none();
            left_span = whole.span;
        }
        if failed { None } else { left }
    }

    pub(crate) fn binary(
        &mut self,
        operator: Binary,
        a: (ExprId, Span),
        b: (ExprId, Span),
        floor: bool,
        span: Span,
    ) -> Option<ExprId> {
        let function = match operator {
            Binary::Add => Function::Add,
            Binary::Subtract => Function::Sub,
            Binary::Multiply => Function::Mul,
            Binary::Divide => {
                let whole = |c: &Self, x: ExprId| match c.arena.ty(x) {
                    Ty::Typed(dtype) => dtype.is_integer(),
                    Ty::Number { whole } => whole,
                };
                if floor && whole(self, a.0) && whole(self, b.0) {
                    Function::FloorDiv
                } else {
                    Function::Div
                }
            }
            Binary::Remainder => Function::Rem,
            Binary::Power => Function::Pow,
            Binary::Equal => Function::Eq,
            Binary::NotEqual => Function::Ne,
            Binary::Less => Function::Lt,
            Binary::LessEqual => Function::Le,
            Binary::Greater => Function::Gt,
            Binary::GreaterEqual => Function::Ge,
            Binary::BitAnd => return self.bits((Function::BitAnd, "&"), a, b, span),
            Binary::BitOr => return self.bits((Function::BitOr, "|"), a, b, span),
            Binary::BitXor => return self.bits((Function::BitXor, "xor"), a, b, span),
            Binary::ShiftLeft => return self.bits((Function::ShiftLeft, "<<"), a, b, span),
            Binary::ShiftRight => return self.bits((Function::ShiftRight, ">>"), a, b, span),
            Binary::And | Binary::Or => {
                let (function, name) = match operator {
                    Binary::And => (Function::And, "`and`"),
                    _ => (Function::Or, "`or`"),
                };
                let (x, y) = (self.condition(name, a), self.condition(name, b));
                return self.apply(function, vec![x?, y?], span);
            }
        };
        match function {
            Function::Eq | Function::Ne => {
                let (x, y) = self.compared_alike(a, b)?;
                self.apply(function, vec![x, y], span)
            }
            Function::Lt | Function::Le | Function::Gt | Function::Ge => {
                for x in [a, b] {
                    if self.arena.ty(x.0) == Ty::Typed(DType::Bool) {
                        self.wrong_type("the comparison", "numbers", x);
                        return None;
                    }
                    if self.complex_type(x.0).is_some() {
                        return self.no_order(x);
                    }
                }
                let (x, y) = self.compared_alike(a, b)?;
                self.apply(function, vec![x, y], span)
            }
            _ => self.arithmetic(function, a, b, span),
        }
    }

    /// A whole number, typed or not.
    pub(crate) fn integer(&mut self, id: ExprId, span: Span, what: &str) -> Option<ExprId> {
        let ok = match self.arena.ty(id) {
            Ty::Typed(dtype) => dtype.is_integer(),
            Ty::Number { whole } => whole,
        };
        if !ok {
            let have = self.type_name(id);
            let text = self.names.text(span);
            self.report.push(
                Diagnostic::error(
                    "E0404",
                    format!("{what} must be a whole number, not {have}"),
                )
                .at(span, format!("this is {have}"))
                .help(format!("convert it: `i64({text})`")),
            );
            return None;
        }
        Some(id)
    }

    pub(crate) fn call(
        &mut self,
        context: &mut Context<'_, 'a>,
        callee: &'a Expr,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<ExprId> {
        if self.callee(context.scope, callee).is_some() {
            return match self.call_one(context, callee, arguments, span, &[])? {
                Binding::Scalar(value) => Some(value),
                Binding::Tensor(view) => self.scalar_read(view, span),
                Binding::Instance(_) | Binding::Poison => None,
            };
        }
        let ExprKind::Name(name) = &*callee.kind else {
            return None;
        };
        let builtin = builtins::find(name)?;
        match builtin {
            Builtin::Size => return self.size_of(context, arguments, span),
            Builtin::Gradient => {
                return self.gradient_value(context, (name, arguments), span);
            }
            Builtin::Library => return self.library_value(context, (callee, arguments), span),
            _ => {}
        }
        self.by_position(name, arguments)?;
        if arguments.len() != builtin.arity() {
            let needs = builtin.arity();
            let mut error = Diagnostic::error(
                "E0502",
                format!(
                    "`{name}` takes {needs} argument{}, not {}",
                    plural(needs),
                    arguments.len()
                ),
            )
            .at(span, format!("{} given", arguments.len()));
            if matches!(name.as_str(), "max" | "min") && arguments.len() == 1 {
                error = error.help(format!("to reduce over an index, write `{name}[i] …`"));
            }
            self.report.push(error);
            return None;
        }
        if builtin == Builtin::Where {
            return self.where_(context, arguments, span);
        }
        let mut operands = vec![];
        for argument in arguments {
            operands.push((self.expr(context, &argument.value), argument.value.span));
        }
        let operands: Option<Vec<_>> = operands
            .into_iter()
            .map(|(id, span)| Some((id?, span)))
            .collect();
        self.builtin(builtin, name, &operands?, span)
    }

    pub(crate) fn size_of(
        &mut self,
        context: &mut Context<'_, 'a>,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<ExprId> {
        let [argument] = arguments else {
            return None;
        };
        let ExprKind::Name(name) = &*argument.value.kind else {
            return None;
        };
        if let Some((size, _)) = context.scope.letters.get(name.as_str()) {
            let size = size.clone();
            return Some(self.arena.whole(size));
        }
        if let Some([var]) = context.index(name) {
            let form = Form::SizeOf(*var);
            return Some(self.arena.add(form, Ty::Number { whole: true }));
        }
        let Some(binding) = self.binding(context.scope, name) else {
            self.without_number(context.scope, name, argument.value.span);
            return None;
        };
        match binding {
            Binding::Scalar(value) if self.arena.as_size(value).is_some() => Some(value),
            Binding::Poison => None,
            _ => {
                self.report.push(
                    Diagnostic::error("E0502", format!("`{name}` has no size"))
                        .at(span, "neither an index nor a dim"),
                );
                None
            }
        }
    }

    /// A whole number from sizes and constants.
    pub(crate) fn size(&mut self, scope: &Scope<'a>, expr: &'a Expr, what: &str) -> Option<Size> {
        let value = self.closed(scope, expr)?;
        let value = self.integer(value, expr.span, what)?;
        if self.large_number(value).is_some() {
            self.beyond_64_bits(expr.span);
            return None;
        }
        let size = self.arena.as_size(value);
        match size.or_else(|| self.typed_whole(value)) {
            Some(size) => Some(size),
            None => {
                self.report.push(
                    Diagnostic::error("E0208", format!("{what} must be known before the run"))
                        .at(expr.span, "this depends on data")
                        .help("a size is made of numbers, dims and consts"),
                );
                None
            }
        }
    }

    pub(crate) fn typed_whole(&self, id: ExprId) -> Option<Size> {
        match &*self.arena.form(id) {
            Form::Constant(Scalar::Int(value)) => Some(Size::number(*value)),
            _ => None,
        }
    }

    /// An expression without indices, with `/` as floor division of whole numbers.
    pub(crate) fn closed(&mut self, scope: &Scope<'a>, expr: &'a Expr) -> Option<ExprId> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let value = self.expr(&mut Context::of_sizes(scope), expr);
        let solved = self.close_behind(value.is_none());
        value.filter(|_| solved)
    }
}
