//! Every command of the README is run, and prints what the README says it prints.
//!
//! A block marked `console` holds lines `$ command` and what they print; a line `…` stands for any lines.
//! Blocks marked `ein` that are named in the line before (`` `name.ein` ``) are written to that file first.

use einc_tests::{Finished, einc_path, launchers, mpirun, root, run};
use std::path::Path;
use std::process::Command;

/// One command with the output that is printed under it.
struct Step {
    command: String,
    expected: Vec<String>,
}

fn blocks<'a>(text: &'a str, mark: &str) -> Vec<(&'a str, &'a str)> {
    let mut found = vec![];
    let mut rest = text;
    let fence = format!("\n```{mark}\n");
    while let Some(at) = rest.find(&fence) {
        let before = rest[..at]
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty())
            .unwrap_or("");
        let body = &rest[at + fence.len()..];
        let end = body.find("\n```").expect("a block is closed");
        found.push((before, &body[..end]));
        rest = &body[end..];
    }
    found
}

fn steps(block: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = vec![];
    for line in block.lines() {
        match line.strip_prefix("$ ") {
            Some(command) => steps.push(Step {
                command: command.to_string(),
                expected: vec![],
            }),
            None => steps
                .last_mut()
                .expect("a block begins with a command")
                .expected
                .push(line.to_string()),
        }
    }
    steps
}

fn matches(expected: &[String], actual: &[&str]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((line, rest)) if line.trim() == "…" => {
            (0..=actual.len()).any(|n| matches(rest, &actual[n..]))
        }
        Some((line, rest)) => {
            actual
                .first()
                .is_some_and(|a| a.trim_end() == line.trim_end())
                && matches(rest, &actual[1..])
        }
    }
}

/// Runs one command of the README in `folder`; `None` for those that a test cannot run within itself.
fn perform(command: &str, folder: &Path) -> Option<Finished> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let mut process = match words.as_slice() {
        ["sh", "tests/all.sh"] => {
            assert!(root().join("tests/all.sh").exists());
            return None;
        }
        ["cargo", "install", "--path", path, "--locked"] => {
            assert!(root().join(path).join("Cargo.toml").exists());
            return None;
        }
        ["cargo", "run", "--release", "-p", "einc", "--", rest @ ..] | ["einc", rest @ ..] => {
            let mut process = Command::new(einc_path());
            process.args(rest);
            process
        }
        ["mpirun", "-n", ranks, program, rest @ ..] => {
            let launcher = *launchers().first()?;
            let mut process = mpirun(launcher, ranks.parse().unwrap(), Path::new(program));
            process.args(rest);
            process
        }
        [program, rest @ ..] => {
            let mut process = Command::new(folder.join(program));
            process.args(rest);
            process
        }
        [] => panic!("an empty command"),
    };
    Some(run(process.current_dir(folder).env("NO_COLOR", "1")))
}

#[test]
fn the_readme_is_true() {
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).unwrap();
    for (before, program) in blocks(&text, "ein") {
        if let Some(name) = before.split('`').find(|word| word.ends_with(".ein")) {
            let example = root().join("examples").join(name);
            if example.exists() {
                assert_eq!(
                    std::fs::read_to_string(example).unwrap().trim_end(),
                    program.trim_end(),
                    "{name}"
                );
            }
            let written = folder.path().join(name);
            if !written.exists() {
                std::fs::write(written, program).unwrap();
            } else {
                assert_eq!(
                    std::fs::read_to_string(&written).unwrap().trim_end(),
                    program.trim_end(),
                    "{name}"
                );
            }
        }
    }
    let mut ran = 0;
    for (_, block) in blocks(&text, "console") {
        for step in steps(block) {
            let Some(finished) = perform(&step.command, folder.path()) else {
                continue;
            };
            let said = format!("{}{}", finished.stdout, finished.stderr);
            let actual: Vec<&str> = said.lines().collect();
            assert!(
                matches(&step.expected, &actual),
                "`{}` printed\n{said}\nand the README says\n{}",
                step.command,
                step.expected.join("\n")
            );
            ran += 1;
        }
    }
    assert!(ran >= 5, "the README shows only {ran} commands that run");
}

#[test]
fn continuous_integration_runs_the_second_command() {
    let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
    assert!(script.contains("sh tests/all.sh"));
}
