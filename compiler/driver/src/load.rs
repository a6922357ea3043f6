//! Reads a program and everything that it imports, and parses it.
//!
//! Imports are relative to the file that has them; each file is read once. Must not know what names mean.
//!
//! ```text
//! model.ein: use "layers.ein", use std.nn   ->   files [model.ein, layers.ein, std/nn.ein]
//! ```

use crate::program::Program;
use einc_core::sema::{SourceFile, Sources};
use einc_diag::{Diagnostic, FileId, Span, did_you_mean};
use einc_syntax::ast::{Item, ItemKind};
use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
};

/// Reads a program from a file. What is wrong with it or its imports is among the program's diagnostics.
///
/// # Errors
/// E0190 and E0191 if the program's own file cannot be read or is not UTF-8.
pub fn load(path: &Path) -> Result<Program, Diagnostic> {
    let text = read(path)?;
    let absolute = std::path::absolute(path)
        .map_err(|error| Diagnostic::error("E0190", format!("no working directory: {error}")))?;
    let base = absolute.parent().unwrap_or(Path::new("/")).to_path_buf();
    let name = path
        .file_stem()
        .map_or("program".into(), |stem| stem.to_string_lossy().into_owned());
    let shown = path.display().to_string();
    Ok(load_text(&name, &shown, text, Some(path), base))
}

/// Makes a program of a text, with imports relative to `base`. `shown` is what messages call the text, `path` the
/// file it is from, if it is from one.
pub fn load_text(
    name: &str,
    shown: &str,
    text: String,
    path: Option<&Path>,
    base: PathBuf,
) -> Program {
    let mut loader = Loader::default();
    let folder = path.map_or(base.clone(), folder_of);
    let identity = path.and_then(|path| fs::canonicalize(path).ok());
    loader.add(shown.into(), text, identity, Some(folder));
    let mut at = 0;
    while at < loader.files.len() {
        loader.imports_of(FileId(at as u32));
        at += 1;
    }
    if trains(&loader.files[0].ast) {
        loader.rules();
    }
    loader.cycles();
    Program {
        name: name.into(),
        base,
        sources: Sources {
            files: loader.files,
            imports: loader.imports,
            libraries: loader.libraries,
            incomplete: loader.diagnostics.iter().any(Diagnostic::is_error),
        },
        diagnostics: loader.diagnostics,
    }
}

fn trains(file: &einc_syntax::ast::File) -> bool {
    file.items
        .iter()
        .any(|item| matches!(item.kind, ItemKind::Train(_)))
}

#[derive(Default)]
struct Loader {
    files: Vec<SourceFile>,
    /// The folder that a file's imports are relative to; library files have none.
    folders: Vec<Option<PathBuf>>,
    known: HashMap<PathBuf, FileId>,
    imports: BTreeMap<(FileId, String), FileId>,
    libraries: BTreeMap<String, FileId>,
    /// Who imports whom, and where it says so.
    edges: Vec<Vec<(FileId, Span)>>,
    diagnostics: Vec<Diagnostic>,
}

