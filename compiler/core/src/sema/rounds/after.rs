//! The names that are seen after a block: its states' last values, the number of its rounds, and the tensors that they collected.
//!
//! Must not know what a round computes.
//!
//! ```text
//! hs[t,n] = next h[n]   =>   hs: f64[T, N] = all that `each hs` was
//! ```

use crate::einsum::{BlockId, LoopValue, Role};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, Tensor},
    expressions::arena::TensorRef,
    expressions::scope::{Binding, Scope, View},
    resolve::names::Visible,
    rounds::block::Rounds,
    rounds::desugar::next_name,
    rounds::repeat::{After, Frame, Place},
    sizes::size::Size,
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, Name};

impl<'a> Checker<'a> {
    /// Binds the names that are seen after a block.
    pub(crate) fn after(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        scope: &Scope<'a>,
        id: BlockId,
    ) -> Option<After<'a>> {
        let at = id.0 as usize;
        let mut after: After<'a> = vec![];
        let mut number = 0;
        for visible in self.names.visible_names(frame.repeat) {
            let name = visible.name();
            let (role, full) = match place.prefix {
                "" => (Role::Named, name.text.clone()),
                prefix => (Role::Hidden, format!("{prefix}.{}", name.text)),
            };
            let binding = match visible {
                Visible::Counter(_) => self.counting(frame, LoopValue::Rounds(id)),
                Visible::State(target, ..) => {
                    let next = scope.locals.get(next_name(&name.text).as_str()).copied();
                    let Some(Binding::Tensor(next)) = next else {
                        return None;
                    };
                    let spread = format!("{}.{}.next.all", frame.name, name.text);
                    let whole = self.holds_whole_numbers(next);
                    let next = self.spread(place.scope, next, spread, target.span);
                    self.built.blocks[at].states[number].1 = Some(next);
                    let like = self.built.blocks[at].states[number].0;
                    let like = self.built.tensors[like.0 as usize].clone();
                    let tensor = self.add_tensor(Tensor {
                        name: full,
                        role,
                        definition: Definition::Loop(LoopValue::Last(id, number as u32)),
                        span: target.span,
                        ..like
                    });
                    number += 1;
                    if frame.states.get(name.text.as_str()).is_some_and(|s| s.open) {
                        self.inference.untyped.insert(tensor, whole);
                    }
                    Binding::Tensor(self.inner(place.scope, tensor))
                }
                Visible::Collected(_) => {
                    let value = self.collected(place, frame, scope, name)?;
                    self.collect(
                        place,
                        id,
                        (full, role, name.span),
                        value,
                        &frame.counter.text,
                    )?
                }
            };
            after.push((&name.text, Some(binding)));
        }
        Some(after)
    }

    /// Returns whether the elements of a tensor are whole numbers, as far as is known.
    fn holds_whole_numbers(&self, view: View) -> bool {
        let whole = self.inference.untyped.get(&view.tensor).copied();
        whole.unwrap_or_else(|| {
            let tensor = &self.built.tensors[view.tensor.0 as usize];
            tensor.dtype.is_integer()
        })
    }

    /// The slice that one round adds to a collected tensor, with the dimension that counts the rounds and its place.
    pub(crate) fn collected(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        scope: &Scope<'a>,
        name: &'a Name,
    ) -> Option<(TensorRef, usize, Option<&'a Expr>)> {
        let collections = self.names.collections;
        let found = collections.values().find(|c| c.name.span == name.span)?;
        let local = format!("each {}", name.text);
        let Some(Binding::Tensor(view)) = scope.locals.get(local.as_str()).copied() else {
            return None;
        };
        let spread = format!("{}.{}.all", frame.name, name.text);
        let tensor = self.spread(place.scope, view, spread, name.span);
        let dim = place.scope.captured.len() + found.dim;
        Some((tensor, dim, found.size.as_ref()))
    }

    /// All that is collected.
    fn collect(
        &mut self,
        place: &Place<'_, 'a>,
        id: BlockId,
        (full, role, span): (String, Role, Span),
        (value, dim, size): (TensorRef, usize, Option<&'a Expr>),
        counter: &str,
    ) -> Option<Binding> {
        let block = &mut self.built.blocks[id.0 as usize];
        let Rounds::Size(rounds) = block.bound.clone() else {
            let place = block.span;
            self.report.push(
                Diagnostic::error("E0515", format!("nobody knows how many slices `{counter}` counts"))
                    .at(span, format!("`{counter}` on the left: one slice a round"))
                    .at(place, "the number of rounds is not known before the run")
                    .help(format!("give the rounds a bound of numbers, dims and consts: `repeat {counter} < N until …`")),
            );
            return None;
        };
        let number = block.collected.len() as u32;
        block.collected.push((value, dim));
        self.declared_rounds(place, size, &rounds)?;
        let mut like = self.built.tensors[value.0 as usize].clone();
        like.shape.insert(dim, rounds);
        self.check_elements(&like.shape, span)?;
        let tensor = self.add_tensor(Tensor {
            name: full,
            role,
            definition: Definition::Loop(LoopValue::Collected(id, number)),
            span,
            ..like
        });
        Some(Binding::Tensor(self.inner(place.scope, tensor)))
    }

    /// The size that a type says of the dimension that counts rounds must be their number.
    pub(crate) fn declared_rounds(
        &mut self,
        place: &Place<'_, 'a>,
        size: Option<&'a Expr>,
        rounds: &Size,
    ) -> Option<()> {
        let Some(expr) = size else {
            return Some(());
        };
        let Some(size) = self.size(place.scope, expr, "a size") else {
            // Values of the loop do not exist before it, so there is no other error.
            if !self.report.failed() && !self.names.sources.incomplete {
                self.report.push(
                    Diagnostic::error("E0208", "a size must be known before the run")
                        .at(expr.span, "this is made by the loop")
                        .help(format!("there is one slice a round: {rounds}")),
                );
            }
            return None;
        };
        if !size.differs(rounds) {
            return Some(());
        }
        self.report.push(
            Diagnostic::error("E0301", format!("{size} slices of {rounds} rounds"))
                .at(expr.span, format!("this is {size}"))
                .help("there is one slice a round"),
        );
        None
    }
}
