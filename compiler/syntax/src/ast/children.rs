//! The expressions that an expression is made of.
//!
//! Must not know what any of them means.
//!
//! ```text
//! X[n, d+1] * w[d]   =>   X[n, d+1], w[d];   X[n, d+1]   =>   X, n, d+1
//! ```

use super::{Expr, ExprKind, Position};

/// The list for `&self` or, with `mut`, for `&mut self`.
macro_rules! children {
    ($kind:expr, $iter:ident $(, $mutable:tt)?) => {{
        macro_rules! inside {
            ($positions:expr) => {
                $positions.$iter().filter_map(|position| match position {
                    Position::Expr(expr) => Some(expr),
                    Position::Rest(_) => None,
                })
            };
        }
        match $kind {
            ExprKind::Integer(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::Name(_)
            | ExprKind::Next(_)
            | ExprKind::Error => vec![],
            ExprKind::Access { base, positions } => {
                std::iter::once(base).chain(inside!(positions)).collect()
            }
            ExprKind::Call { callee, arguments } => {
                let values = arguments.$iter().map(|argument| & $($mutable)? argument.value);
                std::iter::once(callee).chain(values).collect()
            }
            ExprKind::Else { value, fallback } => vec![value, fallback],
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Bracket(inner) => {
                vec![inner]
            }
            ExprKind::Binary { left, right, .. } => vec![left, right],
            ExprKind::Chain { first, rest } => {
                let rest = rest.$iter().map(|(_, operand)| operand);
                std::iter::once(first).chain(rest).collect()
            }
            ExprKind::Reduce { indices, body, .. } => inside!(indices).chain([body]).collect(),
            ExprKind::Tuple(items) | ExprKind::List(items) => items.$iter().collect(),
        }
    }};
}

impl ExprKind {
    /// The expressions that it is made of, in the order of the text, also those in positions and arguments.
    pub fn children(&self) -> Vec<&Expr> {
        children!(self, iter)
    }

    /// [`ExprKind::children`], to be changed.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        children!(self, iter_mut, mut)
    }
}
