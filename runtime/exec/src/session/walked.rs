//! What a walk of a plan leaves for the next one of its session.
//!
//! Must not know what the plan is for.
//!
//! ```text
//! outputs loss, W_next   ->   printed loss 0.31 (site 0), kept W_next where the plan left it; first faulty step: none
//! ```

use super::resident::Resident;
use crate::error::RunError;
use crate::output;
use crate::print::Printed;
use crate::resting::Spilled;
use crate::store::Tuples;
use crate::walk::Walker;
use ein_plan::Operation;
use ein_plan::source::fed::RATE;
use std::collections::BTreeMap;

/// An output that a walk leaves at its sites.
pub(crate) struct Kept {
    /// Its own name.
    pub name: String,
    /// The carried tensor whose place it takes.
    pub replaces: Option<String>,
    /// Where it lies.
    pub resident: Resident,
}

/// What a walk leaves for the next one.
pub(crate) struct Walked {
    /// Scalar outputs, at site 0.
    pub printed: Vec<Printed>,
    /// All outputs.
    pub kept: Vec<Kept>,
    /// What was handed to the plan and has not been written over, by name.
    pub left: BTreeMap<String, Tuples>,
    /// Whether all sites know that the loss is finite.
    pub settled: bool,
    /// The first step of this site with a value that is not finite, if such values were looked for.
    pub faulty: Option<usize>,
    /// The most bytes that this site held.
    pub peak: u64,
    /// Bytes that went to disk and came back at this site, and the time that took.
    pub spilled: Spilled,
}

impl Walked {
    /// The output that has taken the place of a carried tensor.
    pub fn replacing(&self, name: &str) -> Result<&Resident, RunError> {
        let mut kept = self.kept.iter();
        let next = kept.find(|next| next.replaces.as_deref() == Some(name));
        let next = next.map(|next| &next.resident);
        next.ok_or_else(|| RunError::internal(format!("nothing has taken the place of `{name}`")))
    }
}

impl Walker<'_> {
    /// Keeps the outputs for the next walk.
    pub fn walked(self) -> Result<Walked, RunError> {
        let (mut printed, mut kept) = (vec![], vec![]);
        for output in &self.plan.outputs {
            if output.shape.is_empty() && output.name != RATE {
                printed.extend(output::print(self.plan, &self.comm, self.held(), output)?);
            }
            let resident = Resident {
                kind: self.plan.kind(output.relation).clone(),
                mesh: self.plan.mesh.clone(),
                tuples: self.tuples(output.relation)?.clone(),
            };
            kept.push(Kept {
                name: output.name.clone(),
                replaces: output.replaces.clone(),
                resident,
            });
        }
        let old = self.schedule.successions.values().map(|s| s.old);
        let left = old.filter_map(|old| {
            let Operation::Source { name, .. } = &self.plan.step(old).operation else {
                return None;
            };
            Some((name.clone(), self.store.get(old)?.clone()))
        });
        Ok(Walked {
            left: left.collect(),
            settled: self.settled,
            printed,
            kept,
            faulty: self.faulty.0.or(self.faulty.1),
            peak: self.store.peak(),
            spilled: self.spilled(),
        })
    }

    /// Notes the first step that gives a value that is not finite.
    pub fn look(&mut self, number: usize, tuples: &Tuples) {
        if self.faulty.0.is_some() {
            return;
        }
        for buffer in tuples.values().flatten() {
            if !buffer.dtype().is_float() {
                continue;
            }
            let array = buffer.to_host();
            let data = array.data();
            for at in 0..data.len() {
                let value = data.get(at).as_f64();
                if value == f64::NEG_INFINITY {
                    self.faulty.1.get_or_insert(number);
                } else if !value.is_finite() {
                    self.faulty.0 = Some(number);
                    return;
                }
            }
        }
    }
}
