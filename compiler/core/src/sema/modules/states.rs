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
    rounds::desugar::state_of,
    train::training::NextState,
};
use ein_plan::DType;
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{self, Expr, Item, ItemKind, Role, Statement, Type};

impl<'a> Checker<'a> {
    /// Reports states without `next`, and the other way round. Whether all is well.
    pub(crate) fn check_states(&mut self, body: &'a [Item], what: &str) -> bool {
        let mut found: [Vec<(&'a str, Span)>; 2] = Default::default();
        let mut ok = true;
        for item in body {
            let ItemKind::Statement(Statement::Definition { role, targets, .. }) = &item.kind
            else {
                continue;
            };
            let list = match role {
                Role::Plain => continue,
                Role::State => 0,
                Role::Next => 1,
            };
            for target in targets {
                let name = target.name.text.as_str();
                let name = state_of(name).unwrap_or(name);
                let first = found[list].iter().find(|(known, _)| *known == name);
                if let (Some((_, first)), 1) = (first, list) {
                    self.report.push(
                        Diagnostic::error("E0512", format!("`{name}` has two `next`"))
                            .at(target.span, "again here")
                            .at(*first, "first here")
                            .help(format!("a state has one value at the end of a {what}")),
                    );
                    ok = false;
                }
                found[list].push((name, target.span));
            }
        }
        // The line that was not understood may be what is missing.
        if body
            .iter()
            .any(|item| matches!(item.kind, ItemKind::Error(_)))
        {
            return false;
        }
        let missing = |from: &[(&'a str, Span)], other: &[(&'a str, Span)]| {
            let mut from = from.to_vec();
            from.retain(|(name, _)| other.iter().all(|(known, _)| known != name));
            from
        };
        for (name, span) in missing(&found[0], &found[1]) {
            self.report.push(
                Diagnostic::error("E0512", format!("the state `{name}` has no `next`"))
                    .at(span, "it would never change")
                    .help(format!(
                        "say what it is at the end of a {what}, `next {name}[…] = …`, or make it no state"
                    )),
            );
            ok = false;
        }
        for (name, span) in missing(&found[1], &found[0]) {
            self.report.push(
                Diagnostic::error("E0512", format!("`next {name}`, but `{name}` is no state"))
                    .at(span, "no state of that name")
                    .help(format!("say how it begins: `state {name}[…] = …`")),
            );
            ok = false;
        }
        ok
    }

    /// Reports what an optimizer's body says `next` of that is neither its param nor a state. Whether all is well.
    ///
    /// Both are results of the function that the optimizer has become, under names that no text can hold.
    pub(crate) fn check_nexts(&mut self, callable: Callable<'a>, body: &'a [Item]) -> bool {
        let mut ok = true;
        for item in body {
            let ItemKind::Statement(Statement::Definition { targets, .. }) = &item.kind else {
                continue;
            };
            for target in targets {
                let name = &target.name;
                let known = callable.results.iter().any(|r| r.name.text == name.text);
                if let (Some(of), false) = (state_of(&name.text), known) {
                    let what = format!("`{}`, but `{of}` is no state", name.text);
                    self.report.push(
                        Diagnostic::error("E0512", what)
                            .at(name.span, "neither the param nor a state")
                            .help(format!("say how it begins, `state {of}[..] = …`; what the steps do not carry on is defined without `next`")),
                    );
                    ok = false;
                }
            }
        }
        ok
    }

    /// A state of the instance that is applied: the same in every application.
    pub(crate) fn state(
        &mut self,
        scope: &Scope<'a>,
        callable: Callable<'a>,
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) -> Option<Binding> {
        let (id, number) = scope.applied?;
        let name = target.name.text.as_str();
        if let Some(known) = self.states.get(&(id, number, name)) {
            return Some(*known);
        }
        let path = self.instance_path(id, number);
        let mut local = Target::local(target, ty, value, &path);
        local.infer = true;
        let binding = match (self.source_name(scope, value), ty) {
            (Some(_), None) => {
                let dtype = self.state_type(scope, callable);
                self.define_source(scope, &local, Some(dtype), None)
            }
            _ => self.define(scope, local),
        };
        self.states.insert((id, number, name), binding?);
        self.carried_state(binding?, target.span)?;
        binding
    }

    /// The type of a state whose own is not written: that of the first floating-point tensor that is passed.
    fn state_type(&self, scope: &Scope<'a>, callable: Callable<'a>) -> DType {
        let passed = callable.formals.iter().filter_map(|formal| {
            match scope.locals.get(formal.name.text.as_str()) {
                Some(Binding::Tensor(view)) => Some(self.tensors[view.tensor.0 as usize].dtype),
                _ => None,
            }
        });
        passed
            .into_iter()
            .find(|dtype| dtype.is_float())
            .unwrap_or(DType::F32)
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
        let place = self.tensors[state.tensor.0 as usize].span;
        let sizes = self.view_shape(state).into_iter().map(Some).collect();
        let mut local = Target::local(target, ty, value, &format!("{prefix}.next"));
        local.stated = Some((sizes, place));
        let dtype = self.tensors[state.tensor.0 as usize].dtype;
        let value = self.define(scope, local)?;
        let have = match value {
            Binding::Tensor(view) => self.tensors[view.tensor.0 as usize].dtype,
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
