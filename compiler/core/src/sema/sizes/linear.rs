//! Affine forms over indices, with sizes as coefficients.
//!
//! Must not know expressions.
//!
//! ```text
//! 2*y + r - 1   =>   constant -1, y: 2, r: 1
//! ```

use crate::sema::{expressions::arena::VarId, sizes::size::Size};
use std::collections::BTreeMap;

/// `constant + Σ coefficient · index`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub(crate) constant: Size,
    pub(crate) terms: BTreeMap<VarId, Size>,
}

impl Linear {
    /// A form without indices.
    pub(crate) fn constant(constant: Size) -> Linear {
        Linear {
            constant,
            terms: BTreeMap::new(),
        }
    }

    /// The form and another one times a factor, if both can be added and multiplied.
    pub(crate) fn plus(&self, other: &Linear, factor: &Size) -> Option<Linear> {
        let mut sum = self.clone();
        sum.constant = sum
            .constant
            .plus(&other.constant.times(factor).ok()?)
            .ok()?;
        for (var, coefficient) in &other.terms {
            let entry = sum.terms.entry(*var).or_insert_with(|| Size::number(0));
            *entry = entry.plus(&coefficient.times(factor).ok()?).ok()?;
        }
        sum.terms
            .retain(|_, coefficient| coefficient.known() != Some(0));
        Some(sum)
    }
}
