//! What a character that means nothing says to the user.
//!
//! Must not know the grammar.
//!
//! ```text
//! a ≤ b   =>   E0110: `≤` means nothing here; write `<=`
//! ```

use crate::{
    lexer::{Lexeme, Token},
    tree::Builder,
};
use einc_diag::{Diagnostic, Span};

/// Reports what is no token.
pub fn characters(build: &mut Builder<'_>, lexemes: &[Lexeme]) {
    let mut reported = None;
    for lexeme in lexemes.iter().filter(|l| l.token == Token::Bad) {
        if build.has_enough() {
            return;
        }
        if reported != Some(lexeme.start) {
            let text = build.text((lexeme.start, lexeme.end));
            let report = character(build.span(lexeme.start, lexeme.end), text);
            build.diagnostics.push(report);
        }
        reported = Some(lexeme.end);
    }
}

fn character(span: Span, text: &str) -> Diagnostic {
    if text.starts_with('"') {
        return Diagnostic::error("E0111", "this string is not closed")
            .at(span, "`\"` is missing at its end")
            .help("a string ends on the line on which it begins");
    }
    let first = text.chars().next().unwrap_or(' ');
    let unknown = |help: &str| {
        Diagnostic::error("E0110", format!("`{text}` means nothing here"))
            .at(span, "")
            .help(help)
    };
    match text {
        "&" | "&&" => unknown("write `and`"),
        "|" | "||" => unknown("write `or`"),
        "!" => unknown("write `not`, or `!=`"),
        "**" => unknown("a power is written `x^2`"),
        ":=" => unknown("a definition is written `y = …`"),
        "=>" | "→" => unknown("write `->`"),
        "===" => unknown("a comparison is written `==`"),
        "-=" | "*=" | "/=" | "%=" | "^=" => {
            unknown("values combine with `+=`, `max=` or `min=`; else write the whole definition")
        }
        "/*" => unknown("comments begin with `//` and end with the line"),
        "#" => unknown("comments begin with `//`"),
        "@" => unknown("a matrix product is written with indices: `C[i,j] = A[i,k] * B[k,j]`"),
        "?" => unknown("a choice is written `where(condition, a, b)`"),
        "·" | "×" | "⋅" | "∗" | "⊗" => unknown("write `*`"),
        "−" | "–" | "—" => unknown("write `-`"),
        "÷" | "∕" => unknown("write `/`"),
        "≤" => unknown("write `<=`"),
        "≥" => unknown("write `>=`"),
        "≠" => unknown("write `!=`"),
        "∧" => unknown("write `and`"),
        "∨" => unknown("write `or`"),
        "¬" => unknown("write `not`"),
        "∞" => unknown("write `inf`"),
        "∑" => unknown("write `sum[i] …`"),
        "∏" => unknown("write `prod[i] …`"),
        "√" => unknown("write `sqrt(x)`"),
        "²" | "³" | "¹" => unknown("a power is written `x^2`"),
        "…" => unknown("further indices are written `..`"),
        "“" | "”" | "„" => unknown("strings stand between `\"`"),
        _ if first == '\'' => unknown("strings stand between `\"`"),
        _ if first.is_control() || is_invisible(first) => Diagnostic::error(
            "E0110",
            format!("an invisible character, U+{:04X}", u32::from(first)),
        )
        .at(span, "delete it"),
        _ => Diagnostic::error(
            "E0110",
            format!("`{first}` is no character of the language"),
        )
        .at(span, "")
        .note("names are made of letters, digits, `_` and `'`"),
    }
}

fn is_invisible(c: char) -> bool {
    matches!(u32::from(c), 0xAD | 0x200B..=0x200F | 0x2028..=0x202F | 0x2060..=0x206F | 0x3000 | 0xFE00..=0xFE0F | 0xE0000..=0xE0FFF)
}
