//! One line of text as tokens, and the small steps from which every reader is built.
//!
//! Must not know what the lines say.
//!
//! ```text
//! r3 C: f32[4] = …   →   `r3` `C` `:` `f32` `[` `4` `]` `=` …
//! ```

use super::token::{Token, Value, constant_word, number_of, token};
use crate::dtype::{DType, Scalar};
use crate::ids::Origin;
use std::fmt;

/// What is wrong with a text, and where: line and column, both from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// Line.
    pub line: u32,
    /// Column, in characters.
    pub column: u32,
    /// What was expected, and what was found.
    pub message: String,
}

impl ParseError {
    /// An error at a place.
    pub fn new(line: u32, column: u32, message: impl Into<String>) -> ParseError {
        ParseError {
            line,
            column,
            message: message.into(),
        }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}
impl std::error::Error for ParseError {}

/// What a reader gives.
pub type Result<T> = std::result::Result<T, ParseError>;

/// A line that is being read.
pub struct Line<'a> {
    number: u32,
    tokens: Vec<(Token<'a>, u32)>,
    at: usize,
    depth: u32,
}

/// The lines of a text that hold more than a comment.
pub fn lines(text: &str) -> impl Iterator<Item = Result<Line<'_>>> {
    (1..)
        .zip(text.lines())
        .filter(|(_, text)| !text.trim().is_empty() && !text.trim_start().starts_with("//"))
        .map(|(number, text)| Line::new(number, text))
}

impl<'a> Line<'a> {
    /// The tokens of a line; `number` is its number in messages.
    pub fn new(number: u32, text: &'a str) -> Result<Line<'a>> {
        let mut tokens = vec![];
        let mut rest = text.trim_end();
        let mut column = 1;
        loop {
            let blank = rest.len() - rest.trim_start().len();
            column += rest[..blank].chars().count() as u32;
            rest = &rest[blank..];
            let Some(first) = rest.chars().next() else {
                break;
            };
            let (token, length) = token(first, rest).ok_or_else(|| {
                let message = format!("`{first}` cannot stand here");
                ParseError::new(number, column, message)
            })?;
            tokens.push((token, column));
            column += rest[..length].chars().count() as u32;
            rest = &rest[length..];
        }
        Ok(Line {
            number,
            tokens,
            at: 0,
            depth: 0,
        })
    }

    fn peek(&self) -> Option<&Token<'a>> {
        self.tokens.get(self.at).map(|(token, _)| token)
    }

    fn error_at(&self, at: usize, message: String) -> ParseError {
        let column = match self.tokens.get(at) {
            Some((_, column)) => *column,
            None => self.tokens.last().map_or(1, |(_, column)| column + 1),
        };
        ParseError::new(self.number, column, message)
    }

    /// The error that something else was expected at the next token.
    pub fn error(&self, expected: &str) -> ParseError {
        let found = match self.peek() {
            None => "the end of the line".to_string(),
            Some(Token::Name(text) | Token::Number(text)) => format!("`{text}`"),
            Some(Token::Symbol(text)) => format!("`{text}`"),
            Some(Token::Quoted(text)) => format!("{text:?}"),
            Some(Token::Comment(_)) => "a comment".to_string(),
        };
        self.error_at(self.at, format!("expected {expected}, found {found}"))
    }

    /// The error that something else was expected at the token that was read last.
    pub fn error_before(&self, expected: &str) -> ParseError {
        self.error_at(self.at.saturating_sub(1), format!("expected {expected}"))
    }

    /// An error at the token that was read last if `holds` is false.
    pub fn require(&self, holds: bool, message: &str) -> Result<()> {
        match holds {
            true => Ok(()),
            false => Err(self.error_at(self.at.saturating_sub(1), message.to_string())),
        }
    }

    /// Goes one level deeper; an error past 128 levels.
    pub(crate) fn deeper(&mut self) -> Result<()> {
        if self.depth >= 128 {
            return Err(self.error_at(self.at, "nested too deeply".to_string()));
        }
        self.depth += 1;
        Ok(())
    }

    /// Comes back from one level.
    pub(crate) fn shallower(&mut self) {
        self.depth -= 1;
    }

    /// Takes the symbol if it is next.
    pub fn eat(&mut self, symbol: &str) -> bool {
        let found = self.peek_symbol() == Some(symbol);
        self.at += usize::from(found);
        found
    }

