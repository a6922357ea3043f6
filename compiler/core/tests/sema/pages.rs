//! The pages of the codes: their wrong programs have the error that they are about, the others have none.

use crate::Case;
use einc_diag::registry;

#[test]
fn pages_are_true() {
    let mut failures = String::new();
    for (code, page) in registry::PAGES {
        if !("E0200"..="E0699").contains(code) || ["E0590", "E0591", "E0592"].contains(code) {
            continue;
        }
        for (kind, text) in programs(page) {
            let case = Case::new(text);
            let found: Vec<&str> = case.check().diagnostics.iter().map(|d| d.code).collect();
            let right = match kind {
                "wrong" => {
                    case.parsed.is_empty()
                        && found.contains(code)
                        && found.iter().all(|f| f == code)
                }
                _ => case.parsed.is_empty() && found.is_empty(),
            };
            if !right {
                failures += &format!("{code} ({kind}): {found:?} {:?}\n{text}\n", case.parsed);
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

/// The blocks of a page that are programs.
fn programs(page: &str) -> Vec<(&str, &str)> {
    let mut rest = page;
    let mut programs = vec![];
    while let Some(at) = rest.find("```ein") {
        let body = &rest[at + "```ein".len()..];
        let Some((head, body)) = body.split_once('\n') else {
            break;
        };
        let Some(end) = body.find("```") else {
            break;
        };
        programs.push((
            match head {
                ",wrong" | ",warned" => "wrong",
                _ => "right",
            },
            &body[..end],
        ));
        rest = &body[end + 3..];
    }
    programs
}
