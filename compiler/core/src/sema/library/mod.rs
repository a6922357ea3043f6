//! Library operations such as `solve`, `qr` and `sort`: their operands, the sizes of their results, and the statements that they become.
//!
//! Must not know how anything is computed.
//!
//! ```text
//! q, r = qr(A)   =>   qr.1: [i1] qr(A[:1, :2], i1)
//! ```

pub(crate) mod check;
pub(crate) mod operands;
pub(crate) mod operations;
pub(crate) mod statements;
