//! The places in a text where functions and modules are named.
//!
//! Must not know what a name means.
//!
//! ```text
//! y[n] = twice(silu, x[n])   ->   Call(twice(silu, x[n])), Name(twice), Name(silu), Name(x), Name(n)
//! ```

use einc_syntax::ast::{
    Argument, Expr, ExprKind, Formal, FunctionBody, Item, ItemKind, Name, Position, Statement,
    Target, Type,
};

/// A place in the text where a function or module is named with what it gets.
pub(super) enum Site<'e> {
    Call(&'e mut Expr),
    Instance(&'e mut Name, &'e mut Vec<Argument>),
    Name(&'e mut String),
}

/// Goes through all calls, names and declarations of instances in items, outer ones first.
pub(super) fn sites(items: &mut [Item], see: &mut dyn FnMut(Site<'_>)) {
    for item in items {
        match &mut item.kind {
            ItemKind::Dim { value, .. } => value.iter_mut().for_each(|e| expression(e, see)),
            ItemKind::Input { ty, source, .. } | ItemKind::Param { ty, source, .. } => {
                of_type(ty, see);
                source.iter_mut().for_each(|e| expression(e, see));
            }
            ItemKind::Const { target, ty, value } => definition(target, ty.as_mut(), value, see),
            ItemKind::Assert { condition, .. } => expression(condition, see),
            ItemKind::Function(function) => {
                of_formals(&mut function.formals, see);
                match &mut function.body {
                    FunctionBody::Expression(value) => expression(value, see),
                    FunctionBody::Block { results, body } => {
                        of_formals(results, see);
                        sites(body, see);
                    }
                }
            }
            ItemKind::Module(module) => {
                for formals in [
                    &mut module.options,
                    &mut module.formals,
                    &mut module.results,
                ] {
                    of_formals(formals, see);
                }
                sites(&mut module.body, see);
            }
            ItemKind::Statement(statement) => of_statement(statement, see),
            ItemKind::Output { .. }
            | ItemKind::UseLibrary { .. }
            | ItemKind::UseFile { .. }
            | ItemKind::Optimizer(_)
            | ItemKind::Schedule(_)
            | ItemKind::Train(_)
            | ItemKind::Error(_) => {}
        }
    }
}

fn of_statement(statement: &mut Statement, see: &mut dyn FnMut(Site<'_>)) {
    match statement {
        Statement::Definition {
            targets, ty, value, ..
        } => {
            for target in targets {
                of_positions(target.positions.iter_mut().flatten(), see);
            }
            ty.iter_mut().for_each(|ty| of_type(ty, see));
            expression(value, see);
        }
        Statement::Scatter {
            target, ty, value, ..
        } => definition(target, ty.as_mut(), value, see),
        Statement::Repeat {
            bound, until, body, ..
        } => {
            expression(bound, see);
            until.iter_mut().for_each(|e| expression(e, see));
            sites(body, see);
        }
    }
}

fn definition(
    target: &mut Target,
    ty: Option<&mut Type>,
    value: &mut Expr,
    see: &mut dyn FnMut(Site<'_>),
) {
    of_positions(target.positions.iter_mut().flatten(), see);
    ty.into_iter().for_each(|ty| of_type(ty, see));
    expression(value, see);
}

fn of_formals(formals: &mut [Formal], see: &mut dyn FnMut(Site<'_>)) {
    for formal in formals {
        of_positions(formal.shape.iter_mut().flatten(), see);
        formal.ty.iter_mut().for_each(|ty| of_type(ty, see));
        formal.default.iter_mut().for_each(|e| expression(e, see));
    }
}

fn of_type(ty: &mut Type, see: &mut dyn FnMut(Site<'_>)) {
    match ty {
        Type::Tensor { shape, .. } => of_positions(shape.iter_mut().flatten(), see),
        Type::Module {
            name,
            arguments,
            shape,
            ..
        } => {
            see(Site::Instance(name, arguments));
            for argument in arguments {
                expression(&mut argument.value, see);
            }
            of_positions(shape.iter_mut().flatten(), see);
        }
    }
}

fn of_positions<'e>(
    positions: impl Iterator<Item = &'e mut Position>,
    see: &mut dyn FnMut(Site<'_>),
) {
    for position in positions {
        if let Position::Expr(e) = position {
            expression(e, see);
        }
    }
}

/// Expressions are as deep as the parser lets them be, and there is stack for that.
fn expression(expr: &mut Expr, see: &mut dyn FnMut(Site<'_>)) {
    match &mut *expr.kind {
        ExprKind::Name(name) => see(Site::Name(name)),
        ExprKind::Call { .. } => see(Site::Call(expr)),
        _ => {}
    }
    let children = expr.kind.children_mut().into_iter();
    children.for_each(|child| expression(child, see));
}
