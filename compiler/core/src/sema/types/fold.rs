//! Functions of expressions: folded where the arguments are known, with the type of the result.
//!
//! Must not know syntax.
//!
//! ```text
//! mul(2, 3.5)   =>   7.0        le(N, N + 1)   =>   true
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, Ty},
    sizes::size::{Size, SizeError},
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::{Diagnostic, Span};

impl Checker<'_> {
    /// A function whose arguments have been unified: folded where it can be.
    pub(crate) fn apply(
        &mut self,
        function: Function,
        arguments: Vec<ExprId>,
        span: Span,
    ) -> Option<ExprId> {
        let values = if function == Function::Select {
            &arguments[1..]
        } else {
            &arguments[..]
        };
        let typed = values.iter().find_map(|a| match self.arena.ty(*a) {
            Ty::Typed(dtype) => Some(dtype),
            Ty::Number { .. } => None,
        });
        if function == Function::Stop
            && let Form::Reduce {
                reduction,
                vars,
                guard,
                body,
            } = &*self.arena.form(arguments[0])
        {
            // Stopped values reduce to a stopped value, in the same kernel.
            let (ty, vars) = (self.arena.ty(arguments[0]), vars.clone());
            let (reduction, guard, body) = (*reduction, *guard, *body);
            let body = self.apply(Function::Stop, vec![body], span)?;
            return Some(self.arena.add(
                Form::Reduce {
                    reduction,
                    vars,
                    guard,
                    body,
                },
                ty,
            ));
        }
        let comparison = matches!(
            function,
            Function::Eq | Function::Ne | Function::Lt | Function::Le | Function::Gt | Function::Ge
        );
        if let Some(folded) = self.fold(function, &arguments, span)? {
            return Some(folded);
        }
        if typed == Some(DType::U64)
            && let Some(done) = self.unsigned(function, &arguments)
        {
            return Some(done);
        }
        if comparison {
            let mut arguments = arguments;
            if typed.is_none() {
                let float = arguments
                    .iter()
                    .any(|a| self.arena.ty(*a) == (Ty::Number { whole: false }));
                let dtype = if float { DType::F32 } else { DType::I64 };
                for argument in &mut arguments {
                    *argument = self.coerce(*argument, dtype, span)?;
                }
            }
            let ty = Ty::Typed(DType::Bool);
            return Some(self.arena.add(Form::Apply(function, arguments), ty));
        }
        let ty = match typed {
            Some(dtype) => Ty::Typed(dtype),
            None => Ty::Number {
                whole: keeps_whole(function)
                    && values
                        .iter()
                        .all(|a| self.arena.ty(*a) == (Ty::Number { whole: true })),
            },
        };
        Some(self.arena.add(Form::Apply(function, arguments), ty))
    }

    /// Folds a function of known arguments; `Some(None)` where it must be computed, `None` after an error.
    pub(crate) fn fold(
        &mut self,
        function: Function,
        arguments: &[ExprId],
        span: Span,
    ) -> Option<Option<ExprId>> {
        use Function::*;
        let truth = |c: &Self, at: usize| arguments.get(at).and_then(|a| c.arena.as_truth(*a));
        match function {
            And | Or => {
                for (at, other) in [(0, 1), (1, 0)] {
                    if let Some(value) = truth(self, at) {
                        let decides = value == (function == Or);
                        return Some(Some(arguments[if decides { at } else { other }]));
                    }
                }
                return Some(None);
            }
            Not => {
                return Some(truth(self, 0).map(|value| self.arena.truth(!value)));
            }
            Select => {
                return Some(truth(self, 0).map(|value| arguments[if value { 1 } else { 2 }]));
            }
            _ => {}
        }
        let untyped = arguments
            .iter()
            .all(|a| matches!(self.arena.ty(*a), Ty::Number { .. }));
        if !untyped {
            return Some(None);
        }
        let sizes: Option<Vec<Size>> = arguments.iter().map(|a| self.arena.as_size(*a)).collect();
        if let Some(sizes) = sizes {
            let both =
                |apply: fn(&Size, &Size) -> Result<Size, SizeError>| apply(&sizes[0], &sizes[1]);
            let known = sizes[0].known();
            let result = match function {
                Add => Some(both(Size::plus)),
                Sub => Some(both(Size::subtract)),
                Mul => Some(both(Size::times)),
                Neg => Some(Size::number(0).subtract(&sizes[0])),
                Pow if sizes[1].at_least_zero() != Some(true) => None,
                FloorDiv | Rem | Min | Max | Pow => {
                    Some(Size::apply(function, &sizes[0], &sizes[1]))
                }
                BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => {
                    let second = sizes.get(1).and_then(Size::known);
                    known
                        .zip(second)
                        .map(|(a, b)| Ok(Size::number(bits(function, a, b))))
                }
                Popcount => known.map(|n| Ok(Size::number(i64::from(n.count_ones())))),
                Abs => known.map(|n| n.checked_abs().map(Size::number).ok_or(SizeError::Overflow)),
                Sign => known.map(|n| Ok(Size::number(n.signum()))),
                Relu => known.map(|n| Ok(Size::number(n.max(0)))),
                Floor | Ceil | Round | Stop => Some(Ok(sizes[0].clone())),
                Eq | Ne | Lt | Le | Gt | Ge => {
                    let Some(order) = sizes[0].compare(&sizes[1]) else {
                        return Some(None);
                    };
                    let value = match function {
                        Eq => order.is_eq(),
                        Ne => order.is_ne(),
                        Lt => order.is_lt(),
                        Le => order.is_le(),
                        Gt => order.is_gt(),
                        _ => order.is_ge(),
                    };
                    return Some(Some(self.arena.truth(value)));
                }
                _ => None,
            };
            match result {
                Some(Ok(size)) => return Some(Some(self.arena.whole(size))),
                Some(Err(error)) => {
                    self.size_error(error, span);
                    return None;
                }
                None => {}
            }
        }
        let numbers: Option<Vec<f64>> =
            arguments.iter().map(|a| self.arena.as_number(*a)).collect();
        Some(
            numbers
                .and_then(|n| fold_real(function, &n))
                .map(|value| match value {
                    Scalar::Bool(value) => self.arena.truth(value),
                    other => self.arena.real(other.as_f64()),
                }),
        )
    }

    /// Reports that a size has no number.
    pub(crate) fn size_error(&mut self, error: SizeError, span: Span) {
        self.report.push(match error {
            SizeError::Overflow => {
                Diagnostic::error("E0307", "this whole number does not fit into 64 bits")
                    .at(span, "too large")
            }
            SizeError::DivisionByZero => {
                Diagnostic::error("E0307", "a whole number is divided by zero")
                    .at(span, "the divisor is 0")
            }
        });
    }
}

