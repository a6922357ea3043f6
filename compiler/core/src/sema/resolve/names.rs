//! The names of every file: what they stand for, imports, and where a dotted path leads.
//!
//! Must not know indices, sizes or types.
//!
//! ```text
//! model.ein: dim N, input X, definition y; nn -> std.nn
//! ```

use crate::sema::Checker;
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{
    Argument, Combine, Expr, Function, Item, ItemKind, Module, Name, Position, Role, Statement,
    Target, Type,
};
use std::collections::BTreeMap;

/// What one `param x: module(…)` declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InstanceId(pub(crate) u32);

/// A declaration of instances.
#[derive(Clone, Copy)]
pub(crate) struct Declared<'a> {
    pub(crate) module: &'a Name,
    pub(crate) arguments: &'a [Argument],
    pub(crate) shape: Option<&'a Vec<Position>>,
    pub(crate) span: Span,
}

impl<'a> Declared<'a> {
    /// The declaration in a param, if its type is a module.
    pub(crate) fn of(ty: &'a Type) -> Option<Declared<'a>> {
        match ty {
            Type::Module {
                name: module,
                arguments,
                shape,
                span,
            } => Some(Declared {
                module,
                arguments,
                shape: shape.as_ref(),
                span: *span,
            }),
            Type::Tensor { .. } => None,
        }
    }
}

/// A name of a block that is seen after it.
#[derive(Clone, Copy)]
pub(crate) enum Visible<'a> {
    /// How many rounds were made.
    Counter(&'a Name),
    /// A state's last value.
    State(&'a Target, Option<&'a Type>, &'a Expr),
    /// All that was collected.
    Collected(&'a Name),
}

impl<'a> Visible<'a> {
    pub(crate) fn name(self) -> &'a Name {
        match self {
            Visible::Counter(name) | Visible::Collected(name) => name,
            Visible::State(target, ..) => &target.name,
        }
    }
}

/// Something with a name at the top level of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntityId(pub(crate) u32);

/// What a name stands for.
#[derive(Clone, Copy)]
pub(crate) enum EntityKind<'a> {
    Dim(Option<&'a Expr>),
    /// `input` or, with `param`, `param`.
    Input {
        ty: &'a Type,
        source: Option<&'a Expr>,
        param: bool,
    },
    /// A definition; `constant`: by `const`.
    Definition {
        target: &'a Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
        constant: bool,
    },
    /// One of the names of `a, b = f(x)`.
    Part {
        targets: &'a [Target],
        at: usize,
        ty: Option<&'a Type>,
        value: &'a Expr,
    },
    /// `G[at[n]]: f32[V] += x[n]`.
    Scatter {
        target: &'a Target,
        ty: Option<&'a Type>,
        combine: Combine,
        value: &'a Expr,
    },
    /// A block, under the name of its counter.
    Repeat(&'a Statement),
    /// Another name of a block that is seen after it.
    OfRepeat {
        repeat: EntityId,
        visible: Visible<'a>,
    },
    Function(&'a Function),
    Module(&'a Module),
    /// `param head: linear(4, 2)`.
    Instance(Declared<'a>),
    /// Its definition has been reported, or is of a kind that is not supported yet.
    Poison,
}

/// A named thing.
#[derive(Clone, Copy)]
pub(crate) struct Entity<'a> {
    pub(crate) name: &'a Name,
    pub(crate) kind: EntityKind<'a>,
}

/// The names of one file.
#[derive(Default)]
pub(crate) struct FileNames<'a> {
    pub(crate) names: BTreeMap<&'a str, EntityId>,
    /// `nn` of `use std.nn`, with the file if it was found, and the place.
    pub(crate) aliases: BTreeMap<String, (Option<FileId>, Span)>,
}

/// Where a path leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Entity(EntityId),
    /// Something that an instance owns.
    Member(EntityId),
    Nothing,
    /// Something about it has been reported.
    Poison,
}

/// How a name may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Scalar,
    Tensor,
    Function,
    Poison,
}

impl<'a> Checker<'a> {
    /// Fills the name tables of all files.
    pub(crate) fn collect_names(&mut self) {
        let sources = self.sources;
        for (number, file) in sources.files.iter().enumerate() {
            let id = FileId(number as u32);
            self.note_inner_names(id, &file.ast.items);
            for item in &file.ast.items {
                self.collect_item(id, item);
            }
        }
    }

    fn collect_item(&mut self, file: FileId, item: &'a Item) {
        match &item.kind {
            ItemKind::Dim { name, value } => {
                self.declare(file, name, EntityKind::Dim(value.as_ref()))
            }
            ItemKind::Input { name, ty, source } | ItemKind::Param { name, ty, source } => {
                let param = matches!(item.kind, ItemKind::Param { .. });
                let kind = match Declared::of(ty) {
                    Some(declared) => EntityKind::Instance(declared),
                    None => EntityKind::Input {
                        ty,
                        source: source.as_ref(),
                        param,
                    },
                };
                self.declare(file, name, kind);
            }
            ItemKind::Const { target, ty, value } => self.declare(
                file,
                &target.name,
                EntityKind::Definition {
                    target,
                    ty: ty.as_ref(),
                    value,
                    constant: true,
                },
            ),
            ItemKind::UseLibrary { path } => {
                let alias = path.text.rsplit('.').next().unwrap_or(&path.text);
                let found = self.sources.libraries.get(&path.text).copied();
                self.alias(file, alias.to_owned(), found, path.span);
            }
            ItemKind::UseFile { path } => {
                let name = path.text.rsplit(['/', '\\']).next().unwrap_or(&path.text);
                let alias = name.strip_suffix(".ein").unwrap_or(name).to_owned();
                let found = self
                    .sources
                    .imports
                    .get(&(file, path.text.clone()))
                    .copied();
                self.alias(file, alias, found, path.span);
            }
            ItemKind::Function(function) => {
                self.declare(file, &function.name, EntityKind::Function(function));
            }
            ItemKind::Module(module) => {
                self.declare(file, &module.name, EntityKind::Module(module));
            }
            ItemKind::Statement(statement) => self.collect_statement(file, statement),
            // Optimizers and schedules have become functions.
            ItemKind::Optimizer(_) | ItemKind::Schedule(_) => {}
            ItemKind::Output { .. }
            | ItemKind::Assert { .. }
            | ItemKind::Train(_)
            | ItemKind::Error(None) => {}
            ItemKind::Error(Some(name)) => {
                // It has been said what is wrong with it; what uses it is not to blame.
                if !self.files[file.0 as usize]
                    .names
                    .contains_key(name.text.as_str())
                {
                    self.declare(file, name, EntityKind::Poison);
                }
            }
        }
        let library = matches!(
            item.kind,
            ItemKind::Dim { .. }
                | ItemKind::Const { .. }
                | ItemKind::UseLibrary { .. }
                | ItemKind::UseFile { .. }
                | ItemKind::Function(_)
                | ItemKind::Module(_)
                | ItemKind::Optimizer(_)
                | ItemKind::Schedule(_)
                | ItemKind::Error(_)
        );
        if file.0 != 0 && !library {
            self.report.push(
                Diagnostic::error("E0507", "an imported file cannot hold this")
                    .at(self.head(item.span), "not allowed in a file that is imported")
                    .help("it holds `dim`, `const`, `fn`, `module`, `optimizer`, `schedule` and `use` only"),
            );
        }
    }

    fn collect_statement(&mut self, file: FileId, statement: &'a Statement) {
        match statement {
            Statement::Definition {
                role,
                targets,
                ty,
                value,
                span,
            } => {
                let kind = match (role, targets.as_slice()) {
                    (Role::Plain, [target]) => EntityKind::Definition {
                        target,
                        ty: ty.as_ref(),
                        value,
                        constant: false,
                    },
                    (Role::Plain, several) => {
                        for (at, target) in several.iter().enumerate() {
                            let kind = EntityKind::Part {
                                targets,
                                at,
                                ty: ty.as_ref(),
                                value,
                            };
                            self.declare(file, &target.name, kind);
                        }
                        return;
                    }
                    _ => {
                        self.report.push(
                            Diagnostic::error(
                                "E0204",
                                "`state` and `next` stand in a `repeat` only",
                            )
                            .at(*span, "outside of every round"),
                        );
                        EntityKind::Poison
                    }
                };
                for target in targets {
                    self.declare(file, &target.name, kind);
                }
            }
            Statement::Scatter {
                target,
                ty,
                combine,
                value,
                ..
            } => {
                let kind = EntityKind::Scatter {
                    target,
                    ty: ty.as_ref(),
                    combine: *combine,
                    value,
                };
                self.declare(file, &target.name, kind);
            }
            Statement::Repeat { .. } => {
                let repeat = EntityId(self.entities.len() as u32);
                for visible in self.visible_names(statement) {
                    // A counter whose name is taken makes no entity.
                    let is_there = self.entities.len() > repeat.0 as usize;
                    let kind = match visible {
                        Visible::Counter(_) => EntityKind::Repeat(statement),
                        _ if is_there => EntityKind::OfRepeat { repeat, visible },
                        _ => EntityKind::Poison,
                    };
                    self.declare(file, visible.name(), kind);
                }
            }
        }
    }

    fn declare(&mut self, file: FileId, name: &'a Name, kind: EntityKind<'a>) {
        let names = &mut self.files[file.0 as usize].names;
        let (next, kind_of_next) = (EntityId(self.entities.len() as u32), kind);
        let known = names.get(name.text.as_str()).copied();
        let counts = |id: &EntityId| {
            let kind = self.entities[id.0 as usize].kind;
            matches!(
                (kind, kind_of_next),
                (EntityKind::Repeat(_), EntityKind::Repeat(_))
            )
        };
        // Blocks may count with the same name: each counter is known in its own block.
        if let Some(first) = known.filter(|id| !counts(id)) {
            let first = self.entities[first.0 as usize].name.span;
            self.report.push(
                Diagnostic::error("E0202", format!("`{}` is defined twice", name.text))
                    .at(name.span, "defined again here")
                    .at(first, "first defined here")
                    .help("a name has one definition; give one of them another name"),
            );
            return;
        }
        names.entry(&name.text).or_insert(next);
        self.entities.push(Entity { name, kind });
        self.entity_files.push(file);
    }

    /// Reports the use of a counter's name outside of its blocks where several blocks have that counter. Returns whether it
    /// reported one.
    pub(crate) fn two_counters(&mut self, file: FileId, name: &str, span: Span) -> bool {
        let entities = self.entities.iter().zip(&self.entity_files);
        let counters = entities.filter(|(entity, own)| {
            let counts = matches!(entity.kind, EntityKind::Repeat(_));
            counts && **own == file && entity.name.text == name
        });
        let places: Vec<Span> = counters.map(|(entity, _)| entity.name.span).collect();
        let [first, second, ..] = places[..] else {
            return false;
        };
        self.report.push(
            Diagnostic::error(
                "E0202",
                format!("`{name}` counts the rounds of several blocks"),
            )
            .at(span, "of which block is this the number of rounds?")
            .at(first, "of this one")
            .at(second, "or of this one")
            .help("give one of the counters another name"),
        );
        true
    }

    fn alias(&mut self, file: FileId, alias: String, found: Option<FileId>, span: Span) {
        let aliases = &mut self.files[file.0 as usize].aliases;
        if let Some((other, first)) = aliases.get(&alias) {
            if *other != found {
                self.report.push(
                    Diagnostic::error("E0202", format!("`{alias}` is imported twice"))
                        .at(span, "imported again here")
                        .at(*first, "first imported here"),
                );
            }
            return;
        }
        aliases.insert(alias, (found, span));
    }

    /// Where a name or dotted path of a file leads.
    pub(crate) fn find(&self, file: FileId, path: &str) -> Found {
        let table = &self.files[file.0 as usize];
        let found = |id: &EntityId| match self.entity(*id).kind {
            EntityKind::Poison => Found::Poison,
            _ => Found::Entity(*id),
        };
        if let Some(id) = table.names.get(path) {
            return found(id);
        }
        let Some((head, rest)) = path.split_once('.') else {
            return Found::Nothing;
        };
        match table.aliases.get(head) {
            Some((None, _)) => Found::Poison,
            Some((Some(target), _)) => {
                let id = self.files[target.0 as usize].names.get(rest);
                id.map_or(Found::Nothing, found)
            }
            // A member of a module instance.
            None => match table.names.get(head).map(|id| self.entity(*id).kind) {
                Some(EntityKind::Poison) => Found::Poison,
                Some(EntityKind::Instance(_)) => Found::Member(table.names[head]),
                _ => Found::Nothing,
            },
        }
    }

    pub(crate) fn entity(&self, id: EntityId) -> Entity<'a> {
        self.entities[id.0 as usize]
    }

    /// The full name of something of a file.
    pub(crate) fn full_name(&self, file: FileId, name: &str) -> String {
        if file.0 == 0 {
            return name.to_owned();
        }
        let source = &self.sources.files[file.0 as usize].name;
        let stem = source.rsplit(['/', '\\']).next().unwrap_or(source);
        format!("{}.{name}", stem.strip_suffix(".ein").unwrap_or(stem))
    }

    /// The first line of a span: what a message about a block points at.
    pub(crate) fn head(&self, span: Span) -> Span {
        let text = self.text(span);
        let length = text.find('\n').unwrap_or(text.len());
        Span {
            end: span.start + length as u32,
            ..span
        }
    }

    /// The text of a span.
    pub(crate) fn text(&self, span: Span) -> &'a str {
        self.sources
            .files
            .get(span.file.0 as usize)
            .and_then(|file| file.text.get(span.start as usize..span.end as usize))
            .unwrap_or("…")
    }
}
