//! The order of values, by insertion.
//!
//! Must not know programs.
//!
//! ```text
//! order of 3 NaN 1 3   =>   2 0 3 1
//! ```

use ein_plan::{DType, Scalar};
use std::cmp::Ordering;

/// The numbers of values in order, equal ones in their own; NaN counts as the largest.
pub(super) fn order(values: &[Scalar], stored: DType, descends: bool) -> Vec<usize> {
    let compare = |a: Scalar, b: Scalar| match (a, b) {
        // The bits of u64.
        (Scalar::Int(a), Scalar::Int(b)) if stored == DType::U64 => (a as u64).cmp(&(b as u64)),
        (Scalar::Int(a), Scalar::Int(b)) => a.cmp(&b),
        _ => {
            let (a, b) = (a.as_f64(), b.as_f64());
            a.partial_cmp(&b).unwrap_or(a.is_nan().cmp(&b.is_nan()))
        }
    };
    let mut order: Vec<usize> = vec![];
    // Insertion: behind everything that is not to stand behind it.
    for (number, value) in values.iter().enumerate() {
        let after = match descends {
            false => Ordering::Greater,
            true => Ordering::Less,
        };
        let at = order
            .iter()
            .position(|o| compare(values[*o], *value) == after);
        order.insert(at.unwrap_or(order.len()), number);
    }
    order
}
