//! How the text of a program says which instance of an array it applies: by the counter of a block, or otherwise.
//!
//! Must not know what names stand for.
//!
//! ```text
//! repeat l < 3 { next h[n] = enc[l](h)[n] }; y[n] = enc[0](h)[n]   =>   enc: by the counter l, and otherwise
//! ```

use crate::sema::resolve::forms::stands_in;
use einc_syntax::ast::{Expr, ExprKind, FunctionBody, Item, ItemKind, Position, Statement};

/// How the applications of an array in a text say which instance they mean.
#[derive(Default)]
pub(crate) struct Uses {
    pub(crate) by_counter: bool,
    pub(crate) otherwise: bool,
}

impl Uses {
    pub(crate) fn items<'t>(&mut self, items: &'t [Item], name: &str, counters: &mut Vec<&'t str>) {
        for item in items {
            match &item.kind {
                ItemKind::Function(function) => match &function.body {
                    FunctionBody::Block { body, .. } => self.items(body, name, &mut vec![]),
                    FunctionBody::Expression(value) => self.expr(value, name, &[]),
                },
                ItemKind::Module(module) => self.items(&module.body, name, &mut vec![]),
                ItemKind::Const { value, .. } => self.expr(value, name, counters),
                ItemKind::Assert { condition, .. } => self.expr(condition, name, counters),
                ItemKind::Statement(
                    Statement::Definition { value, .. } | Statement::Scatter { value, .. },
                ) => self.expr(value, name, counters),
                ItemKind::Statement(Statement::Repeat {
                    counter,
                    bound,
                    until,
                    body,
                    ..
                }) => {
                    self.expr(bound, name, counters);
                    counters.push(&counter.text);
                    until
                        .iter()
                        .for_each(|until| self.expr(until, name, counters));
                    self.items(body, name, counters);
                    counters.pop();
                }
                _ => {}
            }
        }
    }

    fn expr(&mut self, e: &Expr, name: &str, counters: &[&str]) {
        if let Some((base, positions)) = application(e)
            && base == name
            && let ExprKind::Call { arguments, .. } = &*e.kind
        {
            let by_counter = matches!(positions, [Position::Expr(at)]
                if matches!(&*at.kind, ExprKind::Name(at) if counters.contains(&at.as_str())));
            self.by_counter |= by_counter;
            self.otherwise |= !by_counter;
            for argument in arguments {
                self.expr(&argument.value, name, counters);
            }
            return;
        }
        self.otherwise |= matches!(&*e.kind, ExprKind::Name(other) if other == name);
        for child in e.kind.children() {
            self.expr(child, name, counters);
        }
    }
}

/// The array and the positions of `enc[l](…)`.
fn application(e: &Expr) -> Option<(&str, &[Position])> {
    let ExprKind::Call { callee, .. } = &*e.kind else {
        return None;
    };
    match &*callee.kind {
        ExprKind::Access { base, positions } => match &*base.kind {
            ExprKind::Name(name) => Some((name, positions)),
            _ => None,
        },
        _ => None,
    }
}

/// The arrays of which the calls of a block say by its counter which instance they apply.
pub(crate) fn arrays_by_counter<'t>(items: &'t [Item], counter: &str, found: &mut Vec<&'t str>) {
    fn inside<'t>(e: &'t Expr, counter: &str, found: &mut Vec<&'t str>) {
        if let Some((name, positions)) = application(e)
            && positions.iter().any(|p| match p {
                Position::Expr(at) => stands_in(at, counter),
                Position::Rest(_) => false,
            })
        {
            found.push(name);
        }
        for child in e.kind.children() {
            inside(child, counter, found);
        }
    }
    for item in items {
        match &item.kind {
            ItemKind::Statement(
                Statement::Definition { value, .. } | Statement::Scatter { value, .. },
            )
            | ItemKind::Const { value, .. } => inside(value, counter, found),
            ItemKind::Statement(Statement::Repeat { body, .. }) => {
                arrays_by_counter(body, counter, found);
            }
            _ => {}
        }
    }
}

/// Returns whether the calls of a block say by its counter which instance of an array they apply.
pub(crate) fn applies_by_counter(items: &[Item], counter: &str) -> bool {
    let mut found = vec![];
    arrays_by_counter(items, counter, &mut found);
    !found.is_empty()
}
