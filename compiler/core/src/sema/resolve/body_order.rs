//! The walk over functions: what their names are, and the order in which the items of a body are checked.
//!
//! Must not know sizes or types.
//!
//! ```text
//! fn f(x[n]) -> y[n] { y[n] = m * x[n]; m = max[n] x[n] }   =>   m, y
//! ```

use crate::sema::{
    calls::callee::{Body, Callable},
    hir::Kind,
    resolve::Resolver,
    resolve::body_names::Around,
    resolve::cycles::sort,
    resolve::forms::{bare_name, formal_shape},
    resolve::names::{Declared, EntityId, EntityKind, Shape},
    resolve::static_scope::{Local, StaticScope, Unit},
    resolve::walk::Walk,
    train::rules::is_rule,
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{ExprKind, Formal, Item, ItemKind, Name, Position, Role, Statement};
use std::collections::BTreeMap;

impl<'a> Resolver<'a> {
    pub(crate) fn walk_callable(
        &mut self,
        id: EntityId,
        file: FileId,
        function: Callable<'a>,
    ) -> Unit {
        let mut unit = Unit::default();
        let letters = self.names.letters(file, function);
        let mut scope = StaticScope {
            locals: letters
                .iter()
                .map(|letter| (*letter, Local::Letter))
                .collect(),
            ..StaticScope::of_file(file)
        };
        self.define_letters(&mut scope, function);
        // An argument of an optimizer or schedule may be a list.
        let rule = is_rule(&function.name.text);
        for formal in function.options.iter().chain(function.formals) {
            let expression = !function.is_block();
            let local = match formal_shape(formal) {
                Some(_) => Local::Tensor,
                None if expression && formal.ty.is_none() => Local::Any,
                None if rule && is_list(formal) => Local::Any,
                None => Local::Scalar,
            };
            if let Some(first) = function
                .options
                .iter()
                .chain(function.formals)
                .find(|f| f.name.text == formal.name.text)
                .filter(|first| first.name.span != formal.name.span)
            {
                self.report.push(
                    Diagnostic::error(
                        "E0202",
                        format!("`{}` stands twice in the signature", formal.name.text),
                    )
                    .at(formal.name.span, "again here")
                    .at(first.name.span, "first here"),
                );
                unit.failed = true;
            }
            scope.locals.insert(&formal.name.text, local);
            self.define_local(&mut scope, &formal.name, Kind::Formal);
        }
        let has_rest = |formal: &Formal| {
            formal_shape(formal)
                .is_some_and(|shape| shape.iter().any(|p| matches!(p, Position::Rest(_))))
        };
        scope.rest = function.formals.iter().any(has_rest);
        let mut signature = Walk::new(self, &scope);
        for formal in function.options.iter().chain(function.formals) {
            if let Some(shape) = formal_shape(formal) {
                signature.size_list(shape);
            }
            if let Some(default) = &formal.default {
                match is_list(formal) && !rule {
                    true => signature.closed(default),
                    false => signature.setting(default),
                }
            }
        }
        unit.merge(signature.unit);
        match function.body {
            Body::Expression(value) => {
                let mut walk = Walk::new(self, &scope);
                walk.value(value);
                unit.merge(walk.unit);
            }
            Body::Block(body) => self.walk_body(id, scope, function, body, &mut unit),
        }
        unit
    }

    fn walk_body(
        &mut self,
        id: EntityId,
        mut scope: StaticScope<'a>,
        function: Callable<'a>,
        body: &'a [Item],
        unit: &mut Unit,
    ) {
        let is_module = matches!(self.names.entity(id).kind, EntityKind::Module(_));
        if is_module && !self.check_states(body, "step") {
            unit.failed = true;
        }
        if !self.check_nexts(function, body) {
            unit.failed = true;
        }
        let around = Around {
            id,
            function,
            body,
            is_module,
        };
        let names = self.body_names(around, &mut scope, unit);
        self.check_results(function, &names, unit);
        let sizes = self.scope_of_sizes(&scope, function);
        for shape in function.results.iter().filter_map(formal_shape) {
            let mut walk = Walk::new(self, &sizes);
            walk.size_list(shape);
            unit.merge(walk.unit);
        }
        let mut edges = vec![vec![]; body.len()];
        for (number, item) in body.iter().enumerate() {
            if let Some(inner) = self.walk_body_item(around, &scope, item) {
                edges[number] = inner.items.clone();
                unit.merge(inner);
            }
        }
        let (order, cycles) = sort(&edges);
        for cycle in cycles {
            self.report_cycle(body, &cycle);
            unit.failed = true;
        }
        if is_module {
            let owned = owned(body, &edges, &order);
            self.readings.owned.insert(id, owned);
        }
        self.readings.plans.insert(id, order);
    }

    /// Reports results that no item of a body defines.
    fn check_results(
        &mut self,
        function: Callable<'a>,
        names: &BTreeMap<&'a str, Span>,
        unit: &mut Unit,
    ) {
        let complete = !unit.failed;
        for result in function.results {
            if let Some(place) = names.get(result.name.text.as_str()) {
                self.refer(&result.name.text, result.name.span, *place);
            }
            if !complete || names.contains_key(result.name.text.as_str()) {
                continue;
            }
            self.report.push(
                Diagnostic::error(
                    "E0508",
                    format!(
                        "`{}` never defines its result `{}`",
                        function.name.text, result.name.text
                    ),
                )
                .at(result.name.span, "promised here")
                .help(format!(
                    "define it in the body: `{}[…] = …`",
                    result.name.text
                )),
            );
            unit.failed = true;
        }
    }

    /// Walks one item of a body; `None` for an item that stands for nothing here.
    fn walk_body_item(
        &mut self,
        around: Around<'a>,
        scope: &StaticScope<'a>,
        item: &'a Item,
    ) -> Option<Unit> {
        let is_module = around.is_module;
        Some(match &item.kind {
            ItemKind::Dim { value, .. } => {
                let mut walk = Walk::new(self, scope);
                if let Some(value) = value {
                    walk.closed(value);
                }
                walk.unit
            }
            ItemKind::Const { target, ty, value } => {
                self.walk_definition(scope, target, ty.as_ref(), value)
            }
            ItemKind::Param { name, ty, source } if is_module => match Declared::of(ty) {
                Some(declared) => self.walk_instances(scope, declared),
                None => self.walk_input(scope, ty, source.as_ref()),
            },
            ItemKind::Statement(Statement::Definition {
                role,
                targets,
                ty,
                value,
                ..
            }) if *role == Role::Plain || is_module => match targets.as_slice() {
                [target] => self.walk_definition(scope, target, ty.as_ref(), value),
                several => self.walk_several(scope, several, ty.as_ref(), value),
            },
            ItemKind::Statement(Statement::Scatter {
                target, ty, value, ..
            }) => self.walk_scatter(scope, target, ty.as_ref(), value),
            ItemKind::Assert { condition, .. } => {
                let mut walk = Walk::new(self, scope);
                walk.closed(condition);
                walk.unit
            }
            ItemKind::Statement(repeat @ Statement::Repeat { .. }) => {
                self.walk_repeat(scope, repeat, around.body.len())
            }
            _ => return None,
        })
    }

    /// Notes where the sizes of a signature stand first.
    fn define_letters(&mut self, scope: &mut StaticScope<'a>, function: Callable<'a>) {
        let formals = function.formals.iter().chain(function.results);
        for position in formals.filter_map(formal_shape).flatten() {
            let Some((name, span)) = bare_name(position) else {
                continue;
            };
            if !scope.locals.contains_key(name) {
                continue;
            }
            match scope.places.get(name) {
                Some(place) => self.refer(name, span, *place),
                None => {
                    scope.places.insert(name, span);
                    self.define(name, span, Kind::Size);
                }
            }
        }
    }

    /// Notes where a local name is defined.
    pub(crate) fn define_local(&mut self, scope: &mut StaticScope<'a>, name: &'a Name, kind: Kind) {
        scope.places.insert(&name.text, name.span);
        self.define(&name.text, name.span, kind);
    }

    /// Returns the names that the sizes of results may use. A letter of the signature stays a letter there, also where the body
    /// defines a tensor of that name.
    fn scope_of_sizes(&self, scope: &StaticScope<'a>, function: Callable<'a>) -> StaticScope<'a> {
        let mut sizes = scope.clone();
        for letter in self.names.letters(scope.file, function) {
            let local = sizes.locals.entry(letter).or_insert(Local::Letter);
            if !matches!(
                local,
                Local::Scalar | Local::Item(_, Shape::Scalar) | Local::Counter(_)
            ) {
                *local = Local::Letter;
            }
        }
        sizes
    }
}

/// The params of a body, with the dims and consts that they need, in order.
fn owned(body: &[Item], edges: &[Vec<(usize, Span)>], order: &[usize]) -> Vec<usize> {
    let mut needed: Vec<bool> = body
        .iter()
        .map(|item| matches!(item.kind, ItemKind::Param { .. }))
        .collect();
    // Uses stand before their users.
    for number in order.iter().rev() {
        if needed[*number] {
            edges[*number]
                .iter()
                .for_each(|(used, _)| needed[*used] = true);
        }
    }
    let mut owned = order.to_vec();
    owned.retain(|number| {
        let kind = &body[*number].kind;
        let made = matches!(
            kind,
            ItemKind::Param { .. } | ItemKind::Dim { .. } | ItemKind::Const { .. }
        );
        needed[*number] && made
    });
    owned
}

/// Returns whether the default of an argument is a list.
fn is_list(formal: &Formal) -> bool {
    let default = formal.default.as_ref();
    default.is_some_and(|default| matches!(&*default.kind, ExprKind::List(_)))
}
