//! Where a local step needs its inputs, against where they are.
//!
//! A local step makes, at each site, the tuples that the result's placement gives that site. So every input
//! tuple of such a tuple must be there. The two sides are two types, [`Required`] and [`Actual`], with one
//! [`satisfies`]. Both speak of the coordinates that result and input have in common; equal coordinates are of key
//! dimensions that are cut alike, so on each axis it is enough to compare roles. Must not know what a step
//! computes.
//!
//! ```text
//! it needs r1 where its own tuples are, {i: 10/4} @ PART(i); but r1 is {i: 10/4, k: 6/2} @ PART(k)
//! ```

use crate::mesh::Mesh;
use crate::relation::{AxisRole, RelationType};

/// A coordinate that result and input have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinate {
    /// Any number below this one.
    Below(u32),
    /// This number only.
    Only(u32),
}

/// An input must be wherever the result is: `keys[d]` is the coordinate of the result's key dimension `d`.
pub struct Required<'a> {
    /// The result's type.
    pub result: &'a RelationType,
    /// Its key dimensions as coordinates.
    pub keys: Vec<u32>,
    /// The coordinates.
    pub coordinates: Vec<Coordinate>,
}

/// Where an input is: `keys[d]` is the coordinate of its key dimension `d`.
pub struct Actual<'a> {
    /// The input's type.
    pub kind: &'a RelationType,
    /// Its key dimensions as coordinates.
    pub keys: Vec<u32>,
}

/// What one axis says of a tuple, in terms of the common coordinates.
#[derive(PartialEq, Eq)]
enum Along {
    Everywhere,
    At(u32),
    By(u32),
}

/// Whether the input is wherever the result needs it. All key maps are in range.
pub fn satisfies(actual: &Actual<'_>, required: &Required<'_>, mesh: &Mesh) -> bool {
    (0u8..).zip(&mesh.axes).all(|(axis, count)| {
        let along =
            |kind: &RelationType, keys: &[u32]| match kind.placement.roles.get(usize::from(axis)) {
                Some(AxisRole::Key(number)) => {
                    let dim = &kind.keys[*number as usize];
                    let at =
                        |coordinate| Along::At(dim.digit(dim.block(coordinate, mesh), axis, mesh));
                    match required.coordinates[keys[*number as usize] as usize] {
                        Coordinate::Only(value) => at(value),
                        // A coordinate with one value is in block 0.
                        Coordinate::Below(1) => at(0),
                        Coordinate::Below(_) => Along::By(keys[*number as usize]),
                    }
                }
                Some(AxisRole::First) => Along::At(0),
                Some(AxisRole::Every) | None => Along::Everywhere,
            };
        let have = along(actual.kind, &actual.keys);
        let want = along(required.result, &required.keys);
        *count == 1 || have == Along::Everywhere || have == want
    })
}
