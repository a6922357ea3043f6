//! What would have been right where a line does not parse, in the user's words.
//!
//! Must not know why something else stands there.
//!
//! ```text
//! y[n] = x[n] +   =>   E0116: the line ends after `+`, where more must follow; expected an expression after this
//! ```

use super::broken::{Broken, is_block};
use crate::lexer::Token;
use einc_diag::Diagnostic;

impl Broken<'_> {
    /// What would have been right.
    pub fn expected(&self) -> Diagnostic {
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
        let message = format!("expected {what}, found `{}`", self.text(self.at));
        let report = Diagnostic::error("E0116", message).at(self.span(self.at), "");
        match self.found() {
            Some(Token::Not) if self.expects_operand() => {
                report.help("a `not` behind other words or signs stands in brackets: `(not …)`")
            }
            _ => report,
        }
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