/// Returns whether whole arguments give a whole result.
fn keeps_whole(function: Function) -> bool {
    use Function::*;
    matches!(
        function,
        Add | Sub
            | Mul
            | Neg
            | FloorDiv
            | Rem
            | Min
            | Max
            | Abs
            | Sign
            | Relu
            | Select
            | Stop
            | Floor
            | Ceil
            | Round
            | Pow
    ) || takes_whole(function)
}

/// Returns whether the arguments of a function are whole numbers always.
pub(crate) fn takes_whole(function: Function) -> bool {
    use Function::*;
    matches!(
        function,
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | Popcount
    )
}

/// An operation on the bits of whole numbers.
fn bits(function: Function, a: i64, b: i64) -> i64 {
    match function {
        Function::BitAnd => a & b,
        Function::BitOr => a | b,
        Function::BitXor => a ^ b,
        Function::ShiftLeft => ein_plan::shift_left(a, b, 64),
        _ => ein_plan::shift_right(a, b, 64),
    }
}

/// The function of known numbers; `None` where it is left to the run.
fn fold_real(function: Function, x: &[f64]) -> Option<Scalar> {
    use Function::*;
    let real = match function {
        Add => x[0] + x[1],
        Sub => x[0] - x[1],
        Mul => x[0] * x[1],
        Div => x[0] / x[1],
        FloorDiv => ein_plan::floor_quotient(x[0], x[1]),
        Rem => ein_plan::remainder(x[0], x[1]),
        Pow => x[0].powf(x[1]),
        Min if !x[0].is_nan() && !x[1].is_nan() => x[0].min(x[1]),
        Max if !x[0].is_nan() && !x[1].is_nan() => x[0].max(x[1]),
        Neg => -x[0],
        Exp => x[0].exp(),
        Log => x[0].ln(),
        Log1p => x[0].ln_1p(),
        Expm1 => x[0].exp_m1(),
        Sqrt => x[0].sqrt(),
        Rsqrt => x[0].sqrt().recip(),
        Tanh => x[0].tanh(),
        Sin => x[0].sin(),
        Cos => x[0].cos(),
        Tan => x[0].tan(),
        Asin => x[0].asin(),
        Acos => x[0].acos(),
        Atan => x[0].atan(),
        Atan2 => x[0].atan2(x[1]),
        Sinh => x[0].sinh(),
        Cosh => x[0].cosh(),
        Asinh => x[0].asinh(),
        Acosh => x[0].acosh(),
        Atanh => x[0].atanh(),
        Exp2 => x[0].exp2(),
        Log2 => x[0].log2(),
        Log10 => x[0].log10(),
        Cbrt => x[0].cbrt(),
        Hypot => x[0].hypot(x[1]),
        Abs => x[0].abs(),
        Floor => x[0].floor(),
        Ceil => x[0].ceil(),
        Round => x[0].round_ties_even(),
        Stop => x[0],
        Eq => return Some(Scalar::Bool(x[0] == x[1])),
        Ne => return Some(Scalar::Bool(x[0] != x[1])),
        Lt => return Some(Scalar::Bool(x[0] < x[1])),
        Le => return Some(Scalar::Bool(x[0] <= x[1])),
        Gt => return Some(Scalar::Bool(x[0] > x[1])),
        Ge => return Some(Scalar::Bool(x[0] >= x[1])),
        _ => return None,
    };
    Some(Scalar::Float(real))
}
