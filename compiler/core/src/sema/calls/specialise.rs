//! Functions as arguments, before anything is checked: a function of functions is written out for those that are passed.
//!
//! A formal that the body of a function or module calls, or passes on as a function, stands for a function. Every call names what is
//! passed, so that it becomes a call of a copy of the function, with that name in place of the formal's. Names of other files
//! become `name@file`, which no text can hold. Must not know sizes or types.
//!
//! ```text
//! fn twice(f, x) = f(f(x));  y[n] = twice(nn.silu, x[n])
//!   =>   fn `twice(nn.silu)`(x) = `silu@1`(`silu@1`(x));  y[n] = `twice(nn.silu)@0`(x[n])
//! ```

mod sites;

use self::sites::{Site, sites};
use crate::sema::{
    Sources,
    expressions::builtins::{self, Builtin},
    resolve::forms::{formal_shape, unbracket},
    resolve::names::{EntityKind, Found, Names, Templates, anywhere, somewhere},
    resolve::names_of,
    rounds::desugar::Collections,
};
use einc_diag::FileId;
use einc_syntax::ast::{Argument, ExprKind, Formal, Item, ItemKind, Name};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The name of a function without the functions that were passed to it.
pub(crate) fn plain_name(name: &str) -> &str {
    name.split('(').next().unwrap_or(name)
}

/// The files with functions of functions written out, and which functions these are.
pub(crate) fn specialise(sources: &Sources) -> (Cow<'_, Sources>, Templates) {
    let nothing = Collections::new();
    if !sources.files.iter().any(|file| takes_more(&file.ast.items)) {
        return (Cow::Borrowed(sources), Templates::new());
    }
    let names = names_of(sources, &nothing);
    let templates = templates(&names);
    if templates.is_empty() {
        return (Cow::Borrowed(sources), templates);
    }
    let mut writer = Writer {
        names: &names,
        templates: &templates,
        made: BTreeMap::new(),
        open: vec![],
    };
    let mut own = sources.clone();
    for (number, file) in own.files.iter_mut().enumerate() {
        for item in &mut file.ast.items {
            let name = signature(item).map(|(name, _)| name.text.clone());
            if !name.is_some_and(|name| templates.contains_key(&(number as u32, name))) {
                writer.item(FileId(number as u32), item);
            }
        }
    }
    while let Some(copy) = writer.open.pop() {
        let file = copy.of.0 as usize;
        let item = (sources.files[file].ast.items.iter())
            .find(|item| signature(item).is_some_and(|(name, _)| name.text == copy.of.1));
        if let Some(mut item) = item.cloned() {
            copy.write(&templates, &mut item);
            writer.item(FileId(copy.of.0), &mut item);
            own.files[file].ast.items.push(item);
        }
    }
    drop(names);
    (Cow::Owned(own), templates)
}

/// The name of a function or module, and the formals of which some may stand for functions.
fn signature(item: &Item) -> Option<(&Name, &[Formal])> {
    match &item.kind {
        ItemKind::Function(function) => Some((&function.name, &function.formals)),
        ItemKind::Module(module) => Some((&module.name, &module.options)),
        _ => None,
    }
}

fn signature_mut(item: &mut Item) -> Option<(&mut Name, &mut Vec<Formal>)> {
    match &mut item.kind {
        ItemKind::Function(function) => Some((&mut function.name, &mut function.formals)),
        ItemKind::Module(module) => Some((&mut module.name, &mut module.options)),
        _ => None,
    }
}

/// Returns whether a formal may stand for a function: it has neither sizes nor a type, and no function of the language has its name.
fn may_be_function(formal: &Formal) -> bool {
    let free = builtins::find(&formal.name.text).is_none();
    formal_shape(formal).is_none() && formal.ty.is_none() && free
}

/// Returns whether there is a function or module with a formal that may stand for a function.
fn takes_more(items: &[Item]) -> bool {
    let formals = items.iter().filter_map(signature).flat_map(|(_, f)| f);
    formals.into_iter().any(may_be_function)
}

/// A function or module by its file and name.
type Id = (u32, String);

/// A formal that is passed on: to what, as which argument.
struct Passed {
    callee: String,
    /// The number of the argument, and its name, if it is written.
    at: usize,
    name: Option<String>,
    value: String,
}

