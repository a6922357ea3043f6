//! The lexer: text to tokens, comments and newlines included; blanks and a byte order mark are dropped.
//!
//! Must not know brackets, lines that continue, or what a word means in its place: that is the layout pass's.
//! Every byte that is not blank belongs to exactly one token; what is no token of the language is [`Token::Bad`].
//!
//! ```text
//! y = 2*x[i] // twice   =>   Path Assign Integer Star Path OpenBracket Path CloseBracket Comment
//! ```

use ein_plan::Reduction;
use logos::Logos;

/// The kind of a token. What it says is the text at its place.
#[derive(Logos, Clone, Copy, Debug, PartialEq, Eq)]
#[logos(skip r"[ \t\r\u{c}\u{a0}\u{feff}]+")]
pub enum Token {
    // Layout.
    #[token("\n")]
    Newline,
    #[token(";")]
    Semicolon,
    #[regex(r"//[^\n]*", allow_greedy = true)]
    Comment,
    /// `///`, not `////`: documentation of the item that follows.
    Doc,

    // Words that are never names.
    #[token("dim")]
    Dim,
    #[token("input")]
    Input,
    #[token("param")]
    Param,
    #[token("const")]
    Const,
    #[token("output")]
    Output,
    #[token("use")]
    Use,
    #[token("assert")]
    Assert,
    #[token("fn")]
    Fn,
    #[token("module")]
    Module,
    #[token("optimizer")]
    Optimizer,
    #[token("schedule")]
    Schedule,
    #[token("train")]
    Train,
    #[token("repeat")]
    Repeat,
    #[token("until")]
    Until,
    #[token("state")]
    State,
    #[token("next")]
    Next,
    #[token("and")]
    And,
    #[token("or")]
    Or,
    #[token("not")]
    Not,
    #[token("else")]
    Else,
    #[token("true")]
    True,
    #[token("false")]
    False,
    #[token("inf")]
    #[token("nan")]
    #[token("pi")]
    Constant,
    #[token("f16")]
    #[token("bf16")]
    #[token("f32")]
    #[token("f64")]
    #[token("u8")]
    #[token("i32")]
    #[token("i64")]
    #[token("bool")]
    Element,

    // Words that are names everywhere but in their places.
    #[token("u16")]
    #[token("u32")]
    #[token("u64")]
    #[token("i8")]
    #[token("i16")]
    #[token("c64")]
    #[token("c128")]
    FurtherElement,
    #[token("over")]
    Over,
    #[token("by")]
    By,
    #[token("shuffle")]
    Shuffle,
    #[token("every")]
    Every,
    #[token("keep")]
    Keep,
    #[token("on")]
    On,
    #[token("then")]
    Then,
    #[token("group")]
    Group,
    #[token("for")]
    For,
    #[token("xor")]
    Xor,

    // Names and literals.
    /// A part of a path is a name or, of an array of instances, a number: `enc.3.att.wq`.
    #[regex(r"[\p{L}_][\p{L}\p{M}\p{Nd}_₀-₉']*(\.([\p{L}_][\p{L}\p{M}\p{Nd}_₀-₉']*|[0-9]+))*")]
    Path,
    #[regex(r"[0-9][0-9_]*")]
    Integer,
    #[regex(r"[0-9][0-9_]*\.[0-9][0-9_]*([eE][+-]?[0-9][0-9_]*)?")]
    #[regex(r"[0-9][0-9_]*[eE][+-]?[0-9][0-9_]*")]
    Float,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    String,

