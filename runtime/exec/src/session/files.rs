//! What of a session lies in files: names, types and shapes of what checkpoints and exports hold, and what must not change between runs.
//!
//! Must not know how files are laid out, nor when they are written.
//!
//! ```text
//! W: f32[64, 10], enc.*.w stored as f32[12, 8, 8]   ->   W: f32[64, 10], enc.0.w: f32[8, 8], enc.1.w: f32[8, 8], …
//! ```

use super::{Carried, Session};
use ein_data::Named;
use ein_plan::{DType, Source};
use std::collections::BTreeMap;
use std::path::Path;

/// What checkpoints hold, in their order.
pub(super) fn saved(session: &Session) -> Vec<Named> {
    named(session, |carried| carried.kind.is_saved(), |_| None)
}

/// The tensors of a file of params, in its order: complex ones as such where the file has a type for them, others as their parts.
pub(super) fn exported(session: &Session) -> Vec<Named> {
    let complex = |carried: &Carried| {
        let dtype = carried.dtype.complex();
        dtype.filter(|dtype| carried.complex && *dtype == DType::C64)
    };
    named(session, |carried| carried.kind.is_model(), complex)
}

/// Tensors that are stored together are each one in a file.
fn named(
    session: &Session,
    which: impl Fn(&Carried) -> bool,
    complex: impl Fn(&Carried) -> Option<DType>,
) -> Vec<Named> {
    let carried = session.carried.iter().filter(|(_, carried)| which(carried));
    let header = |dtype, shape: &[u64]| ein_data::Header {
        dtype,
        shape: shape.to_vec(),
    };
    let named = |name: &str, carried: &Carried, leading: usize| Named {
        name: name.to_owned(),
        header: match (complex(carried), &carried.shape[leading..]) {
            (Some(dtype), [own @ .., _]) => header(dtype, own),
            (_, shape) => header(carried.dtype, shape),
        },
    };
    carried
        .flat_map(|(name, carried)| match &carried.begin {
            Source::Stacked { leading, parts } => parts
                .iter()
                .map(|part| named(&part.name, carried, *leading as usize))
                .collect(),
            _ => vec![named(name, carried, 0)],
        })
        .collect()
}

/// What holds a tensor of a file: the name under which it is carried, and its place there.
pub(super) fn holders(session: &Session) -> BTreeMap<&str, (&str, Vec<u64>)> {
    let mut holders = BTreeMap::new();
    for (name, carried) in &session.carried {
        let Source::Stacked { leading, parts } = &carried.begin else {
            holders.insert(name.as_str(), (name.as_str(), vec![]));
            continue;
        };
        let counts = &carried.shape[..*leading as usize];
        let all: Vec<(u64, u64)> = counts.iter().map(|count| (0, *count)).collect();
        let places = crate::source::places(&all);
        for (part, at) in parts.iter().zip(places) {
            holders.insert(part.name.as_str(), (name.as_str(), at));
        }
    }
    holders
}

/// What must be the same for a run to continue.
pub(super) fn facts(session: &Session, seed: u64, sites: u32) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::from([("--seed".to_owned(), seed.to_string())]);
    for block in &session.blocks {
        let mut fact = |what: &str, value: String| {
            facts.insert(format!("{what} of {}", block.name), value);
        };
        fact("the number of rows", block.rows.to_string());
        fact("the batch", block.batch.to_string());
        fact("`shuffle`", block.shuffle.to_string());
        fact("the optimizer", block.optimizer.clone());
        if let Some(rounds) = &block.rounds {
            // Who makes which step on which rows depends on it.
            fact("the number of sites", sites.to_string());
            fact("the number of parts", rounds.parts.to_string());
            fact("the steps of a round", rounds.local_steps.to_string());
            fact(
                "what becomes of states",
                format!("{:?}", rounds.states).to_lowercase(),
            );
        }
    }
    facts
}

/// The folders of checkpoints, each once.
pub(super) fn folders(session: &Session) -> Vec<&Path> {
    let mut folders: Vec<&Path> = vec![];
    for checkpoints in session.blocks.iter().filter_map(|b| b.checkpoints.as_ref()) {
        if !folders.contains(&checkpoints.folder.as_path()) {
            folders.push(&checkpoints.folder);
        }
    }
    folders
}
