//! The functions that the language has without any import.
//!
//! Must not know how they are computed.
//!
//! ```text
//! clip(x, 0, 1)   =>   min(max(x, 0), 1)
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ComplexForm, ExprId, Form, Ty},
    library::operations::Operation,
    sizes::size::Size,
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::{Diagnostic, Span};

/// A name of the language that may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    /// One argument, for floating-point numbers.
    Real(Function),
    /// One argument, for any numbers.
    Numeric(Function),
    /// One argument, for whole numbers.
    Whole(Function),
    /// Two arguments, for floating-point numbers.
    RealPair(Function),
    /// `min`, `max`, `pow`.
    Pair(Function),
    /// `softplus` and the like, which are made of other functions.
    Composed(Composed),
    /// `div`.
    Div,
    /// `clip`.
    Clip,
    /// `where`.
    Where,
    /// `stop`.
    Stop,
    /// `complex`, `re` and the like.
    Complex(ComplexForm),
    /// `f32(x)`.
    Convert(DType),
    /// `size(d)`.
    Size,
    /// `uniform` and the like.
    Source,
    /// `solve` and the like.
    Library,
    /// `grad` and the like.
    Gradient,
}

/// A function that is made of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Composed {
    /// log(1 + e^x) = max(x, 0) + log1p(exp(-abs(x))).
    Softplus,
    /// log(e^x + e^y) = max(x, y) + log1p(exp(-abs(x - y))); where x = y, x + log 2.
    LogAddExp,
    /// The derivative of lgamma: polygamma(0, x).
    Digamma,
    /// x != x.
    IsNan,
    /// abs(x) < inf.
    IsFinite,
}

/// Their names, for "did you mean".
pub(crate) const NAMES: &[&str] = &[
    "where",
    "exp",
    "log",
    "log1p",
    "expm1",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "relu",
    "gelu",
    "erf",
    "erfc",
    "erfinv",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "asinh",
    "acosh",
    "atanh",
    "exp2",
    "log2",
    "log10",
    "cbrt",
    "hypot",
    "lgamma",
    "digamma",
    "softplus",
    "logaddexp",
    "isnan",
    "isfinite",
    "nextafter",
    "popcount",
    "abs",
    "sign",
    "floor",
    "ceil",
    "round",
    "min",
    "max",
    "pow",
    "clip",
    "div",
    "stop",
    "complex",
    "re",
    "im",
    "conj",
    "angle",
    "size",
    "solve",
    "cholesky",
    "inv",
    "qr",
    "eigh",
    "eig",
    "svd",
    "logdet",
    "sort",
    "argsort",
    "topk",
    "fft",
    "ifft",
    "rfft",
    "irfft",
    "grad",
    JACOBIAN,
    JVP,
    HVP,
    "f32",
    "f64",
    "f16",
    "bf16",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "bool",
    "c64",
    "c128",
];

/// The derivative of all elements of a tensor.
pub(crate) const JACOBIAN: &str = "jacobian";

/// The derivative of a tensor along a direction.
pub(crate) const JVP: &str = "jvp";

/// The derivative of a gradient along a direction.
pub(crate) const HVP: &str = "hvp";

/// The source that `[1, 2, 1]` is; no name is spelt so.
pub(crate) const LISTED: &str = "[…]";

/// The names of sources.
pub(crate) const SOURCES: &[&str] = &[
    "load",
    "zeros",
    "ones",
    "full",
    "iota",
    "uniform",
    "normal",
    "bernoulli",
    "gumbel",
    "permutation",
    "he_normal",
    "glorot_uniform",
];

/// Returns the function of the language that has a name.
pub(crate) fn find(name: &str) -> Option<Builtin> {
    if let Some(dtype) = DType::from_name(name) {
        return Some(Builtin::Convert(dtype));
    }
    if SOURCES.contains(&name) {
        return Some(Builtin::Source);
    }
    if Operation::named(name).is_some() {
        return Some(Builtin::Library);
    }
    Some(match name {
        "where" => Builtin::Where,
        "clip" => Builtin::Clip,
        "div" => Builtin::Div,
        "stop" => Builtin::Stop,
        "size" => Builtin::Size,
        "popcount" => Builtin::Whole(Function::Popcount),
        "grad" | JACOBIAN | JVP | HVP => Builtin::Gradient,
        "min" | "max" | "pow" => Builtin::Pair(Function::from_name(name)?),
        "abs" | "sign" | "floor" | "ceil" | "round" | "relu" => {
            Builtin::Numeric(Function::from_name(name)?)
        }
        "exp" | "log" | "log1p" | "expm1" | "sqrt" | "rsqrt" | "tanh" | "sigmoid" | "gelu"
        | "erf" | "erfc" | "erfinv" | "sin" | "cos" | "tan" | "asin" | "acos" | "atan" | "sinh"
        | "cosh" | "asinh" | "acosh" | "atanh" | "exp2" | "log2" | "log10" | "cbrt" | "lgamma" => {
            Builtin::Real(Function::from_name(name)?)
        }
        "atan2" | "hypot" | "nextafter" => Builtin::RealPair(Function::from_name(name)?),
        "softplus" => Builtin::Composed(Composed::Softplus),
        "logaddexp" => Builtin::Composed(Composed::LogAddExp),
        "digamma" => Builtin::Composed(Composed::Digamma),
        "complex" => Builtin::Complex(ComplexForm::Pair),
        "re" => Builtin::Complex(ComplexForm::Real),
        "im" => Builtin::Complex(ComplexForm::Imaginary),
        "conj" => Builtin::Complex(ComplexForm::Conjugate),
        "angle" => Builtin::Complex(ComplexForm::Angle),
        "isnan" => Builtin::Composed(Composed::IsNan),
        "isfinite" => Builtin::Composed(Composed::IsFinite),
        _ => return None,
    })
}

