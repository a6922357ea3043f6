//! The steps of a long plan, folded into what a reader looks for: sources, forward pass, gradients and updates, each by part of the program.
//!
//! A part is a module, a function or a statement of the program; what a library computes belongs to the statement that uses it, a gradient to
//! what it is the gradient of, and an update to its param. Must not know how anything is drawn.
//!
//! ```text
//! W1, model.1.h, grad.W1, lamb.m.W1_next, W1_next, all of `model`   =>   model: sources, forward, gradients, updates
//! ```

use crate::pipeline::report::PlanReport;
use rustc_hash::FxHashMap;

/// The purpose of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Phase {
    Source,
    Forward,
    Gradient,
    Update,
}

impl Phase {
    pub(super) const ALL: [Phase; 4] = [
        Phase::Source,
        Phase::Forward,
        Phase::Gradient,
        Phase::Update,
    ];

    /// Its name on the page; without gradients there is one pass, of steps.
    pub(super) fn name(self, has_gradients: bool) -> &'static str {
        match self {
            Phase::Source => "sources",
            Phase::Forward if has_gradients => "forward",
            Phase::Forward => "steps",
            Phase::Gradient => "gradients",
            Phase::Update => "updates",
        }
    }
}

/// The steps of a plan by phase and part.
pub(super) struct Folded {
    /// The parts of the program, in the order of the forward pass.
    pub(super) parts: Vec<String>,
    /// By step.
    pub(super) phase: Vec<Phase>,
    /// By step: its part.
    pub(super) part: Vec<usize>,
    /// By step: what it reads, the states of loops included.
    pub(super) reads: Vec<Vec<usize>>,
}

/// Folds the steps of a plan.
pub(super) fn fold(report: &PlanReport) -> Folded {
    let mut reads: Vec<Vec<usize>> = report.steps.iter().map(|s| s.inputs.clone()).collect();
    for state in report.loops.iter().flat_map(|of| &of.states) {
        for value in &state.values {
            if let Some(reads) = reads.get_mut(*value) {
                reads.extend([state.initial, state.next]);
            }
        }
    }
    let mut readers: Vec<Vec<usize>> = vec![vec![]; reads.len()];
    for (at, read) in reads.iter().enumerate() {
        // A state reads the end of its own loop, which stands behind it.
        for from in read.iter().filter(|from| **from < at) {
            readers[*from].push(at);
        }
    }
    let phase = phases(report, (&reads, &readers));
    let names = names(report, &phase, &readers);
    let mut parts: Vec<String> = vec![];
    let mut part = vec![0; names.len()];
    for wanted in [
        Phase::Forward,
        Phase::Source,
        Phase::Gradient,
        Phase::Update,
    ] {
        for at in (0..names.len()).filter(|at| phase[*at] == wanted) {
            let known = parts.iter().position(|name| *name == names[at]);
            part[at] = known.unwrap_or_else(|| {
                parts.push(names[at].clone());
                parts.len() - 1
            });
        }
    }
    Folded {
        parts,
        phase,
        part,
        reads,
    }
}

/// A step that reads gradients is an update, and so is one that only updates read.
fn phases(report: &PlanReport, (reads, readers): (&[Vec<usize>], &[Vec<usize>])) -> Vec<Phase> {
    let mut phase = vec![Phase::Forward; report.steps.len()];
    for (at, step) in report.steps.iter().enumerate() {
        let late = |from: &usize| *from < at && phase[*from] > Phase::Forward;
        if gradient_of(&step.tensor).is_some() {
            phase[at] = Phase::Gradient;
        } else if reads[at].iter().any(late) {
            phase[at] = Phase::Update;
        }
    }
    for at in (0..phase.len()).rev() {
        let updates = |reader: &usize| phase[*reader] == Phase::Update;
        if phase[at] == Phase::Forward && !readers[at].is_empty() && readers[at].iter().all(updates)
        {
            phase[at] = Phase::Update;
        }
    }
    for (at, step) in report.steps.iter().enumerate() {
        if phase[at] == Phase::Forward && step.operator == "source" {
            phase[at] = Phase::Source;
        }
    }
    phase
}

/// The part of the program that each step belongs to.
fn names(report: &PlanReport, phase: &[Phase], readers: &[Vec<usize>]) -> Vec<String> {
    let mut name: Vec<Option<String>> = vec![None; report.steps.len()];
    let mut known: FxHashMap<&str, String> = FxHashMap::default();
    let head = |tensor: &str| tensor.split('.').next().unwrap_or(tensor).to_owned();
    for wanted in [
        Phase::Forward,
        Phase::Source,
        Phase::Gradient,
        Phase::Update,
    ] {
        for at in (0..report.steps.len()).rev() {
            if phase[at] != wanted {
                continue;
            }
            let step = &report.steps[at];
            let of_readers = |wanted: Phase| {
                let mut names = (readers[at].iter())
                    .filter(|reader| phase[**reader] == wanted)
                    .filter_map(|reader| name[*reader].clone());
                let first = names.next()?;
                let agree = wanted != Phase::Update || names.all(|name| name == first);
                agree.then_some(first)
            };
            let tensor = step.tensor.as_str();
            let found = match wanted {
                Phase::Forward => match step.source.file == report.program {
                    true => None,
                    false => of_readers(Phase::Forward),
                },
                Phase::Source => match known.values().any(|name| *name == head(tensor)) {
                    true => None,
                    false => of_readers(Phase::Forward),
                },
                Phase::Gradient => {
                    let of = gradient_of(tensor).unwrap_or(tensor);
                    known_part(&known, of).or_else(|| of_readers(Phase::Gradient))
                }
                Phase::Update => {
                    let of = tensor.strip_suffix("_next").unwrap_or(tensor);
                    known_part(&known, of).or_else(|| of_readers(Phase::Update))
                }
            };
            let own = gradient_of(tensor).unwrap_or(tensor);
            let found = found.unwrap_or_else(|| head(own));
            if wanted <= Phase::Forward {
                known.entry(tensor).or_insert_with(|| found.clone());
            }
            name[at] = Some(found);
        }
    }
    name.into_iter().map(Option::unwrap_or_default).collect()
}

/// The part of a tensor, or of the nearest one around it: that of `layers.up` for `layers.up.w.1`.
fn known_part(known: &FxHashMap<&str, String>, tensor: &str) -> Option<String> {
    let mut name = tensor;
    loop {
        if let Some(part) = known.get(name) {
            return Some(part.clone());
        }
        (name, _) = name.rsplit_once('.')?;
    }
}

/// The tensor that a gradient is of, if the name is that of a gradient.
fn gradient_of(tensor: &str) -> Option<&str> {
    match tensor.strip_prefix("grad.") {
        Some(of) => Some(of),
        None => tensor.split_once(".grad.").map(|(_, of)| of),
    }
}
