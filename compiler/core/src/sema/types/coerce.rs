//! Types of expressions: untyped numbers that take the type of what they meet, and what may meet what.
//!
//! Must not know syntax; it is given spans for messages. Contract: what a statement, a position, a bound or a
//! condition is made of is typed; an untyped expression stands only inside expressions that are still open.
//!
//! ```text
//! X[n] * (2 * pi)   =>   mul(f32, 6.2831855 as f32)
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, Ty},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Reduction, Scalar};
use einc_diag::{Diagnostic, Span};

impl Checker<'_> {
    /// The type in words: `f32`, or what kind of number.
    pub(crate) fn type_name(&self, id: ExprId) -> String {
        match self.arena.ty(id) {
            Ty::Typed(dtype) => dtype.name().into(),
            Ty::Number { whole: true } => "a whole number".into(),
            Ty::Number { whole: false } => match self.arena.as_scalar(id) {
                Some(Scalar::Float(x)) if !x.is_finite() => "a number that is not finite".into(),
                // An argument such as `--input h=18446744073709551615` is read as one from 2^63 on.
                Some(Scalar::Float(x)) if x.abs() >= 2f64.powi(63) => {
                    "a floating-point number beyond 2^63".into()
                }
                _ => "a number with a fraction".into(),
            },
        }
    }

    /// The stored type that an expression has where it meets nothing: whole numbers are i64, others f32.
    pub(crate) fn settled_type(&self, id: ExprId) -> DType {
        match self.arena.ty(id) {
            Ty::Typed(dtype) => dtype,
            Ty::Number { whole: true } => DType::I64,
            Ty::Number { whole: false } => DType::F32,
        }
    }

    /// The expression with the type that it has where it meets nothing.
    pub(crate) fn settle(&mut self, id: ExprId, span: Span) -> Option<ExprId> {
        self.coerce(id, self.settled_type(id), span)
    }

    /// Warns where the real division of an integer gives f32 because nothing states a type: f32 holds whole numbers up to 2^24. `span` is
    /// the value's own text if `is_text`, else a name of it.
    pub(crate) fn warn_of_quotients(&mut self, id: ExprId, span: Span, is_text: bool) {
        if self.arena.ty(id) != (Ty::Number { whole: false }) || span.file.0 != 0 {
            return;
        }
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            let form = self.arena.form(id);
            if matches!(self.arena.ty(id), Ty::Typed(_)) {
                continue;
            }
            let integer = |of: &ExprId| match self.arena.ty(*of) {
                Ty::Typed(dtype @ (DType::I32 | DType::I64)) => Some(dtype),
                _ => None,
            };
            if let Form::Apply(Function::Div, of) = &*form
                && let Some(dtype) = of.iter().find_map(integer)
            {
                let warning =
                    Diagnostic::warning("E0402", format!("`/` makes f32 of {dtype} here"));
                let holds = "f32 holds whole numbers up to 16777216 exactly";
                let warning = match is_text {
                    true => {
                        let text = format!("f32({})", self.names.text(span));
                        warning.fix(span, holds, text)
                    }
                    false => warning.at(span, holds),
                };
                self.report.push(
                    warning
                        .help("for whole numbers write `div(…, …)`")
                        .help("for real ones say which: `f32(…) / …`, or `f64(…) / …`, which holds whole numbers up to 2^53"),
                );
                return;
            }
            open.extend(form.arguments());
        }
    }

    /// An untyped expression as that type, or a typed one that has it; otherwise an error at `span`.
    pub(crate) fn coerce(&mut self, id: ExprId, dtype: DType, span: Span) -> Option<ExprId> {
        match self.arena.ty(id) {
            Ty::Typed(own) if own == dtype => Some(id),
            Ty::Typed(_) if dtype.is_complex() && self.as_complex(id, dtype).is_some() => {
                self.as_complex(id, dtype)
            }
            Ty::Typed(own) if own.is_complex() && !dtype.is_complex() => {
                self.real_needed(&format!("a value of {dtype}"), (id, span))
            }
            Ty::Typed(_) if dtype.is_float() && self.large_number(id).is_some() => {
                let number = Scalar::Float(self.large_number(id)? as f64);
                Some(self.arena.add(Form::Constant(number), Ty::Typed(dtype)))
            }
            Ty::Typed(own) => {
                self.report.push(
                    Diagnostic::error("E0401", format!("{own} where {dtype} is needed"))
                        .at(span, format!("this is {own}"))
                        .help(format!("convert it: `{dtype}(…)`")),
                );
                None
            }
            Ty::Number { whole } => {
                if dtype == DType::Bool || (dtype.is_integer() && !whole) {
                    let what = self.type_name(id);
                    let mut error =
                        Diagnostic::error("E0401", format!("{what} where {dtype} is needed"))
                            .at(span, format!("this is {what}"));
                    if dtype == DType::Bool {
                        error = error.help("compare it with something, as in `x != 0`");
                    }
                    self.report.push(error);
                    return None;
                }
                if let Some(size) = self.arena.as_size(id).and_then(|size| size.known()) {
                    let (mut least, most) = dtype.whole_range().unwrap_or((i64::MIN, i64::MAX));
                    let mut end = most as u64;
                    if dtype == DType::U64 {
                        (least, end) = (0, u64::MAX);
                    }
                    if !(least..=most).contains(&size) {
                        self.report.push(
                            Diagnostic::error("E0406", format!("{size} does not fit into {dtype}"))
                                .at(span, format!("{dtype} holds {least} to {end}")),
                        );
                        return None;
                    }
                }
                Some(self.convert_number(id, dtype))
            }
        }
    }

    /// An untyped (or, under a real division, integer) expression computed in `dtype`, which it can take.
    pub(super) fn convert_number(&mut self, id: ExprId, dtype: DType) -> ExprId {
        if let Some(done) = self.arena.coerced.get(&(id, dtype)) {
            return *done;
        }
        let ty = Ty::Typed(dtype);
        if dtype.is_complex() && matches!(self.arena.ty(id), Ty::Number { .. }) {
            return self.arena.add(Form::Convert(id), ty);
        }
        let form = self.arena.form(id);
        if let Some(read) = self.hoisted(id, dtype) {
            self.arena.coerced.insert((id, dtype), read);
            return read;
        }
        let typed = matches!(self.arena.ty(id), Ty::Typed(_));
        let result = match &*form {
            _ if typed => {
                if self.arena.ty(id) == ty {
                    id
                } else if self.is_unsigned(id) && dtype.is_float() {
                    self.unsigned_to_float(id, dtype)
                } else {
                    self.arena.add(Form::Convert(id), ty)
                }
            }
            Form::Constant(scalar) => {
                let value = Scalar::Float(scalar.as_f64());
                self.arena.add(Form::Constant(value), ty)
            }
            Form::Whole(size) => match (size.known(), dtype.is_float()) {
                (Some(number), true) => {
                    // Rounded once, to the type in which it is computed.
                    let nearest = match dtype.compute() {
                        DType::F32 => f64::from(number as f32),
                        _ => number as f64,
                    };
                    self.arena.add(Form::Constant(Scalar::Float(nearest)), ty)
                }
                (Some(number), false) => {
                    // As it is computed: sums of what wraps are those of what is wrapped.
                    let number = match dtype.compute() {
                        DType::I32 => i64::from(number as i32),
                        _ => number,
                    };
                    self.arena.add(Form::Constant(Scalar::Int(number)), ty)
                }
                (None, _) => self.arena.add(Form::Whole(size.clone()), ty),
            },
            _ if self.is_computed_whole(id, dtype) => {
                let exact = self.convert_number(id, DType::I64);
                self.arena.add(as_computed(exact, dtype), ty)
            }
            Form::Index(_) | Form::SizeOf(_) => self.arena.add((*form).clone(), ty),
            Form::Apply(Function::Select, arguments) => {
                let (condition, a, b) = (arguments[0], arguments[1], arguments[2]);
                let (a, b) = (self.convert_number(a, dtype), self.convert_number(b, dtype));
                self.arena
                    .add(Form::Apply(Function::Select, vec![condition, a, b]), ty)
            }
            Form::Apply(function, arguments) => {
                let arguments = arguments
                    .iter()
                    .map(|argument| self.convert_number(*argument, dtype))
                    .collect();
                self.arena.add(Form::Apply(*function, arguments), ty)
            }
            Form::Reduce {
                reduction,
                vars,
                guard,
                body,
            } => {
                let body = self.convert_number(*body, dtype);
                let form = Form::Reduce {
                    reduction: *reduction,
                    vars: vars.clone(),
                    guard: *guard,
                    body,
                };
                self.arena.add(form, ty)
            }
            // A constant list, a counter, a number of a training step, or a state whose type is not known yet.
            Form::Read { tensor, .. } => match self.read_of_list(&form, dtype) {
                Some(read) => read,
                None => {
                    let own = self.built.tensors[tensor.0 as usize].dtype;
                    let read = self.arena.add((*form).clone(), Ty::Typed(own));
                    match own == dtype {
                        true => read,
                        false => self.arena.add(as_computed(read, dtype), ty),
                    }
                }
            },
            Form::Convert(_) | Form::Computed(_) | Form::Complex(..) => id,
        };
        self.arena.coerced.insert((id, dtype), result);
        result
    }

    /// Both operands with one type (or both untyped). `what` names the operation in the message.
    pub(crate) fn unify(
        &mut self,
        (a, a_span): (ExprId, Span),
        (b, b_span): (ExprId, Span),
        what: &str,
    ) -> Option<(ExprId, ExprId)> {
        match (self.arena.ty(a), self.arena.ty(b)) {
            (Ty::Number { .. }, Ty::Number { .. }) => Some((a, b)),
            (Ty::Typed(x), Ty::Typed(y)) if x == y => Some((a, b)),
            (Ty::Typed(x), Ty::Typed(y)) => {
                if let Some(both) = self.both_complex(a, b) {
                    return Some(both);
                }
                if self.large_number(a).is_some() && y.is_float() {
                    return self.coerce(a, y, a_span).map(|a| (a, b));
                }
                if self.large_number(b).is_some() && x.is_float() {
                    return self.coerce(b, x, b_span).map(|b| (a, b));
                }
                let double = [DType::F64, DType::C128];
                let to = if x.is_complex() || y.is_complex() {
                    match double.contains(&x) || double.contains(&y) {
                        true => DType::C128,
                        false => DType::F32,
                    }
                } else if x.is_float() == y.is_float() {
                    if x.size() >= y.size() { x } else { y }
                } else if x.is_float() {
                    x
                } else {
                    y
                };
                self.report.push(
                    Diagnostic::error("E0401", format!("{what} mixes {x} and {y}"))
                        .at(a_span, format!("this is {x}"))
                        .at(b_span, format!("this is {y}"))
                        .help(format!("convert one of them, as in `{to}(…)`")),
                );
                None
            }
            (Ty::Typed(dtype), Ty::Number { .. }) => {
                self.meet(b, b_span, dtype, a_span, what).map(|b| (a, b))
            }
            (Ty::Number { .. }, Ty::Typed(dtype)) => {
                self.meet(a, a_span, dtype, b_span, what).map(|a| (a, b))
            }
        }
    }

    fn meet(
        &mut self,
        number: ExprId,
        span: Span,
        dtype: DType,
        other: Span,
        what: &str,
    ) -> Option<ExprId> {
        let whole = self.arena.ty(number) == (Ty::Number { whole: true });
        if dtype == DType::Bool || (dtype.is_integer() && !whole) {
            let kind = self.type_name(number);
            let help = if dtype == DType::Bool {
                "convert the truth value, as in `i64(…)`"
            } else {
                "convert the integers, as in `f32(…)`"
            };
            self.report.push(
                Diagnostic::error("E0401", format!("{what} mixes {dtype} and {kind}"))
                    .at(span, format!("this is {kind}"))
                    .at(other, format!("this is {dtype}"))
                    .help(help),
            );
            return None;
        }
        self.coerce(number, dtype, span)
    }

    /// A reduction's body with a type that it can take, and the type of its result.
    pub(crate) fn reduction_types(
        &mut self,
        reduction: Reduction,
        body: ExprId,
        span: Span,
    ) -> Option<(ExprId, Ty)> {
        let name = reduction.name();
        if let Some(done) = self.complex_reduction(reduction, body, span) {
            return done;
        }
        let ty = self.arena.ty(body);
        let wrong = |checker: &mut Self, needs: &str, help: String| {
            let have = checker.type_name(body);
            checker.report.push(
                Diagnostic::error("E0403", format!("`{name}` needs {needs}, not {have}"))
                    .at(span, format!("this is {have}"))
                    .help(help),
            );
            None
        };
        match (reduction, ty) {
            (Reduction::Any | Reduction::All, Ty::Typed(DType::Bool)) => Some((body, ty)),
            (Reduction::Any | Reduction::All, _) => wrong(
                self,
                "truth values",
                format!("compare with something, in brackets: `{name}[i] (x[i] != 0)`"),
            ),
            (_, Ty::Typed(DType::Bool)) => {
                let to = match reduction {
                    Reduction::Mean | Reduction::LogSumExp | Reduction::Norm => "f32",
                    _ => "i64",
                };
                wrong(
                    self,
                    "numbers",
                    format!("count the true ones with `{to}(…)`"),
                )
            }
            (Reduction::Mean | Reduction::LogSumExp | Reduction::Norm, Ty::Typed(dtype))
                if !dtype.is_float() =>
            {
                wrong(
                    self,
                    "floating-point values",
                    format!("convert them: `{name}[…] f32(…)`"),
                )
            }
            (Reduction::Mean | Reduction::LogSumExp | Reduction::Norm, Ty::Number { .. }) => {
                Some((body, Ty::Number { whole: false }))
            }
            (Reduction::ArgMax | Reduction::ArgMin, _) => {
                Some((self.settle(body, span)?, Ty::Typed(DType::I64)))
            }
            // Narrow integers are added up in the type in which all their arithmetic is done.
            (Reduction::Sum | Reduction::Prod | Reduction::Norm1, Ty::Typed(dtype))
                if is_narrow(dtype) =>
            {
                let ty = Ty::Typed(dtype.compute());
                Some((self.arena.add(Form::Convert(body), ty), ty))
            }
            _ => Some((body, ty)),
        }
    }

    /// `dtype(x)`.
    pub(crate) fn convert(&mut self, id: ExprId, dtype: DType, span: Span) -> Option<ExprId> {
        if dtype.is_complex() {
            return self.convert_to_complex(id, dtype, span);
        }
        match self.arena.ty(id) {
            Ty::Typed(own) if own == dtype => Some(self.as_stored(id, dtype)),
            Ty::Typed(own) if own.is_complex() && dtype != DType::Bool => {
                self.real_needed(dtype.name(), (id, span))
            }
            Ty::Typed(_) if dtype == DType::Bool => {
                let own = self.settled_type(id);
                let zero = self.arena.whole(Size::number(0));
                let zero = self.coerce(zero, own, span)?;
                self.apply(Function::Ne, vec![id, zero], span)
            }
            Ty::Typed(own) if own.is_float() && is_narrow(dtype) => {
                self.float_to_narrow(id, dtype, span)
            }
            Ty::Typed(own) if own.is_float() && dtype == DType::U64 => {
                Some(self.float_to_unsigned(id))
            }
            Ty::Typed(DType::U64) if dtype.is_float() => Some(self.unsigned_to_float(id, dtype)),
            Ty::Typed(_) => Some(self.arena.add(Form::Convert(id), Ty::Typed(dtype))),
            Ty::Number { whole } => {
                if dtype == DType::Bool {
                    let zero = self.arena.whole(Size::number(0));
                    return self.apply(Function::Ne, vec![id, zero], span);
                }
                if whole || dtype.is_float() {
                    let computed = self.coerce(id, dtype, span)?;
                    return Some(self.as_stored(computed, dtype));
                }
                if let Some(value) = self.arena.as_number(id) {
                    if dtype == DType::U64 && value >= i64::MAX as f64 {
                        return Some(self.unsigned_literal(value as u64));
                    }
                    let whole = self.arena.whole(Size::number(value as i64));
                    return self.coerce(whole, dtype, span);
                }
                let exact = self.coerce(id, DType::F64, span)?;
                if is_narrow(dtype) {
                    return self.float_to_narrow(exact, dtype, span);
                }
                if dtype == DType::U64 {
                    return Some(self.float_to_unsigned(exact));
                }
                Some(self.arena.add(Form::Convert(exact), Ty::Typed(dtype)))
            }
        }
    }

    /// The value that an expression of that type has where it is stored: narrow values are computed in a wider type.
    fn as_stored(&mut self, id: ExprId, dtype: DType) -> ExprId {
        let is_stored = match &*self.arena.form(id) {
            Form::Read { .. } | Form::Convert(_) => true,
            Form::Constant(_) => dtype.is_integer(),
            _ => false,
        };
        match dtype.is_narrow() && !is_stored {
            true => self.arena.add(Form::Convert(id), Ty::Typed(dtype)),
            false => id,
        }
    }

    /// `u8(x)`, `i16(x)` and so on of a floating-point value. Narrow integers are computed in a wider type and wrap where they are
    /// stored, so what is out of range becomes the nearest value first. Not every float type has the ends of u32, so that is
    /// done in i64.
    fn float_to_narrow(&mut self, id: ExprId, dtype: DType, span: Span) -> Option<ExprId> {
        let id = match dtype {
            DType::U8 => id,
            _ => self.arena.add(Form::Convert(id), Ty::Typed(DType::I64)),
        };
        let own = self.settled_type(id);
        let mut bound = |value: i64| {
            let value = self.arena.whole(Size::number(value));
            self.coerce(value, own, span)
        };
        let (least, most) = dtype.whole_range()?;
        let (least, most) = (bound(least)?, bound(most)?);
        let above = self.apply(Function::Max, vec![id, least], span)?;
        let inside = self.apply(Function::Min, vec![above, most], span)?;
        Some(self.arena.add(Form::Convert(inside), Ty::Typed(dtype)))
    }
}

/// A number as it is computed with where it meets values of a type.
fn as_computed(number: ExprId, dtype: DType) -> Form {
    match dtype.is_narrow() {
        true => Form::Computed(number),
        false => Form::Convert(number),
    }
}

/// Returns whether values are computed in a wider integer type than they are stored in.
fn is_narrow(dtype: DType) -> bool {
    dtype.is_integer() && dtype.is_narrow()
}
