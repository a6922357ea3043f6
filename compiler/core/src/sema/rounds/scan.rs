//! `scan` in simpler words, before anything is checked: a `repeat` with one state whose values are collected.
//!
//! The state is known in the scan alone, so it gets a name of its own. Must not know what names stand for.
//!
//! ```text
//! H[t, i] = scan[t < T](h: h0[i], 0.9 * h[i] + x[t,i])
//!   => repeat t < T { state h'H[i] = h0[i]; next h'H[i] = 0.9 * h'H[i] + x[t,i]; H[t, i] = next h'H[i] }
//! ```

use einc_diag::Span;
use einc_syntax::ast::{
    Argument, Binary, Expr, ExprKind, FunctionBody, Item, ItemKind, Name, Position, Role,
    Statement, Target, Type,
};

/// The name of a scan in programs.
pub(crate) const SCAN: &str = "scan";

/// Returns whether there is a scan in the items or in bodies among them.
pub(crate) fn has_scan(items: &[Item]) -> bool {
    items.iter().any(|item| match &item.kind {
        ItemKind::Statement(Statement::Definition { value, .. }) => parts(value).is_some(),
        ItemKind::Statement(Statement::Repeat { body, .. }) => has_scan(body),
        ItemKind::Function(function) => match &function.body {
            FunctionBody::Block { body, .. } => has_scan(body),
            FunctionBody::Expression(_) => false,
        },
        ItemKind::Module(module) => has_scan(&module.body),
        _ => false,
    })
}

/// Writes every scan as a `repeat`. One whose form is wrong stays, and is reported as a call.
pub(crate) fn write_scans(items: &mut [Item]) {
    for item in items {
        match &mut item.kind {
            ItemKind::Statement(Statement::Repeat { body, .. }) => write_scans(body),
            ItemKind::Function(function) => {
                if let FunctionBody::Block { body, .. } = &mut function.body {
                    write_scans(body);
                }
            }
            ItemKind::Module(module) => write_scans(&mut module.body),
            ItemKind::Statement(statement) => {
                if let Some(repeat) = written_out(statement) {
                    *statement = repeat;
                }
            }
            _ => {}
        }
    }
}

/// A scan: its counter and bound, the name of its state, what that begins with, and its next value.
struct Scan<'e> {
    counter: Name,
    bound: &'e Expr,
    state: &'e Name,
    initial: &'e Expr,
    next: &'e Expr,
}

/// The parts of a right side, if it is a scan.
fn parts(value: &Expr) -> Option<Scan<'_>> {
    let ExprKind::Call { callee, arguments } = &*value.kind else {
        return None;
    };
    let ExprKind::Access { base, positions } = &*callee.kind else {
        return None;
    };
    let (ExprKind::Name(name), [Position::Expr(position)]) = (&*base.kind, positions.as_slice())
    else {
        return None;
    };
    let ExprKind::Binary {
        operator: Binary::Less,
        left,
        right,
        ..
    } = &*position.kind
    else {
        return None;
    };
    let ExprKind::Name(counter) = &*left.kind else {
        return None;
    };
    let [
        Argument {
            name: Some(state),
            value: initial,
        },
        Argument {
            name: None,
            value: next,
        },
    ] = arguments.as_slice()
    else {
        return None;
    };
    (name == SCAN).then(|| Scan {
        counter: Name {
            text: counter.clone(),
            span: left.span,
        },
        bound: right,
        state,
        initial,
        next,
    })
}

fn written_out(statement: &Statement) -> Option<Statement> {
    let Statement::Definition {
        role: Role::Plain,
        targets,
        ty,
        value,
        span,
    } = statement
    else {
        return None;
    };
    let ([target], scan) = (targets.as_slice(), parts(value)?) else {
        return None;
    };
    let positions = target.positions.as_ref()?;
    let is_counter = |position: &Position| matches!(position, Position::Expr(expr) if matches!(&*expr.kind, ExprKind::Name(name) if *name == scan.counter.text));
    let at = positions.iter().position(is_counter)?;
    let mut own = positions.clone();
    own.remove(at);
    let mut state_type = ty.clone();
    if let Some(Type::Tensor { shape: sizes, .. }) = &mut state_type
        && let Some(shape) = sizes
        && at < shape.len()
    {
        shape.remove(at);
        if shape.is_empty() {
            *sizes = None;
        }
    }
    let name = format!("{}'{}", scan.state.text, target.name.text);
    let left = |span: Span| Target {
        name: Name {
            text: name.clone(),
            span: scan.state.span,
        },
        positions: (!own.is_empty()).then(|| own.clone()),
        span,
    };
    let mut next = scan.next.clone();
    renamed(&mut next, &scan.state.text, &name);
    let definition = |role, target: Target, ty, value: Expr| Item {
        kind: ItemKind::Statement(Statement::Definition {
            role,
            targets: vec![target],
            ty,
            value,
            span: *span,
        }),
        span: *span,
        doc: None,
    };
    let whole = Expr {
        kind: Box::new(ExprKind::Next(Name {
            text: name.clone(),
            span: scan.state.span,
        })),
        span: scan.state.span,
    };
    let reads: Vec<Position> = own.iter().map(unbounded).collect();
    let collected = match reads.is_empty() {
        true => whole,
        false => Expr {
            kind: Box::new(ExprKind::Access {
                base: whole,
                positions: reads,
            }),
            span: scan.state.span,
        },
    };
    let body = vec![
        definition(
            Role::State,
            left(scan.state.span),
            state_type,
            scan.initial.clone(),
        ),
        definition(Role::Next, left(scan.next.span), None, next),
        definition(Role::Plain, target.clone(), ty.clone(), collected),
    ];
    Some(Statement::Repeat {
        counter: scan.counter,
        bound: scan.bound.clone(),
        until: None,
        body,
        span: *span,
    })
}

/// The index of a position of the left side, without its bound.
fn unbounded(position: &Position) -> Position {
    match position {
        Position::Expr(expr) => match &*expr.kind {
            ExprKind::Binary { left, .. } => Position::Expr(left.clone()),
            _ => position.clone(),
        },
        Position::Rest(_) => position.clone(),
    }
}

/// Gives a name another text, wherever it stands. Expressions are as deep as the parser lets them be, and there is stack for that.
fn renamed(expr: &mut Expr, from: &str, to: &str) {
    if let ExprKind::Name(name) = &mut *expr.kind
        && name == from
    {
        to.clone_into(name);
    }
    let children = expr.kind.children_mut().into_iter();
    children.for_each(|child| renamed(child, from, to));
}
