//! Tensor relations: key dimensions, array types, placements, and which site a tuple belongs to.
//!
//! Must not know what computes a relation.
//!
//! A mesh axis sees a key dimension through the *blocks* of it: coordinate `c` of `pieces` is in block
//! `c · N / pieces` of the N = product of the counts of the dimension's axes, and the block's digits in mixed
//! radix are the coordinates along those axes. So the digit of one axis does not depend on which other axes cut.
//!
//! ```text
//! {i: 4096/4} f32[i, 4096] @ PART(i)            mesh 4: site 2 has piece 2
//! {i: 4096/4@xy} f32[i, 4096] @ GRID(i, *)      mesh 2x2: sites 2 and 3 have pieces 2 and 3
//! ```

use crate::dtype::DType;
use crate::format::Format;
use crate::mesh::Mesh;
use serde::{Deserialize, Serialize};

/// One dimension of a relation's key: an index range cut into balanced pieces. The frontier of the key
/// dimension is `pieces`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyDim {
    /// A name for printing: the index or dimension that is cut.
    pub name: String,
    /// Length of the range that is cut.
    pub extent: u64,
    /// Number of pieces, at least 1; may exceed `extent`, then some pieces are empty.
    pub pieces: u32,
    /// The axes of the mesh that number its blocks, the most significant first; empty: it is never cut over
    /// sites.
    pub axes: Vec<u8>,
}

impl KeyDim {
    /// Number of blocks: the product of the counts of its axes.
    pub fn blocks(&self, mesh: &Mesh) -> u32 {
        self.axes.iter().map(|axis| mesh.count(*axis)).product()
    }

    /// The block of a coordinate below `pieces`.
    pub fn block(&self, coordinate: u32, mesh: &Mesh) -> u32 {
        let number = u64::from(coordinate) * u64::from(self.blocks(mesh));
        (number / u64::from(self.pieces)) as u32
    }

    /// The coordinate along `axis`, one of its axes, of the sites that have a block.
    pub fn digit(&self, block: u32, axis: u8, mesh: &Mesh) -> u32 {
        let less = self.axes.iter().rev().take_while(|other| **other != axis);
        let faster: u32 = less.map(|other| mesh.count(*other)).product();
        block / faster % mesh.count(axis)
    }

    /// The number that the digits of a block along some of its axes make, the first the most significant.
    pub fn digits(&self, block: u32, axes: &[u8], mesh: &Mesh) -> u32 {
        axes.iter().fold(0, |number, axis| {
            number * mesh.count(*axis) + self.digit(block, *axis, mesh)
        })
    }
}

/// The range of piece number `number` of `0..extent` cut into `pieces` balanced pieces: `(start, length)`.
/// The first `extent % pieces` pieces are one longer.
pub fn piece(extent: u64, pieces: u32, number: u32) -> (u64, u64) {
    let (pieces, number) = (u64::from(pieces), u64::from(number));
    let (short, longer) = (extent / pieces, extent % pieces);
    (
        number * short + number.min(longer),
        short + u64::from(number < longer),
    )
}

/// One dimension of the arrays of a relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ArrayDim {
    /// Extent of the whole tensor along this dimension.
    pub extent: u64,
    /// The key dimension whose piece this array holds; `None`: the whole extent, or what `window` says.
    pub cut: Option<u32>,
    /// The part of the extent that this array holds, where it is no piece; then `cut` is `None`. Windows of neighbouring
    /// tuples may overlap, and one key dimension may move the windows of several array dimensions.
    pub window: Option<Window>,
}

/// The positions of an array dimension that a tuple holds because a kernel reads them: those from `(scale · i + low) / divisor` to
/// `(scale · i + high) / divisor`, rounded down, for all i of the piece of `key`, as far as they are inside the dimension.
///
/// ```text
/// x[i-1 .. i+1 of 100] under {i: 100/4}   tuple 0 holds 0..=25, tuple 1 holds 24..=50
/// x[i/7 .. i/7 of 15] under {i: 100/4}    tuple 0 holds 0..=3, tuple 1 holds 3..=7
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Window {
    /// The key dimension whose piece moves it; `None`: it is the same in every tuple.
    pub key: Option<u32>,
    /// How far it moves with a step along the key dimension's range; 0 without a key.
    pub scale: i64,
    /// The first position, relative to `scale · i`.
    pub low: i64,
    /// The last position, relative to `scale · i`; not below `low`.
    pub high: i64,
    /// The divisor of positions, at least 1.
    pub divisor: i64,
}

