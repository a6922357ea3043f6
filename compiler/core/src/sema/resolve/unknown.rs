//! Names that nothing has: the report, with what may have been meant.
//!
//! Must not know where the name stands.
//!
//! ```text
//! E0201: there is no `sofmax`   help: did you mean `nn.softmax`?
//! ```

use crate::sema::{
    resolve::names::Names,
    resolve::names::{Declared, EntityId, EntityKind, Found},
    rounds::desugar::state_of,
};
use ein_plan::Reduction;
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{ItemKind, Module, Role, Statement};
use einc_syntax::elsewhere;
use std::collections::BTreeMap;

impl<'a> Names<'a> {
    /// Returns the error for an unknown name, with the nearest known one.
    pub(crate) fn unknown(
        &self,
        file: FileId,
        name: &str,
        span: Span,
        locals: &[&str],
        functions: bool,
    ) -> Diagnostic {
        if let Some(state) = state_of(name) {
            let what = format!("`next {state}`, but `{state}` is no state of this block");
            return Diagnostic::error("E0512", what)
                .at(span, "no state of that name")
                .help(format!("say how it begins: `state {state}[…] = …`"));
        }
        if let Some(inner) = self.inner.get(&(file, name)).copied() {
            let what = format!("`{name}` is known in the rounds of its block only");
            return Diagnostic::error("E0516", what)
                    .at(span, "outside of the rounds")
                    .at(inner, "a name of the block")
                    .help("after a block there are its states, its counter, and what its counter counts on the left");
        }
        if let Some((state, module, place)) = self.state_of_module(file, name) {
            let what =
                format!("`{state}` is a state of the module `{module}`, and known in it only");
            return Diagnostic::error("E0201", what)
                    .at(span, "outside of the module")
                    .at(place, "the state")
                    .help(format!(
                        "make what is wanted of it a result of `{module}`; `--export` writes the states of a training"
                    ));
        }
        if let Found::Member(id) = self.find(file, name)
            && let EntityKind::Instance(declared) = self.entity(id).kind
            && let (Some(shape), Some((array, own))) = (declared.shape, name.split_once('.'))
            && !own
                .split('.')
                .take(shape.len())
                .all(crate::sema::resolve::shapes::is_number)
        {
            let first = vec!["0"; shape.len()].join(".");
            return Diagnostic::error("E0511", format!("`{array}` is an array of instances"))
                .at(span, "no instance is named")
                .help(format!("say which one: `{array}.{first}.{own}`"));
        }
        let error = Diagnostic::error("E0201", format!("there is no `{name}`"))
            .at(span, "not found in this file or its imports");
        let table = &self.files[file.0 as usize];
        let mut candidates: Vec<String> = locals.iter().map(|l| (*l).to_owned()).collect();
        let wanted =
            |id: &EntityId| functions == matches!(self.entity(*id).kind, EntityKind::Function(_));
        candidates.extend(
            table
                .names
                .iter()
                .filter(|(_, id)| wanted(id))
                .map(|(n, _)| (*n).to_owned()),
        );
        for (alias, (target, _)) in &table.aliases {
            if let Some(target) = target {
                let names = &self.files[target.0 as usize].names;
                candidates.extend(
                    names
                        .iter()
                        .filter(|(_, id)| wanted(id))
                        .map(|(n, _)| format!("{alias}.{n}")),
                );
            }
        }
        if functions {
            candidates.extend(
                crate::sema::expressions::builtins::NAMES
                    .iter()
                    .map(|n| (*n).to_owned()),
            );
        }
        match self.suggestion((file, name), functions, &candidates) {
            Some(help) => error.help(help),
            None => error,
        }
    }

