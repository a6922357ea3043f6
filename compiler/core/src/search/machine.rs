//! The machine that a plan's seconds are counted on: rates of its sites, of the links inside its nodes and of those between nodes.
//!
//! Sites are numbered node by node, and by their coordinates with the last axis fastest, so which coordinates of an axis are in one node follows from
//! the mesh alone. The run time sends every value from the site that holds it straight to the one that wants it; a node's link to the others is
//! shared by its sites. Must not know placements or programs.
//!
//! ```text
//! mesh 4x8, 8 sites a node: of axis 0, 1 coordinate in a node and 4 nodes; of axis 1, 8 and 1
//! ```

use super::mesh::AXES;
use super::transfer::{Counts, Move, counts};
use crate::cost::Rates;
use ein_plan::Mesh;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The coefficients of the time that a plan takes: a linear model as in luo2021, section 7, with links of two levels.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimeModel {
    /// Of a site's arithmetic.
    pub compute: Rates,
    /// Between two sites of a node, or between any two where there is one node.
    pub node: Link,
    /// The other nodes, if there may be several.
    pub network: Option<Network>,
}

/// A link: seconds are those of messages and bytes that are received.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Link {
    /// Seconds a message.
    pub message: f64,
    /// Seconds a byte.
    pub byte: f64,
}

/// The nodes of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Sites of a node, at least 1; they have numbers in a row.
    pub sites: u32,
    /// A node's link to the others, which its sites share.
    pub link: Link,
}

impl TimeModel {
    /// Seconds of moving a tensor with elements of `width` bytes.
    pub fn of_move(&self, moved: &Move, width: f64) -> f64 {
        let seconds = |link: &Link, messages: f64, words: f64| {
            link.message * messages + link.byte * words * width
        };
        let far = &moved.far;
        let near = (
            (moved.messages - far.messages).max(0.0),
            (moved.words - far.words).max(0.0),
        );
        let across = self.network.map_or(0.0, |network| {
            seconds(&network.link, far.messages, far.words_of_node)
        });
        seconds(&self.node, near.0, near.1) + across
    }

    /// Seconds that no sensible plan of so many tensors is above, if they have so many floats and their arithmetic takes so long.
    pub fn most(&self, floats: f64, arithmetic: f64, tensors: usize, sites: u32) -> f64 {
        let across = self.network.map(|network| {
            let sharing = f64::from(network.sites.min(sites));
            (network.link.message, network.link.byte * sharing)
        });
        let (message, byte) = across.unwrap_or((0.0, 0.0));
        let (message, byte) = (message + self.node.message, byte + self.node.byte);
        floats * 8.0 * (byte + self.compute.touched)
            + arithmetic
            + tensors as f64 * (message + self.compute.tuple) * f64::from(sites)
    }

    /// How a mesh of these counts lies over the nodes; none where one node has all of it.
    pub fn levels(&self, counts: Counts) -> Option<Levels> {
        let network = self.network?;
        let total: u32 = counts.iter().product();
        (network.sites < total).then(|| Levels::new(counts, network.sites.max(1)))
    }

    /// By axis: how many of its coordinates are in one node; none where one node has the whole mesh.
    pub fn inside(&self, mesh: &Mesh) -> Option<Vec<u32>> {
        let levels = self.levels(counts(mesh))?;
        Some(levels.inside[..mesh.axes.len()].to_vec())
    }
}

/// How the axes of a mesh lie over nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Levels {
    /// Sites of a node.
    pub sites: u32,
    /// By axis: the coordinates in one node.
    pub inside: Counts,
    /// By axis: the nodes that a line of sites along it goes through, at most.
    pub across: Counts,
    /// By set of axes, each a bit: the groups of sites that differ along these alone.
    groups: [Groups; SETS],
}

/// Sets of axes.
const SETS: usize = 1 << AXES;

/// Groups of sites that differ along some axes alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Groups {
    /// Sites of a group.
    pub sites: f64,
    /// Those of them in the node of a site, itself included, where they are fewest.
    pub near: f64,
    /// The parts of their groups that sites do not have in their node, summed over the sites of the node for which that is most.
    pub far_of_node: f64,
}

impl Levels {
    pub(super) fn new(counts: Counts, sites: u32) -> Levels {
        let total: u32 = counts.iter().product();
        let (mut inside, mut across) = ([1; AXES], [1; AXES]);
        let mut stride = total;
        let mut strides = [1; AXES];
        for axis in 0..AXES {
            stride /= counts[axis];
            strides[axis] = stride;
            let starts = (0..total).filter(|site| (site / stride).is_multiple_of(counts[axis]));
            let nodes_of = |start: u32| {
                let line = (0..counts[axis]).map(|at| (start + at * stride) / sites);
                let mut nodes: Vec<u32> = line.collect();
                nodes.dedup();
                nodes.len() as u32
            };
            across[axis] = starts.map(nodes_of).max().unwrap_or(1);
            inside[axis] = counts[axis].div_ceil(across[axis]);
        }
        Levels {
            sites,
            inside,
            across,
            groups: std::array::from_fn(|set| groups(counts, strides, sites, set)),
        }
    }

