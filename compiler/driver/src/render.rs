//! Diagnostics as text in rustc's style, and as JSON, one object a line.
//!
//! The text carries colour codes; print it through `anstream`, which drops them where they do not belong.
//! Must not know which pass found what.
//!
//! ```text
//! error[E0301]: index `k` has two sizes: 4 in `A` and 5 in `B`
//!  --> matmul.ein:3:14
//!   |
//! 3 | C[i,j] = A[i,k] * B[k,j]
//!   |              ^      - and over 5 here
//!   |              |
//!   |              `k` runs over 4 here
//! ```

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet, renderer::DecorStyle};
use einc_diag::{Diagnostic, Severity, Span};
use serde::Serialize;

/// A file of the program: what messages call it, and what it says.
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    /// The name that is shown.
    pub name: &'a str,
    /// The whole text.
    pub text: &'a str,
}

/// One diagnostic as text with colour codes and a newline at its end. Places in files that are not in
/// `files` are left out.
pub fn text(diagnostic: &Diagnostic, files: &[Text<'_>]) -> String {
    let level = match diagnostic.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(
        level
            .primary_title(diagnostic.message.as_str())
            .id(diagnostic.code),
    );
    let mut shown: Vec<u32> = vec![];
    for label in &diagnostic.labels {
        if !shown.contains(&label.span.file.0) {
            shown.push(label.span.file.0);
        }
    }
    let mut placed = false;
    for file in shown {
        if let Some(snippet) = snippet(diagnostic, file, files) {
            group = group.element(snippet);
            placed = true;
        }
    }
    let notes = diagnostic.notes.iter().map(|note| (Level::NOTE, note));
    let help = diagnostic.help.iter().map(|help| (Level::HELP, help));
    let further: Vec<_> = notes.chain(help).collect();
    let renderer = Renderer::styled().decor_style(DecorStyle::Ascii);
    let draw = |group: Group<'_>| renderer.render(&[group]);
    let mut out = if placed {
        let messages = further
            .into_iter()
            .map(|(level, text)| level.message(text.as_str()));
        draw(group.elements(messages))
    } else {
        // Below lines of source they hang on the margin; without any they stand by themselves.
        let titles = further
            .into_iter()
            .map(|(level, text)| Group::with_title(level.primary_title(text.as_str())));
        let drawn: Vec<_> = [group].into_iter().chain(titles).map(draw).collect();
        drawn.join("\n")
    };
    out.push('\n');
    out
}

/// The lines of one file that the labels in it touch, with the labels.
fn snippet<'a>(
    diagnostic: &'a Diagnostic,
    file: u32,
    files: &[Text<'a>],
) -> Option<Snippet<'a, annotate_snippets::Annotation<'a>>> {
    let source = files.get(file as usize)?;
    let spans: Vec<_> = diagnostic
        .labels
        .iter()
        .enumerate()
        .filter(|(_, label)| label.span.file.0 == file)
        .map(|(i, label)| (i, clamp(source.text, label.span), label.message.as_str()))
        .collect();
    let first = spans.iter().map(|(_, (start, _), _)| *start).min()?;
    let last = spans.iter().map(|(_, (_, end), _)| *end).max()?;
    // Only these lines are handed over, so that the cost does not grow with the file.
    let from = source.text[..first].rfind('\n').map_or(0, |n| n + 1);
    let to = source.text[last..]
        .find('\n')
        .map_or(source.text.len(), |n| last + n);
    let line = source.text[..from].matches('\n').count() + 1;
    let snippet = Snippet::source(&source.text[from..to])
        .path(source.name)
        .line_start(line)
        .fold(true)
        .annotations(spans.into_iter().map(|(i, (start, end), message)| {
            let kind = if i == 0 {
                AnnotationKind::Primary
            } else {
                AnnotationKind::Context
            };
            let annotation = kind.span(start - from..end - from);
            if message.is_empty() {
                annotation
            } else {
                annotation.label(message)
            }
        }));
    Some(snippet)
}

/// The span as bytes of the text, within it and on character boundaries.
fn clamp(text: &str, span: Span) -> (usize, usize) {
    let floor = |at: u32| {
        let mut at = (at as usize).min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(span.start), floor(span.end));
    (start, end.max(start))
}

#[derive(Serialize)]
struct JsonDiagnostic<'a> {
    code: &'a str,
    severity: Severity,
    message: &'a str,
    labels: Vec<JsonLabel<'a>>,
    help: &'a [String],
    notes: &'a [String],
}

