//! The values of the variables of a placement network.
//!
//! Must not know prices.
//!
//! ```text
//! run C {27 choices}, rest A {64 places}
//! ```

use super::choice::Choice;
use super::transfer::Roles;
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::rc::Rc;

/// The values that a variable may take; equal numbers mean equal lists.
#[derive(Clone, Debug)]
pub enum Domain {
    /// Ways to run.
    Runs(Rc<Vec<Choice>>, u64),
    /// Places to rest.
    Places(Rc<Vec<Roles>>, u64),
}

impl Domain {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Domain::Runs(list, _) => list.len(),
            Domain::Places(list, _) => list.len(),
        }
    }

    /// Returns whether there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of the list.
    pub(super) fn number(&self) -> u64 {
        match self {
            Domain::Runs(_, number) | Domain::Places(_, number) => *number,
        }
    }

    /// The ways to run, where it has them.
    pub(super) fn runs(&self) -> &[Choice] {
        match self {
            Domain::Runs(list, _) => list,
            Domain::Places(..) => &[],
        }
    }

    /// The places to rest, where it has them.
    pub(super) fn places(&self) -> &[Roles] {
        match self {
            Domain::Places(list, _) => list,
            Domain::Runs(..) => &[],
        }
    }
}

/// The different placements in which a run reads a tensor.
pub(super) fn wanted(choice: &Choice, numbers: &[usize]) -> Vec<Roles> {
    let mut needs: Vec<Roles> = numbers.iter().map(|number| choice.needs[*number]).collect();
    needs.sort_unstable();
    needs.dedup();
    needs
}

/// The different items in the order in which they first stand, and for each item which of them it is.
pub(super) fn distinct<T: Eq + Hash + Clone>(
    items: impl Iterator<Item = T>,
) -> (Vec<usize>, Vec<T>) {
    let (mut numbers, mut found) = (FxHashMap::default(), vec![]);
    let of = items.map(|item| {
        *numbers.entry(item).or_insert_with_key(|item| {
            found.push(item.clone());
            found.len() - 1
        })
    });
    (of.collect(), found)
}
