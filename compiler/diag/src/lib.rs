//! Diagnostics as data: a code, a message in the user's terms, the places that matter, and help.
//!
//! Must not know how a diagnostic is drawn, nor files, terminals or colours. The registry of codes, with a
//! page for each, is in [`registry`].
//!
//! ```text
//! error[E0301]: index `j` has two sizes: 3 in `A` and 4 in `B`
//!  --> model.ein:5:12   `j` runs over 3 here
//!  --> model.ein:5:19   and over 4 here
//! help: …
//! ```

pub mod registry;

use serde::{Deserialize, Serialize};

/// The number of a source file of a program: a position in the program's list of files.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct FileId(pub u32);

/// Bytes `start..end` of a file.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Span {
    /// Which file.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// The smallest span that holds both; both must be of one file.
    pub fn to(self, other: Span) -> Span {
        Span {
            file: self.file,
            start: self.start.min(other.start),
            end: self.end.max(other.end),
        }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Nothing is built or run.
    Error,
    /// Worth a look; the program is built.
    Warning,
}

/// A place with what is to be said about it. The first label of a diagnostic is the primary one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// A few words about the place ("`j` runs over 3 here"); may be empty.
    pub message: String,
    /// The text to write there: with all such changes made, the text means what it meant, and the diagnostic is gone. `None` where none is known
    /// to be right.
    pub fix: Option<String>,
}

/// One thing to tell the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// A code of [`registry`], such as `E0301`.
    pub code: &'static str,
    /// Error or warning.
    pub severity: Severity,
    /// One line, in the user's terms, naming the index, tensor, file or rank.
    pub message: String,
    /// The places that matter, the primary one first; empty for what has no place in a source file.
    pub labels: Vec<Label>,
    /// The text to write instead, where that is known.
    pub help: Vec<String>,
    /// Further facts.
    pub notes: Vec<String>,
}

impl Diagnostic {
    /// An error without places yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Diagnostic {
        debug_assert!(registry::page(code).is_some(), "unregistered code {code}");
        Diagnostic {
            code,
            severity: Severity::Error,
            message: message.into(),
            labels: vec![],
            help: vec![],
            notes: vec![],
        }
    }

    /// A warning without places yet.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            severity: Severity::Warning,
            ..Diagnostic::error(code, message)
        }
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.labels.push(Label {
            span,
            message: message.into(),
            fix: None,
        });
        self
    }

    /// Adds help.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help.push(help.into());
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Diagnostic {
        self.notes.push(note.into());
        self
    }

    /// Adds a place, and what to write there.
    #[must_use]
    pub fn fix(mut self, span: Span, message: impl Into<String>, text: String) -> Diagnostic {
        self = self.at(span, message);
        if let Some(label) = self.labels.last_mut() {
            label.fix = Some(text);
        }
        self
    }

    /// Returns whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// The candidate nearest to `word`, if one is near enough to be a slip of the keyboard: within a third of the letters, or the
/// same but for capitals.
pub fn did_you_mean<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    candidates
        .into_iter()
        .filter(|c| *c != word)
        .map(|c| (strsim::damerau_levenshtein(word, c), c))
        .filter(|(d, c)| {
            *d <= c.chars().count().max(word.chars().count()) / 3
                || c.to_lowercase() == word.to_lowercase()
        })
        .min()
        .map(|(_, c)| c)
}
