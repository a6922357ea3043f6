//! Layouts: how every statement runs and where every tensor rests on a mesh of sites.
//!
//! A layout is what the search decides and what the translation to IA carries out. It speaks of tensors and their
//! dimensions, not of relations and their keys. Must not know costs.
//!
//! ```text
//! mesh 2x2   C = A·B: axis 0 cuts i, axis 1 cuts j;  A rests (dim 0, dim 1): gathered along axis 1 for the product
//! ```

use ein_plan::{IndexId, Mesh};

/// The role of one axis of the mesh for a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorRole {
    /// All coordinates hold the same.
    Every,
    /// This dimension is cut along the axis.
    Cut(u32),
    /// Each coordinate holds an addend (a carrier, to be combined with the statement's own reduction).
    Partial,
    /// Only coordinate 0 holds it.
    First,
    /// Each coordinate holds a window of it, as a statement reads it; never where a tensor rests.
    Window(WindowRead, WindowAxis),
}

/// A way in which statements read a tensor in windows; equal numbers mean equal windows of tensors of one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowRead(pub u32);

/// The role of one axis of the mesh for windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WindowAxis {
    /// All coordinates hold the same ones.
    Every,
    /// Only coordinate 0 holds them.
    First,
    /// They move with this index of those that the windows speak of.
    Index(IndexId),
}

/// The role of one axis of the mesh for a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StatementRole {
    /// All coordinates do the same work.
    Every,
    /// This index is cut along the axis.
    Index(IndexId),
    /// Only coordinate 0 works.
    First,
}

/// How a program is laid out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// The sites that take part.
    pub mesh: Mesh,
    /// By tensor: what each axis does to its statement; empty for sources.
    pub statements: Vec<Vec<StatementRole>>,
    /// By tensor: what each axis does to it where it rests, that is where it waits for its readers; never
    /// [`TensorRole::Partial`]. What can be made anywhere is made where it is read; a source that rests at
    /// [`TensorRole::Every`] is loaded by every site.
    pub rests: Vec<Vec<TensorRole>>,
}

/// Returns the roles of axes that a statement needs of an operand's read, or gives as its result. `dim_of` is the
/// dimension that a cut index is (none: an operand is wanted whole, a result is partial).
pub fn roles(
    statement: &[StatementRole],
    dim_of: impl Fn(IndexId) -> Option<u32>,
    without: TensorRole,
) -> Vec<TensorRole> {
    let role = |role: &StatementRole| match role {
        StatementRole::Every => TensorRole::Every,
        StatementRole::First => TensorRole::First,
        StatementRole::Index(index) => dim_of(*index).map_or(without, TensorRole::Cut),
    };
    statement.iter().map(role).collect()
}

/// Returns whether what is placed so can be read as if it were placed otherwise, with nothing moved: along each axis
/// equal roles, or all coordinates hold it (each takes its slice).
pub fn satisfies(actual: &[TensorRole], required: &[TensorRole]) -> bool {
    let mut pairs = actual.iter().zip(required);
    pairs.all(|(actual, required)| actual == required || *actual == TensorRole::Every)
}

impl Layout {
    /// Makes neighbouring axes one that always play the same role.
    #[must_use]
    pub fn coalesced(mut self) -> Layout {
        let mut axis = 1;
        while axis < self.mesh.axes.len() {
            let statements = self.statements.iter().filter(|roles| !roles.is_empty());
            let same = statements.clone().all(|r| r[axis - 1] == r[axis])
                && self.rests.iter().all(|r| r[axis - 1] == r[axis]);
            if !same {
                axis += 1;
                continue;
            }
            self.mesh.axes[axis - 1] *= self.mesh.axes[axis];
            self.mesh.axes.remove(axis);
            for roles in self.statements.iter_mut().filter(|r| !r.is_empty()) {
                roles.remove(axis);
            }
            for roles in &mut self.rests {
                roles.remove(axis);
            }
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_that_do_the_same_are_one() {
        let cut = |dims: [u32; 3]| dims.map(TensorRole::Cut).to_vec();
        let layout = |rests: Vec<Vec<TensorRole>>| Layout {
            mesh: Mesh {
                axes: vec![2, 3, 5],
            },
            statements: vec![vec![], vec![StatementRole::Every; 3]],
            rests,
        };
        let one = layout(vec![cut([0, 0, 0]), cut([1, 1, 1])]).coalesced();
        assert_eq!(one.mesh.axes, [30]);
        assert_eq!(one.statements, [vec![], vec![StatementRole::Every]]);
        let two = layout(vec![cut([0, 0, 0]), cut([1, 1, 0])]).coalesced();
        assert_eq!(two.mesh.axes, [6, 5]);
        assert_eq!(two.rests[1], [TensorRole::Cut(1), TensorRole::Cut(0)]);
    }
}
