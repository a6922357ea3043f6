//! The states of a block: what they begin with, what a round sees of them, whether their `next` suits them.
//!
//! In a function that is called for every value of an index, a state has that index as a further dimension. Must not know
//! what a round computes.
//!
//! ```text
//! state x[i] = zeros; next x[i] = A[i,j] * x[j], A: f64[8, 8]   =>   t.x: f64[8]
//! ```

use crate::einsum::{BlockId, LoopValue, Role};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, Target, Tensor},
    expressions::arena::{Form, TensorRef, Ty, VarId},
    expressions::scope::{Binding, Scope, View},
    rounds::desugar::state_of,
    rounds::repeat::{Frame, Place, StateInfo},
    sizes::ranges::Open,
    sizes::size::Size,
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{self, Expr, Type};

impl<'a> Checker<'a> {
    /// Reads the value that a state begins with, and says whether its type is to follow from its `next`.
    pub(crate) fn initial(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Option<(View, bool)> {
        let mut local = Target::local(target, ty, value, "");
        local.name = format!("{}.{}.initial", frame.name, target.name.text);
        local.infer = true;
        let known = self.inference.inferred_types.get(&local.name).copied();
        local.guess = Some(known);
        self.inference.guessed = false;
        let name = local.name.clone();
        let binding = self.define(place.scope, local)?;
        let open = std::mem::take(&mut self.inference.guessed) && known.is_none();
        let view = match binding {
            Binding::Tensor(view) => view,
            Binding::Scalar(value) => {
                let value = self.settle(value, target.span)?;
                let role = Role::Hidden;
                View::of(self.add_statement(name, value, vec![], vec![], target.span, role))
            }
            Binding::Instance(_) | Binding::Poison => return None,
        };
        Some((view, open))
    }

    /// A state of a block; what a round sees of it.
    pub(crate) fn begin(
        &mut self,
        place: &Place<'_, 'a>,
        frame: &Frame<'a>,
        block: BlockId,
        (name, span): (&'a str, Span),
        initial: View,
        open: bool,
    ) -> View {
        let full = format!("{}.{name}", frame.name);
        let whole = open
            && self
                .inference
                .untyped
                .get(&initial.tensor)
                .copied()
                .unwrap_or(false);
        let initial = self.spread(place.scope, initial, format!("{full}.initial.all"), span);
        let number = self.built.blocks[block.0 as usize].states.len() as u32;
        self.built.blocks[block.0 as usize]
            .states
            .push((initial, None));
        let like = self.built.tensors[initial.0 as usize].clone();
        let tensor = self.add_tensor(Tensor {
            name: full,
            role: Role::Hidden,
            definition: Definition::Loop(LoopValue::State(block, number)),
            span,
            ..like
        });
        if open {
            self.inference.untyped.insert(tensor, whole);
        }
        self.inner(place.scope, tensor)
    }

    /// The indices around, with their extents.
    fn around(&self, scope: &Scope<'a>) -> Vec<(VarId, Size)> {
        let vars = scope.captured.iter();
        vars.filter_map(|var| Some((*var, self.extent(*var)?)))
            .collect()
    }

    /// Returns a tensor that has the indices around as its first dimensions as a body sees it.
    pub(crate) fn inner(&mut self, scope: &Scope<'a>, tensor: TensorRef) -> View {
        let around = self.around(scope);
        self.inner_view(tensor, &around)
    }

    /// A tensor with the indices around as its first dimensions that is this view at them.
    pub(crate) fn spread(
        &mut self,
        scope: &Scope<'a>,
        view: View,
        name: String,
        span: Span,
    ) -> TensorRef {
        if self.inner(scope, view.tensor) == view {
            return view.tensor;
        }
        let around = self.around(scope);
        self.copy(view, &around, (name, Role::Hidden, span))
    }

    /// A tensor that is this view, at the indices around before its own.
    pub(crate) fn copy(
        &mut self,
        view: View,
        around: &[(VarId, Size)],
        (name, role, span): (String, Role, Span),
    ) -> TensorRef {
        let shape = self.view_shape(view);
        self.indices.open.push(Open::default());
        let mut own = vec![];
        for (at, size) in shape.iter().enumerate() {
            own.push(self.fresh_var(format!("i{}", at + 1), size.clone(), span));
        }
        self.close();
        let mut positions = self.leading(view).to_vec();
        positions.extend(own.iter().map(|var| self.index(*var)));
        let dtype = self.built.tensors[view.tensor.0 as usize].dtype;
        let form = Form::Read {
            tensor: view.tensor,
            positions,
            otherwise: None,
        };
        let root = self.arena.add(form, Ty::Typed(dtype));
        let sizes = around.iter().map(|(_, size)| size.clone());
        let sizes = sizes.chain(shape).collect();
        let vars = around.iter().map(|(var, _)| *var).chain(own).collect();
        self.add_statement(name, root, vars, sizes, span, role)
    }

    /// Returns whether a `next` has the type and shape of its state; a state without a type takes its.
    pub(crate) fn next_fits(
        &mut self,
        frame: &Frame<'a>,
        state: StateInfo,
        next: Binding,
        target: &'a ast::Target,
    ) -> Option<()> {
        let Binding::Tensor(view) = next else {
            return None;
        };
        let name = state_of(&target.name.text)?;
        // The state of a scan has another name inside than in the text.
        let shown = self.names.text(target.name.span);
        let (begins, becomes) = (self.view_shape(state.view), self.view_shape(view));
        let pairs = || begins.iter().zip(&becomes);
        for (a, b) in pairs() {
            self.infer(a, b);
            self.infer(b, a);
        }
        if begins.len() != becomes.len() || pairs().any(|(a, b)| a.differs(b)) {
            let (is, was) = (self.view_text(view), self.view_text(state.view));
            self.report.push(
                Diagnostic::error("E0513", format!("the state `{shown}` changes its shape"))
                    .at(target.span, format!("a round ends with {is}"))
                    .at(state.span, format!("and begins with {was}"))
                    .help("a state has one shape in all rounds"),
            );
            return None;
        }
        let have = self.built.tensors[view.tensor.0 as usize].dtype;
        let dtype = self.built.tensors[state.view.tensor.0 as usize].dtype;
        if state.open {
            let key = format!("{}.{name}.initial", frame.type_name);
            // What meets nothing in this state either is left for last.
            let found = match self.inference.untyped.contains_key(&view.tensor) {
                true => &mut self.inference.settled_types,
                false => &mut self.inference.found_types,
            };
            found.entry(key).or_insert(have);
        } else if have != dtype && !self.inference.untyped.contains_key(&view.tensor) {
            self.report.push(
                Diagnostic::error(
                    "E0513",
                    format!("the state `{shown}` is {dtype}, its `next` {have}"),
                )
                .at(target.span, format!("a round ends with {have}"))
                .at(state.span, format!("it begins with {dtype}"))
                .help("write the type where it begins, or convert the value"),
            );
            return None;
        }
        Some(())
    }
}
