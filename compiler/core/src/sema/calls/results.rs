//! The results of a called function: what the signature and the call say of them, and whether the body keeps to it.
//!
//! Must not know how a body is read.
//!
//! ```text
//! fn f(x[n, d]) -> z[n] { z[n, d] = x[n, d] }   ->   E0301: `z` has two shapes
//! ```

use crate::sema::{
    Checker,
    calls::callee::Callable,
    definitions::tensors::Target,
    expressions::arena::Ty,
    expressions::scope::{Binding, Scope},
    sizes::ranges::StatedBy,
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Formal, Type};

impl<'a> Checker<'a> {
    /// Returns the error for an argument with a fraction that the function may use as a size or position.
    pub(super) fn fraction_passed(
        &self,
        scope: &Scope<'a>,
        callable: Callable<'a>,
        (places, span): (&[Span], Span),
    ) -> Option<Diagnostic> {
        let fraction = |(formal, _): &(&Formal, &Span)| {
            let passed = scope.locals.get(formal.name.text.as_str());
            let Some(Binding::Scalar(value)) = passed else {
                return false;
            };
            self.arena.ty(*value) == (Ty::Number { whole: false })
        };
        let written = |(_, place): &(&Formal, &Span)| place.file == span.file;
        let mut passed = callable.formals.iter().zip(places);
        let (formal, place) = passed.find(|pair| written(pair) && fraction(pair))?;
        let (name, function) = (&formal.name.text, &callable.name.text);
        let message =
            format!("`{name}` of `{function}` must be a whole number, not one with a fraction");
        let text = self.names.text(*place);
        let help = match text.split_once('/') {
            Some((over, under)) => format!(
                "for whole numbers write `div({}, {})`",
                over.trim(),
                under.trim()
            ),
            None => format!("convert it: `i64({text})`"),
        };
        Some(
            Diagnostic::error("E0404", message)
                .at(*place, "sizes are made of it")
                .help(help),
        )
    }

    /// A definition of a body with what the signature and the call say of it, if it is a result.
    pub(super) fn result_target(
        &mut self,
        scope: &Scope<'a>,
        callable: Callable<'a>,
        mut local: Target<'a>,
        hints: &[(String, Span)],
    ) -> Option<Target<'a>> {
        let name = &local.target.name.text;
        let at = callable.results.iter().position(|r| r.name.text == *name);
        if let Some(at) = at {
            let result = &callable.results[at];
            local.ty = local.ty.or(result.ty.as_ref());
            let shape = self.result_shape(scope, callable, result)?;
            local.stated = shape.map(|(sizes, span)| (sizes, span, StatedBy::Signature));
            if let Some((hint, span)) = hints.get(at) {
                local.name = hint.clone();
                local.named = Some(*span);
            }
        }
        Some(local)
    }

    /// Returns whether what a block gives is what the signature says of the result of that name, if it is one.
    pub(super) fn result_fits(
        &mut self,
        scope: &Scope<'a>,
        callable: Callable<'a>,
        name: &str,
        binding: Binding,
    ) -> Option<()> {
        let result = callable.results.iter().find(|r| r.name.text == name);
        let (Some(result), Binding::Tensor(view)) = (result, binding) else {
            return Some(());
        };
        let (sizes, place) = self
            .result_shape(scope, callable, result)?
            .unwrap_or((vec![], result.name.span));
        let have = self.view_shape(view);
        let fits = sizes.len() == have.len()
            && (sizes.iter().zip(&have)).all(|(s, h)| s.as_ref().is_none_or(|s| !s.differs(h)));
        if fits {
            for (size, have) in sizes.iter().zip(&have) {
                size.iter().for_each(|size| self.infer(have, size));
            }
            let tensor = &self.built.tensors[view.tensor.0 as usize];
            let Some(Type::Tensor { dtype, .. }) = &result.ty else {
                return Some(());
            };
            if tensor.dtype == *dtype {
                return Some(());
            }
            let message = format!(
                "`{name}` is declared {dtype}, but its value is {}",
                tensor.dtype
            );
            let error = Diagnostic::error("E0405", message)
                .at(tensor.span, format!("this is {}", tensor.dtype))
                .at(result.name.span, format!("declared {dtype} here"));
            self.report.push(error);
            return None;
        }
        let declared = self.built.tensors[view.tensor.0 as usize].span;
        self.report.push(
            Diagnostic::error("E0301", format!("`{name}` has two shapes"))
                .at(declared, format!("this is {}", self.view_text(view)))
                .at(place, "the signature says otherwise"),
        );
        None
    }
}
