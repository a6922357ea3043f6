//! Prices of taking a tensor from one placement to another.
//!
//! Two prices: `transfer`, the thesis' (section 3.3.3: a broadcast of f floats costs f times the copies, a shuffle
//! f), carried over to meshes; and `words`, received by the busiest site under ring or pairwise collectives, blocks
//! rounded up. Where the tensor is held by all coordinates and wanted by one of them, it is sliced, for nothing,
//! before anything moves. Must not know programs or statements.
//!
//! ```text
//! mesh 2x3, 600 floats: (Cut(0), Every) -> (Every, Every)   transfer 600 · 2 · 3 = 3600, words 600 · (1 - 1/2) = 300
//! ```

use super::mesh::AXES;
use super::transfer::{Counts, Far, Move, Roles, TransferItem, is_windowed, pieces};
use super::windows;
use crate::ia::layout::{TensorRole, satisfies};

/// Elements that the busiest site holds of a tensor, which may be in windows.
pub fn share_of(goods: TransferItem<'_>, counts: Counts, roles: Roles) -> f64 {
    match is_windowed(roles) {
        true => windows::share(goods, counts, roles),
        false => share(goods.shape, counts, roles),
    }
}

/// Elements that the busiest site holds.
pub fn share(shape: &[u64], counts: Counts, roles: Roles) -> f64 {
    let extents = (0u32..).zip(shape);
    extents
        .map(|(dim, extent)| extent.div_ceil(pieces(counts, roles, dim)) as f64)
        .product()
}

/// The cost of a conversion; `None` where there is none, that is into a partial placement.
pub fn convert(goods: TransferItem<'_>, counts: Counts, from: Roles, to: Roles) -> Option<Move> {
    use TensorRole::{Every, First, Partial};
    if satisfies(&from, &to) {
        return Some(Move::default());
    }
    if to.contains(&Partial) {
        return None;
    }
    if is_windowed(to) {
        return windows::convert(goods, counts, from, to);
    }
    let sliced = sliced(from, to);
    let added = added(counts, sliced);
    let reduced = (1.0 - 1.0 / added) * share(goods.shape, counts, sliced) * goods.columns;
    // The part of what is wanted that is there already, once addends are added up.
    let mut there = 1.0;
    let mut peers = 1.0;
    for ((from, to), count) in sliced.into_iter().zip(to).zip(counts) {
        let changed = match (from, to) {
            (from, to) if from == to || from == Every => continue,
            (Partial, TensorRole::Cut(_)) => continue,
            (First, Every | TensorRole::Cut(_)) => 0.0,
            _ => 1.0 / f64::from(count),
        };
        there *= changed;
        peers *= f64::from(count);
    }
    Some(Move {
        transfer: moved(goods, counts, sliced, to),
        words: reduced + share(goods.shape, counts, to) * (1.0 - there),
        messages: (added - 1.0) + (peers - 1.0),
        far: Far::default(),
    })
}

/// The `transfer` of a conversion to a placement that is not one of windows, alone; `None` where there is none.
pub fn transfer(goods: TransferItem<'_>, counts: Counts, from: Roles, to: Roles) -> Option<f64> {
    if satisfies(&from, &to) {
        return Some(0.0);
    }
    let possible = !to.contains(&TensorRole::Partial);
    possible.then(|| moved(goods, counts, sliced(from, to), to))
}

/// Where a tensor is once what all coordinates hold and one of them wants is sliced.
fn sliced(mut from: Roles, to: Roles) -> Roles {
    for (role, wanted) in from.iter_mut().zip(to) {
        if *role == TensorRole::Every {
            *role = wanted;
        }
    }
    from
}

/// How many addends make an element.
fn added(counts: Counts, sliced: Roles) -> f64 {
    let axes = counts.into_iter().zip(sliced);
    let partial = axes.filter(|(_, role)| *role == TensorRole::Partial);
    partial.map(|(count, _)| f64::from(count)).product()
}

/// The floats that a conversion from a sliced placement to another one transfers.
fn moved(goods: TransferItem<'_>, counts: Counts, sliced: Roles, to: Roles) -> f64 {
    use TensorRole::{Every, Partial};
    let floats: f64 = goods.shape.iter().map(|n| *n as f64).product();
    let added = added(counts, sliced);
    let (mut copies, mut kept) = (1.0, 1.0);
    let (mut again, mut partial) = (false, false);
    for ((from, to), count) in sliced.into_iter().zip(to).zip(counts) {
        partial |= from == Partial;
        if to == Every {
            copies *= f64::from(count);
            match from {
                Every => kept *= f64::from(count),
                _ => again |= count > 1,
            }
        }
    }
    match (partial, again) {
        (false, _) => floats * copies,
        (true, false) => added * floats * goods.columns * kept,
        (true, true) => added * floats * goods.columns + floats * copies,
    }
}

