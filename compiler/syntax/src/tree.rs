//! The grammar's actions: they build the syntax tree from places and the text.
//!
//! Must not know tokens' order; the grammar does. Keeps every tree shallow: an expression deeper than
//! [`MAXIMUM_DEPTH`] operations (brackets not counted; the layout pass caps those) is reported and replaced,
//! so that whoever walks a tree by recursion is safe, dropping it included.
//!
//! ```text
//! build.binary(0, 5, Binary::Add, (2, 3), a, b)   =>   Binary { Add, a, b } at 0..5, one deeper than a and b
//! ```

// What the parser moves on its stack is boxed, in lists too: its symbols stay small.
#![allow(clippy::vec_box)]

mod expressions;

use crate::{ast::*, check::is_place};
use ein_plan::{DType, Reduction};
use einc_diag::{Diagnostic, FileId, Span};
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// Operations that may stand within one another in one expression.
pub const MAXIMUM_DEPTH: u32 = 256;

/// Errors after which nothing more is looked at in a file.
pub const ENOUGH: usize = 100;

/// A part of a tree with the number of operations on its longest path.
pub struct Measured<T> {
    /// The part.
    pub node: T,
    /// Its depth; a leaf has 0.
    pub depth: u32,
}

impl<T> Measured<T> {
    /// The same depth around another node.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Measured<U> {
        Measured {
            node: f(self.node),
            depth: self.depth,
        }
    }
}

/// A list as deep as its deepest element.
pub fn list<T>(items: Vec<Measured<T>>) -> Measured<Vec<T>> {
    let depth = items.iter().map(|item| item.depth).max().unwrap_or(0);
    Measured {
        node: items.into_iter().map(|item| item.node).collect(),
        depth,
    }
}

/// The list without the boxes.
#[allow(clippy::vec_box)] // the grammar's stack holds boxes
pub fn unbox<T>(items: Vec<Box<T>>) -> Vec<T> {
    items.into_iter().map(|item| *item).collect()
}

/// What a line of the file can be.
#[allow(clippy::large_enum_variant)] // on its way into a list of items
pub enum Line {
    /// Items of a file or a body: one, or the dims of `dim N, M`.
    Items(Vec<Item>),
    /// A line of a `train` block.
    Entry(TrainEntry),
    /// Settings of a `group`.
    Settings(Vec<Argument>),
}

/// The word of a reduction.
#[derive(Clone, Copy)]
pub enum ReductionWord {
    /// `sum`, `max`, …
    Of(Reduction),
    /// `count`: the sum of truth values as whole numbers.
    Count,
}

/// The content of braces that has been parsed before the line that holds them.
pub enum Block {
    /// A body.
    Body(Vec<Item>),
    /// The lines of `train`.
    Entries(Vec<TrainEntry>),
    /// The settings of a `group`.
    Settings(Vec<Argument>),
    /// Taken, or of a line that is in error.
    Empty,
}

/// What the grammar's actions need.
pub struct Builder<'text> {
    /// The file.
    pub file: FileId,
    /// Its text.
    pub text: &'text str,
    /// What was found wrong.
    pub diagnostics: Vec<Diagnostic>,
    /// Blocks that wait for the line that holds them.
    pub blocks: Vec<Block>,
}

/// Bytes `0..1`, as the grammar hands them over.
type Place = (u32, u32);

impl<'text> Builder<'text> {
    /// Whether so much is wrong that nothing more is looked at.
    pub fn has_enough(&self) -> bool {
        self.diagnostics.len() > ENOUGH
    }

    /// The bytes from `start` to `end`.
    pub fn span(&self, start: u32, end: u32) -> Span {
        Span {
            file: self.file,
            start,
            end,
        }
    }

