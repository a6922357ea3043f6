//! Calls of the user's functions: arguments, sizes of the signature, and what the body gives.
//!
//! A function that is an expression is read where it is called; one with a body makes tensors of its own, once
//! for every different list of arguments. Must not know kernels.
//!
//! ```text
//! dense(X, W, b)   x: X, w: W, b: b, `..`: N, d: 64, h: 10   =>   tensor dense.1.y
//! ```

use super::{
    Checker,
    arena::ExprId,
    expr::{Binding, Context, Scope},
    names::{EntityId, EntityKind, Found},
    statement::Target,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{
    Argument, Formal, Function, FunctionBody, ItemKind, Position, Statement, Type,
};
use std::collections::BTreeMap;

/// Calls may be nested this deep.
const DEEPEST: usize = 100;
/// A program may have this many tensors.
const MOST_TENSORS: usize = 200_000;

/// What makes two calls the same.
pub(super) type CallKey = (EntityId, Vec<Binding>, Vec<ExprId>);

impl<'a> Checker<'a> {
    /// The user's function of that name.
    pub(super) fn user_function(
        &self,
        scope: &Scope<'a>,
        name: &str,
    ) -> Option<(EntityId, &'a Function)> {
        match self.find(scope.file, name) {
            Found::Entity(id) => match self.entity(id).kind {
                EntityKind::Function(function) => Some((id, function)),
                _ => None,
            },
            _ => None,
        }
    }

    /// One call. `hint`: the name that a whole tensor gets from its definition, and the place.
    pub(super) fn call_user(
        &mut self,
        context: &mut Context<'_, 'a>,
        entity: EntityId,
        function: &'a Function,
        arguments: &'a [Argument],
        span: Span,
        hint: Option<(&str, Span)>,
    ) -> Option<Binding> {
        let name = function.name.text.as_str();
        if self.failed.contains(&entity) {
            if let Some(diagnostic) = self.on_call.get(&entity) {
                let diagnostic = diagnostic.clone();
                self.report
                    .push(diagnostic.at(span, format!("in this call of `{name}`")));
            }
            return None;
        }
        if context.scope.depth >= DEEPEST || self.tensors.len() > MOST_TENSORS {
            self.report.push(
                Diagnostic::error(
                    "E0509",
                    "calls are nested too deeply or make too many tensors",
                )
                .at(
                    span,
                    format!(
                        "calls here are limited to {DEEPEST} levels and {MOST_TENSORS} tensors"
                    ),
                ),
            );
            return None;
        }
        let slots = self.match_arguments(function, arguments, span)?;
        let mut scope = Scope {
            file: self.entity_files[entity.0 as usize],
            locals: BTreeMap::new(),
            letters: BTreeMap::new(),
            rest: None,
            depth: context.scope.depth + 1,
        };
        let mut failed = false;
        let mut places = vec![];
        for (formal, slot) in function.formals.iter().zip(&slots) {
            places.push(slot.map_or(formal.name.span, |a| a.value.span));
            let Some(argument) = slot else {
                continue;
            };
            let binding = self.argument(context, function, formal, &argument.value);
            failed |= binding.is_none();
            scope
                .locals
                .insert(&formal.name.text, binding.unwrap_or(Binding::Poison));
        }
        if failed {
            return None;
        }
        let later = self.unify_letters(&mut scope, function, &places)?;
        for formal in &function.formals {
            if !scope.locals.contains_key(formal.name.text.as_str()) {
                let binding = self.default(&scope, formal)?;
                scope.locals.insert(&formal.name.text, binding);
            }
        }
        self.check_sizes(&scope, function, later)?;
        let bindings = function
            .formals
            .iter()
            .map(|formal| scope.locals[formal.name.text.as_str()])
            .collect();
        let mark = self.report.mark();
        let result = match &function.body {
            FunctionBody::Expression(body) => {
                let key = (entity, bindings, self.open_path().clone());
                if let Some(known) = self.calls.get(&key) {
                    return *known;
                }
                let value = self
                    .expr(&mut Context::new(&scope), body)
                    .map(Binding::Scalar);
                self.calls.insert(key, value);
                value
            }
            FunctionBody::Block { results, body } => {
                let key = (entity, bindings, vec![]);
                if let Some(known) = self.calls.get(&key) {
                    return *known;
                }
                let [result] = results.as_slice() else {
                    return None;
                };
                let prefix = self.instance_name(scope.file, name);
                let value = self.body(entity, &mut scope, result, body, &prefix, hint);
                self.calls.insert(key, value);
                value
            }
        };
        self.report.called_from(mark, span, name);
        result
    }

    pub(super) fn instance_name(&mut self, file: FileId, name: &str) -> String {
        let base = if file.0 == 0 {
            name.to_owned()
        } else {
            let source = &self.sources.files[file.0 as usize].name;
            let stem = source.rsplit(['/', '\\']).next().unwrap_or(source);
            let stem = stem.strip_suffix(".ein").unwrap_or(stem);
            format!("{}.{name}", stem.rsplit('.').next().unwrap_or(stem))
        };
        let number = self.instances.entry(base.clone()).or_insert(0);
        *number += 1;
        format!("{base}.{number}")
    }

    pub(super) fn body(
        &mut self,
        entity: EntityId,
        scope: &mut Scope<'a>,
        result: &'a Formal,
        body: &'a [einc_syntax::ast::Item],
        prefix: &str,
        hint: Option<(&str, Span)>,
    ) -> Option<Binding> {
        let order = self.plans.get(&entity).cloned()?;
        let mut failed = false;
        for number in order {
            match &body[number].kind {
                ItemKind::Dim { name, value } => {
                    let value = value.as_ref()?;
                    let size = self.size(scope, value, "a size");
                    let binding = match size {
                        Some(size) => Binding::Scalar(self.arena.whole(size)),
                        None => Binding::Poison,
                    };
                    failed |= binding == Binding::Poison;
                    scope.locals.insert(&name.text, binding);
                }
                ItemKind::Assert { condition } => self.assert(scope, condition),
                ItemKind::Const { target, ty, value } => {
                    let target = Target {
                        target,
                        ty: ty.as_ref(),
                        value,
                        constant: true,
                        name: format!("{prefix}.{}", target.name.text),
                        named: None,
                        stated: None,
                        in_function: true,
                    };
                    failed |= self.define_local(scope, target).is_none();
                }
                ItemKind::Statement(Statement::Definition {
                    targets, ty, value, ..
                }) => {
                    let [target] = targets.as_slice() else {
                        return None;
                    };
                    let is_result = target.name.text == result.name.text;
                    let stated = if is_result {
                        self.result_shape(scope, result)?
                    } else {
                        None
                    };
                    let target = Target {
                        target,
                        ty: ty.as_ref(),
                        value,
                        constant: false,
                        name: match hint {
                            Some((hint, _)) if is_result => hint.to_owned(),
                            _ => format!("{prefix}.{}", target.name.text),
                        },
                        named: hint.filter(|_| is_result).map(|(_, span)| span),
                        stated,
                        in_function: true,
                    };
                    failed |= self.define_local(scope, target).is_none();
                }
                _ => {}
            }
        }
        if failed {
            return None;
        }
        scope.locals.get(result.name.text.as_str()).copied()
    }

    pub(super) fn define_local(&mut self, scope: &mut Scope<'a>, target: Target<'a>) -> Option<()> {
        let name = target.target.name.text.as_str();
        let binding = self.define(scope, target);
        scope
            .locals
            .insert(name, binding.unwrap_or(Binding::Poison));
        binding.map(|_| ())
    }
}

/// The sizes of a formal, wherever they are written.
pub(super) fn formal_shape(formal: &Formal) -> Option<&Vec<Position>> {
    formal.shape.as_ref().or(match &formal.ty {
        Some(Type::Tensor { shape, .. }) => shape.as_ref(),
        _ => None,
    })
}
