//! States of modules: what is carried from one training step to the next. Outside of a step a state has its value of the
//! beginning.
//!
//! Must not know how steps are made.
//!
//! ```text
//! state mu[c] = zeros;  next mu[c] = 0.9 * mu[c] + 0.1 * m[c]   =>   tensor norm.mu: f32[C] = zeros
//! ```

use crate::sema::{
    Checker,
    calls::callee::Callable,
    definitions::tensors::Target,
    expressions::scope::{Binding, Scope},
    sizes::ranges::StatedBy,
    train::training::NextState,
};
use ein_plan::DType;
use einc_diag::Diagnostic;
use einc_syntax::ast::{self, Expr, Type};

impl<'a> Checker<'a> {
    /// A state of the instance that is applied: the same in every application.
    pub(crate) fn state(
        &mut self,
        scope: &Scope<'a>,
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Option<Binding> {
        let (id, number) = scope.applied?;
        let name = target.name.text.as_str();
        if let Some(known) = self.modules.states.get(&(id, number, name)) {
            return Some(*known);
        }
        let path = self.instance_path(id, number);
        let mut local = Target::local(target, ty, value, &path);
        local.infer = true;
        let binding = match (self.source_name(scope, value), ty) {
            (Some(_), None) => {
                let dtype = scope.floating.unwrap_or(DType::F32);
                self.define_source(scope, &local, Some(dtype), None)
            }
            _ => self.define(scope, local),
        };
        if let Some(Binding::Tensor(view)) = binding
            && self.built.tensors[view.tensor.0 as usize]
                .dtype
                .is_complex()
        {
            self.report.push(
                Diagnostic::error("E0512", "a state of a module is real")
                    .at(target.span, "this is complex")
                    .help("keep `re(…)` and `im(…)` as two states"),
            );
            return None;
        }
        self.modules.states.insert((id, number, name), binding?);
        self.carried_state(binding?, target.span)?;
        binding
    }

    /// The type of a source in a body whose own is not written: that of the first floating-point tensor that is passed.
    pub(crate) fn floating_passed(
        &self,
        scope: &Scope<'a>,
        callable: Callable<'a>,
    ) -> Option<DType> {
        let mut passed = callable.formals.iter().filter_map(|formal| {
            match scope.locals.get(formal.name.text.as_str()) {
                Some(Binding::Tensor(view)) => {
                    Some(self.built.tensors[view.tensor.0 as usize].dtype)
                }
                _ => None,
            }
        });
        passed.find(|dtype| dtype.is_float())
    }

    /// The value of a state at the end of a step: checked here, computed in training only.
    pub(crate) fn next_state(
        &mut self,
        scope: &Scope<'a>,
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
        prefix: &str,
    ) -> Option<()> {
        let name = &target.name.text;
        let Some(Binding::Tensor(state)) = scope.locals.get(name.as_str()).copied() else {
            return None;
        };
        let place = self.built.tensors[state.tensor.0 as usize].span;
        let sizes = self.view_shape(state).into_iter().map(Some).collect();
        let mut local = Target::local(target, ty, value, &format!("{prefix}.next"));
        local.stated = Some((sizes, place, StatedBy::State));
        let dtype = self.built.tensors[state.tensor.0 as usize].dtype;
        let value = self.define(scope, local)?;
        let have = match value {
            Binding::Tensor(view) => self.built.tensors[view.tensor.0 as usize].dtype,
            _ => dtype,
        };
        if have != dtype {
            self.report.push(
                Diagnostic::error(
                    "E0512",
                    format!("the state `{name}` is {dtype}, its `next` {have}"),
                )
                .at(target.span, format!("this is {have}"))
                .at(place, format!("it begins as {dtype} here"))
                .help("write the type where it begins, or convert the value"),
            );
            return None;
        }
        if let Binding::Tensor(value) = value {
            self.training.next_states.push(NextState {
                state: state.tensor,
                value,
                application: prefix.to_owned(),
                span: target.span,
            });
        }
        Some(())
    }
}
