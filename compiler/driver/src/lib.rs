//! Ties files, data, compiler core and runtime together; shared by `einc` and every built program.
//!
//! Must not know how executables are made.
//!
//! ```text
//! load -> check -> plan -> run -> report
//! ```

#![allow(
    clippy::result_large_err,
    reason = "a run has one error, and it ends the run"
)]

pub mod arguments;
pub mod bind;
pub mod bundle;
pub mod calibration;
pub mod devices;
mod disk;
pub mod environment;
pub mod exit;
pub mod failure;
mod forms;
pub mod infer;
pub mod interrupt;
pub mod launcher;
pub mod load;
pub mod machine;
pub mod machine_file;
pub mod planned;
pub mod prediction;
pub mod profile;
pub mod program;
pub mod purpose;
pub mod records;
pub mod render;
pub mod report;
pub mod requests;
pub mod run;
pub mod session;
pub mod settings;
pub mod shims;
pub mod target;
pub mod text;
pub mod training;
pub mod weights;
