//! Where the tuples of a relation are on a mesh: one role an axis, and what a move from one placement to another costs.
//!
//! A role of a cut axis lists key dimensions. One names the coordinate by the axis' digit of its block (the digits of its axes are
//! independent, so it may cut several); several do by their part of the key, linearised in that order and cut into balanced blocks;
//! none at all is the first coordinate. Must not know terms or rules.
//!
//! ```text
//! mesh 2x2   ⟨0⟩ × every: key dimension 0 cut along axis 0, copies along axis 1;   ⟨⟩ × every: only coordinate 0 of axis 0 holds it
//! ```

use super::keys::KeyRange;
use ein_plan::{Mesh, Reduction};
use std::fmt;

/// The role of one axis of the mesh for a relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Every coordinate holds the same tuples.
    Every,
    /// Tuples that agree on these key dimensions share a coordinate; none: all are at the first.
    Keys(Vec<u32>),
    /// Every coordinate holds an addend of every tuple: a carrier, to be combined by the reduction.
    Partial(Reduction),
}

/// One role an axis.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Placement(pub Vec<Role>);

impl Placement {
    /// ALL on a mesh of so many axes.
    pub fn every(axes: usize) -> Placement {
        Placement(vec![Role::Every; axes])
    }

    /// Returns whether every site holds every tuple.
    pub fn is_every(&self) -> bool {
        self.0.iter().all(|role| *role == Role::Every)
    }

    /// Returns whether some axis holds addends.
    pub fn is_partial(&self) -> bool {
        self.0.iter().any(|role| matches!(role, Role::Partial(_)))
    }

    /// Normalises the placement: an axis of one coordinate does nothing.
    #[must_use]
    pub fn on(&self, mesh: &Mesh) -> Placement {
        let roles = self.0.iter().zip(&mesh.axes);
        let role = |(role, count): (&Role, &u32)| match count {
            1 => Role::Every,
            _ => role.clone(),
        };
        Placement(roles.map(role).collect())
    }

    /// Returns whether it is a placement of a relation with these key dimensions on this mesh, written as [`Placement::on`] writes it. A key
    /// dimension cuts by itself only along its own axes, where its digits are independent.
    pub fn fits(&self, keys: &[KeyRange], mesh: &Mesh) -> bool {
        let list = |role: &Role| match role {
            Role::Keys(dims) => dims.clone(),
            _ => vec![],
        };
        let lists: Vec<Vec<u32>> = self.0.iter().map(list).collect();
        let used = |dim: u32| {
            lists
                .iter()
                .flatten()
                .filter(|other| **other == dim)
                .count()
        };
        // A key dimension cuts several axes only by its digits.
        let proper = (0u8..).zip(&lists).all(|(axis, dims)| {
            dims.iter().all(|dim| {
                let key = keys.get(*dim as usize);
                key.is_some_and(|key| match dims.len() {
                    1 => key.axes.contains(&axis),
                    _ => used(*dim) == 1,
                })
            })
        });
        let alone = lists
            .iter()
            .all(|dims| dims.len() < 2 || dims.iter().all(|dim| used(*dim) == 1));
        self.0.len() == mesh.axes.len() && self.on(mesh) == *self && proper && alone
    }

    /// Returns whether the site holds the tuple with this key (an addend of it, along partial axes).
    pub fn holds(&self, key: &[u32], keys: &[KeyRange], mesh: &Mesh, site: u32) -> bool {
        site < mesh.sites()
            && self.0.iter().enumerate().all(|(axis, role)| match role {
                Role::Every | Role::Partial(_) => true,
                Role::Keys(dims) => {
                    coordinate(dims, key, keys, mesh, axis) == mesh.coordinate(site, axis)
                }
            })
    }

    /// Returns whether tuples can be moved from here to there: an axis becomes partial by computing, never by moving.
    pub fn moves_to(&self, to: &Placement) -> bool {
        let mut axes = self.0.iter().zip(&to.0);
        axes.all(|(from, to)| from == to || !matches!(to, Role::Partial(_)))
    }

    /// Returns whether what is here can be read as if it were there, each site leaving out what it does not need.
    pub fn slices_to(&self, to: &Placement) -> bool {
        let mut axes = self.0.iter().zip(&to.0);
        axes.all(|(from, to)| from == to || (*from == Role::Every && self.moves_to_role(to)))
    }

    fn moves_to_role(&self, to: &Role) -> bool {
        !matches!(to, Role::Partial(_))
    }
}

