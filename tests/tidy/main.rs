//! The house rules, as tests: what `compiler/STYLE.md` and `compiler/ARCHITECTURE.md` ask of every file.
#![allow(clippy::unwrap_used)]

mod structure;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The top of the repository.
fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap().to_path_buf()
}

/// Every file git would know, by ending, relative to the root.
fn files(ending: &str) -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_string();
            if path.is_dir() {
                if name != "target" && name != ".git" && name != "shared" {
                    walk(&path, found);
                }
            } else {
                found.push(path);
            }
        }
    }
    let mut found = vec![];
    walk(&root(), &mut found);
    let mut found: Vec<_> = found
        .into_iter()
        .filter(|p| p.to_str().unwrap().ends_with(ending))
        .map(|p| p.strip_prefix(root()).unwrap().to_path_buf())
        .collect();
    found.sort();
    assert!(!found.is_empty(), "no {ending} found");
    found
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

#[track_caller]
fn none(offences: Vec<String>, rule: &str) {
    assert!(offences.is_empty(), "{rule}:\n{}", offences.join("\n"));
}

fn is_test(path: &Path) -> bool {
    path.iter()
        .any(|part| ["tests", "benches", "examples", "fuzz"].contains(&part.to_str().unwrap()))
}

#[test]
fn every_module_opens_with_its_contract() {
    let offences = files(".rs")
        .into_iter()
        .filter(|path| !text(path).starts_with("//!"))
        .map(|path| path.display().to_string());
    none(offences.collect(), "a module opens with //!");
}

#[test]
fn modules_are_short_enough_to_read() {
    let offences = files(".rs")
        .into_iter()
        .filter(|p| !is_test(p))
        .filter_map(|path| {
            let lines = text(&path).lines().count();
            (lines > 500).then(|| format!("{}: {lines} lines", path.display()))
        });
    none(offences.collect(), "a module has at most 500 lines");
}

#[test]
fn unsafe_stays_where_it_is_allowed_and_says_why() {
    let allowed = [
        "runtime/kernels/",
        "runtime/comm/",
        "compiler/einc/src/allocator.rs",
    ];
    let mut offences = vec![];
    for path in files(".rs") {
        let name = path.display().to_string();
        let text = text(&path);
        let lines: Vec<_> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().unwrap();
            if !code
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|word| word == "unsafe")
                || name.starts_with("tests/tidy")
            {
                continue;
            }
            if !allowed.iter().any(|place| name.starts_with(place)) {
                offences.push(format!("{name}:{}: unsafe has no place here", number + 1));
            } else if code.contains("unsafe {") || code.contains("unsafe impl") {
                let before = &lines[number.saturating_sub(8)..number];
                if !before.iter().chain([line]).any(|l| l.contains("SAFETY:")) {
                    offences.push(format!("{name}:{}: no SAFETY: line", number + 1));
                }
            }
        }
    }
    none(offences, "unsafe");
}

/// The crates that a selection of packages is built of, each with its features.
fn crates_and_features(selection: &[&str]) -> BTreeSet<String> {
    let output = std::process::Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none"])
        .args(["--format", "{p} [{f}]", "--no-dedupe"])
        .args(selection)
        .current_dir(root())
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree: {error}");
    let tree = String::from_utf8(output.stdout).unwrap();
    tree.lines().map(str::to_string).collect()
}

#[test]
fn einc_alone_and_the_tests_are_built_of_the_same_crates() {
    let tests = crates_and_features(&["--workspace", "--exclude", "ein-mpi"]);
    let without_tests = ["--edges", "normal,build"];
    for selection in [
        &["-p", "einc"][..],
        &["--workspace", "--exclude", "ein-mpi"],
    ] {
        let built = crates_and_features(&[&without_tests[..], selection].concat());
        assert!(built.len() > 100, "{built:?}");
        none(
            built.difference(&tests).cloned().collect(),
            "the tests build these crates again with other features: name those in compiler/einc/Cargo.toml",
        );
    }
}

