//! What a failure to parse says to the user.
//!
//! Must not know how the grammar is built, only the names of its tokens; none of them reaches the user.
//!
//! ```text
//! y = sum x[i]   =>   E0118: `sum` needs the indices that it runs over
//! ```

use crate::{
    lexer::{Lexeme, Token},
    parse::{ENOUGH, Failure},
    tree::Builder,
};
use ein_plan::{DType, Reduction};
use einc_diag::{Diagnostic, Span, did_you_mean};
use lalrpop_util::ParseError;

/// Reports what is no token.
pub fn characters(build: &mut Builder<'_>, lexemes: &[Lexeme]) {
    let mut reported = None;
    for lexeme in lexemes.iter().filter(|l| l.token == Token::Bad) {
        if build.diagnostics.len() > ENOUGH {
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
        .or_else(|| line.name())
        .or_else(|| line.reduction())
        .or_else(|| line.element())
        .or_else(|| line.side_by_side())
        .or_else(|| line.sign())
        .unwrap_or_else(|| line.expected())
}

/// A line that does not parse.
struct Broken<'a> {
    build: &'a Builder<'a>,
    tokens: &'a [Lexeme],
    start: Token,
    /// The token at which it stopped; the number of tokens: at the end.
    at: usize,
    /// Names of tokens that would have been right.
    expected: Vec<&'a str>,
}

impl Broken<'_> {
    fn found(&self) -> Option<Token> {
        self.tokens.get(self.at).map(|l| l.token)
    }

    fn before(&self) -> Option<Token> {
        self.at
            .checked_sub(1)
            .and_then(|at| self.tokens.get(at))
            .map(|l| l.token)
    }

    fn first(&self) -> Option<Token> {
        self.tokens.first().map(|l| l.token)
    }

    fn span(&self, at: usize) -> Span {
        match self.tokens.get(at).or(self.tokens.last()) {
            Some(lexeme) if is_block(lexeme.token) => {
                self.build.span(lexeme.start, lexeme.start + 1)
            }
            Some(lexeme) => self.build.span(lexeme.start, lexeme.end),
            None => self.build.span(0, 0),
        }
    }

    /// The text of a token, at most 60 characters of it.
    fn text(&self, at: usize) -> &str {
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

    fn expects(&self, name: &str) -> bool {
        self.expected.contains(&name)
    }

    /// Whether an expression may begin here.
    fn expects_operand(&self) -> bool {
        self.expects("integer") && self.expects("path") && self.expects("(")
    }

    /// The innermost bracket that is open here.
    fn bracket(&self) -> Option<Token> {
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

    fn unexpected(&self) -> Diagnostic {
        self.expected()
    }

    /// Words of other languages at the start of a line.
    fn foreign(&self) -> Option<Diagnostic> {
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

    /// A word of the language where a name is wanted.
    fn name(&self) -> Option<Diagnostic> {
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
        let last = |token| self.before() == Some(token);
        if let Some(Token::Next | Token::State) = found
            && last(Token::Comma)
            && matches!(self.first(), Some(Token::Next | Token::State))
            && self.expects("path")
            && !self.expects_operand()
        {
            let first = self.text(0);
            return Some(
                Diagnostic::error(
                    "E0116",
                    format!("`{first}` stands once, in front of all names"),
                )
                .at(self.span(self.at), "again here")
                .help(format!("write `{first} h, c = cell(…)`")),
            );
        }
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
    fn reduction(&self) -> Option<Diagnostic> {
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
    fn element(&self) -> Option<Diagnostic> {
        let at = self.at.checked_sub(1)?;
        let after_colon = at > 0 && self.tokens[at - 1].token == Token::Colon;
        if !after_colon
            || !self.expects("(")
            || self.expects("=")
            || self.tokens[at].token != Token::Path
        {
            return None;
        }
        let names = DType::ALL.map(DType::name);
        let report = Diagnostic::error("E0116", format!("`{}` is no element type", self.text(at)))
            .at(self.span(at), "");
        Some(match did_you_mean(self.text(at), names) {
            Some(near) => report.help(format!("did you mean `{near}`?")),
            None => report.help(format!("the element types are {}", names.join(", "))),
        })
    }

    /// Two operands with nothing between them.
    fn side_by_side(&self) -> Option<Diagnostic> {
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
            _ if matches!(found, Token::Reduction(_)) => {
                report.help(format!("write `{a} * {b}[…] …` for the product"))
            }
            _ if plain(before) && plain(self.at) => {
                report.help(format!("write `{a} * {b}` for the product"))
            }
            _ => report,
        })
    }

    /// A sign that means something elsewhere, or in another language.
    fn sign(&self) -> Option<Diagnostic> {
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
        Some(self.unexpected().help(help))
    }

    /// What would have been right.
    fn expected(&self) -> Diagnostic {
        let what = self.wanted();
        if self.at >= self.tokens.len() {
            let last = self.tokens.len().saturating_sub(1);
            let text = self.text(last);
            let report = Diagnostic::error(
                "E0116",
                format!("the line ends after `{text}`, where more must follow"),
            )
            .at(self.span(last), format!("expected {what} after this"));
            return match self.first() {
                Some(Token::Path) if self.tokens.iter().all(|l| l.token != Token::Assign) => {
                    report.help("a line defines something, `y[i] = …`, or begins with a word such as `output`")
                }
                _ => report,
            };
        }
        Diagnostic::error(
            "E0116",
            format!("expected {what}, found `{}`", self.text(self.at)),
        )
        .at(self.span(self.at), "")
    }

    fn wanted(&self) -> String {
        let mut words: Vec<String> = vec![];
        let mut word = |w: &str| words.push(w.to_owned());
        if self.at == 0 {
            return match self.start {
                Token::ItemStart => "a definition or a word such as `input` or `output`".to_owned(),
                Token::EntryStart => "a setting such as `loss: …`".to_owned(),
                _ => "a setting such as `weight_decay: 0`".to_owned(),
            };
        }
        let operand = self.expects_operand();
        let operator = self.expects("*") && self.expects("+") || self.expects("and");
        if operand {
            word("an expression");
        } else if self.expects("element") {
            word("a type such as `f32[N]`");
        } else if self.expects("integer") {
            word("a number");
        } else if self.expects("path") {
            word("a name");
        }
        if self.expects("string") && !operand {
            word("a string");
        }
        if operator && !operand {
            word("an operator");
        }
        let signs = [
            "=", "+=", ":", ",", ")", "]", "->", "for", "until", "over", "by", "shuffle", "every",
            "keep", "on", "then", "..", "<",
        ];
        for sign in signs {
            let is_word = sign.starts_with(char::is_alphabetic);
            let plain = match sign {
                "<" => !operator && !operand,
                ".." => !operand,
                _ if is_word => !self.expects("path"),
                _ => true,
            };
            if self.expects(sign) && plain {
                word(&format!("`{sign}`"));
            }
        }
        if ["(", "["].iter().all(|s| self.expects(s)) && !operand && !operator {
            word("`[`");
        } else if !operand && !operator {
            for sign in ["(", "["] {
                if self.expects(sign) {
                    word(&format!("`{sign}`"));
                }
            }
        }
        if ["body", "entries", "settings"]
            .iter()
            .any(|s| self.expects(s))
        {
            word("`{`");
        }
        let may_end = match self.first() {
            _ if operand => false,
            Some(Token::Output | Token::Use | Token::Dim) => true,
            Some(Token::Input | Token::Param) if self.expects("=") => true,
            _ => operator || self.before().is_some_and(is_block),
        };
        if may_end && self.bracket().is_none() && self.at < self.tokens.len() {
            word("the end of the line");
        }
        match words.split_last() {
            None => "the end of the line".to_owned(),
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
        }
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

fn is_block(token: Token) -> bool {
    matches!(
        token,
        Token::Body(_) | Token::Entries(_) | Token::Settings(_)
    )
}
