//! `w, V = eig(A)`: complex eigenvalues and eigenvectors of a real matrix, of the four real tensors that the run time gives.
//!
//! Must not know how they are computed.
//!
//! ```text
//! w, V = eig(A)   =>   a, b, C, D = eig(A);  w = complex(a, b);  V = complex(C, D)
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    calls::functions::Results,
    expressions::arena::{ComplexForm, Form, Ty},
    expressions::scope::Binding,
    library::operands::Call,
};
use einc_diag::Span;

impl Checker<'_> {
    /// The values and vectors of a matrix of checked type.
    pub(crate) fn eigen(&mut self, call: Call, hints: &[(String, Span)]) -> Option<Results> {
        let (name, span, of) = (call.operation.name, call.span, call.views[0]);
        let complex = self.built.tensors[of.tensor.0 as usize].dtype.complex()?;
        let outer = self.captured(&[Binding::Tensor(of)]);
        let sizes = self.library_sizes(&call)?;
        let mut parts = vec![];
        for part in self.library_call(call, sizes, &[])?.iter() {
            match part {
                Binding::Tensor(view) => parts.push(*view),
                _ => return None,
            }
        }
        let mut results = vec![];
        for (number, pair) in parts.chunks(2).enumerate() {
            let hint = hints.get(number).filter(|_| outer.is_empty());
            let (name, span, role) = match hint {
                Some((name, span)) => (name.as_str(), *span, Role::Named),
                None => (name, span, Role::Hidden),
            };
            let view = self.over(pair, ((name, role), span), None, |c, of| {
                let parts = of.iter().map(|of| of.read(c)).collect();
                let pair = Form::Complex(ComplexForm::Pair, parts);
                Some(c.arena.add(pair, Ty::Typed(complex)))
            })?;
            results.push(Binding::Tensor(view));
        }
        Some(results.into())
    }
}
