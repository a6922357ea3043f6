//! Whole numbers: which expressions of them are computed as such before they are converted, and how they are positions.
//!
//! Must not know syntax; it is given spans for messages.
//!
//! ```text
//! u8(min(i, 100))   =>   u8(min(i, 100) as i64), not min(u8(i), u8(100))
//! x[n], n: u64      =>   x[i64(min(n, 9223372036854775807))]
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, Form, Ty},
    sizes::size::Size,
    types::fold::takes_whole,
};
use ein_plan::{DType, Function, Reduction};
use einc_diag::Span;

impl Checker<'_> {
    /// Returns whether an untyped expression that becomes one of `dtype` is computed in i64 first: what wraps, or is rounded, is another
    /// number to all but sums and products. No function of u64 is needed for such expressions.
    pub(super) fn is_computed_whole(&self, id: ExprId, dtype: DType) -> bool {
        use Function::{Add, FloorDiv, Mul, Neg, Rem, Select, Sub};
        let whole = self.arena.ty(id) == (Ty::Number { whole: true });
        let integer = dtype.is_integer();
        dtype != DType::I64
            && match &*self.arena.form(id) {
                Form::Index(_) | Form::SizeOf(_) => whole,
                Form::Apply(FloorDiv | Rem, _) => whole || integer,
                Form::Apply(function, _) if takes_whole(*function) || dtype == DType::U64 => true,
                Form::Apply(function, _) => {
                    integer && !matches!(function, Add | Sub | Mul | Neg | Select)
                }
                Form::Reduce { reduction, .. } => {
                    integer && !matches!(reduction, Reduction::Sum | Reduction::Prod)
                }
                _ => false,
            }
    }

    /// Both sides of a comparison with one type. An index, or what is made of it, is compared as it is: with integers of types that do
    /// not hold all its values as i64.
    pub(crate) fn compared_alike(
        &mut self,
        (a, a_span): (ExprId, Span),
        (b, b_span): (ExprId, Span),
    ) -> Option<(ExprId, ExprId)> {
        let (a, b) = (self.beside(a, b), self.beside(b, a));
        self.unify((a, a_span), (b, b_span), "the comparison")
    }

    /// An integer as it is compared with the other side.
    fn beside(&mut self, integer: ExprId, other: ExprId) -> ExprId {
        let varies = self.arena.ty(other) == (Ty::Number { whole: true })
            && self.arena.as_size(other).is_none();
        match self.arena.ty(integer) {
            Ty::Typed(dtype) if varies && dtype.is_integer() && dtype.size() < 8 => self
                .arena
                .add(Form::Convert(integer), Ty::Typed(DType::I64)),
            _ => integer,
        }
    }

    /// A whole number as `i64`; of `u64` what is beyond that is the greatest one.
    pub(crate) fn position_value(&mut self, id: ExprId, span: Span) -> Option<ExprId> {
        match self.arena.ty(id) {
            Ty::Typed(DType::I64) => Some(id),
            Ty::Typed(DType::U64) if self.linear(id).is_none() => {
                let most = self.arena.whole(Size::number(i64::MAX));
                let most = self.coerce(most, DType::U64, span)?;
                let held = self.apply(Function::Min, vec![id, most], span)?;
                Some(self.arena.add(Form::Convert(held), Ty::Typed(DType::I64)))
            }
            Ty::Typed(_) => Some(self.arena.add(Form::Convert(id), Ty::Typed(DType::I64))),
            Ty::Number { .. } => self.coerce(id, DType::I64, span),
        }
    }
}