    // Operators and brackets.
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("*")]
    Star,
    #[token("/")]
    Slash,
    #[token("%")]
    Percent,
    #[token("^")]
    Caret,
    #[token("&")]
    Ampersand,
    #[token("|")]
    Bar,
    #[token("<<")]
    ShiftLeft,
    #[token(">>")]
    ShiftRight,
    #[token("==")]
    Equal,
    #[token("!=")]
    NotEqual,
    #[token("<")]
    Less,
    #[token("<=")]
    LessEqual,
    #[token(">")]
    Greater,
    #[token(">=")]
    GreaterEqual,
    #[token("=")]
    Assign,
    #[token("+=")]
    PlusAssign,
    #[token(":")]
    Colon,
    #[token(",")]
    Comma,
    #[token(".")]
    Dot,
    #[token("..")]
    Rest,
    #[token("->")]
    Arrow,
    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,

    /// What other languages write, and no token here.
    #[regex(r"&&|\|\||!|\*\*|:=|=>|[-*/%^]=|===|'[^'\n]*'|/\*")]
    /// A string without its closing quote.
    #[regex(r#""([^"\\\n]|\\[^\n])*\\?"#)]
    Bad,

    // Made by the layout pass.
    /// The name of a reduction before `[`.
    Reduction(Reduction),
    /// `count` before the indices that it counts over.
    Count,
    /// `max =` after `]`.
    MaxAssign,
    /// `min =` after `]`.
    MinAssign,
    /// Braces around a body; the number counts the blocks parsed so far.
    Body(u32),
    /// The braces of `train`.
    Entries(u32),
    /// The braces of `group`.
    Settings(u32),
    /// Before the tokens of an item.
    ItemStart,
    /// Before the tokens of a line of `train`.
    EntryStart,
    /// Before the tokens of the settings of a `group`.
    SettingsStart,
}

/// A token and its place, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lexeme {
    /// What it is.
    pub token: Token,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Whether an error at this place has been reported already.
    pub damaged: bool,
}

/// All tokens of `text`, which must be shorter than 4 GiB.
pub fn lex(text: &str) -> Vec<Lexeme> {
    let mut lexemes = Vec::with_capacity(text.len() / 3);
    for (token, range) in Token::lexer(text).spanned() {
        let token = match token {
            Ok(Token::Comment) => match &text[range.clone()] {
                t if t.starts_with("///") && !t.starts_with("////") => Token::Doc,
                _ => Token::Comment,
            },
            Ok(token) => token,
            Err(()) => Token::Bad,
        };
        let end = match token {
            Token::Comment | Token::Doc => range.start + text[range.clone()].trim_end().len(),
            _ => range.end,
        };
        lexemes.push(Lexeme {
            token,
            start: range.start as u32,
            end: end as u32,
            damaged: token == Token::Bad,
        });
    }
    lexemes
}

impl Token {
    /// Whether it begins an item and nothing else.
    pub fn is_item_keyword(self) -> bool {
        use Token::*;
        matches!(
            self,
            Dim | Input
                | Param
                | Const
                | Output
                | Use
                | Assert
                | Fn
                | Module
                | Optimizer
                | Schedule
                | Train
        )
    }

    /// Whether it is a binary operator (`-` included).
    pub fn is_binary(self) -> bool {
        use Token::*;
        matches!(
            self,
            Plus | Minus
                | Star
                | Slash
                | Percent
                | Caret
                | Ampersand
                | Bar
                | ShiftLeft
                | ShiftRight
                | Equal
                | NotEqual
                | Less
                | LessEqual
                | Greater
                | GreaterEqual
                | And
                | Or
        )
    }

    /// Whether it may stand as a name.
    pub fn is_name(self) -> bool {
        use Token::*;
        matches!(
            self,
            Path | Over
                | By
                | Shuffle
                | Every
                | Keep
                | On
                | Then
                | Group
                | For
                | Xor
                | FurtherElement
        )
    }

    /// Whether it is a word of the language that cannot be a name.
    pub fn is_reserved(self) -> bool {
        use Token::*;
        self.is_item_keyword()
            || matches!(
                self,
                Repeat
                    | Until
                    | State
                    | Next
                    | And
                    | Or
                    | Not
                    | Else
                    | True
                    | False
                    | Constant
                    | Element
            )
    }

    /// Whether an expression may end with it.
    pub fn ends_operand(self) -> bool {
        use Token::*;
        self.is_name()
            || matches!(
                self,
                True | False
                    | Constant
                    | Element
                    | Integer
                    | Float
                    | String
                    | CloseParen
                    | CloseBracket
            )
    }

    /// Whether an expression may begin with it, signs and brackets aside.
    pub fn begins_operand(self) -> bool {
        use Token::*;
        self.is_name()
            || matches!(
                self,
                True | False
                    | Constant
                    | Element
                    | Integer
                    | Float
                    | String
                    | Next
                    | Reduction(_)
                    | Count
            )
    }
}
