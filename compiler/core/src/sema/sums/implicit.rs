//! Implicit sums: at which product an index that nothing binds is summed.
//!
//! The rule reads the text as written: the index is summed at the one product (a chain of `*`, `/` and unary
//! `-`) of which at least two factors hold it; if there is none, or one such product lies inside another, it is
//! an error. Must not know sizes or types.
//!
//! ```text
//! relu(X[n,d] * W[d,h] + b[h])     d: X[n,d] * W[d,h]
//! ```

use crate::sema::{
    resolve::forms::{bound_index, key, spine},
    resolve::static_scope::Local,
    resolve::walk::Walk,
};
use ein_plan::Reduction;
use einc_diag::{Diagnostic, Span, did_you_mean};
use einc_syntax::ast::{Argument, Binary, Expr, ExprKind, Position};

/// The places of an index in a part of a statement.
#[derive(Default)]
struct Place<'a> {
    /// Accesses that hold it and lie in no product that sums it.
    lonely: Vec<Span>,
    /// Products that would sum it.
    products: Vec<&'a Expr>,
    /// An expression that holds it and stands where a whole tensor does, with the function that takes it.
    argument: Option<(Span, Span)>,
}

impl Place<'_> {
    fn holds(&self) -> bool {
        !self.lonely.is_empty() || !self.products.is_empty()
    }
}

impl<'a> Place<'a> {
    fn join(mut self, other: Place<'a>) -> Place<'a> {
        self.lonely.extend(other.lonely);
        self.products.extend(other.products);
        self.argument = self.argument.or(other.argument);
        self
    }
}

impl<'a> Walk<'_, 'a> {
    /// Finds the product at which `index` is summed in `value`, and notes it; or reports why there is none.
    pub(crate) fn place_sum(&mut self, value: &'a Expr, index: &'a str) {
        let mut readings = None;
        let place = self.place(value, index, false, &mut readings);
        if let Some((outer, inner)) = readings {
            self.unit.failed = true;
            let (wide, narrow) = (
                self.resolver.names.text(outer.span),
                self.resolver.names.text(inner.span),
            );
            self.resolver.report.push(
                Diagnostic::error(
                    "E0303",
                    format!("the sum over `{index}` can be read in two ways"),
                )
                .at(outer.span, format!("`{index}` is repeated in this product"))
                .at(inner.span, "and in this one inside it")
                .help(format!(
                    "write `sum[{index}] {wide}` for one sum over the whole product"
                ))
                .help(format!(
                    "write `sum[{index}] {narrow}` in brackets for the sum over the inner one"
                )),
            );
        } else if let Some(span) = place.lonely.first()
            && self.several
            && place.argument.is_none()
        {
            self.unit.failed = true;
            self.resolver.report.push(
                Diagnostic::error(
                    "E0505",
                    format!("a call behind several names is made once, not for every `{index}`"),
                )
                .at(*span, format!("`{index}` is no index of this statement"))
                .help("pass all of the tensor: library operations take further dimensions before theirs, functions where they have `..`")
                .help(format!(
                    "or call a function that gives one result: `y[{index}] = f(x[{index}])`"
                )),
            );
        } else if let Some(span) = place.lonely.first() {
            self.unit.failed = true;
            let mut error = Diagnostic::error(
                "E0302",
                format!("`{index}` appears once here; write `sum[{index}] …`"),
            )
            .at(
                *span,
                format!("`{index}` is neither on the left nor in another factor"),
            );
            let text = self.resolver.names.text(*span);
            error = match place.argument {
                Some((argument, function)) => {
                    let [argument, function] =
                        [argument, function].map(|span| self.resolver.names.text(span));
                    error.help(format!(
                        "`{function}` takes a whole tensor: name it first, `t[…] = {argument}`, and pass `t`"
                    ))
                }
                None => match ended_before(value, index, *span) {
                    Some(reduction) => error.help(format!(
                        "`{0}[…]` takes in the product behind it alone; to take in a sum, bracket it: `{0}[…] (… + …)`",
                        reduction.name()
                    )),
                    None if self.ends => error.help(format!(
                        "all rounds end together: write `until all[{index}] (…)`, and keep what is done by `where` in the round"
                    )),
                    None => error.help(format!("to sum over it, write `sum[{index}] {text}`")),
                },
            };
            if self.scope.locals.get(index) == Some(&Local::Letter) {
                error = error.help(format!("`size({index})` is the number"));
            }
            let scalars: Vec<String> = self.resolver.names.scalars(self.scope.file);
            if let Some(near) = did_you_mean(index, scalars.iter().map(String::as_str))
                && index.chars().count() > 2
            {
                error = error.help(format!("or did you mean the scalar `{near}`?"));
            }
            self.resolver.report.push(error);
        } else {
            for product in place.products {
                let names = self.resolver.readings.sums.entry(key(product)).or_default();
                if !names.contains(&index) {
                    names.push(index);
                }
            }
        }
    }

