//! The layout pass: tokens to lines, with braces as blocks of lines within a line.
//!
//! The only part that depends on context: newlines that end nothing are dropped (language reference, section 1),
//! the names of reductions before `[` and `max =`, `min =` after `]` become tokens of their own. It takes tokens
//! whose brackets match (see [`crate::brackets`]) and must not know the grammar.
//!
//! ```text
//! y = f(a,      =>   line: y = f ( a , b )
//!   b); z = 1   =>   line: z = 1
//! ```

use crate::lexer::{Lexeme, Token};
use ein_plan::Reduction;

/// The lines of a file or of a pair of braces.
#[derive(Default)]
pub struct Block {
    /// In source order; none is empty.
    pub lines: Vec<Line>,
}

/// A line of the grammar: an item, a line of `train`, settings.
#[derive(Default)]
pub struct Line {
    /// Its tokens; `Body(n)` stands for `blocks[n]`.
    pub tokens: Vec<Lexeme>,
    /// The braces in it.
    pub blocks: Vec<Block>,
    /// The places of the documentation lines before it.
    pub doc: Vec<(u32, u32)>,
}

/// The lines of a file. Brackets must match; braces must not be nested deeper than the stack allows.
pub fn layout(text: &str, lexemes: &[Lexeme]) -> Block {
    let mut reader = Reader {
        text,
        lexemes,
        at: 0,
    };
    reader.block(false)
}

struct Reader<'a> {
    text: &'a str,
    lexemes: &'a [Lexeme],
    at: usize,
}

impl Reader<'_> {
    /// Lines up to the closing brace, which is consumed.
    fn block(&mut self, in_train: bool) -> Block {
        let mut block = Block::default();
        let mut line = Line::default();
        let mut open = 0usize;
        let mut decided = 0usize;
        let mut defined = false;
        while let Some(&lexeme) = self.lexemes.get(self.at) {
            self.at += 1;
            match lexeme.token {
                Token::Comment => {}
                Token::Doc => {
                    if line.tokens.is_empty() && self.begins_line(self.at - 1) {
                        line.doc.push((lexeme.start, lexeme.end));
                    }
                }
                Token::Newline => {
                    // Looked at once: further newlines change nothing.
                    if open == 0 && line.tokens.len() > decided {
                        if !self.continues(&line, defined, in_train) {
                            flush(&mut block, &mut line);
                            defined = false;
                        }
                        decided = line.tokens.len();
                    }
                }
                Token::Semicolon => {
                    flush(&mut block, &mut line);
                    decided = 0;
                    defined = false;
                }
                Token::CloseBrace => break,
                Token::OpenBrace => {
                    let train = line
                        .tokens
                        .first()
                        .is_some_and(|first| first.token == Token::Train);
                    let inner = self.block(train);
                    let end = self
                        .lexemes
                        .get(self.at.saturating_sub(1))
                        .map_or(lexeme.end, |l| l.end);
                    line.tokens.push(Lexeme {
                        token: Token::Body(line.blocks.len() as u32),
                        end,
                        ..lexeme
                    });
                    line.blocks.push(inner);
                }
                token => {
                    match token {
                        Token::Assign => defined = true,
                        Token::OpenParen | Token::OpenBracket => open += 1,
                        Token::CloseParen | Token::CloseBracket => open = open.saturating_sub(1),
                        _ => {}
                    }
                    let lexeme = self.special(lexeme, &line, open);
                    line.tokens.push(lexeme);
                }
            }
        }
        flush(&mut block, &mut line);
        block
    }

    /// Whether only a newline, or nothing, stands before the token.
    fn begins_line(&self, at: usize) -> bool {
        at.checked_sub(1)
            .is_none_or(|before| matches!(self.lexemes[before].token, Token::Newline))
    }

    /// Whether the line, which is `defined` if it holds a `=`, goes on after a newline.
    fn continues(&self, line: &Line, defined: bool, in_train: bool) -> bool {
        use Token::*;
        let Some(last) = line.tokens.last().map(|l| l.token) else {
            return false;
        };
        let Some(next) = self.lexemes[self.at..]
            .iter()
            .map(|l| l.token)
            .find(|&t| !is_layout(t))
        else {
            return false;
        };
        if next.is_item_keyword() || matches!(next, State | Repeat | CloseBrace | Semicolon) {
            return false;
        }
        if last == Comma {
            return !(defined && defines(self.lexemes, self.at) == Some(Assign));
        }
        let wants_more = last.is_binary()
            || matches!(
                last,
                Assign | Arrow | PlusAssign | MaxAssign | MinAssign | Not | Else
            )
            || (in_train && last == Then);
        // No expression begins like a definition: what is missing is missing at the end of this line.
        (wants_more && (last == Arrow || defines(self.lexemes, self.at).is_none()))
            || next.is_binary()
            || matches!(next, Else | OpenBrace | Arrow)
            || (in_train && next == Then)
    }

    /// The token as the grammar wants it: reductions, and `max =`.
    fn special(&mut self, lexeme: Lexeme, line: &Line, open: usize) -> Lexeme {
        if lexeme.token != Token::Path {
            return lexeme;
        }
        let word = &self.text[lexeme.start as usize..lexeme.end as usize];
        if word == "count" && counts(self.lexemes, self.at) {
            let token = Token::Count;
            return Lexeme { token, ..lexeme };
        }
        let Some(reduction) = Reduction::from_name(word) else {
            return lexeme;
        };
        let mut at = self.at;
        while open > 0
            && matches!(
                self.lexemes.get(at).map(|l| l.token),
                Some(Token::Newline | Token::Comment | Token::Doc)
            )
        {
            at += 1;
        }
        let Some(next) = self.lexemes.get(at) else {
            return lexeme;
        };
        let after_bracket = line
            .tokens
            .last()
            .is_some_and(|last| last.token == Token::CloseBracket);
        let combine = match reduction {
            Reduction::Max => Some(Token::MaxAssign),
            Reduction::Min => Some(Token::MinAssign),
            _ => None,
        };
        match (next.token, combine) {
            (Token::OpenBracket, _) => Lexeme {
                token: Token::Reduction(reduction),
                ..lexeme
            },
            (Token::Assign, Some(token)) if after_bracket && open == 0 => {
                self.at = at + 1;
                Lexeme {
                    token,
                    end: next.end,
                    ..lexeme
                }
            }
            _ => lexeme,
        }
    }
}

