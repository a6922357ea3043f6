//! The surface of the language: lexer, layout pass, grammar, syntax tree, formatter.
//!
//! Must not know what names mean: that is sema's. Without the feature `parser` only the syntax tree is built.
//!
//! ```text
//! y[n] = sum[d] X[n,d]   =>   Definition { targets: [y[n]], value: Reduce(sum, [d], X[n,d]) }
//! ```

pub mod ast;
#[cfg(feature = "parser")]
mod brackets;
#[cfg(feature = "parser")]
mod check;
#[cfg(feature = "parser")]
mod explain;
#[cfg(feature = "parser")]
mod format;
#[cfg(feature = "parser")]
mod layout;
#[cfg(feature = "parser")]
mod lexer;
#[cfg(feature = "parser")]
mod parse;
#[cfg(feature = "parser")]
mod tree;

#[cfg(feature = "parser")]
pub use format::format;
#[cfg(feature = "parser")]
pub use parse::{Parsed, parse};

#[cfg(feature = "parser")]
lalrpop_util::lalrpop_mod!(
    #[allow(clippy::all, clippy::unwrap_used, missing_docs, unused, dead_code)]
    grammar
);