    /// Returns whether several factors of a product contain a name.
    pub(crate) fn is_shared(&self, value: &'a Expr, name: &str) -> bool {
        !self
            .place(value, name, false, &mut None)
            .products
            .is_empty()
    }

    fn place(
        &self,
        expr: &'a Expr,
        index: &str,
        position: bool,
        readings: &mut Option<(&'a Expr, &'a Expr)>,
    ) -> Place<'a> {
        match &*expr.kind {
            ExprKind::Name(name) if name == index => Place {
                lonely: vec![expr.span],
                ..Place::default()
            },
            ExprKind::Bracket(inner) | ExprKind::Not(inner) => {
                self.place(inner, index, position, readings)
            }
            ExprKind::Negate(_)
            | ExprKind::Binary {
                operator: Binary::Multiply | Binary::Divide,
                ..
            } => self.product(expr, index, position, readings),
            ExprKind::Binary { .. } => {
                // Walk the chain until a product begins; that is one operand.
                let (first, rest) = spine(expr);
                let cut = rest
                    .iter()
                    .rposition(|(_, op, _)| matches!(op, Binary::Multiply | Binary::Divide));
                let head = cut.map_or(first, |at| rest[at].0);
                let tail = &rest[cut.map_or(0, |at| at + 1)..];
                tail.iter().fold(
                    self.place(head, index, position, readings),
                    |place, (_, _, right)| place.join(self.place(right, index, position, readings)),
                )
            }
            ExprKind::Chain { first, rest } => rest.iter().fold(
                self.place(first, index, position, readings),
                |place, (_, operand)| place.join(self.place(operand, index, position, readings)),
            ),
            ExprKind::Else { value, fallback } => self
                .place(value, index, position, readings)
                .join(self.place(fallback, index, position, readings)),
            ExprKind::Reduce { indices, body, .. } => {
                let binds = indices.iter().any(|position| {
                    crate::sema::resolve::forms::bound_index(position)
                        .is_some_and(|(name, ..)| name == index)
                });
                if binds {
                    return Place::default();
                }
                let bounds = indices
                    .iter()
                    .filter_map(crate::sema::resolve::forms::bound_index);
                bounds.filter_map(|(_, _, bound)| bound).fold(
                    self.place(body, index, position, readings),
                    |place, (bound, _)| place.join(self.place(bound, index, true, readings)),
                )
            }
            ExprKind::Access { base, positions } => {
                let mut place = Place::default();
                if let ExprKind::Call { callee, arguments } = &*base.kind {
                    place = self.arguments(callee, arguments, index, position, readings);
                }
                let mut inside = Place::default();
                for position in positions {
                    match position {
                        Position::Expr(expr) => {
                            inside = inside.join(self.place(expr, index, true, readings));
                        }
                        Position::Rest(span) if index == ".." => inside.lonely.push(*span),
                        Position::Rest(_) => {}
                    }
                }
                if !inside.lonely.is_empty() {
                    inside.lonely = vec![expr.span];
                }
                place.join(inside)
            }
            ExprKind::Call { callee, arguments } => {
                if matches!(&*callee.kind, ExprKind::Name(name) if name == "size") {
                    return Place::default();
                }
                self.arguments(callee, arguments, index, position, readings)
            }
            _ => Place::default(),
        }
    }

    fn arguments(
        &self,
        callee: &Expr,
        arguments: &'a [Argument],
        index: &str,
        position: bool,
        readings: &mut Option<(&'a Expr, &'a Expr)>,
    ) -> Place<'a> {
        let whole = self.takes_tensors(callee);
        arguments
            .iter()
            .enumerate()
            .filter(|(_, argument)| {
                !(whole
                    && matches!(&*argument.value.kind, ExprKind::Name(name) if self.names_tensor(name)))
            })
            .fold(Place::default(), |all, (at, argument)| {
                let mut place = self.place(&argument.value, index, position, readings);
                let is_slice = matches!(&*argument.value.kind, ExprKind::Access { .. });
                if !place.lonely.is_empty() && !is_slice && self.takes_tensor(callee, at, argument) {
                    place.argument = place.argument.or(Some((argument.value.span, callee.span)));
                }
                all.join(place)
            })
    }

    fn product(
        &self,
        expr: &'a Expr,
        index: &str,
        position: bool,
        readings: &mut Option<(&'a Expr, &'a Expr)>,
    ) -> Place<'a> {
        let mut holding = vec![];
        for factor in factors(expr) {
            let place = self.place(factor, index, position, readings);
            if place.holds() {
                // Index arithmetic inside a position, such as `i * i`, is no product of values.
                let counts = !position || !is_number(factor);
                holding.push((place, counts));
            }
        }
        if holding.iter().filter(|(_, counts)| *counts).count() < 2 {
            return holding
                .into_iter()
                .fold(Place::default(), |all, (place, _)| all.join(place));
        }
        if let Some(inner) = holding.iter().find_map(|(place, _)| place.products.first()) {
            readings.get_or_insert((expr, inner));
        }
        Place {
            products: vec![expr],
            ..Place::default()
        }
    }
}

