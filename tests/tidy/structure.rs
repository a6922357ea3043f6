//! The shape of the code: no function longer than a screen or two, no files that import each other in a circle.
//!
//! Must not know what the code does.
//!
//! ```text
//! sizes/prove.rs -> sizes/ranges.rs -> sizes/prove.rs: a circle
//! ```

use crate::{files, is_test, none, text};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The most lines that a function has.
const LONGEST: usize = 100;

/// Functions of a file with their lengths, as `cargo fmt` lays them out: the body ends at a brace below the first letter.
fn functions(text: &str) -> Vec<(String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = vec![];
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = line.len() - code.len();
        let Some((before, after)) = code.split_once("fn ") else {
            continue;
        };
        let words = ["pub", "const", "unsafe", "extern"];
        let is_word = |word: &str| words.iter().any(|known| word.starts_with(known));
        let quoted = |word: &str| word.starts_with('"');
        let within = |word: &str| ["super)", "in"].contains(&word);
        let all = |word: &str| is_word(word) || quoted(word) || within(word);
        if !before.split_whitespace().all(all) {
            continue;
        }
        let name: String = after
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        // A declaration in a trait ends with its parameters.
        let closes = |line: &&str| {
            let own = line.strip_prefix(&" ".repeat(indent)).unwrap_or("");
            own.starts_with('}') || (own.starts_with(')') && own.ends_with(';'))
        };
        let ends_at_once = |line: &str| line.ends_with(';') || line.ends_with('}');
        let length = match ends_at_once(line) {
            true => 1,
            false => lines[start + 1..]
                .iter()
                .position(closes)
                .map_or(1, |n| n + 2),
        };
        found.push((name, length));
    }
    found
}

#[test]
fn functions_fit_on_a_screen_or_two() {
    let mut offences = vec![];
    for path in files(".rs").into_iter().filter(|path| !is_test(path)) {
        let file = path.to_str().unwrap();
        for (name, lines) in functions(&text(&path)) {
            if lines > LONGEST {
                offences.push(format!("{file}: `{name}` has {lines} lines"));
            }
        }
    }
    none(offences, "a function has at most 100 lines");
}

/// The modules of a crate: by path (`sema::sizes`), the file.
fn modules(folder: &Path) -> BTreeMap<Vec<String>, PathBuf> {
    let all = files(".rs").into_iter();
    let own = all.filter_map(|path| {
        let inner = path.strip_prefix(folder).ok()?.to_path_buf();
        let mut parts: Vec<String> = inner
            .with_extension("")
            .iter()
            .map(|part| part.to_str().unwrap().to_owned())
            .collect();
        if ["mod", "lib", "main"].contains(&parts.last()?.as_str()) {
            parts.pop();
        }
        Some((parts, path))
    });
    own.collect()
}

/// The paths of a `use` tree: `a::{b::C, d}` gives `a::b::C` and `a::d`.
fn leaves(tree: &str, before: &[String], found: &mut Vec<Vec<String>>) {
    let mut depth = 0;
    let mut parts = vec![String::new()];
    for c in tree.chars() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        match c {
            ',' if depth == 0 => parts.push(String::new()),
            _ => parts.last_mut().unwrap().push(c),
        }
    }
    for part in parts
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
    {
        let (path, inner) = match part.split_once('{') {
            Some((path, inner)) => (path, Some(inner.strip_suffix('}').unwrap_or(inner))),
            None => (part.split(" as ").next().unwrap_or(part), None),
        };
        let names = path
            .split("::")
            .map(str::trim)
            .filter(|name| !name.is_empty());
        let whole: Vec<String> = before
            .iter()
            .cloned()
            .chain(names.map(str::to_owned))
            .collect();
        match inner {
            Some(inner) => leaves(inner, &whole, found),
            None => found.push(whole),
        }
    }
}

