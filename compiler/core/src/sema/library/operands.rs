//! Calls of library operations, `solve(A, b)`: what they are called with, and the tensors they make.
//!
//! Arguments are whole tensors or slices; a slice by more than plain indices is a tensor of its own first. Must not know how
//! anything is computed.
//!
//! ```text
//! solve(A[p], y[p])[i]   =>   solve.1: [p, i] solve(A[p, :1, :2], y[p, :1], i), read at (p, i)
//! ```

use crate::sema::{
    Checker,
    calls::functions::Results,
    definitions::tensors::Target,
    expressions::arena::ExprId,
    expressions::scope::{Binding, Context, Scope, View},
    library::operations::Operation,
    report::plural,
    resolve::forms::unbracket,
    resolve::names::Shape,
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::Function;
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind};

/// A call that is being checked.
pub(crate) struct Call {
    pub(crate) operation: Operation,
    pub(crate) views: Vec<View>,
    /// The places of the arguments.
    pub(crate) places: Vec<Span>,
    /// How many values `topk` or `irfft` is asked for.
    pub(crate) count: Option<Size>,
    pub(crate) span: Span,
}

impl<'a> Checker<'a> {
    /// Returns whether a call is one of a library operation that gives tensors.
    pub(crate) fn gives_tensors(
        &self,
        scope: &Scope<'a>,
        (callee, arguments): (&Expr, &[Argument]),
    ) -> bool {
        self.names
            .library_of(scope.file, callee, arguments.len())
            .is_some_and(|operation| operation.shape() != Shape::Scalar)
    }

    /// `y = inv(A)`.
    pub(crate) fn define_library(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        value: &'a Expr,
    ) -> Option<Binding> {
        let hint = target.named.map(|span| (target.name.clone(), span));
        self.indices.open.push(Open::default());
        let mut context = Context::new(scope);
        let result = self.whole_library(&mut context, value, hint.as_slice());
        let solved = self.close_behind(result == Some(None));
        let view = result.filter(|_| solved)??;
        self.whole(scope, target, view, value.span)
    }

    /// The one tensor that a whole value is, if it is such a call; the inner `None`: it is wrong.
    pub(crate) fn whole_library(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: &'a Expr,
        hints: &[(String, Span)],
    ) -> Option<Option<View>> {
        let ExprKind::Call { callee, arguments } = &*value.kind else {
            return None;
        };
        let operation = (self.names).library_of(context.scope.file, callee, arguments.len())?;
        if operation.results.len() > 1 {
            self.report.push(wrong_parts(operation, 1, value.span));
            return Some(None);
        }
        let results = self.library(context, operation, arguments, value.span, hints);
        Some(results.and_then(|results| match results.first() {
            Some(Binding::Tensor(view)) => Some(*view),
            _ => None,
        }))
    }

    /// Checks a call whose result is a scalar.
    pub(crate) fn library_value(
        &mut self,
        context: &mut Context<'_, 'a>,
        value: (&'a Expr, &'a [Argument]),
        span: Span,
    ) -> Option<ExprId> {
        let operation = (self.names).library_of(context.scope.file, value.0, value.1.len())?;
        if operation.results.len() > 1 {
            self.report.push(wrong_parts(operation, 1, span));
            return None;
        }
        let results = self.library(context, operation, value.1, span, &[])?;
        match results.first() {
            Some(Binding::Tensor(view)) => self.scalar_read(*view, span),
            _ => None,
        }
    }

    /// The call behind several names, if it is one of a library operation.
    pub(crate) fn several_library(
        &mut self,
        scope: &Scope<'a>,
        value: &'a Expr,
        names: usize,
        hints: &[(String, Span)],
    ) -> Option<Option<Results>> {
        let ExprKind::Call { callee, arguments } = &*unbracket(value).kind else {
            return None;
        };
        let operation = (self.names).library_of(scope.file, callee, arguments.len())?;
        if operation.results.len() != names {
            self.report.push(wrong_parts(operation, names, value.span));
            return Some(None);
        }
        self.indices.open.push(Open::default());
        let mut context = Context::new(scope);
        let results = self.library(&mut context, operation, arguments, value.span, hints);
        let solved = self.close_behind(results.is_none());
        Some(results.filter(|_| solved))
    }

