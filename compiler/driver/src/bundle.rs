//! The bundle: what a built program carries, so that it can be planned again for other sizes and sites.
//!
//! Must not know how it gets into an executable.
//!
//! ```text
//! matmul: files [matmul.ein], bindings {I: 4096}, base /home/me/models, plan for 1 site
//! ```

use crate::{planned::Planned, program::Program, settings::Settings, shims::ShimsByName};
use ein_cuda::Images;
use ein_plan::{FileRef, Scalar};
use einc_core::{
    pipeline::Criteria,
    sema::{SourceFile, Sources},
};
use einc_diag::FileId;
use einc_syntax::ast;
use serde::{Deserialize, Serialize};
use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

/// The version of the encoding: it changes whenever the meaning of a bundle's bytes does.
const VERSION: u32 = 13;

/// The content of a built program.
#[derive(Debug, Serialize, Deserialize)]
pub struct Bundle {
    version: u32,
    name: String,
    base: PathBuf,
    files: Vec<(String, String, ast::File)>,
    imports: BTreeMap<(FileId, String), FileId>,
    libraries: BTreeMap<String, FileId>,
    dims: BTreeMap<String, i64>,
    constants: BTreeMap<String, Scalar>,
    inputs: BTreeMap<String, FileRef>,
    numbers: BTreeMap<String, Scalar>,
    sites: Option<u32>,
    deterministic: bool,
    criteria: Criteria,
    /// True if it only evaluates, with params that it is given.
    inference: bool,
    planned: Option<Planned>,
    /// Images of the plan's kernels for GPUs.
    images: Arc<Images>,
    /// MPI shims that einc was not built with.
    shims: ShimsByName,
}

impl Bundle {
    /// Packs a checked program with the settings of build time and, if its sizes are known, a plan.
    pub fn new(program: &Program, settings: &Settings, planned: Option<Planned>) -> Bundle {
        let sources = &program.sources;
        Bundle {
            version: VERSION,
            name: program.name.clone(),
            base: program.base.clone(),
            files: sources
                .files
                .iter()
                .map(|file| (file.name.clone(), file.text.clone(), file.ast.clone()))
                .collect(),
            imports: sources.imports.clone(),
            libraries: sources.libraries.clone(),
            dims: settings.dims.clone(),
            constants: settings.constants.clone(),
            inputs: settings.inputs.clone(),
            numbers: settings.numbers.clone(),
            sites: settings.sites,
            deterministic: settings.deterministic,
            criteria: settings.criteria.clone(),
            inference: settings.inference,
            planned,
            images: Arc::clone(&settings.images),
            shims: ShimsByName::new(),
        }
    }

    /// Adds MPI shims to those of einc.
    pub fn with_shims(self, shims: ShimsByName) -> Bundle {
        Bundle { shims, ..self }
    }

    /// Takes the MPI shims out.
    pub fn take_shims(&mut self) -> ShimsByName {
        std::mem::take(&mut self.shims)
    }

    /// The program, the settings of build time, and the plan made for them.
    pub fn open(self) -> (Program, Settings, Option<Planned>) {
        let files = self
            .files
            .into_iter()
            .map(|(name, text, ast)| SourceFile { name, text, ast })
            .collect();
        let program = Program {
            name: self.name,
            base: self.base,
            sources: Sources {
                files,
                imports: self.imports,
                libraries: self.libraries,
                incomplete: false,
            },
            diagnostics: vec![],
        };
        let settings = Settings {
            dims: self.dims,
            constants: self.constants,
            inputs: self.inputs,
            numbers: self.numbers,
            sites: self.sites,
            deterministic: self.deterministic,
            criteria: self.criteria,
            inference: self.inference,
            images: self.images,
            ..Settings::default()
        };
        (program, settings, self.planned)
    }

    /// The bytes.
    ///
    /// # Errors
    /// A path that is not UTF-8.
    pub fn encode(&self) -> Result<Vec<u8>, postcard::Error> {
        postcard::to_stdvec(self)
    }

    /// The bundle of these bytes; `None` if they are not one of this version.
    pub fn decode(bytes: &[u8]) -> Option<Bundle> {
        let (version, _) = postcard::take_from_bytes::<u32>(bytes).ok()?;
        (version == VERSION).then(|| postcard::from_bytes(bytes).ok())?
    }
}
