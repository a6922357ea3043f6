//! What a plan is chosen by: what is minimised, within which limits, with which rules.
//!
//! Must not know how it is chosen.
//!
//! ```text
//! fewest floats transferred, at most 1.25 times an even share of the work and 8589934592 bytes a site, without R2-5
//! ```

use crate::search::Objective;
use serde::{Deserialize, Serialize};

/// What a plan is chosen by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// What is minimised.
    pub objective: Objective,
    /// Bytes that a site may hold, if there is a limit.
    pub memory: Option<u64>,
    /// Whether values may rest on disk between two uses where a plan does not fit otherwise.
    pub spill: bool,
    /// How many times its even share of the arithmetic a site may do, from 1.
    pub balance: f64,
    /// Names of rules that are not used.
    pub disabled_rules: Vec<String>,
}

impl Default for Criteria {
    fn default() -> Self {
        Criteria {
            objective: Objective::default(),
            memory: None,
            spill: false,
            balance: 1.25,
            disabled_rules: vec![],
        }
    }
}