#[derive(Serialize)]
struct JsonLabel<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    end_line: usize,
    end_column: usize,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a str>,
}

/// One diagnostic as a line of JSON with its newline: code, severity, message, labels (file, line, column,
/// end_line, end_column, message and, where it is known, `fix`: what to write there), help, notes. Lines and columns count from 1, columns in
/// characters; the end is one past the last character. The first label is the primary one.
pub fn json(diagnostic: &Diagnostic, files: &[Text<'_>]) -> String {
    let labels = diagnostic.labels.iter().filter_map(|label| {
        let source = files.get(label.span.file.0 as usize)?;
        let (start, end) = clamp(source.text, label.span);
        let ((line, column), (end_line, end_column)) =
            (place(source.text, start), place(source.text, end));
        Some(JsonLabel {
            file: source.name,
            line,
            column,
            end_line,
            end_column,
            message: &label.message,
            fix: label.fix.as_deref(),
        })
    });
    let object = JsonDiagnostic {
        code: diagnostic.code,
        severity: diagnostic.severity,
        message: &diagnostic.message,
        labels: labels.collect(),
        help: &diagnostic.help,
        notes: &diagnostic.notes,
    };
    let mut line =
        serde_json::to_string(&object).expect("strings and numbers always have a JSON form");
    line.push('\n');
    line
}

/// Line and column, from 1, of a byte on a character boundary.
fn place(text: &str, at: usize) -> (usize, usize) {
    let from = text[..at].rfind('\n').map_or(0, |n| n + 1);
    let line = text[..from].matches('\n').count() + 1;
    (line, text[from..at].chars().count() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use einc_diag::FileId;

    const PROGRAM: &str = "input A: f32[3, 4]\n// é\nC[i,j] =\tA[i,k] * B[k,j]\n";

    fn span(start: u32, end: u32) -> Span {
        Span {
            file: FileId(0),
            start,
            end,
        }
    }

    fn plain(diagnostic: &Diagnostic) -> String {
        let files = [Text {
            name: "a.ein",
            text: PROGRAM,
        }];
        anstream::adapter::strip_str(&text(diagnostic, &files)).to_string()
    }

    #[test]
    fn carets_stand_under_every_place() {
        let at = |what: &str| PROGRAM.find(what).expect("is there") as u32;
        let diagnostic = Diagnostic::error("E0301", "index `k` has two sizes: 4 and 5")
            .at(
                span(at("A[i,k]") + 4, at("A[i,k]") + 5),
                "`k` runs over 4 here",
            )
            .at(span(at("B[k") + 2, at("B[k") + 3), "and over 5 here")
            .help("use one size");
        let expected = "\
error[E0301]: index `k` has two sizes: 4 and 5
 --> a.ein:3:14
  |
3 | C[i,j] =    A[i,k] * B[k,j]
  |                 ^      - and over 5 here
  |                 |
  |                 `k` runs over 4 here
  |
  = help: use one size
";
        assert_eq!(plain(&diagnostic), expected);
    }

    #[test]
    fn without_a_place_help_stands_by_itself() {
        let diagnostic = Diagnostic::error("E0301", "no data")
            .help("give it a file")
            .note("so it is");
        assert_eq!(
            plain(&diagnostic),
            "error[E0301]: no data\nnote: so it is\nhelp: give it a file\n"
        );
    }

    #[test]
    fn spans_outside_the_text_do_no_harm() {
        for (start, end) in [(0, 0), (23, 23), (22, 24), (40, 4000), (4000, 4001), (9, 3)] {
            let diagnostic = Diagnostic::error("E0301", "x").at(span(start, end), "here");
            assert!(plain(&diagnostic).contains("E0301"));
            let files = [Text {
                name: "a.ein",
                text: PROGRAM,
            }];
            assert!(json(&diagnostic, &files).ends_with("}\n"));
            assert!(text(&diagnostic, &[]).contains("E0301"));
        }
    }

    #[test]
    fn json_counts_characters() {
        let diagnostic = Diagnostic::error("E0301", "x").at(span(22, 24), "here");
        let files = [Text {
            name: "a.ein",
            text: PROGRAM,
        }];
        assert_eq!(
            json(&diagnostic, &files),
            "{\"code\":\"E0301\",\"severity\":\"error\",\"message\":\"x\",\"labels\":[{\"file\":\"a.ein\",\"line\":2,\
             \"column\":4,\"end_line\":2,\"end_column\":5,\"message\":\"here\"}],\"help\":[],\"notes\":[]}\n"
        );
    }
}
