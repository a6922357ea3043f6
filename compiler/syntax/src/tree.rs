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

    /// An expression whose deepest part has `depth` operations.
    pub fn node(&mut self, start: u32, end: u32, depth: u32, kind: ExprKind) -> Measured<Expr> {
        if depth >= MAXIMUM_DEPTH {
            self.too_deep(start, end);
            return self.leaf((start, end), ExprKind::Error);
        }
        Measured {
            node: Expr {
                kind: Box::new(kind),
                span: self.span(start, end),
            },
            depth: depth + 1,
        }
    }

    fn too_deep(&mut self, start: u32, end: u32) {
        // A part of it, or its brackets, may have been reported.
        let said = |d: &Diagnostic| {
            d.code == "E0115"
                && d.labels
                    .first()
                    .is_some_and(|l| (start..=end).contains(&l.span.start))
        };
        if !self.diagnostics.iter().any(said) {
            self.diagnostics.push(
                Diagnostic::error(
                    "E0115",
                    format!("this expression is more than {MAXIMUM_DEPTH} operations deep"),
                )
                .at(self.span(start, end), "")
                .help("give names to its parts: `part[i] = …`"),
            );
        }
    }

    /// An expression without parts.
    pub fn leaf(&mut self, place: Place, kind: ExprKind) -> Measured<Expr> {
        Measured {
            node: Expr {
                kind: Box::new(kind),
                span: self.span(place.0, place.1),
            },
            depth: 0,
        }
    }

    /// A name as an expression.
    pub fn path(&mut self, place: Place) -> Measured<Expr> {
        let name = self.normalised(place);
        self.leaf(place, ExprKind::Name(name))
    }

    /// A string as an expression.
    pub fn string(&mut self, place: Place) -> Measured<Expr> {
        let text = self.string_literal(place).text;
        self.leaf(place, ExprKind::String(text))
    }

    /// A whole number; beyond 64 bits it is reported.
    pub fn integer(&mut self, place: Place) -> Measured<Expr> {
        match self.digits(place).parse() {
            Ok(number) => self.leaf(place, ExprKind::Integer(number)),
            Err(_) => self.too_large(place, "whole numbers go up to 18446744073709551615"),
        }
    }

    /// A number with a point or exponent; beyond the range of `f64` it is reported.
    pub fn float(&mut self, place: Place) -> Measured<Expr> {
        match self.digits(place).parse::<f64>() {
            Ok(number) if number.is_finite() => self.leaf(place, ExprKind::Float(number)),
            _ => self.too_large(place, "numbers go up to about 1.8e308; `inf` is infinity"),
        }
    }

    fn digits(&self, place: Place) -> String {
        self.text(place).chars().filter(|c| *c != '_').collect()
    }

    fn too_large(&mut self, place: Place, note: &str) -> Measured<Expr> {
        let text = self.text(place);
        let shown = if text.len() > 24 {
            format!("{}…", &text[..20])
        } else {
            text.to_owned()
        };
        self.diagnostics.push(
            Diagnostic::error("E0112", format!("the number {shown} is too large"))
                .at(self.span(place.0, place.1), "")
                .note(note),
        );
        self.leaf(place, ExprKind::Error)
    }

    /// `a operator b`.
    pub fn binary(
        &mut self,
        start: u32,
        end: u32,
        operator: Binary,
        place: Place,
        a: Measured<Expr>,
        b: Measured<Expr>,
    ) -> Measured<Expr> {
        let operator_span = self.span(place.0, place.1);
        let kind = ExprKind::Binary {
            operator,
            operator_span,
            left: a.node,
            right: b.node,
        };
        self.node(start, end, a.depth.max(b.depth), kind)
    }

    /// One comparison, or a chain.
    pub fn comparison(
        &mut self,
        start: u32,
        end: u32,
        first: Measured<Expr>,
        rest: Vec<((Binary, Place), Measured<Expr>)>,
    ) -> Measured<Expr> {
        let mut depth = first.depth;
        let mut links = Vec::with_capacity(rest.len());
        for ((operator, place), operand) in rest {
            depth = depth.max(operand.depth);
            links.push((operator, place, operand.node));
        }
        if links.len() == 1
            && let Some((operator, place, right)) = links.pop()
        {
            let right = Measured { node: right, depth };
            return self.binary(start, end, operator, place, first, right);
        }
        let kind = ExprKind::Chain {
            first: first.node,
            rest: links.into_iter().map(|(o, _, e)| (o, e)).collect(),
        };
        self.node(start, end, depth, kind)
    }

    /// `sum[i] body`.
    pub fn reduce(
        &mut self,
        start: u32,
        end: u32,
        (word, name_start, name_end): (ReductionWord, u32, u32),
        indices: Measured<Vec<Position>>,
        body: Measured<Expr>,
    ) -> Measured<Expr> {
        let (reduction, body) = match word {
            ReductionWord::Of(reduction) => (reduction, body),
            ReductionWord::Count => (Reduction::Sum, self.truth_as_number(body)),
        };
        let kind = ExprKind::Reduce {
            reduction,
            reduction_span: self.span(name_start, name_end),
            indices: indices.node,
            body: body.node,
        };
        self.node(start, end, indices.depth.max(body.depth), kind)
    }

    /// `i64(truth and true)`: 1 where it holds and 0 elsewhere; a number in its place is an error.
    fn truth_as_number(&mut self, truth: Measured<Expr>) -> Measured<Expr> {
        let Span { start, end, .. } = truth.node.span;
        let place = (start, end);
        let yes = self.leaf(place, ExprKind::Bool(true));
        let truth = self.binary(start, end, Binary::And, place, truth, yes);
        let callee = self.leaf(place, ExprKind::Name(DType::I64.name().to_owned()));
        let argument = truth.map(|value| Argument { name: None, value });
        self.call(start, end, callee, vec![argument])
    }

    /// `base[positions]`.
    pub fn access(
        &mut self,
        start: u32,
        end: u32,
        base: Measured<Expr>,
        positions: Measured<Vec<Position>>,
    ) -> Measured<Expr> {
        let depth = base.depth.max(positions.depth);
        let kind = ExprKind::Access {
            base: base.node,
            positions: positions.node,
        };
        self.node(start, end, depth, kind)
    }

    /// `callee(arguments)`.
    pub fn call(
        &mut self,
        start: u32,
        end: u32,
        callee: Measured<Expr>,
        arguments: Vec<Measured<Argument>>,
    ) -> Measured<Expr> {
        let arguments = list(arguments);
        let depth = callee.depth.max(arguments.depth);
        let kind = ExprKind::Call {
            callee: callee.node,
            arguments: arguments.node,
        };
        self.node(start, end, depth, kind)
    }

    /// `value else fallback`.
    pub fn fallback(
        &mut self,
        start: u32,
        end: u32,
        value: Measured<Expr>,
        fallback: Measured<Expr>,
    ) -> Measured<Expr> {
        let depth = value.depth.max(fallback.depth);
        let kind = ExprKind::Else {
            value: value.node,
            fallback: fallback.node,
        };
        self.node(start, end, depth, kind)
    }

    /// `(a)`; brackets are not counted, the layout pass caps them.
    pub fn bracket(&mut self, start: u32, end: u32, a: Measured<Expr>) -> Measured<Expr> {
        Measured {
            node: Expr {
                kind: Box::new(ExprKind::Bracket(a.node)),
                span: self.span(start, end),
            },
            depth: a.depth,
        }
    }

    /// `(first, rest…)`.
    pub fn tuple(
        &mut self,
        start: u32,
        end: u32,
        first: Measured<Expr>,
        rest: Vec<Measured<Expr>>,
    ) -> Measured<Expr> {
        let rest = list(rest);
        let depth = first.depth.max(rest.depth);
        let mut items = vec![first.node];
        items.extend(rest.node);
        self.node(start, end, depth, ExprKind::Tuple(items))
    }

    /// `[items…]`.
    pub fn list(&mut self, start: u32, end: u32, items: Vec<Measured<Expr>>) -> Measured<Expr> {
        let items = list(items);
        self.node(start, end, items.depth, ExprKind::List(items.node))
    }
}