#[test]
fn dependencies_point_downwards() {
    let mut offences = vec![];
    for path in files("Cargo.toml") {
        let name = path.display().to_string();
        let manifest = text(&path);
        let uses = |what: &str| {
            manifest
                .lines()
                .any(|line| line.starts_with(what) && !line.trim_start().starts_with('#'))
        };
        if name.starts_with("runtime/") && uses("einc-") {
            offences.push(format!("{name}: the run time depends on the compiler"));
        }
        for outside in [
            "ein-comm",
            "ein-matrix",
            "ein-kernels",
            "ein-device",
            "ein-data",
            "ein-exec",
            "ein-array",
        ] {
            if name == "compiler/core/Cargo.toml"
                && manifest
                    .split("[dev-dependencies]")
                    .next()
                    .unwrap()
                    .contains(outside)
            {
                offences.push(format!("{name}: the core sees {outside}"));
            }
        }
        // Tests of other crates may draw the random kernels that those of `ein-kernels` draw.
        let own = manifest.split("[dev-dependencies]").next().unwrap();
        let in_cpu = name == "runtime/device/cpu/Cargo.toml";
        if name.starts_with("runtime/") && own.contains("\nein-kernels.") && !in_cpu {
            offences.push(format!("{name}: only the processor's device names kernels"));
        }
        if name == "runtime/exec/Cargo.toml" && own.contains("ein-device-cpu") {
            offences.push(format!("{name}: what walks plans knows one device"));
        }
        if uses("mpi.") && name != "runtime/comm/mpi/Cargo.toml" {
            offences.push(format!("{name}: only comm names MPI"));
        }
        // `tests/units` builds the kernels too, with what they depend on.
        let kernels = ["runtime/kernels/Cargo.toml", "tests/units/Cargo.toml"];
        if uses("gemm.") && !kernels.contains(&name.as_str()) {
            offences.push(format!("{name}: only kernels names a BLAS"));
        }
        if uses("faer.") && name != "runtime/matrix/Cargo.toml" {
            offences.push(format!("{name}: only matrix names a solver"));
        }
    }
    none(offences, "the architecture's invariants");
}

/// A crate with unit tests is built with them by its own manifest or by `tests/units`, others by neither.
#[test]
fn unit_tests_are_built_once() {
    let units = text(Path::new("tests/units/Cargo.toml"));
    let (mut offences, mut depended) = (vec![], String::new());
    for manifest in files("Cargo.toml") {
        let source = manifest.with_file_name("src");
        let library = source.join("lib.rs");
        if !root().join(&library).is_file() {
            continue;
        }
        let elsewhere = units.contains(&format!("path = \"../../{}\"", library.display()));
        let own = text(&manifest);
        if elsewhere {
            depended += &own;
        }
        let builds = !own.contains("\ntest = false");
        let has_tests = files(".rs")
            .iter()
            .any(|path| path.starts_with(&source) && text(path).contains("#[test]"));
        if usize::from(builds) + usize::from(elsewhere) != usize::from(has_tests) {
            let found = format!("tests: {has_tests}, built here: {builds}, elsewhere: {elsewhere}");
            offences.push(format!("{}: {found}", manifest.display()));
        }
    }
    let dependencies = units
        .lines()
        .filter(|line| line.ends_with(".workspace = true"));
    let inherited = |line: &str| text(Path::new("tests/tidy/Cargo.toml")).contains(line);
    let stale = dependencies.filter(|line| !inherited(line) && !depended.contains(line));
    offences.extend(stale.map(|line| format!("tests/units/Cargo.toml: no crate has {line}")));
    none(offences, "unit tests that stand in sources are built once");
}

/// The table of layers in `compiler/ARCHITECTURE.md`: a folder of the core imports what its row says, and all of that.
#[test]
fn folders_of_the_core_import_what_the_map_says() {
    let map = text(Path::new("compiler/ARCHITECTURE.md"));
    let table = map.split("\n## Layers").nth(1).unwrap();
    let table = table.split("\n## ").next().unwrap();
    let names = |cell: &str| -> BTreeSet<String> {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(str::to_string)
            .collect()
    };
    let mut said = BTreeMap::new();
    for row in table.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').collect();
        let folder = names(cells[1]).into_iter().next().unwrap();
        said.insert(folder, (cells[3].trim() == "all", names(cells[3])));
    }
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut offences = vec![];
    for path in files(".rs") {
        let Ok(inner) = path.strip_prefix("compiler/core/src") else {
            continue;
        };
        let folder = inner.iter().next().unwrap().to_str().unwrap();
        let folder = folder.trim_end_matches(".rs").to_string();
        if folder == "lib" {
            continue;
        }
        let source = text(&path);
        let code = source.split("#[cfg(test)]").next().unwrap();
        let imported = found.entry(folder.clone()).or_default();
        let word = |text: &str| -> String {
            let letters = text.trim_start().chars();
            letters
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect()
        };
        let names = code.split("crate::").skip(1).flat_map(|part| {
            match part
                .strip_prefix('{')
                .and_then(|list| list.split('}').next())
            {
                Some(list) => list.split(',').map(word).collect(),
                None => vec![word(part)],
            }
        });
        for name in names.filter(|name| !name.is_empty()) {
            let name = name.as_str();
            if name != folder {
                imported.insert(name.to_string());
                let (all, allowed) = said.get(&folder).unwrap();
                if !all && !allowed.contains(name) {
                    offences.push(format!("{}: `{folder}` imports `{name}`", path.display()));
                }
            }
        }
    }
    for (folder, (all, allowed)) in &said {
        let imported = found.get(folder).cloned().unwrap_or_default();
        for name in allowed
            .iter()
            .filter(|name| !all && !imported.contains(*name))
        {
            offences.push(format!("the map says that `{folder}` imports `{name}`"));
        }
    }
    none(offences, "the layers of the core");
}

