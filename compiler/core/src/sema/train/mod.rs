//! `train` blocks: their lines, and the programs for a step, a validation and the evaluation that they become.
//!
//! Must not know plans, sites or how rows are read.
//!
//! ```text
//! train { loss: ce; data: (X, y) over N by 64 }, N = 100   =>   steps with 64 and with 36 rows
//! ```

pub(crate) mod block;
pub(crate) mod data;
pub(crate) mod data_override;
pub(crate) mod lines;
pub mod patterns;
pub(crate) mod programs;
pub(crate) mod rates;
pub(crate) mod rows;
pub(crate) mod rules;
pub(crate) mod schedules;
pub(crate) mod settings;
pub(crate) mod step;
pub(crate) mod strategy;
pub(crate) mod subnet_steps;
pub mod training;
pub(crate) mod update;
