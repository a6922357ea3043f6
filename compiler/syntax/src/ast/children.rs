//! The expressions that an expression is made of.
//!
//! Must not know what any of them means.
//!
//! ```text
//! X[n, d+1] * w[d]   =>   X[n, d+1], w[d];   X[n, d+1]   =>   X, n, d+1
//! ```

use super::{Expr, ExprKind, Position};

impl ExprKind {
    /// The expressions that it is made of, in the order of the text, also those in positions and arguments.
    pub fn children(&self) -> Vec<&Expr> {
        fn inside(position: &Position) -> Option<&Expr> {
            match position {
                Position::Expr(expr) => Some(expr),
                Position::Rest(_) => None,
            }
        }
        match self {
            ExprKind::Integer(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::Name(_)
            | ExprKind::Next(_)
            | ExprKind::Error => vec![],
            ExprKind::Access { base, positions } => {
                let positions = positions.iter().filter_map(inside);
                std::iter::once(base).chain(positions).collect()
            }
            ExprKind::Call { callee, arguments } => {
                let values = arguments.iter().map(|argument| &argument.value);
                std::iter::once(callee).chain(values).collect()
            }
            ExprKind::Else { value, fallback } => vec![value, fallback],
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Bracket(inner) => {
                vec![inner]
            }
            ExprKind::Binary { left, right, .. } => vec![left, right],
            ExprKind::Chain { first, rest } => {
                let rest = rest.iter().map(|(_, operand)| operand);
                std::iter::once(first).chain(rest).collect()
            }
            ExprKind::Reduce { indices, body, .. } => {
                let indices = indices.iter().filter_map(inside);
                indices.chain([body]).collect()
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter().collect(),
        }
    }

    /// [`ExprKind::children`], to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        fn inside(position: &mut Position) -> Option<&mut Expr> {
            match position {
                Position::Expr(expr) => Some(expr),
                Position::Rest(_) => None,
            }
        }
        match self {
            ExprKind::Integer(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::Name(_)
            | ExprKind::Next(_)
            | ExprKind::Error => vec![],
            ExprKind::Access { base, positions } => {
                let positions = positions.iter_mut().filter_map(inside);
                std::iter::once(base).chain(positions).collect()
            }
            ExprKind::Call { callee, arguments } => {
                let values = arguments.iter_mut().map(|argument| &mut argument.value);
                std::iter::once(callee).chain(values).collect()
            }
            ExprKind::Else { value, fallback } => vec![value, fallback],
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Bracket(inner) => {
                vec![inner]
            }
            ExprKind::Binary { left, right, .. } => vec![left, right],
            ExprKind::Chain { first, rest } => {
                let rest = rest.iter_mut().map(|(_, operand)| operand);
                std::iter::once(first).chain(rest).collect()
            }
            ExprKind::Reduce { indices, body, .. } => {
                let indices = indices.iter_mut().filter_map(inside);
                indices.chain([body]).collect()
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => items.iter_mut().collect(),
        }
    }
}
