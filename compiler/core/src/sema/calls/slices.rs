//! Slices: a tensor at some leading positions, passed to a function as a tensor of its own.
//!
//! A position may hold indices of the statement in which the call stands: the call is then made for every value of
//! them. Nothing is copied for that: what the body computes from a slice has these indices before its own, and is read
//! at them. Must not know what is called.
//!
//! ```text
//! k[p,i] = f(A[p])[i], fn f(x[n]) -> y[n] { y[n] = 2 * x[n] }
//!   =>   f.1.y[p, n] = 2 * A[p, n];  k[p, i] = f.1.y[p, i]
//! ```

use crate::sema::{
    Checker,
    expressions::arena::{ExprId, TensorRef, VarId},
    expressions::scope::{Binding, Scope, SliceId, View},
    sizes::size::Size,
};
use einc_diag::{Diagnostic, Span};
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// The slice of a tensor at these positions, of which it may have no more than dimensions.
    pub(crate) fn slice(&mut self, tensor: TensorRef, leading: Vec<ExprId>) -> View {
        let leading: Rc<[ExprId]> = leading.into();
        let next = SliceId(self.calls.slices.len() as u32);
        let slice = *self
            .calls
            .slice_numbers
            .entry(leading.clone())
            .or_insert(next);
        if slice == next {
            self.calls.slices.push(leading);
        }
        View { tensor, slice }
    }

    /// The positions before those that a user of the slice writes.
    pub(crate) fn leading(&self, view: View) -> Rc<[ExprId]> {
        self.calls.slices[view.slice.0 as usize].clone()
    }

    /// The sizes of its own dimensions.
    pub(crate) fn view_shape(&self, view: View) -> Vec<Size> {
        let skip = self.calls.slices[view.slice.0 as usize].len();
        self.built.tensors[view.tensor.0 as usize].shape[skip..].to_vec()
    }

    /// Its type in the user's terms.
    pub(crate) fn view_text(&self, view: View) -> String {
        let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
        let sizes: Vec<String> = self
            .view_shape(view)
            .iter()
            .map(ToString::to_string)
            .collect();
        if sizes.is_empty() {
            dtype.name().into()
        } else {
            format!("{dtype}[{}]", sizes.join(", "))
        }
    }

    /// The indices of other statements that what is passed depends on, ascending.
    pub(crate) fn captured(&self, bindings: &[Binding]) -> Vec<VarId> {
        let mut vars = vec![];
        for binding in bindings {
            match binding {
                Binding::Scalar(value) => vars.extend(self.arena.free(*value).iter()),
                Binding::Tensor(view) => {
                    for position in self.leading(*view).iter() {
                        vars.extend(self.arena.free(*position).iter());
                    }
                }
                Binding::Instance(_) | Binding::Poison => {}
            }
        }
        vars.sort();
        vars.dedup();
        vars
    }

    /// Fixes the extents of indices for every value of which a call is made.
    pub(crate) fn pin(&mut self, vars: &[VarId], span: Span) -> Option<()> {
        for id in vars {
            let var = &self.indices.vars[id.0 as usize];
            if var.extent.is_some() {
                continue;
            }
            let stated = var.stated.as_ref().map(|stated| stated.size.clone());
            let strict = var.uses.iter().find(|u| !u.lenient);
            let used = strict.or(var.uses.first()).map(|u| u.size.clone());
            let Some(size) = stated.or(used) else {
                let (name, place) = (var.name.clone(), var.span);
                self.report.push(
                    Diagnostic::error(
                        "E0306",
                        format!("nothing says how far `{name}` runs before this call"),
                    )
                    .at(span, format!("the call is made for every `{name}`"))
                    .at(place, "bound here")
                    .help(format!("give it a bound where it is bound: `{name} < …`")),
                );
                return None;
            };
            self.indices.vars[id.0 as usize].extent = Some(size);
        }
        Some(())
    }

    /// The indices around a body that one of its statements depends on, and their extents.
    pub(crate) fn outer_indices(
        &self,
        scope: &Scope<'a>,
        root: ExprId,
        own: &[VarId],
    ) -> Vec<(VarId, Size)> {
        self.arena
            .free(root)
            .iter()
            .filter(|var| !own.contains(var) && scope.captured.contains(var))
            .filter_map(|var| Some((*var, self.extent(*var)?)))
            .collect()
    }

    /// Returns a body's tensor as the rest of the body reads it: at the indices around.
    pub(crate) fn inner_view(&mut self, tensor: TensorRef, outer: &[(VarId, Size)]) -> View {
        let leading = outer.iter().map(|(var, _)| self.index(*var)).collect();
        self.slice(tensor, leading)
    }
}
