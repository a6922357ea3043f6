//! The language reference is true: its marked programs check, and so do those of the pages of the codes.

use einc_tests::{einc, root};

fn blocks<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let fence = format!("\n```{mark}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

#[test]
fn programs_of_the_reference_check() {
    let text = std::fs::read_to_string(root().join("compiler/LANGUAGE.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let programs = blocks(&text, "ein");
    assert!(programs.len() >= 2);
    for (number, program) in programs.iter().enumerate() {
        let file = folder.path().join(format!("block{number}.ein"));
        std::fs::write(&file, program).unwrap();
        einc(&["check", file.to_str().unwrap()]).success();
    }
}

#[test]
fn programs_on_the_pages_of_codes_do_what_the_pages_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for page in std::fs::read_dir(root().join("compiler/diag/codes")).unwrap() {
        let page = page.unwrap().path();
        let code = page.file_stem().unwrap().to_str().unwrap().to_string();
        // Pages whose programs need files beside them, or data that is wrong, are not for `check`.
        if !(code.starts_with("E02")
            || code.starts_with("E03")
            || code.starts_with("E04")
            || code.starts_with("E06"))
        {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for (mark, right) in [("ein", true), ("ein,wrong", false)] {
            for (number, program) in blocks(&text, mark).iter().enumerate() {
                let file = folder.path().join(format!("{code}_{number}_{right}.ein"));
                std::fs::write(&file, program).unwrap();
                let finished = einc(&["check", file.to_str().unwrap()]);
                if right {
                    finished.success();
                } else {
                    finished.fails_with(1).says(&[&code]);
                }
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "only {seen} programs on the pages");
}