impl Window {
    /// The positions `(start, length)` of a dimension of this extent, for the piece `(start, length)` of the key dimension;
    /// the piece is not looked at where there is no key.
    pub fn range(&self, extent: u64, piece: (u64, u64)) -> (u64, u64) {
        let (first, last) = match (self.key, piece) {
            (None, _) => (0, 0),
            (Some(_), (start, 0)) => return (start.min(extent), 0),
            (Some(_), (start, length)) => (
                i128::from(self.scale) * i128::from(start),
                i128::from(self.scale) * i128::from(start + length - 1),
            ),
        };
        let end = i128::from(extent);
        let divided = |position: i128| position.div_euclid(i128::from(self.divisor.max(1)));
        let from = divided(first.min(last) + i128::from(self.low)).clamp(0, end);
        let to = (divided(first.max(last) + i128::from(self.high)) + 1).clamp(from, end);
        // Both are between 0 and the extent.
        (from as u64, (to - from) as u64)
    }

    /// The most positions for a piece of so many values of the key dimension, were there no ends.
    pub fn most(&self, length: u64) -> u64 {
        let steps = self.key.map_or(0, |_| length.saturating_sub(1));
        let moved = self.scale.unsigned_abs().saturating_mul(steps);
        let between = moved.saturating_add(self.high.abs_diff(self.low));
        let divided = between.div_ceil(self.divisor.unsigned_abs().max(1));
        divided.saturating_add(1)
    }
}

impl ArrayDim {
    /// A dimension that every tuple holds whole.
    pub fn whole(extent: u64) -> ArrayDim {
        ArrayDim::new(extent, None)
    }

    /// A dimension of which a tuple holds the piece of a key dimension, or all of it.
    pub fn new(extent: u64, cut: Option<u32>) -> ArrayDim {
        ArrayDim {
            extent,
            cut,
            window: None,
        }
    }

    /// A dimension of which a tuple holds a window.
    pub fn windowed(extent: u64, window: Window) -> ArrayDim {
        ArrayDim {
            extent,
            cut: None,
            window: Some(window),
        }
    }

    /// Whether every tuple holds all of it.
    pub fn is_whole(&self) -> bool {
        self.cut.is_none() && self.window.is_none()
    }

    /// The key dimension on which it depends which part a tuple holds.
    pub fn key(&self) -> Option<u32> {
        self.cut.or(self.window.and_then(|window| window.key))
    }

    /// The range `(start, length)` that a tuple holds; `frontier` gives a key dimension's extent and pieces, and `key` the tuple's
    /// coordinates.
    pub fn range(&self, frontier: impl Fn(u32) -> (u64, u32), key: &[u32]) -> (u64, u64) {
        let coordinate = |number: u32| key[number as usize];
        match (self.cut, self.window) {
            (Some(cut), _) => piece(self.extent, frontier(cut).1, coordinate(cut)),
            (None, Some(window)) => {
                let of_key = window.key.map_or((0, 0), |number| {
                    let (extent, pieces) = frontier(number);
                    piece(extent, pieces, coordinate(number))
                });
                window.range(self.extent, of_key)
            }
            (None, None) => (0, self.extent),
        }
    }
}

/// The arrays of a relation: dimensions and the element types of the columns (one, except for carriers).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ArrayType {
    /// Dimensions in order.
    pub dims: Vec<ArrayDim>,
    /// Stored element type of each column.
    pub columns: Vec<DType>,
}

/// What one axis of the mesh says about the sites that hold a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AxisRole {
    /// Those at every coordinate.
    Every,
    /// Those at coordinate 0.
    First,
    /// Those whose coordinate is this axis' digit of the block of this key dimension.
    Key(u32),
}

