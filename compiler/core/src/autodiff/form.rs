//! Affine forms over the indices of a statement and the places of what it reads.
//!
//! Must not know adjoints.
//!
//! ```text
//! x[2 * i + r - 1] at place t   ->   2 · i + r - 1 = t
//! ```

use std::collections::BTreeMap;

/// An index, on either side of a read.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Symbol {
    /// A dimension of what is read.
    Place(usize),
    /// An index of the statement.
    Index(usize),
}

/// A sum of symbols with their coefficients, and a constant.
#[derive(Clone, Default)]
pub(super) struct Form {
    pub(super) constant: i64,
    pub(super) terms: BTreeMap<Symbol, i64>,
}

impl Form {
    pub(super) fn symbol(symbol: Symbol) -> Form {
        Form {
            constant: 0,
            terms: BTreeMap::from([(symbol, 1)]),
        }
    }

    /// Positions wrap as the run's do.
    pub(super) fn plus(mut self, other: &Form, factor: i64) -> Form {
        self.constant = (other.constant.wrapping_mul(factor)).wrapping_add(self.constant);
        for (symbol, coefficient) in &other.terms {
            let entry = self.terms.entry(*symbol).or_insert(0);
            *entry = entry.wrapping_add(coefficient.wrapping_mul(factor));
        }
        self.terms.retain(|_, coefficient| *coefficient != 0);
        self
    }

    /// The indices of the statement with their coefficients.
    pub(super) fn indices(&self) -> impl Iterator<Item = (usize, i64)> {
        self.terms
            .iter()
            .filter_map(|(symbol, factor)| match symbol {
                Symbol::Index(index) => Some((*index, *factor)),
                Symbol::Place(_) => None,
            })
    }
}
