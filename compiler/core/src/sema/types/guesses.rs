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
    expressions::builtins::LISTED,
    expressions::scope::{Binding, Scope},
    sizes::ranges::Provisional,
    sizes::size::Size,
};
use ein_plan::DType;
use einc_syntax::ast::Expr;
use std::collections::{BTreeMap, HashMap};

/// Sizes and types that follow from other statements than those that define a tensor.
#[derive(Default)]
pub(crate) struct Inference {
    /// Dimensions of definitions whose range other statements gave in an earlier round, as `tensor.index`.
    pub(crate) inferred: BTreeMap<String, Size>,
    /// Dimensions that still have no range, with the index, its place, and the range that accesses allow.
    pub(crate) provisional: BTreeMap<String, Provisional>,
    /// Ranges that this round found.
    pub(crate) found: BTreeMap<String, Size>,
    /// Types of states that their `next` gave in an earlier round, by what they begin with.
    pub(crate) inferred_types: BTreeMap<String, DType>,
    /// Types that this round found.
    pub(crate) found_types: BTreeMap<String, DType>,
    /// Types of states that meet nothing with a type.
    pub(crate) settled_types: BTreeMap<String, DType>,
    /// Tensors whose type is not known yet, and whether they begin with whole numbers.
    pub(crate) untyped: HashMap<TensorRef, bool>,
    /// Of tensors without a type, the constant lists and the whole numbers that are made of them, with what they are in a type.
    pub(crate) lists: HashMap<TensorRef, BTreeMap<DType, TensorRef>>,
    /// True if a definition took a type that its text does not say.
    pub(crate) guessed: bool,
}

impl Inference {
    /// Begins a round with the results of the one before.
    pub(crate) fn of_round(
        inferred: BTreeMap<String, Size>,
        inferred_types: BTreeMap<String, DType>,
    ) -> Inference {
        Inference {
            inferred,
            inferred_types,
            ..Inference::default()
        }
    }

    /// Returns what the next round begins with, or `None` if this one found nothing more.
    pub(crate) fn next_round(&mut self) -> Option<Inference> {
        if self.found.is_empty() && self.found_types.is_empty() {
            self.found_types = std::mem::take(&mut self.settled_types);
        }
        if self.found.is_empty() && self.found_types.is_empty() {
            return None;
        }
        self.inferred.append(&mut self.found);
        self.inferred_types.append(&mut self.found_types);
        let inferred = std::mem::take(&mut self.inferred);
        let types = std::mem::take(&mut self.inferred_types);
        Some(Inference::of_round(inferred, types))
    }
}

impl<'a> Checker<'a> {
    /// The type of a read: none while that of the tensor is to follow from what it meets.
    pub(crate) fn read_type(&self, tensor: TensorRef) -> Ty {
        match self.inference.untyped.get(&tensor) {
            Some(whole) => Ty::Number { whole: *whole },
            None => Ty::Typed(self.built.tensors[tensor.0 as usize].dtype),
        }
    }

    /// The tensors that an expression reads and whose type is not known yet.
    pub(crate) fn untyped_reads(&self, id: ExprId) -> Vec<TensorRef> {
        let (mut open, mut seen) = (vec![id], std::collections::HashSet::new());
        let mut found = vec![];
        while let Some(id) = open.pop().filter(|_| !self.inference.untyped.is_empty()) {
            let form = self.arena.form(id);
            if let Form::Read { tensor, .. } = &*form
                && self.inference.untyped.contains_key(tensor)
            {
                found.push(*tensor);
            }
            open.extend(form.arguments().into_iter().filter(|a| seen.insert(*a)));
        }
        found
    }

    /// The type of a source where nothing says another, and whether its values are whole numbers.
    pub(crate) fn typical_type(&mut self, scope: &Scope<'a>, value: &'a Expr) -> (DType, bool) {
        match self.source_name(scope, value) {
            Some("zeros" | "ones" | "full" | "bernoulli") => (DType::F32, true),
            Some("iota" | "permutation") => (DType::I64, true),
            Some(LISTED) => match self.listed_type(scope, value) {
                Some(Ty::Typed(dtype)) => (dtype, dtype.is_integer()),
                Some(Ty::Number { whole: true }) => (DType::I64, true),
                _ => (DType::F32, false),
            },
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
        self.inference.guessed = true;
        let span = target.value.span;
        if let Some(Some(dtype)) = target.guess {
            let root = self.coerce(value, dtype, span)?;
            return self.add_definition(scope, target, vars, root);
        }
        let of_lists = target.guess.is_none() && self.reads_lists_alone(value);
        let root = self.settle(value, span)?;
        let binding = self.add_definition(scope, target, vars, root)?;
        // Values that are made of lists are no longer exact where they are not whole: they have a type.
        if let Binding::Tensor(view) = binding
            && (whole || !of_lists)
        {
            self.inference.untyped.insert(view.tensor, whole);
            if of_lists {
                self.inference.lists.insert(view.tensor, BTreeMap::new());
            }
        }
        Some(binding)
    }
}