#[test]
fn the_core_is_pure() {
    let mut offences = vec![];
    for path in files(".rs") {
        let name = path.display().to_string();
        if !name.starts_with("compiler/core/src") {
            continue;
        }
        let text = text(&path);
        let code = text.split("#[cfg(test)]").next().unwrap();
        for word in [
            "std::fs",
            "std::env::",
            "std::process",
            "std::time",
            "std::net",
            "println!",
            "eprintln!",
        ] {
            if code.contains(word) {
                offences.push(format!("{name}: {word}"));
            }
        }
    }
    none(
        offences,
        "the core touches no files, environment, clock or processes",
    );
}

#[test]
fn nothing_is_left_unfinished_or_bound_to_a_machine() {
    let marks = [
        "todo!",
        "unimplemented!",
        "FIXME",
        "XXX",
        "HACK",
        "#[ignore",
    ];
    let places = ["/work/", "/root/", "/farm/", "/tmp/target"];
    let mut offences = vec![];
    for ending in [".rs", ".md", ".toml", ".ein", ".sh", ".lalrpop"] {
        for path in files(ending) {
            if path.starts_with("tests/tidy") {
                continue;
            }
            for (number, line) in text(&path).lines().enumerate() {
                if marks.iter().chain(&places).any(|mark| line.contains(mark)) {
                    offences.push(format!("{}:{}: {line}", path.display(), number + 1));
                }
            }
        }
    }
    none(offences, "unfinished marks and machine paths");
}

#[test]
fn no_unwrap_outside_tests() {
    let mut offences = vec![];
    for path in files(".rs").into_iter().filter(|p| !is_test(p)) {
        let text = text(&path);
        let code = text.split("#[cfg(test)]").next().unwrap();
        for (number, line) in code.lines().enumerate() {
            if line.split("//").next().unwrap().contains(".unwrap()") {
                offences.push(format!("{}:{}", path.display(), number + 1));
            }
        }
    }
    none(offences, "unwrap outside tests");
}

#[test]
fn every_dependency_says_why_it_is_here() {
    let manifest = text(Path::new("Cargo.toml"));
    let list = manifest.split("# Every outside crate").nth(1).unwrap();
    let list = list.split("\n[").next().unwrap();
    let offences = list
        .lines()
        .skip(1)
        .filter(|line| {
            !line.trim().is_empty()
                && !line.contains('#')
                && !line.starts_with("cranelift")
                && !line.starts_with("lalrpop")
        })
        .map(str::to_string);
    none(offences.collect(), "a dependency without a reason");
}

#[test]
fn every_example_is_listed_and_tested() {
    let list = text(Path::new("examples/README.md"));
    let tests: String = files(".rs")
        .into_iter()
        .filter(|path| path.parent() == Some(Path::new("tests/e2e")) && !path.ends_with("plans.rs"))
        .map(|path| text(&path))
        .collect();
    let offences = files(".ein")
        .into_iter()
        .filter(|path| path.parent() == Some(Path::new("examples")))
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_string())
        .filter(|name| !list.contains(name.as_str()) || !tests.contains(name.as_str()));
    none(
        offences.collect(),
        "an example that examples/README.md or the tests do not know",
    );
}

#[test]
fn every_code_has_a_page_with_a_title() {
    for path in files(".md")
        .into_iter()
        .filter(|p| p.starts_with("compiler/diag/codes"))
    {
        let code = path.file_stem().unwrap().to_str().unwrap().to_string();
        assert!(
            text(&path).starts_with(&format!("# {code}: ")),
            "{}",
            path.display()
        );
    }
}