    /// One call: a binding for each result.
    fn library(
        &mut self,
        context: &mut Context<'_, 'a>,
        operation: Operation,
        arguments: &'a [Argument],
        span: Span,
        hints: &[(String, Span)],
    ) -> Option<Results> {
        let name = operation.name;
        self.by_position(name, arguments)?;
        let takes = operation.arguments();
        if arguments.len() != takes {
            let given = arguments.len();
            let takes = Operation::numbers_of_arguments(name);
            let plural = plural(usize::from(takes != "1") + 1);
            self.report.push(
                Diagnostic::error(
                    "E0502",
                    format!("`{name}` takes {takes} argument{plural}, not {given}",),
                )
                .at(span, format!("{given} given")),
            );
            return None;
        }
        // What it is given is computed whatever conditions hold around the call.
        let path = std::mem::take(self.open_path());
        let tensors = &arguments[..operation.tensors];
        let views: Vec<Option<View>> = tensors
            .iter()
            .map(|argument| self.library_argument(context, name, &argument.value))
            .collect();
        *self.open_path() = path;
        let views = views.into_iter().collect::<Option<Vec<View>>>()?;
        let views = self.typed_views(&operation, views, span)?;
        let count = match arguments.get(operation.tensors) {
            Some(count) => Some(self.size(context.scope, &count.value, "the number of values")?),
            None => None,
        };
        let call = Call {
            operation,
            views,
            places: arguments.iter().map(|a| a.value.span).collect(),
            count,
            span,
        };
        if operation.complex {
            return self.transform(call, hints);
        }
        self.library_types(&call)?;
        if operation.function == Function::Eig {
            return self.eigen(call, hints);
        }
        let result = self.library_sizes(&call)?;
        self.library_call(call, result, hints)
    }

    pub(crate) fn library_argument(
        &mut self,
        context: &mut Context<'_, 'a>,
        function: &str,
        value: &'a Expr,
    ) -> Option<View> {
        let inner = unbracket(value);
        let binding = match &*inner.kind {
            ExprKind::Name(name)
                if context.index(name).is_none() || self.is_whole(context, name) =>
            {
                self.binding(context.scope, name)
            }
            ExprKind::Call { callee, arguments } => {
                if let Some(view) = self.whole_gradient(context, inner) {
                    return view;
                }
                if let Some(view) = self.whole_library(context, inner, &[]) {
                    return view;
                }
                match self.callee(context.scope, callee) {
                    Some((_, callable)) if callable.shape() == Shape::Tensor => {
                        Some(self.call_one(context, callee, arguments, value.span, &[])?)
                    }
                    _ => None,
                }
            }
            ExprKind::Access { base, positions } => {
                Some(self.slice_argument(context, base, positions, value.span)?)
            }
            _ => None,
        };
        match binding {
            Some(Binding::Tensor(view)) => return Some(view),
            Some(Binding::Poison) => return None,
            _ => {}
        }
        let text = self.names.text(value.span);
        self.report.push(
            Diagnostic::error("E0503", format!("`{function}` takes whole tensors"))
                .at(value.span, "this is a value at each point")
                .help("pass the tensor's name, or a slice, `x[p]`, and write the positions behind the call: `f(x)[i]`")
                .help(format!("or define it first: `t[…] = {text}`")),
        );
        None
    }

    /// Returns whether a name that is an index, too, is a tensor.
    fn is_whole(&mut self, context: &Context<'_, 'a>, name: &str) -> bool {
        matches!(self.binding(context.scope, name), Some(Binding::Tensor(_)))
    }
}

/// Returns the error that names and results of a call do not match.
pub(crate) fn wrong_parts(operation: Operation, names: usize, span: Span) -> Diagnostic {
    let (name, results) = (operation.name, operation.results.len());
    let given = operation.results.join(", ");
    let what = match names {
        1 => format!("`{name}` gives {results} results, and one value is needed here"),
        _ => format!(
            "`{name}` gives {results} result{}, not {names}",
            plural(results)
        ),
    };

    Diagnostic::error("E0505", what)
        .at(span, "in this call")
        .help(format!("give each of them a name: `{given} = {name}(…)`"))
}
