//! Programs whose texts and data are in memory: what is read, and what is said where something is missing.

use ein_plan::DType;
use einc_core::sema::{
    self, Bindings,
    world::{self, Input, Loaded, Memory, Place, World},
};
use einc_diag::{Diagnostic, FileId};

fn memory(texts: &[(&str, &str)]) -> Memory {
    let mut memory = Memory::default();
    for (path, text) in texts {
        match path.strip_prefix("std/") {
            Some(name) => {
                let library = format!("std.{}", name.trim_end_matches(".ein"));
                let file = ((*path).to_owned(), (*text).to_owned());
                memory.libraries.insert(library, file);
            }
            None => drop(memory.texts.insert(path.into(), (*text).to_owned())),
        }
    }
    memory
}

/// `main.ein` with everything that it imports.
fn load(world: &Memory) -> Loaded {
    let place = world.place_of("main.ein");
    let text = world.text(&place).unwrap();
    world::load(world, place, text)
}

/// A world whose data cannot be read.
struct Unreadable;

impl World for Unreadable {
    fn library(&self, _: &str) -> Option<(String, String)> {
        None
    }

    fn libraries(&self) -> Vec<String> {
        vec![]
    }

    fn place(&self, from: &Place, _: &str) -> Place {
        from.clone()
    }

    fn text(&self, place: &Place) -> Result<String, Diagnostic> {
        Err(Diagnostic::error("E0190", place.name.clone()))
    }

    fn bound(&self) -> Vec<String> {
        vec![]
    }

    fn header(&self, input: &Input) -> Result<Option<world::Header>, Diagnostic> {
        match &input.file {
            Some(file) => Err(Diagnostic::error("E0701", format!("no {}", file.path))
                .at(input.span, "bound to it")),
            None => Ok(None),
        }
    }
}

fn messages(diagnostics: &[Diagnostic]) -> Vec<String> {
    let message = |d: &Diagnostic| format!("{} {}", d.code, d.message);
    diagnostics.iter().map(message).collect()
}

#[test]
fn a_program_is_checked_from_texts_and_headers_in_memory() {
    let mut world = memory(&[
        (
            "main.ein",
            "use \"layers/dense.ein\"\nuse std.nn\ndim N\ninput X: f32[N, 3]\ninput w: f32[3]\n\
             y[n] = nn.relu(dense.layer(X, w)[n])\noutput y\n",
        ),
        (
            "layers/dense.ein",
            "use \"scale.ein\"\nfn layer(x[n, d], w[d]) -> y[n] { y[n] = scale.twice(x[n,d] * w[d]) }\n",
        ),
        ("layers/scale.ein", "fn twice(v) = 2 * v\n"),
        ("std/nn.ein", "fn relu(v) = max(v, 0)\n"),
    ]);
    world
        .headers
        .insert("X".into(), world::Header::dense(DType::F32, vec![5, 3]));
    let loaded = load(&world);
    assert_eq!(messages(&loaded.diagnostics), Vec::<String>::new());
    let names: Vec<&str> = loaded
        .sources
        .files
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "main.ein",
            "layers/dense.ein",
            "std/nn.ein",
            "layers/scale.ein"
        ]
    );
    let bindings = Bindings {
        headers: world::headers(&world, &loaded.sources).unwrap(),
        ..Bindings::default()
    };
    let (analysis, hir) = sema::check_with_hir(&loaded.sources, &bindings);
    assert_eq!(messages(&analysis.diagnostics), Vec::<String>::new());
    let y = hir
        .definitions()
        .find(|(_, found)| found.name == "y" && found.span.file == FileId(0));
    assert_eq!(y.unwrap().1.types[0].to_string(), "f32[5]");
}

#[test]
fn a_file_is_read_once_and_a_circle_is_an_error() {
    let world = memory(&[
        ("main.ein", "use \"a.ein\"\nuse \"./b.ein\"\n"),
        ("a.ein", "use \"b.ein\"\n"),
        ("b.ein", "use \"./a.ein\"\n"),
    ]);
    let loaded = load(&world);
    let names: Vec<&str> = loaded
        .sources
        .files
        .iter()
        .map(|f| f.name.as_str())
        .collect();
    assert_eq!(names, ["main.ein", "a.ein", "./b.ein"]);
    assert_eq!(
        messages(&loaded.diagnostics),
        ["E0591 files import each other: `a.ein` → `./b.ein` → `a.ein`"]
    );
    assert!(loaded.sources.incomplete);
}

#[test]
fn missing_texts_and_data_are_errors_at_their_places() {
    let world = memory(&[
        (
            "main.ein",
            "use \"gone.ein\"\nuse std.optin\ninput X: f32[4] = load(\"x.npy\")\noutput X\n",
        ),
        ("std/optim.ein", ""),
    ]);
    let loaded = load(&world);
    assert_eq!(
        messages(&loaded.diagnostics),
        [
            "E0590 there is no file gone.ein",
            "E0592 there is no library `std.optin`",
        ]
    );
    let help: Vec<&String> = loaded.diagnostics[1].help.iter().collect();
    assert_eq!(help, ["did you mean `std.optim`?"]);
    let errors = world::headers(&Unreadable, &loaded.sources).unwrap_err();
    assert_eq!(messages(&errors), ["E0701 no x.npy"]);
    let place = errors[0].labels[0].span;
    let text = &loaded.sources.files[0].text;
    assert_eq!(&text[place.start as usize..place.end as usize], "X");
}

#[test]
fn data_are_bound_to_the_params_of_an_instance_by_their_paths() {
    let mut world = memory(&[(
        "main.ein",
        "module layer(D)(x[n, D]) -> y[n, D] { param w: f32[D] = ones; y[n, d] = x[n, d] * w[d] }\n\
         input x: f32[2, 3]\nparam head: layer(3)\ny = head(x)\noutput y\n",
    )]);
    world
        .headers
        .insert("head.w".into(), world::Header::dense(DType::F32, vec![3]));
    world
        .headers
        .insert("tail.w".into(), world::Header::dense(DType::F32, vec![3]));
    let loaded = load(&world);
    let headers = world::headers(&world, &loaded.sources).unwrap();
    let found: Vec<&String> = headers.keys().collect();
    assert_eq!(found, ["head.w"]);
}
