//! Right programs: the statements that they become.

use crate::{CUT, Case, files};

#[test]
fn programs_become_these_statements() {
    let update = std::env::var_os("EIN_UPDATE").is_some();
    let mut failures = String::new();
    for file in files("programs") {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut new = vec![];
        for block in text.split(CUT) {
            let (program, expected): (Vec<&str>, Vec<&str>) =
                block.lines().partition(|l| !l.starts_with("//>"));
            let case = Case::new(&program.join("\n"));
            let analysis = case.check();
            let mut found: Vec<String> = case
                .parsed
                .iter()
                .chain(&analysis.diagnostics)
                .map(|d| format!("//> {:?}", case.place(d)))
                .collect();
            if let Some(program) = &analysis.program {
                let mut program = program.clone();
                program.outputs.clear();
                let text = program.to_string();
                found.extend(text.lines().skip(1).map(|line| format!("//> {line}")));
            }
            if found != expected {
                failures += &format!("\n{}\n{}\n", block.trim_end(), found.join("\n"));
            }
            new.push(format!("{}\n{}\n", program.join("\n"), found.join("\n")));
        }
        if update {
            std::fs::write(&file, new.join(CUT)).unwrap();
        }
    }
    assert!(update || failures.is_empty(), "{failures}");
}
