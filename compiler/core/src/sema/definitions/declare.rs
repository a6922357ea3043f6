//! Items of the program: dims and consts with what is bound to them, definitions in the order of their uses,
//! assertions and outputs.
//!
//! Must not know the forms of expressions, nor data.
//!
//! ```text
//! dim H = D / 2, `--dim D=64`   =>   D = 64, H = 32
//! ```

use crate::sema::{
    Checker,
    definitions::lists::sizes_of_list,
    definitions::tensors::Target,
    expressions::scope::{Binding, Scope},
    resolve::item_order::Order,
    resolve::names::{EntityId, EntityKind, Found},
    rounds::repeat::Place,
    sizes::size::Size,
};
use ein_plan::Scalar;
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{self, Expr, Name, Position, Statement, Type};
use std::collections::{BTreeMap, HashMap};

/// The meanings of a program's entities, as far as they have been checked.
pub(crate) struct Entities {
    pub(crate) order: Order,
    pub(crate) values: HashMap<EntityId, Binding>,
    /// Dims that data or a list gave their numbers: number, tensor, place.
    pub(crate) bound_dims: BTreeMap<String, (i64, String, Span)>,
}

impl Entities {
    pub(crate) fn new(order: Order) -> Entities {
        Entities {
            order,
            values: HashMap::new(),
            bound_dims: BTreeMap::new(),
        }
    }
}

impl<'a> Checker<'a> {
    /// Checks that what `--dim`, `--set` and `--input` name is there.
    pub(crate) fn check_bindings(&mut self) {
        let bindings = self.task.bindings;
        let mut known: [Vec<&str>; 3] = Default::default();
        for entity in &self.names.entities {
            if entity.file.0 != 0 {
                continue;
            }
            let list = match entity.kind {
                EntityKind::Dim(_) => 0,
                EntityKind::Definition { constant: true, .. } => 1,
                EntityKind::Input { .. } => 2,
                _ => continue,
            };
            known[list].push(&entity.name.text);
        }
        let given = [
            (bindings.dims.keys().collect::<Vec<_>>(), "dim", "--dim"),
            (bindings.constants.keys().collect(), "const", "--set"),
            (bindings.headers.keys().collect(), "input", "--input"),
        ];
        for ((names, what, option), known) in given.into_iter().zip(known) {
            for name in names {
                // What instances own is known once they are made.
                let member = matches!(self.names.find(FileId(0), name), Found::Member(_));
                if known.contains(&name.as_str()) || (what == "input" && member) {
                    continue;
                }
                let mut error = Diagnostic::error(
                    "E0711",
                    format!("`{option} {name}`: there is no {what} `{name}`"),
                );
                if let Some(near) = did_you_mean(name, known.iter().copied()) {
                    error = error.help(format!("did you mean `{near}`?"));
                } else if !known.is_empty() {
                    error = error.help(format!("there are {}", known.join(", ")));
                }
                self.report.push(error);
            }
        }
        for (name, value) in &bindings.dims {
            if *value < 0 {
                self.report.push(Diagnostic::error(
                    "E0711",
                    format!("`--dim {name}={value}`: a size cannot be negative"),
                ));
            }
        }
    }

    /// Finds the dims that follow from the headers of bound data and from lists in the text.
    pub(crate) fn bind_dims(&mut self) {
        let sized = self.with_known_sizes();
        let mark = self.report.mark();
        // Every round but the last gives a dim its number.
        for _ in 0..=self.names.entities.len() {
            self.entities.values.clear();
            for id in self.entities.order.entities.clone() {
                let constant = matches!(
                    self.names.entity(id).kind,
                    EntityKind::Definition { constant: true, target, .. } if target.positions.is_none()
                );
                if constant || matches!(self.names.entity(id).kind, EntityKind::Dim(_)) {
                    self.define_entity(id);
                }
            }
            let (mut found, mut at_least) = (vec![], vec![]);
            for (name, ty, sizes, is_open) in &sized {
                let Type::Tensor { shape, span, .. } = ty else {
                    continue;
                };
                let shape = shape.as_deref().unwrap_or_default();
                for (at, (position, number)) in shape.iter().zip(sizes).enumerate() {
                    let (Position::Expr(expr), Ok(number)) = (position, i64::try_from(*number))
                    else {
                        continue;
                    };
                    let size = self.size(&Scope::file(FileId(0)), expr, "a size");
                    if let Some((dim, value)) = size.and_then(|size| size.solve(number))
                        && value >= 0
                        && !self.entities.bound_dims.contains_key(&*dim)
                    {
                        let open = *is_open && at + 1 == sizes.len();
                        let of = if open { &mut at_least } else { &mut found };
                        of.push((dim.to_string(), value, name.text.clone(), *span));
                    }
                }
            }
            if found.is_empty() {
                // No data say exactly how large the rest is: as large as the largest.
                at_least.sort_by_key(|(_, value, ..)| std::cmp::Reverse(*value));
                found = at_least;
            }
            if found.is_empty() {
                break;
            }
            for (dim, value, input, span) in found {
                self.entities
                    .bound_dims
                    .entry(dim)
                    .or_insert((value, input, span));
            }
        }
        self.report.forget(mark);
        self.entities.values.clear();
    }

