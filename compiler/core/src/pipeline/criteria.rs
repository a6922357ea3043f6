//! The criteria by which a plan is chosen: the quantity that is minimised, within which limits, with which rules.
//!
//! Must not know how it is chosen.
//!
//! ```text
//! fewest floats transferred, at most 1.25 times an even share of the work and 8589934592 bytes a site, without R2-5
//! ```

use crate::search::Objective;
use serde::{Deserialize, Serialize};

/// The forms in which tensors may lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Formats {
    /// A tensor whose file lists few elements is taken as a list where that is shorter.
    #[default]
    Auto,
    /// Every tensor has all its elements.
    Dense,
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
