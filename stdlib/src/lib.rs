//! The standard library: `.ein` sources, embedded.
//!
//! A library is one file in this folder and one row of [`LIBRARIES`]. Must not know the compiler: these are texts.
//!
//! ```text
//! std.nn -> std/nn.ein
//! ```

/// A library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Library {
    /// What stands after `use`.
    pub path: &'static str,
    /// What messages call its file.
    pub name: &'static str,
    /// Its source.
    pub text: &'static str,
}

/// Every library.
pub const LIBRARIES: &[Library] = &[
    Library {
        path: "std.array",
        name: "std/array.ein",
        text: include_str!("../array.ein"),
    },
    Library {
        path: "std.fft",
        name: "std/fft.ein",
        text: include_str!("../fft.ein"),
    },
    Library {
        path: "std.linalg",
        name: "std/linalg.ein",
        text: include_str!("../linalg.ein"),
    },
    Library {
        path: "std.nn",
        name: "std/nn.ein",
        text: include_str!("../nn.ein"),
    },
    Library {
        path: "std.optim",
        name: "std/optim.ein",
        text: include_str!("../optim.ein"),
    },
    Library {
        path: "std.random",
        name: "std/random.ein",
        text: include_str!("../random.ein"),
    },
    Library {
        path: "std.schedule",
        name: "std/schedule.ein",
        text: include_str!("../schedule.ein"),
    },
    Library {
        path: "std.select",
        name: "std/select.ein",
        text: include_str!("../select.ein"),
    },
    Library {
        path: "std.stats",
        name: "std/stats.ein",
        text: include_str!("../stats.ein"),
    },
];

/// The name for messages and the text of the library that `use path` imports.
pub fn library(path: &str) -> Option<(&'static str, &'static str)> {
    LIBRARIES
        .iter()
        .find(|library| library.path == path)
        .map(|library| (library.name, library.text))
}

/// What may stand after `use`, for "did you mean" and lists.
pub fn names() -> impl Iterator<Item = &'static str> {
    LIBRARIES.iter().map(|library| library.path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_found_by_their_path() {
        let (name, text) = library("std.nn").expect("std.nn is there");
        assert_eq!(name, "std/nn.ein");
        assert!(text.contains("fn softmax("));
        assert_eq!(library("std.n"), None);
        assert!(names().eq([
            "std.array",
            "std.fft",
            "std.linalg",
            "std.nn",
            "std.optim",
            "std.random",
            "std.schedule",
            "std.select",
            "std.stats"
        ]));
    }

    /// Everything has a page (`///`), every function a program in `tests/`.
    #[test]
    fn every_function_has_a_page_and_a_test() {
        let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
        for library in LIBRARIES {
            let mut before = "";
            for line in library.text.lines() {
                let item = ["fn ", "optimizer ", "schedule "]
                    .into_iter()
                    .find_map(|word| Some((word, line.strip_prefix(word)?.split_once('(')?.0)));
                if let Some((word, name)) = item {
                    assert!(
                        before.starts_with("///"),
                        "{name} of {} has no page",
                        library.path
                    );
                    if word != "fn " {
                        // These are tested together, in `tests/optimizers`.
                        before = line;
                        continue;
                    }
                    assert!(
                        tests.join(format!("{name}.ein")).exists(),
                        "{name} of {} has no test",
                        library.path
                    );
                }
                before = line;
            }
        }
    }
}