    /// Says what to write in the place of an unknown name, by what it may have meant.
    fn suggestion(
        &self,
        (file, name): (FileId, &str),
        functions: bool,
        candidates: &[String],
    ) -> Option<String> {
        let table = &self.files[file.0 as usize];
        let suffix = format!(".{name}");
        let exact = candidates
            .iter()
            .find(|c| c.ends_with(&suffix))
            .map(String::as_str);
        // One letter in the place of another is no slip of the keyboard.
        let near = did_you_mean(name, candidates.iter().map(String::as_str));
        let near = near.filter(|near| near.chars().count().max(name.chars().count()) > 2);
        let library = name.split_once('.').map_or("", |(library, _)| library);
        let is_known = |name: &str| matches!(self.find(file, name), Found::Entity(_));
        let (owner, last) = name.rsplit_once('.').unwrap_or(("A", name));
        if functions && Reduction::from_name(last).is_some() && (last == name || is_known(owner)) {
            return Some(format!(
                "`{last}` is a reduction, which says over which indices: `{last}[i,j] {owner}[i,j]`"
            ));
        }
        if let Some((_, help)) = elsewhere::part(name).filter(|(owner, _)| is_known(owner)) {
            return Some(help);
        }
        if let Some(help) = elsewhere::function(name).filter(|_| functions && exact.is_none()) {
            return Some(help);
        }
        let of_library = elsewhere::LIBRARY
            .iter()
            .find(|(known, _)| *known == library)
            .map(|(_, functions)| *functions);
        let is_library = of_library.is_some();
        let of_language = crate::sema::expressions::builtins::NAMES.contains(&last);
        if functions && of_language && of_library.is_some_and(|own| !own.contains(&last)) {
            return Some(format!(
                "`{last}` needs no library: write `{last}(…)` in place of `{name}(…)`"
            ));
        }
        if is_library && !table.aliases.contains_key(library) {
            return Some(format!("it may be in a library: write `use std.{library}`"));
        }
        if let Some(near) = exact.or(near) {
            return Some(format!("did you mean `{near}`?"));
        }
        let library = self.library_with(name)?;
        Some(format!("it is in a library: write `use {library}`"))
    }

    /// The module of an instance, or of an array of them, that has this name; `inner` are those inside a module.
    fn module_named(
        &self,
        file: FileId,
        inner: &BTreeMap<&'a str, EntityId>,
        name: &str,
    ) -> Option<&'a Module> {
        if let Some(module) = inner.get(name) {
            return match self.entity(*module).kind {
                EntityKind::Module(module) => Some(module),
                _ => None,
            };
        }
        let Found::Entity(id) = self.find(file, name) else {
            return None;
        };
        let EntityKind::Instance(declared) = self.entity(id).kind else {
            return None;
        };
        let file = self.entity(id).file;
        let found = self.module(file, &declared.module.text);
        found.map(|(_, module)| module)
    }

    /// Says that an instance of a module is no value, if a name is that of one.
    pub(crate) fn no_value(
        &self,
        file: FileId,
        inner: &BTreeMap<&'a str, EntityId>,
        name: &str,
        span: Span,
    ) -> Option<Diagnostic> {
        let of = &self.module_named(file, inner, name)?.name.text;
        let diagnostic = Diagnostic::error(
            "E0204",
            format!("`{name}` is an instance of the module `{of}`"),
        )
        .at(span, "no value by itself")
        .help("apply it to something, or name what it owns by its path, as in `head.w`");
        Some(diagnostic)
    }

    /// Follows a path to a state in an instance, or in an array of them: returns the state, its module, and where it stands.
    fn state_of_module(&self, file: FileId, path: &str) -> Option<(String, String, Span)> {
        let mut names = path
            .split('.')
            .filter(|name| !crate::sema::resolve::shapes::is_number(name));
        let (Found::Entity(instance) | Found::Member(instance)) = self.find(file, names.next()?)
        else {
            return None;
        };
        let EntityKind::Instance(mut declared) = self.entity(instance).kind else {
            return None;
        };
        let mut file = self.entity(instance).file;
        loop {
            let (id, module) = self.module(file, &declared.module.text)?;
            let name = names.next()?;
            let found = module.body.iter().find_map(|item| match &item.kind {
                ItemKind::Statement(Statement::Definition {
                    role: Role::State,
                    targets,
                    ..
                }) => {
                    let target = targets.iter().find(|target| target.name.text == name)?;
                    Some(Err(target.name.span))
                }
                ItemKind::Param { name: own, ty, .. } if own.text == name => {
                    Declared::of(ty).map(Ok)
                }
                _ => None,
            });
            match found? {
                Ok(inner) => (declared, file) = (inner, self.entity(id).file),
                Err(place) => {
                    return Some((name.to_owned(), module.name.text.to_string(), place));
                }
            }
        }
    }

    /// The library that would make this name known.
    fn library_with(&self, name: &str) -> Option<String> {
        let (head, rest) = name.split_once('.').unwrap_or(("", name));
        self.sources.libraries.iter().find_map(|(library, file)| {
            let alias = library.rsplit('.').next()?;
            let names = &self.files.get(file.0 as usize)?.names;
            (names.contains_key(rest) && (head.is_empty() || head == alias))
                .then(|| library.clone())
        })
    }
}
