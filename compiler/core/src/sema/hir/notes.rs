//! The notes that resolving takes: where names are defined, and which definition every name means.
//!
//! Must not know sizes or types.
//!
//! ```text
//! y[n] = X[n,d] * w[d]   =>   y: definition, n: index, d: index;   X -> input, n -> n, d -> d, w -> param, d -> d
//! ```

use crate::sema::hir::Kind;
use einc_diag::Span;

/// Definitions and uses of names, by their places.
#[derive(Default)]
pub(crate) struct Notes {
    /// In the order in which the walk meets them; a place may be noted again.
    pub(crate) definitions: Vec<(Span, Kind)>,
    /// Uses, with the places of the definitions.
    pub(crate) uses: Vec<(Span, Span)>,
}

impl Notes {
    /// Notes the place where a name is defined.
    pub(crate) fn define(&mut self, at: Span, kind: Kind) {
        self.definitions.push((at, kind));
    }

    /// Notes that a name means the definition at another place.
    pub(crate) fn refer(&mut self, at: Span, definition: Span) {
        self.uses.push((at, definition));
    }
}
