//! The front end on any bytes: what the fuzzers call. Each function must come back, whatever it is given.
//!
//! Must not know how inputs are made.
//!
//! ```text
//! check(b"a = 1\noutput a\n")
//! ```

use einc_core::sema::{self, Bindings, SourceFile, Sources};
use einc_diag::{Diagnostic, FileId};
use einc_syntax::ast::ItemKind;

/// Lexes and parses.
pub fn parse(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        einc_syntax::parse(FileId(0), text);
    }
}

/// Formats; what was formatted once stays as it is.
pub fn format(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(once) = einc_syntax::format(text)
    {
        assert_eq!(einc_syntax::format(&once).as_ref(), Ok(&once));
    }
}

/// Parses and checks, without and with sizes for what is bound; a program that is found right is compiled for three sites.
pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let parsed = einc_syntax::parse(FileId(0), text);
    let (name, library) = ein_stdlib::library("std.nn").expect("the library is embedded");
    let nn = einc_syntax::parse(FileId(1), library);
    // Other imports than `std.nn` are not there, and who loads files says so.
    let missing = parsed.ast.items.iter().any(|item| match &item.kind {
        ItemKind::UseLibrary { path } => path.text != name,
        ItemKind::UseFile { .. } => true,
        _ => false,
    });
    let incomplete = missing || parsed.diagnostics.iter().any(Diagnostic::is_error);
    let sources = Sources {
        files: vec![
            SourceFile {
                name: "fuzz.ein".into(),
                text: text.into(),
                ast: parsed.ast,
            },
            SourceFile {
                name: name.into(),
                text: library.into(),
                ast: nn.ast,
            },
        ],
        imports: Default::default(),
        libraries: [("std.nn".to_string(), FileId(1))].into(),
        incomplete,
    };
    let analysis = sema::check(&sources, &Bindings::default());
    let internal = analysis.diagnostics.iter().find(|d| d.code == "E0999");
    assert_eq!(internal, None, "an internal error");
    if let Some(program) = analysis.program {
        let _ =
            einc_core::pipeline::compile(&program, &einc_core::pipeline::Options::new(3), &|| {
                false
            });
    }
}
