//! The checker: from syntax trees to an Einstein program, or to everything that is wrong with them.
//!
//! One path for a check without data and for a build: sizes are symbols until they are bound, and what they
//! decide is left open until then. Must not know files on disk, keys, sites or placements.
//!
//! ```text
//! dim N = 4; input x: f32[N]; y = sum[n] x[n] * x[n]; output y
//!   => x: f32[4] = unbound;  y: f32[] = [| n: 4] sum x[n] * x[n]
//! ```
//!
//! A check goes through the folders in this order:
//!
//! | folder | subject |
//! |---|---|
//! | `train` (`rules`), `calls` (`specialise`), `rounds` (`desugar`) | before anything is checked: optimizers become functions, functions of functions are written out, and rounds are written in simpler words |
//! | `resolve` | names, imports, one walk over all text, the order of uses |
//! | `sums` | implicit sums, reductions, scatters |
//! | `definitions` | dims, consts, inputs, params, definitions, outputs |
//! | `expressions`, `calls`, `modules`, `library`, `rounds` | typed expressions, and what they call and repeat |
//! | `complex` | complex numbers: what may meet what, and their parts, which are all that a program has |
//! | `types`, `sizes` | element types; symbolic sizes, ranges of indices, proofs that positions are in range |
//! | `lower` | checked tensors as an Einstein program |
//! | `train` | `train` blocks, and the further passes that read the text as a step of training or over other data |

mod calls;
mod complex;
mod definitions;
mod expressions;
pub mod hir;
mod library;
mod lower;
mod modules;
mod report;
mod resolve;
mod rounds;
mod sizes;
mod sums;
mod train;
mod types;
pub mod world;

pub use train::{patterns, training};

use crate::einsum::{self, Program};
use calls::{functions::Calls, specialise::specialise};
use complex::tensors::ComplexTensors;
use definitions::{declare::Entities, tensors::Built};
use ein_plan::{DType, Scalar, Source};
use einc_diag::{Diagnostic, FileId};
use einc_syntax::ast;
use expressions::arena::Arena;
use hir::Hir;
use modules::instances::Modules;
use report::Report;
use resolve::{
    Readings, Resolved,
    names::{EntityId, Names},
};
use sizes::ranges::Indices;
use std::collections::{BTreeMap, HashMap};
use types::guesses::Inference;

/// A file of a program.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name that messages show.
    pub name: String,
    /// The text; spans of the tree are bytes of it.
    pub text: String,
    /// The tree.
    pub ast: ast::File,
}

/// The files of a program.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// Number 0 is the program; the others are imported, directly or not.
    pub files: Vec<SourceFile>,
    /// Which file `use "x.ein"` of a file means, the path as written. Who loads the files reports imports that are
    /// missing or go in a circle; what would come from a missing one is passed over in silence.
    pub imports: BTreeMap<(FileId, String), FileId>,
    /// The libraries that are known: `std.nn`.
    pub libraries: BTreeMap<String, FileId>,
    /// True if parsing or loading found errors. Then parts of the program are missing, and the checker does not report what
    /// follows from that.
    pub incomplete: bool,
}

/// The values and data that are bound from outside.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// `--dim`.
    pub dims: BTreeMap<String, i64>,
    /// `--set`.
    pub constants: BTreeMap<String, Scalar>,
    /// Types and shapes of the data of inputs and params, where they are known.
    pub headers: BTreeMap<String, world::Header>,
    /// True if it is an error that a size is not known, or that nothing is given out.
    pub require_sizes: bool,
    /// Sites that it will run on, where that is known: steps that sites make by themselves depend on it.
    pub sites: Option<u32>,
    /// True if params are given like inputs, and their own sources are of no account.
    pub params_given: bool,
}

/// An input or param of a program.
#[derive(Clone, Debug, PartialEq)]
pub struct InputInfo {
    /// Name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Extents, where they are known.
    pub shape: Vec<Option<u64>>,
    /// Its source; `Unbound` also where the uses decide it (`he_normal`) and no program was made.
    pub source: Source,
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    /// At most 20 errors, and warnings, in source order.
    pub diagnostics: Vec<Diagnostic>,
    /// The program, if there is no error and all sizes are known.
    pub program: Option<Program>,
    /// Inputs and params in the order of their uses.
    pub inputs: Vec<InputInfo>,
    /// The training that comes before the program: `program` is then evaluated after it.
    pub training: Option<training::Training>,
}

impl Analysis {
    /// Adds the errors that another pass found, once.
    fn add(&mut self, found: &Analysis) {
        for diagnostic in found.diagnostics.iter().filter(|d| d.is_error()) {
            let place = |of: &Diagnostic| of.labels.first().map(|label| label.span);
            let known = |other: &Diagnostic| {
                other.code == diagnostic.code && place(other) == place(diagnostic)
            };
            if !self.diagnostics.iter().any(known) {
                self.diagnostics.push(diagnostic.clone());
            }
        }
    }
}

/// Expressions are walked by recursion of bounded depth; this is enough for it.
const STACK: usize = 256 << 20;

/// Checks a program.
pub fn check(sources: &Sources, bindings: &Bindings) -> Analysis {
    stacker::maybe_grow(STACK / 2, STACK, || run(sources, bindings, None))
}

/// Checks a program, and returns its resolved, typed tree beside the result, as far as the program could be checked.
pub fn check_with_hir(sources: &Sources, bindings: &Bindings) -> (Analysis, Hir) {
    let mut hir = Hir::default();
    let analysis = stacker::maybe_grow(STACK / 2, STACK, || run(sources, bindings, Some(&mut hir)));
    (analysis, hir)
}

