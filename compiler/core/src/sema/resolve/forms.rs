//! Questions about expressions, positions and items that their form answers.
//!
//! Must not know what names stand for.
//!
//! ```text
//! s <= t   =>   binds s, up to t inclusive;   a + b - c   =>   a, then + b, then - c
//! ```

use einc_diag::Span;
use einc_syntax::ast::{Binary, Expr, ExprKind, Formal, Item, ItemKind, Position, Statement, Type};

/// A chain of binary operators as its first operand and, from left to right, (whole so far, operator, operand).
pub(crate) fn spine(expr: &Expr) -> (&Expr, Vec<(&Expr, Binary, &Expr)>) {
    let (mut first, mut rest) = (expr, vec![]);
    while let ExprKind::Binary {
        operator,
        left,
        right,
        ..
    } = &*first.kind
    {
        rest.push((first, *operator, right));
        first = left;
    }
    rest.reverse();
    (first, rest)
}

/// A bound, and whether it is `<=`.
pub(crate) type Bound<'a> = (&'a Expr, bool);

/// The index that a position of a reduction or left side binds, its place, and its bound.
pub(crate) fn bound_index(position: &Position) -> Option<(&str, Span, Option<Bound<'_>>)> {
    match position {
        Position::Rest(span) => Some(("..", *span, None)),
        Position::Expr(expr) => match &*expr.kind {
            ExprKind::Binary {
                operator: operator @ (Binary::Less | Binary::LessEqual),
                left,
                right,
                ..
            } => match &*left.kind {
                ExprKind::Name(name) => Some((
                    name,
                    left.span,
                    Some((right, *operator == Binary::LessEqual)),
                )),
                _ => None,
            },
            _ => bare_name(position).map(|(name, span)| (name, span, None)),
        },
    }
}

/// The name that stands in a position, and its place, if there is nothing else.
pub(crate) fn bare_name(position: &Position) -> Option<(&str, Span)> {
    match position {
        Position::Expr(expr) => match &*expr.kind {
            ExprKind::Name(name) => Some((name, expr.span)),
            _ => None,
        },
        Position::Rest(_) => None,
    }
}

/// Returns the expression inside of brackets.
pub(crate) fn unbracket(expr: &Expr) -> &Expr {
    let mut inner = expr;
    while let ExprKind::Bracket(next) = &*inner.kind {
        inner = next;
    }
    inner
}

/// The sizes of a formal, wherever they are written.
pub(crate) fn formal_shape(formal: &Formal) -> Option<&Vec<Position>> {
    formal.shape.as_ref().or(match &formal.ty {
        Some(Type::Tensor { shape, .. }) => shape.as_ref(),
        _ => None,
    })
}

/// Returns whether an expression takes positions of `name`, or passes it on: it wants a whole tensor.
pub(crate) fn takes_whole(expr: &Expr, name: &str) -> bool {
    let is = |expr: &Expr| matches!(&*expr.kind, ExprKind::Name(n) if n == name);
    let inside = |positions: &[Position]| {
        positions.iter().any(|position| match position {
            Position::Expr(expr) => takes_whole(expr, name),
            Position::Rest(_) => false,
        })
    };
    let (first, rest) = spine(expr);
    std::iter::once(first)
        .chain(rest.into_iter().map(|(_, _, operand)| operand))
        .any(|part| match &*part.kind {
            ExprKind::Access { base, positions } => {
                is(base) || takes_whole(base, name) || inside(positions)
            }
            ExprKind::Call { arguments, .. } => arguments
                .iter()
                .any(|a| is(&a.value) || takes_whole(&a.value, name)),
            ExprKind::Bracket(inner) | ExprKind::Negate(inner) | ExprKind::Not(inner) => {
                takes_whole(inner, name)
            }
            ExprKind::Else { value, fallback } => {
                takes_whole(value, name) || takes_whole(fallback, name)
            }
            ExprKind::Chain { first, rest } => {
                takes_whole(first, name)
                    || rest.iter().any(|(_, operand)| takes_whole(operand, name))
            }
            ExprKind::Reduce { indices, body, .. } => takes_whole(body, name) || inside(indices),
            _ => false,
        })
}

/// The names that stand in an expression, each once.
pub(crate) fn names_in<'e>(expr: &'e Expr, names: &mut Vec<&'e str>) {
    let (first, rest) = spine(expr);
    for part in std::iter::once(first).chain(rest.into_iter().map(|(_, _, operand)| operand)) {
        match &*part.kind {
            ExprKind::Name(name) if !names.contains(&name.as_str()) => names.push(name),
            ExprKind::Bracket(inner) | ExprKind::Negate(inner) | ExprKind::Not(inner) => {
                names_in(inner, names)
            }
            ExprKind::Chain { first, rest } => {
                names_in(first, names);
                rest.iter()
                    .for_each(|(_, operand)| names_in(operand, names));
            }
            ExprKind::Call { arguments, .. } => {
                arguments
                    .iter()
                    .for_each(|argument| names_in(&argument.value, names));
            }
            _ => {}
        }
    }
}

/// The name that an item of a body defines.
pub(crate) fn item_name(item: &Item) -> &str {
    match &item.kind {
        ItemKind::Dim { name, .. } => &name.text,
        ItemKind::Const { target, .. } => &target.name.text,
        ItemKind::Param { name, .. } => &name.text,
        ItemKind::Statement(Statement::Scatter { target, .. }) => &target.name.text,
        ItemKind::Statement(Statement::Definition { targets, .. }) => {
            targets.first().map_or("", |target| &target.name.text)
        }
        ItemKind::Statement(Statement::Repeat { counter, .. }) => &counter.text,
        _ => "",
    }
}

/// Returns whether a name stands in an expression.
pub(crate) fn stands_in(e: &Expr, name: &str) -> bool {
    let mut found = vec![];
    names_in(e, &mut found);
    found.contains(&name)
}

/// Returns whether a name stands alone in a position of an access in an expression.
pub(crate) fn stands_alone(e: &Expr, name: &str) -> bool {
    let mut open = vec![e];
    while let Some(e) = open.pop() {
        let alone = |position| bare_name(position).is_some_and(|(bare, _)| bare == name);
        if let ExprKind::Access { positions, .. } = &*e.kind
            && positions.iter().any(alone)
        {
            return true;
        }
        open.extend(e.kind.children());
    }
    false
}

/// The first access of a name in an expression that has `..`, or of a call if there is none: what is read, and its positions.
pub(crate) fn access_with_rest(expr: &Expr) -> Option<(&Expr, &[Position])> {
    let (mut called, mut open) = (None, vec![expr]);
    while let Some(expr) = open.pop() {
        let is_rest = |position: &Position| matches!(position, Position::Rest(_));
        if let ExprKind::Access { base, positions } = &*expr.kind
            && positions.iter().any(is_rest)
        {
            if matches!(&*base.kind, ExprKind::Name(_)) {
                return Some((base, positions));
            }
            called.get_or_insert((base, positions.as_slice()));
        }
        open.extend(expr.kind.children().into_iter().rev());
    }
    called
}

/// The identity of an expression of the text: the place where it is stored.
pub(crate) fn key(expr: &Expr) -> usize {
    std::ptr::from_ref(&*expr.kind) as usize
}
