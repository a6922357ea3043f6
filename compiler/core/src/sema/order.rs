//! Orders and cycles of uses, and questions about the text of an expression.
//!
//! Must not know what names stand for.
//!
//! ```text
//! a uses b, b uses c   =>   c, b, a
//! ```

use super::resolve::spine;
use einc_diag::Span;
use einc_syntax::ast::{Expr, ExprKind, Item, ItemKind, Position, Statement};

/// Whether an expression takes positions of `name`, or passes it on: it wants a whole tensor.
pub(super) fn takes_whole(expr: &Expr, name: &str) -> bool {
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
pub(super) fn names_in<'e>(expr: &'e Expr, names: &mut Vec<&'e str>) {
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

/// Numbers in an order in which each stands after its edges, and the cycles: numbers with the place of the use
/// of the next one.
#[allow(clippy::type_complexity)]
pub(super) fn sort(edges: &[Vec<(usize, Span)>]) -> (Vec<usize>, Vec<Vec<(usize, Span)>>) {
    let (mut order, mut cycles) = (vec![], vec![]);
    // 0: not seen, 1: on the path, 2: done.
    let mut state = vec![0u8; edges.len()];
    for start in 0..edges.len() {
        if state[start] != 0 {
            continue;
        }
        state[start] = 1;
        let mut path = vec![(start, 0usize)];
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            let Some((target, _)) = edges[node].get(*next).copied() else {
                state[node] = 2;
                order.push(node);
                path.pop();
                continue;
            };
            *next += 1;
            match state[target] {
                0 => {
                    state[target] = 1;
                    path.push((target, 0));
                }
                1 => {
                    let from = path.iter().position(|(n, _)| *n == target).unwrap_or(0);
                    // Each path entry's last taken edge leads to the next entry.
                    cycles.push(
                        path[from..]
                            .iter()
                            .map(|(n, taken)| (*n, edges[*n][taken - 1].1))
                            .collect(),
                    );
                }
                _ => {}
            }
        }
    }
    (order, cycles)
}

/// The names that an item which is not supported yet would define.
pub(super) fn defined_in(item: &Item) -> Vec<&str> {
    match &item.kind {
        ItemKind::Param { name, .. } => vec![&name.text],
        ItemKind::Statement(Statement::Definition { targets, .. }) => {
            targets.iter().map(|t| t.name.text.as_str()).collect()
        }
        _ => vec![],
    }
}

/// The name that an item of a body defines.
pub(super) fn item_name(item: &Item) -> &str {
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