    /// The tensors of the text whose sizes the headers of their data tell, or lists in their place: name, type, sizes, and whether the last size
    /// may be larger.
    fn with_known_sizes(&self) -> Vec<(&'a Name, &'a Type, Vec<u64>, bool)> {
        let entities = self.names.entities.iter();
        let own = entities.filter(|entity| entity.file.0 == 0);
        let sized = own.filter_map(|entity| {
            let (ty, source, header) = match entity.kind {
                EntityKind::Input { ty, source, .. } => {
                    let header = self.task.bindings.headers.get(&entity.name.text);
                    (ty, source, header)
                }
                EntityKind::Definition { ty, value, .. } => (ty?, Some(value), None),
                _ => return None,
            };
            let (sizes, is_open) = match header {
                Some(header) => (header.shape.clone(), header.at_least),
                None => (sizes_of_list(source?)?, false),
            };
            Some((entity.name, ty, sizes, is_open))
        });
        sized.collect()
    }

    /// Checks every item in the order of uses.
    pub(crate) fn define_entities(&mut self) {
        for id in self.entities.order.entities.clone() {
            self.define_entity(id);
        }
        // A step, or what is wanted alone, may do without some instances.
        if !self.checks_all() {
            return;
        }
        for name in self.task.bindings.headers.keys() {
            let Found::Member(id) = self.names.find(FileId(0), name) else {
                continue;
            };
            let failed = self.entities.values.get(&id) == Some(&Binding::Poison);
            if failed || self.built.inputs.iter().any(|input| input.name == *name) {
                continue;
            }
            let owner = name.split('.').next().unwrap_or_default();
            let known = self.built.inputs.iter().map(|input| input.name.as_str());
            let mut error = Diagnostic::error(
                "E0711",
                format!("`--input {name}`: `{owner}` has no param of that name"),
            );
            if let Some(near) = did_you_mean(name, known) {
                error = error.help(format!("did you mean `{near}`?"));
            }
            self.report.push(error);
        }
    }

    pub(crate) fn define_entity(&mut self, id: EntityId) {
        if self.entities.values.contains_key(&id) {
            return;
        }
        if self.keeps_whole(id) {
            return self.with_whole(|c| c.define_plain(id));
        }
        self.define_plain(id);
    }

    fn define_plain(&mut self, id: EntityId) {
        if self.is_failed(id) {
            self.entities.values.insert(id, Binding::Poison);
            return;
        }
        let entity = self.names.entity(id);
        let file = self.names.entity(id).file;
        let scope = Scope::file(file);
        let binding = match entity.kind {
            EntityKind::Function(_) | EntityKind::Module(_) => return,
            EntityKind::Instance(declared) => {
                let path = self.names.full_name(file, &entity.name.text);
                let made = self.declare_instances(&scope, declared, &path);
                if let Some(made) = made {
                    self.check_member_paths(id, made);
                }
                made
            }
            EntityKind::Scatter {
                target,
                ty,
                combine,
                drops,
                value,
            } => {
                let name = self.names.full_name(file, &entity.name.text);
                let target = Target {
                    name,
                    named: Some(target.span),
                    in_function: false,
                    ..Target::local(target, ty, value, "")
                };
                self.define_scatter(&scope, target, (combine, drops))
            }
            EntityKind::Part {
                targets, ty, value, ..
            } => return self.define_parts(&scope, targets, ty, value),
            EntityKind::Repeat(repeat) => return self.define_block(&scope, id, repeat),
            // Its block has said what it stands for, unless that went wrong.
            EntityKind::OfRepeat { .. } => None,
            EntityKind::Poison => None,
            EntityKind::Dim(value) => self.dim(&scope, id, value),
            EntityKind::Input { ty, source, param } => {
                let name = entity.name.text.clone();
                self.input(&scope, (entity.name, name), ty, source, param)
            }
            EntityKind::Definition { constant: true, .. }
                if self.task.mode.constants.contains_key(&id) =>
            {
                self.fed_constant(id)
            }
            EntityKind::Definition {
                target,
                ty,
                value,
                constant,
            } => {
                let target = Target {
                    target,
                    ty,
                    value,
                    constant,
                    name: self.names.full_name(file, &entity.name.text),
                    named: Some(target.span),
                    stated: None,
                    in_function: false,
                    infer: false,
                    guess: None,
                };
                self.define_or_set(&scope, id, target)
            }
        };
        self.entities
            .values
            .insert(id, binding.unwrap_or(Binding::Poison));
    }