impl Builtin {
    /// How many arguments it takes.
    pub(crate) fn arity(self) -> usize {
        match self {
            Builtin::Where | Builtin::Clip => 3,
            Builtin::Pair(_) | Builtin::RealPair(_) | Builtin::Div => 2,
            Builtin::Composed(Composed::LogAddExp) | Builtin::Complex(ComplexForm::Pair) => 2,
            _ => 1,
        }
    }
}

/// An argument with its place.
pub(crate) type Operand = (ExprId, Span);

impl Checker<'_> {
    /// Applies a scalar function other than `where` and `size` to as many arguments as it takes.
    pub(crate) fn builtin(
        &mut self,
        builtin: Builtin,
        name: &str,
        x: &[Operand],
        span: Span,
    ) -> Option<ExprId> {
        if let Some(done) = self.complex_builtin(builtin, name, x, span) {
            return done;
        }
        match builtin {
            Builtin::Convert(dtype) => self.convert(x[0].0, dtype, x[0].1),
            Builtin::Stop => self.apply(Function::Stop, vec![x[0].0], span),
            Builtin::Real(function) => {
                self.real(name, x[0])?;
                self.apply(function, vec![x[0].0], span)
            }
            Builtin::Whole(function) => {
                let mut value = self.integer(x[0].0, x[0].1, &format!("what `{name}` takes"))?;
                if let Ty::Typed(dtype) = self.arena.ty(value)
                    && dtype.is_narrow()
                {
                    // The arithmetic has more bits than the type.
                    let bits = Scalar::Int((1 << (8 * dtype.size())) - 1);
                    let bits = self.arena.add(Form::Constant(bits), Ty::Typed(dtype));
                    value = self.apply(Function::BitAnd, vec![value, bits], span)?;
                }
                self.apply(function, vec![value], span)
            }
            Builtin::RealPair(function) => {
                let (a, b) = self.real_pair(name, x)?;
                self.apply(function, vec![a.0, b.0], span)
            }
            Builtin::Composed(composed) => self.composed(composed, name, x, span),
            Builtin::Numeric(function) => {
                self.numeric(name, x[0])?;
                let integer =
                    matches!(self.arena.ty(x[0].0), Ty::Typed(dtype) if dtype.is_integer());
                match function {
                    Function::Floor | Function::Ceil | Function::Round if integer => Some(x[0].0),
                    Function::Relu if integer => {
                        let zero = self.arena.whole(Size::number(0));
                        self.arithmetic(Function::Max, x[0], (zero, span), span)
                    }
                    _ => self.apply(function, vec![x[0].0], span),
                }
            }
            Builtin::Pair(function) => self.arithmetic(function, x[0], x[1], span),
            Builtin::Div => self.arithmetic(Function::FloorDiv, x[0], x[1], span),
            Builtin::Clip => {
                let low = self.arithmetic(Function::Max, x[0], x[1], span)?;
                self.arithmetic(Function::Min, (low, x[0].1), x[2], span)
            }
            Builtin::Where
            | Builtin::Complex(_)
            | Builtin::Size
            | Builtin::Source
            | Builtin::Library
            | Builtin::Gradient => None,
        }
    }

    /// An operation on the bits of two integers of one type.
    pub(crate) fn bits(
        &mut self,
        (function, sign): (Function, &str),
        a: Operand,
        b: Operand,
        span: Span,
    ) -> Option<ExprId> {
        for x in [a, b] {
            if self.arena.ty(x.0) == Ty::Typed(DType::Bool) {
                let word = match function {
                    Function::BitOr => "or",
                    Function::BitXor => "!=",
                    _ => "and",
                };
                let message = format!("`{sign}` is of the bits of integers, not of truth values");
                self.report.push(
                    Diagnostic::error("E0403", message)
                        .at(x.1, "this is bool")
                        .help(format!(
                            "of truth values write `{word}`, with comparisons in brackets"
                        )),
                );
                return None;
            }
            self.integer(x.0, x.1, &format!("an operand of `{sign}`"))?;
        }
        let (x, y) = self.unify(a, b, &format!("`{sign}`"))?;
        self.apply(function, vec![x, y], span)
    }

    /// Arithmetic with two operands. `Div` is real division.
    pub(crate) fn arithmetic(
        &mut self,
        function: Function,
        a: Operand,
        b: Operand,
        span: Span,
    ) -> Option<ExprId> {
        let symbol = match function {
            Function::Add => "`+`",
            Function::Sub => "`-`",
            Function::Mul => "`*`",
            Function::Div => "`/`",
            Function::Rem => "`%`",
            Function::Pow => "`^`",
            Function::FloorDiv => "`div`",
            Function::Min => "`min`",
            _ => "`max`",
        };
        let (ok, other) = (self.numeric(symbol, a), self.numeric(symbol, b));
        ok.and(other)?;
        if let Some(done) = self.complex_arithmetic(function, symbol, (a, b), span) {
            return done;
        }
        let integer = |c: &Self, x: Operand| matches!(c.arena.ty(x.0), Ty::Typed(dtype) if dtype.is_integer());
        let number = |c: &Self, x: Operand| matches!(c.arena.ty(x.0), Ty::Number { .. });
        if function == Function::Div {
            if integer(self, a) && integer(self, b) {
                let (left, right) = (self.names.text(a.1), self.names.text(b.1));
                let (x, y) = (self.type_name(a.0), self.type_name(b.0));
                self.report.push(
                    Diagnostic::error("E0402", "`/` between integers")
                        .at(span, "a real division")
                        .at(a.1, format!("this is {x}"))
                        .at(b.1, format!("this is {y}"))
                        .help(format!("for whole numbers write `div({left}, {right})`"))
                        .help(format!(
                            "for real ones convert first: `f32({left}) / f32({right})`"
                        )),
                );
                return None;
            }
            // An integer divided by a number is a real number that takes the type of what it meets.
            if (integer(self, a) && number(self, b)) || (number(self, a) && integer(self, b)) {
                let form =
                    crate::sema::expressions::arena::Form::Apply(Function::Div, vec![a.0, b.0]);
                return Some(self.arena.add(form, Ty::Number { whole: false }));
            }
        }
        let (x, y) = self.unify(a, b, symbol)?;
        match function {
            // A square is a product: exact, and cheap everywhere.
            Function::Pow
                if self.arena.as_number(y) == Some(2.0) && self.arena.as_number(x).is_none() =>
            {
                self.apply(Function::Mul, vec![x, x], span)
            }
            _ => self.apply(function, vec![x, y], span),
        }
    }

    /// Two floating-point values of one type.
    pub(super) fn real_pair(&mut self, name: &str, x: &[Operand]) -> Option<(Operand, Operand)> {
        let (ok, other) = (self.real(name, x[0]), self.real(name, x[1]));
        ok.and(other)?;
        let (a, b) = self.unify(x[0], x[1], &format!("`{name}`"))?;
        Some(((a, x[0].1), (b, x[1].1)))
    }

    /// Returns whether it is a floating-point value, or a number that may become one.
    pub(super) fn real(&mut self, name: &str, x: Operand) -> Option<()> {
        if let Ty::Typed(dtype) = self.arena.ty(x.0)
            && !dtype.is_float()
        {
            self.wrong_type(name, "a floating-point value", x);
            return None;
        }
        Some(())
    }

    fn numeric(&mut self, name: &str, x: Operand) -> Option<()> {
        if self.arena.ty(x.0) == Ty::Typed(DType::Bool) {
            self.wrong_type(name, "numbers", x);
            return None;
        }
        Some(())
    }

    pub(crate) fn wrong_type(&mut self, name: &str, needs: &str, x: Operand) {
        let have = self.type_name(x.0);
        let to = if have == "bool" && needs == "numbers" {
            "i64"
        } else {
            "f32"
        };
        let name = name.trim_matches('`');
        let text = self.names.text(x.1);
        self.report.push(
            Diagnostic::error("E0403", format!("`{name}` needs {needs}, not {have}"))
                .at(x.1, format!("this is {have}"))
                .help(format!("convert it: `{to}({text})`")),
        );
    }

    /// A condition: a truth value.
    pub(crate) fn condition(&mut self, what: &str, x: Operand) -> Option<ExprId> {
        if self.arena.ty(x.0) == Ty::Typed(DType::Bool) {
            return Some(x.0);
        }
        let have = self.type_name(x.0);
        self.report.push(
            Diagnostic::error("E0403", format!("{what} needs a truth value, not {have}"))
                .at(x.1, format!("this is {have}"))
                .help(format!(
                    "compare it with something: `{} != 0`",
                    self.names.text(x.1)
                )),
        );
        None
    }
}
