//! The names of every file: what they stand for, imports, and where a dotted path leads.
//!
//! Must not know indices, sizes or types.
//!
//! ```text
//! model.ein: dim N, input X, definition y; nn -> std.nn
//! ```

use crate::sema::{Sources, hir::Kind, rounds::desugar::Collections};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{
    Argument, Combine, Expr, Function, Module, Name, Position, Statement, Target, Type,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The instances that one `param x: module(…)` declares.
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
    /// The kind of the definition that it is.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Visible::Counter(_) => Kind::Counter,
            Visible::State(..) => Kind::State,
            Visible::Collected(_) => Kind::Value,
        }
    }

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

/// The meaning of a name at the top level of a file.
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
        drops: bool,
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
    /// The file that defines it.
    pub(crate) file: FileId,
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

/// Functions and modules that take functions, by file and name: which of their formals, or of a module's options, are ones.
pub(crate) type Templates = BTreeMap<(u32, String), BTreeSet<usize>>;

/// The name of something of a file, wherever it stands.
pub(crate) fn anywhere(name: &str, file: FileId) -> String {
    format!("{name}@{}", file.0)
}

/// The file and the name of a name that was made by [`anywhere`].
pub(crate) fn somewhere(path: &str) -> Option<(FileId, &str)> {
    let (name, file) = path.rsplit_once('@')?;
    Some((FileId(file.parse().ok()?), name))
}

/// The names of all files of a program, with what they stand for.
pub(crate) struct Names<'a> {
    pub(crate) sources: &'a Sources,
    /// Definitions that collect one slice a round.
    pub(crate) collections: &'a Collections,
    /// Functions and modules that take functions. Copies of them are checked in their place.
    pub(crate) templates: Option<&'a Templates>,
    pub(crate) files: Vec<FileNames<'a>>,
    pub(crate) entities: Vec<Entity<'a>>,
    /// Names that are known in rounds only, for messages.
    pub(crate) inner: HashMap<(FileId, &'a str), Span>,
    /// First bytes of the lines of every file.
    pub(crate) lines: Vec<Vec<u32>>,
}

impl<'a> Names<'a> {
    /// Returns the error for the use of a counter's name outside of its blocks, where several blocks have that counter.
    pub(crate) fn two_counters(&self, file: FileId, name: &str, span: Span) -> Option<Diagnostic> {
        let counters = self.entities.iter().filter(|entity| {
            let counts = matches!(entity.kind, EntityKind::Repeat(_));
            counts && entity.file == file && entity.name.text == name
        });
        let places: Vec<Span> = counters.map(|entity| entity.name.span).collect();
        several_counters(name, span, &places)
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
        if let Some((file, name)) = somewhere(path) {
            let table = self.files.get(file.0 as usize);
            let id = table.and_then(|table| table.names.get(name));
            return id.map_or(Found::Nothing, found);
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

    /// The first of the functions that a function or module takes.
    pub(crate) fn function_formal(&self, id: EntityId) -> Option<&'a Name> {
        let entity = self.entity(id);
        let formals = match entity.kind {
            EntityKind::Function(function) => &function.formals,
            EntityKind::Module(module) => &module.options,
            _ => return None,
        };
        let key = (entity.file.0, entity.name.text.clone());
        let first = self.templates?.get(&key)?.first()?;
        formals.get(*first).map(|formal| &formal.name)
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

    /// Returns the module of that name which a file knows.
    pub(crate) fn module(&self, file: FileId, name: &str) -> Option<(EntityId, &'a Module)> {
        match self.find(file, name) {
            Found::Entity(id) => match self.entity(id).kind {
                EntityKind::Module(module) => Some((id, module)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the names of scalars that a file knows.
    pub(crate) fn scalars(&self, file: FileId) -> Vec<String> {
        self.files[file.0 as usize]
            .names
            .iter()
            .filter(|(_, id)| self.shape_of(**id) == Shape::Scalar)
            .map(|(name, _)| (*name).to_owned())
            .collect()
    }
}

/// The error for the use of a counter's name outside of its blocks, where several blocks have that counter.
pub(crate) fn several_counters(name: &str, span: Span, places: &[Span]) -> Option<Diagnostic> {
    let [first, second, ..] = places else {
        return None;
    };
    Some(
        Diagnostic::error(
            "E0202",
            format!("`{name}` counts the rounds of several blocks"),
        )
        .at(span, "of which block is this the number of rounds?")
        .at(*first, "of this one")
        .at(*second, "or of this one")
        .help("give one of the counters another name"),
    )
}