/// Which sites hold which tuples: one role an axis of the mesh. All [`AxisRole::Every`] is ALL; a `Key(k)` on the
/// only axis is PART_k; `First` there is one site.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Placement {
    /// By axis.
    pub roles: Vec<AxisRole>,
}

impl Placement {
    /// Every tuple at every site of a mesh.
    pub fn all(mesh: &Mesh) -> Placement {
        Placement {
            roles: vec![AxisRole::Every; mesh.axes.len()],
        }
    }

    /// Every tuple at the first site.
    pub fn one(mesh: &Mesh) -> Placement {
        Placement {
            roles: vec![AxisRole::First; mesh.axes.len()],
        }
    }

    /// On sites in a row: by the blocks of a key dimension.
    pub fn part(key: u32) -> Placement {
        Placement {
            roles: vec![AxisRole::Key(key)],
        }
    }

    /// Whether every site of the mesh holds every tuple.
    pub fn is_all(&self, mesh: &Mesh) -> bool {
        self.copies(mesh) == mesh.sites()
    }

    /// At how many sites each tuple is.
    pub fn copies(&self, mesh: &Mesh) -> u32 {
        let free = self.roles.iter().zip(&mesh.axes);
        let free = free.filter(|(role, _)| **role == AxisRole::Every);
        free.map(|(_, count)| *count).product()
    }

    /// Whether `other` has copies along an axis where this placement has none.
    pub fn grows_to(&self, other: &Placement) -> bool {
        let mut roles = self.roles.iter().zip(&other.roles);
        roles.any(|(from, to)| *to == AxisRole::Every && *from != AxisRole::Every)
    }
}

/// A relation's type: key dimensions (a key's coordinates run below their `pieces`), arrays, placement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RelationType {
    /// Key dimensions.
    pub keys: Vec<KeyDim>,
    /// What each tuple holds.
    pub array: ArrayType,
    /// Where the tuples are.
    pub placement: Placement,
}

impl RelationType {
    /// Number of tuples: the product of the frontier. `None` on overflow.
    pub fn tuples(&self) -> Option<u64> {
        self.keys
            .iter()
            .try_fold(1u64, |n, k| n.checked_mul(u64::from(k.pieces)))
    }

    /// Whether its tuples hold windows, which may overlap, in place of pieces.
    pub fn is_windowed(&self) -> bool {
        self.array.dims.iter().any(|dim| dim.window.is_some())
    }

    /// The range `(start, length)` of each array dimension in the tuple with this key.
    pub fn ranges(&self, key: &[u32]) -> Vec<(u64, u64)> {
        let frontier = |number: u32| {
            let dim = &self.keys[number as usize];
            (dim.extent, dim.pieces)
        };
        let dims = self.array.dims.iter();
        dims.map(|dim| dim.range(frontier, key)).collect()
    }

    /// Bytes of the tuple with this key, all columns.
    pub fn tuple_bytes(&self, key: &[u32]) -> u64 {
        let elements: u64 = self.ranges(key).iter().map(|(_, n)| *n).product();
        let columns = self.array.columns.iter();
        columns
            .map(|dtype| Format::default().bytes(*dtype, elements))
            .sum()
    }

    /// The sites that hold the tuple with this key: by axis their coordinate, or `None` for all coordinates.
    pub fn coordinates(&self, key: &[u32], mesh: &Mesh) -> Vec<Option<u32>> {
        let roles = (0u8..).zip(&self.placement.roles);
        roles
            .map(|(axis, role)| match role {
                AxisRole::Every => None,
                AxisRole::First => Some(0),
                AxisRole::Key(k) => {
                    let dim = &self.keys[*k as usize];
                    Some(dim.digit(dim.block(key[*k as usize], mesh), axis, mesh))
                }
            })
            .collect()
    }

    /// Whether a site holds the tuple with this key. Sites beyond the mesh hold nothing.
    pub fn holds(&self, key: &[u32], site: u32, mesh: &Mesh) -> bool {
        site < mesh.sites() && agrees(&self.coordinates(key, mesh), site, mesh)
    }

