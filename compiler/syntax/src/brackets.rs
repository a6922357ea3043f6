//! Matches brackets before anything else looks at them, so that one forgotten bracket is one message, at the
//! bracket, and the rest of the file is read as it was meant.
//!
//! Must not know the grammar, only where a bracket cannot go on: `(` and `[` not over `{`, `}`, `;` or an item's
//! keyword at the start of a line. Where braces do not match, and only there, indentation says which one is meant.
//! Also caps nesting at [`MAXIMUM_NESTING`].
//!
//! ```text
//! y[n = x[n]     =>   y[n] = x[n], and "this `[` is never closed" at the first `[`
//! ```

use crate::{
    layout::{defines, is_layout},
    lexer::{Lexeme, Token},
    tree::ENOUGH,
};
use einc_diag::{Diagnostic, FileId, Span};

/// Brackets and braces that may be open at once.
pub const MAXIMUM_NESTING: usize = 256;

/// The tokens with brackets that match and are nested at most [`MAXIMUM_NESTING`] deep. What was changed is marked
/// as damaged and reported.
pub fn balance(
    file: FileId,
    lexemes: Vec<Lexeme>,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Lexeme> {
    let lines = Lines::new(&lexemes);
    let mut problems = find(&lexemes, &lines, false);
    let open_brace = |p: &Problem| matches!(p, Problem::Unclosed { opener, .. } if lexemes[*opener].token == Token::OpenBrace);
    if problems.iter().any(open_brace) {
        let by_indentation = find(&lexemes, &lines, true);
        if by_indentation.len() <= problems.len() {
            problems = by_indentation;
        }
    }
    let balanced = if problems.is_empty() {
        lexemes
    } else {
        for problem in problems.iter().take(ENOUGH) {
            diagnostics.push(report(file, &lexemes, problem));
        }
        repair(&lexemes, &problems)
    };
    cap(file, balanced, diagnostics)
}

/// What is wrong with a bracket; numbers are positions in the list of tokens.
enum Problem {
    /// Never closed; taken as closed behind the last token before `close`; `because` shows where that was seen.
    Unclosed {
        opener: usize,
        close: usize,
        because: Option<usize>,
    },
    /// Closed by the wrong kind.
    Wrong { opener: usize, closer: usize },
    /// Closes nothing.
    Stray { closer: usize },
}

/// For every token, whether it begins a line, and how far its line is indented.
struct Lines {
    first: Vec<bool>,
    indent: Vec<u32>,
}

impl Lines {
    fn new(lexemes: &[Lexeme]) -> Lines {
        let mut lines = Lines {
            first: Vec::with_capacity(lexemes.len()),
            indent: Vec::with_capacity(lexemes.len()),
        };
        let (mut begin, mut first, mut indent) = (0, true, 0);
        for lexeme in lexemes {
            if first {
                indent = lexeme.start - begin;
            }
            lines.first.push(first);
            lines.indent.push(indent);
            first = lexeme.token == Token::Newline;
            if first {
                begin = lexeme.end;
            }
        }
        lines
    }
}

/// A bracket that is open.
struct Open {
    at: usize,
    /// The first newline within it (not within an inner one) between two operands: it cannot go on there.
    broken: Option<usize>,
    /// Whether the line below a brace is indented further than the brace's own.
    indented: bool,
}

fn find(lexemes: &[Lexeme], lines: &Lines, by_indentation: bool) -> Vec<Problem> {
    let mut problems = vec![];
    let mut stack: Vec<Open> = vec![];
    let mut before: Option<Token> = None;
    for (at, lexeme) in lexemes.iter().enumerate() {
        let token = lexeme.token;
        if lines.first[at] && token.is_item_keyword() {
            close_round(lexemes, &mut stack, &mut problems, at, Some(at));
        }
        if by_indentation && lines.first[at] {
            close_dedented(lexemes, lines, &mut stack, &mut problems, at);
        }
        match token {
            Token::OpenParen | Token::OpenBracket => stack.push(Open {
                at,
                broken: None,
                indented: false,
            }),
            Token::OpenBrace => {
                close_round(lexemes, &mut stack, &mut problems, at, Some(at));
                let below = lexemes[at + 1..]
                    .iter()
                    .position(|l| l.token != Token::Newline && l.token != Token::Comment)
                    .map(|n| at + 1 + n);
                let indented =
                    below.is_some_and(|b| lines.first[b] && lines.indent[b] > lines.indent[at]);
                stack.push(Open {
                    at,
                    broken: None,
                    indented,
                });
            }
            Token::Semicolon => close_round(lexemes, &mut stack, &mut problems, at, Some(at)),
            Token::Newline => {
                let next = lexemes.get(at + 1).filter(|l| !is_layout(l.token));
                let (Some(next), Some(before), Some(top)) = (next, before, stack.last_mut()) else {
                    continue;
                };
                let opener = lexemes[top.at].token;
                if opener == Token::OpenBrace {
                    continue;
                }
                // Only a default, `f(a,` newline `b = 1)`, holds `=` within brackets.
                let may_define =
                    opener == Token::OpenParen && matches!(before, Token::Comma | Token::OpenParen);
                if !may_define && defines(lexemes, at) == Some(Token::Assign) {
                    close_round(lexemes, &mut stack, &mut problems, at, None);
                } else if top.broken.is_none()
                    && before.ends_operand()
                    && (next.token.begins_operand() || next.token == Token::State)
                {
                    top.broken = Some(at);
                }
            }
            Token::CloseBrace => {
                close_round(lexemes, &mut stack, &mut problems, at, Some(at));
                if stack.pop().is_none() {
                    problems.push(Problem::Stray { closer: at });
                }
            }
            Token::CloseParen | Token::CloseBracket => {
                close(lexemes, &mut stack, &mut problems, at);
            }
            _ => {}
        }
        if !is_layout(token) {
            before = Some(token);
        }
    }
    while !stack.is_empty() {
        unclosed(&mut stack, &mut problems, lexemes.len(), None);
    }
    problems
}

/// Takes a closing parenthesis or square bracket: it closes the innermost one of its kind within the brace, or is wrong or stray.
fn close(lexemes: &[Lexeme], stack: &mut Vec<Open>, problems: &mut Vec<Problem>, at: usize) {
    let is_brace = |open: &Open| lexemes[open.at].token == Token::OpenBrace;
    let wanted = opener_of(lexemes[at].token);
    // What is nested deeper than allowed is not worth a long search.
    let matching = stack
        .iter()
        .rev()
        .take(MAXIMUM_NESTING)
        .take_while(|open| !is_brace(open))
        .position(|open| lexemes[open.at].token == wanted);
    match matching {
        Some(above) => {
            for _ in 0..above {
                unclosed(stack, problems, at, Some(at));
            }
            stack.pop();
        }
        None if stack.last().is_some_and(|open| {
            let right = closer_of(lexemes[open.at].token);
            !is_brace(open) && lexemes.get(at + 1).is_none_or(|l| l.token != right)
        }) =>
        {
            if let Some(open) = stack.pop() {
                problems.push(Problem::Wrong {
                    opener: open.at,
                    closer: at,
                });
            }
        }
        None => problems.push(Problem::Stray { closer: at }),
    }
}

/// Pops what is on top as never closed.
fn unclosed(stack: &mut Vec<Open>, problems: &mut Vec<Problem>, at: usize, because: Option<usize>) {
    if let Some(open) = stack.pop() {
        problems.push(Problem::Unclosed {
            opener: open.at,
            close: open.broken.unwrap_or(at),
            because: if open.broken.is_some() { None } else { because },
        });
    }
}

/// Pops the `(` and `[` above the innermost brace.
fn close_round(
    lexemes: &[Lexeme],
    stack: &mut Vec<Open>,
    problems: &mut Vec<Problem>,
    at: usize,
    because: Option<usize>,
) {
    while stack
        .last()
        .is_some_and(|open| lexemes[open.at].token != Token::OpenBrace)
    {
        unclosed(stack, problems, at, because);
    }
}

/// Pops the braces that the line which begins at `at` is not indented enough for.
fn close_dedented(
    lexemes: &[Lexeme],
    lines: &Lines,
    stack: &mut Vec<Open>,
    problems: &mut Vec<Problem>,
    at: usize,
) {
    use Token::*;
    let token = lexemes[at].token;
    if is_layout(token) {
        return;
    }
    let never_in_a_body = matches!(
        token,
        Input | Output | Use | Fn | Module | Optimizer | Schedule | Train
    );
    while let Some(brace) = stack
        .iter()
        .rposition(|open| lexemes[open.at].token == OpenBrace)
    {
        let open = &stack[brace];
        let (here, there) = (lines.indent[at], lines.indent[open.at]);
        let ends = match token {
            CloseBrace => here < there && brace > 0,
            _ => here <= there && (open.indented || (never_in_a_body && here == 0)),
        };
        if !ends || lines.indent[at] == lines.indent[open.at] && at == open.at {
            return;
        }
        close_round(lexemes, stack, problems, at, Some(at));
        unclosed(stack, problems, at, Some(at));
    }
}

fn opener_of(closer: Token) -> Token {
    match closer {
        Token::CloseParen => Token::OpenParen,
        Token::CloseBracket => Token::OpenBracket,
        _ => Token::OpenBrace,
    }
}

fn closer_of(opener: Token) -> Token {
    match opener {
        Token::OpenParen => Token::CloseParen,
        Token::OpenBracket => Token::CloseBracket,
        _ => Token::CloseBrace,
    }
}

fn sign(token: Token) -> &'static str {
    match token {
        Token::OpenParen => "(",
        Token::CloseParen => ")",
        Token::OpenBracket => "[",
        Token::CloseBracket => "]",
        Token::OpenBrace => "{",
        _ => "}",
    }
}

