//! The walk over a statement at a name: an index that nothing binds, a value, or an error; and the definition that it refers to.
//!
//! Must not know sizes or types.
//!
//! ```text
//! X[n,d] on the right side alone   ->   d is an implicit index; X refers to its definition
//! ```

use super::walk::Walk;
use crate::sema::{
    hir::Kind,
    resolve::names::Found,
    resolve::static_scope::{Local, Meaning},
    rounds::desugar::state_of,
};
use einc_diag::{Diagnostic, Span};

impl<'a> Walk<'_, 'a> {
    pub(super) fn name(&mut self, name: &'a str, span: Span, position: bool) {
        match self.meaning(name) {
            Meaning::Index => self.refer(name, span),
            Meaning::Poison => self.unit.failed = true,
            Meaning::Scalar if self.is_outer_counter(name) => {
                self.counters.push((name, span));
            }
            Meaning::Scalar => self.used(name, span),
            Meaning::Letter if self.sizes => self.refer(name, span),
            Meaning::Letter => self.note_implicit(name, span),
            Meaning::Function if position => self.note_implicit(name, span),
            Meaning::Function => {
                let (file, inner) = (self.scope.file, &self.scope.inner);
                let instance = self.resolver.names.no_value(file, inner, name, span);
                self.fail(instance.unwrap_or_else(|| {
                    Diagnostic::error("E0204", format!("`{name}` is a function"))
                        .at(span, "it must be called")
                        .help(format!("write `{name}(…)`"))
                }));
            }
            Meaning::Tensor | Meaning::Unknown if position && !name.contains('.') => {
                self.note_implicit(name, span)
            }
            Meaning::Tensor => {
                // A value: an index of that name if there is one, else reported with its rank later.
                self.used(name, span);
            }
            Meaning::Unknown => self.pending.push((name, span)),
        }
    }

    /// Notes an index that nothing binds.
    pub(crate) fn note_implicit(&mut self, name: &'a str, span: Span) {
        if !self.is_implicit(name) {
            self.implicit.push((name, span));
            let local = self.scope.locals.get(name);
            if matches!(local, None | Some(Local::Counter(_))) {
                self.resolver.define(name, span, Kind::Index);
            }
        }
        self.refer(name, span);
    }

    pub(crate) fn is_bound(&self, name: &str) -> bool {
        self.bound.iter().any(|(bound, _)| *bound == name)
    }

    pub(super) fn is_implicit(&self, name: &str) -> bool {
        self.implicit.iter().any(|(implicit, _)| *implicit == name)
    }

    /// Notes which definition a name means: of an index, or of something outside of the statement.
    pub(crate) fn refer(&mut self, name: &str, span: Span) {
        let indices = self.bound.iter().rev().chain(&self.implicit);
        let place = indices
            .filter(|(index, _)| *index == name)
            .map(|(_, at)| *at);
        let letter = self.scope.locals.get(name) == Some(&Local::Letter);
        match place.into_iter().next() {
            Some(place) if !letter || self.is_bound(name) => {
                self.resolver.refer(name, span, place);
            }
            _ => self.refer_outside(name, span),
        }
    }

    /// Notes which definition outside of the statement a name means.
    pub(crate) fn refer_outside(&mut self, name: &str, span: Span) {
        let head = name.split('.').next().unwrap_or(name);
        let state = state_of(name).unwrap_or(name);
        let places = &self.scope.places;
        let place = places.get(state).or_else(|| places.get(head)).copied();
        let place = place.or_else(|| match self.resolver.names.find(self.scope.file, name) {
            Found::Entity(id) | Found::Member(id) => Some(self.resolver.names.entity(id).name.span),
            Found::Nothing | Found::Poison => None,
        });
        if let Some(place) = place {
            self.resolver.refer(name, span, place);
        }
    }
}
