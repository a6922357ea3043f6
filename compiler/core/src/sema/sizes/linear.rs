//! Affine forms over indices, with sizes as coefficients.
//!
//! Must not know expressions.
//!
//! ```text
//! 2*y + r - 1   =>   constant -1, y: 2, r: 1
//! ```

use crate::sema::{expressions::arena::VarId, sizes::size::Size};

/// `constant + Σ coefficient · index`.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub(crate) constant: Size,
    pub(crate) terms: Terms,
}

impl Linear {
    /// A form without indices.
    pub(crate) fn constant(constant: Size) -> Linear {
        Linear {
            constant,
            terms: Terms::default(),
        }
    }

    /// The form and another one times a factor, if both can be added and multiplied.
    pub(crate) fn plus(&self, other: &Linear, factor: &Size) -> Option<Linear> {
        let mut sum = self.clone();
        sum.constant = sum
            .constant
            .plus(&other.constant.times(factor).ok()?)
            .ok()?;
        for (var, coefficient) in other.terms.iter() {
            sum.terms.add(*var, coefficient.times(factor).ok()?)?;
        }
        (sum.terms.0).retain(|(_, coefficient)| coefficient.known() != Some(0));
        Some(sum)
    }
}

/// Coefficients by index, ascending. There are few of them in each of very many forms, so they lie in a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Terms(Vec<(VarId, Size)>);

impl Terms {
    /// One index, once.
    pub(crate) fn index(var: VarId) -> Terms {
        Terms(vec![(var, Size::number(1))])
    }

    /// Adds to the coefficient of an index, if that is possible.
    fn add(&mut self, var: VarId, more: Size) -> Option<()> {
        match self.0.binary_search_by_key(&var, |(var, _)| *var) {
            Ok(at) => self.0[at].1 = self.0[at].1.plus(&more).ok()?,
            Err(at) => self.0.insert(at, (var, more)),
        }
        Some(())
    }

    pub(crate) fn remove(&mut self, var: &VarId) {
        self.0.retain(|(other, _)| other != var);
    }

    pub(crate) fn get(&self, var: &VarId) -> Option<&Size> {
        let at = self.0.binary_search_by_key(var, |(var, _)| *var).ok()?;
        Some(&self.0[at].1)
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &VarId> {
        self.0.iter().map(|(var, _)| var)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&VarId, &Size)> {
        self.0.iter().map(|(var, coefficient)| (var, coefficient))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
