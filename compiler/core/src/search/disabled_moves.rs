//! The runs and conversions that disabled rules take from the search.
//!
//! The rules of placed relations say which plans are equal. Some of them are what a choice of the search rests on: without
//! CMM no product cuts what it sums over, without all-reduce addends are not added up everywhere at once, and so on. The
//! others say that moves may stand elsewhere in a plan; without them proofs are shorter of a step, the space is the same.
//! Must not know how rules are applied.
//!
//! ```text
//! --disable-rule CMM   C[i,j] = sum A[i,k] * B[k,j] on 2x2: no axis cuts k
//! ```

use super::choice::Run;
use super::problem::Statement;
use super::transfer::{Counts, Roles};
use crate::ia::layout::{StatementRole, TensorRole};

/// The rules that choices rest on, of those that are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisabledMoves {
    /// BMM: a product that cuts what one operand alone has, the other one broadcast.
    pub broadcast: bool,
    /// CMM: a product that cuts what it reduces.
    pub cross: bool,
    /// RMM: a product that cuts what each operand alone has.
    pub replicated: bool,
    /// R2-5: addends are added up where their pieces are wanted.
    pub scattered: bool,
    /// reduce-scatter: that along several axes.
    pub scattered_by_axes: bool,
    /// all-reduce: addends are added up everywhere.
    pub reduced: bool,
    /// all-gather: pieces cut along several axes are gathered.
    pub gathered_by_axes: bool,
    /// slice: what every site holds is read in part.
    pub sliced: bool,
}

impl DisabledMoves {
    /// Collects the moves that these disabled rules bar.
    pub fn by_rules(disabled: &[String]) -> DisabledMoves {
        let off = |name: &str| disabled.iter().any(|disabled| disabled == name);
        DisabledMoves {
            broadcast: off("BMM"),
            cross: off("CMM"),
            replicated: off("RMM"),
            scattered: off("R2-5"),
            scattered_by_axes: off("reduce-scatter"),
            reduced: off("all-reduce"),
            gathered_by_axes: off("all-gather"),
            sliced: off("slice"),
        }
    }

    /// Returns whether a statement may not run so. Only contractions of two operands are products.
    pub fn run(&self, statement: &Statement, run: Run) -> bool {
        let [left, right] = statement.reads.as_slice() else {
            return false;
        };
        if statement.rank == statement.extents.len() {
            return false;
        }
        let (mut cross, mut of_left, mut of_right) = (false, false, false);
        for role in run {
            let StatementRole::Index(index) = role else {
                continue;
            };
            let at = index.0 as usize;
            let (a, b) = (left.dims[at].is_some(), right.dims[at].is_some());
            cross |= at >= statement.rank;
            of_left |= at < statement.rank && a && !b;
            of_right |= at < statement.rank && b && !a;
        }
        self.cross && cross
            || self.replicated && of_left && of_right
            || self.broadcast && (of_left != of_right)
    }

    /// Returns whether a tensor may not go from one placement to another.
    pub fn conversion(&self, counts: Counts, from: Roles, to: Roles) -> bool {
        if *self == DisabledMoves::default() {
            return false;
        }
        let count = |chosen: &dyn Fn(TensorRole, TensorRole) -> bool| {
            let axes = from.into_iter().zip(to).zip(counts);
            axes.filter(|((from, to), count)| *count > 1 && chosen(*from, *to))
                .count()
        };
        use TensorRole::{Every, Partial};
        let cut = |role| matches!(role, TensorRole::Cut(_));
        let scattered = count(&|from, to| from == Partial && to != Partial && to != Every);
        let reduced = count(&|from, to| from == Partial && to == Every);
        let gathered = count(&|from, to| cut(from) && to == Every);
        let sliced = count(&|from, to| from == Every && to != Every);
        self.scattered && scattered > 0
            || self.scattered_by_axes && scattered > 1
            || self.reduced && reduced > 0
            || self.gathered_by_axes && gathered > 1
            || self.sliced && sliced > 0
    }
}