fn report(file: FileId, lexemes: &[Lexeme], problem: &Problem) -> Diagnostic {
    let span = |at: usize| Span {
        file,
        start: lexemes[at].start,
        end: lexemes[at].end,
    };
    match *problem {
        Problem::Unclosed {
            opener, because, ..
        } => {
            let open = sign(lexemes[opener].token);
            let close = sign(closer_of(lexemes[opener].token));
            let error = Diagnostic::error("E0113", format!("this `{open}` is never closed"))
                .at(span(opener), format!("`{close}` is missing"));
            match because {
                Some(at) if lexemes[at].token.is_item_keyword() => {
                    error.at(span(at), "a new item begins here")
                }
                Some(at) => error.at(span(at), "it must be closed before this"),
                None => error,
            }
        }
        Problem::Wrong { opener, closer } => {
            let open = sign(lexemes[opener].token);
            let close = sign(closer_of(lexemes[opener].token));
            let found = sign(lexemes[closer].token);
            Diagnostic::error("E0113", format!("`{open}` is closed by `{found}`"))
                .at(span(closer), format!("expected `{close}`"))
                .at(span(opener), "opened here")
        }
        Problem::Stray { closer } => {
            let close = sign(lexemes[closer].token);
            let open = sign(opener_of(lexemes[closer].token));
            Diagnostic::error("E0113", format!("this `{close}` closes nothing"))
                .at(span(closer), format!("no `{open}` is open here"))
        }
    }
}

