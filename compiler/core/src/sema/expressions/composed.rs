//! Functions that are made of other functions.
//!
//! Must not know how these are computed.
//!
//! ```text
//! isfinite(x)   =>   abs(x) < inf
//! ```

use crate::sema::{
    Checker,
    expressions::arena::ExprId,
    expressions::builtins::{Composed, Operand},
};
use ein_plan::Function;
use einc_diag::Span;

impl Checker<'_> {
    /// A function that is made of others.
    pub(super) fn composed(
        &mut self,
        composed: Composed,
        name: &str,
        x: &[Operand],
        span: Span,
    ) -> Option<ExprId> {
        let first = x[0].0;
        self.real(name, x[0])?;
        match composed {
            Composed::IsNan => self.apply(Function::Ne, vec![first, first], span),
            Composed::IsFinite => {
                let size = self.apply(Function::Abs, vec![first], span)?;
                let limit = (self.arena.real(f64::INFINITY), span);
                let (size, limit) = self.unify((size, span), limit, name)?;
                self.apply(Function::Lt, vec![size, limit], span)
            }
            Composed::Digamma => {
                let order = (self.arena.real(0.0), span);
                let (order, value) = self.unify(order, x[0], name)?;
                self.apply(Function::Polygamma, vec![order, value], span)
            }
            Composed::Softplus => {
                let zero = (self.arena.real(0.0), span);
                let (x, zero) = self.unify(x[0], zero, name)?;
                self.sum_of_exponentials((x, zero), x, span)
            }
            Composed::LogAddExp => {
                let (a, b) = self.real_pair(name, x)?;
                let difference = self.arithmetic(Function::Sub, a, b, span)?;
                let sum = self.sum_of_exponentials((a.0, b.0), difference, span)?;
                // The difference of two that are infinite and equal is NaN.
                let is_number = self.apply(Function::Eq, vec![difference, difference], span)?;
                let is_same = self.apply(Function::Eq, vec![a.0, b.0], span)?;
                let infinite = self.apply(Function::Stop, vec![a.0], span)?;
                let rest = vec![is_same, infinite, difference];
                let rest = self.apply(Function::Select, rest, span)?;
                self.apply(Function::Select, vec![is_number, sum, rest], span)
            }
        }
    }

    /// log(exp(a) + exp(b)), of two values and their difference. It is made of branches, each of them smooth, so that it has all
    /// derivatives also where the two are equal; `max` and `abs` have not.
    fn sum_of_exponentials(
        &mut self,
        (a, b): (ExprId, ExprId),
        difference: ExprId,
        span: Span,
    ) -> Option<ExprId> {
        let is_first = self.apply(Function::Gt, vec![a, b], span)?;
        let turned = self.apply(Function::Neg, vec![difference], span)?;
        let exponent = vec![is_first, turned, difference];
        let exponent = self.apply(Function::Select, exponent, span)?;
        let exponential = self.apply(Function::Exp, vec![exponent], span)?;
        let rest = self.apply(Function::Log1p, vec![exponential], span)?;
        let larger = self.apply(Function::Select, vec![is_first, a, b], span)?;
        self.arithmetic(Function::Add, (larger, span), (rest, span), span)
    }
}
