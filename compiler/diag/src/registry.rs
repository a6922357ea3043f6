//! The registry of codes: one page a code, a file in `codes/`; `einc explain E0301` prints it.
//!
//! A page begins with a line `# E0301: title`, then says what it means, shows a program that has it (a block
//! marked `ein,wrong`, or `ein,warned` for a warning) and one that does not (`ein`). Families: E01xx files and syntax, E02xx names and
//! declarations, E03xx indices and sizes, E04xx types, E05xx functions and imports, E06xx not supported yet, gradients, training,
//! E07xx data and bindings, E08xx running (gathers, ranks, memory), E09xx building and the machine. Must not know
//! which pass reports which code.
//!
//! ```text
//! # E0301: an index has two sizes
//! ```

/// Every code with its page, ascending.
pub const PAGES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// The page of a code.
pub fn page(code: &str) -> Option<&'static str> {
    PAGES
        .iter()
        .find(|(c, _)| c.eq_ignore_ascii_case(code))
        .map(|(_, page)| *page)
}
