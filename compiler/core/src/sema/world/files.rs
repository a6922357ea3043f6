//! A program with all texts that it imports, each read once and parsed.
//!
//! Must not know what names mean.
//!
//! ```text
//! model.ein: use "layers.ein", use std.nn   ->   files [model.ein, layers.ein, std/nn.ein]
//! ```

use super::{Place, World};
use crate::sema::{SourceFile, Sources};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{self, Item, ItemKind};
use std::{
    collections::{BTreeMap, HashMap},
    path::PathBuf,
};

/// A program's texts and trees.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// File 0 is the program.
    pub sources: Sources,
    /// The errors of reading and parsing.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a program, and reads and parses everything that it imports.
pub fn load(world: &dyn World, place: Place, text: String) -> Loaded {
    let mut loader = Loader {
        world,
        files: vec![],
        places: vec![],
        known: HashMap::new(),
        imports: BTreeMap::new(),
        libraries: BTreeMap::new(),
        edges: vec![],
        diagnostics: vec![],
    };
    let name = place.name.clone();
    loader.add(name, text, Some(place));
    let mut at = 0;
    while at < loader.files.len() {
        loader.imports_of(FileId(at as u32));
        at += 1;
    }
    if trains(&loader.files[0].ast) {
        loader.rules();
    }
    loader.cycles();
    Loaded {
        sources: Sources {
            files: loader.files,
            imports: loader.imports,
            libraries: loader.libraries,
            incomplete: loader.diagnostics.iter().any(Diagnostic::is_error),
        },
        diagnostics: loader.diagnostics,
    }
}

fn trains(file: &ast::File) -> bool {
    file.items
        .iter()
        .any(|item| matches!(item.kind, ItemKind::Train(_)))
}

struct Loader<'w> {
    world: &'w dyn World,
    files: Vec<SourceFile>,
    /// Where the files are; libraries are nowhere.
    places: Vec<Option<Place>>,
    /// By the identities of the places.
    known: HashMap<PathBuf, FileId>,
    imports: BTreeMap<(FileId, String), FileId>,
    libraries: BTreeMap<String, FileId>,
    /// Who imports whom, and where it says so.
    edges: Vec<Vec<(FileId, Span)>>,
    diagnostics: Vec<Diagnostic>,
}

impl Loader<'_> {
    fn add(&mut self, name: String, text: String, place: Option<Place>) -> FileId {
        let id = FileId(self.files.len() as u32);
        let parsed = einc_syntax::parse(id, &text);
        self.diagnostics.extend(parsed.diagnostics);
        self.files.push(SourceFile {
            name,
            text,
            ast: parsed.ast,
        });
        self.edges.push(vec![]);
        if let Some(place) = &place {
            self.known.insert(place.identity.clone(), id);
        }
        self.places.push(place);
        id
    }

    fn imports_of(&mut self, file: FileId) {
        let items = &self.files[file.0 as usize].ast.items;
        let uses: Vec<_> = items.iter().filter_map(import).collect();
        for (what, span) in uses {
            let found = match &what {
                Import::Library(path) => self.library(path, span),
                Import::File(path) => self.file(file, path, span),
            };
            if let Some(found) = found {
                self.edges[file.0 as usize].push((found, span));
                if let Import::File(path) = what {
                    self.imports.insert((file, path), found);
                }
            }
        }
    }

    /// The libraries whose names a `train` block knows without `use`.
    fn rules(&mut self) {
        for path in ["std.optim", "std.schedule"] {
            if !self.libraries.contains_key(path)
                && let Some((name, text)) = self.world.library(path)
            {
                let id = self.add(name, text, None);
                self.libraries.insert(path.into(), id);
                self.imports_of(id);
            }
        }
    }

    fn library(&mut self, path: &str, span: Span) -> Option<FileId> {
        if let Some(known) = self.libraries.get(path) {
            return Some(*known);
        }
        let Some((name, text)) = self.world.library(path) else {
            let mut diagnostic =
                Diagnostic::error("E0592", format!("there is no library `{path}`"))
                    .at(span, "not in the standard library");
            let names = self.world.libraries();
            if let Some(near) = did_you_mean(path, names.iter().map(String::as_str)) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            } else {
                diagnostic = diagnostic.help(format!("there is: {}", names.join(", ")));
            }
            self.diagnostics.push(diagnostic);
            return None;
        };
        let id = self.add(name, text, None);
        self.libraries.insert(path.into(), id);
        Some(id)
    }

    fn file(&mut self, from: FileId, path: &str, span: Span) -> Option<FileId> {
        let Some(importing) = &self.places[from.0 as usize] else {
            self.diagnostics
                .push(Diagnostic::error("E0590", "a library cannot import files").at(span, "here"));
            return None;
        };
        let place = self.world.place(importing, path);
        if let Some(known) = self.known.get(&place.identity) {
            return Some(*known);
        }
        match self.world.text(&place) {
            Ok(text) => Some(self.add(place.name.clone(), text, Some(place))),
            Err(mut diagnostic) => {
                if diagnostic.code == "E0190" {
                    diagnostic.code = "E0590";
                }
                self.diagnostics.push(diagnostic.at(span, "imported here"));
                None
            }
        }
    }

    /// Reports each import that closes a cycle.
    fn cycles(&mut self) {
        // 0: not seen, 1: on the path, 2: done.
        let mut state = vec![0u8; self.files.len()];
        for root in 0..self.files.len() {
            if state[root] != 0 {
                continue;
            }
            let mut path: Vec<(usize, usize)> = vec![(root, 0)];
            state[root] = 1;
            while let Some((file, next)) = path.last().copied() {
                let Some((to, span)) = self.edges[file].get(next).copied() else {
                    state[file] = 2;
                    path.pop();
                    continue;
                };
                if let Some(last) = path.last_mut() {
                    last.1 += 1;
                }
                let to = to.0 as usize;
                match state[to] {
                    0 => {
                        state[to] = 1;
                        path.push((to, 0));
                    }
                    1 => {
                        let begin = path.iter().position(|(f, _)| *f == to).unwrap_or(0);
                        let names: Vec<_> = path[begin..]
                            .iter()
                            .map(|(f, _)| *f)
                            .chain([to])
                            .map(|f| format!("`{}`", self.files[f].name))
                            .collect();
                        let mut diagnostic = Diagnostic::error(
                            "E0591",
                            format!("files import each other: {}", names.join(" → ")),
                        )
                        .at(span, "this import closes the circle");
                        for (f, next) in &path[begin..path.len() - 1] {
                            let (_, span) = self.edges[*f][next - 1];
                            diagnostic = diagnostic.at(span, "imported here");
                        }
                        self.diagnostics
                            .push(diagnostic.help("move what both need into a third file"));
                    }
                    _ => {}
                }
            }
        }
    }
}

enum Import {
    File(String),
    Library(String),
}

fn import(item: &Item) -> Option<(Import, Span)> {
    match &item.kind {
        ItemKind::UseLibrary { path } => Some((Import::Library(path.text.clone()), path.span)),
        ItemKind::UseFile { path } => Some((Import::File(path.text.clone()), path.span)),
        _ => None,
    }
}
