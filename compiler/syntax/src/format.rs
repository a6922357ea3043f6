//! The formatter of `einc fmt`: the same tokens, comments and line breaks with canonical blanks.
//!
//! Works on tokens and must not know the tree. Two blanks a brace; one blank around binary operators, none around
//! `^`; at most one empty line. Kept as written: the column of `=`, `:`, `->` and comments, and of what follows `:`
//! and `;`, where at least two blanks stand before it; the hanging indentation of a line that goes on; in square
//! brackets, whether commas and arithmetic are tight. Formatting twice changes nothing more.
//!
//! ```text
//! y[n,h]   =relu( X[n,d]*W[d,h] )   =>   y[n,h]   = relu(X[n,d] * W[d,h])
//! ```

use crate::{
    layout::{self, counts, is_layout},
    lexer::{self, Lexeme, Token},
    parse,
};
use ein_plan::Reduction as Reducer;
use einc_diag::{Diagnostic, FileId};
use std::collections::HashSet;

/// Blanks for each brace.
const INDENT: usize = 2;

/// The text with canonical blanks, or why it does not parse.
pub fn format(text: &str) -> Result<String, Vec<Diagnostic>> {
    let parsed = parse::parse(FileId::default(), text);
    if parsed.diagnostics.iter().any(Diagnostic::is_error) {
        return Err(parsed.diagnostics);
    }
    let lexemes = lexer::lex(text);
    let mut starts = HashSet::new();
    let mut blocks = vec![layout::layout(text, &lexemes)];
    while let Some(block) = blocks.pop() {
        for line in block.lines {
            starts.extend(line.tokens.first().map(|first| first.start));
            blocks.extend(line.blocks);
        }
    }
    let roles = roles(text, &lexemes);
    Ok(Printer {
        text,
        lexemes: &lexemes,
        roles: &roles,
        columns: columns(text, &lexemes),
        words: words(&lexemes),
        starts,
        out: String::with_capacity(text.len() + text.len() / 8),
    }
    .print())
}

/// What a token is to the spacing rules.
#[derive(Clone, Copy, Default)]
struct Role {
    /// A sign, not an operator; or an operator written tight that stays so.
    tight: bool,
    /// `]` of a reduction: an operand follows.
    opens_operand: bool,
    /// Within the pattern of a `group`: blanks stay as they are.
    pattern: bool,
    /// A comma without a blank after it.
    tight_comma: bool,
    /// Not within `(` or `[`.
    outside: bool,
    /// `max` or `min` of `max=`, `min=`.
    combine: bool,
    /// A word of the language here, though it may be a name elsewhere.
    keyword: bool,
    /// The first word of a statement, which is a keyword.
    leads: bool,
}

/// A bracket that is open.
struct Open {
    at: usize,
    reduction: bool,
    commas: Vec<usize>,
    spaced: bool,
    train: bool,
}

fn roles(text: &str, lexemes: &[Lexeme]) -> Vec<Role> {
    use Token::*;
    let mut roles = vec![Role::default(); lexemes.len()];
    let mut stack: Vec<Open> = vec![];
    // The previous token that is not layout, and the first of the statement as far as `;`, braces and newlines tell.
    let mut before: Option<usize> = None;
    let mut first: Option<Token> = None;
    let mut squares = 0usize;
    for at in 0..lexemes.len() {
        let token = lexemes[at].token;
        let round = stack
            .last()
            .is_some_and(|open| lexemes[open.at].token != OpenBrace);
        if matches!(token, Newline | Semicolon) && !round {
            first = None;
        }
        if is_layout(token) {
            continue;
        }
        let role = &mut roles[at];
        role.outside = !round;
        let leads = first.is_none() && token != Semicolon;
        if leads {
            first = Some(token);
            role.leads = token.is_reserved();
        }
        let in_train = stack.last().is_some_and(|open| open.train);
        role.pattern = in_train && first == Some(Group) && !leads && token != OpenBrace;
        role.keyword = !round
            && (in_train || matches!(first, Some(Output | Schedule | Optimizer)))
            && matches!(
                token,
                Over | By | Shuffle | Every | Keep | On | Then | Group | For
            );
        match token {
            Minus
                if before
                    .is_none_or(|b| !lexemes[b].token.ends_operand() || roles[b].opens_operand) =>
            {
                roles[at].tight = true;
                roles[at].opens_operand = true;
            }
            Plus | Minus | Star | Slash | Percent if squares > 0 => {
                roles[at].tight = is_tight(lexemes, at);
            }
            Path if squares == 0 || !round => {
                let word = &text[lexemes[at].start as usize..lexemes[at].end as usize];
                let next = lexemes.get(at + 1).map(|l| l.token);
                roles[at].combine = !round
                    && matches!(word, "max" | "min")
                    && next == Some(Assign)
                    && before.is_some_and(|b| lexemes[b].token == CloseBracket);
            }
            OpenParen | OpenBracket | OpenBrace => {
                let reduction = token == OpenBracket
                    && before.is_some_and(|b| reduces(text, &lexemes[b], counts(lexemes, at)));
                squares += usize::from(token == OpenBracket);
                stack.push(Open {
                    at,
                    reduction,
                    commas: vec![],
                    spaced: false,
                    train: token == OpenBrace && first == Some(Train),
                });
                if token == OpenBrace {
                    first = None;
                }
            }
            CloseParen | CloseBracket | CloseBrace => {
                if let Some(open) = stack.pop() {
                    squares -= usize::from(lexemes[open.at].token == OpenBracket);
                    roles[at].opens_operand = open.reduction;
                    if lexemes[open.at].token == OpenBracket && !open.spaced {
                        for comma in open.commas {
                            roles[comma].tight_comma = true;
                        }
                    }
                }
                let round = stack
                    .last()
                    .is_some_and(|open| lexemes[open.at].token != OpenBrace);
                roles[at].outside = !round;
            }
            Comma => {
                if let Some(open) = stack.last_mut() {
                    open.commas.push(at);
                    let next = lexemes.get(at + 1);
                    open.spaced |=
                        next.is_some_and(|l| l.start > lexemes[at].end && !is_layout(l.token));
                }
            }
            _ => {}
        }
        before = Some(at);
    }
    roles
}

