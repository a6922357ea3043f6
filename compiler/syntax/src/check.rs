//! What the grammar lets through for the sake of better words: where items may stand, and what may stand in
//! the brackets of a left side or a reduction.
//!
//! Must not know what names mean; only the shape of the tree.
//!
//! ```text
//! x[0] = 3   =>   E0114: a left side holds indices, and `0` is none
//! ```

use crate::ast::*;
use einc_diag::{Diagnostic, Span};

/// Adds what is wrong in `file`.
pub fn check(file: &File, diagnostics: &mut Vec<Diagnostic>) {
    let mut check = Check { diagnostics };
    check.items(&file.items, None);
}

struct Check<'a> {
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Check<'_> {
    /// `owner` is what the items are the body of.
    fn items(&mut self, items: &[Item], owner: Option<&'static str>) {
        for item in items {
            self.item(item, owner);
        }
    }

    fn item(&mut self, item: &Item, owner: Option<&'static str>) {
        let (what, at_top) = match &item.kind {
            ItemKind::Input { .. } => ("input", true),
            ItemKind::Output { .. } => ("output", true),
            ItemKind::UseLibrary { .. } | ItemKind::UseFile { .. } => ("use", true),
            ItemKind::Function(_) => ("fn", true),
            ItemKind::Module(_) => ("module", true),
            ItemKind::Optimizer(_) => ("optimizer", true),
            ItemKind::Schedule(_) => ("schedule", true),
            ItemKind::Train(_) => ("train", true),
            _ => ("", false),
        };
        if let (Some(owner), true) = (owner, at_top) {
            let word = Span {
                end: item.span.start + what.len() as u32,
                ..item.span
            };
            self.diagnostics.push(
                Diagnostic::error(
                    "E0120",
                    format!("`{what}` cannot stand in the body of {owner}"),
                )
                .at(word, "only at the top level of a file")
                .help("move it out of the braces"),
            );
        }
        match &item.kind {
            ItemKind::Dim { name, .. }
            | ItemKind::Input { name, .. }
            | ItemKind::Param { name, .. }
            | ItemKind::Function(Function { name, .. })
            | ItemKind::Module(Module { name, .. })
            | ItemKind::Optimizer(Optimizer { name, .. })
            | ItemKind::Schedule(Schedule { name, .. }) => self.declared(name),
            _ => {}
        }
        match &item.kind {
            ItemKind::Dim { name, value: None } if owner.is_some() => {
                self.diagnostics.push(
                    Diagnostic::error(
                        "E0120",
                        format!("the size `{}` in a body needs a value", name.text),
                    )
                    .at(name.span, "")
                    .help(format!("write `dim {} = …`", name.text)),
                );
            }
            ItemKind::Dim { value, .. } => self.optional(value.as_ref()),
            ItemKind::Input { source, .. } | ItemKind::Param { source, .. } => {
                self.optional(source.as_ref());
            }
            ItemKind::Const { target, value, .. } => {
                self.target(target);
                self.expr(value);
            }
            ItemKind::Assert { condition, .. } => self.expr(condition),
            ItemKind::Function(function) => match &function.body {
                FunctionBody::Expression(value) => self.expr(value),
                FunctionBody::Block { body, .. } => self.items(body, Some("a function")),
            },
            ItemKind::Module(module) => self.items(&module.body, Some("a module")),
            ItemKind::Optimizer(optimizer) => self.items(&optimizer.body, Some("an optimizer")),
            ItemKind::Schedule(schedule) => {
                self.optional(schedule.length.as_ref());
                self.expr(&schedule.value);
            }
            ItemKind::Statement(statement) => self.statement(statement),
            _ => {}
        }
    }

    fn statement(&mut self, statement: &Statement) {
        match statement {
            Statement::Definition { targets, value, .. } => {
                for target in targets {
                    self.target(target);
                }
                self.expr(value);
            }
            Statement::Scatter { target, value, .. } => {
                self.declared(&target.name);
                for position in target.positions.iter().flatten() {
                    if let Position::Expr(e) = position {
                        self.expr(e);
                    }
                }
                self.expr(value);
            }
            Statement::Repeat {
                counter,
                bound,
                until,
                body,
                ..
            } => {
                self.declared(counter);
                self.expr(bound);
                self.optional(until.as_ref());
                self.items(body, Some("`repeat`"));
            }
        }
    }

    /// A name that is given a meaning has no members.
    fn declared(&mut self, name: &Name) {
        if name.text.contains('.') {
            self.diagnostics.push(
                Diagnostic::error(
                    "E0119",
                    format!("`{}` is a path and cannot be defined", name.text),
                )
                .at(name.span, "expected a name without `.`"),
            );
        }
    }

    fn target(&mut self, target: &Target) {
        self.declared(&target.name);
        for position in target.positions.iter().flatten() {
            let Position::Expr(e) = position else {
                continue;
            };
            if is_index(e) {
                continue;
            }
            self.diagnostics.push(
                Diagnostic::error(
                    "E0114",
                    format!(
                        "the left side of `{}` holds something that is no index",
                        target.name.text
                    ),
                )
                .at(e.span, "expected an index here, `i` or `i < n`")
                .help("a definition gives every element: `where(i == 0, a, b)` tells them apart")
                .help("to write to computed positions, use `+=`, `max=` or `min=`"),
            );
        }
    }

    fn optional(&mut self, e: Option<&Expr>) {
        if let Some(e) = e {
            self.expr(e);
        }
    }

    /// Looks at the indices of reductions. Trees are shallow: see [`crate::tree`].
    fn expr(&mut self, e: &Expr) {
        match &*e.kind {
            ExprKind::Reduce {
                reduction,
                reduction_span,
                indices,
                body,
            } => {
                let name = reduction.name();
                if indices.is_empty() {
                    self.diagnostics.push(
                        Diagnostic::error("E0118", format!("`{name}[]` runs over nothing"))
                            .at(*reduction_span, "expected an index in its brackets")
                            .help(format!("write `{name}[i] …`")),
                    );
                }
                for position in indices {
                    if let Position::Expr(e) = position
                        && !is_index(e)
                    {
                        let (label, help) = no_index(name, e);
                        self.diagnostics.push(
                            Diagnostic::error(
                                "E0118",
                                format!("`{name}` runs over indices, and this is none"),
                            )
                            .at(e.span, label)
                            .help(help),
                        );
                    }
                }
                self.expr(body);
            }
            ExprKind::Access { base, positions } => {
                self.expr(base);
                for position in positions {
                    if let Position::Expr(e) = position {
                        self.expr(e);
                    }
                }
            }
            ExprKind::Call { callee, arguments } => {
                self.expr(callee);
                for argument in arguments {
                    self.expr(&argument.value);
                }
            }
            ExprKind::Else { value, fallback } => {
                self.expr(value);
                self.expr(fallback);
            }
            ExprKind::Negate(a) | ExprKind::Not(a) | ExprKind::Bracket(a) => self.expr(a),
            ExprKind::Binary { left, right, .. } => {
                self.expr(left);
                self.expr(right);
            }
            ExprKind::Chain { first, rest } => {
                self.expr(first);
                for (_, e) in rest {
                    self.expr(e);
                }
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                for e in items {
                    self.expr(e);
                }
            }
            ExprKind::Integer(_)
            | ExprKind::Float(_)
            | ExprKind::Bool(_)
            | ExprKind::String(_)
            | ExprKind::Name(_)
            | ExprKind::Next(_)
            | ExprKind::Error => {}
        }
    }
}

