//! The result of planning: a plan, or the plans of a session, and the configuration that it was made for.
//!
//! Must not know how it is made (`session`), kept (`bundle`) or run (`run`).
//!
//! ```text
//! configuration {sites: 2, dims {N: 1000}, X: f32[1000, 64], deterministic: false}, prepared: plan for 2 sites
//! ```

use crate::{prediction::Outputs, training};
use ein_exec::Session;
use ein_plan::{Plan, Scalar, memory};
use einc_core::pipeline::Criteria;
use einc_core::sema::world::Header;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A prepared program, with everything it depends on besides the program's text.
#[derive(Debug, Serialize, Deserialize)]
pub struct Planned {
    /// The configuration that was asked for.
    pub configuration: Configuration,
    /// The answer.
    pub prepared: Prepared,
}

/// A plan, or the plans of a session.
#[derive(Debug, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // there is one
pub enum Prepared {
    /// A program without training.
    Plan(Plan),
    /// Training, and what is evaluated after it.
    Session(Session),
}

/// All that a plan depends on besides the program's text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Configuration {
    /// Sizes from the command line.
    pub dims: BTreeMap<String, i64>,
    /// Constants from the command line.
    pub constants: BTreeMap<String, Scalar>,
    /// Numbers that fill inputs.
    pub numbers: BTreeMap<String, Scalar>,
    /// Outputs that the program itself does not have.
    pub more_outputs: Vec<String>,
    /// Types and shapes of the data that are there.
    pub headers: BTreeMap<String, Header>,
    /// Number of sites.
    pub sites: u32,
    /// True if sums do not depend on the number of sites.
    pub deterministic: bool,
    /// The criteria by which the plan is chosen.
    pub criteria: Criteria,
}

impl Prepared {
    /// Its plans, in the order in which a profile numbers them.
    pub fn plans(&self) -> Vec<&Plan> {
        match self {
            Prepared::Plan(plan) => vec![plan],
            Prepared::Session(session) => session.all_programs().map(AsRef::as_ref).collect(),
        }
    }

    /// Its plans, and whether their outputs leave the device.
    pub fn with_outputs(&self) -> Vec<(&Plan, Outputs)> {
        let outputs = match self {
            Prepared::Plan(_) => Outputs::Leave,
            Prepared::Session(_) => Outputs::Stay,
        };
        let plans = self.plans().into_iter();
        plans.map(|plan| (plan, outputs)).collect()
    }

    /// The most bytes that each site holds.
    pub fn peaks(&self) -> Vec<u64> {
        match self {
            Prepared::Plan(plan) => (memory::peaks(plan).iter())
                .map(|peak| peak.bytes)
                .collect(),
            Prepared::Session(session) => training::peaks(session),
        }
    }
}