    /// The sites that hold the tuple with this key, ascending.
    pub fn holders(&self, key: &[u32], mesh: &Mesh) -> Vec<u32> {
        sites_at(&self.coordinates(key, mesh), mesh)
    }

    /// The keys of the tuples that a site holds, in row-major order.
    pub fn keys_at(&self, site: u32, mesh: &Mesh) -> impl Iterator<Item = Vec<u32>> + use<> {
        let takes_part = site < mesh.sites();
        let first = (0..).zip(&self.placement.roles).all(|(axis, role)| {
            *role != AxisRole::First || (takes_part && mesh.coordinate(site, axis) == 0)
        });
        let mut held: Vec<Vec<u32>> = vec![];
        for (number, dim) in (0u32..).zip(&self.keys) {
            let here = |coordinate: &u32| {
                let block = dim.block(*coordinate, mesh);
                let mut roles = (0u8..).zip(&self.placement.roles);
                roles.all(|(axis, role)| {
                    *role != AxisRole::Key(number)
                        || dim.digit(block, axis, mesh) == mesh.coordinate(site, axis.into())
                })
            };
            let all = 0..if takes_part && first { dim.pieces } else { 0 };
            held.push(all.filter(here).collect());
        }
        let total = if takes_part && first {
            held.iter().map(|dim| dim.len() as u64).product()
        } else {
            0
        };
        (0..total).map(move |mut number| {
            let mut key = vec![0; held.len()];
            for (slot, dim) in key.iter_mut().zip(&held).rev() {
                *slot = dim[(number % dim.len() as u64) as usize];
                number /= dim.len() as u64;
            }
            key
        })
    }

    /// Every key in row-major order.
    pub fn all_keys(&self) -> impl Iterator<Item = Vec<u32>> + '_ {
        let total = self.tuples().unwrap_or(0);
        (0..total).map(move |mut n| {
            let mut key = vec![0; self.keys.len()];
            for (slot, dim) in key.iter_mut().zip(&self.keys).rev() {
                *slot = (n % u64::from(dim.pieces)) as u32;
                n /= u64::from(dim.pieces);
            }
            key
        })
    }
}

/// Whether a site of the mesh is at these coordinates.
fn agrees(coordinates: &[Option<u32>], site: u32, mesh: &Mesh) -> bool {
    let mut axes = coordinates.iter().enumerate();
    axes.all(|(axis, at)| at.is_none_or(|at| mesh.coordinate(site, axis) == at))
}

/// The sites at these coordinates, ascending.
pub fn sites_at(coordinates: &[Option<u32>], mesh: &Mesh) -> Vec<u32> {
    let mut sites = vec![0];
    for (at, count) in coordinates.iter().zip(&mesh.axes) {
        let along = match at {
            Some(at) => *at..*at + 1,
            None => 0..*count,
        };
        let grown = sites
            .iter()
            .flat_map(|site| along.clone().map(move |at| site * count + at));
        sites = grown.collect();
    }
    sites
}

/// Returns whether a site that holds a tuple keeps it in a movement or sends it to others. Where several sites hold it, those do that are
/// closest to the sites that get it: the ones that [`sender`] gives.
pub fn sends(
    from: &RelationType,
    to: &RelationType,
    key: &[u32],
    (site, mesh): (u32, &Mesh),
) -> bool {
    let held = from.coordinates(key, mesh);
    let wanted = to.coordinates(key, mesh);
    let mut axes = held.into_iter().zip(wanted).enumerate();
    axes.all(|(axis, (held, wanted))| match (held, wanted) {
        (None, Some(wanted)) => wanted == mesh.coordinate(site, axis),
        _ => true,
    })
}

/// Where a site that needs a tuple gets it from, if it does not hold it: the holder that agrees with it on as
/// many coordinates as possible. `coordinates` are the holders'.
pub fn sender(coordinates: &[Option<u32>], receiver: u32, mesh: &Mesh) -> u32 {
    let at: Vec<u32> = coordinates
        .iter()
        .enumerate()
        .map(|(axis, at)| at.unwrap_or_else(|| mesh.coordinate(receiver, axis)))
        .collect();
    mesh.site(&at)
}
