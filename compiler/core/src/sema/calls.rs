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
    arena::{ExprId, Form, TensorRef},
    expr::{Binding, Context, Scope, dimensions, plural, unsupported},
    names::{EntityId, EntityKind, Found, Shape, bare_name, result_shape},
    size::Size,
    statement::Target,
};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{
    Argument, Expr, ExprKind, Formal, Function, FunctionBody, ItemKind, Position, Statement, Type,
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

    fn instance_name(&mut self, file: FileId, name: &str) -> String {
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

    /// The argument of every formal; `None`: its default.
    fn match_arguments(
        &mut self,
        function: &'a Function,
        arguments: &'a [Argument],
        span: Span,
    ) -> Option<Vec<Option<&'a Argument>>> {
        let name = &function.name.text;
        let mut slots: Vec<Option<&'a Argument>> = vec![None; function.formals.len()];
        let mut failed = false;
        for (at, argument) in arguments.iter().enumerate() {
            let slot = match &argument.name {
                None => at,
                Some(given) => match function
                    .formals
                    .iter()
                    .position(|f| f.name.text == given.text)
                {
                    Some(slot) => slot,
                    None => {
                        let mut error = Diagnostic::error(
                            "E0502",
                            format!("`{name}` has no argument named `{}`", given.text),
                        )
                        .at(given.span, "named here")
                        .at(function.name.span, "the function");
                        let names = function.formals.iter().map(|f| f.name.text.as_str());
                        if let Some(near) = did_you_mean(&given.text, names) {
                            error = error.help(format!("did you mean `{near}`?"));
                        }
                        self.report.push(error);
                        failed = true;
                        continue;
                    }
                },
            };
            let Some(place) = slots.get_mut(slot) else {
                let takes = function.formals.len();
                self.report.push(
                    Diagnostic::error(
                        "E0502",
                        format!(
                            "`{name}` takes {takes} argument{}, not {}",
                            plural(takes),
                            arguments.len()
                        ),
                    )
                    .at(argument.value.span, "one too many")
                    .at(function.name.span, "the function"),
                );
                return None;
            };
            if let Some(first) = place {
                self.report.push(
                    Diagnostic::error(
                        "E0502",
                        format!(
                            "`{}` of `{name}` is given twice",
                            function.formals[slot].name.text
                        ),
                    )
                    .at(argument.value.span, "given again here")
                    .at(first.value.span, "first given here"),
                );
                failed = true;
                continue;
            }
            *place = Some(argument);
        }
        let missing: Vec<String> = function
            .formals
            .iter()
            .zip(&slots)
            .filter(|(formal, slot)| slot.is_none() && formal.default.is_none())
            .map(|(formal, _)| format!("`{}`", formal.name.text))
            .collect();
        if !missing.is_empty() && !failed {
            self.report.push(
                Diagnostic::error(
                    "E0502",
                    format!("`{name}` is called without {}", missing.join(", ")),
                )
                .at(span, "in this call")
                .at(function.name.span, "the function"),
            );
            failed = true;
        }
        (!failed).then_some(slots)
    }

    fn argument(
        &mut self,
        context: &mut Context<'_, 'a>,
        function: &'a Function,
        formal: &'a Formal,
        value: &'a Expr,
    ) -> Option<Binding> {
        let block = matches!(function.body, FunctionBody::Block { .. });
        let mut inner = value;
        while let ExprKind::Bracket(next) = &*inner.kind {
            inner = next;
        }
        let given = match &*inner.kind {
            ExprKind::Name(name) => match context.scope.locals.get(name.as_str()) {
                Some(binding) => Some(*binding),
                None if context.index(name).is_some() && formal_shape(formal).is_none() => None,
                None => self.binding(context.scope, name),
            },
            ExprKind::Call { callee, arguments } => match &*callee.kind {
                ExprKind::Name(name) => match self.user_function(context.scope, name) {
                    Some((entity, callee)) if result_shape(callee) == Shape::Tensor => {
                        Some(self.call_user(context, entity, callee, arguments, inner.span, None)?)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        };
        let tensor = match given {
            Some(Binding::Poison) => return None,
            Some(Binding::Tensor(tensor)) => Some(tensor),
            _ => None,
        };
        let name = &formal.name.text;
        if formal_shape(formal).is_none() {
            if let Some(tensor) = tensor {
                let rank = self.tensors[tensor.0 as usize].shape.len();
                if let FunctionBody::Expression(body) = &function.body
                    && rank > 0
                {
                    if super::plan::takes_whole(body, name) {
                        return Some(Binding::Tensor(tensor));
                    }
                    let (function, text) = (&function.name.text, self.text(value.span));
                    self.report.push(
                        Diagnostic::error("E0503", format!("`{name}` of `{function}` is a scalar"))
                            .at(value.span, format!("this has {}", dimensions(rank)))
                            .at(formal.name.span, "used as one value")
                            .help(format!("give it elements: `y[…] = {function}({text}[…])`")),
                    );
                    return None;
                }
                if rank > 0 {
                    self.report.push(
                        Diagnostic::error(
                            "E0503",
                            format!("`{name}` of `{}` is a scalar", function.name.text),
                        )
                        .at(value.span, format!("this has {}", dimensions(rank)))
                        .at(formal.name.span, "declared without brackets here")
                        .help(format!(
                            "a tensor is declared with its sizes: `{name}[n, d]` or `{name}[..]`"
                        )),
                    );
                    return None;
                }
            }
            let scalar = self.expr(context, value)?;
            let scalar = self.formal_type(formal, scalar, value.span)?;
            return if block {
                self.passed_scalar(scalar, value.span)
            } else {
                Some(Binding::Scalar(scalar))
            };
        }
        if let Some(tensor) = tensor {
            if let Some(Type::Tensor { dtype, .. }) = &formal.ty
                && self.tensors[tensor.0 as usize].dtype != *dtype
            {
                let have = self.tensors[tensor.0 as usize].dtype;
                self.report.push(
                    Diagnostic::error(
                        "E0405",
                        format!(
                            "`{name}` of `{}` is {dtype}, not {have}",
                            function.name.text
                        ),
                    )
                    .at(value.span, format!("this is {have}"))
                    .at(formal.name.span, format!("declared {dtype} here")),
                );
                return None;
            }
            return Some(Binding::Tensor(tensor));
        }
        if let ExprKind::Access { base, positions } = &*inner.kind
            && let ExprKind::Name(of) = &*base.kind
            && let Some(Binding::Tensor(of)) = self.binding(context.scope, of)
            && positions.len() < self.tensors[of.0 as usize].shape.len()
        {
            self.report
                .push(unsupported("E0603", "a slice as an argument", value.span));
            return None;
        }
        let text = self.text(value.span);
        self.report.push(
            Diagnostic::error(
                "E0503",
                format!("`{name}` of `{}` takes a whole tensor", function.name.text),
            )
            .at(value.span, "this is a value at each point")
            .at(formal.name.span, "declared with brackets here")
            .help("pass the tensor's name and write the positions behind the call: `f(x)[i]`")
            .help(format!("or define it first: `t[…] = {text}`")),
        );
        None
    }

    /// A scalar for a function with a body: a number, or a tensor without dimensions.
    fn passed_scalar(&mut self, scalar: ExprId, span: Span) -> Option<Binding> {
        if self.arena.as_number(scalar).is_some()
            || self.arena.as_size(scalar).is_some()
            || self.arena.as_truth(scalar).is_some()
        {
            return Some(Binding::Scalar(scalar));
        }
        if let Form::Read {
            tensor, positions, ..
        } = &*self.arena.form(scalar)
            && positions.is_empty()
        {
            return Some(Binding::Tensor(*tensor));
        }
        if let Some(var) = self.arena.free(scalar).first() {
            let index = self.vars[var.0 as usize].name.clone();
            self.report.push(unsupported(
                "E0603",
                &format!("a call for every `{index}`"),
                span,
            ));
            return None;
        }
        let value = self.settle(scalar, span)?;
        let name = self.instance_name(FileId(0), "argument");
        Some(Binding::Tensor(self.add_scalar(name, value, span)))
    }

    fn formal_type(&mut self, formal: &Formal, value: ExprId, span: Span) -> Option<ExprId> {
        match &formal.ty {
            Some(Type::Tensor { dtype, .. }) => self.coerce(value, *dtype, span),
            _ => Some(value),
        }
    }

    fn default(&mut self, scope: &Scope<'a>, formal: &'a Formal) -> Option<Binding> {
        let value = formal.default.as_ref()?;
        // A default made of the signature's sizes is a size itself, with floor division.
        let mut names = vec![];
        super::plan::names_in(value, &mut names);
        let sizes = names.iter().any(|name| scope.letters.contains_key(name));
        let mut context = if sizes {
            Context::of_sizes(scope)
        } else {
            Context::new(scope)
        };
        let id = self.expr(&mut context, value)?;
        let id = self.formal_type(formal, id, value.span)?;
        self.passed_scalar(id, value.span)
    }

    /// Gives the letters of a signature their sizes; returns the sizes that are more than a letter.
    fn unify_letters(
        &mut self,
        scope: &mut Scope<'a>,
        function: &'a Function,
        places: &[Span],
    ) -> Option<Vec<(&'a Expr, Size, Span)>> {
        let name = &function.name.text;
        let letters = self.letters(scope.file, function);
        let mut rest: Option<(Vec<Size>, Span)> = None;
        let (mut failed, mut later) = (false, vec![]);
        for (formal, place) in function.formals.iter().zip(places) {
            let (Some(shape), Some(Binding::Tensor(tensor))) = (
                formal_shape(formal),
                scope.locals.get(formal.name.text.as_str()).copied(),
            ) else {
                continue;
            };
            let sizes = self.tensors[tensor.0 as usize].shape.clone();
            let dots = shape
                .iter()
                .filter(|p| matches!(p, Position::Rest(_)))
                .count();
            let fixed = shape.len() - dots;
            if dots > 1 || sizes.len() < fixed || (dots == 0 && sizes.len() != fixed) {
                let at_least = if dots > 0 { "at least " } else { "" };
                self.report.push(
                    Diagnostic::error(
                        "E0501",
                        format!(
                            "`{}` of `{name}` has {at_least}{}, not {}",
                            formal.name.text,
                            dimensions(fixed),
                            sizes.len()
                        ),
                    )
                    .at(*place, format!("this is {}", self.shape_text(tensor)))
                    .at(
                        formal.name.span,
                        format!("declared with {at_least}{} here", dimensions(fixed)),
                    ),
                );
                failed = true;
                continue;
            }
            let mut sizes = sizes.into_iter();
            for position in shape {
                let Position::Expr(expr) = position else {
                    let these: Vec<Size> = sizes
                        .by_ref()
                        .take(self.tensors[tensor.0 as usize].shape.len() - fixed)
                        .collect();
                    match &rest {
                        None => rest = Some((these, *place)),
                        Some((first, there)) => {
                            let same = first.len() == these.len()
                                && first.iter().zip(&these).all(|(a, b)| !a.differs(b));
                            if !same {
                                self.report.push(
                                    Diagnostic::error(
                                        "E0501",
                                        format!("`..` of `{name}` has two shapes"),
                                    )
                                    .at(*place, format!("`..` is [{}] here", list(&these)))
                                    .at(*there, format!("and [{}] here", list(first))),
                                );
                                failed = true;
                            }
                        }
                    }
                    continue;
                };
                let Some(size) = sizes.next() else {
                    continue;
                };
                match bare_name(position).filter(|(letter, _)| letters.contains(letter)) {
                    Some((letter, _)) => match scope.letters.get(letter) {
                        Some((first, there)) if first.differs(&size) => {
                            self.report.push(
                                Diagnostic::error(
                                    "E0501",
                                    format!(
                                        "size `{letter}` of `{name}` is both {first} and {size}"
                                    ),
                                )
                                .at(*place, format!("`{letter}` is {size} here"))
                                .at(*there, format!("and {first} here"))
                                .at(expr.span, "in the signature"),
                            );
                            failed = true;
                        }
                        Some((first, _)) if first.known().is_some() || size.known().is_none() => {}
                        _ => {
                            scope.letters.insert(letter, (size, *place));
                        }
                    },
                    None => later.push((expr, size, *place)),
                }
            }
        }
        let signature_rest = rest.is_some()
            || function
                .formals
                .iter()
                .filter_map(formal_shape)
                .flatten()
                .any(|p| matches!(p, Position::Rest(_)));
        if signature_rest {
            scope.rest = Some(rest.map(|(sizes, _)| sizes).unwrap_or_default());
        }
        (!failed).then_some(later)
    }

    /// Compares the sizes that are more than a letter.
    fn check_sizes(
        &mut self,
        scope: &Scope<'a>,
        function: &'a Function,
        sizes: Vec<(&'a Expr, Size, Span)>,
    ) -> Option<()> {
        let mut failed = false;
        for (expr, size, place) in sizes {
            let Some(needed) = self.size(scope, expr, "a size") else {
                failed = true;
                continue;
            };
            if needed.differs(&size) {
                let name = &function.name.text;
                self.report.push(
                    Diagnostic::error(
                        "E0501",
                        format!("a size of `{name}` is {needed}, not {size}"),
                    )
                    .at(place, format!("this has {size}"))
                    .at(expr.span, format!("{needed} in the signature")),
                );
                failed = true;
            }
        }
        (!failed).then_some(())
    }

    /// The names in the brackets of a signature that are sizes of its own: not scalars known outside.
    pub(super) fn letters(&self, file: FileId, function: &'a Function) -> Vec<&'a str> {
        let results = match &function.body {
            FunctionBody::Block { results, .. } => results.as_slice(),
            FunctionBody::Expression(_) => &[],
        };
        let formals = &function.formals;
        let mut letters = vec![];
        for (name, _) in formals
            .iter()
            .chain(results)
            .filter_map(formal_shape)
            .flatten()
            .filter_map(bare_name)
        {
            let scalar_formal = formals
                .iter()
                .any(|formal| formal.name.text == name && formal_shape(formal).is_none());
            let outer = matches!(self.find(file, name), Found::Entity(id) if self.shape_of(id) == Shape::Scalar);
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

    fn body(
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

    fn define_local(&mut self, scope: &mut Scope<'a>, target: Target<'a>) -> Option<()> {
        let name = target.target.name.text.as_str();
        let binding = self.define(scope, target);
        scope
            .locals
            .insert(name, binding.unwrap_or(Binding::Poison));
        binding.map(|_| ())
    }

    /// The sizes that a signature says of a result; `None` where the body decides.
    #[allow(clippy::type_complexity)]
    fn result_shape(
        &mut self,
        scope: &Scope<'a>,
        result: &'a Formal,
    ) -> Option<Option<(Vec<Option<Size>>, Span)>> {
        let Some(shape) = formal_shape(result) else {
            return Some(None);
        };
        let mut sizes = vec![];
        for position in shape {
            match position {
                Position::Rest(_) => {
                    sizes.extend(scope.rest.clone().unwrap_or_default().into_iter().map(Some))
                }
                Position::Expr(expr) => {
                    let fresh = bare_name(position).is_some_and(|(name, _)| {
                        !scope.letters.contains_key(name)
                            && !scope.locals.contains_key(name)
                            && self.find(scope.file, name) == Found::Nothing
                    });
                    sizes.push(if fresh {
                        None
                    } else {
                        Some(self.size(scope, expr, "a size")?)
                    });
                }
            }
        }
        Some(Some((sizes, result.name.span)))
    }

    /// A hidden tensor without dimensions.
    fn add_scalar(&mut self, name: String, value: ExprId, span: Span) -> TensorRef {
        self.add_statement(
            name,
            value,
            vec![],
            vec![],
            span,
            crate::einsum::Role::Hidden,
        )
    }
}

/// The sizes of a formal, wherever they are written.
pub(super) fn formal_shape(formal: &Formal) -> Option<&Vec<Position>> {
    formal.shape.as_ref().or(match &formal.ty {
        Some(Type::Tensor { shape, .. }) => shape.as_ref(),
        _ => None,
    })
}

fn list(sizes: &[Size]) -> String {
    sizes
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}
