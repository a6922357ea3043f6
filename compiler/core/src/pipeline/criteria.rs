//! The criteria by which a plan is chosen: the quantity that is minimised, within which limits, with which rules.
//!
//! Must not know how it is chosen.
//!
//! ```text
//! fewest floats transferred, at most 1.25 times an even share of the work and 8589934592 bytes a site, without R2-5
//! ```

use crate::lists::Form;
use crate::search::Objective;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The forms in which inputs lie whose files list elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Formats {
    /// The form of all inputs that have none of their own here; `None`: the faster one. Of dense inputs alone, no tensor is made by rows that
    /// data name either.
    pub all: Option<Form>,
    /// The form of these inputs.
    pub pinned: BTreeMap<String, Form>,
}

impl Formats {
    /// The form that is asked for an input.
    pub fn of(&self, input: &str) -> Option<Form> {
        self.pinned.get(input).copied().or(self.all)
    }
}

/// The criteria by which a plan is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// The quantity that is minimised.
    pub objective: Objective,
    /// Bytes that a site may hold, if there is a limit.
    pub memory: Option<u64>,
    /// True if values may rest on disk between two uses where a plan does not fit otherwise.
    pub spill: bool,
    /// How many times its even share of the arithmetic a site may do, from 1.
    pub balance: f64,
    /// Names of rules that are not used.
    pub disabled_rules: Vec<String>,
    /// The forms in which tensors may lie.
    pub formats: Formats,
}

impl Default for Criteria {
    fn default() -> Self {
        Criteria {
            objective: Objective::default(),
            memory: None,
            spill: false,
            balance: 1.25,
            disabled_rules: vec![],
            formats: Formats::default(),
        }
    }
}
