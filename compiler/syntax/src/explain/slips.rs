//! Slips that are known: words and signs of other languages, words where names are wanted, operands with nothing between them.
//!
//! Each function looks for one kind and says what to write instead. Must not know what else would have been right.
//!
//! ```text
//! let y = 2 x   =>   E0116: `let` begins nothing here; a definition needs no keyword
//! y = 2 x       =>   E0117: nothing stands between `2` and `x`; write `2 * x` for the product
//! ```

use super::broken::{Broken, is_block};
use crate::elsewhere;
use crate::lexer::{Lexeme, Token};
use ein_plan::{DType, Reduction};
use einc_diag::{Diagnostic, did_you_mean};

impl Broken<'_> {
    /// Words of other languages at the start of a line.
    pub fn foreign(&self) -> Option<Diagnostic> {
        let at = match (self.start, self.first()?, self.at) {
            (Token::ItemStart, Token::Path | Token::For, 1..=2)
                if foreign(self.text(0)).is_some() =>
            {
                0
            }
            (_, _, 1..) if self.text(self.at - 1) == "if" => self.at - 1,
            _ => return None,
        };
        let help = foreign(self.text(at))?;
        let report = Diagnostic::error("E0116", format!("`{}` begins nothing here", self.text(at)));
        Some(report.at(self.span(at), "").help(help))
    }

    /// Something other than a name to put out.
    pub fn output(&self) -> Option<Diagnostic> {
        if self.first() != Some(Token::Output) || self.at != 2 {
            return None;
        }
        let name = self.text(1);
        let report = |message: &str, label: &str| {
            Diagnostic::error("E0116", message).at(self.span(self.at), label)
        };
        Some(match self.found()? {
            Token::OpenBracket => {
                report("an output is a name, not an element", "this picks elements")
                    .help(format!(
                        "define what is wanted, `part[i] = {name}[0,i]`, `output part`"
                    ))
                    .help(format!(
                        "a param of an instance has a path: `output {name}.0.w`"
                    ))
            }
            Token::Comma => report("an output is one name", "expected the end of the line").help(
                format!("give each output a line of its own: `output {name}`, then the next one"),
            ),
            _ => return None,
        })
    }

    /// `next` or `state` once more in a list of names.
    pub fn again(&self) -> Option<Diagnostic> {
        let role = |token| matches!(token, Some(Token::Next | Token::State));
        let is_it = role(self.first())
            && role(self.found())
            && self.before() == Some(Token::Comma)
            && self.expects("path")
            && !self.expects_operand();
        let first = self.text(0);
        is_it.then(|| {
            Diagnostic::error(
                "E0116",
                format!("`{first}` stands once, in front of all names"),
            )
            .at(self.span(self.at), "again here")
            .help(format!("write `{first} h, c = cell(…)`"))
        })
    }

    /// A word of the language where a name is wanted.
    pub fn name(&self) -> Option<Diagnostic> {
        let report = |at: usize| {
            Diagnostic::error(
                "E0119",
                format!(
                    "`{}` is a word of the language and cannot be a name",
                    self.text(at)
                ),
            )
            .at(self.span(at), "choose another name")
        };
        let found = self.found();
        if matches!(found, Some(Token::Reduction(_)))
            && (self.at == 0 || self.expects("path") && !self.expects_operand())
        {
            return Some(
                Diagnostic::error(
                    "E0119",
                    format!(
                        "`{}` before `[` is the reduction and cannot be a name",
                        self.text(self.at)
                    ),
                )
                .at(self.span(self.at), "choose another name"),
            );
        }
        let is_key = self.start == Token::EntryStart;
        if self.at == 1
            && !is_key
            && self.first().is_some_and(Token::is_reserved)
            && matches!(
                found,
                Some(
                    Token::Assign
                        | Token::OpenBracket
                        | Token::Colon
                        | Token::Comma
                        | Token::PlusAssign
                )
            )
        {
            return Some(report(0));
        }
        let found = found?;
        if found.is_reserved() && self.expects("path") && (self.at == 0 || !self.expects_operand())
        {
            if self.at == 0
                && matches!(
                    found,
                    Token::And | Token::Or | Token::Not | Token::Else | Token::Until
                )
            {
                return None;
            }
            return Some(report(self.at));
        }
        if found.is_item_keyword() && self.expects_operand() {
            return Some(report(self.at));
        }
        None
    }

    /// A reduction in the wrong place.
    pub fn reduction(&self) -> Option<Diagnostic> {
        let found = self.found();
        if let Some(Token::Reduction(_)) = found
            && self.expects_operand()
            && !self.expects("reduction")
        {
            let name = self.text(self.at);
            let before = self.text(self.at.checked_sub(1)?);
            return Some(
                Diagnostic::error(
                    "E0118",
                    format!("a reduction cannot stand after `{before}` here"),
                )
                .at(self.span(self.at), "")
                .help(format!("put it in brackets: `({name}[…] …)`")),
            );
        }
        let before = self.at.checked_sub(1)?;
        if self.before() == Some(Token::Path)
            && found.is_some_and(Token::begins_operand)
            && Reduction::from_name(self.text(before)).is_some()
        {
            let name = self.text(before);
            return Some(
                Diagnostic::error(
                    "E0118",
                    format!("`{name}` needs the indices that it runs over"),
                )
                .at(self.span(before), "expected `[` after it")
                .help(format!("write `{name}[i] …`")),
            );
        }
        if matches!(found, Some(Token::Star | Token::Slash | Token::Percent)) && !self.expects("*")
        {
            let at = self.divisor()?;
            let name = self.text(at);
            return Some(
                Diagnostic::error(
                    "E0118",
                    format!("after `/`, `{name}` takes one factor, and the term ends with it"),
                )
                .at(self.span(self.at), "this has two readings")
                .at(self.span(at), "")
                .help(format!(
                    "write `a / ({name}[…] b * c)` or `a / ({name}[…] b) * c`"
                )),
            );
        }
        None
    }

    /// The reduction after `/` whose factor has just ended.
    fn divisor(&self) -> Option<usize> {
        let mut depth = 0usize;
        for at in (1..self.at).rev() {
            match self.tokens[at].token {
                Token::CloseParen | Token::CloseBracket => depth += 1,
                Token::OpenParen | Token::OpenBracket => depth = depth.checked_sub(1)?,
                Token::Reduction(_) if depth == 0 => {
                    return (self.tokens[at - 1].token == Token::Slash).then_some(at);
                }
                _ => {}
            }
        }
        None
    }

    /// A word that is no element type where a type is wanted.
    pub fn element(&self) -> Option<Diagnostic> {
        let at = self.at.checked_sub(1)?;
        let after_colon = at > 0 && self.tokens[at - 1].token == Token::Colon;
        if !after_colon
            || !self.expects("(")
            || self.expects("=")
            || self.expects("*")
            || self.tokens[at].token != Token::Path
        {
            return None;
        }
        let names: Vec<&str> = (DType::ALL.iter().chain(&DType::COMPLEX))
            .map(|dtype| dtype.name())
            .collect();
        let report = Diagnostic::error("E0116", format!("`{}` is no element type", self.text(at)))
            .at(self.span(at), "");
        Some(match did_you_mean(self.text(at), names.iter().copied()) {
            Some(near) => report.help(format!("did you mean `{near}`?")),
            None => report.help(format!("the element types are {}", names.join(", "))),
        })
    }

    /// Two operands with nothing between them.
    pub fn side_by_side(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let before = self.at.checked_sub(1)?;
        if self.start == Token::EntryStart && self.bracket().is_none() {
            let words = ["over", "by", "shuffle", "every", "keep", "on", "then"];
            let candidates = words.into_iter().filter(|w| self.expects(w));
            let near = did_you_mean(self.text(self.at), candidates)?;
            return Some(self.expected().help(format!("did you mean `{near}`?")));
        }
        if !self.before()?.ends_operand() || !found.begins_operand() || !self.expects("*") {
            return None;
        }
        let (a, b) = (self.text(before), self.text(self.at));
        let glued = self.tokens[before].end == self.tokens[self.at].start;
        let report = Diagnostic::error("E0117", format!("nothing stands between `{a}` and `{b}`"))
            .at(self.span(self.at), "expected an operator before this");
        let assigned = |lexemes: &[Lexeme]| lexemes.iter().any(|l| l.token == Token::Assign);
        let (left, right) = self.tokens.split_at(self.at);
        let plain = |at: usize| !matches!(self.tokens[at].token, Token::String);
        Some(match self.before()? {
            _ if self.bracket().is_none() && assigned(left) && assigned(right) => {
                report.help("a new statement begins on a new line or after `;`")
            }
            Token::Integer if glued && b.starts_with(['x', 'b', 'o']) && a == "0" => {
                report.help("numbers are decimal")
            }
            Token::Integer | Token::Float if glued && matches!(b, "i" | "j") => {
                report.help(format!("an imaginary number is written `complex(0, {a})`"))
            }
            _ if b == "if" => report.help("a choice is an expression: `where(condition, a, b)`"),
            Token::CloseBracket if self.reduced(before).is_some() => {
                let name = self.reduced(before)?;
                let report = report.note(format!("`{name}` is no reduction; those are sum, prod, mean, max, min, argmax, any, all, count, …"));
                match elsewhere::function(name) {
                    Some(help) => report.help(help),
                    None => report,
                }
            }
            Token::CloseParen if self.called(before).is_some() => {
                let name = self.called(before)?;
                report.help(format!("indices stand in square brackets: `{name}[i] …`"))
            }
            _ if matches!(found, Token::Reduction(_)) => {
                report.help(format!("write `{a} * {b}[…] …` for the product"))
            }
            _ if plain(before) && plain(self.at) => {
                report.help(format!("write `{a} * {b}` for the product"))
            }
            _ => report,
        })
    }

    /// The name in front of the bracket that ends at a token, if it is called like a function that other languages reduce by.
    fn reduced(&self, end: usize) -> Option<&str> {
        let name = self.text(self.in_front(end)?);
        elsewhere::function(name).map(|_| name)
    }

    /// The reduction in front of the bracket that ends at a token, if there are names and commas alone in it.
    fn called(&self, end: usize) -> Option<&str> {
        let name = self.in_front(end)?;
        let mut inside = self.tokens[name + 2..end].iter();
        let plain = inside.all(|l| matches!(l.token, Token::Path | Token::Comma));
        let reduces = Reduction::from_name(self.text(name)).is_some();
        (reduces && plain).then(|| self.text(name))
    }

    /// The token in front of the bracket that ends at a token.
    fn in_front(&self, end: usize) -> Option<usize> {
        let mut depth = 0;
        let start = (0..=end).rev().find(|at| {
            match self.tokens[*at].token {
                Token::CloseBracket | Token::CloseParen => depth += 1,
                Token::OpenBracket | Token::OpenParen => depth -= 1,
                _ => {}
            }
            depth == 0
        })?;
        start.checked_sub(1)
    }

    /// A sign that means something elsewhere, or in another language.
    pub fn sign(&self) -> Option<Diagnostic> {
        let found = self.found()?;
        let help = match found {
            Token::Assign if self.first() == Some(Token::Output) => {
                let name = self.text(1);
                format!("define it in a line of its own, `{name} = …`, then write `output {name}`")
            }
            Token::Assign
                if self.bracket().is_some()
                    || self.tokens[..self.at]
                        .iter()
                        .any(|l| l.token == Token::Assign) =>
            {
                if self.bracket() == Some(Token::OpenParen)
                    && self.before().is_some_and(Token::is_name)
                    && matches!(
                        self.tokens.get(self.at.wrapping_sub(2)).map(|l| l.token),
                        Some(Token::Comma | Token::OpenParen)
                    )
                {
                    format!(
                        "named arguments are written `{}: …`, comparisons `==`",
                        self.text(self.at - 1)
                    )
                } else {
                    "a comparison is written `==`".to_owned()
                }
            }
            Token::Assign if matches!(self.first(), Some(Token::Assert | Token::Repeat)) => {
                "a comparison is written `==`".to_owned()
            }
            _ if is_block(found) && self.first() == Some(Token::Fn) && self.expects("->") => {
                format!(
                    "name the result: `fn {}(…) -> y[n] {{ y[n] = … }}`",
                    self.text(1)
                )
            }
            Token::Colon
                if self.bracket() == Some(Token::OpenBracket)
                    && matches!(self.before(), Some(Token::Comma | Token::OpenBracket)) =>
            {
                "a whole dimension has an index: `y[i,j] = A[i,j]`".to_owned()
            }
            Token::Comma if self.start == Token::EntryStart && self.bracket().is_none() => {
                "what follows stands on a line of its own or behind `;`".to_owned()
            }
            Token::Rest | Token::Colon
                if self.bracket() == Some(Token::OpenBracket)
                    && self.before() != Some(Token::Comma) =>
            {
                "a part of a tensor is written with a bounded index: `y[i < 3] = x[i + 1]`"
                    .to_owned()
            }
            Token::Dot if matches!(self.before(), Some(Token::Integer)) => {
                format!(
                    "a number has a digit on both sides of its point: `{}.0`",
                    self.text(self.at - 1)
                )
            }
            Token::Dot
                if self
                    .tokens
                    .get(self.at + 1)
                    .is_some_and(|l| l.token == Token::Integer) =>
            {
                format!(
                    "a number has a digit on both sides of its point: `0.{}`",
                    self.text(self.at + 1)
                )
            }
            Token::OpenParen
                if self.at == 1
                    && self.start == Token::ItemStart
                    && self.first().is_some_and(Token::is_name) =>
            {
                if self.tokens.iter().any(|l| l.token == Token::Assign) {
                    format!("a function begins with `fn`: `fn {}(…) = …`", self.text(0))
                } else {
                    format!("give the result a name: `y = {}(…)`", self.text(0))
                }
            }
            _ if self.first() == Some(Token::Repeat) && self.at == 1 => {
                "write `repeat k < n { … }` for n rounds".to_owned()
            }
            _ if self.first() == Some(Token::Repeat) && self.at == 2 => {
                format!("write `repeat {} < n {{ … }}` for n rounds", self.text(1))
            }
            Token::Minus if self.before() == Some(Token::Less) => "write `a < (-b)`".to_owned(),
            Token::Assign if self.first() == Some(Token::Fn) => {
                "a function with a named result has a body in braces: `{ y[n] = … }`".to_owned()
            }
            _ => return None,
        };
        Some(self.expected().help(help))
    }
}

/// What to write instead of a word of another language.
fn foreign(word: &str) -> Option<&'static str> {
    Some(match word {
        "let" | "var" | "val" | "auto" | "tensor" => "a definition needs no keyword: `y[i] = …`",
        "def" | "func" | "function" => "functions begin with `fn`: `fn f(x) = …`",
        "import" | "from" | "include" => "write `use std.nn`, or `use \"file.ein\"`",
        "return" => "results are named in the signature and defined like any other name",
        "if" => "a choice is an expression: `where(condition, a, b)`",
        "for" | "while" | "loop" => {
            "indices loop by themselves; rounds are written `repeat k < n until done { … }`"
        }
        "print" => "write `output y`",
        "class" | "struct" => "what owns parameters is a `module`",
        _ => return None,
    })
}
