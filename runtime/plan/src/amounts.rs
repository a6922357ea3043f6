//! How much of a relation is at each site, without counting tuples one by one.
//!
//! An amount of a tuple (its bytes, its elements, the arithmetic that makes it) is a product over key dimensions;
//! which sites hold it is decided axis by axis. So the amount at a site is a product of sums over single key
//! dimensions, whatever the number of tuples. Must not know steps.
//!
//! ```text
//! {i: 10/4, j: 6/2} f32[i, j] @ PART(i) on 4 sites:   18 18 12 12 elements
//! ```

use crate::format::Format;
use crate::mesh::Mesh;
use crate::relation::{ArrayDim, AxisRole, KeyDim, Placement, RelationType, sites_at};

/// The most placements of one relation whose union is computed from intersections, of which there are 2 to this.
const MOST_TERMS: usize = 8;

/// The amounts of a relation's tuples.
pub struct Amounts<'a> {
    keys: &'a [KeyDim],
    mesh: &'a Mesh,
    /// What every tuple has as a factor.
    factor: u128,
    /// By key dimension and block: the sum over the coordinates in it.
    blocks: Vec<Vec<u128>>,
}

impl<'a> Amounts<'a> {
    /// Of tuples whose amount is `factor` times the product over key dimensions d of `weight(d, coordinate)`.
    pub fn new(
        keys: &'a [KeyDim],
        mesh: &'a Mesh,
        factor: u128,
        weight: impl Fn(u32, u32) -> u128,
    ) -> Amounts<'a> {
        let blocks = (0u32..)
            .zip(keys)
            .map(|(number, dim)| {
                let mut blocks = vec![0u128; dim.blocks(mesh) as usize];
                for coordinate in 0..dim.pieces {
                    let block = &mut blocks[dim.block(coordinate, mesh) as usize];
                    *block = block.saturating_add(weight(number, coordinate));
                }
                blocks
            })
            .collect();
        Amounts {
            keys,
            mesh,
            factor,
            blocks,
        }
    }

    /// Elements of all columns.
    pub fn floats(kind: &'a RelationType, mesh: &'a Mesh) -> Amounts<'a> {
        Amounts::elements(kind, mesh, kind.array.columns.len() as u128)
    }

    /// Bytes of all columns.
    pub fn bytes(kind: &'a RelationType, mesh: &'a Mesh) -> Amounts<'a> {
        let sizes = kind
            .array
            .columns
            .iter()
            .map(|column| u128::from(Format::default().bytes(*column, 1)));
        Amounts::elements(kind, mesh, sizes.sum())
    }

    fn elements(kind: &'a RelationType, mesh: &'a Mesh, each: u128) -> Amounts<'a> {
        let length = |dim: &ArrayDim, coordinate: u32| -> u128 {
            let frontier = |number: u32| {
                let key = &kind.keys[number as usize];
                (key.extent, key.pieces)
            };
            // It depends on no other key dimension than its own.
            dim.range(frontier, &vec![coordinate; kind.keys.len()])
                .1
                .into()
        };
        let fixed = kind.array.dims.iter().filter(|dim| dim.key().is_none());
        let factor = fixed.fold(each, |n, dim| n.saturating_mul(length(dim, 0)));
        Amounts::new(&kind.keys, mesh, factor, |number, coordinate| {
            let dims = kind
                .array
                .dims
                .iter()
                .filter(|dim| dim.key() == Some(number));
            dims.fold(1, |n: u128, dim| n.saturating_mul(length(dim, coordinate)))
        })
    }

    /// Of all tuples, each counted once.
    pub fn total(&self) -> u128 {
        let sums = self.blocks.iter().map(|blocks| {
            let sum = blocks.iter();
            sum.fold(0u128, |sum, amount| sum.saturating_add(*amount))
        });
        sums.fold(self.factor, u128::saturating_mul)
    }

    /// By site of the mesh: of the tuples that are there under every one of these placements.
    pub fn at_sites(&self, placements: &[&Placement]) -> Vec<u128> {
        let axes = 0..self.mesh.axes.len();
        let role_at = |axis: usize| placements.iter().filter_map(move |p| p.roles.get(axis));
        let first: Vec<usize> = axes
            .clone()
            .filter(|axis| role_at(*axis).any(|role| *role == AxisRole::First))
            .collect();
        // By key dimension: the axes that look at it, and the sums by the number that their digits make.
        let mut sums: Vec<(Vec<u8>, Vec<u128>)> = vec![];
        for (number, (dim, blocks)) in (0u32..).zip(self.keys.iter().zip(&self.blocks)) {
            let looking: Vec<u8> = axes
                .clone()
                .filter(|axis| role_at(*axis).any(|role| *role == AxisRole::Key(number)))
                .map(|axis| axis as u8)
                .collect();
            let values: u32 = looking.iter().map(|axis| self.mesh.count(*axis)).product();
            let mut by_digits = vec![0u128; values as usize];
            for (block, amount) in (0u32..).zip(blocks) {
                let sum = &mut by_digits[dim.digits(block, &looking, self.mesh) as usize];
                *sum = sum.saturating_add(*amount);
            }
            sums.push((looking, by_digits));
        }
        let at = |site: u32| {
            if first
                .iter()
                .any(|axis| self.mesh.coordinate(site, *axis) > 0)
            {
                return 0;
            }
            sums.iter()
                .fold(self.factor, |product, (looking, by_digits)| {
                    let number = looking.iter().fold(0, |number, axis| {
                        number * self.mesh.count(*axis) + self.mesh.coordinate(site, (*axis).into())
                    });
                    product.saturating_mul(by_digits[number as usize])
                })
        };
        (0..self.mesh.sites()).map(at).collect()
    }

    /// By site of the mesh: of the tuples that are there under at least one of these placements.
    pub fn at_any(&self, placements: &[&Placement]) -> Vec<u128> {
        let mut distinct: Vec<&Placement> = vec![];
        for placement in placements {
            if !distinct.contains(placement) {
                distinct.push(placement);
            }
        }
        if distinct.len() > MOST_TERMS {
            return self.counted(&distinct);
        }
        // |A ∪ B| = |A| + |B| - |A ∩ B|, and so on.
        let mut sum = vec![0u128; self.mesh.sites() as usize];
        for chosen in 1u32..1 << distinct.len() {
            let members = (0..)
                .zip(&distinct)
                .filter(|(bit, _)| chosen >> bit & 1 == 1);
            let members: Vec<&Placement> = members.map(|(_, placement)| *placement).collect();
            let adds = members.len() % 2 == 1;
            for (sum, amount) in sum.iter_mut().zip(self.at_sites(&members)) {
                *sum = match adds {
                    true => sum.wrapping_add(amount),
                    false => sum.wrapping_sub(amount),
                };
            }
        }
        sum
    }

    /// [`Amounts::at_any`], block by block.
    fn counted(&self, placements: &[&Placement]) -> Vec<u128> {
        let mut sum = vec![0u128; self.mesh.sites() as usize];
        let total: u64 = self
            .blocks
            .iter()
            .map(|blocks| blocks.len() as u64)
            .product();
        for mut number in 0..total {
            let mut amount = self.factor;
            let mut at = vec![0; self.keys.len()];
            for (slot, blocks) in at.iter_mut().zip(&self.blocks).rev() {
                *slot = (number % blocks.len() as u64) as u32;
                amount = amount.saturating_mul(blocks[*slot as usize]);
                number /= blocks.len() as u64;
            }
            let mut sites = vec![];
            for placement in placements {
                let roles = (0u8..).zip(&placement.roles);
                let coordinates = roles.map(|(axis, role)| match role {
                    AxisRole::Every => None,
                    AxisRole::First => Some(0),
                    AxisRole::Key(key) => {
                        let dim = &self.keys[*key as usize];
                        Some(dim.digit(at[*key as usize], axis, self.mesh))
                    }
                });
                sites.extend(sites_at(&coordinates.collect::<Vec<_>>(), self.mesh));
            }
            sites.sort_unstable();
            sites.dedup();
            for site in sites {
                sum[site as usize] = sum[site as usize].saturating_add(amount);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sums_are_those_over_tuples() {
        let mesh = Mesh { axes: vec![2, 3] };
        let types = [
            "{i: 10/6@xy, j: 7/3@y} f32[i, j, 5] @ GRID(i, j)",
            "{i: 10/6@xy, j: 7/3@y} f32[i, j, 5] @ GRID(i, i)",
            "{i: 10/6@xy, j: 7/3@y} f32[i, j, 5] @ GRID(*, j)",
            "{i: 10/6@xy, j: 7/3@y} f32[i, j, 5] @ GRID(., *)",
            "{i: 10/6@xy, j: 7/3@y} f32[i, j, 5] @ GRID(i, .)",
            "{i: 10/6@xy, j: 7/3@y} f32[i, j, 5] @ GRID(*, *)",
        ];
        let types = types.map(|text| text.parse::<RelationType>().unwrap());
        for a in &types {
            let amounts = Amounts::bytes(a, &mesh);
            for b in &types {
                let pair = [&a.placement, &b.placement];
                let (both, any) = (amounts.at_sites(&pair), amounts.at_any(&pair));
                assert_eq!(any, amounts.counted(&pair));
                for site in 0..6 {
                    let sum = |of: &dyn Fn(bool, bool) -> bool| -> u128 {
                        let keys = a
                            .all_keys()
                            .filter(|key| of(a.holds(key, site, &mesh), b.holds(key, site, &mesh)));
                        keys.map(|key| u128::from(a.tuple_bytes(&key))).sum()
                    };
                    assert_eq!(both[site as usize], sum(&|a, b| a && b), "{a} {b}");
                    assert_eq!(any[site as usize], sum(&|a, b| a || b), "{a} {b}");
                }
            }
            assert_eq!(amounts.total(), 10 * 7 * 5 * 4);
            let keys = |site| a.keys_at(site, &mesh).collect::<Vec<_>>();
            for site in 0..8 {
                let held: Vec<Vec<u32>> = a.all_keys().collect();
                let held = held.into_iter().filter(|key| a.holds(key, site, &mesh));
                assert_eq!(keys(site), held.collect::<Vec<_>>());
            }
            for key in a.all_keys() {
                let holders = (0..6).filter(|site| a.holds(&key, *site, &mesh));
                assert_eq!(a.holders(&key, &mesh), holders.collect::<Vec<_>>());
            }
        }
    }
}