fn repair(lexemes: &[Lexeme], problems: &[Problem]) -> Vec<Lexeme> {
    let mut repaired = lexemes.to_vec();
    let mut inserted: Vec<(usize, usize)> = vec![];
    for problem in problems {
        match *problem {
            Problem::Unclosed { opener, close, .. } => {
                repaired[opener].damaged = true;
                let mut behind = close;
                while behind > opener + 1 && is_layout(lexemes[behind - 1].token) {
                    behind -= 1;
                }
                inserted.push((behind, opener));
            }
            Problem::Wrong { opener, closer } => {
                repaired[closer].token = closer_of(lexemes[opener].token);
                repaired[closer].damaged = true;
            }
            Problem::Stray { closer } => {
                repaired[closer].token = Token::Bad;
                repaired[closer].damaged = true;
            }
        }
    }
    if inserted.is_empty() {
        return repaired;
    }
    inserted.sort_by_key(|&(at, opener)| (at, std::cmp::Reverse(opener)));
    let mut result = Vec::with_capacity(repaired.len() + inserted.len());
    let mut next = inserted.into_iter().peekable();
    for at in 0..=repaired.len() {
        while let Some((_, opener)) = next.next_if(|&(place, _)| place == at) {
            let place = at.checked_sub(1).map_or(0, |before| repaired[before].end);
            result.push(Lexeme {
                token: closer_of(repaired[opener].token),
                start: place,
                end: place,
                damaged: true,
            });
        }
        result.extend(repaired.get(at));
    }
    result
}

/// Replaces what is nested too deeply.
fn cap(file: FileId, lexemes: Vec<Lexeme>, diagnostics: &mut Vec<Diagnostic>) -> Vec<Lexeme> {
    use Token::*;
    let mut depth = 0usize;
    let opens = |token| matches!(token, OpenParen | OpenBracket | OpenBrace);
    let closes = |token| matches!(token, CloseParen | CloseBracket | CloseBrace);
    let deepest = lexemes.iter().fold((0usize, 0usize), |(depth, most), l| {
        let depth = match l.token {
            t if opens(t) => depth + 1,
            t if closes(t) => depth.saturating_sub(1),
            _ => depth,
        };
        (depth, most.max(depth))
    });
    if deepest.1 <= MAXIMUM_NESTING {
        return lexemes;
    }
    let mut result = Vec::with_capacity(lexemes.len());
    for lexeme in lexemes {
        if opens(lexeme.token) {
            depth += 1;
            if depth == MAXIMUM_NESTING + 1 {
                let span = Span {
                    file,
                    start: lexeme.start,
                    end: lexeme.end,
                };
                let message = format!("more than {MAXIMUM_NESTING} brackets are open here");
                diagnostics.push(
                    Diagnostic::error("E0115", message)
                        .at(span, "one too many")
                        .help("give names to the inner parts: `part[i] = …`"),
                );
                result.push(Lexeme {
                    token: Bad,
                    damaged: true,
                    ..lexeme
                });
            }
        }
        if depth <= MAXIMUM_NESTING {
            result.push(lexeme);
        }
        if closes(lexeme.token) {
            depth = depth.saturating_sub(1);
        }
    }
    result
}
