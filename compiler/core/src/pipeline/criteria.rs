//! The criteria by which a plan is chosen: the quantity that is minimised, within which limits, with which rules.
//!
//! Must not know how it is chosen.
//!
//! ```text
//! fewest floats transferred, at most 1.25 times an even share of the work and 8589934592 bytes a site, without R2-5
//! ```

use super::text::scaled;
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

/// The memory of GPUs, where kernels compute on these, and the host's beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuMemory {
    /// Bytes of a GPU's memory that a site may take, with what its kernels work in.
    pub limit: u64,
    /// Bytes of values that a site may let rest in the host's memory between two uses, if there is a limit.
    pub host: Option<u64>,
}

/// The criteria by which a plan is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Criteria {
    /// The quantity that is minimised.
    pub objective: Objective,
    /// Bytes that a site may hold in the memory that its kernels compute in, if there is a limit.
    pub memory: Option<u64>,
    /// The limits on the memory of GPUs, if `memory` is a part of it.
    pub gpu_memory: Option<GpuMemory>,
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
            gpu_memory: None,
            spill: false,
            balance: 1.25,
            disabled_rules: vec![],
            formats: Formats::default(),
        }
    }
}

impl Criteria {
    /// Returns true if values may rest between two uses where a plan does not fit otherwise.
    pub fn may_rest(&self) -> bool {
        self.spill || self.gpu_memory.is_some()
    }

    /// Returns the words for a limit on what a site may hold.
    pub fn limit_in_words(&self, limit: u64) -> String {
        let limit = scaled(limit, "B");
        match &self.gpu_memory {
            Some(gpu) => format!(
                "{limit} a site (`--gpu-memory` allows {}, and kernels work in the rest)",
                scaled(gpu.limit, "B")
            ),
            None => format!("{limit} a site"),
        }
    }

    /// Returns the option that limits what a site may hold.
    pub fn limit_option(&self) -> &'static str {
        match self.gpu_memory {
            Some(_) => "--gpu-memory",
            None => "--memory",
        }
    }
}
