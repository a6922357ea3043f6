//! Types that are not known yet: those of states that begin with untyped numbers, and of what is made of them alone.
//!
//! Such a tensor is read as an untyped number, so that it takes the type of what it meets; what its `next` has met is its
//! type when all is checked again. Must not know blocks.
//!
//! ```text
//! state x[i] = zeros; next x[i] = A[i,j] * x[j]   =>   x is whole numbers; next x is f64, as A is; x is f64
//! ```

use crate::sema::{
    Checker,
    definitions::tensors::Target,
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    expressions::scope::{Binding, Scope},
};
use ein_plan::DType;
use einc_syntax::ast::Expr;

impl<'a> Checker<'a> {
    /// The type of a read: none while that of the tensor is to follow from what it meets.
    pub(crate) fn read_type(&self, tensor: TensorRef) -> Ty {
        match self.untyped.get(&tensor) {
            Some(whole) => Ty::Number { whole: *whole },
            None => Ty::Typed(self.tensors[tensor.0 as usize].dtype),
        }
    }

    /// Whether an expression reads a tensor whose type is not known yet.
    pub(crate) fn reads_untyped(&self, id: ExprId) -> bool {
        let (mut open, mut seen) = (vec![id], std::collections::HashSet::new());
        while let Some(id) = open.pop().filter(|_| !self.untyped.is_empty()) {
            let form = self.arena.form(id);
            if let Form::Read { tensor, .. } = &*form
                && self.untyped.contains_key(tensor)
            {
                return true;
            }
            open.extend(form.arguments().into_iter().filter(|a| seen.insert(*a)));
        }
        false
    }

    /// The type of a source where nothing says another, and whether its values are whole numbers.
    pub(crate) fn typical_type(&self, scope: &Scope<'a>, value: &'a Expr) -> (DType, bool) {
        match self.source_name(scope, value) {
            Some("zeros" | "ones" | "full" | "bernoulli") => (DType::F32, true),
            Some("iota" | "permutation") => (DType::I64, true),
            _ => (DType::F32, false),
        }
    }

    /// A definition whose value is an untyped number, with the type of the state that it belongs to, if that is known.
    pub(crate) fn guessed_definition(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        vars: Vec<VarId>,
        (value, whole): (ExprId, bool),
    ) -> Option<Binding> {
        self.guessed = true;
        let span = target.value.span;
        if let Some(Some(dtype)) = target.guess {
            let root = self.coerce(value, dtype, span)?;
            return self.add_definition(scope, target, vars, root);
        }
        let root = self.settle(value, span)?;
        let binding = self.add_definition(scope, target, vars, root)?;
        if let Binding::Tensor(view) = binding {
            self.untyped.insert(view.tensor, whole);
        }
        Some(binding)
    }
}
