//! The form of a rule: a row of data and a function that applies it.
//!
//! A row says in text what it is and has at most two ways of being applied: towards the normal form of proofs (moves at the leaves,
//! kernels composed) and away from it (the search for something cheaper). Must not know which rows there are.
//!
//! ```text
//! Row { info: R2-2, simplify: push a filter through a move, expand: pull it out }
//! ```

use super::graph::{Tree, View};
use super::language::Term;
use crate::rules::RuleInfo;
use egg::Id;

/// The two sides of an application of a row.
pub type Sides = (Tree, Tree);

/// Finds the applications of a row at one term of a class.
pub type Find = fn(&View<'_>, Id, &Term, &mut Vec<Sides>);

/// A rule that can be applied.
#[derive(Clone, Copy)]
pub struct Row {
    /// The description of the rule.
    pub info: RuleInfo,
    /// Towards the normal form.
    pub simplify: Option<Find>,
    /// Away from it.
    pub expand: Option<Find>,
}