/// The functions that take functions: those that call a formal, and those that pass one on to such a function.
fn templates(names: &Names<'_>) -> Templates {
    let mut templates = Templates::new();
    let mut passes: Vec<(Id, Vec<String>, Vec<Passed>)> = vec![];
    for (number, file) in names.sources.files.iter().enumerate() {
        for item in &file.ast.items {
            let Some((name, formals)) = signature(item) else {
                continue;
            };
            if !formals.iter().any(may_be_function) {
                continue;
            }
            let id = (number as u32, name.text.clone());
            let candidate = |formal: &Formal| match may_be_function(formal) {
                true => formal.name.text.clone(),
                false => String::new(),
            };
            let candidates: Vec<String> = formals.iter().map(candidate).collect();
            let (mut called, mut passed) = (BTreeSet::new(), vec![]);
            let mut own = item.clone();
            sites(std::slice::from_mut(&mut own), &mut |site| match site {
                Site::Call(call) => {
                    if let ExprKind::Call { callee, arguments } = &*call.kind
                        && let ExprKind::Name(callee) = &*callee.kind
                    {
                        called.insert(callee.clone());
                        passed.extend(passed_on(callee, arguments));
                    }
                }
                Site::Instance(module, arguments) => {
                    passed.extend(passed_on(&module.text, arguments));
                }
                Site::Name(_) => {}
            });
            let functions: BTreeSet<usize> = (0..candidates.len())
                .filter(|at| called.contains(&candidates[*at]))
                .collect();
            if !functions.is_empty() {
                templates.insert(id.clone(), functions);
            }
            passes.push((id, candidates, passed));
        }
    }
    loop {
        let before: usize = templates.values().map(BTreeSet::len).sum();
        for (id, candidates, passed) in &passes {
            for passed in passed {
                let at = candidates.iter().position(|name| *name == passed.value);
                if let Some(at) = at
                    && is_function_of(names, &templates, FileId(id.0), passed)
                {
                    templates.entry(id.clone()).or_default().insert(at);
                }
            }
        }
        if templates.values().map(BTreeSet::len).sum::<usize>() == before {
            return templates;
        }
    }
}

/// The arguments that are names.
fn passed_on(callee: &str, arguments: &[Argument]) -> Vec<Passed> {
    let arguments = arguments.iter().enumerate();
    let named = arguments.filter_map(|(at, argument)| match &*unbracket(&argument.value).kind {
        ExprKind::Name(value) => Some(Passed {
            callee: callee.to_owned(),
            at,
            name: argument.name.as_ref().map(|name| name.text.clone()),
            value: value.clone(),
        }),
        _ => None,
    });
    named.collect()
}

/// Returns whether what is passed on stands for a function where it goes.
fn is_function_of(names: &Names<'_>, templates: &Templates, file: FileId, passed: &Passed) -> bool {
    let Some((id, formals)) = template(names, templates, file, &passed.callee) else {
        return false;
    };
    let at = match &passed.name {
        Some(name) => formals.iter().position(|f| f.name.text == *name),
        None => Some(passed.at),
    };
    at.is_some_and(|at| templates[&id].contains(&at))
}

/// The function or module of functions that a path in a file names, and its formals.
fn template<'a>(
    names: &Names<'a>,
    templates: &Templates,
    file: FileId,
    path: &str,
) -> Option<(Id, &'a [Formal])> {
    let Found::Entity(id) = names.find(file, path) else {
        return None;
    };
    let entity = names.entity(id);
    let formals: &'a [Formal] = match entity.kind {
        EntityKind::Function(function) => &function.formals,
        EntityKind::Module(module) => &module.options,
        _ => return None,
    };
    let id = (entity.file.0, entity.name.text.clone());
    templates.contains_key(&id).then_some((id, formals))
}

/// A copy that is to be written.
struct Copy {
    of: Id,
    name: String,
    /// The function that stands for each formal that is one.
    passed: Vec<String>,
}

impl Copy {
    /// Turns the function of functions into the copy.
    fn write(&self, templates: &Templates, item: &mut Item) {
        let functions = &templates[&self.of];
        let mut formals = BTreeMap::new();
        if let Some((name, own)) = signature_mut(item) {
            name.text.clone_from(&self.name);
            let mut at = 0;
            own.retain(|formal| {
                at += 1;
                let is_function = functions.contains(&(at - 1));
                if is_function {
                    let passed = self.passed[formals.len()].clone();
                    formals.insert(formal.name.text.clone(), passed);
                }
                !is_function
            });
        }
        sites(std::slice::from_mut(item), &mut |site| {
            if let Site::Name(name) = site
                && let Some(passed) = formals.get(name)
            {
                name.clone_from(passed);
            }
        });
    }
}