/// Returns whether an operator has no blanks around it, in the middle of a line.
fn is_tight(lexemes: &[Lexeme], at: usize) -> bool {
    let glued = |a: usize, b: usize| {
        let pair = lexemes.get(a).zip(lexemes.get(b));
        pair.is_some_and(|(a, b)| a.end == b.start)
    };
    let in_line = |at: usize| {
        let lexeme = lexemes.get(at);
        lexeme.is_some_and(|lexeme| !is_layout(lexeme.token))
    };
    at > 0 && glued(at - 1, at) && glued(at, at + 1) && in_line(at - 1) && in_line(at + 1)
}

/// Returns whether a word in front of a bracket names a reduction; `counts`: whether the bracket is one of a count.
fn reduces(text: &str, word: &Lexeme, counts: bool) -> bool {
    let name = &text[word.start as usize..word.end as usize];
    let reducer = Reducer::from_name(name).is_some() || (name == "count" && counts);
    word.token == Token::Path && reducer
}

/// The column of every token, tabs being four wide.
fn columns(text: &str, lexemes: &[Lexeme]) -> Vec<usize> {
    let mut columns = Vec::with_capacity(lexemes.len());
    let (mut column, mut at) = (0usize, 0usize);
    for lexeme in lexemes {
        for c in text[at..lexeme.start as usize].chars() {
            column = match c {
                '\t' => column / 4 * 4 + 4,
                '\r' | '\u{feff}' => column,
                _ => column + 1,
            };
        }
        columns.push(column);
        at = lexeme.end as usize;
        column = match lexeme.token {
            Token::Newline => 0,
            _ => column + text[lexeme.start as usize..at].chars().count(),
        };
    }
    columns
}

/// Returns, for every token, the first token from there on that is neither a comment nor the end of a line.
fn words(lexemes: &[Lexeme]) -> Vec<Option<usize>> {
    let mut words = vec![None; lexemes.len()];
    let mut word = None;
    for (at, lexeme) in lexemes.iter().enumerate().rev() {
        if !is_layout(lexeme.token) {
            word = Some(at);
        }
        words[at] = word;
    }
    words
}

struct Printer<'a> {
    text: &'a str,
    lexemes: &'a [Lexeme],
    roles: &'a [Role],
    columns: Vec<usize>,
    /// For every token, the first token from there on that is neither a comment nor the end of a line.
    words: Vec<Option<usize>>,
    /// Where statements begin.
    starts: HashSet<u32>,
    out: String,
}

