//! Expressions by what the names in them stand for: calls of functions, instances, library operations, sources and `grad`.
//!
//! Must not know arguments, sizes or bodies.
//!
//! ```text
//! dense(X, W): a call of the function `dense`;   normal(0, 1): a source;   grad(loss, W): shaped like `W`
//! ```

use crate::sema::{
    calls::callee::Callable,
    expressions::builtins::{self, Builtin, JACOBIAN, JVP, LISTED, SOURCES},
    library::operations::Operation,
    resolve::forms::{bare_name, formal_shape, unbracket},
    resolve::names::{EntityId, EntityKind, Found, Names, Shape},
};
use einc_diag::FileId;
use einc_syntax::ast::{Expr, ExprKind};
use std::collections::BTreeMap;

impl<'a> Names<'a> {
    /// An entity in the form of a callable, if it is one.
    pub(crate) fn callable(&self, id: EntityId) -> Option<Callable<'a>> {
        match self.entity(id).kind {
            EntityKind::Function(function) => Some(Callable::of_function(function)),
            EntityKind::Module(module) => Some(Callable::of_module(module)),
            _ => None,
        }
    }

    /// Returns the function that a call in the text of a file calls, or the module whose instance it applies. `inner`:
    /// the instances inside the module around.
    pub(crate) fn callee_of(
        &self,
        file: FileId,
        inner: &BTreeMap<&'a str, EntityId>,
        callee: &Expr,
    ) -> Option<(EntityId, Callable<'a>)> {
        let (base, indexed) = match &*callee.kind {
            ExprKind::Access { base, .. } => (base, true),
            _ => (callee, false),
        };
        let ExprKind::Name(name) = &*base.kind else {
            return None;
        };
        let module = match inner.get(name.as_str()) {
            Some(module) => *module,
            None => match self.find(file, name) {
                Found::Entity(id) => match self.entity(id).kind {
                    EntityKind::Function(_) if !indexed => id,
                    EntityKind::Instance(declared) => {
                        self.module(self.entity(id).file, &declared.module.text)?.0
                    }
                    _ => return None,
                },
                _ => return None,
            },
        };
        self.callable(module).map(|callable| (module, callable))
    }

    /// Returns whether a call of a name calls what the language has of it: a tensor or number of the program may have the name of a function of
    /// the language, a function or instance of the program takes its place.
    fn calls_the_language(&self, file: FileId, name: &str) -> bool {
        match self.find(file, name) {
            Found::Nothing => true,
            Found::Entity(id) => !matches!(
                self.entity(id).kind,
                EntityKind::Function(_) | EntityKind::Module(_) | EntityKind::Instance(_)
            ),
            Found::Member(_) | Found::Poison => false,
        }
    }

    /// The library operation that a call in the text of a file calls, with so many arguments.
    pub(crate) fn library_of(
        &self,
        file: FileId,
        callee: &Expr,
        arguments: usize,
    ) -> Option<Operation> {
        match &*callee.kind {
            ExprKind::Name(name)
                if builtins::find(name) == Some(Builtin::Library)
                    && self.calls_the_language(file, name) =>
            {
                Operation::taking(name, arguments)
            }
            _ => None,
        }
    }

    /// The library operation that a right side calls.
    pub(crate) fn operation_of(&self, file: FileId, value: &Expr) -> Option<Operation> {
        match &*unbracket(value).kind {
            ExprKind::Call { callee, arguments } => self.library_of(file, callee, arguments.len()),
            _ => None,
        }
    }

    /// Returns the source that an expression names or calls, unless the file has something else of that name; of a list, [`LISTED`].
    pub(crate) fn source_of(&self, file: FileId, expr: &'a Expr) -> Option<&'a str> {
        let (name, free) = match &*expr.kind {
            ExprKind::Name(name) => (name, self.find(file, name) == Found::Nothing),
            ExprKind::Call { callee, .. } => match &*callee.kind {
                ExprKind::Name(name) => (name, self.calls_the_language(file, name)),
                _ => return None,
            },
            ExprKind::List(_) => return Some(LISTED),
            _ => return None,
        };
        (free && SOURCES.contains(&name.as_str())).then_some(name)
    }

    /// Returns whether a call of that name is `grad`, `jacobian`, `jvp` or `hvp` of the language.
    pub(crate) fn is_gradient(&self, file: FileId, callee: &Expr) -> bool {
        matches!(&*callee.kind, ExprKind::Name(name)
            if builtins::find(name) == Some(Builtin::Gradient) && self.calls_the_language(file, name))
    }

    /// Returns the expression whose shape a right side has, as far as it is a tensor: for a gradient, the tensor by which it is taken,
    /// for a Jacobian or a derivative along a direction the one that is differentiated.
    pub(crate) fn shaped_like<'e>(&self, file: FileId, mut value: &'e Expr) -> &'e Expr {
        loop {
            value = match &*value.kind {
                ExprKind::Bracket(inner) => inner,
                ExprKind::Call { callee, arguments } if self.is_gradient(file, callee) => {
                    let like_first = matches!(&*callee.kind, ExprKind::Name(name)
                        if matches!(name.as_str(), JACOBIAN | JVP));
                    match arguments.get(usize::from(!like_first)) {
                        Some(argument) => &argument.value,
                        None => return value,
                    }
                }
                _ => return value,
            };
        }
    }

    /// The names in the brackets of a signature that are sizes of its own: not its scalars or options, nor, in results, dims and
    /// constants known outside.
    pub(crate) fn letters(&self, file: FileId, function: Callable<'a>) -> Vec<&'a str> {
        let (formals, results) = (function.formals, function.results);
        let mut letters = vec![];
        for (name, _) in formals
            .iter()
            .chain(results)
            .filter_map(formal_shape)
            .flatten()
            .filter_map(bare_name)
        {
            let scalar_formal = function
                .options
                .iter()
                .chain(formals)
                .any(|formal| formal.name.text == name && formal_shape(formal).is_none());
            // What is passed has sizes of its own; those of a result may be sizes known outside.
            let passed = formals
                .iter()
                .filter_map(formal_shape)
                .flatten()
                .filter_map(bare_name)
                .any(|(passed, _)| passed == name);
            let size = |id: EntityId| {
                let kind = self.entity(id).kind;
                let is_fixed = matches!(
                    kind,
                    EntityKind::Dim(_) | EntityKind::Definition { constant: true, .. }
                );
                is_fixed && self.shape_of(id) == Shape::Scalar
            };
            let outer = !passed && matches!(self.find(file, name), Found::Entity(id) if size(id));
            let constant = matches!(name, "inf" | "nan" | "pi");
            if !scalar_formal
                && !outer
                && !constant
                && !name.contains('.')
                && !letters.contains(&name)
            {
                letters.push(name);
            }
        }
        letters
    }
}
