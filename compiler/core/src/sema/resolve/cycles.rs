//! Orders and cycles of uses.
//!
//! Must not know what names stand for.
//!
//! ```text
//! a uses b, b uses c   =>   c, b, a
//! ```

use einc_diag::Span;
use einc_syntax::ast::{Item, ItemKind, Statement};

/// Numbers in an order in which each stands after its edges, and the cycles: numbers with the place of the use
/// of the next one.
#[allow(clippy::type_complexity)]
pub(crate) fn sort(edges: &[Vec<(usize, Span)>]) -> (Vec<usize>, Vec<Vec<(usize, Span)>>) {
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
pub(crate) fn defined_in(item: &Item) -> Vec<&str> {
    match &item.kind {
        ItemKind::Param { name, .. } => vec![&name.text],
        ItemKind::Statement(Statement::Definition { targets, .. }) => {
            targets.iter().map(|t| t.name.text.as_str()).collect()
        }
        _ => vec![],
    }
}
