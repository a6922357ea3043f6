//! What relations and kernels of a plan are called, and where a step was written.
//!
//! Must not know steps.
//!
//! ```text
//! r4 x: {} f32[8] @ ALL = join k0(r1{}) over [_]   // model.ein:3      relation 4, kernel 0, line 3 of model.ein
//! ```

use serde::{Deserialize, Serialize};

/// A relation of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct RelationId(pub u32);

/// A kernel of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct KernelId(pub u32);

/// A place in the user's sources: bytes `start..end` of file number `file`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    /// Which file of the program.
    pub file: u32,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
    /// Line number, from 1.
    pub line: u32,
}