/// Returns whether brackets begin at a token, and behind them stands what is counted: `count[i] (x[i] > 1)`, not `count[i] + 1`.
pub fn counts(lexemes: &[Lexeme], at: usize) -> bool {
    let mut tokens = lexemes[at..].iter().map(|lexeme| lexeme.token);
    if tokens.next() != Some(Token::OpenBracket) {
        return false;
    }
    let mut open = 1usize;
    for token in tokens.by_ref() {
        match token {
            Token::OpenBracket | Token::OpenParen => open += 1,
            Token::CloseBracket | Token::CloseParen => open = open.saturating_sub(1),
            Token::Semicolon | Token::OpenBrace | Token::CloseBrace => return false,
            _ => {}
        }
        if open == 0 {
            break;
        }
    }
    let next = tokens.next();
    next.is_some_and(|next| matches!(next, Token::OpenParen | Token::Not) || next.begins_operand())
}

/// If the tokens from `at` begin like a definition or a setting (`y[i] =`, `a, b =`, `next y =`, `loss:`), the sign
/// after its left side.
pub fn defines(lexemes: &[Lexeme], at: usize) -> Option<Token> {
    use Token::*;
    let mut tokens = lexemes[at..]
        .iter()
        .map(|l| l.token)
        .filter(|&t| !is_layout(t))
        .peekable();
    tokens.next_if(|t| matches!(t, Next | State));
    for _ in 0..16 {
        tokens.next_if(|t| t.is_name())?;
        if tokens.peek() == Some(&OpenBracket) {
            let mut open = 0usize;
            for token in tokens.by_ref() {
                match token {
                    OpenBracket | OpenParen => open += 1,
                    CloseBracket | CloseParen => open -= 1,
                    Assign | Semicolon | OpenBrace | CloseBrace => return None,
                    _ => {}
                }
                if open == 0 {
                    break;
                }
            }
        }
        match tokens.next()? {
            Comma => {}
            sign @ (Assign | PlusAssign | Colon) => return Some(sign),
            _ => return None,
        }
    }
    None
}

/// Whether it is a newline or a comment.
pub fn is_layout(token: Token) -> bool {
    matches!(token, Token::Newline | Token::Comment | Token::Doc)
}

fn flush(block: &mut Block, line: &mut Line) {
    if !line.tokens.is_empty() {
        block.lines.push(std::mem::take(line));
    }
}