    /// A block of rounds: gives all of its names what they stand for.
    fn define_block(&mut self, scope: &Scope<'a>, id: EntityId, repeat: &'a Statement) {
        let place = Place { scope, prefix: "" };
        for (name, binding) in self.define_repeat(&place, repeat) {
            let binding = binding.unwrap_or(Binding::Poison);
            // Another block may have the counter's name.
            if name == self.names.entity(id).name.text {
                self.entities.values.insert(id, binding);
            } else if let Found::Entity(id) = self.names.find(scope.file, name) {
                self.entities.values.insert(id, binding);
            }
        }
    }

    /// A definition, or the number that takes its place: of `--set`, or of this program among those of a training.
    fn define_or_set(
        &mut self,
        scope: &Scope<'a>,
        id: EntityId,
        target: Target<'a>,
    ) -> Option<Binding> {
        let entity = self.names.entity(id);
        let constants = &self.task.bindings.constants;
        let set = constants
            .get(&entity.name.text)
            .filter(|_| target.constant && scope.file.0 == 0)
            .or_else(|| self.task.mode.numbers.get(&id));
        match set {
            Some(scalar) if target.target.positions.is_none() => {
                self.set_constant(entity.name, target.ty, *scalar)
            }
            Some(_) => {
                let name = &entity.name.text;
                self.report.push(
                    Diagnostic::error("E0711", format!("`--set {name}`: `{name}` is a tensor"))
                        .at(target.target.span, "only a number can be set"),
                );
                None
            }
            None => self.define(scope, target),
        }
    }

    /// `a, b = f(x)`: gives all of the names what they stand for.
    fn define_parts(
        &mut self,
        scope: &Scope<'a>,
        targets: &'a [ast::Target],
        ty: Option<&'a Type>,
        value: &'a Expr,
    ) {
        let several = targets
            .iter()
            .map(|target| Target {
                name: self.names.full_name(scope.file, &target.name.text),
                named: Some(target.span),
                in_function: false,
                ..Target::local(target, ty, value, "")
            })
            .collect();
        for (name, binding) in self.define_several(scope, several, value) {
            if let Found::Entity(id) = self.names.find(scope.file, name) {
                self.entities
                    .values
                    .insert(id, binding.unwrap_or(Binding::Poison));
            }
        }
    }

    fn dim(&mut self, scope: &Scope<'a>, id: EntityId, value: Option<&'a Expr>) -> Option<Binding> {
        let name = self.names.entity(id).name;
        let given = if scope.file.0 == 0 {
            self.task.bindings.dims.get(&name.text).copied()
        } else {
            None
        };
        let size = match (given, value) {
            (Some(number), _) => Size::number(number.max(0)),
            (None, Some(value)) => self.size(scope, value, "a size")?,
            (None, None) => match self
                .entities
                .bound_dims
                .get(&name.text)
                .filter(|_| scope.file.0 == 0)
            {
                Some((number, ..)) => Size::number(*number),
                None => Size::dim(&self.names.full_name(scope.file, &name.text)),
            },
        };
        if size.at_least_zero() == Some(false) {
            self.report.push(
                Diagnostic::error("E0307", format!("`{}` is negative: {size}", name.text))
                    .at(name.span, format!("this is {size}"))
                    .help("a size is 0 or more"),
            );
            return None;
        }
        let size = self.batched(id, size);
        Some(Binding::Scalar(self.arena.whole(size)))
    }

    fn set_constant(
        &mut self,
        name: &'a Name,
        ty: Option<&'a Type>,
        scalar: Scalar,
    ) -> Option<Binding> {
        let value = match scalar {
            Scalar::Int(value) => self.arena.whole(Size::number(value)),
            Scalar::Float(value) => self.arena.real(value),
            Scalar::Bool(value) => self.arena.truth(value),
        };
        match ty {
            Some(Type::Tensor { dtype, .. }) => {
                self.coerce(value, *dtype, name.span).map(Binding::Scalar)
            }
            _ => Some(Binding::Scalar(value)),
        }
    }
}
