//! The types that may meet a complex number, and the functions and reductions of one.
//!
//! A real number that meets a complex one becomes complex, if it has the type of its parts. Numbers that are made of literals alone,
//! `2 * complex(0, pi)`, are c64 until they meet a double. Must not know how anything is computed.
//!
//! ```text
//! x[i] * z[i], x: f32, z: c64   =>   mul(convert x to c64, z)
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ComplexForm, ExprId, Form, Ty},
    expressions::builtins::{Builtin, Composed, Operand},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Reduction};
use einc_diag::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// A whole power up to this one is a product.
const LARGEST_PRODUCT: u32 = 1024;

impl Checker<'_> {
    /// The complex type of an expression, if it has one.
    pub(crate) fn complex_type(&self, id: ExprId) -> Option<DType> {
        match self.arena.ty(id) {
            Ty::Typed(dtype) if dtype.is_complex() => Some(dtype),
            _ => None,
        }
    }

    fn any_complex(&self, x: &[Operand]) -> bool {
        x.iter().any(|x| self.complex_type(x.0).is_some())
    }

    /// Two values of different types with the complex type that both of them may have, if there is one.
    pub(crate) fn both_complex(&mut self, a: ExprId, b: ExprId) -> Option<(ExprId, ExprId)> {
        self.complex_type(a).or(self.complex_type(b))?;
        let is_double = |id| {
            matches!(
                self.arena.ty(id),
                Ty::Typed(DType::F64) | Ty::Typed(DType::C128)
            )
        };
        let to = match is_double(a) || is_double(b) {
            true => DType::C128,
            false => DType::C64,
        };
        Some((self.as_complex(a, to)?, self.as_complex(b, to)?))
    }

    /// A typed value as one of a complex type, if it may become one without a conversion that the text says.
    pub(crate) fn as_complex(&mut self, id: ExprId, to: DType) -> Option<ExprId> {
        let part = to.part()?;
        match self.arena.ty(id) {
            Ty::Typed(own) if own == to => Some(id),
            Ty::Typed(own) if own == part => Some(self.arena.add(Form::Convert(id), Ty::Typed(to))),
            Ty::Typed(own) if own.is_complex() && self.is_literal(id) => {
                Some(self.literal_as(id, to, &mut FxHashMap::default()))
            }
            _ => None,
        }
    }

    /// Returns whether it is a complex number that is made of untyped numbers alone.
    pub(crate) fn is_complex_literal(&self, id: ExprId) -> bool {
        self.complex_type(id).is_some() && self.is_literal(id)
    }

    /// Returns whether a complex value is made of untyped numbers alone.
    fn is_literal(&self, id: ExprId) -> bool {
        let number = |id: &ExprId| matches!(self.arena.ty(*id), Ty::Number { .. });
        let mut seen = FxHashSet::default();
        let mut open = vec![id];
        while let Some(id) = open.pop() {
            if !seen.insert(id) {
                continue;
            }
            match &*self.arena.form(id) {
                Form::Complex(ComplexForm::Pair, parts) if parts.iter().all(number) => {}
                Form::Convert(of) if number(of) => {}
                Form::Complex(ComplexForm::Conjugate, of) => open.extend(of),
                Form::Apply(function, of) if *function != Function::Select => open.extend(of),
                _ => return false,
            }
        }
        true
    }

    /// A literal of another complex type; `known` has those of its parts.
    fn literal_as(
        &mut self,
        id: ExprId,
        to: DType,
        known: &mut FxHashMap<ExprId, ExprId>,
    ) -> ExprId {
        if let Some(done) = known.get(&id) {
            return *done;
        }
        let mut form = (*self.arena.form(id)).clone();
        if matches!(
            form,
            Form::Apply(..) | Form::Complex(ComplexForm::Conjugate, _)
        ) {
            for argument in form.arguments_mut() {
                *argument = self.literal_as(*argument, to, known);
            }
        }
        let done = self.arena.add(form, Ty::Typed(to));
        known.insert(id, done);
        done
    }

    /// `c64(x)`: of a number, a real value or another complex one.
    pub(crate) fn convert_to_complex(
        &mut self,
        id: ExprId,
        to: DType,
        span: Span,
    ) -> Option<ExprId> {
        match self.arena.ty(id) {
            Ty::Number { .. } => self.coerce(id, to, span),
            Ty::Typed(own) if own.is_complex() => match self.as_complex(id, to) {
                Some(done) => Some(done),
                None => Some(self.arena.add(Form::Convert(id), Ty::Typed(to))),
            },
            Ty::Typed(_) => {
                let real = self.convert(id, to.part()?, span)?;
                self.as_complex(real, to)
            }
        }
    }

    /// A function of the language whose name or arguments are complex; `None` if it is neither.
    pub(crate) fn complex_builtin(
        &mut self,
        builtin: Builtin,
        name: &str,
        x: &[Operand],
        span: Span,
    ) -> Option<Option<ExprId>> {
        if let Builtin::Complex(form) = builtin {
            return Some(self.complex_form(form, name, x));
        }
        if !self.any_complex(x) {
            return None;
        }
        let first = x[0].0;
        Some(match builtin {
            Builtin::Convert(_) | Builtin::Pair(_) => return None,
            Builtin::Stop => self.apply(Function::Stop, vec![first], span),
            Builtin::Numeric(Function::Abs) => self.magnitude(first),
            Builtin::Numeric(Function::Sign) => self.apply(Function::Sign, vec![first], span),
            Builtin::Real(function) if has_complex(function) => {
                self.apply(function, vec![first], span)
            }
            Builtin::Composed(Composed::IsNan) => {
                self.apply(Function::Ne, vec![first, first], span)
            }
            Builtin::Composed(Composed::IsFinite) => self.is_finite(first, name, span),
            _ => {
                let wrong = x.iter().find(|x| self.complex_type(x.0).is_some());
                self.real_needed(name, *wrong?)
            }
        })
    }

    fn is_finite(&mut self, id: ExprId, name: &str, span: Span) -> Option<ExprId> {
        let mut parts = vec![];
        for form in [ComplexForm::Real, ComplexForm::Imaginary] {
            let part = self.complex_form(form, name, &[(id, span)])?;
            let test = Builtin::Composed(Composed::IsFinite);
            parts.push(self.builtin(test, name, &[(part, span)], span)?);
        }
        self.apply(Function::And, parts, span)
    }

    /// `complex(a, b)`, `re(z)` and so on. Of a real number they are what they are of a complex one without an imaginary part.
    fn complex_form(&mut self, form: ComplexForm, name: &str, x: &[Operand]) -> Option<ExprId> {
        if form == ComplexForm::Pair {
            return self.pair(name, x);
        }
        let (id, place) = x[0];
        let complex = match self.arena.ty(id) {
            Ty::Typed(dtype) if dtype.is_complex() => id,
            Ty::Typed(dtype) if dtype.complex().is_none() => {
                self.wrong_type(name, "a complex number, f32 or f64", x[0]);
                return None;
            }
            ty => match form {
                ComplexForm::Real | ComplexForm::Conjugate => return Some(id),
                ComplexForm::Imaginary => {
                    let zero = self.arena.whole(Size::number(0));
                    return match ty {
                        Ty::Typed(dtype) => self.coerce(zero, dtype, place),
                        Ty::Number { .. } => Some(zero),
                    };
                }
                _ => {
                    let to = self.settled_real(id).complex()?;
                    let real = self.coerce(id, to.part()?, place)?;
                    self.as_complex(real, to)?
                }
            },
        };
        let dtype = self.complex_type(complex)?;
        let ty = match form {
            ComplexForm::Conjugate => dtype,
            _ => dtype.part()?,
        };
        Some(
            self.arena
                .add(Form::Complex(form, vec![complex]), Ty::Typed(ty)),
        )
    }

    /// `complex(a, b)`, of two real values of one type.
    fn pair(&mut self, name: &str, x: &[Operand]) -> Option<ExprId> {
        for x in x {
            match self.arena.ty(x.0) {
                Ty::Typed(dtype) if dtype.is_complex() => return self.real_needed(name, *x),
                Ty::Typed(dtype) if dtype.complex().is_none() => {
                    self.wrong_type(name, "values of f32 or f64", *x);
                    return None;
                }
                _ => {}
            }
        }
        let (a, b) = self.unify(x[0], x[1], &format!("`{name}`"))?;
        let to = match self.arena.ty(a) {
            Ty::Typed(dtype) => dtype.complex()?,
            Ty::Number { .. } => DType::C64,
        };
        let form = Form::Complex(ComplexForm::Pair, vec![a, b]);
        Some(self.arena.add(form, Ty::Typed(to)))
    }

    /// The floating-point type that a real value has, or a number where it meets nothing.
    fn settled_real(&self, id: ExprId) -> DType {
        match self.arena.ty(id) {
            Ty::Typed(dtype) => dtype,
            Ty::Number { .. } => DType::F32,
        }
    }

    /// abs(z), which is real.
    fn magnitude(&mut self, id: ExprId) -> Option<ExprId> {
        let part = self.complex_type(id)?.part()?;
        let form = Form::Apply(Function::Abs, vec![id]);
        Some(self.arena.add(form, Ty::Typed(part)))
    }

    /// Reports a complex value where a real one is needed.
    pub(crate) fn real_needed(&mut self, name: &str, x: Operand) -> Option<ExprId> {
        let (have, name) = (self.type_name(x.0), name.trim_matches('`'));
        let text = self.names.text(x.1).to_owned();
        self.report.push(
            Diagnostic::error("E0403", format!("`{name}` needs real numbers, not {have}"))
                .at(x.1, format!("this is {have}"))
                .help(format!(
                    "`re({text})`, `im({text})` and `abs({text})` are real"
                )),
        );
        None
    }

    /// Reports an order of complex numbers.
    pub(crate) fn no_order(&mut self, x: Operand) -> Option<ExprId> {
        let have = self.type_name(x.0);
        let text = self.names.text(x.1).to_owned();
        self.report.push(
            Diagnostic::error("E0403", "complex numbers have no order")
                .at(x.1, format!("this is {have}"))
                .help(format!(
                    "compare `re({text})`, `im({text})` or `abs({text})`"
                )),
        );
        None
    }

    /// Arithmetic of which an operand is complex; `None` if none is. Powers are products, or exponentials of logarithms.
    pub(crate) fn complex_arithmetic(
        &mut self,
        function: Function,
        symbol: &str,
        (a, b): (Operand, Operand),
        span: Span,
    ) -> Option<Option<ExprId>> {
        if !self.any_complex(&[a, b]) {
            return None;
        }
        use Function::{Add, Div, FloorDiv, Max, Min, Mul, Pow, Rem, Sub};
        Some(match function {
            Add | Sub | Mul | Div => {
                let (x, y) = self.unify(a, b, symbol)?;
                self.apply(function, vec![x, y], span)
            }
            Pow => self.complex_power(a, b, span),
            Min | Max => {
                let wrong = if self.any_complex(&[a]) { a } else { b };
                self.no_order(wrong)
            }
            FloorDiv | Rem => {
                let wrong = if self.any_complex(&[a]) { a } else { b };
                self.real_needed(symbol, wrong)
            }
            _ => None,
        })
    }

    fn complex_power(&mut self, a: Operand, b: Operand, span: Span) -> Option<ExprId> {
        let whole = self
            .arena
            .as_number(b.0)
            .filter(|n| n.fract() == 0.0 && n.abs() <= f64::from(LARGEST_PRODUCT));
        if let (Some(exponent), Some(dtype)) = (whole, self.complex_type(a.0)) {
            return self.whole_power(a.0, dtype, exponent as i64, span);
        }
        if self.arena.as_number(b.0) == Some(0.5) {
            return self.apply(Function::Sqrt, vec![a.0], span);
        }
        let (x, y) = self.unify(a, b, "`^`")?;
        let log = self.apply(Function::Log, vec![x], span)?;
        let product = self.apply(Function::Mul, vec![y, log], span)?;
        let power = self.apply(Function::Exp, vec![product], span)?;
        self.power_of_zero((x, y), power, span)
    }

    /// A power x^y that is 0 where x is 0 and the real part of y positive, 1 where both are 0, and `power` elsewhere: of 0 there is no logarithm.
    fn power_of_zero(
        &mut self,
        (x, y): (ExprId, ExprId),
        power: ExprId,
        span: Span,
    ) -> Option<ExprId> {
        let dtype = self.complex_type(x)?;
        let part = Ty::Typed(dtype.part()?);
        let number = |checker: &mut Self, value| {
            let number = checker.arena.whole(Size::number(value));
            checker.coerce(number, dtype, span)
        };
        let (zero, one) = (number(self, 0)?, number(self, 1)?);
        let real = self
            .arena
            .add(Form::Complex(ComplexForm::Real, vec![y]), part);
        let nothing = self
            .arena
            .add(Form::Complex(ComplexForm::Real, vec![zero]), part);
        let of_zero = self.apply(Function::Eq, vec![x, zero], span)?;
        let to_zero = self.apply(Function::Eq, vec![y, zero], span)?;
        let rises = self.apply(Function::Gt, vec![real, nothing], span)?;
        let at_zero = self.apply(Function::And, vec![of_zero, rises], span)?;
        let power = self.apply(Function::Select, vec![to_zero, one, power], span)?;
        self.apply(Function::Select, vec![at_zero, zero, power], span)
    }

    /// z^n by squaring.
    fn whole_power(
        &mut self,
        base: ExprId,
        dtype: DType,
        exponent: i64,
        span: Span,
    ) -> Option<ExprId> {
        let one = self.arena.whole(Size::number(1));
        let one = self.coerce(one, dtype, span)?;
        let (mut left, mut square) = (exponent.unsigned_abs(), base);
        let mut power = None;
        while left > 0 {
            if left % 2 == 1 {
                power = Some(match power {
                    None => square,
                    Some(power) => self.apply(Function::Mul, vec![power, square], span)?,
                });
            }
            left /= 2;
            if left > 0 {
                square = self.apply(Function::Mul, vec![square, square], span)?;
            }
        }
        let power = power.unwrap_or(one);
        match exponent < 0 {
            true => self.apply(Function::Div, vec![one, power], span),
            false => Some(power),
        }
    }

    /// The body and the type of a reduction of complex numbers; `None` if the body is real.
    pub(crate) fn complex_reduction(
        &mut self,
        reduction: Reduction,
        body: ExprId,
        span: Span,
    ) -> Option<Option<(ExprId, Ty)>> {
        let dtype = self.complex_type(body)?;
        Some(match reduction {
            Reduction::Sum | Reduction::Mean | Reduction::Prod => Some((body, Ty::Typed(dtype))),
            Reduction::Norm | Reduction::Norm1 | Reduction::NormInf => {
                let magnitude = self.magnitude(body)?;
                Some((magnitude, self.arena.ty(magnitude)))
            }
            Reduction::Max | Reduction::Min | Reduction::ArgMax | Reduction::ArgMin => {
                self.no_order((body, span));
                None
            }
            _ => {
                self.real_needed(reduction.name(), (body, span));
                None
            }
        })
    }
}

/// The functions of one real value that there are of a complex one, too.
fn has_complex(function: Function) -> bool {
    use Function::{
        Acos, Acosh, Asin, Asinh, Atan, Atanh, Cos, Cosh, Exp, Exp2, Expm1, Log, Log1p,
    };
    use Function::{Log2, Log10, Rsqrt, Sigmoid, Sin, Sinh, Sqrt, Tan, Tanh};
    let exponential = matches!(
        function,
        Exp | Exp2 | Expm1 | Log | Log2 | Log10 | Log1p | Sqrt | Rsqrt | Sigmoid
    );
    let circular = matches!(function, Sin | Cos | Tan | Sinh | Cosh | Tanh);
    exponential || circular || matches!(function, Asin | Acos | Atan | Asinh | Acosh | Atanh)
}
