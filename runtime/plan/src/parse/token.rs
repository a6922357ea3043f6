//! Tokens: names, numbers, strings, symbols and comments.
//!
//! Must not know how tokens make lines.
//!
//! ```text
//! r3   10   1.5e-7_f64   "a b"   ->   // model.ein:5
//! ```

use crate::dtype::DType;
use crate::print::{continues_name, starts_name};

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Name(&'a str),
    Quoted(String),
    Number(&'a str),
    Symbol(&'static str),
    Comment(&'a str),
}

const SYMBOLS: [&str; 27] = [
    "->", "==", "!=", "<=", ">=", "..", "(", ")", "[", "]", "{", "}", ":", ",", ";", "=", "<", ">",
    "+", "-", "*", "/", "@", "|", "#", "$", ".",
];

/// A number.
pub(super) enum Value {
    Float(f64),
    Int(i128),
    Bool(bool),
}

/// The numbers that are words.
pub(super) fn constant_word(word: &str) -> Option<(Value, DType)> {
    Some(match word {
        "inf" => (Value::Float(f64::INFINITY), DType::F32),
        "inf_f64" => (Value::Float(f64::INFINITY), DType::F64),
        "nan" => (Value::Float(f64::NAN), DType::F32),
        "nan_f64" => (Value::Float(f64::NAN), DType::F64),
        "true" => (Value::Bool(true), DType::Bool),
        "false" => (Value::Bool(false), DType::Bool),
        _ => return None,
    })
}

/// The number of that text.
pub(super) fn number_of(text: &str) -> Option<(Value, DType)> {
    let (digits, suffix) = match text.split_once('_') {
        Some((digits, suffix)) => (digits, Some(DType::from_name(suffix)?)),
        None => (text, None),
    };
    if digits.contains(['.', 'e']) {
        let dtype = suffix.unwrap_or(DType::F32);
        let value = Value::Float(digits.parse().ok()?);
        dtype.is_float().then_some((value, dtype))
    } else {
        let dtype = suffix.unwrap_or(DType::I64);
        let value = Value::Int(digits.parse().ok()?);
        dtype.is_integer().then_some((value, dtype))
    }
}

/// The token at the start of `rest`, which begins with `first`, and its length in bytes.
pub(super) fn token(first: char, rest: &str) -> Option<(Token<'_>, usize)> {
    if let Some(comment) = rest.strip_prefix("//") {
        return Some((Token::Comment(comment.trim()), rest.len()));
    }
    if first == '"' {
        return quoted(rest);
    }
    if first.is_ascii_digit() {
        let length = number_length(rest.as_bytes());
        return Some((Token::Number(&rest[..length]), length));
    }
    if starts_name(first) {
        let mut length = 0;
        let mut characters = rest.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            let joins = c == '.' && characters.peek().is_some_and(|(_, c)| continues_name(*c));
            if !continues_name(c) && !joins {
                break;
            }
            length = at + c.len_utf8();
        }
        return Some((Token::Name(&rest[..length]), length));
    }
    let symbol = SYMBOLS.into_iter().find(|s| rest.starts_with(s))?;
    Some((Token::Symbol(symbol), symbol.len()))
}

/// Length of `12`, `1.5`, `1e-7`, `0x7ff8`, with a type such as `_f64` after it.
fn number_length(text: &[u8]) -> usize {
    let is = |at: usize, test: fn(&u8) -> bool| text.get(at).is_some_and(test);
    let digits = |mut at: usize, test: fn(&u8) -> bool| {
        while is(at, test) {
            at += 1;
        }
        at
    };
    if text.starts_with(b"0x") {
        return digits(2, u8::is_ascii_hexdigit);
    }
    let mut at = digits(0, u8::is_ascii_digit);
    if is(at, |c| *c == b'.') && is(at + 1, u8::is_ascii_digit) {
        at = digits(at + 1, u8::is_ascii_digit);
    }
    if is(at, |c| *c == b'e') {
        let sign = usize::from(is(at + 1, |c| *c == b'-' || *c == b'+'));
        if is(at + 1 + sign, u8::is_ascii_digit) {
            at = digits(at + 1 + sign, u8::is_ascii_digit);
        }
    }
    if is(at, |c| *c == b'_') {
        at = digits(at + 1, u8::is_ascii_alphanumeric);
    }
    at
}

/// A string in quotes, with the escapes of Rust's `{:?}`.
fn quoted(rest: &str) -> Option<(Token<'_>, usize)> {
    let mut text = String::new();
    let mut characters = rest.char_indices().skip(1);
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Some((Token::Quoted(text), at + 1)),
            '\\' => match characters.next()?.1 {
                'n' => text.push('\n'),
                'r' => text.push('\r'),
                't' => text.push('\t'),
                '0' => text.push('\0'),
                'u' => {
                    characters.next().filter(|(_, c)| *c == '{')?;
                    let mut code = 0u32;
                    loop {
                        match characters.next()?.1 {
                            '}' => break,
                            digit => {
                                code = code.checked_mul(16)?.checked_add(digit.to_digit(16)?)?;
                            }
                        }
                    }
                    text.push(char::from_u32(code)?);
                }
                other => text.push(other),
            },
            other => text.push(other),
        }
    }
    None
}
