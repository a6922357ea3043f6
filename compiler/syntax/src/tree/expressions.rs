//! The grammar's actions that build expressions; each knows its depth.
//!
//! Must not know statements.
//!
//! ```text
//! build.binary(0, 5, Binary::Add, (2, 3), a, b)   =>   Binary { Add, a, b } at 0..5, one deeper than a and b
//! ```

use super::{Builder, MAXIMUM_DEPTH, Measured, Place, ReductionWord, list};
use crate::ast::*;
use ein_plan::{DType, Reduction};
use einc_diag::{Diagnostic, Span};

impl Builder<'_> {
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
