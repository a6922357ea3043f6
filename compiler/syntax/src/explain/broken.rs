//! A line that does not parse: where it stopped, and what would have been right there.
//!
//! Must not know what is said about it.
//!
//! ```text
//! y = sum x[i]   =>   before `sum`, found `x`, expects + * = …
//! ```

use crate::{
    lexer::{Lexeme, Token},
    tree::Builder,
};
use einc_diag::Span;

/// A line that does not parse.
pub(super) struct Broken<'a> {
    pub build: &'a Builder<'a>,
    pub tokens: &'a [Lexeme],
    pub start: Token,
    /// The token at which it stopped; the number of tokens: at the end.
    pub at: usize,
    /// Names of tokens that would have been right.
    pub expected: Vec<&'a str>,
}

impl Broken<'_> {
    /// The token at which it stopped.
    pub fn found(&self) -> Option<Token> {
        self.tokens.get(self.at).map(|l| l.token)
    }

    /// The token before that.
    pub fn before(&self) -> Option<Token> {
        self.at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .map(|l| l.token)
    }

    /// The token with which the line begins.
    pub fn first(&self) -> Option<Token> {
        self.tokens.first().map(|l| l.token)
    }

    /// Where a token is; of braces the first one.
    pub fn span(&self, at: usize) -> Span {
        match self.tokens.get(at).or(self.tokens.last()) {
            Some(lexeme) if is_block(lexeme.token) => {
                self.build.span(lexeme.start, lexeme.start + 1)
            }
            Some(lexeme) => self.build.span(lexeme.start, lexeme.end),
            None => self.build.span(0, 0),
        }
    }

    /// The text of a token, at most 60 characters of it.
    pub fn text(&self, at: usize) -> &str {
        match self.tokens.get(at) {
            Some(lexeme) if is_block(lexeme.token) => "{",
            Some(lexeme) => {
                let text = self.build.text((lexeme.start, lexeme.end));
                text.char_indices()
                    .nth(60)
                    .map_or(text, |(end, _)| &text[..end])
            }
            None => "",
        }
    }

    /// Whether a token of this name would have been right.
    pub fn expects(&self, name: &str) -> bool {
        self.expected.contains(&name)
    }

    /// Whether an expression may begin here.
    pub fn expects_operand(&self) -> bool {
        self.expects("integer") && self.expects("path") && self.expects("(")
    }

    /// The innermost bracket that is open here.
    pub fn bracket(&self) -> Option<Token> {
        let mut open = vec![];
        for lexeme in &self.tokens[..self.at.min(self.tokens.len())] {
            match lexeme.token {
                Token::OpenParen | Token::OpenBracket => open.push(lexeme.token),
                Token::CloseParen | Token::CloseBracket => {
                    open.pop();
                }
                _ => {}
            }
        }
        open.pop()
    }
}

/// Whether a token stands for braces and what is in them.
pub(super) fn is_block(token: Token) -> bool {
    matches!(
        token,
        Token::Body(_) | Token::Entries(_) | Token::Settings(_)
    )
}