impl Printer<'_> {
    fn print(mut self) -> String {
        let mut braces = 0usize;
        // Columns at which the line that holds the statement's beginning begins: as written, as printed.
        let mut base = (0usize, 0usize);
        let mut at = 0;
        let mut empty_lines = 0usize;
        while at < self.lexemes.len() {
            if self.lexemes[at].token == Token::Newline {
                empty_lines += 1;
                at += 1;
                continue;
            }
            let end = self.lexemes[at..]
                .iter()
                .position(|l| l.token == Token::Newline)
                .map_or(self.lexemes.len(), |n| at + n);
            // The newline that ended the previous line is not an empty line.
            if empty_lines > 1 && !self.out.is_empty() {
                self.out.push('\n');
            }
            empty_lines = 0;
            let indent = self.indentation(at, braces, base);
            if self.begins_statement(at) {
                base = (self.columns[at], indent);
            }
            self.line(at, end, indent);
            for lexeme in &self.lexemes[at..end] {
                match lexeme.token {
                    Token::OpenBrace => braces += 1,
                    Token::CloseBrace => braces = braces.saturating_sub(1),
                    _ => {}
                }
                if lexeme.token != Token::CloseBrace && self.starts.contains(&lexeme.start) {
                    base = (self.columns[at], indent);
                }
            }
            at = end;
        }
        self.out
    }

    /// Whether the line that begins with the token `at` begins a statement, closes a block, or is a comment before one.
    fn begins_statement(&self, at: usize) -> bool {
        self.words[at].is_none_or(|word| {
            let lexeme = self.lexemes[word];
            matches!(lexeme.token, Token::CloseBrace | Token::Semicolon)
                || self.starts.contains(&lexeme.start)
        })
    }

    fn indentation(&self, at: usize, braces: usize, base: (usize, usize)) -> usize {
        let first = self.lexemes[at].token;
        if self.begins_statement(at) || first == Token::OpenBrace {
            let closing = self.lexemes[at..]
                .iter()
                .take_while(|l| l.token == Token::CloseBrace)
                .count();
            return INDENT * braces.saturating_sub(closing);
        }
        let hanging = self.columns[at].saturating_sub(base.0);
        let least = match first {
            Token::CloseParen | Token::CloseBracket => 0,
            _ => INDENT,
        };
        base.1 + hanging.max(least)
    }

    /// Prints the tokens from `at` to `end`.
    fn line(&mut self, at: usize, end: usize, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        let mut column = 0usize;
        for here in at..end {
            if here > at {
                let wanted = self.columns[here] - self.columns[at];
                let written = self.lexemes[here].start > self.lexemes[here - 1].end
                    && self.columns[here] >= self.columns[here - 1] + self.width(here - 1) + 2;
                let blanks = if written && self.may_align(here) && wanted >= column + 2 {
                    wanted - column
                } else {
                    usize::from(self.apart(here))
                };
                self.out.extend(std::iter::repeat_n(' ', blanks));
                column += blanks;
            }
            let lexeme = self.lexemes[here];
            self.out
                .push_str(&self.text[lexeme.start as usize..lexeme.end as usize]);
            column += self.width(here);
        }
        self.out.push('\n');
    }

    fn width(&self, at: usize) -> usize {
        let lexeme = self.lexemes[at];
        self.text[lexeme.start as usize..lexeme.end as usize]
            .chars()
            .count()
    }

    /// Whether a column that the user chose for this token is kept.
    fn may_align(&self, at: usize) -> bool {
        use Token::*;
        let (before, here) = (self.lexemes[at - 1].token, self.lexemes[at].token);
        let (left, right) = (self.roles[at - 1], self.roles[at]);
        if left.pattern && right.pattern || left.combine {
            return false;
        }
        matches!(here, Comment | Doc)
            || right.outside
                && (matches!(here, Assign | PlusAssign | Colon | Arrow)
                    || right.combine
                    || left.outside && (matches!(before, Colon | Semicolon) || left.leads))
    }

    /// Whether a blank stands before this token.
    fn apart(&self, at: usize) -> bool {
        use Token::*;
        let (before, here) = (self.lexemes[at - 1].token, self.lexemes[at].token);
        let (left, right) = (self.roles[at - 1], self.roles[at]);
        if matches!(here, Comment | Doc) {
            return true;
        }
        if left.pattern && right.pattern && before != Comma {
            return here != Comma && self.lexemes[at].start > self.lexemes[at - 1].end;
        }
        match (before, here) {
            (OpenBrace, CloseBrace) => false,
            (_, Comma | Semicolon | CloseParen | CloseBracket) => false,
            (OpenParen | OpenBracket, _) => false,
            (_, Colon) => false,
            (Comma, _) => !left.tight_comma,
            (_, Assign) if left.combine => false,
            (Minus, _) if left.tight => false,
            (Plus | Star | Slash | Percent, _) if left.tight => false,
            (_, Plus | Star | Slash | Percent) if right.tight => false,
            (_, Minus) if right.tight && !right.opens_operand => false,
            (Caret, _) | (_, Caret) => false,
            (_, OpenParen | OpenBracket) => {
                left.opens_operand || left.keyword || !before.ends_operand()
            }
            _ => true,
        }
    }
}
