//! A program: its files as texts and syntax trees, and the folder that its data are relative to.
//!
//! Must not know where the files came from: a disk, a bundle, a test.
//!
//! ```text
//! matmul, files [matmul.ein, std/nn.ein], base examples/
//! ```

use crate::render::Text;
use einc_core::sema::Sources;
use einc_diag::Diagnostic;
use std::path::PathBuf;

/// A program as it is written.
#[derive(Clone, Debug)]
pub struct Program {
    /// The stem of the file's name.
    pub name: String,
    /// The folder of the `.ein` file, absolute: default sources and outputs are relative to it.
    pub base: PathBuf,
    /// Texts and syntax trees; file 0 is the program.
    pub sources: Sources,
    /// The diagnostics of reading and parsing.
    pub diagnostics: Vec<Diagnostic>,
}

impl Program {
    /// The texts, by file number, for messages.
    pub fn texts(&self) -> Vec<Text<'_>> {
        self.sources
            .files
            .iter()
            .map(|file| Text {
                name: &file.name,
                text: &file.text,
            })
            .collect()
    }
}
