//! Calls of the user's functions: arguments, sizes of the signature, and what the body gives.
//!
//! A function that is an expression is read where it is called; one with a body makes tensors of its own, once
//! for every different list of arguments. Must not know kernels.
//!
//! ```text
//! dense(X, W, b)   x: X, w: W, b: b, `..`: N, d: 64, h: 10   =>   tensor dense.1.y
//! ```

use crate::einsum::BlockId;
use crate::sema::{
    Checker,
    calls::callee::{Body, Callable, wrong_results},
    calls::specialise::plain_name,
    definitions::tensors::Target,
    expressions::arena::ExprId,
    expressions::scope::{Binding, Context, Scope, SliceId},
    resolve::forms::{key, unbracket},
    resolve::names::{EntityId, EntityKind, InstanceId},
    rounds::repeat::Place,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Argument, Expr, ExprKind, Item, ItemKind, Role, Statement};
use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

/// Calls may be nested this deep.
const DEEPEST: usize = 100;
/// A program may have this many tensors.
const MOST_TENSORS: usize = 200_000;

/// Calls with equal keys have one result.
pub(crate) type CallKey = (
    EntityId,
    Option<(InstanceId, usize)>,
    Vec<Binding>,
    Vec<ExprId>,
    Option<BlockId>,
);

/// The results of a call: one binding for each, or one.
pub(crate) type Results = Rc<[Binding]>;

/// The calls of the user's functions so far.
pub(crate) struct Calls {
    pub(crate) results: HashMap<CallKey, Option<Results>>,
    /// The results of the calls that define several names, by [`crate::sema::resolve::forms::key`].
    pub(crate) parts: HashMap<usize, Option<Results>>,
    /// How many calls of each function have made tensors.
    pub(crate) counts: HashMap<String, usize>,
    /// True if a random source was met in the call that is being read.
    pub(crate) drew: bool,
    /// Lists of leading positions; the first is empty.
    pub(crate) slices: Vec<Rc<[ExprId]>>,
    pub(crate) slice_numbers: HashMap<Rc<[ExprId]>, SliceId>,
}

impl Default for Calls {
    fn default() -> Calls {
        Calls {
            results: HashMap::new(),
            parts: HashMap::new(),
            counts: HashMap::new(),
            drew: false,
            slices: vec![Rc::from([])],
            slice_numbers: HashMap::from([(Rc::from([]), SliceId(0))]),
        }
    }
}

impl<'a> Checker<'a> {
    /// A call that must give one value.
    pub(crate) fn call_one(
        &mut self,
        context: &mut Context<'_, 'a>,
        callee: &'a Expr,
        arguments: &'a [Argument],
        span: Span,
        hints: &[(String, Span)],
    ) -> Option<Binding> {
        let (_, callable) = self.callee(context.scope, callee)?;
        if callable.results.len() > 1 {
            self.report.push(wrong_results(callable, 1, span));
            return None;
        }
        let results = self.call_user(context, callee, arguments, span, hints)?;
        results.first().copied()
    }

    /// One call. `hints`: the names that the results get from their definitions, and the places.
    pub(crate) fn call_user(
        &mut self,
        context: &mut Context<'_, 'a>,
        callee: &'a Expr,
        arguments: &'a [Argument],
        span: Span,
        hints: &[(String, Span)],
    ) -> Option<Results> {
        let (entity, callable) = self.callee(context.scope, callee)?;
        let name = callable.name.text.as_str();
        let applied = match self.names.entity(entity).kind {
            EntityKind::Module(_) => Some(self.applied(context.scope, callee)?),
            _ => None,
        };
        self.may_call(context.scope, (entity, callable), span)?;
        let (mut scope, places) =
            self.bind_arguments(context, (entity, callable), arguments, span)?;
        if callable.is_block() {
            let passed: Vec<Binding> = scope.locals.values().copied().collect();
            let outer = self.captured(&passed);
            self.pin(&outer, span)?;
            scope.captured.extend(outer);
            scope.captured.sort();
            scope.captured.dedup();
        }
        if let Some((_, element)) = &applied {
            let members = element.members.iter();
            scope
                .locals
                .extend(members.map(|(name, binding)| (*name, *binding)));
        }
        let later = self.unify_letters(&mut scope, callable, &places)?;
        for formal in callable.formals {
            if !scope.locals.contains_key(formal.name.text.as_str()) {
                let binding = self.default(&scope, formal)?;
                scope.locals.insert(&formal.name.text, binding);
            }
        }
        scope.floating = self.floating_passed(&scope, callable);
        self.check_sizes(&scope, callable, later)?;
        let formals = callable.formals.iter();
        let bindings = formals.map(|formal| scope.locals[formal.name.text.as_str()]);
        let mark = self.report.mark();
        let path = match callable.body {
            Body::Expression(_) => self.open_path().clone(),
            Body::Block(_) => vec![],
        };
        let instance = applied.as_ref().map(|(id, _)| *id);
        let key = (entity, instance, bindings.collect(), path, scope.block);
        if let Some(known) = self.calls.results.get(&key) {
            return known.clone();
        }
        let drew = std::mem::replace(&mut self.calls.drew, false);
        let results: Option<Results> = match callable.body {
            Body::Expression(body) => self
                .expr(&mut Context::new(&scope), body)
                .map(|value| Rc::from([Binding::Scalar(value)])),
            Body::Block(body) => {
                let first = self.built.tensors.len();
                let prefix = match &applied {
                    Some((id, element)) => {
                        scope.applied = Some(*id);
                        self.numbered(element.path.clone())
                    }
                    None => self.instance_name(scope.file, name),
                };
                let results = self.body(entity, &mut scope, callable, body, &prefix, hints);
                if applied.is_some() {
                    let made = first..self.built.tensors.len();
                    self.training.applications.insert(prefix, (made, span));
                }
                results
            }
        };
        // Every call that draws random numbers draws its own.
        if !self.calls.drew {
            self.calls.results.insert(key, results.clone());
        }
        self.calls.drew |= drew;
        if let Some(argument) = self.fraction_passed(&scope, callable, (&places, span)) {
            self.report.blame(mark, "E0404", argument);
        }
        self.report.called_from(mark, span, name);
        results
    }

