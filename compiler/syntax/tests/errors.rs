//! Every file in `errors/` says beside each bad line what is reported there: `//~ CODE message: label`, or on the
//! next line `//~^`. Nothing else may be reported, and messages come in source order.

#![allow(clippy::unwrap_used)]

use einc_diag::FileId;
use std::{fmt::Write, fs, path::Path};

fn expected(text: &str) -> Vec<String> {
    let mut list = vec![];
    for (number, line) in text.lines().enumerate() {
        if let Some((_, wanted)) = line.split_once("//~^ ") {
            list.push((number, wanted.to_owned()));
        } else if let Some((_, wanted)) = line.split_once("//~ ") {
            list.push((number + 1, wanted.to_owned()));
        }
    }
    list.into_iter()
        .map(|(number, wanted)| format!("{number}: {}", wanted.trim_end()))
        .collect()
}

fn reported(text: &str) -> Vec<String> {
    einc_syntax::parse(FileId(0), text)
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let label = &diagnostic.labels[0];
            let line = text[..label.span.start as usize].matches('\n').count() + 1;
            let mut report = format!("{line}: {} {}", diagnostic.code, diagnostic.message);
            if !label.message.is_empty() {
                write!(report, ": {}", label.message).unwrap();
            }
            report
        })
        .collect()
}

#[test]
fn files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/errors");
    let mut seen = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let (mut wanted, mut found) = (expected(&text), reported(&text));
        assert!(
            found.is_sorted_by_key(|report| {
                report.split(':').next().unwrap().parse::<usize>().unwrap()
            }),
            "{}: not in source order",
            path.display()
        );
        wanted.sort();
        found.sort();
        assert_eq!(found.join("\n"), wanted.join("\n"), "{}", path.display());
        seen += 1;
    }
    assert!(seen >= 8);
}

#[test]
fn pages_have_what_they_say() {
    for (code, page) in einc_diag::registry::PAGES {
        if !code.starts_with("E011") && *code != "E0120" {
            continue;
        }
        let mut rest = *page;
        while let Some((_, after)) = rest.split_once("```ein") {
            let (block, after) = after.split_once("```").unwrap();
            let (kind, program) = block.split_once('\n').unwrap();
            let codes: Vec<_> = einc_syntax::parse(FileId(0), program)
                .diagnostics
                .iter()
                .map(|d| d.code)
                .collect();
            match kind {
                ",wrong" => assert!(codes.contains(code), "{code}: {codes:?}"),
                _ => assert!(codes.is_empty(), "{code}: {codes:?}"),
            }
            rest = after;
        }
    }
}

#[test]
fn help_says_what_to_write() {
    let help = |text: &str| {
        einc_syntax::parse(FileId(0), text).diagnostics[0]
            .help
            .join("; ")
    };
    assert_eq!(help("y[n] = 2 x[n]"), "write `2 * x` for the product");
    assert_eq!(help("z = sum x[n]"), "write `sum[i] …`");
    assert_eq!(help("input X: f23[N]"), "did you mean `f32`?");
    assert_eq!(help("train { data: X over N bye 3 }"), "did you mean `by`?");
    assert_eq!(help("y = x²"), "a power is written `x^2`");
    let library = "it is in a library: write `use std.stats`, then `stats.var(…)`";
    assert_eq!(help("v[p] = 2 * var[i, j] A[p,i,j]"), library);
    let whole = "a whole dimension has an index: `y[i,j] = A[i,j]`";
    assert_eq!(help("y[i] = A[i,:]"), whole);
    assert_eq!(help("y[i] = A[:,i]"), whole);
    assert_eq!(
        help("train { loss: l, steps: 3 }"),
        "what follows stands on a line of its own or behind `;`"
    );
    assert_eq!(help("assert a = b"), "a comparison is written `==`");
    assert_eq!(
        help("output y = 3"),
        "define it in a line of its own, `y = …`, then write `output y`"
    );
}

#[test]
fn what_a_broken_line_defines_is_kept() {
    use einc_syntax::ast::*;
    let parsed = einc_syntax::parse(FileId(0), "dim N = 3 +\ny[n] = 2 x[n]\noutput y");
    assert_eq!(parsed.diagnostics.len(), 2);
    let kinds: Vec<_> = parsed.ast.items.iter().map(|item| &item.kind).collect();
    assert!(matches!(kinds[0], ItemKind::Dim { value: Some(e), .. } if *e.kind == ExprKind::Error));
    assert!(matches!(
        kinds[1],
        ItemKind::Statement(Statement::Definition { value, .. }) if *value.kind == ExprKind::Error
    ));
    assert!(matches!(kinds[2], ItemKind::Output { .. }));
}
