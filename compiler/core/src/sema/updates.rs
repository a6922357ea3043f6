//! Optimizers and schedules as functions: what they compute is checked and expanded like any other body.
//!
//! Must not know parameters, steps or types. An optimizer becomes a function of the parameter, its gradient, its
//! states, its own arguments and the numbers of a step; it gives `next w` and the `next` of every state, in that order. A
//! schedule becomes two: its factor and, with `for`, its length. Their names have a blank, so that no text can call them.
//!
//! ```text
//! optimizer o(lr) for w[..], g[..] { state m[..] = zeros; … }
//!   =>   fn `optimizer o`(w[..], g[..], m[..], lr, step, …) -> `next w`[..], `next m`[..] { … }
//! ```

use super::Sources;
use einc_diag::Span;
use einc_syntax::ast::{
    Expr, ExprKind, Formal, Function, FunctionBody, Item, ItemKind, Name, Optimizer, Position,
    Role, Schedule, Statement, Target,
};

/// The numbers of a step that optimizers and schedules may name, in the order in which they stand in signatures.
pub(super) const NUMBERS: [&str; 5] = ["step", "epoch", "total_steps", "steps_per_epoch", "batch"];

/// What an optimizer may name beside them, behind them: the norm of the gradients of all params together.
pub(super) const NORM: &str = "gradient_norm";

/// The name of the function that an optimizer becomes.
pub(super) fn optimizer_name(name: &str) -> String {
    format!("optimizer {name}")
}

/// The name of the function that a schedule's factor becomes.
pub(super) fn schedule_name(name: &str) -> String {
    format!("schedule {name}")
}

/// The name of the function that a schedule's length becomes.
pub(super) fn length_name(name: &str) -> String {
    format!("length of schedule {name}")
}

/// The files with functions in place of optimizers and schedules; `None` where there are none.
pub(super) fn as_functions(sources: &Sources) -> Option<Sources> {
    let rule = |item: &Item| matches!(item.kind, ItemKind::Optimizer(_) | ItemKind::Schedule(_));
    if !sources
        .files
        .iter()
        .any(|file| file.ast.items.iter().any(rule))
    {
        return None;
    }
    let mut sources = sources.clone();
    for file in &mut sources.files {
        let items = std::mem::take(&mut file.ast.items);
        for item in items {
            let functions = match item.kind {
                ItemKind::Optimizer(optimizer) => vec![of_optimizer(optimizer)],
                ItemKind::Schedule(schedule) => of_schedule(schedule),
                _ => {
                    file.ast.items.push(item);
                    continue;
                }
            };
            file.ast
                .items
                .extend(functions.into_iter().map(|function| Item {
                    kind: ItemKind::Function(function),
                    span: item.span,
                    doc: item.doc.clone(),
                }));
        }
    }
    Some(sources)
}

fn number(name: &str, span: Span) -> Formal {
    Formal {
        name: Name {
            text: name.into(),
            span,
        },
        shape: None,
        ty: None,
        default: None,
    }
}

fn of_optimizer(optimizer: Optimizer) -> Function {
    let mut formals = vec![optimizer.weight.clone(), optimizer.gradient];
    let mut results = vec![Formal {
        name: next(&optimizer.weight.name),
        default: None,
        ..optimizer.weight
    }];
    let mut body = vec![];
    for mut item in optimizer.body {
        if let ItemKind::Statement(Statement::Definition {
            role: Role::State,
            targets,
            value,
            ..
        }) = &item.kind
        {
            for target in targets {
                // How it begins stands where a default would.
                formals.push(Formal {
                    name: target.name.clone(),
                    shape: target.positions.clone(),
                    ty: None,
                    default: Some(value.clone()),
                });
                results.push(Formal {
                    name: next(&target.name),
                    shape: target.positions.clone(),
                    ty: None,
                    default: None,
                });
            }
            continue;
        }
        rename(&mut item);
        body.push(item);
    }
    formals.extend(optimizer.formals);
    let head = optimizer.name.span;
    formals.extend(NUMBERS.map(|name| number(name, head)));
    formals.push(number(NORM, head));
    Function {
        name: Name {
            text: optimizer_name(&optimizer.name.text),
            span: head,
        },
        formals,
        body: FunctionBody::Block { results, body },
    }
}

fn of_schedule(schedule: Schedule) -> Vec<Function> {
    let head = schedule.name.span;
    let mut formals = schedule.formals;
    formals.extend(NUMBERS.map(|name| number(name, head)));
    let function = |text: String, value: Expr| Function {
        name: Name { text, span: head },
        formals: formals.clone(),
        body: FunctionBody::Expression(value),
    };
    let name = &schedule.name.text;
    let length = schedule
        .length
        .map(|length| function(length_name(name), length));
    std::iter::once(function(schedule_name(name), schedule.value))
        .chain(length)
        .collect()
}

/// `next m`, a name that no text can hold.
fn next(name: &Name) -> Name {
    Name {
        text: format!("next {}", name.text),
        span: name.span,
    }
}

/// Puts the names `next m` in place of what the text says as `next m`.
fn rename(item: &mut Item) {
    match &mut item.kind {
        ItemKind::Statement(Statement::Definition {
            role,
            targets,
            value,
            ..
        }) => {
            if *role == Role::Next {
                *role = Role::Plain;
                targets
                    .iter_mut()
                    .for_each(|target| target.name = next(&target.name));
            }
            targets.iter_mut().for_each(positions_of);
            expression(value);
        }
        ItemKind::Statement(Statement::Scatter { target, value, .. }) => {
            positions_of(target);
            expression(value);
        }
        ItemKind::Const { value, .. } => expression(value),
        ItemKind::Assert { condition } => expression(condition),
        _ => {}
    }
}

fn positions_of(target: &mut Target) {
    for position in target.positions.iter_mut().flatten() {
        if let Position::Expr(expr) = position {
            expression(expr);
        }
    }
}

fn expression(expr: &mut Expr) {
    if let ExprKind::Next(name) = &*expr.kind {
        *expr.kind = ExprKind::Name(next(name).text);
    }
    expr.kind.children_mut().into_iter().for_each(expression);
}