/// The reduction over an index that stands in the same sum as this place, but before it, and has ended: `sum[i] a[i] + b[i]`.
fn ended_before(expr: &Expr, index: &str, at: Span) -> Option<Reduction> {
    let holds = |e: &&Expr| e.span.start <= at.start && at.end <= e.span.end;
    if let ExprKind::Binary { .. } = &*expr.kind {
        let (first, rest) = spine(expr);
        let mut operands = vec![first];
        operands.extend(rest.iter().map(|(.., right)| *right));
        let here = operands.iter().position(holds).unwrap_or(0);
        let ended = operands[..here].iter().find_map(|e| match &*e.kind {
            ExprKind::Reduce {
                reduction, indices, ..
            } => indices
                .iter()
                .filter_map(bound_index)
                .any(|(name, ..)| name == index)
                .then_some(*reduction),
            _ => None,
        });
        if ended.is_some() {
            return ended;
        }
    }
    let children = expr.kind.children().into_iter();
    children
        .filter(holds)
        .find_map(|child| ended_before(child, index, at))
}

/// The factors of a product: a chain of `*`, `/` and unary `-`.
fn factors(expr: &Expr) -> Vec<&Expr> {
    let (mut open, mut factors) = (vec![expr], vec![]);
    while let Some(expr) = open.pop() {
        match &*expr.kind {
            ExprKind::Negate(inner) => open.push(inner),
            ExprKind::Binary {
                operator: Binary::Multiply | Binary::Divide,
                left,
                right,
                ..
            } => {
                open.push(right);
                open.push(left);
            }
            _ => factors.push(expr),
        }
    }
    factors
}

/// Returns whether a factor is made of indices and numbers only.
fn is_number(expr: &Expr) -> bool {
    match &*expr.kind {
        ExprKind::Access { .. } | ExprKind::Call { .. } | ExprKind::Reduce { .. } => false,
        ExprKind::Bracket(inner) | ExprKind::Negate(inner) => is_number(inner),
        ExprKind::Binary { .. } => {
            let (first, rest) = spine(expr);
            is_number(first) && rest.iter().all(|(_, _, right)| is_number(right))
        }
        _ => true,
    }
}