    /// The symbol that is next.
    pub fn peek_symbol(&self) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Symbol(symbol)) => Some(symbol),
            _ => None,
        }
    }

    /// Takes the symbol, which must be next.
    pub fn expect(&mut self, symbol: &str) -> Result<()> {
        match self.eat(symbol) {
            true => Ok(()),
            false => Err(self.error(&format!("`{symbol}`"))),
        }
    }

    /// Whether the next token is this bare word.
    pub fn at_word(&self, word: &str) -> bool {
        matches!(self.peek(), Some(Token::Name(name)) if *name == word)
    }

    /// Whether the next token is this bare word, and a name or string follows.
    pub fn at_words(&self, word: &str) -> bool {
        let next = self.tokens.get(self.at + 1).map(|(token, _)| token);
        self.at_word(word) && matches!(next, Some(Token::Name(_) | Token::Quoted(_)))
    }

    /// Whether the next token is this bare word, and a number follows.
    pub fn at_word_and_number(&self, word: &str) -> bool {
        let next = self.tokens.get(self.at + 1).map(|(token, _)| token);
        self.at_word(word) && matches!(next, Some(Token::Number(_)))
    }

    /// Whether the next token is a number without a sign.
    pub fn at_number(&self) -> bool {
        matches!(self.peek(), Some(Token::Number(_)))
    }

    /// Whether the next two tokens are these symbols or words.
    pub(crate) fn at_pair(&self, first: &str, second: &str) -> bool {
        let is = |at: usize, text: &str| match self.tokens.get(at) {
            Some((Token::Name(name), _)) => *name == text,
            Some((Token::Symbol(symbol), _)) => *symbol == text,
            _ => false,
        };
        is(self.at, first) && is(self.at + 1, second)
    }

    /// The symbol after the name that is next.
    pub(crate) fn peek_after_name(&self) -> Option<&'static str> {
        match (self.peek(), self.tokens.get(self.at + 1)) {
            (Some(Token::Name(_) | Token::Quoted(_)), Some((Token::Symbol(symbol), _))) => {
                Some(symbol)
            }
            _ => None,
        }
    }

    /// Takes the bare word if it is next.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        self.at += usize::from(found);
        found
    }

    /// Takes the bare word that is next if it begins with this letter.
    pub(crate) fn eat_word_after(&mut self, letter: char) -> Option<&'a str> {
        match self.peek() {
            Some(Token::Name(name)) if name.starts_with(letter) => {
                let name = *name;
                self.at += 1;
                Some(name)
            }
            _ => None,
        }
    }

    /// Takes the bare word, which must be next.
    pub fn expect_word(&mut self, word: &str) -> Result<()> {
        match self.eat_word(word) {
            true => Ok(()),
            false => Err(self.error(&format!("`{word}`"))),
        }
    }

    /// A bare word.
    pub fn word(&mut self) -> Result<&'a str> {
        match self.peek() {
            Some(Token::Name(name)) => {
                let name = *name;
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.error("a word")),
        }
    }

    /// A name, bare or in quotes.
    pub fn name(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Quoted(_)) => self.quoted(),
            Some(Token::Name(_)) => self.word().map(str::to_string),
            _ => Err(self.error("a name")),
        }
    }

    /// Where an output goes: the tensor that it `replaces` and the file behind `->`, each if there is one.
    pub fn destination(&mut self) -> Result<(Option<String>, Option<String>)> {
        let replaces = self.eat_word("replaces");
        let replaces = replaces.then(|| self.name()).transpose()?;
        let file = self.eat("->").then(|| self.quoted()).transpose()?;
        Ok((replaces, file))
    }

    /// A string in quotes.
    pub fn quoted(&mut self) -> Result<String> {
        match self.peek() {
            Some(Token::Quoted(text)) => {
                let text = text.clone();
                self.at += 1;
                Ok(text)
            }
            _ => Err(self.error("a string")),
        }
    }

    /// A name that is a letter and a number, such as `r3`.
    pub fn numbered(&mut self, letter: char) -> Result<u32> {
        let found = match self.peek() {
            Some(Token::Name(name)) => name
                .strip_prefix(letter)
                .filter(|digits| digits.chars().all(|c| c.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok()),
            _ => None,
        };
        let number = found.ok_or_else(|| self.error(&format!("`{letter}0` or the like")))?;
        self.at += 1;
        Ok(number)
    }

    /// One of the names, or `#2`; gives its number.
    pub fn reference<'n>(
        &mut self,
        names: impl Iterator<Item = &'n str>,
        what: &str,
    ) -> Result<u32> {
        if self.eat("#") {
            return self.integer();
        }
        let error = self.error(what);
        let name = self.name()?;
        let found = (0..).zip(names).find(|(_, n)| *n == name);
        found.map(|(number, _)| number).ok_or(error)
    }

    /// A whole number, perhaps with a sign, that fits the type.
    pub fn integer<T: TryFrom<i128>>(&mut self) -> Result<T> {
        let error = self.error("a whole number that fits");
        let negative = self.eat("-");
        let value = match self.peek() {
            Some(Token::Number(text)) => text.parse::<i128>().ok(),
            _ => None,
        };
        self.at += 1;
        let value = value.map(|v| if negative { -v } else { v });
        value.and_then(|v| T::try_from(v).ok()).ok_or(error)
    }

    /// A number as `f64`.
    pub fn float(&mut self) -> Result<f64> {
        Ok(self.number(None)?.0.as_f64())
    }

    /// Whether the next tokens are a number (a sign may stand before its digits or `inf`).
    pub(crate) fn at_constant(&self) -> bool {
        let at = self.at + usize::from(self.peek_symbol() == Some("-"));
        match self.tokens.get(at) {
            Some((Token::Number(_), _)) => true,
            Some((Token::Name(name), _)) => constant_word(name).is_some(),
            _ => false,
        }
    }

    /// A number with the compute type that its form says; `only` demands a type.
    pub fn number(&mut self, only: Option<DType>) -> Result<(Scalar, DType)> {
        let error = self.error("a number");
        let negative = self.eat("-");
        let (mut value, dtype) = match self.peek() {
            Some(Token::Number(text)) => number_of(text),
            Some(Token::Name(name)) => constant_word(name),
            _ => None,
        }
        .ok_or_else(|| error.clone())?;
        self.at += 1;
        if matches!(value, Value::Float(x) if x.is_nan()) && self.eat("(") {
            let bits = match self.peek() {
                Some(Token::Number(text)) => text
                    .strip_prefix("0x")
                    .and_then(|hex| u64::from_str_radix(hex, 16).ok()),
                _ => None,
            };
            value = Value::Float(f64::from_bits(bits.ok_or_else(|| error.clone())?));
            self.at += 1;
            self.expect(")")?;
        }
        let scalar = match value {
            Value::Float(x) => Scalar::Float(if negative { -x } else { x }),
            Value::Int(x) => {
                let x = if negative { -x } else { x };
                Scalar::Int(i64::try_from(x).map_err(|_| error.clone())?)
            }
            Value::Bool(_) if negative => return Err(error),
            Value::Bool(x) => Scalar::Bool(x),
        };
        match only {
            Some(only) if only != dtype => Err(error),
            _ => Ok((scalar, dtype)),
        }
    }

    /// Items with commas between them, up to the closing symbol, which is taken.
    pub fn list<T>(
        &mut self,
        close: &str,
        mut item: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut items = vec![];
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            if !self.eat(",") {
                return Err(self.error(&format!("`,` or `{close}`")));
            }
        }
    }

    /// `files "a.ein", "b.ein"`, the whole line.
    pub fn files(&mut self) -> Result<Vec<String>> {
        self.expect_word("files")?;
        let mut files = vec![self.quoted()?];
        while self.eat(",") {
            files.push(self.quoted()?);
        }
        self.end()?;
        Ok(files)
    }

    /// The end of the line, with the origin if there is one: `// model.ein:5`.
    pub fn origin(&mut self, files: &[String]) -> Result<Origin> {
        let Some(Token::Comment(comment)) = self.peek() else {
            self.end()?;
            return Ok(Origin::default());
        };
        let error = self.error("a file of the program and a line, such as `// model.ein:5`");
        let origin = comment.rsplit_once(':').and_then(|(file, line)| {
            let number = match file.strip_prefix('#') {
                Some(number) => number.parse().ok()?,
                None => files.iter().position(|f| f == file)? as u32,
            };
            Some(Origin {
                file: number,
                line: line.parse().ok()?,
                ..Origin::default()
            })
        });
        self.at += 1;
        origin.ok_or(error)
    }

    /// Nothing but the end may follow.
    pub fn end(&self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("the end of the line")),
        }
    }
}
