//! Accesses and calls in the walk of `resolve`: what is read, what is called, which arguments are tensors.
//!
//! Must not know sizes or types.
//!
//! ```text
//! dense(X, W, b)[n, h]   =>   uses dense X W b, positions n h
//! ```

use crate::sema::{
    calls::callee::Callable,
    expressions::builtins::{self, Builtin},
    resolve::forms::{bound_index, formal_shape, unbracket},
    resolve::names::{EntityId, EntityKind, Found, Shape},
    resolve::static_scope::{Local, Meaning},
    resolve::walk::Walk,
    rounds::scan::SCAN,
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind, Position};

impl<'a> Walk<'_, 'a> {
    pub(crate) fn access(&mut self, base: &'a Expr, positions: &'a [Position], position: bool) {
        match &*base.kind {
            ExprKind::Name(name) => match self.meaning(name) {
                Meaning::Tensor => self.used(name, base.span),
                Meaning::Poison => self.unit.failed = true,
                Meaning::Unknown => {
                    self.unit.failed = true;
                    let locals: Vec<&str> = self.scope.locals.keys().copied().collect();
                    if builtins::find(name).is_some() {
                        self.fail(
                            Diagnostic::error("E0204", format!("`{name}` is a function"))
                                .at(base.span, "its arguments stand in round brackets")
                                .help(format!("write `{name}(…)`")),
                        );
                    } else {
                        self.resolver
                            .unknown(self.scope.file, name, base.span, &locals, false);
                    }
                }
                Meaning::Function => {
                    let (file, inner) = (self.scope.file, &self.scope.inner);
                    let instance = self.resolver.names.no_value(file, inner, name, base.span);
                    self.fail(instance.unwrap_or_else(|| {
                        Diagnostic::error("E0204", format!("`{name}` is a function"))
                            .at(base.span, "its arguments stand in round brackets")
                            .help(format!("write `{name}(…)`"))
                    }));
                }
                Meaning::Scalar if self.scope.locals.get(name.as_str()) == Some(&Local::Any) => {
                    self.refer_outside(name, base.span);
                }
                // A tensor whose name is also an index: the brackets say which is meant.
                Meaning::Index | Meaning::Letter
                    if matches!(
                        self.scope.locals.get(name.as_str()),
                        Some(Local::Tensor | Local::Item(_, Shape::Tensor))
                    ) || self.outer_tensor(name) =>
                {
                    self.refer_outside(name, base.span);
                    match self.scope.locals.get(name.as_str()) {
                        Some(Local::Item(number, _)) => self.unit.items.push((*number, base.span)),
                        Some(_) => {}
                        None => {
                            if let Found::Entity(id) =
                                self.resolver.names.find(self.scope.file, name)
                            {
                                self.unit.uses.push((id, base.span));
                            }
                        }
                    }
                }
                Meaning::Index | Meaning::Letter | Meaning::Scalar => self.fail(
                    Diagnostic::error("E0304", format!("`{name}` is not a tensor"))
                        .at(base.span, "it has no dimensions, so no positions")
                        .help(format!("write `{name}` alone")),
                ),
            },
            ExprKind::Call { callee, arguments } => {
                self.depth += 1;
                self.call(base.span, callee, arguments, position);
                self.depth -= 1;
            }
            ExprKind::Error => self.unit.failed = true,
            of => self.fail(
                Diagnostic::error("E0304", "only a name or a call has positions")
                    .at(base.span, "this is an expression")
                    .help(match of {
                        ExprKind::Access { .. } => {
                            "all positions stand in one pair of brackets: `A[i,j]`"
                        }
                        ExprKind::Else { .. } => {
                            "what `else` gives stands in parentheses if it has positions: `x[i - 1] else (x[0])`"
                        }
                        _ => "give it a name first: `t[i,j] = …`",
                    }),
            ),
        }
        for position in positions {
            if let Some((name, span, Some(_))) = bound_index(position)
                && self.left
            {
                self.refer(name, span);
                continue;
            }
            match position {
                Position::Expr(expr) => self.position(expr),
                Position::Rest(span) => {
                    self.rest(*span);
                    if self.scope.rest && !self.is_bound("..") {
                        self.note_implicit("..", *span);
                    }
                }
            }
        }
    }

    /// A position of an access. A name alone in it is an index or a scalar; the counter of a block is an index outside of its block.
    pub(crate) fn position(&mut self, expr: &'a Expr) {
        if let ExprKind::Name(name) = &*expr.kind {
            if self.is_outer_counter(name) {
                return self.note_implicit(name, expr.span);
            }
            let outside = !self.scope.locals.contains_key(name.as_str());
            if outside && self.scope.file.0 == 0 && matches!(self.meaning(name), Meaning::Scalar) {
                self.scalars.push((name, expr.span));
            }
        }
        self.expr(expr, true);
    }

    /// Returns whether it has been said what is wrong with a name, or with the module of an instance that cannot be applied.
    fn is_reported(&self, name: &str) -> bool {
        match self.resolver.names.find(self.scope.file, name) {
            Found::Poison => true,
            Found::Entity(id) => {
                matches!(self.resolver.names.entity(id).kind, EntityKind::Instance(_))
            }
            _ => false,
        }
    }

    pub(crate) fn outer_tensor(&self, name: &str) -> bool {
        if let Some(owned) = self.scope.owner_of(name) {
            let shape = self
                .resolver
                .names
                .path_shape(self.scope.file, owned.declared, name);
            return shape == Shape::Tensor;
        }
        match self.resolver.names.find(self.scope.file, name) {
            Found::Entity(id) => self.resolver.names.shape_of(id) == Shape::Tensor,
            Found::Member(id) => self.resolver.names.member_shape(id, name) == Shape::Tensor,
            _ => false,
        }
    }

    pub(crate) fn call(
        &mut self,
        span: Span,
        callee: &'a Expr,
        arguments: &'a [Argument],
        position: bool,
    ) {
        if let Some((id, _)) = self.callee(callee) {
            return self.call_of(id, callee, arguments, position);
        }
        let base = match &*callee.kind {
            ExprKind::Access { base, .. } => base,
            _ => callee,
        };
        if matches!(&*base.kind, ExprKind::Name(name) if self.is_reported(name)) {
            self.unit.failed = true;
            return;
        }
        let ExprKind::Name(name) = &*callee.kind else {
            let is_scan = matches!(&*base.kind, ExprKind::Name(name) if name == SCAN);
            self.fail(match is_scan {
                true => Diagnostic::error("E0204", "a scan has another form")
                    .at(callee.span, "in this scan")
                    .help("it is a right side of its own, with a counter, one state and its next value: `H[t, i] = scan[t < T](h: h0[i], 0.5 * h[i] + x[t,i])`")
                    .help("rounds with several states, or that end early, are a `repeat`"),
                false => Diagnostic::error("E0204", "only a name can be called")
                    .at(callee.span, "this is not a name"),
            });
            return;
        };
        let entity = self.resolver.names.find(self.scope.file, name);
        self.not_called(entity, callee, name);
        // A tensor may have the name of a function of the language: what is called is the function.
        if matches!(entity, Found::Nothing | Found::Entity(_)) {
            match builtins::find(name) {
                Some(Builtin::Source) => self.fail(
                    Diagnostic::error(
                        "E0207",
                        format!("the source `{name}` cannot stand inside an expression"),
                    )
                    .at(span, "a source is the whole right side")
                    .help(format!(
                        "give it a name: `u[i < n]: f32[n] = {}`",
                        self.resolver.names.text(span)
                    )),
                ),
                Some(Builtin::Size) => {
                    self.size_of(span, arguments);
                    return;
                }
                Some(_) => {}
                None if entity == Found::Nothing => {
                    self.unit.failed = true;
                    self.resolver
                        .unknown(self.scope.file, name, callee.span, &[], true);
                }
                None => {}
            }
        }
        let whole = self.takes_tensors(callee);
        for argument in arguments {
            if whole
                && let ExprKind::Name(name) = &*argument.value.kind
                && self.is_tensor_argument(name, argument.value.span)
            {
                continue;
            }
            self.expr(&argument.value, position);
        }
    }

    /// Reports a definition of the program that is called and cannot be.
    fn not_called(&mut self, entity: Found, callee: &'a Expr, name: &str) {
        match entity {
            Found::Entity(id) => match self.resolver.names.entity(id).kind {
                EntityKind::Module(module) => {
                    let name = &module.name.text;
                    self.fail(
                        Diagnostic::error("E0510", format!("`{name}` is a module"))
                            .at(callee.span, "only an instance of it can be applied")
                            .help(format!(
                                "declare one, and apply that: `param layer: {name}(…)`, `layer(…)`"
                            )),
                    );
                }
                _ if builtins::find(name).is_some() => {}
                _ => self.fail(
                    Diagnostic::error("E0204", format!("`{name}` is not a function"))
                        .at(callee.span, "called here")
                        .at(self.resolver.names.entity(id).name.span, "defined here")
                        .help(format!("positions stand in square brackets: `{name}[…]`")),
                ),
            },
            Found::Member(_) => self.fail(
                Diagnostic::error("E0510", format!("`{name}` cannot be applied from outside"))
                    .at(callee.span, "inside of an instance")
                    .help("apply the instance, or declare one of your own"),
            ),
            Found::Nothing | Found::Poison => {}
        }
    }

    /// `size(d)`: its argument is an index or a size.
    fn size_of(&mut self, span: Span, arguments: &'a [Argument]) {
        if let [argument] = arguments
            && let ExprKind::Name(index) = &*argument.value.kind
        {
            match self.meaning(index) {
                Meaning::Scalar => self.used(index, argument.value.span),
                Meaning::Index | Meaning::Letter => {
                    self.refer(index, argument.value.span);
                }
                Meaning::Poison => self.unit.failed = true,
                _ => self.pending.push((index, argument.value.span)),
            }
        } else {
            self.fail(
                Diagnostic::error("E0502", "`size` takes one index or size")
                    .at(span, "as in `size(d)`"),
            );
        }
    }

    /// Returns the function or module of the user that a call calls.
    pub(crate) fn callee(&self, callee: &Expr) -> Option<(EntityId, Callable<'a>)> {
        self.resolver
            .names
            .callee_of(self.scope.file, &self.scope.inner, callee)
    }

    /// A call of a function, or of an instance of a module.
    fn call_of(
        &mut self,
        id: EntityId,
        callee: &'a Expr,
        arguments: &'a [Argument],
        position: bool,
    ) {
        if self.resolver.names.function_formal(id).is_some() {
            // Of an instance it has been said where it is declared.
            if matches!(self.resolver.names.entity(id).kind, EntityKind::Module(_)) {
                self.unit.failed = true;
                return;
            }
            return self.no_function(id, arguments, callee.span);
        }
        self.unit.uses.push((id, callee.span));
        let (base, positions) = match &*callee.kind {
            ExprKind::Access { base, positions } => (base, positions.as_slice()),
            _ => (callee, &[][..]),
        };
        if let ExprKind::Name(name) = &*base.kind {
            match self.scope.locals.get(name.as_str()) {
                Some(Local::Item(number, _)) => {
                    self.unit.items.push((*number, base.span));
                    self.refer_outside(name, base.span);
                }
                _ => self.used(name, base.span),
            }
        }
        for position in positions {
            match position {
                Position::Expr(expr) => self.closed(expr),
                Position::Rest(span) => self.rest(*span),
            }
        }
        for argument in arguments {
            if let ExprKind::Name(name) = &*argument.value.kind
                && self.is_tensor_argument(name, argument.value.span)
            {
                continue;
            }
            self.expr(&argument.value, position);
        }
    }

    /// Reports the use of a function or module that takes functions, where what is passed is none.
    pub(crate) fn no_function(&mut self, id: EntityId, arguments: &[Argument], span: Span) {
        self.unit.failed = true;
        let (file, names) = (self.scope.file, &self.resolver.names);
        let is_reported = arguments
            .iter()
            .any(|argument| match &*argument.value.kind {
                ExprKind::Name(name) => names.find(file, name) == Found::Poison,
                _ => false,
            });
        let name = &names.entity(id).name.text;
        let Some(formal) = names.function_formal(id).filter(|_| !is_reported) else {
            return;
        };
        let what = format!("`{name}` takes a function as `{}`", formal.text);
        let error = Diagnostic::error("E0517", what);
        let error = match arguments.iter().find_map(|argument| self.barred(argument)) {
            Some((place, label, help)) => error.at(place, label).help(help),
            None => error
                .at(span, "no name of a function is passed here")
                .help("pass the name of a function of the program, of a library or of the language, or of an instance of a module"),
        };
        self.fail(error.at(formal.span, "it is called in the body"));
    }

    /// Says of what cannot be passed as a function, but nearly, why it cannot, and what to pass instead.
    fn barred(&self, argument: &Argument) -> Option<(Span, &'static str, String)> {
        let (file, names) = (self.scope.file, &self.resolver.names);
        let value = unbracket(&argument.value);
        let text = names.text(value.span);
        match &*value.kind {
            ExprKind::Name(name) => match names.find(file, name) {
                Found::Entity(id) if names.function_formal(id).is_some() => {
                    let help = format!(
                        "write a function that says which it gets, `fn g(x) = {text}(…, x)`, and pass that"
                    );
                    Some((value.span, "this takes functions itself", help))
                }
                _ => None,
            },
            ExprKind::Access { base, .. } => match &*base.kind {
                ExprKind::Name(name) => match names.find(file, name) {
                    Found::Entity(id)
                        if matches!(names.entity(id).kind, EntityKind::Instance(_)) =>
                    {
                        let help = format!(
                            "write a function that applies it, `fn g(x[n]) -> y[n] {{ y = {text}(x) }}`, and pass that"
                        );
                        Some((value.span, "one of an array has no name of its own", help))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// A tensor's name as an argument of a function is the tensor, also where an index has that name.
    pub(crate) fn is_tensor_argument(&mut self, name: &'a str, span: Span) -> bool {
        let is_tensor = match self.scope.locals.get(name) {
            Some(Local::Tensor) => true,
            Some(Local::Item(number, Shape::Tensor)) => {
                self.unit.items.push((*number, span));
                true
            }
            Some(_) => false,
            None if self.outer_tensor(name) => {
                self.used_outside(name, span);
                true
            }
            None => false,
        };
        if is_tensor {
            self.refer_outside(name, span);
        }
        is_tensor
    }

    /// Returns whether a name in an argument is a tensor and so holds no index.
    pub(crate) fn names_tensor(&self, name: &str) -> bool {
        match self.scope.locals.get(name) {
            Some(Local::Tensor | Local::Item(_, Shape::Tensor)) => true,
            Some(_) => false,
            None => self.outer_tensor(name),
        }
    }

    /// Returns whether the call of a function or library operation takes a whole tensor as this argument.
    pub(crate) fn takes_tensor(&self, callee: &Expr, at: usize, argument: &Argument) -> bool {
        let Some((_, callable)) = self.callee(callee) else {
            return self
                .resolver
                .names
                .library_of(self.scope.file, callee, 0)
                .is_some();
        };
        let mut formals = callable.formals.iter();
        let formal = match &argument.name {
            Some(given) => formals.find(|formal| formal.name.text == given.text),
            None => formals.nth(at),
        };
        formal.is_some_and(|formal| formal_shape(formal).is_some())
    }

    /// Returns whether a call takes whole tensors: of a user's function, a library operation, or `grad`.
    pub(crate) fn takes_tensors(&self, callee: &Expr) -> bool {
        let file = self.scope.file;
        self.callee(callee).is_some()
            || self.resolver.names.is_gradient(file, callee)
            || self.resolver.names.library_of(file, callee, 0).is_some()
    }
}