/// The modules of its own crate that a module imports from, without those around it or within it.
fn imports(
    module: &[String],
    text: &str,
    known: &BTreeMap<Vec<String>, PathBuf>,
) -> BTreeSet<Vec<String>> {
    let code = text.split("#[cfg(test)]").next().unwrap_or(text);
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join(" ");
    let mut found = BTreeSet::new();
    for statement in code.split(';') {
        let Some((_, tree)) = statement.rsplit_once("use ") else {
            continue;
        };
        let mut paths = vec![];
        leaves(tree, &[], &mut paths);
        for path in paths {
            let mut from: Vec<String> = module.to_vec();
            let mut rest = path.as_slice();
            match rest.first().map(String::as_str) {
                Some("crate") => {
                    (from, rest) = (vec![], &rest[1..]);
                }
                Some("super") => {
                    while rest.first().is_some_and(|name| name == "super") {
                        from.pop();
                        rest = &rest[1..];
                    }
                }
                _ => continue,
            }
            from.extend(rest.iter().cloned());
            while !known.contains_key(&from) && !from.is_empty() {
                from.pop();
            }
            if !module.starts_with(&from) && !from.starts_with(module) {
                found.insert(from);
            }
        }
    }
    found
}

/// Groups of modules that reach each other.
fn circles(edges: &BTreeMap<Vec<String>, BTreeSet<Vec<String>>>) -> Vec<Vec<Vec<String>>> {
    let reach = |from: &Vec<String>| {
        let mut seen: BTreeSet<Vec<String>> = BTreeSet::new();
        let mut open: Vec<Vec<String>> = edges[from].iter().cloned().collect();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(edges.get(&next).into_iter().flatten().cloned());
            }
        }
        seen
    };
    let reached: BTreeMap<&Vec<String>, BTreeSet<Vec<String>>> =
        edges.keys().map(|module| (module, reach(module))).collect();
    let mut found: Vec<Vec<Vec<String>>> = vec![];
    for module in edges
        .keys()
        .filter(|module| reached[module].contains(*module))
    {
        if found.iter().any(|circle| circle.contains(module)) {
            continue;
        }
        let both = |other: &&Vec<String>| {
            reached[module].contains(*other) && reached[*other].contains(module)
        };
        found.push(edges.keys().filter(both).cloned().collect());
    }
    found
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let crates: BTreeSet<PathBuf> = files("Cargo.toml")
        .into_iter()
        .map(|manifest| manifest.with_file_name("src"))
        .collect();
    let mut offences = vec![];
    for folder in crates {
        let known = modules(&folder);
        let edges: BTreeMap<_, _> = known
            .iter()
            .map(|(module, path)| (module.clone(), imports(module, &text(path), &known)))
            .collect();
        for circle in circles(&edges) {
            let names = circle.iter().map(|m| known[m].to_str().unwrap().to_owned());
            let named: Vec<String> = names.collect();
            offences.push(named.join(" - "));
        }
    }
    none(offences, "files import each other in a circle");
}

#[test]
fn circles_and_lengths_are_found() {
    let text = "impl A {\n    pub(super) fn long(\n        x: u8,\n    ) -> u8 {\n        x\n    }\n}\nfn short() {}\n";
    let expected = [("long".to_owned(), 5), ("short".to_owned(), 1)];
    assert_eq!(functions(text), expected);
    let module = |path: &str| path.split("::").map(str::to_owned).collect::<Vec<_>>();
    let known: BTreeMap<_, _> = ["a", "a::b", "a::c", "d"]
        .map(|path| (module(path), PathBuf::from(path)))
        .into();
    let text = "use crate::{\n    a::c::{self, X as Y},\n    d::Z,\n};\nuse super::Above;\nuse std::fs;\n#[cfg(test)]\nuse crate::a::c;\n";
    let found = imports(&module("a::b"), text, &known);
    assert_eq!(found, BTreeSet::from([module("a::c"), module("d")]));
    let edges: BTreeMap<_, _> = known
        .keys()
        .map(|own| {
            let to = match own.join("::").as_str() {
                "a::b" => vec![module("a::c")],
                "a::c" => vec![module("d")],
                "d" => vec![module("a::b")],
                _ => vec![],
            };
            (own.clone(), to.into_iter().collect())
        })
        .collect();
    assert_eq!(
        circles(&edges),
        [[module("a::b"), module("a::c"), module("d")]]
    );
}
