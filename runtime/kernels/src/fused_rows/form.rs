//! The loops of a member of a sweep that need no program.
//!
//! Must not know blocks.
//!
//! ```text
//! [n] max a0[n, d]   rows        [n, k] sum (a0[n, d] - a1[k, d])^2   pairs        [n] sum exp(a0[n, d])   neither
//! ```

use crate::pairwise_reduction::{PairwiseReduction, leaves_to_blas};
use crate::rows::Rows;
use ein_plan::schedule::access::Place;
use ein_plan::{Kernel, LoopKind};

/// Loops over elements as they lie.
pub(super) enum Form {
    Pairwise(PairwiseReduction),
    Rows(Rows),
}

impl Form {
    /// The loops of a kernel over `ranges`, its operands lying at `places`, if they are such.
    pub(super) fn of(
        kind: &LoopKind,
        kernel: &Kernel,
        ranges: &[(i64, i64)],
        places: &[Place],
    ) -> Option<Form> {
        match kind {
            LoopKind::Pairwise(form) if leaves_to_blas(form) => None,
            LoopKind::Pairwise(form) => {
                let pairs = PairwiseReduction::of(kernel, form, ranges, places);
                Some(Form::Pairwise(pairs.expect("the loops are of this kernel")))
            }
            LoopKind::RowReduce(_) => {
                let rows = Rows::of(kernel, ranges, places);
                Some(Form::Rows(rows.expect("the loops are of this kernel")))
            }
            _ => None,
        }
    }
}
