//! The text of rounds in simpler words, before anything is checked.
//!
//! In a `repeat`, `next x` becomes a name of its own, with a blank that no name of a user has. A definition whose left
//! side has the counter as a position becomes one without it, named `each hs`, and what was taken away is noted. Must
//! not know what names stand for.
//!
//! ```text
//! hs[t,n]: f32[T, N] = next h[n]   =>   `each hs`[n]: f32[N] = `next h`[n], noted: hs, dimension 0, size T
//! ```

use crate::sema::{
    SourceFile, Sources,
    rounds::scan::{has_scan, write_scans},
};
use einc_diag::Span;
use einc_syntax::ast::{
    Expr, ExprKind, FunctionBody, Item, ItemKind, Name, Position, Role, Statement, Target, Type,
};
use std::borrow::Cow;
use std::collections::HashMap;

/// A definition that collects one slice a round.
#[derive(Clone, Debug)]
pub(crate) struct Collecting {
    /// The name of the whole.
    pub(crate) name: Name,
    /// Which of its dimensions counts the rounds.
    pub(crate) dim: usize,
    /// The size that its type says of that dimension.
    pub(crate) size: Option<Expr>,
}

/// By the place of a left side: what it collects.
pub(crate) type Collections = HashMap<Span, Collecting>;

/// The name that `next x` becomes.
pub(crate) fn next_name(name: &str) -> String {
    format!("next {name}")
}

/// The state whose next value a name is.
pub(crate) fn state_of(name: &str) -> Option<&str> {
    name.strip_prefix("next ")
}

/// The files with rounds in simpler words, and what is collected.
pub(crate) fn desugar(sources: &Sources) -> (Cow<'_, Sources>, Collections) {
    let mut collections = Collections::new();
    let has_rounds = |items: &[Item]| has_repeat(items) || has_scan(items);
    if !sources.files.iter().any(|file| has_rounds(&file.ast.items)) {
        return (Cow::Borrowed(sources), collections);
    }
    let mut own = sources.clone();
    for SourceFile { ast, .. } in &mut own.files {
        write_scans(&mut ast.items);
        find_repeats(&mut ast.items, &mut collections);
    }
    (Cow::Owned(own), collections)
}

fn bodies(item: &Item) -> &[Item] {
    match &item.kind {
        ItemKind::Function(function) => match &function.body {
            FunctionBody::Block { body, .. } => body,
            FunctionBody::Expression(_) => &[],
        },
        ItemKind::Module(module) => &module.body,
        _ => &[],
    }
}

fn has_repeat(items: &[Item]) -> bool {
    items.iter().any(|item| {
        matches!(item.kind, ItemKind::Statement(Statement::Repeat { .. }))
            || has_repeat(bodies(item))
    })
}

/// Looks for blocks outside of all blocks.
fn find_repeats(items: &mut [Item], collections: &mut Collections) {
    for item in items {
        match &mut item.kind {
            ItemKind::Statement(statement @ Statement::Repeat { .. }) => {
                repeat(statement, collections);
            }
            ItemKind::Function(function) => {
                if let FunctionBody::Block { body, .. } = &mut function.body {
                    find_repeats(body, collections);
                }
            }
            ItemKind::Module(module) => find_repeats(&mut module.body, collections),
            _ => {}
        }
    }
}

fn repeat(statement: &mut Statement, collections: &mut Collections) {
    let Statement::Repeat {
        counter,
        bound,
        until,
        body,
        ..
    } = statement
    else {
        return;
    };
    expr(bound);
    until.iter_mut().for_each(expr);
    for item in body {
        match &mut item.kind {
            ItemKind::Dim { value, .. } => value.iter_mut().for_each(expr),
            ItemKind::Const { value, .. } => expr(value),
            ItemKind::Assert { condition, .. } => expr(condition),
            ItemKind::Statement(statement @ Statement::Repeat { .. }) => {
                repeat(statement, collections);
            }
            ItemKind::Statement(Statement::Scatter { target, value, .. }) => {
                target.positions.iter_mut().flatten().for_each(position);
                expr(value);
            }
            ItemKind::Statement(Statement::Definition {
                role,
                targets,
                ty,
                value,
                ..
            }) => {
                expr(value);
                for target in targets.iter_mut() {
                    target.positions.iter_mut().flatten().for_each(position);
                }
                match (role, targets.as_mut_slice()) {
                    (Role::Next, targets) => {
                        for target in targets {
                            target.name.text = next_name(&target.name.text);
                        }
                    }
                    (Role::Plain, [target]) => collect(&counter.text, target, ty, collections),
                    _ => {}
                }
            }
            _ => {}
        }
    }
}

/// Takes the counter off a left side.
fn collect(counter: &str, target: &mut Target, ty: &mut Option<Type>, noted: &mut Collections) {
    let is_counter = |position: &Position| match position {
        Position::Expr(expr) => matches!(&*expr.kind, ExprKind::Name(name) if name == counter),
        Position::Rest(_) => false,
    };
    let Some(positions) = &mut target.positions else {
        return;
    };
    let Some(dim) = positions.iter().position(is_counter) else {
        return;
    };
    // `..` before the counter would stand for a number of dimensions that is not known yet.
    if positions[..dim]
        .iter()
        .any(|p| matches!(p, Position::Rest(_)))
    {
        return;
    }
    positions.remove(dim);
    let mut size = None;
    if let Some(Type::Tensor {
        shape: Some(shape), ..
    }) = ty
        && dim < shape.len()
        && let Position::Expr(expr) = shape.remove(dim)
    {
        size = Some(expr);
    }
    let name = target.name.clone();
    target.name.text = format!("each {}", name.text);
    noted.insert(target.span, Collecting { name, dim, size });
}

fn position(position: &mut Position) {
    if let Position::Expr(e) = position {
        expr(e);
    }
}

/// Expressions are as deep as the parser lets them be, and there is stack for that.
fn expr(e: &mut Expr) {
    if let ExprKind::Next(name) = &*e.kind {
        *e.kind = ExprKind::Name(next_name(&name.text));
    }
    e.kind.children_mut().into_iter().for_each(expr);
}
