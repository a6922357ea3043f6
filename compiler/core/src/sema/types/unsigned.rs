//! u64, by the signed arithmetic of its bits.
//!
//! Sums, products and operations on bits are those of i64, since both wrap. An order is that of the numbers with the first bit turned;
//! quotients, shifts to the right and conversions of floats are put together of what is left. Must not know statements.
//!
//! ```text
//! a < b    =>   (a xor 2^63) < (b xor 2^63)
//! f64(a)   =>   where(a < 0, 2 * f64((a >>> 1) | (a & 1)), f64(a))
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, Ty},
};
use ein_plan::{DType, Function, Reduction, Scalar};
use einc_diag::{Diagnostic, Span};

const U64: Ty = Ty::Typed(DType::U64);
/// 2^63.
const HALF: f64 = 9_223_372_036_854_775_808.0;

impl Checker<'_> {
    /// Returns whether an expression is of u64.
    pub(crate) fn is_unsigned(&self, id: ExprId) -> bool {
        self.arena.ty(id) == U64
    }

    /// A number from 2^63 on that stands in the text: of u64, unless it meets a floating-point value.
    pub(crate) fn large_number(&self, id: ExprId) -> Option<u64> {
        match &*self.arena.form(id) {
            Form::Constant(Scalar::Int(bits)) if *bits < 0 && self.is_unsigned(id) => {
                Some(*bits as u64)
            }
            _ => None,
        }
    }

    /// A literal from 2^63 on, which of all integer types u64 alone has.
    pub(crate) fn unsigned_literal(&mut self, number: u64) -> ExprId {
        self.bits_of(number as i64)
    }

    /// Reports a whole number that no place of its kind can hold.
    pub(crate) fn beyond_64_bits(&mut self, span: Span) {
        let text = self.names.text(span);
        self.report.push(
            Diagnostic::error("E0307", format!("{text} does not fit into 64 bits"))
                .at(span, "too large")
                .help("write it with a point for a floating-point number"),
        );
    }

    fn bits_of(&mut self, number: i64) -> ExprId {
        self.arena.add(Form::Constant(Scalar::Int(number)), U64)
    }

    fn of_bits(&mut self, function: Function, arguments: &[ExprId]) -> ExprId {
        self.arena
            .add(Form::Apply(function, arguments.to_vec()), U64)
    }

    fn test(&mut self, function: Function, a: ExprId, b: ExprId) -> ExprId {
        let form = Form::Apply(function, vec![a, b]);
        self.arena.add(form, Ty::Typed(DType::Bool))
    }

    fn chosen(&mut self, condition: ExprId, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.arena.ty(a);
        let form = Form::Apply(Function::Select, vec![condition, a, b]);
        self.arena.add(form, ty)
    }

    /// A number with its first bit turned.
    fn turned(&mut self, id: ExprId) -> ExprId {
        let first = self.bits_of(i64::MIN);
        self.of_bits(Function::BitXor, &[id, first])
    }

    /// A comparison as that of the numbers with the first bit turned.
    fn compared(&mut self, function: Function, a: ExprId, b: ExprId) -> ExprId {
        let (a, b) = (self.turned(a), self.turned(b));
        self.test(function, a, b)
    }

    /// A function of u64 values of one type, which gives u64 or a truth value; `None` where that of i64 is the same.
    pub(super) fn unsigned(&mut self, function: Function, of: &[ExprId]) -> Option<ExprId> {
        use Function::{Abs, FloorDiv, Ge, Gt, Le, Lt, Max, Min, Ne, Relu, Rem, ShiftRight, Sign};
        let second = of.get(1).copied().unwrap_or(of[0]);
        Some(match function {
            Lt | Le | Gt | Ge => self.compared(function, of[0], second),
            Min | Max => {
                let order = if function == Min { Lt } else { Gt };
                let is_first = self.compared(order, of[0], second);
                self.chosen(is_first, of[0], second)
            }
            Abs | Relu => of[0],
            Sign => {
                let (zero, one) = (self.bits_of(0), self.bits_of(1));
                let is_positive = self.test(Ne, of[0], zero);
                self.chosen(is_positive, one, zero)
            }
            ShiftRight => self.shifted(of[0], second),
            FloorDiv => self.divided(of[0], second),
            Rem => {
                let quotient = self.divided(of[0], second);
                let whole = self.of_bits(Function::Mul, &[quotient, second]);
                self.of_bits(Function::Sub, &[of[0], whole])
            }
            _ => return None,
        })
    }

    /// a >> b with zeros behind: of the signed shift, the bits that a has.
    fn shifted(&mut self, a: ExprId, b: ExprId) -> ExprId {
        let (zero, one, most) = (self.bits_of(0), self.bits_of(1), self.bits_of(i64::MAX));
        let signed = self.of_bits(Function::ShiftRight, &[a, b]);
        let less = self.of_bits(Function::Sub, &[b, one]);
        let mask = self.of_bits(Function::ShiftRight, &[most, less]);
        let shifted = self.of_bits(Function::BitAnd, &[signed, mask]);
        let is_none = self.test(Function::Eq, b, zero);
        self.chosen(is_none, a, shifted)
    }

    /// The quotient: of a divisor from 2^63 on it is 0 or 1; below, twice that of half the number is it, or one less (Warren, Hacker's
    /// Delight, section 9-3).
    fn divided(&mut self, a: ExprId, b: ExprId) -> ExprId {
        use Function::{Add, FloorDiv, Ge, Lt, Mul, ShiftLeft, Sub};
        let (zero, one) = (self.bits_of(0), self.bits_of(1));
        let half = self.shifted(a, one);
        let quotient = self.of_bits(FloorDiv, &[half, b]);
        let twice = self.of_bits(ShiftLeft, &[quotient, one]);
        let whole = self.of_bits(Mul, &[twice, b]);
        let rest = self.of_bits(Sub, &[a, whole]);
        let once_more = self.compared(Ge, rest, b);
        let more = self.chosen(once_more, one, zero);
        let below = self.of_bits(Add, &[twice, more]);
        let fits = self.compared(Ge, a, b);
        let above = self.chosen(fits, one, zero);
        let is_large = self.test(Lt, b, zero);
        self.chosen(is_large, above, below)
    }

    /// A value of u64 in a floating-point type: of one from 2^63 on, half of it is converted, with a last bit that says whether a rest is left.
    pub(super) fn unsigned_to_float(&mut self, id: ExprId, to: DType) -> ExprId {
        let (zero, one) = (self.bits_of(0), self.bits_of(1));
        let half = self.shifted(id, one);
        let last = self.of_bits(Function::BitAnd, &[id, one]);
        let half = self.of_bits(Function::BitOr, &[half, last]);
        // Narrow floats are rounded once, from the whole number.
        let wide = Ty::Typed(to.compute());
        let [half, small] = [half, id].map(|id| self.arena.add(Form::Convert(id), wide));
        let large = self
            .arena
            .add(Form::Apply(Function::Add, vec![half, half]), wide);
        let is_large = self.test(Function::Lt, id, zero);
        let value = self.chosen(is_large, large, small);
        match to == to.compute() {
            true => value,
            false => self.arena.add(Form::Convert(value), Ty::Typed(to)),
        }
    }

    /// A floating-point value as u64: without its fraction, the nearest one where it is out of range, 0 of NaN.
    pub(super) fn float_to_unsigned(&mut self, id: ExprId) -> ExprId {
        let own = match self.arena.ty(id) {
            Ty::Typed(dtype) => dtype.compute(),
            Ty::Number { .. } => DType::F64,
        };
        let half = Form::Constant(Scalar::Float(HALF));
        let half = self.arena.add(half, Ty::Typed(own));
        let is_large = self.test(Function::Ge, id, half);
        let less = Form::Apply(Function::Sub, vec![id, half]);
        let less = self.arena.add(less, Ty::Typed(own));
        let [above, below] = [less, id].map(|id| self.arena.add(Form::Convert(id), U64));
        let above = self.turned(above);
        let zero = self.bits_of(0);
        let below = self.of_bits(Function::Max, &[below, zero]);
        self.chosen(is_large, above, below)
    }

    /// A value of u64 as the i64 that has its place in the order.
    pub(crate) fn in_order(&mut self, id: ExprId) -> ExprId {
        let turned = self.turned(id);
        self.arena.add(Form::Convert(turned), Ty::Typed(DType::I64))
    }

    /// The value of u64 that has the place of an i64 in the order.
    pub(crate) fn out_of_order(&mut self, id: ExprId) -> ExprId {
        let bits = self.arena.add(Form::Convert(id), U64);
        self.turned(bits)
    }

    /// Returns the reduction that one of u64 is: a norm of numbers that are not negative is a plainer one.
    pub(crate) fn unsigned_reduction(reduction: Reduction) -> Reduction {
        match reduction {
            Reduction::Norm1 => Reduction::Sum,
            Reduction::NormInf => Reduction::Max,
            other => other,
        }
    }
}
