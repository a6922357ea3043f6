//! States and their `next`: each state has one, and each `next` is of a state.
//!
//! Must not know what they compute.
//!
//! ```text
//! state h = zeros   =>   E0512: the state `h` has no `next`
//! ```

use crate::sema::{calls::callee::Callable, resolve::Resolver, rounds::desugar::state_of};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Item, ItemKind, Role, Statement};

impl<'a> Resolver<'a> {
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
}
