//! The surface of the language: lexer, layout pass, grammar, syntax tree, formatter.
//!
//! Must not know what names mean: that is sema's.

pub mod ast;
