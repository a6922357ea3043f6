//! Where a local step needs its inputs, against where they are.
//!
//! A local step makes, at each site, the tuples that the result's placement gives that site. So every input
//! tuple of such a tuple must be there. The two sides are two types, [`Required`] and [`Actual`], with one
//! [`satisfies`]. Both speak of the coordinates that result and input have in common. Must not know what a step
//! computes.
//!
//! ```text
//! it needs r1 where its own tuples are, {i: 10/4} @ PART(i); but r1 is {i: 10/4, k: 6/2} @ PART(k)
//! ```

use crate::relation::{Placement, RelationType};

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

/// Mappings that differ in form are compared on at most this many points.
const MOST_POINTS: u64 = 1 << 20;

/// Whether the input is wherever the result needs it. All key maps are in range.
pub fn satisfies(actual: &Actual<'_>, required: &Required<'_>, sites: u32) -> bool {
    let (Placement::Part(have), Placement::Part(want)) =
        (&actual.kind.placement, &required.result.placement)
    else {
        return sites == 1 || actual.kind.placement == Placement::All;
    };
    let cut = |dims: &[u32], keys: &[u32]| -> Vec<u32> {
        let coordinates = dims.iter().map(|d| keys[*d as usize]);
        // A coordinate with one value does not take part in the mapping.
        coordinates
            .filter(|c| required.coordinates[*c as usize] != Coordinate::Below(1))
            .collect()
    };
    let (have, want) = (cut(have, &actual.keys), cut(want, &required.keys));
    let fixed = |c: &u32| matches!(required.coordinates[*c as usize], Coordinate::Only(_));
    if have == want && !have.iter().any(fixed) {
        return true;
    }
    // Other forms may still be the same mapping, for instance where all tuples fall to one site.
    let mut free: Vec<u32> = have.into_iter().chain(want).filter(|c| !fixed(c)).collect();
    free.sort_unstable();
    free.dedup();
    let count = free
        .iter()
        .try_fold(1u64, |n, c| match required.coordinates[*c as usize] {
            Coordinate::Below(pieces) => n.checked_mul(u64::from(pieces)),
            Coordinate::Only(_) => Some(n),
        });
    match count {
        Some(count) if count <= MOST_POINTS => (0..count).all(|number| {
            let point = point(&required.coordinates, &free, number);
            let at =
                |keys: &[u32]| -> Vec<u32> { keys.iter().map(|c| point[*c as usize]).collect() };
            actual.kind.site(&at(&actual.keys), sites)
                == required.result.site(&at(&required.keys), sites)
        }),
        _ => false,
    }
}

/// Point number `number` of the free coordinates; the others are their only value, or 0.
fn point(coordinates: &[Coordinate], free: &[u32], mut number: u64) -> Vec<u32> {
    let mut point: Vec<u32> = coordinates
        .iter()
        .map(|c| match c {
            Coordinate::Only(value) => *value,
            Coordinate::Below(_) => 0,
        })
        .collect();
    for c in free.iter().rev() {
        if let Coordinate::Below(pieces) = coordinates[*c as usize] {
            point[*c as usize] = (number % u64::from(pieces)) as u32;
            number /= u64::from(pieces);
        }
    }
    point
}