fn run(sources: &Sources, bindings: &Bindings, hir: Option<&mut Hir>) -> Analysis {
    let functions = train::rules::as_functions(sources);
    let (special, templates) = specialise(functions.as_ref().unwrap_or(sources));
    let (sources, collections) = rounds::desugar::desugar(&special);
    let text = Text {
        resolved: &resolve::resolve(&sources, &collections, &templates),
    };
    let mode = training::Mode::of_base(&sources);
    let task = Task {
        tabled: hir.is_some(),
        ..Task::new(bindings, &mode)
    };
    let checker = settle(text, task);
    if let Some(hir) = hir {
        *hir = checker.hir();
    }
    let base = checker.base();
    let mut analysis = checker.finish();
    if analysis.diagnostics.iter().any(Diagnostic::is_error) {
        return analysis;
    }
    let known = analysis.program.is_some();
    let reading = train::data_override::Reading {
        text,
        bindings,
        base: &base,
    };
    let complete = if base.is_empty() {
        train::data_override::outputs(reading, &[], &mut analysis).is_some()
    } else {
        analysis.training = train::programs::passes(reading, &mut analysis);
        analysis.training.is_some()
    };
    let failed = analysis.diagnostics.iter().any(Diagnostic::is_error);
    if known && !failed && !complete && !sources.incomplete {
        let what = "internal error: a pass over the text has no program";
        analysis.diagnostics.push(Diagnostic::error("E0999", what));
    }
    if failed || !complete {
        analysis.program = None;
    }
    analysis
}

/// A text to check: its names are resolved, once for all passes.
#[derive(Clone, Copy)]
struct Text<'a> {
    resolved: &'a Resolved<'a>,
}

/// Checks until no statement says more about the dimensions and types of others: nearly always once, else twice.
fn settle<'a>(text: Text<'a>, task: Task<'a>) -> Checker<'a> {
    let mut inference = Inference::default();
    loop {
        let mut checker = Checker::new(text, task, inference);
        checker.check();
        match checker.inference.next_round() {
            Some(next) => inference = next,
            None => return checker,
        }
    }
}

/// The task of a pass over a text: with what it is bound, and which program it makes.
#[derive(Clone, Copy)]
struct Task<'a> {
    bindings: &'a Bindings,
    mode: &'a training::Mode,
    /// True if the places of expressions are kept, for [`hir::Hir`].
    tabled: bool,
}

impl<'a> Task<'a> {
    fn new(bindings: &'a Bindings, mode: &'a training::Mode) -> Task<'a> {
        Task {
            bindings,
            mode,
            tabled: false,
        }
    }
}

/// One pass over a text: its task, and everything that it has found so far, by subject.
struct Checker<'a> {
    names: &'a Names<'a>,
    readings: &'a Readings<'a>,
    task: Task<'a>,
    report: Report,
    entities: Entities,
    arena: Arena,
    indices: Indices,
    calls: Calls,
    modules: Modules<'a>,
    inference: Inference,
    complex: ComplexTensors,
    built: Built,
    training: training::Findings<'a>,
}

impl<'a> Checker<'a> {
    fn new(text: Text<'a>, task: Task<'a>, inference: Inference) -> Checker<'a> {
        let Resolved {
            names,
            readings,
            report,
        } = text.resolved;
        let mut report = report.clone();
        let order = resolve::item_order::order(names, readings, task.mode, &mut report);
        Checker {
            names,
            readings,
            task,
            report,
            entities: Entities::new(order),
            arena: Arena::default(),
            indices: Indices::default(),
            calls: Calls::default(),
            modules: Modules::default(),
            inference,
            complex: ComplexTensors::default(),
            built: Built::default(),
            training: training::Findings::default(),
        }
    }

    /// Returns whether an entity has an error in its text, or is defined by itself.
    fn is_failed(&self, id: EntityId) -> bool {
        self.readings.failed.contains(&id) || self.entities.order.circular.contains(&id)
    }

    fn check(&mut self) {
        self.check_bindings();
        self.bind_dims();
        self.begin_step();
        self.define_entities();
        self.finish_items();
        self.infer_from_accesses();
    }

    fn finish(mut self) -> Analysis {
        self.report_provisional();
        if self.task.bindings.require_sizes {
            self.require_sizes();
        }
        self.verify_outputs();
        let program = if self.report.failed() || self.built.open_source {
            None
        } else {
            self.lower()
        };
        let program = program.filter(|_| !self.report.failed());
        let is_whole = self.checks_all() && self.task.bindings.require_sizes;
        let is_silent = program.is_none() && !self.report.failed() && !self.built.open_source;
        if is_whole && is_silent && !self.names.sources.incomplete {
            let what = "internal error: the statements make no program";
            self.report.push(Diagnostic::error("E0999", what));
        }
        let mut inputs = std::mem::take(&mut self.built.inputs);
        if let Some(program) = &program {
            // Sources that the uses decide.
            let mut settled: HashMap<&str, &Source> = HashMap::new();
            for tensor in &program.tensors {
                match &tensor.definition {
                    einsum::Definition::Source(Source::Stacked { parts, .. }) => {
                        settled.extend(parts.iter().map(|p| (p.name.as_str(), &p.source)));
                    }
                    einsum::Definition::Source(source) => {
                        settled.insert(&tensor.name, source);
                    }
                    einsum::Definition::Statement { .. } | einsum::Definition::Loop(_) => {}
                }
            }
            for input in &mut inputs {
                if let Some(source) = settled.get(input.name.as_str()) {
                    input.source = (*source).clone();
                }
            }
        }
        Analysis {
            diagnostics: self.report.finish(),
            program,
            inputs,
            training: None,
        }
    }
}
