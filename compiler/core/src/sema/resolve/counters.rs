//! Counters outside of their blocks: a position and a left side may have an index of that name, and elsewhere it is the number of
//! rounds.
//!
//! Must not know sizes or types.
//!
//! ```text
//! repeat t < 2 { state s = 1.0; next s = 2 * s; c[t] = next s }
//! y = (sum[t] c[t]) / t     =>   an index in `sum[t] c[t]`, the number of rounds behind `/`
//! ```

use crate::sema::{
    hir::Kind,
    resolve::Resolver,
    resolve::body_names::kind_in,
    resolve::names::{EntityKind, Found, several_counters},
    resolve::static_scope::{Counters, Local},
    resolve::walk::Walk,
};
use einc_diag::Span;
use einc_syntax::ast::{Item, ItemKind, Name};

impl<'a> Resolver<'a> {
    /// Notes a name that an item defines if it is a counter. Returns whether a block before it in the body has that counter.
    pub(crate) fn counts_again(
        &mut self,
        counters: &mut Counters<'a>,
        item: &'a Item,
        name: &'a Name,
    ) -> bool {
        let (ItemKind::Statement(repeat), Kind::Counter) = (&item.kind, kind_in(item, name)) else {
            return false;
        };
        let places = counters.entry(&name.text).or_default();
        let before = places.len();
        places.push(name.span);
        if before > 0 {
            let block = std::ptr::from_ref(repeat) as usize;
            self.readings.before.insert(block, before);
        }
        before > 0
    }
}

impl<'a> Walk<'_, 'a> {
    /// Returns whether a name is a block's counter, the walk is outside of that block, and no bound index has the name.
    pub(crate) fn is_outer_counter(&self, name: &str) -> bool {
        if self.is_bound(name) {
            return false;
        }
        if let Some(local) = self.scope.locals.get(name) {
            return matches!(local, Local::Counter(_));
        }
        match self.resolver.names.find(self.scope.file, name) {
            Found::Entity(id) => {
                matches!(self.resolver.names.entity(id).kind, EntityKind::Repeat(_))
            }
            _ => false,
        }
    }

    /// Notes the use of a number of rounds. Reports it where several blocks have that counter.
    pub(crate) fn rounds_used(&mut self, name: &'a str, span: Span) {
        let error = match self.scope.locals.get(name) {
            Some(_) => {
                let places = self.scope.counters.get(name);
                several_counters(name, span, places.map_or(&[], Vec::as_slice))
            }
            None => self
                .resolver
                .names
                .two_counters(self.scope.file, name, span),
        };
        self.unit.failed |= error.is_some();
        self.resolver.report.extend(error);
        self.used(name, span);
    }
}
