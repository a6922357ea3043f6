//! The walk over a statement: whether each name is an index, a scalar, a tensor or a function, and which names it uses.
//!
//! One walk over the text of every statement and function, called or not, before anything is computed, so that
//! unknown names, misused names and badly bound indices are all reported. Must not know sizes or types.
//!
//! ```text
//! y[n] = relu(X[n,d] * w[d] + b)     bound n, implicit d, uses X w b
//! ```

use crate::sema::{
    hir::Kind,
    resolve::Resolver,
    resolve::forms::spine,
    resolve::names::{Found, Shape},
    resolve::static_scope::{Local, Meaning, StaticScope, Unit},
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Binary, Expr, ExprKind, Position, Target, Type};

/// Expressions may be nested this deep; operands of one chain of operators count as one level.
const DEEPEST: usize = 200;
/// Operands of one chain of operators.
const LONGEST: usize = 1000;

pub(crate) struct Walk<'w, 'a> {
    pub(crate) resolver: &'w mut Resolver<'a>,
    pub(crate) scope: &'w StaticScope<'a>,
    pub(crate) unit: Unit,
    /// Indices bound where the walk is, with the places that bind them; `..` is one of them.
    pub(crate) bound: Vec<(&'a str, Span)>,
    /// Indices that nothing binds, with their first places, in the order of the text.
    pub(crate) implicit: Vec<(&'a str, Span)>,
    /// Bare names in values that may be implicit indices.
    pub(crate) pending: Vec<(&'a str, Span)>,
    /// Values that have the name of a block's counter, outside of that block. Each is the number of rounds, unless an index has the
    /// name.
    pub(crate) counters: Vec<(&'a str, Span)>,
    /// Scalars of the file that stand alone in a position.
    pub(crate) scalars: Vec<(&'a str, Span)>,
    pub(crate) depth: usize,
    /// True on the left side of a scatter, where positions bind indices: `big[letter[z < 4]]`.
    pub(crate) left: bool,
    /// True if letters are numbers here.
    pub(super) sizes: bool,
    /// True behind several names, where a call is made once.
    pub(crate) several: bool,
    /// True in what ends the rounds of a block.
    pub(crate) ends: bool,
}

impl<'w, 'a> Walk<'w, 'a> {
    pub(crate) fn new(resolver: &'w mut Resolver<'a>, scope: &'w StaticScope<'a>) -> Walk<'w, 'a> {
        Walk {
            resolver,
            scope,
            unit: Unit::default(),
            bound: vec![],
            implicit: vec![],
            pending: vec![],
            counters: vec![],
            scalars: vec![],
            depth: 0,
            left: false,
            sizes: false,
            several: false,
            ends: false,
        }
    }

    /// A definition with its indices, type and value; places its implicit sums.
    pub(crate) fn definition(&mut self, target: &'a Target, ty: Option<&'a Type>, value: &'a Expr) {
        if let Some(Type::Tensor {
            shape: Some(shape), ..
        }) = ty
        {
            self.size_list(shape);
        }
        for position in target.positions.iter().flatten() {
            self.bind(position, true);
        }
        self.value(value);
    }

    /// An expression whose free indices are summed where the rule says.
    pub(crate) fn value(&mut self, value: &'a Expr) {
        self.expr(value, false);
        self.settle_pending();
        if !self.unit.failed {
            for (name, _) in self.implicit.clone() {
                self.place_sum(value, name);
            }
            self.warn_of_scalars(value);
        }
    }

    /// A size or condition on sizes: no index stands in it.
    pub(crate) fn closed(&mut self, expr: &'a Expr) {
        let sizes = std::mem::replace(&mut self.sizes, true);
        let before = self.implicit.len();
        self.expr(expr, false);
        self.sizes = sizes;
        self.settle_pending();
        for (name, _) in self.implicit.split_off(before) {
            self.fail(
                Diagnostic::error("E0208", format!("an index, `{name}`, in a size"))
                    .at(expr.span, "a size is made of numbers, dims and consts"),
            );
        }
    }

    /// A default: a value, a list of some, or how a state begins.
    pub(crate) fn setting(&mut self, expr: &'a Expr) {
        match &*expr.kind {
            ExprKind::List(items) => items.iter().for_each(|item| self.closed(item)),
            _ if self.resolver.names_source(self.scope, expr) => {
                crate::sema::resolve::walk::walk_source(self, expr);
            }
            _ => self.closed(expr),
        }
    }

    /// The sizes of a type or signature.
    pub(crate) fn size_list(&mut self, shape: &'a [Position]) {
        for position in shape {
            match position {
                Position::Expr(expr) => self.closed(expr),
                Position::Rest(span) => self.rest(*span),
            }
        }
    }

    pub(crate) fn fail(&mut self, diagnostic: Diagnostic) {
        self.resolver.report.push(diagnostic);
        self.unit.failed = true;
    }

    pub(crate) fn rest(&mut self, span: Span) {
        if !self.scope.rest {
            self.fail(
                Diagnostic::error("E0309", "`..` stands for nothing here")
                    .at(span, "no `..` in a signature around this")
                    .help("`..` stands for the further dimensions of a tensor that the right side reads with it, `y[n, ..] = 2 * x[n, ..]`, or that a signature names so, `fn f(x[.., d])`"),
            );
        }
    }

    /// Names that stood as plain values: implicit indices, if they stand in a position as well.
    pub(crate) fn settle_pending(&mut self) {
        for (name, span) in std::mem::take(&mut self.counters) {
            if !self.is_implicit(name) {
                self.rounds_used(name, span);
            }
        }
        for (name, span) in std::mem::take(&mut self.pending) {
            if self.is_implicit(name) {
                self.refer(name, span);
            } else if let Found::Entity(id) = self.resolver.names.find(self.scope.file, name) {
                let place = self.resolver.names.entity(id).name.span;
                self.fail(
                    Diagnostic::error("E0201", format!("`{name}` is no index"))
                        .at(span, "an index is wanted here")
                        .at(place, format!("`{name}` is defined here"))
                        .help("`size(i)` is how far an index `i` runs; name one that stands in a position"),
                );
            } else {
                self.unit.failed = true;
                let locals: Vec<&str> = self
                    .scope
                    .locals
                    .keys()
                    .copied()
                    .chain(self.bound.iter().map(|(bound, _)| *bound))
                    .collect();
                self.resolver
                    .unknown(self.scope.file, name, span, &locals, false);
            }
        }
    }

    /// Warns where a scalar stands in positions of several factors of a product, as an index would that is summed.
    fn warn_of_scalars(&mut self, value: &'a Expr) {
        let scalars = std::mem::take(&mut self.scalars);
        for (at, (name, span)) in scalars.iter().enumerate() {
            let again = scalars[at + 1..].iter().find(|(other, _)| other == name);
            let first = scalars[..at].iter().all(|(other, _)| other != name);
            if again.is_none() || !first || !self.is_shared(value, name) {
                continue;
            }
            let mut warning = Diagnostic::warning(
                "E0205",
                format!("`{name}` is a scalar here, not an index that is summed"),
            )
            .fix(*span, "its value is the position", format!("({name})"));
            let others = scalars[at + 1..].iter().filter(|(other, _)| other == name);
            for (_, place) in others {
                warning = warning.fix(*place, "and here", format!("({name})"));
            }
            if let Found::Entity(id) = self.resolver.names.find(self.scope.file, name) {
                warning = warning.at(
                    self.resolver.names.entity(id).name.span,
                    "the scalar is defined here",
                );
            }
            self.resolver.report.push(
                warning
                    .help(format!(
                        "if the scalar is meant, write `({name})` in the positions"
                    ))
                    .help("if an index is meant, give it a name that nothing else has"),
            );
        }
    }

    pub(crate) fn meaning(&self, name: &str) -> Meaning {
        if self.is_bound(name) {
            return Meaning::Index;
        }
        if let Some(local) = self.scope.locals.get(name) {
            return match local {
                Local::Scalar | Local::Any | Local::Counter(_) => Meaning::Scalar,
                Local::Tensor => Meaning::Tensor,
                Local::Letter => Meaning::Letter,
                Local::Item(_, shape) => match shape {
                    Shape::Scalar => Meaning::Scalar,
                    Shape::Tensor => Meaning::Tensor,
                    Shape::Function => Meaning::Function,
                    Shape::Poison => Meaning::Poison,
                },
            };
        }
        if matches!(name, "inf" | "nan" | "pi") {
            return Meaning::Scalar;
        }
        let member = |shape| match shape {
            Shape::Scalar => Meaning::Scalar,
            Shape::Tensor => Meaning::Tensor,
            Shape::Function => Meaning::Unknown,
            Shape::Poison => Meaning::Poison,
        };
        if let Some(owned) = self.scope.owner_of(name) {
            return member(
                self.resolver
                    .names
                    .path_shape(self.scope.file, owned.declared, name),
            );
        }
        match self.resolver.names.find(self.scope.file, name) {
            Found::Nothing if name == "training" => Meaning::Scalar,
            Found::Nothing => Meaning::Unknown,
            Found::Poison => Meaning::Poison,
            Found::Member(id) => member(self.resolver.names.member_shape(id, name)),
            Found::Entity(id) => {
                let shape = self.resolver.names.shape_of(id);
                match shape {
                    Shape::Scalar => Meaning::Scalar,
                    Shape::Tensor => Meaning::Tensor,
                    Shape::Function => Meaning::Function,
                    Shape::Poison => Meaning::Poison,
                }
            }
        }
    }

    /// Notes that what the name stands for is read. An index may have the name of a tensor, and reads nothing of it.
    pub(crate) fn used(&mut self, name: &str, span: Span) {
        self.refer(name, span);
        if self.is_bound(name) {
            return;
        }
        if let Some(local) = self.scope.locals.get(name) {
            if let Local::Item(number, _) | Local::Counter(number) = local {
                self.unit.items.push((*number, span));
            }
            return;
        }
        self.used_outside(name, span);
    }

    /// Notes that something outside of a body is read, or something that an instance inside it owns.
    pub(crate) fn used_outside(&mut self, name: &str, span: Span) {
        if let Some(owned) = self.scope.owner_of(name) {
            self.unit.items.push((owned.item, span));
            let path = (owned.module, name.to_owned(), span);
            self.resolver.readings.inner_uses.push(path);
            return;
        }
        let found = self.resolver.names.find(self.scope.file, name);
        if let Found::Member(id) = found {
            let path = (id, name.to_owned(), span);
            self.resolver.readings.member_uses.push(path);
        }
        if let Found::Entity(id) | Found::Member(id) = found {
            self.unit.uses.push((id, span));
        }
    }

    /// Binds the index of a left side or reduction.
    pub(crate) fn bind(&mut self, position: &'a Position, left: bool) {
        let (name, span, bound) = match position {
            Position::Rest(span) => {
                self.rest(*span);
                ("..", *span, None)
            }
            Position::Expr(expr) => match &*expr.kind {
                ExprKind::Name(name) => (name.as_str(), expr.span, None),
                ExprKind::Binary {
                    operator: Binary::Less | Binary::LessEqual,
                    left: index,
                    right,
                    ..
                } if matches!(&*index.kind, ExprKind::Name(_)) => match &*index.kind {
                    ExprKind::Name(name) => (name.as_str(), index.span, Some(right)),
                    _ => return,
                },
                // Not an index: the parser has said so.
                _ => {
                    self.unit.failed = true;
                    return;
                }
            },
        };
        if self.is_bound(name) {
            let message = if left {
                format!("index `{name}` stands on the left twice")
            } else {
                format!("index `{name}` is already bound")
            };
            let help = match name {
                ".." => "write an index for each of these dimensions",
                _ => "give it another name",
            };
            self.fail(
                Diagnostic::error("E0205", message)
                    .at(span, "bound again here")
                    .help(help),
            );
            return;
        }
        if name != ".." {
            match self.meaning(name) {
                Meaning::Scalar if !self.is_outer_counter(name) => {
                    let mut error = Diagnostic::error(
                        "E0205",
                        format!("`{name}` is a scalar and cannot be an index"),
                    )
                    .at(span, "bound as an index here");
                    if let Found::Entity(id) = self.resolver.names.find(self.scope.file, name)
                        && !self.scope.locals.contains_key(name)
                    {
                        error = error.at(
                            self.resolver.names.entity(id).name.span,
                            "the scalar is defined here",
                        );
                    }
                    // It is bound all the same: what stands in its scope means the index.
                    self.fail(error.help("give the index another name"));
                }
                _ if name.contains('.') => {
                    self.unit.failed = true;
                    return;
                }
                _ => {}
            }
        }
        self.bound.push((name, span));
        self.resolver.define(name, span, Kind::Index);
        if let Some(bound) = bound {
            if left {
                self.closed(bound);
            } else {
                self.expr(bound, true);
            }
        }
    }

    pub(crate) fn expr(&mut self, expr: &'a Expr, position: bool) {
        if self.depth >= DEEPEST {
            self.fail(
                Diagnostic::error("E0210", "this expression is nested too deeply")
                    .at(expr.span, format!("more than {DEEPEST} levels"))
                    .help("give inner parts names of their own"),
            );
            return;
        }
        if self.unit.failed && self.depth > 0 && self.resolver.report.mark() > 1000 {
            return;
        }
        self.depth += 1;
        self.expr_inner(expr, position);
        self.depth -= 1;
    }

    fn expr_inner(&mut self, expr: &'a Expr, position: bool) {
        match &*expr.kind {
            ExprKind::Integer(_) | ExprKind::Float(_) | ExprKind::Bool(_) => {}
            ExprKind::Error => self.unit.failed = true,
            ExprKind::Name(name) => self.name(name, expr.span, position),
            ExprKind::String(_) => self.fail(
                Diagnostic::error("E0204", "a string cannot stand here")
                    .at(expr.span, "strings are for `load`, `use` and `output` only"),
            ),
            ExprKind::Next(name) => self.fail(
                Diagnostic::error(
                    "E0204",
                    format!("`next {}` outside of a `repeat`", name.text),
                )
                .at(expr.span, "there are no rounds here"),
            ),
            ExprKind::Tuple(_) => self.fail(
                Diagnostic::error("E0204", "several values cannot stand here")
                    .at(expr.span, "one value is needed"),
            ),
            ExprKind::List(_) => self.fail(
                Diagnostic::error("E0204", "a list cannot stand here")
                    .at(expr.span, "a value is needed")
                    .help("give it a name: `const w = [1, 2, 1]`"),
            ),
            ExprKind::Negate(inner) | ExprKind::Not(inner) | ExprKind::Bracket(inner) => {
                self.expr(inner, position);
            }
            ExprKind::Binary { .. } => {
                let (first, rest) = spine(expr);
                if rest.len() > LONGEST {
                    self.fail(
                        Diagnostic::error("E0210", "this chain of operators is too long")
                            .at(expr.span, format!("more than {LONGEST} operands"))
                            .help("give parts of it names of their own"),
                    );
                    return;
                }
                self.expr(first, position);
                for (_, _, right) in rest {
                    self.expr(right, position);
                }
            }
            ExprKind::Chain { first, rest } => {
                self.expr(first, position);
                for (_, operand) in rest {
                    self.expr(operand, position);
                }
            }
            ExprKind::Else { value, fallback } => {
                if !matches!(&*value.kind, ExprKind::Access { .. } | ExprKind::Error) {
                    self.fail(
                        Diagnostic::error(
                            "E0310",
                            "`else` says what a position outside of a tensor reads",
                        )
                        .at(value.span, "this is not an access")
                        .help("write it behind the positions: `x[i - 1] else 0`"),
                    );
                }
                self.expr(value, position);
                self.expr(fallback, position);
            }
            ExprKind::Reduce { indices, body, .. } => {
                let before = self.bound.len();
                for index in indices {
                    self.bind(index, false);
                }
                self.expr(body, position);
                self.bound.truncate(before);
            }
            ExprKind::Access { base, positions } => self.access(base, positions, position),
            ExprKind::Call { callee, arguments } => {
                self.call(expr.span, callee, arguments, position)
            }
        }
    }
}

pub(crate) fn walk_source<'a>(walk: &mut Walk<'_, 'a>, expr: &'a Expr) {
    if let ExprKind::List(items) = &*expr.kind {
        for item in items {
            match &*item.kind {
                ExprKind::List(_) => walk_source(walk, item),
                _ => walk.value(item),
            }
        }
    }
    if let ExprKind::Call { arguments, .. } = &*expr.kind {
        for argument in arguments {
            if !matches!(&*argument.value.kind, ExprKind::String(_)) {
                walk.value(&argument.value);
            }
        }
    }
}
