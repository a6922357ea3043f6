//! Blocks of rounds as the checker builds them.
//!
//! Must not know how their text is read.
//!
//! ```text
//! repeat t < 9 { state x = 1.0; next x = x / 2 }   =>   block t of 9 rounds, state (t.x.initial, t.x.next)
//! ```

use crate::einsum::BlockId;
use crate::sema::{expressions::arena::TensorRef, sizes::size::Size};
use einc_diag::Span;

/// How many rounds a block makes at most.
#[derive(Clone, Debug)]
pub(crate) enum Rounds {
    /// A size.
    Size(Size),
    /// A scalar i64.
    Value(TensorRef),
    Unbounded,
}

/// A block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) parent: Option<BlockId>,
    pub(crate) bound: Rounds,
    pub(crate) until: Option<TensorRef>,
    /// The initial value of each state, and its `next`.
    pub(crate) states: Vec<(TensorRef, Option<TensorRef>)>,
    /// The collected slices, and which dimension of the whole counts the rounds.
    pub(crate) collected: Vec<(TensorRef, usize)>,
    pub(crate) span: Span,
}
