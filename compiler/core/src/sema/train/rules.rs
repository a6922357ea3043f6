//! Optimizers and schedules as functions: what they compute is checked and expanded like any other body.
//!
//! Must not know parameters, steps or types. An optimizer becomes a function of the parameter, its gradient, its
//! states, its own arguments and the numbers of a step; it gives `next w` and the `next` of every state, in that order. A
//! schedule becomes two: its factor and, with `for`, its length. Their names have a blank, so that no text can call them. A state that
//! begins with something computed is stored as zeros, and its first update finds what was computed.
//!
//! ```text
//! optimizer o(lr) for w[..], g[..] { state m[..] = zeros; … }
//!   =>   fn `optimizer o`(w[..], g[..], m[..], lr, step, …) -> `next w`[..], `next m`[..] { … }
//! ```

use crate::sema::{
    Sources,
    resolve::forms::{names_in, takes_whole},
    rounds::desugar::next_name,
};
use einc_diag::Span;
use einc_syntax::ast::{
    Argument, Binary, Expr, ExprKind, Formal, Function, FunctionBody, Item, ItemKind, Name,
    Optimizer, Position, Role, Schedule, Statement, Target,
};

/// The numbers of a step that optimizers and schedules may name, in the order in which they stand in signatures.
pub(crate) const NUMBERS: [&str; 5] = ["step", "epoch", "total_steps", "steps_per_epoch", "batch"];

/// An optimizer may name this beside them, behind them: the norm of the gradients of all params together.
pub(crate) const NORM: &str = "gradient_norm";

/// The name of the function that an optimizer becomes.
pub(crate) fn optimizer_name(name: &str) -> String {
    format!("optimizer {name}")
}

/// The name of the function that a schedule's factor becomes.
pub(crate) fn schedule_name(name: &str) -> String {
    format!("schedule {name}")
}

/// The name of the function that a schedule's length becomes.
pub(crate) fn length_name(name: &str) -> String {
    format!("length of schedule {name}")
}

/// Returns whether a function is an optimizer or a schedule: a name of the text has no blank.
pub(crate) fn is_rule(function: &str) -> bool {
    function.contains(' ')
}

/// How the name begins that a state has in a signature if it begins with something computed.
const STORED: &str = "stored ";

/// The state of the text that a formal stands for.
pub(crate) fn state_name(formal: &Name) -> &str {
    formal.text.strip_prefix(STORED).unwrap_or(&formal.text)
}

/// The files with functions in place of optimizers and schedules; `None` where there are none.
pub(crate) fn as_functions(sources: &Sources) -> Option<Sources> {
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
    let mut tensors = vec![
        optimizer.weight.name.text.clone(),
        formals[1].name.text.clone(),
    ];
    for item in &optimizer.body {
        if let Some((targets, _)) = states_of(item) {
            tensors.extend(targets.iter().map(|target| target.name.text.clone()));
        }
    }
    for mut item in optimizer.body {
        if let Some((targets, value)) = states_of(&item) {
            for target in targets {
                let computed = is_computed(value, &tensors);
                // How it begins stands where a default would.
                formals.push(Formal {
                    name: match computed {
                        true => stored(&target.name),
                        false => target.name.clone(),
                    },
                    shape: target.positions.clone(),
                    ty: None,
                    default: Some(match computed {
                        true => named("zeros", value.span),
                        false => value.clone(),
                    }),
                });
                if computed {
                    let value = begun(target, value);
                    body.push(Item {
                        kind: ItemKind::Statement(Statement::Definition {
                            role: Role::Plain,
                            targets: vec![target.clone()],
                            ty: None,
                            value,
                            span: item.span,
                        }),
                        span: item.span,
                        doc: None,
                    });
                }
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

/// `state m[..] = value`.
fn states_of(item: &Item) -> Option<(&[Target], &Expr)> {
    match &item.kind {
        ItemKind::Statement(Statement::Definition {
            role: Role::State,
            targets,
            value,
            ..
        }) => Some((targets, value)),
        _ => None,
    }
}

/// Returns whether what a state begins with is known in a step only: it reads the param, its gradient, another state or a number of the step.
fn is_computed(value: &Expr, tensors: &[String]) -> bool {
    let mut names = vec![];
    names_in(value, &mut names);
    let counts = |name: &str| NUMBERS.contains(&name) || name == NORM;
    tensors.iter().any(|name| takes_whole(value, name))
        || names
            .iter()
            .any(|name| counts(name) || tensors.iter().any(|t| t == name))
}

fn stored(name: &Name) -> Name {
    Name {
        text: format!("{STORED}{}", name.text),
        span: name.span,
    }
}

fn named(name: &str, span: Span) -> Expr {
    Expr {
        kind: Box::new(ExprKind::Name(name.into())),
        span,
    }
}

/// `where(step == 0, value, stored m[..])`: a state as its first update finds it, and as it was left.
fn begun(target: &Target, value: &Expr) -> Expr {
    let span = value.span;
    let make = |kind| Expr {
        kind: Box::new(kind),
        span,
    };
    let argument = |value| Argument { name: None, value };
    let first = make(ExprKind::Binary {
        operator: Binary::Equal,
        operator_span: span,
        left: named(NUMBERS[0], span),
        right: make(ExprKind::Integer(0)),
    });
    let base = named(&stored(&target.name).text, span);
    let stored = match &target.positions {
        Some(positions) => make(ExprKind::Access {
            base,
            positions: positions.clone(),
        }),
        None => base,
    };
    make(ExprKind::Call {
        callee: named("where", span),
        arguments: [first, value.clone(), stored].map(argument).into(),
    })
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
        text: next_name(&name.text),
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
        ItemKind::Assert { condition, .. } => expression(condition),
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
