//! Text to syntax tree: lexer, brackets, layout, then the grammar on one line at a time, innermost braces first.
//!
//! A line that does not parse is one message and does not touch its neighbours; what it defines is kept where its
//! left side parses, with [`ast::ExprKind::Error`] as its value, so that others may still refer to it. Must not know what
//! names mean.
//!
//! ```text
//! y[n] = x[n] +      =>   E0116: expected an expression after `+`, but the line ends
//! z[n] = 2 * y[n]    =>   parsed
//! ```

use crate::{
    ast::{self, Item, ItemKind, TrainEntry},
    brackets, check,
    explain::{self, Failure},
    grammar, layout,
    lexer::{self, Lexeme, Token},
    tree::{self, Builder},
};
use einc_diag::{Diagnostic, FileId, Span};

/// A file's tree and what was found wrong in it.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The tree; what did not parse is an `Error` in it.
    pub ast: ast::File,
    /// Syntax errors in source order; empty if the file parses.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a file of less than 4 GiB. Any text is accepted; errors are in the result.
pub fn parse(file: FileId, text: &str) -> Parsed {
    if u32::try_from(text.len()).is_err() {
        let error = Diagnostic::error("E0115", "this file is larger than 4 GiB");
        return Parsed {
            ast: ast::File::default(),
            diagnostics: vec![error],
        };
    }
    let mut parser = Parser {
        build: Builder {
            file,
            text,
            diagnostics: vec![],
            blocks: vec![],
        },
        grammar: grammar::LineParser::new(),
    };
    let lexemes = lexer::lex(text);
    explain::characters(&mut parser.build, &lexemes);
    let lexemes = brackets::balance(file, lexemes, &mut parser.build.diagnostics);
    let items = parser.items(layout::layout(text, &lexemes));
    let ast = ast::File { items };
    let mut diagnostics = parser.build.diagnostics;
    check::check(&ast, &mut diagnostics);
    diagnostics.sort_by_key(|d| d.labels.first().map(|label| label.span.start));
    Parsed { ast, diagnostics }
}

struct Parser<'text> {
    build: Builder<'text>,
    grammar: grammar::LineParser,
}

