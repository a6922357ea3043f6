//! Functions and modules in one form, as something that can be called.
//!
//! Must not know arguments, sizes or bodies.
//!
//! ```text
//! fn cell(x[n], h[n]) -> a[n], b[n] { … }   =>   formals x h, results a b, a block
//! ```

use crate::sema::{
    Checker,
    expressions::scope::{Binding, Scope},
    resolve::forms::unbracket,
    resolve::names::{EntityId, Shape},
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, Formal, Function, FunctionBody, Item, Module, Name};
use std::collections::BTreeMap;

/// The body of a callable.
#[derive(Clone, Copy)]
pub(crate) enum Body<'a> {
    Expression(&'a Expr),
    Block(&'a [Item]),
}

/// A function.
#[derive(Clone, Copy)]
pub(crate) struct Callable<'a> {
    pub(crate) name: &'a Name,
    /// The first brackets of a module.
    pub(crate) options: &'a [Formal],
    pub(crate) formals: &'a [Formal],
    /// None of a function that is an expression.
    pub(crate) results: &'a [Formal],
    pub(crate) body: Body<'a>,
}

impl<'a> Callable<'a> {
    pub(crate) fn of_function(function: &'a Function) -> Callable<'a> {
        let (results, body) = match &function.body {
            FunctionBody::Expression(value) => (&[][..], Body::Expression(value)),
            FunctionBody::Block { results, body } => (results.as_slice(), Body::Block(body)),
        };
        Callable {
            name: &function.name,
            options: &[],
            formals: &function.formals,
            results,
            body,
        }
    }

    pub(crate) fn of_module(module: &'a Module) -> Callable<'a> {
        Callable {
            name: &module.name,
            options: &module.options,
            formals: &module.formals,
            results: &module.results,
            body: Body::Block(&module.body),
        }
    }

    pub(crate) fn is_block(&self) -> bool {
        matches!(self.body, Body::Block(_))
    }

    /// Returns whether it gives a tensor or a scalar; several results are neither.
    pub(crate) fn shape(&self) -> Shape {
        match (self.body, self.results) {
            (Body::Expression(_), _) => Shape::Scalar,
            (_, [result]) => result_kind(result),
            _ => Shape::Poison,
        }
    }
}

/// Returns whether a result is a tensor or a scalar.
pub(crate) fn result_kind(result: &Formal) -> Shape {
    match crate::sema::resolve::forms::formal_shape(result) {
        Some(_) => Shape::Tensor,
        None => Shape::Scalar,
    }
}

impl<'a> Checker<'a> {
    /// Returns the function or module that a call which is checked calls.
    pub(crate) fn callee(
        &self,
        scope: &Scope<'a>,
        callee: &Expr,
    ) -> Option<(EntityId, Callable<'a>)> {
        let base = match &*callee.kind {
            ExprKind::Access { base, .. } => base,
            _ => callee,
        };
        if let ExprKind::Name(name) = &*base.kind
            && let Some(Binding::Instance(id)) = scope.locals.get(name.as_str())
        {
            let module = self.module_of(*id);
            return self
                .names
                .callable(module)
                .map(|callable| (module, callable));
        }
        self.names.callee_of(scope.file, &BTreeMap::new(), callee)
    }

    /// Returns whether an expression is a call of something with a body: such a call is made once, where it stands.
    pub(crate) fn is_block_call(&self, scope: &Scope<'a>, expr: &Expr) -> bool {
        match &*unbracket(expr).kind {
            ExprKind::Call { callee, .. } => self
                .callee(scope, callee)
                .is_some_and(|(_, callable)| callable.is_block()),
            _ => false,
        }
    }
}

/// Returns the error that names and results of a call do not match.
pub(crate) fn wrong_results(callable: Callable<'_>, names: usize, span: Span) -> Diagnostic {
    let name = &callable.name.text;
    let results = callable.results.len().max(1);
    let given: Vec<&str> = callable
        .results
        .iter()
        .map(|r| r.name.text.as_str())
        .collect();
    let error = Diagnostic::error(
        "E0505",
        match names {
            1 => format!("`{name}` gives {results} results, and one value is needed here"),
            _ => format!(
                "`{name}` gives {results} result{}, not {names}",
                crate::sema::report::plural(results)
            ),
        },
    )
    .at(span, "in this call")
    .at(callable.name.span, "the function");
    if results > 1 {
        error.help(format!(
            "give each of them a name: `{} = {name}(…)`",
            given.join(", ")
        ))
    } else {
        error
    }
}
