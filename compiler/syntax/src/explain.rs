//! What a failure to parse says to the user.
//!
//! Must not know how the grammar is built, only the names of its tokens; none of them reaches the user.
//!
//! ```text
//! y = sum x[i]   =>   E0118: `sum` needs the indices that it runs over
//! ```

mod broken;
mod characters;
mod expected;
mod slips;

pub use characters::characters;

use crate::{
    lexer::{Lexeme, Token},
    tree::Builder,
};
use broken::Broken;
use einc_diag::Diagnostic;
use lalrpop_util::ParseError;
use std::convert::Infallible;

/// Why a line does not parse.
pub type Failure = ParseError<u32, Token, Infallible>;

/// Reports why a line does not parse.
pub fn explain(
    build: &Builder<'_>,
    tokens: &[Lexeme],
    start: Token,
    failure: &Failure,
) -> Diagnostic {
    let (place, expected): (u32, &[String]) = match failure {
        ParseError::UnrecognizedToken { token, expected } => (token.0, expected),
        ParseError::UnrecognizedEof { location, expected } => (*location, expected),
        ParseError::InvalidToken { location } => (*location, &[]),
        ParseError::ExtraToken { token } => (token.0, &[]),
        ParseError::User { error } => match *error {},
    };
    let at = match failure {
        ParseError::UnrecognizedEof { .. } => tokens.len(),
        _ => tokens
            .iter()
            .position(|lexeme| lexeme.start == place)
            .unwrap_or(tokens.len()),
    };
    let line = Broken {
        build,
        tokens,
        start,
        at,
        expected: expected.iter().map(|name| name.trim_matches('"')).collect(),
    };
    line.foreign()
        .or_else(|| line.output())
        .or_else(|| line.again())
        .or_else(|| line.name())
        .or_else(|| line.reduction())
        .or_else(|| line.element())
        .or_else(|| line.side_by_side())
        .or_else(|| line.sign())
        .unwrap_or_else(|| line.expected())
}