/// Every placement of a tensor: no dimension is cut into more pieces than it has elements. Axes that the mesh does
/// not have are `Every`. In the order of [`TensorRole`], the first axis slowest.
pub fn placements(shape: &[u64], counts: Counts, allowed: &[TensorRole]) -> Vec<Roles> {
    let cuts = (0..shape.len() as u32).map(TensorRole::Cut);
    let all: Vec<TensorRole> = allowed.iter().copied().chain(cuts).collect();
    let mut found = vec![[TensorRole::Every; AXES]];
    for axis in 0..AXES {
        if counts[axis] == 1 {
            continue;
        }
        found = found
            .iter()
            .flat_map(|roles| all.iter().map(move |role| (roles, role)))
            .map(|(roles, role)| {
                let mut roles = *roles;
                roles[axis] = *role;
                roles
            })
            .collect();
    }
    found.retain(|roles| {
        let extents = (0u32..).zip(shape);
        extents
            .into_iter()
            .all(|(dim, extent)| pieces(counts, *roles, dim) <= (*extent).max(1))
    });
    found
}

/// Shortest paths: the cheapest way from each placement to each by any number of conversions, given the direct
/// prices (infinite where there is no conversion) in row-major order.
pub fn closed(mut prices: Vec<f64>, placements: usize) -> Vec<f64> {
    for through in 0..placements {
        for from in 0..placements {
            let first = prices[from * placements + through];
            for to in 0..placements {
                let detour = first + prices[through * placements + to];
                let price = &mut prices[from * placements + to];
                *price = price.min(detour);
            }
        }
    }
    prices
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::far::convert_over;
    use crate::search::machine::Levels;
    use TensorRole::{Cut, Every, First, Partial};

    fn goods(shape: &[u64]) -> TransferItem<'_> {
        TransferItem {
            shape,
            columns: 1.0,
            windows: &[],
        }
    }

    fn price(shape: &[u64], axes: Counts, from: Roles, to: Roles) -> (f64, f64) {
        let found = convert(goods(shape), axes, from, to).unwrap_or(Move {
            transfer: f64::INFINITY,
            words: f64::INFINITY,
            ..Move::default()
        });
        (found.transfer, found.words)
    }

    #[test]
    fn the_papers_prices_and_the_collectives() {
        let row = |role| [role, Every, Every];
        let one = |from, to| price(&[60, 10], [5, 1, 1], row(from), row(to));
        assert_eq!(one(Cut(0), Every), (3000.0, 480.0)); // all-gather
        assert_eq!(one(First, Every), (3000.0, 600.0)); // broadcast
        assert_eq!(one(Cut(0), Cut(1)), (600.0, 96.0)); // all-to-all
        assert_eq!(one(Every, Cut(1)), (0.0, 0.0)); // slice
        assert_eq!(one(Partial, Cut(0)), (3000.0, 480.0)); // reduce-scatter
        assert_eq!(one(Partial, Every), (6000.0, 960.0)); // all-reduce: added up, then broadcast
        assert_eq!(one(Cut(0), Partial), (f64::INFINITY, f64::INFINITY));
        let grid = price(&[600], [2, 3, 1], [Cut(0), Every, Every], [Every; 3]);
        assert_eq!(grid, (3600.0, 300.0));
        // An addend of two columns is moved as two; the finished result as one.
        let mean = TransferItem {
            shape: &[60, 10],
            columns: 2.0,
            windows: &[],
        };
        let found = convert(mean, [5, 1, 1], row(Partial), row(Every));
        assert_eq!(found.map(|m| m.transfer), Some(9000.0));
    }

    /// The elements that a site holds: those whose digits along the axes that cut a dimension are its coordinates.
    fn held(shape: &[u64], counts: Counts, roles: Roles, site: Counts) -> Vec<bool> {
        let total: u64 = shape.iter().product();
        let on_first = (0..AXES).all(|axis| roles[axis] != First || site[axis] == 0);
        (0..total)
            .map(|element| {
                let mut rest = element;
                let mut inside = on_first;
                for (dim, extent) in shape.iter().enumerate().rev() {
                    let dim = dim as u32;
                    let at = rest % extent;
                    rest /= extent;
                    // Blocks are numbered along all axes, so that no axis' digit depends on another's role.
                    let all: u64 = counts.iter().map(|n| u64::from(*n)).product();
                    let mut block = at * all / extent;
                    for axis in (0..AXES).rev() {
                        let digit = block % u64::from(counts[axis]);
                        block /= u64::from(counts[axis]);
                        inside &= roles[axis] != Cut(dim) || digit == u64::from(site[axis]);
                    }
                }
                inside
            })
            .collect()
    }

    /// Counts what sites want and no site of their node has: of the busiest site, and of the sites of the busiest node together.
    fn from_other_nodes(has: &[Vec<bool>], wants: &[Vec<bool>], sites: usize) -> (usize, usize) {
        let nodes = has.chunks(sites).zip(wants.chunks(sites));
        let lacks = nodes.map(|(has, wants)| -> Vec<usize> {
            let lacks = |wants: &Vec<bool>| {
                let wanted = (0..wants.len()).filter(|at| wants[*at]);
                wanted.filter(|at| !has.iter().any(|has| has[*at])).count()
            };
            wants.iter().map(lacks).collect()
        });
        lacks.fold((0, 0), |(site, node), lacks| {
            let most = lacks.iter().copied().max().unwrap_or(0);
            (site.max(most), node.max(lacks.iter().sum()))
        })
    }

    #[test]
    fn words_are_those_of_explicit_element_sets() {
        for counts in [
            [2, 1, 1],
            [5, 1, 1],
            [2, 2, 1],
            [2, 3, 1],
            [2, 2, 2],
            [7, 1, 1],
            [4, 2, 1],
            [2, 6, 1],
        ] {
            let sites: u64 = counts.iter().map(|n| u64::from(*n)).product();
            let shape = [sites * sites, sites];
            let all = placements(&shape, counts, &[Every, First]);
            let of_site = |roles: Roles, site: u32| {
                let slow = site / (counts[1] * counts[2]);
                let at = [slow, site / counts[2] % counts[1], site % counts[2]];
                held(&shape, counts, roles, at)
            };
            let of_sites = |roles: &Roles| -> Vec<Vec<bool>> {
                (0..sites as u32)
                    .map(|site| of_site(*roles, site))
                    .collect()
            };
            let holdings: Vec<Vec<Vec<bool>>> = all.iter().map(of_sites).collect();
            for (from, has) in all.iter().zip(&holdings) {
                for (to, wants) in all.iter().zip(&holdings) {
                    let missing = has.iter().zip(wants).map(|(has, wants)| {
                        let elements = has.iter().zip(wants);
                        elements.filter(|(has, wants)| !**has && **wants).count()
                    });
                    let most = missing.max().unwrap_or(0);
                    let (_, words) = price(&shape, counts, *from, *to);
                    let gap = (words - most as f64).abs();
                    assert!(gap < 1e-6, "{counts:?} {from:?} {to:?}: {words} {most}");
                    for size in 2..sites as u32 {
                        let levels = Levels::new(counts, size);
                        let split = levels.inside.iter().zip(levels.across);
                        let even = split.zip(counts).all(|((a, b), count)| a * b == count);
                        if !even || levels.across.iter().product::<u32>() * size != sites as u32 {
                            continue;
                        }
                        let expected = from_other_nodes(has, wants, size as usize);
                        let over = convert_over(goods(&shape), counts, Some(&levels), *from, *to);
                        let far = over.unwrap_or_default().far;
                        let what = format!("{counts:?} nodes of {size}: {from:?} {to:?}");
                        assert!(
                            (far.words - expected.0 as f64).abs() < 1e-6,
                            "{what}: {far:?} {expected:?}"
                        );
                        // The link of a single holder has more to carry than those of the others.
                        if !from.contains(&First) {
                            let gap = (far.words_of_node - expected.1 as f64).abs();
                            assert!(gap < 1e-6, "{what}: {far:?} {expected:?}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn what_satisfies_is_free_and_closing_gives_triangles() {
        let counts = [2, 3, 1];
        let shape = [7, 9];
        let all = placements(&shape, counts, &[Every, First, Partial]);
        for by_words in [false, true] {
            let mut prices = vec![];
            for from in &all {
                for to in &all {
                    let (transfer, words) = price(&shape, counts, *from, *to);
                    if satisfies(from, to) {
                        assert_eq!((transfer, words), (0.0, 0.0));
                    }
                    prices.push(if by_words { words } else { transfer });
                }
            }
            let n = all.len();
            let shortest = closed(prices.clone(), n);
            for p in 0..n {
                for q in 0..n {
                    assert!(shortest[p * n + q] <= prices[p * n + q]);
                    for r in 0..n {
                        let detour = shortest[p * n + r] + shortest[r * n + q];
                        assert!(shortest[p * n + q] <= detour * (1.0 + 1e-12));
                    }
                }
            }
        }
    }
}
