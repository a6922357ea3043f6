//! The terms in which transfers are priced: placements on a mesh, the tensor that moves, and the price.
//!
//! Must not know how a price is found, programs or statements.
//!
//! ```text
//! mesh 2x3, f32[20, 30] from (Cut(0), Every) to (Every, Every): so many floats, words and messages
//! ```

use super::mesh::AXES;
use crate::ia::layout::TensorRole;
use ein_plan::{Mesh, Quotient};

/// A placement on a mesh of at most [`AXES`] axes; missing axes have one coordinate and are [`TensorRole::Every`].
pub type Roles = [TensorRole; AXES];

/// The counts of a mesh's axes, 1 for those that it does not have.
pub type Counts = [u32; AXES];

/// A tensor, or a part of one, that is moved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TransferItem<'a> {
    /// Extents of the whole tensor.
    pub shape: &'a [u64],
    /// Columns of an addend, for reductions that do not split into single numbers.
    pub columns: f64,
    /// The windows that roles speak of.
    pub windows: &'a [ReadWindows],
}

/// The cost of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Move {
    /// Floats, as the thesis counts them: over all sites, those that stay where they are included.
    pub transfer: f64,
    /// Words received by the busiest site.
    pub words: f64,
    /// Messages received by the busiest site.
    pub messages: f64,
    /// The part of them that comes from other nodes.
    pub far: Far,
}

/// The part of a conversion that goes from node to node; nothing where it is not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Far {
    /// Words that the busiest site receives from other nodes.
    pub words: f64,
    /// Messages that it receives from there.
    pub messages: f64,
    /// Words that the sites of the busiest node receive from other nodes, together.
    pub words_of_node: f64,
}

impl Move {
    /// So many times as much.
    #[must_use]
    pub fn times(self, times: f64) -> Move {
        Move {
            transfer: self.transfer * times,
            words: self.words * times,
            messages: self.messages * times,
            far: Far {
                words: self.far.words * times,
                messages: self.far.messages * times,
                words_of_node: self.far.words_of_node * times,
            },
        }
    }
}

/// The counts of a mesh.
pub fn counts(mesh: &Mesh) -> Counts {
    let mut counts = [1; AXES];
    for (count, axis) in counts.iter_mut().zip(&mesh.axes) {
        *count = *axis;
    }
    counts
}

/// A placement with the axes that the mesh does not have.
pub fn padded(roles: &[TensorRole]) -> Roles {
    let mut all = [TensorRole::Every; AXES];
    for (role, given) in all.iter_mut().zip(roles) {
        *role = *given;
    }
    all
}

/// Returns whether a placement is one of windows.
pub fn is_windowed(roles: Roles) -> bool {
    roles
        .iter()
        .any(|role| matches!(role, TensorRole::Window(..)))
}

/// The windows of a read, in terms of indices of their own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReadWindows {
    /// Extent of each index.
    pub extents: Vec<u64>,
    /// By dimension: the positions at which it is read; none where it is wanted whole.
    pub dims: Vec<Vec<Quotient>>,
}

/// Into how many pieces a placement cuts a dimension.
pub fn pieces(counts: Counts, roles: Roles, dim: u32) -> u64 {
    let cut = |(count, role): (u32, TensorRole)| match role {
        TensorRole::Cut(d) if d == dim => u64::from(count),
        _ => 1,
    };
    counts.into_iter().zip(roles).map(cut).product()
}
