//! The surface of the language: lexer, layout pass, grammar, syntax tree, formatter.
//!
//! Must not know what names mean: that is sema's. Without the feature `parser` only the syntax tree is built.
//!
//! ```text
//! y[n] = sum[d] X[n,d]   =>   Definition { targets: [y[n]], value: Reduce(sum, [d], X[n,d]) }
//! ```

pub mod ast;
mod brackets;
mod check;
pub mod elsewhere;
mod explain;
mod format;
mod layout;
mod lexer;
mod parse;
mod tree;

pub use format::format;
pub use parse::{Parsed, parse};

lalrpop_util::lalrpop_mod!(
    #[allow(clippy::all, clippy::unwrap_used, missing_docs, unused, dead_code)]
    grammar
);