impl Loader {
    fn add(
        &mut self,
        name: String,
        text: String,
        identity: Option<PathBuf>,
        folder: Option<PathBuf>,
    ) -> FileId {
        let id = FileId(self.files.len() as u32);
        let parsed = einc_syntax::parse(id, &text);
        self.diagnostics.extend(parsed.diagnostics);
        self.files.push(SourceFile {
            name,
            text,
            ast: parsed.ast,
        });
        self.folders.push(folder);
        self.edges.push(vec![]);
        if let Some(identity) = identity {
            self.known.insert(identity, id);
        }
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
                && let Some((name, text)) = ein_stdlib::library(path)
            {
                let id = self.add(name.into(), text.into(), None, None);
                self.libraries.insert(path.into(), id);
                self.imports_of(id);
            }
        }
    }

    fn library(&mut self, path: &str, span: Span) -> Option<FileId> {
        if let Some(known) = self.libraries.get(path) {
            return Some(*known);
        }
        let Some((name, text)) = ein_stdlib::library(path) else {
            let mut diagnostic =
                Diagnostic::error("E0592", format!("there is no library `{path}`"))
                    .at(span, "not in the standard library");
            if let Some(near) = did_you_mean(path, ein_stdlib::names()) {
                diagnostic = diagnostic.help(format!("did you mean `{near}`?"));
            } else {
                let names: Vec<_> = ein_stdlib::names().collect();
                diagnostic = diagnostic.help(format!("there is: {}", names.join(", ")));
            }
            self.diagnostics.push(diagnostic);
            return None;
        };
        let id = self.add(name.into(), text.into(), None, None);
        self.libraries.insert(path.into(), id);
        Some(id)
    }

    fn file(&mut self, from: FileId, path: &str, span: Span) -> Option<FileId> {
        let Some(folder) = &self.folders[from.0 as usize] else {
            self.diagnostics
                .push(Diagnostic::error("E0590", "a library cannot import files").at(span, "here"));
            return None;
        };
        let joined = folder.join(path);
        let identity = fs::canonicalize(&joined).ok();
        if let Some(known) = identity.as_ref().and_then(|path| self.known.get(path)) {
            return Some(*known);
        }
        let text = match read(&joined) {
            Ok(text) => text,
            Err(mut diagnostic) => {
                if diagnostic.code == "E0190" {
                    diagnostic.code = "E0590";
                }
                self.diagnostics.push(diagnostic.at(span, "imported here"));
                return None;
            }
        };
        // Shown as the importing file is: relative to where the user stands.
        let shown = Path::new(&self.files[from.0 as usize].name)
            .parent()
            .unwrap_or(Path::new(""))
            .join(path);
        let inner = folder_of(&joined);
        Some(self.add(shown.display().to_string(), text, identity, Some(inner)))
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

fn folder_of(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

/// The text of a file.
///
/// # Errors
/// E0190 if it cannot be read, E0191 if it is not UTF-8.
pub fn read(path: &Path) -> Result<String, Diagnostic> {
    let bytes = fs::read(path).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good]
            .iter()
            .filter(|b| **b == b'\n')
            .count()
            + 1;
        Diagnostic::error(
            "E0191",
            format!(
                "{} is not UTF-8: line {line}, byte {good} of the file",
                path.display()
            ),
        )
        .help("save it as UTF-8; `iconv -f latin1 -t utf8` converts a file of an older editor")
    })
}

fn unreadable(path: &Path, error: &io::Error) -> Diagnostic {
    if error.kind() != io::ErrorKind::NotFound {
        let diagnostic =
            Diagnostic::error("E0190", format!("cannot read {}: {error}", path.display()));
        return match error.kind() {
            io::ErrorKind::IsADirectory => {
                diagnostic.help("name the `.ein` file inside the folder")
            }
            _ => diagnostic,
        };
    }
    let diagnostic = Diagnostic::error("E0190", format!("there is no file {}", path.display()));
    match near(path) {
        Some(near) => diagnostic.help(format!("did you mean {}?", near.display())),
        None => diagnostic,
    }
}

/// A file of the same folder whose name is nearly this one.
fn near(path: &Path) -> Option<PathBuf> {
    let folder = folder_of(path);
    let listed = if folder == Path::new("") {
        PathBuf::from(".")
    } else {
        folder.clone()
    };
    let names: Vec<String> = fs::read_dir(listed)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".ein"))
        .collect();
    let wanted = path.file_name()?.to_str()?;
    let with_ending = format!("{wanted}.ein");
    let exact = names.iter().find(|name| **name == with_ending);
    let name = match exact {
        Some(name) => name.as_str(),
        None => did_you_mean(wanted, names.iter().map(String::as_str))?,
    };
    Some(folder.join(name))
}