/// Says of a position of a reduction's brackets that it is no index, and what to write in its place.
fn no_index(reduction: &str, position: &Expr) -> (&'static str, String) {
    let ExprKind::Binary {
        operator: Binary::Greater | Binary::GreaterEqual,
        left,
        ..
    } = &*position.kind
    else {
        let help = format!(
            "`{reduction}[i] x[i]` is the reduction over `i`; a tensor cannot be called `{reduction}`"
        );
        return ("expected an index here, `i` or `i < n`", help);
    };
    let index = match &*left.kind {
        ExprKind::Name(name) => name.as_str(),
        _ => "i",
    };
    let other = match reduction {
        "sum" | "norm" | "norm1" | "norminf" => "0",
        "prod" => "1",
        _ => "…",
    };
    let help = format!(
        "what else holds is a condition of the values: `{reduction}[{index}] where({index} >= …, …, {other})`"
    );
    let label = "an index is bounded from above, `i < n` or `i <= n`";
    (label, help)
}

/// `i`, `i < bound`, `i <= bound`, or text that has been reported.
fn is_index(e: &Expr) -> bool {
    let is_name = |e: &Expr| match &*e.kind {
        ExprKind::Name(name) => !name.contains('.') && !is_constant(name),
        _ => false,
    };
    match &*e.kind {
        ExprKind::Error => true,
        ExprKind::Binary {
            operator: Binary::Less | Binary::LessEqual,
            left,
            ..
        } => is_name(left),
        _ => is_name(e),
    }
}

/// Returns whether a position of a left side is a place computed from names: `28*r + c`.
pub(crate) fn is_place(position: &Position) -> bool {
    let Position::Expr(e) = position else {
        return false;
    };
    let mut inner = e;
    while let ExprKind::Bracket(next) = &*inner.kind {
        inner = next;
    }
    let computed = match &*inner.kind {
        ExprKind::Negate(_) => true,
        ExprKind::Binary { operator, .. } => matches!(
            operator,
            Binary::Add | Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder
        ),
        _ => false,
    };
    let mut open = vec![inner];
    while let Some(e) = open.pop().filter(|_| computed) {
        if matches!(&*e.kind, ExprKind::Name(name) if !is_constant(name)) {
            return true;
        }
        open.extend(e.kind.children());
    }
    false
}

fn is_constant(name: &str) -> bool {
    matches!(
        name,
        "inf" | "nan" | "pi" | "f16" | "bf16" | "f32" | "f64" | "u8" | "i32" | "i64" | "bool"
    )
}