impl Parser<'_> {
    fn items(&mut self, block: layout::Block) -> Vec<Item> {
        let mut items = Vec::with_capacity(block.lines.len());
        for mut line in block.lines {
            let parsed = match self.line(&mut line, Token::ItemStart) {
                Some(tree::Line::Items(parsed)) => parsed,
                _ => vec![Item {
                    kind: ItemKind::Error(self.declared(&line.tokens)),
                    span: self.place(&line.tokens),
                    doc: None,
                }],
            };
            let doc = self.doc(&line.doc);
            items.extend(parsed.into_iter().map(|item| Item {
                doc: doc.clone(),
                ..item
            }));
        }
        items
    }

    fn entries(&mut self, block: layout::Block) -> Vec<TrainEntry> {
        let mut entries = Vec::with_capacity(block.lines.len());
        for mut line in block.lines {
            if let Some(tree::Line::Entry(entry)) = self.line(&mut line, Token::EntryStart) {
                entries.push(entry);
            }
        }
        entries
    }

    fn settings(&mut self, block: layout::Block) -> Vec<ast::Argument> {
        let mut settings = vec![];
        for mut line in block.lines {
            if let Some(tree::Line::Settings(list)) = self.line(&mut line, Token::SettingsStart) {
                settings.extend(list);
            }
        }
        settings
    }

    /// Parses the braces of a line, then the line.
    fn line(&mut self, line: &mut layout::Line, start: Token) -> Option<tree::Line> {
        if self.build.has_enough() {
            return None;
        }
        self.blocks(line, start);
        let tokens = &line.tokens;
        let failure = match self.run(tokens, start) {
            Ok(line) => return Some(line),
            Err(failure) => failure,
        };
        if !tokens.iter().any(|lexeme| lexeme.damaged) {
            let report = explain::explain(&self.build, tokens, start, &failure);
            self.build.diagnostics.push(report);
        }
        self.salvage(tokens, start)
    }

    fn blocks(&mut self, line: &mut layout::Line, start: Token) {
        let first = line.tokens.first().map(|lexeme| lexeme.token);
        let mut blocks = std::mem::take(&mut line.blocks).into_iter();
        for at in 0..line.tokens.len() {
            if !matches!(line.tokens[at].token, Token::Body(_)) {
                continue;
            }
            let Some(inner) = blocks.next() else { continue };
            let parsed = match (start, first) {
                (
                    Token::ItemStart,
                    Some(Token::Fn | Token::Module | Token::Optimizer | Token::Repeat),
                ) => tree::Block::Body(self.items(inner)),
                (Token::ItemStart, Some(Token::Train)) => tree::Block::Entries(self.entries(inner)),
                (Token::EntryStart, Some(Token::Group)) => {
                    tree::Block::Settings(self.settings(inner))
                }
                _ => tree::Block::Empty,
            };
            let number = self.build.blocks.len() as u32;
            line.tokens[at].token = match parsed {
                tree::Block::Entries(_) => Token::Entries(number),
                tree::Block::Settings(_) => Token::Settings(number),
                _ => Token::Body(number),
            };
            self.build.blocks.push(parsed);
        }
    }

    fn run(&mut self, tokens: &[Lexeme], start: Token) -> Result<tree::Line, Failure> {
        let at = tokens.first().map_or(0, |lexeme| lexeme.start);
        let triples = std::iter::once((at, start, at)).chain(
            tokens
                .iter()
                .map(|lexeme| (lexeme.start, lexeme.token, lexeme.end)),
        );
        self.grammar
            .parse(&mut self.build, triples)
            .map(|line| *line)
    }

    /// The line with `Error` in place of what stands after its first `=` (in `train`: `:`).
    fn salvage(&mut self, tokens: &[Lexeme], start: Token) -> Option<tree::Line> {
        let sign = match start {
            Token::ItemStart => Token::Assign,
            _ => Token::Colon,
        };
        let mut open = 0usize;
        let end = tokens.iter().position(|lexeme| {
            match lexeme.token {
                Token::OpenParen | Token::OpenBracket => open += 1,
                Token::CloseParen | Token::CloseBracket => open = open.saturating_sub(1),
                _ => {}
            }
            open == 0 && lexeme.token == sign
        })?;
        let rest = self.place(tokens.get(end + 1..)?);
        let mut shortened = tokens[..=end].to_vec();
        shortened.push(Lexeme {
            token: Token::Bad,
            start: rest.start.max(tokens[end].end),
            end: rest.end.max(tokens[end].end),
            damaged: true,
        });
        let reported = self.build.diagnostics.len();
        let line = self.run(&shortened, start).ok();
        self.build.diagnostics.truncate(reported);
        line
    }

    /// What a line would have declared, as far as its beginning says so.
    fn declared(&self, tokens: &[Lexeme]) -> Option<ast::Name> {
        use Token as T;
        let [first, second, ..] = tokens else {
            return None;
        };
        let kinds = [
            T::Dim,
            T::Const,
            T::Input,
            T::Param,
            T::Fn,
            T::Module,
            T::Optimizer,
        ];
        let (name, span) = match (first.token, second.token) {
            (T::Path, _) => (first, self.place(&tokens[..1])),
            (kind, T::Path) if kinds.contains(&kind) => (second, self.place(&tokens[1..2])),
            _ => return None,
        };
        let text = self.build.text((name.start, name.end)).to_owned();
        Some(ast::Name { text, span })
    }

    fn place(&self, tokens: &[Lexeme]) -> Span {
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => self.build.span(first.start, last.end),
            _ => self.build.span(0, 0),
        }
    }

    fn doc(&self, places: &[(u32, u32)]) -> Option<String> {
        if places.is_empty() {
            return None;
        }
        let lines: Vec<&str> = places
            .iter()
            .map(|&place| {
                let line = self.build.text(place).trim_start_matches("///");
                line.strip_prefix(' ').unwrap_or(line)
            })
            .collect();
        Some(lines.join("\n"))
    }
}
