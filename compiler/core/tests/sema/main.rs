//! The checker on texts: what is wrong with them, and which programs they become.
//!
//! A file under `errors/` or `programs/` holds cases between lines `// ----`. In `errors/`, a line that has errors ends
//! with `//! E0301: a part of the message` for each, and no other errors may be reported. In `programs/`, the lines
//! `//> …` at the end of a case are its statements, printed; `EIN_UPDATE=1 cargo test` writes them anew. Lines
//! `// --dim N=4`, `// --set c=2`, `// --data X=f32[3, 4]` and `// --run` bind; `// file "x.ein"` begins an imported file.

#![allow(clippy::unwrap_used)]

mod build;
mod errors;
mod hir;
mod pages;
mod programs;
mod robust;
mod rounds;
mod values;
mod world;

use ein_plan::{DType, Scalar};
use einc_core::sema::{self, Analysis, Bindings, SourceFile, Sources};
use einc_diag::{Diagnostic, FileId};
use std::path::{Path, PathBuf};

/// A program with what is bound to it.
struct Case {
    sources: Sources,
    bindings: Bindings,
    parsed: Vec<Diagnostic>,
}

impl Case {
    fn new(text: &str) -> Case {
        let mut case = Case {
            sources: Sources::default(),
            bindings: Bindings::default(),
            parsed: vec![],
        };
        let (mut name, mut body) = ("main.ein".to_owned(), String::new());
        for line in text.lines() {
            if let Some(next) = line
                .strip_prefix("// file \"")
                .and_then(|l| l.strip_suffix('"'))
            {
                case.add(&name, &body);
                (name, body) = (next.to_owned(), String::new());
                continue;
            }
            body.push_str(line);
            body.push('\n');
            if let Some(option) = line.strip_prefix("// --") {
                case.bind(option.split("//!").next().unwrap().trim());
            }
        }
        case.add(&name, &body);
        case
    }

    fn add(&mut self, name: &str, text: &str) {
        let id = FileId(self.sources.files.len() as u32);
        let parsed = einc_syntax::parse(id, text);
        self.parsed.extend(parsed.diagnostics);
        self.sources.incomplete |= self.parsed.iter().any(Diagnostic::is_error);
        self.sources.files.push(SourceFile {
            name: name.into(),
            text: text.into(),
            ast: parsed.ast,
        });
        if id.0 > 0 {
            for from in 0..8 {
                self.sources.imports.insert((FileId(from), name.into()), id);
            }
            self.sources
                .libraries
                .insert(format!("std.{}", name.trim_end_matches(".ein")), id);
        }
    }

    fn bind(&mut self, option: &str) {
        let (kind, rest) = option.split_once(' ').unwrap_or((option, ""));
        let (name, value) = rest.split_once('=').unwrap_or((rest, ""));
        match kind {
            "dim" => drop(
                self.bindings
                    .dims
                    .insert(name.into(), value.parse().unwrap()),
            ),
            "set" => {
                let scalar = value
                    .parse()
                    .map(Scalar::Int)
                    .unwrap_or_else(|_| Scalar::Float(value.parse().unwrap()));
                self.bindings.constants.insert(name.into(), scalar);
            }
            "data" => {
                let (dtype, shape) = value.split_once('[').unwrap();
                let sizes = shape
                    .trim_end_matches(']')
                    .split(',')
                    .map(str::trim)
                    .filter(|s| !s.is_empty());
                let header = einc_core::sema::world::Header::dense(
                    DType::from_name(dtype).unwrap(),
                    sizes.map(|s| s.parse().unwrap()).collect(),
                );
                self.bindings.headers.insert(name.into(), header);
            }
            "run" => self.bindings.require_sizes = true,
            _ => panic!("no option {option}"),
        }
    }

    fn check(&self) -> Analysis {
        let analysis = sema::check(&self.sources, &self.bindings);
        if let Some(program) = &analysis.program {
            einc_core::einsum::verify::verify(program).unwrap();
        }
        analysis
    }

    /// File, line and "code: message" of a diagnostic.
    fn place(&self, diagnostic: &Diagnostic) -> (usize, usize, String) {
        let message = format!("{}: {}", diagnostic.code, diagnostic.message);
        let Some(label) = diagnostic.labels.first() else {
            return (0, 1, message);
        };
        let file = label.span.file.0 as usize;
        let line = self.sources.files[file].text[..label.span.start as usize]
            .matches('\n')
            .count()
            + 1;
        (file, line, message)
    }
}

/// The `.ein` files of a folder of this test.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/sema")
        .join(folder);
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.retain(|file| file.extension().is_some_and(|e| e == "ein"));
    files.sort();
    assert!(!files.is_empty());
    files
}

const CUT: &str = "// ----\n";
