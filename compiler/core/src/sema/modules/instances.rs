//! Instances of modules: the parameters that each owns, by path, and which of them a call applies.
//!
//! An array of instances is that many modules of equal structure. Must not know what a body computes.
//!
//! ```text
//! param enc: encoder(8, 2)[3]   =>   params enc.0.att.wq, …, enc.2.up.w;   enc[1](h) has those of enc.1
//! ```

use crate::sema::{
    Checker,
    calls::callee::Callable,
    definitions::tensors::Target,
    expressions::arena::{ExprId, TensorRef},
    expressions::scope::{Binding, Context, Scope},
    modules::stack::Stack,
    resolve::names::{Declared, EntityId, InstanceId},
    sizes::size::Size,
};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::{Expr, ExprKind, Item, ItemKind, Module, Name, Position};
use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

/// More instances than this are not made at once.
const MOST_INSTANCES: u64 = 10_000;

/// An instance, or an array of them.
pub(crate) struct Instances<'a> {
    pub(crate) module: EntityId,
    /// The counts of an array; empty: a single instance. Not known yet: one instance stands for all.
    pub(crate) counts: Vec<Size>,
    /// True if one element stands for all, whose params are those of all instances in one.
    pub(crate) stacked: bool,
    pub(crate) elements: Vec<Element<'a>>,
}

/// One instance.
#[derive(Clone)]
pub(crate) struct Element<'a> {
    pub(crate) path: String,
    /// Options, params, local dims and the instances inside.
    pub(crate) members: Rc<BTreeMap<&'a str, Binding>>,
}

/// Why a path names nothing that an instance owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoMember {
    /// No such name, or a number where none belongs.
    Unknown,
    /// An array has no instance of that number.
    Outside { number: i64, count: i64 },
}

/// The instances of modules that have been declared.
#[derive(Default)]
pub(crate) struct Modules<'a> {
    pub(crate) made: Vec<Instances<'a>>,
    /// The counts of the arrays around the instances that are being declared, of those that are stored together.
    pub(crate) stacked: Vec<Size>,
    /// Tensors that hold a param of several instances.
    pub(crate) stacks: HashMap<TensorRef, Stack>,
    /// Their slices at one position of the first dimension.
    pub(crate) stack_slices: HashMap<(TensorRef, ExprId), TensorRef>,
    /// Instances with the params that they own at one more position.
    pub(crate) instance_slices: HashMap<(InstanceId, ExprId), InstanceId>,
    /// The states of instances, by their names.
    pub(crate) states: HashMap<(InstanceId, usize, &'a str), Binding>,
}

impl<'a> Checker<'a> {
    /// Makes the instances of a declaration, with all that they own.
    pub(crate) fn declare_instances(
        &mut self,
        scope: &Scope<'a>,
        declared: Declared<'a>,
        path: &str,
    ) -> Option<Binding> {
        let (entity, module) = self.names.module(scope.file, &declared.module.text)?;
        let name = module.name.text.as_str();
        if self.is_failed(entity) {
            if let Some(diagnostic) = self.readings.on_call.get(&entity) {
                let diagnostic = diagnostic.clone();
                let note = format!("in this instance of `{name}`");
                self.report.push(diagnostic.at(declared.span, note));
            }
            return None;
        }
        let counts = match declared.shape {
            Some(shape) => self.declared_sizes(scope, shape)?,
            None => vec![],
        };
        let known: Vec<u64> = counts
            .iter()
            .map(|count| count.known().map_or(1, |n| n.max(0) as u64))
            .collect();
        let total = known.iter().try_fold(1u64, |n, m| n.checked_mul(*m));
        if scope.depth > 100 || total.is_none_or(|total| total > MOST_INSTANCES) {
            self.report.push(
                Diagnostic::error("E0509", format!("too many instances of `{name}`")).at(
                    declared.span,
                    format!("at most {MOST_INSTANCES} are made by one declaration"),
                ),
            );
            return None;
        }
        let mark = self.report.mark();
        let options = self.options(scope, entity, module, declared);
        let mut elements = vec![];
        let stacked = self.is_stacked(scope.file, path, entity, &counts);
        let wanted = if stacked { 1 } else { total.unwrap_or(0) };
        if let (Some(options), true) = (&options, stacked) {
            let path = format!("{path}.*");
            self.modules.stacked.push(counts[0].clone());
            let members = self.members(scope, entity, module, declared, options, &path);
            self.modules.stacked.pop();
            elements.extend(members.map(|members| Element {
                path,
                members: Rc::new(members),
            }));
        } else if let Some(options) = options {
            for number in 0..wanted {
                let path = element_path(path, &known, number);
                let members = self.members(scope, entity, module, declared, &options, &path);
                elements.extend(members.map(|members| Element {
                    path,
                    members: Rc::new(members),
                }));
            }
        }
        self.report.called_from(mark, declared.span, name);
        if self.report.mark() > mark || elements.len() as u64 != wanted {
            return None;
        }
        Some(Binding::Instance(self.add_instances(Instances {
            module: entity,
            counts,
            stacked,
            elements,
        })))
    }

