//! Programs of an older version of the language in the words of this one.
//!
//! The compiler knows what to write instead; that is written, until nothing of the kind is left. A name that has become an element type since is
//! another name. Must not know what is wrong with a program.
//!
//! ```text
//! C[i,j] = A[i,k] * B[k,j], with a scalar k   =>   C[i,j] = A[i,(k)] * B[(k),j]
//! input u32: f32[4]                           =>   input u32_: f32[4]
//! ```

use ein_plan::DType;
use einc_diag::{Diagnostic, FileId, Span};
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
        fixes.extend(renamed(diagnostic, text));
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

/// Another name for what is called like an element type, wherever it does not stand as a type.
fn renamed(diagnostic: &Diagnostic, text: &str) -> Vec<Fix> {
    let word = diagnostic.labels.first().map(|label| label.span);
    let word = word.and_then(|span| text.get(span.start as usize..span.end as usize));
    let Some(word) =
        word.filter(|word| diagnostic.code == "E0119" && DType::from_name(word).is_some())
    else {
        return vec![];
    };
    let mut name = format!("{word}_");
    while einc_syntax::words(text, &name).next().is_some() {
        name.push('_');
    }
    let is_type = |start: usize| text[..start].trim_end().ends_with(':');
    einc_syntax::words(text, word)
        .filter(|range| !is_type(range.start))
        .map(|range| Fix {
            span: Span {
                file: FileId(0),
                start: range.start as u32,
                end: range.end as u32,
            },
            text: name.clone(),
        })
        .collect()
}