    /// The groups of sites that differ along these axes alone.
    pub fn along(&self, axes: &[usize]) -> &Groups {
        &self.groups[axes.iter().fold(0, |set, axis| set | 1 << axis)]
    }

    /// Returns whether nothing changes if two axes of equal counts change places.
    pub fn alike(&self, one: usize, other: usize) -> bool {
        let swapped = |set: usize| {
            let (a, b) = (set >> one & 1, set >> other & 1);
            set & !(1 << one | 1 << other) | a << other | b << one
        };
        (self.inside[one], self.across[one]) == (self.inside[other], self.across[other])
            && (0..SETS).all(|set| self.groups[set] == self.groups[swapped(set)])
    }
}

/// The groups of a mesh's sites that differ along a set of axes alone.
fn groups(counts: Counts, strides: Counts, sites: u32, set: usize) -> Groups {
    let total: u32 = counts.iter().product();
    let along = |axis: &usize| set >> axis & 1 == 1;
    let axes = (0..AXES).filter(along);
    let size: u32 = axes.map(|axis| counts[axis]).product();
    // All sites of a group have this in common.
    let group = |site: u32| -> u32 {
        let fixed = (0..AXES).filter(|axis| !along(axis));
        let fixed = fixed.map(|axis| site / strides[axis] % counts[axis] * strides[axis]);
        fixed.sum()
    };
    let (mut near, mut far_of_node) = (size, 0.0);
    let mut members: FxHashMap<u32, u32> = FxHashMap::default();
    for node in 0..total.div_ceil(sites) {
        members.clear();
        for site in node * sites..total.min((node + 1) * sites) {
            *members.entry(group(site)).or_default() += 1;
        }
        near = members.values().copied().min().unwrap_or(near).min(near);
        // Each of n sites lacks what the others of its group have elsewhere.
        let parts = members
            .values()
            .map(|n| u64::from(*n) * u64::from(size - n));
        far_of_node = f64::max(far_of_node, parts.sum::<u64>() as f64 / f64::from(size));
    }
    Groups {
        sites: size.into(),
        near: near.into(),
        far_of_node,
    }
}

/// The orders of a mesh's axes that lie differently over nodes, as listed and with none twice.
pub fn orders(mesh: &Mesh, model: &TimeModel) -> Vec<Mesh> {
    let mut found: Vec<Mesh> = vec![mesh.clone()];
    if model.levels(counts(mesh)).is_none() {
        return found;
    }
    // Neighbours change places until nothing is new.
    let mut next = 0;
    while next < found.len() {
        for axis in 1..mesh.axes.len() {
            let mut other = found[next].clone();
            other.axes.swap(axis - 1, axis);
            if !found.contains(&other) {
                found.push(other);
            }
        }
        next += 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(axes: [u32; AXES], sites: u32) -> String {
        let levels = Levels::new(axes, sites);
        let pairs = levels.inside.iter().zip(levels.across);
        let text: Vec<String> = pairs
            .map(|(inside, across)| format!("{inside}*{across}"))
            .collect();
        text.join(" ")
    }

    #[test]
    fn axes_lie_inside_over_nodes_or_in_both() {
        assert_eq!(levels([4, 8, 1], 8), "1*4 8*1 1*1");
        assert_eq!(levels([8, 4, 1], 8), "2*4 4*1 1*1");
        assert_eq!(levels([2, 4, 4], 4), "1*2 1*4 4*1");
        assert_eq!(levels([32, 1, 1], 8), "8*4 1*1 1*1");
        // Nodes of six sites: a line along the second axis lies over two of them in one half of the mesh.
        assert_eq!(levels([2, 4, 1], 6), "1*2 2*2 1*1");
    }

    #[test]
    fn axes_are_ordered_where_they_lie_over_nodes() {
        let link = Link {
            message: 0.0,
            byte: 1.0,
        };
        let model = TimeModel {
            compute: Rates {
                operation: 0.0,
                touched: 0.0,
                tuple: 0.0,
                element: 0.0,
                place: 0.0,
            },
            node: link,
            network: Some(Network { sites: 8, link }),
        };
        let of = |axes: &[u32]| {
            let mesh = Mesh {
                axes: axes.to_vec(),
            };
            let orders = orders(&mesh, &model).into_iter();
            orders.map(|mesh| mesh.to_string()).collect::<Vec<String>>()
        };
        assert_eq!(of(&[2, 4]), ["2x4"]);
        assert_eq!(of(&[2, 8]), ["2x8", "8x2"]);
        assert_eq!(of(&[2, 2, 8]), ["2x2x8", "2x8x2", "8x2x2"]);
        assert_eq!(of(&[2, 3, 4]).len(), 6);
    }
}