/// Puts copies in place of functions of functions.
struct Writer<'n, 'a> {
    names: &'n Names<'a>,
    templates: &'n Templates,
    /// The names of copies, by function and what is passed.
    made: BTreeMap<(Id, Vec<String>), String>,
    open: Vec<Copy>,
}

impl Writer<'_, '_> {
    /// Rewrites the calls in an item.
    fn item(&mut self, file: FileId, item: &mut Item) {
        let formals = |formals: &[Formal]| {
            let names = formals.iter().map(|formal| formal.name.text.clone());
            names.collect::<Vec<String>>()
        };
        let locals = match &item.kind {
            ItemKind::Function(function) => formals(&function.formals),
            ItemKind::Module(module) => {
                [formals(&module.options), formals(&module.formals)].concat()
            }
            _ => vec![],
        };
        sites(std::slice::from_mut(item), &mut |site| match site {
            Site::Call(call) => {
                if let ExprKind::Call { callee, arguments } = &mut *call.kind
                    && let ExprKind::Name(path) = &mut *callee.kind
                    && let Some(copy) = self.copy(file, &locals, path, arguments)
                {
                    *path = copy;
                }
            }
            Site::Instance(module, arguments) => {
                if let Some(copy) = self.copy(file, &locals, &module.text, arguments) {
                    module.text = copy;
                }
            }
            Site::Name(_) => {}
        });
    }

    /// The name of the copy that a call means, without its functions as arguments; `None`: not a call of a function of functions, or
    /// not a right one, which the checker reports.
    fn copy(
        &mut self,
        file: FileId,
        locals: &[String],
        path: &str,
        arguments: &mut Vec<Argument>,
    ) -> Option<String> {
        let (of, formals) = template(self.names, self.templates, file, path)?;
        let (mut passed, mut spelled, mut taken) = (vec![], vec![], BTreeSet::new());
        for at in &self.templates[&of] {
            let formal = formals.get(*at)?;
            let named = |a: &Argument| a.name.as_ref().is_some_and(|n| n.text == formal.name.text);
            let place = arguments.iter().position(named);
            let place = place.or_else(|| {
                Some(*at).filter(|at| arguments.get(*at).is_some_and(|a| a.name.is_none()))
            });
            let (value, file, locals) = match place {
                Some(place) => (&arguments[place].value, file, locals),
                None => (formal.default.as_ref()?, FileId(of.0), &[][..]),
            };
            taken.extend(place);
            let ExprKind::Name(name) = &*unbracket(value).kind else {
                return None;
            };
            passed.push(self.function(file, locals, name)?);
            spelled.push(self.names.text(unbracket(value).span).to_owned());
        }
        let name = self.name_of(&of, passed, &spelled);
        let mut at = 0;
        arguments.retain(|_| {
            at += 1;
            !taken.contains(&(at - 1))
        });
        Some(anywhere(&name, FileId(of.0)))
    }

    /// A function's or instance's name that means the same in every file; `None` if the name is none of a function.
    fn function(&self, file: FileId, locals: &[String], name: &str) -> Option<String> {
        if somewhere(name).is_some() {
            return Some(name.to_owned());
        }
        if locals.iter().any(|local| local == name) {
            return None;
        }
        match self.names.find(file, name) {
            Found::Entity(id) => {
                let entity = self.names.entity(id);
                let known = (entity.file.0, entity.name.text.clone());
                let callable = match entity.kind {
                    EntityKind::Function(_) => !self.templates.contains_key(&known),
                    EntityKind::Instance(declared) => declared.shape.is_none(),
                    _ => false,
                };
                callable.then(|| anywhere(&known.1, entity.file))
            }
            Found::Nothing => match builtins::find(name)? {
                Builtin::Source | Builtin::Size | Builtin::Gradient => None,
                _ => Some(name.to_owned()),
            },
            Found::Member(_) | Found::Poison => None,
        }
    }

    /// The name of a copy, which is to be written if it is new.
    fn name_of(&mut self, of: &Id, passed: Vec<String>, spelled: &[String]) -> String {
        let key = (of.clone(), passed);
        if let Some(name) = self.made.get(&key) {
            return name.clone();
        }
        let mut name = format!("{}({})", of.1, spelled.join(", "));
        // Two files may mean different functions by one name.
        while self
            .made
            .iter()
            .any(|((other, _), n)| other.0 == of.0 && *n == name)
        {
            name.push('\'');
        }
        self.open.push(Copy {
            of: of.clone(),
            name: name.clone(),
            passed: key.1.clone(),
        });
        self.made.insert(key, name.clone());
        name
    }
}