    pub(crate) fn add_instances(&mut self, instances: Instances<'a>) -> InstanceId {
        self.modules.made.push(instances);
        InstanceId(self.modules.made.len() as u32 - 1)
    }

    /// The instances of that number.
    pub(crate) fn instances_of(&self, id: InstanceId) -> &Instances<'a> {
        &self.modules.made[id.0 as usize]
    }

    /// The values of the first brackets.
    fn options(
        &mut self,
        scope: &Scope<'a>,
        entity: EntityId,
        module: &'a Module,
        declared: Declared<'a>,
    ) -> Option<BTreeMap<&'a str, Binding>> {
        let first = Callable {
            formals: &module.options,
            ..Callable::of_module(module)
        };
        let slots = self.match_arguments(first, declared.arguments, declared.span)?;
        let mut inner = Scope::file(self.names.entity(entity).file);
        for (formal, slot) in module.options.iter().zip(slots) {
            let binding = match slot {
                Some(argument) => {
                    let value = self.option(scope, &argument.value)?;
                    let value = self.formal_type(formal, value, argument.value.span)?;
                    Binding::Scalar(value)
                }
                None => self.default(&inner, formal)?,
            };
            inner.locals.insert(&formal.name.text, binding);
        }
        Some(inner.locals)
    }

    /// One size or option: whole numbers are divided as sizes are, unless only literals are divided and a rest is left.
    fn option(&mut self, scope: &Scope<'a>, expr: &'a Expr) -> Option<ExprId> {
        let value = self.closed(scope, expr)?;
        if self.depends_on_data(value) {
            self.report.push(
                Diagnostic::error("E0208", "an option must be known before the run")
                    .at(expr.span, "this depends on data")
                    .help("it is made of numbers, dims and consts; data are passed behind, where it is applied"),
            );
            return None;
        }
        let mut names = vec![];
        crate::sema::resolve::forms::names_in(expr, &mut names);
        if names.is_empty() {
            self.indices
                .open
                .push(crate::sema::sizes::ranges::Open::default());
            let real = self.expr(&mut Context::new(scope), expr);
            self.indices.open.pop();
            if let Some(real) = real
                && let Some(number) = self.arena.as_number(real)
                && number.fract() != 0.0
            {
                return Some(self.arena.real(number));
            }
        }
        Some(value)
    }

    /// Makes everything that one instance owns: params and instances inside, and the dims and consts that they are made of.
    fn members(
        &mut self,
        outer: &Scope<'a>,
        entity: EntityId,
        module: &'a Module,
        declared: Declared<'a>,
        options: &BTreeMap<&'a str, Binding>,
        path: &str,
    ) -> Option<BTreeMap<&'a str, Binding>> {
        let mut scope = Scope {
            locals: options.clone(),
            depth: outer.depth + 1,
            ..Scope::file(self.names.entity(entity).file)
        };
        for number in self.readings.owned.get(&entity).cloned()? {
            let mark = self.report.mark();
            let (name, binding) = self.member(&mut scope, &module.body[number], path);
            if binding.is_none() && self.report.mark() == mark {
                self.report.push(
                    Diagnostic::error(
                        "E0208",
                        format!(
                            "`{}` must be known where the instance is declared",
                            name.text
                        ),
                    )
                    .at(declared.span, "declared here")
                    .at(name.span, "this depends on what the instance is applied to")
                    .help("sizes of params are made of the module's own sizes and options"),
                );
            }
            scope.locals.insert(&name.text, binding?);
        }
        for (module, path, span) in self.readings.inner_uses.clone() {
            if module == entity
                && let Some((head, own)) = path.split_once('.')
                && let Some(instance) = scope.locals.get(head)
                && let Err(NoMember::Outside { number, count }) =
                    self.member_binding(*instance, own)
            {
                self.no_instance(&path, span, number, count);
                return None;
            }
        }
        Some(scope.locals)
    }

    fn member(
        &mut self,
        scope: &mut Scope<'a>,
        item: &'a Item,
        path: &str,
    ) -> (&'a Name, Option<Binding>) {
        match &item.kind {
            ItemKind::Param { name, ty, source } => {
                let path = format!("{path}.{}", name.text);
                let binding = match Declared::of(ty) {
                    Some(declared) => self.declare_instances(scope, declared, &path),
                    None => self.input(scope, (name, path), ty, source.as_ref(), true),
                };
                (name, binding)
            }
            ItemKind::Const { target, ty, value } => {
                let mut local = Target::local(target, ty.as_ref(), value, path);
                local.constant = true;
                (&target.name, self.define(scope, local))
            }
            ItemKind::Dim { name, value } => {
                let size = value
                    .as_ref()
                    .and_then(|value| self.size(scope, value, "a size"));
                let binding = size.map(|size| Binding::Scalar(self.arena.whole(size)));
                (name, binding)
            }
            _ => unreachable!("only dims, consts and params are owned"),
        }
    }

    /// The instance that a call applies, and its number for telling calls apart.
    pub(crate) fn applied(
        &mut self,
        scope: &Scope<'a>,
        callee: &'a Expr,
    ) -> Option<((InstanceId, usize), Element<'a>)> {
        let (base, positions) = match &*callee.kind {
            ExprKind::Access { base, positions } => (base, positions.as_slice()),
            _ => (callee, &[][..]),
        };
        let ExprKind::Name(name) = &*base.kind else {
            return None;
        };
        let Binding::Instance(id) = self.binding(scope, name)? else {
            return None;
        };
        let counts = self.modules.made[id.0 as usize].counts.clone();
        if counts.len() != positions.len() {
            let message = match counts.len() {
                0 => format!("`{name}` is one instance, not an array"),
                _ => format!("`{name}` is an array of instances"),
            };
            self.report.push(
                Diagnostic::error("E0511", message)
                    .at(callee.span, "applied here")
                    .help(match counts.len() {
                        0 => format!("write `{name}(…)`"),
                        _ => format!("say which one: `{name}[0](…)`"),
                    }),
            );
            return None;
        }
        if let (true, [Position::Expr(expr)]) = (self.instances_of(id).stacked, positions) {
            return self.applied_stacked(scope, id, expr);
        }
        let mut number = 0;
        for (position, count) in positions.iter().zip(&counts) {
            let Position::Expr(expr) = position else {
                return None;
            };
            let at = self.size(scope, expr, "the number of an instance")?;
            let outside = |at: i64| at < 0 || count.known().is_some_and(|count| at >= count);
            match at.known() {
                Some(at) if outside(at) => {
                    self.report.push(
                        Diagnostic::error("E0511", format!("`{name}` has no instance {at}"))
                            .at(expr.span, format!("this is {at}"))
                            .help(format!("there are {count}, counted from 0")),
                    );
                    return None;
                }
                Some(at) if count.known().is_some() => {
                    number = number * count.known().unwrap_or(1) + at;
                }
                _ => {}
            }
        }
        let elements = &self.modules.made[id.0 as usize].elements;
        let element = elements.get(number as usize)?.clone();
        Some(((id, number as usize), element))
    }

    /// `head.w`, `enc.3.up.w`: what an instance owns, by its path behind the instance's name. Of instances that are stored
    /// together it is a slice.
    pub(crate) fn member_binding(
        &mut self,
        instance: Binding,
        path: &str,
    ) -> Result<Binding, NoMember> {
        let (mut at, mut numbers) = (instance, vec![]);
        let mut parts = path.split('.').peekable();
        while parts.peek().is_some() {
            let Binding::Instance(id) = at else {
                return Err(NoMember::Unknown);
            };
            let instances = self.instances_of(id);
            let mut place = 0;
            for count in &instances.counts {
                let number = parts.next().and_then(|part| part.parse::<i64>().ok());
                let number = number.ok_or(NoMember::Unknown)?;
                // As long as the count is not known, one instance stands for all.
                if let Some(count) = count.known() {
                    if number >= count {
                        return Err(NoMember::Outside { number, count });
                    }
                    place = place * count + number;
                }
            }
            let element = match instances.stacked {
                true => instances.elements.first(),
                false => instances.elements.get(place as usize),
            };
            if instances.stacked {
                numbers.push(place);
            }
            let member = parts.next().zip(element);
            let member = member.and_then(|(name, element)| element.members.get(name));
            at = *member.ok_or(NoMember::Unknown)?;
        }
        match at {
            Binding::Tensor(view)
                if !numbers.is_empty() && self.modules.stacks.contains_key(&view.tensor) =>
            {
                let numbers = numbers.into_iter().map(Size::number);
                let leading = numbers.map(|n| self.arena.whole(n));
                let leading: Vec<ExprId> = leading.collect();
                let span = self.built.tensors[view.tensor.0 as usize].span;
                let leading = leading.into_iter();
                let leading = leading.filter_map(|at| self.position_value(at, span));
                let leading = leading.collect();
                Ok(Binding::Tensor(self.slice(view.tensor, leading)))
            }
            member => Ok(member),
        }
    }

    /// Reports the paths of a program that name instances which an array does not have.
    pub(crate) fn check_member_paths(&mut self, owner: EntityId, binding: Binding) {
        let readings = self.readings;
        for (_, path, span) in readings.member_uses.iter().filter(|use_| use_.0 == owner) {
            let own = path.split_once('.').map_or("", |(_, own)| own);
            if let Err(NoMember::Outside { number, count }) = self.member_binding(binding, own) {
                self.no_instance(path, *span, number, count);
            }
        }
    }

    /// Reports a path with the number of an instance that is not there.
    pub(crate) fn no_instance(&mut self, path: &str, span: Span, number: i64, count: i64) {
        self.report.push(
            Diagnostic::error("E0511", format!("there is no `{path}`"))
                .at(span, format!("the array has no instance {number}"))
                .help(format!("there are {count}, counted from 0")),
        );
    }

    /// The path of one instance.
    pub(crate) fn instance_path(&self, id: InstanceId, number: usize) -> String {
        self.modules.made[id.0 as usize].elements[number]
            .path
            .clone()
    }

    /// The module of instances.
    pub(crate) fn module_of(&self, id: InstanceId) -> EntityId {
        self.modules.made[id.0 as usize].module
    }
}

/// `enc.3` of `enc`.
fn element_path(path: &str, counts: &[u64], number: u64) -> String {
    let (mut rest, mut places) = (number, vec![]);
    for count in counts.iter().rev() {
        places.push(rest % count);
        rest /= count;
    }
    let places = places.iter().rev();
    places.fold(path.to_owned(), |path, place| format!("{path}.{place}"))
}
