//! Where diagnostics are gathered: in source order, each once, at most twenty errors.
//!
//! Must not know what they are about.
//!
//! ```text
//! E0201 at model.ein:4, E0301 at model.ein:7
//! ```

use einc_diag::{Diagnostic, Span};

/// No more errors than this are given at a time.
const MOST_ERRORS: usize = 20;

/// The diagnostics so far.
#[derive(Clone, Default)]
pub(crate) struct Report {
    diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// Adds one.
    pub(crate) fn push(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Adds all.
    pub(crate) fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        self.diagnostics.extend(diagnostics);
    }

    /// Returns a mark: the number of diagnostics so far.
    pub(crate) fn mark(&self) -> usize {
        self.diagnostics.len()
    }

    /// Takes back everything since the mark.
    pub(crate) fn forget(&mut self, mark: usize) {
        self.diagnostics.truncate(mark);
    }

    /// Replaces everything reported since the mark by one cause, if an error of that code is among it.
    pub(crate) fn blame(&mut self, mark: usize, code: &str, cause: Diagnostic) {
        if self.diagnostics[mark..].iter().any(|d| d.code == code) {
            self.forget(mark);
            self.push(cause);
        }
    }

    /// Says on everything reported since the mark that it comes from this call.
    pub(crate) fn called_from(&mut self, mark: usize, span: Span, name: &str) {
        for diagnostic in &mut self.diagnostics[mark..] {
            if diagnostic.labels.iter().all(|label| label.span != span) {
                *diagnostic = std::mem::replace(diagnostic, Diagnostic::error(diagnostic.code, ""))
                    .at(span, format!("in this call of `{name}`"));
            }
        }
    }

    /// Returns true if something with this code was reported.
    pub(crate) fn has(&self, code: &str) -> bool {
        let mut diagnostics = self.diagnostics.iter();
        diagnostics.any(|diagnostic| diagnostic.code == code)
    }

    /// Returns whether there is an error.
    pub(crate) fn failed(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// In source order, without repetitions.
    pub(crate) fn finish(self) -> Vec<Diagnostic> {
        let mut diagnostics = self.diagnostics;
        // What rounds collect has a name of the compiler's: see `desugar`.
        for diagnostic in &mut diagnostics {
            diagnostic.message = diagnostic.message.replace("`each ", "`");
        }
        let place = |d: &Diagnostic| {
            d.labels
                .first()
                .map(|l| (l.span.file, l.span.start, l.span.end))
        };
        diagnostics.sort_by_key(place);
        let mut seen = std::collections::HashSet::new();
        diagnostics.retain(|d| match place(d) {
            Some(place) => seen.insert((d.code, Some(place), String::new())),
            None => seen.insert((d.code, None, d.message.clone())),
        });
        let mut errors = 0;
        diagnostics.retain(|d| {
            errors += usize::from(d.is_error());
            !d.is_error() || errors <= MOST_ERRORS
        });
        diagnostics
    }
}

/// The plural's s.
pub(crate) fn plural(n: usize) -> &'static str {
    if n == 1 { "" } else { "s" }
}

/// "1 dimension", "3 dimensions".
pub(crate) fn dimensions(rank: usize) -> String {
    format!("{rank} dimension{}", plural(rank))
}