/// The coordinate along an axis of a key: the axis' digit of the block of one key dimension, or the balanced block of the linearised
/// part of several.
fn coordinate(dims: &[u32], key: &[u32], keys: &[KeyRange], mesh: &Mesh, axis: usize) -> u32 {
    let count = u64::from(mesh.axes[axis]);
    if let [dim] = dims {
        let range = &keys[*dim as usize];
        let number = u64::from(key[*dim as usize]) * range.blocks(mesh);
        let block = number / u64::from(range.pieces);
        let less = range
            .axes
            .iter()
            .rev()
            .take_while(|a| usize::from(**a) != axis);
        let faster: u64 = less
            .map(|a| u64::from(mesh.axes[usize::from(*a)]))
            .product();
        return (block / faster % count) as u32;
    }
    let (mut number, mut total) = (0u64, 1u64);
    for dim in dims {
        let pieces = u64::from(keys[*dim as usize].pieces);
        number = number * pieces + u64::from(key[*dim as usize]);
        total *= pieces;
    }
    let (short, longer) = (total / count, total % count);
    let head = longer * (short + 1);
    let block = if number < head {
        number / (short + 1)
    } else {
        longer + (number - head) / short
    };
    block as u32
}

impl KeyRange {
    /// Number of blocks in which its axes see it.
    pub fn blocks(&self, mesh: &Mesh) -> u64 {
        let counts = self.axes.iter().map(|axis| mesh.axes[usize::from(*axis)]);
        counts.map(u64::from).product()
    }
}

/// Floats that a move of a relation of `floats` values costs: the paper's prices, extended to meshes; `None` where there is no
/// such move. Copies that are there already are free.
///
/// ```text
/// one axis of s: BCAST f·s, SHUF f;  partial to cut: s·f (a reduce-scatter);  partial to every: s·f + f·s
/// ```
pub fn transfer(from: &Placement, to: &Placement, mesh: &Mesh, floats: u128) -> Option<u128> {
    if !from.moves_to(to) {
        return None;
    }
    // What every coordinate holds, each can slice.
    let sliced: Vec<&Role> = from
        .0
        .iter()
        .zip(&to.0)
        .map(|(from, to)| if *from == Role::Every { to } else { from })
        .collect();
    if sliced.iter().zip(&to.0).all(|(from, to)| **from == *to) {
        return Some(0);
    }
    let product = |of: &dyn Fn(&Role, &Role) -> bool| -> u128 {
        let axes = sliced.iter().zip(&to.0).zip(&mesh.axes);
        axes.filter(|((from, to), _)| of(from, to))
            .fold(1, |n, (_, count)| n.saturating_mul(u128::from(*count)))
    };
    let partial = |role: &Role| matches!(role, Role::Partial(_));
    let reduced = product(&|from, to| partial(from) && !partial(to));
    let copies = product(&|_, to| *to == Role::Every);
    let kept = product(&|from, to| *from == Role::Every && *to == Role::Every);
    let addends = product(&|from, to| partial(from) && partial(to));
    let again = sliced
        .iter()
        .zip(&to.0)
        .any(|(from, to)| *to == Role::Every && **from != Role::Every);
    let spread = floats.saturating_mul(copies).saturating_mul(addends);
    if reduced == 1 {
        return Some(spread);
    }
    let first = reduced
        .saturating_mul(floats)
        .saturating_mul(addends)
        .saturating_mul(if again { 1 } else { kept });
    Some(first.saturating_add(if again { spread } else { 0 }))
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Role::Every => f.write_str("every"),
            Role::Keys(dims) => {
                let dims: Vec<String> = dims.iter().map(u32::to_string).collect();
                write!(f, "⟨{}⟩", dims.join(","))
            }
            Role::Partial(reduction) => write!(f, "partial {}", reduction.name()),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_every() {
            return f.write_str("ALL");
        }
        let roles: Vec<String> = self.0.iter().map(Role::to_string).collect();
        f.write_str(&roles.join(" × "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_the_papers_on_one_axis() {
        let mesh = Mesh::row(5);
        let at = |role: Role| Placement(vec![role]);
        let cost = |from: Role, to: Role| transfer(&at(from), &at(to), &mesh, 100);
        let keys = |dim: u32| Role::Keys(vec![dim]);
        let partial = Role::Partial(Reduction::Sum);
        assert_eq!(cost(keys(0), Role::Every), Some(500));
        assert_eq!(cost(keys(0), keys(1)), Some(100));
        assert_eq!(cost(keys(0), keys(0)), Some(0));
        assert_eq!(cost(Role::Every, keys(0)), Some(0));
        assert_eq!(cost(partial.clone(), keys(0)), Some(500));
        assert_eq!(cost(partial.clone(), Role::Every), Some(1000));
        assert_eq!(cost(keys(0), partial), None);
    }
}