    /// The text of a place.
    pub fn text(&self, (start, end): Place) -> &'text str {
        self.text.get(start as usize..end as usize).unwrap_or("")
    }

    fn normalised(&self, place: Place) -> String {
        let text = self.text(place);
        if is_nfc(text) {
            text.to_owned()
        } else {
            text.nfc().collect()
        }
    }

    /// The name at a place.
    pub fn name(&self, place: Place) -> Name {
        Name {
            text: self.normalised(place),
            span: self.span(place.0, place.1),
        }
    }

    /// A pattern of parameters: the text without blanks, quotes and comments.
    pub fn pattern(&self, start: u32, end: u32) -> Name {
        let text = self.normalised((start, end));
        Name {
            text: text
                .chars()
                .filter(|c| !c.is_whitespace() && *c != '"')
                .collect(),
            span: self.span(start, end),
        }
    }

    /// The element type at a place.
    pub fn dtype(&self, place: Place) -> DType {
        DType::from_name(self.text(place)).expect("the lexer knows the same names")
    }

    /// A string without its quotes and escapes.
    pub fn string_literal(&mut self, place: Place) -> StringLiteral {
        let raw = self.text(place);
        let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or("");
        let mut text = String::with_capacity(inner.len());
        let mut characters = inner.char_indices();
        while let Some((at, c)) = characters.next() {
            if c != '\\' {
                text.push(c);
                continue;
            }
            match characters.next() {
                Some((_, c @ ('"' | '\\'))) => text.push(c),
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((next, other)) => {
                    let start = place.0 + 1 + at as u32;
                    let end = place.0 + 1 + (next + other.len_utf8()) as u32;
                    self.diagnostics.push(
                        Diagnostic::error(
                            "E0111",
                            format!("`\\{other}` means nothing in a string"),
                        )
                        .at(self.span(start, end), "unknown escape")
                        .help("write `\\\\` for a backslash, or `/` between folders"),
                    );
                }
                None => {}
            }
        }
        StringLiteral {
            text,
            span: self.span(place.0, place.1),
        }
    }

    /// The items of a body.
    pub fn body(&mut self, number: u32) -> Vec<Item> {
        match self.take(number) {
            Block::Body(items) => items,
            _ => vec![],
        }
    }

    /// The lines of a `train` block.
    pub fn entries(&mut self, number: u32) -> Vec<TrainEntry> {
        match self.take(number) {
            Block::Entries(entries) => entries,
            _ => vec![],
        }
    }

    /// The settings of a `group`.
    pub fn settings(&mut self, number: u32) -> Vec<Argument> {
        match self.take(number) {
            Block::Settings(settings) => settings,
            _ => vec![],
        }
    }

    fn take(&mut self, number: u32) -> Block {
        self.blocks
            .get_mut(number as usize)
            .map_or(Block::Empty, |b| std::mem::replace(b, Block::Empty))
    }

    /// A definition; one with a computed place on its left side is a scatter.
    pub fn definition(
        &self,
        start: u32,
        end: u32,
        role: Role,
        targets: Vec<Box<Target>>,
        ty: Option<Box<Type>>,
        value: Expr,
    ) -> Box<Statement> {
        let (mut targets, ty) = (unbox(targets), ty.map(|ty| *ty));
        let span = self.span(start, end);
        let is_computed = |target: &Target| target.positions.iter().flatten().any(is_place);
        if role == Role::Plain && targets.len() == 1 && targets.iter().any(is_computed) {
            return Box::new(Statement::Scatter {
                target: targets.remove(0),
                ty,
                combine: Combine::Once,
                drops: false,
                value,
                span,
            });
        }
        Box::new(Statement::Definition {
            role,
            targets,
            ty,
            value,
            span,
        })
    }

    /// The dims of `dim N, M = 3`.
    pub fn dims(&self, first: Box<Item>, rest: Vec<Box<Item>>) -> Vec<Item> {
        let mut items = vec![*first];
        items.extend(unbox(rest));
        items
    }

    /// A scatter; several left sides are an error, and so is anything but `drop` behind `else`.
    pub fn scatter(
        &mut self,
        start: u32,
        end: u32,
        (targets, outside): (Vec<Box<Target>>, Option<Name>),
        ty: Option<Box<Type>>,
        combine: Combine,
        value: Expr,
    ) -> Box<Statement> {
        let mut targets = targets.into_iter();
        let target = targets.next().expect("the grammar has at least one");
        if let Some(second) = targets.next() {
            let sign = ["+=", "max=", "min="][combine as usize];
            self.diagnostics.push(
                Diagnostic::error("E0114", format!("`{sign}` defines one tensor at a time"))
                    .at(second.span, "a second one")
                    .help("write a statement for each"),
            );
        }
        if let Some(outside) = outside.as_ref().filter(|word| word.text != "drop") {
            self.diagnostics.push(
                Diagnostic::error(
                    "E0114",
                    "behind `else` stands what becomes of places outside",
                )
                .at(outside.span, "expected `drop`")
                .help("`g[at[n]] else drop: f32[V] += x[n]` leaves out what has no place in `g`"),
            );
        }
        Box::new(Statement::Scatter {
            target: *target,
            ty: ty.map(|ty| *ty),
            combine,
            drops: outside.is_some(),
            value,
            span: self.span(start, end),
        })
    }
}
