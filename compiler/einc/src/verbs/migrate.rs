//! Programs of an older version of the language in the words of this one.
//!
//! The compiler knows what to write instead; that is written, until nothing of the kind is left. Must not know what is wrong with a program.
//!
//! ```text
//! C[i,j] = A[i,k] * B[k,j], with a scalar k   =>   C[i,j] = A[i,(k)] * B[(k),j]
//! ```

use einc_diag::{FileId, Span};
use einc_driver::{load, purpose::Purpose, session, settings::Settings};
use std::path::Path;

/// A part of the text, and the text in its place.
struct Fix {
    span: Span,
    text: String,
}

/// A change may let the compiler see further; this many times it looks again.
const ROUNDS: usize = 20;

/// The text of a program with all changes that the compiler knows of.
pub fn migrated(path: &Path, mut text: String) -> String {
    for _ in 0..ROUNDS {
        let fixes = fixes(path, &text);
        if fixes.is_empty() {
            break;
        }
        for fix in fixes.iter().rev() {
            text.replace_range(fix.span.start as usize..fix.span.end as usize, &fix.text);
        }
    }
    text
}

/// The changes of a text, in its order; of those that overlap the first.
fn fixes(path: &Path, text: &str) -> Vec<Fix> {
    let base = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let base = base.parent().unwrap_or(Path::new("/")).to_path_buf();
    let program = load::load_text("program", "program", text.to_owned(), Some(path), base);
    let mut diagnostics = program.diagnostics.clone();
    if let Ok(checked) = session::check(&program, &Settings::default(), Purpose::Look) {
        diagnostics.extend(checked.diagnostics);
    }
    let mut fixes: Vec<Fix> = vec![];
    for diagnostic in &diagnostics {
        fixes.extend(diagnostic.labels.iter().filter_map(|label| {
            let (span, text) = (label.span, label.fix.clone()?);
            Some(Fix { span, text })
        }));
    }
    fixes.retain(|fix| fix.span.file == FileId(0));
    fixes.sort_by_key(|fix| (fix.span.start, fix.span.end));
    let mut end = 0;
    fixes.retain(|fix| {
        let is_free = fix.span.start >= end;
        end = end.max(fix.span.end);
        is_free
    });
    fixes
}
