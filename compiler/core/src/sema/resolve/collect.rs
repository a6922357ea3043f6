//! The collection of the names that every file defines and imports.
//!
//! Must not know what expressions mean.
//!
//! ```text
//! dim N; input X: f32[N]; use std.nn   =>   N: dim 0, X: input 1, nn: the file of `std.nn`
//! ```

use crate::sema::resolve::{
    Resolver,
    names::{Declared, Entity, EntityId, EntityKind, Visible},
};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Item, ItemKind, Name, Role, Statement};

impl<'a> Resolver<'a> {
    /// Fills the name tables of all files.
    pub(crate) fn collect_names(&mut self) {
        let sources = self.names.sources;
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
                let found = self.names.sources.libraries.get(&path.text).copied();
                self.alias(file, alias.to_owned(), found, path.span);
            }
            ItemKind::UseFile { path } => {
                let name = path.text.rsplit(['/', '\\']).next().unwrap_or(&path.text);
                let alias = name.strip_suffix(".ein").unwrap_or(name).to_owned();
                let found = self
                    .names
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
                if !self.names.files[file.0 as usize]
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
                    .at(self.names.head(item.span), "not allowed in a file that is imported")
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
                drops,
                value,
                ..
            } => {
                let kind = EntityKind::Scatter {
                    target,
                    ty: ty.as_ref(),
                    combine: *combine,
                    drops: *drops,
                    value,
                };
                self.declare(file, &target.name, kind);
            }
            Statement::Repeat { .. } => {
                let repeat = EntityId(self.names.entities.len() as u32);
                for visible in self.names.visible_names(statement) {
                    // A counter whose name is taken makes no entity.
                    let is_there = self.names.entities.len() > repeat.0 as usize;
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
        let names = &mut self.names.files[file.0 as usize].names;
        let (next, kind_of_next) = (EntityId(self.names.entities.len() as u32), kind);
        let known = names.get(name.text.as_str()).copied();
        let counts = |id: &EntityId| {
            let kind = self.names.entities[id.0 as usize].kind;
            matches!(
                (kind, kind_of_next),
                (EntityKind::Repeat(_), EntityKind::Repeat(_))
            )
        };
        // Blocks may count with the same name: each counter is known in its own block.
        if let Some(first) = known.filter(|id| !counts(id)) {
            let first = self.names.entities[first.0 as usize].name.span;
            self.report.push(
                Diagnostic::error("E0202", format!("`{}` is defined twice", name.text))
                    .at(name.span, "defined again here")
                    .at(first, "first defined here")
                    .help("a name has one definition; give one of them another name"),
            );
            return;
        }
        names.entry(&name.text).or_insert(next);
        self.names.entities.push(Entity { name, kind, file });
    }

    fn alias(&mut self, file: FileId, alias: String, found: Option<FileId>, span: Span) {
        let aliases = &mut self.names.files[file.0 as usize].aliases;
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
}