    /// Reports a call of what is in error itself, and calls that are nested too deeply.
    fn may_call(
        &mut self,
        scope: &Scope<'a>,
        (entity, callable): (EntityId, Callable<'a>),
        span: Span,
    ) -> Option<()> {
        if self.is_failed(entity) {
            let name = callable.name.text.as_str();
            if let Some(diagnostic) = self.readings.on_call.get(&entity) {
                let diagnostic = diagnostic.clone();
                self.report
                    .push(diagnostic.at(span, format!("in this call of `{name}`")));
            }
            return None;
        }
        if scope.depth < DEEPEST && self.built.tensors.len() <= MOST_TENSORS {
            return Some(());
        }
        let message = "calls are nested too deeply or make too many tensors";
        let limits =
            format!("calls here are limited to {DEEPEST} levels and {MOST_TENSORS} tensors");
        self.report
            .push(Diagnostic::error("E0509", message).at(span, limits));
        None
    }

    /// The scope of a call with what its arguments bind, and the place of each argument.
    fn bind_arguments(
        &mut self,
        context: &mut Context<'_, 'a>,
        (entity, callable): (EntityId, Callable<'a>),
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<(Scope<'a>, Vec<Span>)> {
        let slots = self.match_arguments(callable, arguments, span)?;
        let mut scope = Scope {
            file: self.names.entity(entity).file,
            locals: BTreeMap::new(),
            letters: BTreeMap::new(),
            rest: None,
            captured: context.scope.captured.clone(),
            applied: None,
            block: context.scope.block,
            depth: context.scope.depth + 1,
            floating: None,
        };
        let mut failed = false;
        let mut places = vec![];
        for (formal, slot) in callable.formals.iter().zip(&slots) {
            places.push(slot.map_or(formal.name.span, |a| a.value.span));
            let Some(argument) = slot else {
                continue;
            };
            let binding = self.argument(context, callable, formal, &argument.value);
            failed |= !scope.bind(&formal.name.text, binding);
        }
        (!failed).then_some((scope, places))
    }

    pub(crate) fn instance_name(&mut self, file: FileId, name: &str) -> String {
        let name = plain_name(name);
        let base = if file.0 == 0 {
            name.to_owned()
        } else {
            let source = &self.names.sources.files[file.0 as usize].name;
            let stem = source.rsplit(['/', '\\']).next().unwrap_or(source);
            let stem = stem.strip_suffix(".ein").unwrap_or(stem);
            format!("{}.{name}", stem.rsplit('.').next().unwrap_or(stem))
        };
        self.numbered(base)
    }

    /// The next number behind a name.
    pub(crate) fn numbered(&mut self, base: String) -> String {
        let number = self.calls.counts.entry(base.clone()).or_insert(0);
        *number += 1;
        format!("{base}.{number}")
    }

    /// The items of a body in the order of their uses; what its results are.
    pub(crate) fn body(
        &mut self,
        entity: EntityId,
        scope: &mut Scope<'a>,
        callable: Callable<'a>,
        body: &'a [Item],
        prefix: &str,
        hints: &[(String, Span)],
    ) -> Option<Results> {
        let order = self.readings.plans.get(&entity).cloned()?;
        let owned = self
            .readings
            .owned
            .get(&entity)
            .cloned()
            .unwrap_or_default();
        let asserted = self.built.asserts.len();
        let mut good = true;
        for number in order {
            if scope.applied.is_some() && owned.contains(&number) {
                continue;
            }
            good &= match &body[number].kind {
                ItemKind::Dim { name, value } => {
                    let size = self.size(scope, value.as_ref()?, "a size");
                    let size = size.map(|size| Binding::Scalar(self.arena.whole(size)));
                    scope.bind(&name.text, size)
                }
                ItemKind::Assert { condition, message } => {
                    self.assert_in_body(scope, (condition, message.as_ref()));
                    true
                }
                ItemKind::Const { target, ty, value } => {
                    let mut target = Target::local(target, ty.as_ref(), value, prefix);
                    target.constant = true;
                    self.define_local(scope, target).is_some()
                }
                ItemKind::Statement(statement) => {
                    self.statement_in_body(scope, callable, statement, prefix, hints)?
                }
                _ => true,
            }
        }
        if !good {
            return None;
        }
        let results = callable.results.iter();
        let results: Results = results
            .map(|result| scope.locals.get(result.name.text.as_str()).copied())
            .collect::<Option<_>>()?;
        self.assertions_of(asserted, &results);
        Some(results)
    }

    /// A statement of a body: whether it is right; `None` where nothing behind it can be checked.
    fn statement_in_body(
        &mut self,
        scope: &mut Scope<'a>,
        callable: Callable<'a>,
        statement: &'a Statement,
        prefix: &str,
        hints: &[(String, Span)],
    ) -> Option<bool> {
        Some(match statement {
            Statement::Definition {
                role: Role::State,
                targets,
                ty,
                value,
                ..
            } => {
                let target = targets.first()?;
                let state = self.state(scope, target, ty.as_ref(), value);
                scope.bind(&target.name.text, state)
            }
            Statement::Definition {
                role: Role::Next,
                targets,
                ty,
                value,
                ..
            } => {
                let next = targets
                    .iter()
                    .map(|target| self.next_state(scope, target, ty.as_ref(), value, prefix));
                next.fold(true, |good, next| good & next.is_some())
            }
            Statement::Definition {
                targets, ty, value, ..
            } => {
                let locals: Option<Vec<Target<'a>>> = targets
                    .iter()
                    .map(|target| {
                        let local = Target::local(target, ty.as_ref(), value, prefix);
                        self.result_target(scope, callable, local, hints)
                    })
                    .collect();
                match <[Target<'a>; 1]>::try_from(locals?) {
                    Ok([target]) => self.define_local(scope, target).is_some(),
                    Err(several) => {
                        let bindings = self.define_several(scope, several, value).into_iter();
                        bindings.fold(true, |good, (name, binding)| {
                            scope.bind(name, binding) & good
                        })
                    }
                }
            }
            Statement::Scatter {
                target,
                ty,
                combine,
                drops,
                value,
                ..
            } => {
                let local = Target::local(target, ty.as_ref(), value, prefix);
                let local = self.result_target(scope, callable, local, hints)?;
                let binding = self.define_scatter(scope, local, (*combine, *drops));
                scope.bind(&target.name.text, binding)
            }
            Statement::Repeat { .. } => {
                let place = Place { scope, prefix };
                let mut good = true;
                for (name, binding) in self.define_repeat(&place, statement) {
                    good &= binding
                        .and_then(|binding| self.result_fits(scope, callable, name, binding))
                        .is_some();
                    scope.bind(name, binding);
                }
                good
            }
        })
    }

    /// `a, b = f(x)`: every name with what it stands for.
    pub(crate) fn define_several(
        &mut self,
        scope: &Scope<'a>,
        targets: Vec<Target<'a>>,
        value: &'a Expr,
    ) -> Vec<(&'a str, Option<Binding>)> {
        let names: Vec<&'a str> = targets
            .iter()
            .map(|target| target.target.name.text.as_str())
            .collect();
        let known = self.calls.parts.get(&key(value)).cloned();
        let results = match known.filter(|_| !targets[0].in_function) {
            Some(results) => results,
            None => {
                let hints: Vec<(String, Span)> = targets
                    .iter()
                    .filter_map(|target| Some((target.name.clone(), target.named?)))
                    .collect();
                let results = self.several(scope, value, targets.len(), &hints);
                self.calls.parts.insert(key(value), results.clone());
                results
            }
        };
        let mut bindings = vec![];
        for (at, target) in targets.into_iter().enumerate() {
            let result = results
                .as_ref()
                .and_then(|results| results.get(at).copied());
            bindings.push(match result {
                Some(Binding::Tensor(view)) => self.whole(scope, target, view, value.span),
                other => other.filter(|binding| *binding != Binding::Poison),
            });
        }
        names.into_iter().zip(bindings).collect()
    }

    /// The call behind several names.
    fn several(
        &mut self,
        scope: &Scope<'a>,
        value: &'a Expr,
        names: usize,
        hints: &[(String, Span)],
    ) -> Option<Results> {
        let ExprKind::Call { callee, arguments } = &*unbracket(value).kind else {
            return None;
        };
        let named = if hints.len() == names { hints } else { &[] };
        if let Some(results) = self.several_library(scope, value, names, named) {
            return results;
        }
        let (_, callable) = self.callee(scope, callee)?;
        if callable.results.len() != names {
            self.report.push(wrong_results(callable, names, value.span));
            return None;
        }
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut context = Context::new(scope);
        let results = self.call_user(&mut context, callee, arguments, value.span, named);
        let solved = self.close_behind(results.is_none());
        results.filter(|_| solved)
    }

    pub(crate) fn define_local(&mut self, scope: &mut Scope<'a>, target: Target<'a>) -> Option<()> {
        let name = target.target.name.text.as_str();
        let binding = self.define(scope, target);
        scope.bind(name, binding).then_some(())
    }
}
