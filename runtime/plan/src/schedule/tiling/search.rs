//! The search for the cheapest tiling of a matrix product. It depends on the sizes and on how the factors lie alone.
//!
//! Blocks may lie in the output where its indices allow it, or be copied there; each way has a cost, and the cheapest one is taken. Must not know
//! values.
//!
//! ```text
//! out[f, e, d, c, b, a] = left[a, g, e, d] * right[c, b, f, g]
//! scattered: rows f c b, columns e d a in blocks of 144 x 240, copied to their places; both factors packed
//! ```

use super::layout::{FactorHandling, FactorLayout, Layout};
use crate::schedule::access::merged;

/// Elements of a factor up to which a copy of all of it is made, if parts of it would be copied several times.
const HELD: usize = 1 << 25;
/// Inner terms of a packed block.
const INNER: usize = 512;
/// Elements of a packed block.
const PACKED: usize = 1 << 17;
/// Rows and columns of a block that is copied to its place.
const SIDE: usize = 256;
/// Elements of a cache line.
const LINE: usize = 16;
/// Lines of a cache that few columns fill.
const FEW: usize = 4;
/// Blocks that keep all threads busy.
pub const BLOCKS: usize = 16;
/// Multiplications that are worth a block of their own.
const WORK: usize = 1 << 22;

/// How the indices of more than one value meet: in the output and both factors, the output and one, both factors only.
#[derive(Clone, Debug, Default)]
pub struct Roles {
    /// Of the output and both factors.
    pub batch: Vec<usize>,
    /// Of the output and the left factor.
    pub rows: Vec<usize>,
    /// Of the output and the right factor.
    pub columns: Vec<usize>,
    /// Of both factors only.
    pub inner: Vec<usize>,
}

impl Roles {
    /// Returns whether the product of the factors in the other order is cheaper: many rows, which lie side by side in the left factor, fill all vectors
    /// as they lie, and few columns do not, or not without a copy of the left factor. The result is turned where it goes, so it has to be small
    /// beside the factors.
    pub fn turns(&self, left: FactorLayout<'_>, lengths: &[usize]) -> bool {
        let count = |list: &[usize]| list.iter().map(|i| lengths[*i]).product::<usize>();
        let (rows, columns) = (count(&self.rows), count(&self.columns));
        let beside = matches!(left, FactorLayout::Strided(steps) if merged(steps, &self.rows, lengths) == Some(1));
        let few = (2..=FEW * LINE).contains(&columns)
            && rows >= 8 * LINE
            && count(&self.inner) >= 4 * LINE;
        few && beside && self.batch.is_empty()
    }

    /// Rows for columns, and columns for rows.
    #[must_use]
    pub fn turned(self) -> Roles {
        Roles {
            rows: self.columns,
            columns: self.rows,
            ..self
        }
    }
}

/// The most points of a block: rows, columns and inner terms of a matrix, and matrices.
#[derive(Clone, Copy)]
struct Block {
    rows: usize,
    columns: usize,
    inner: usize,
    many: usize,
}

impl Block {
    /// Multiplications of one matrix.
    fn work(&self) -> usize {
        self.rows * self.columns * self.inner
    }
}

/// The sizes that a layout is chosen for.
pub struct Sizes<'s> {
    /// Values of each index.
    pub lengths: &'s [usize],
    /// How many indices are the output's.
    pub rank: usize,
    /// The indices of more than one value, by how they meet.
    pub roles: &'s Roles,
    /// Where the elements of the left factor are.
    pub left: FactorLayout<'s>,
    /// Where the elements of the right factor are.
    pub right: FactorLayout<'s>,
    /// True if what multiplies matrices shares a large product out among threads itself.
    pub shares: bool,
}

impl Sizes<'_> {
    fn count(&self, indices: &[usize]) -> usize {
        indices.iter().map(|i| self.lengths[*i]).product()
    }

    /// The cheapest layout.
    pub fn choose(&self) -> Layout {
        let mut best: Option<(f64, Layout)> = None;
        for (cost, layout) in self.candidates() {
            if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                best = Some((cost, layout));
            }
        }
        best.map(|(_, layout)| layout)
            .expect("blocks that are copied are always possible")
    }

    /// The layouts that are looked at, each with the nanoseconds that it takes one core.
    pub fn candidates(&self) -> Vec<(f64, Layout)> {
        let roles = self.roles;
        let inners = [&self.left, &self.right].map(|lie| self.ordered(lie, &roles.inner));
        let mut all = vec![];
        for inner in &inners {
            all.extend(self.direct(inner));
            // In blocks that are copied, rows and columns may come in any order.
            let rows = [roles.rows.clone(), self.ordered(&self.left, &roles.rows)];
            let columns = [
                roles.columns.clone(),
                self.ordered(&self.right, &roles.columns),
            ];
            for (r, rows) in rows.iter().enumerate() {
                for (c, columns) in columns.iter().enumerate() {
                    // A part of a group is only near in the output if it is counted in its order.
                    let whole = |at: usize, list: &[usize]| at == 0 || self.count(list) <= SIDE;
                    if whole(r, rows) && whole(c, columns) {
                        all.push(self.scattered(rows, columns, inner));
                    }
                }
            }
        }
        all
    }

    /// The tiles of a layout where large products are not shared out among threads.
    pub fn apart(&self, layout: &Layout) -> Vec<usize> {
        let apart = Sizes {
            shares: false,
            ..*self
        };
        apart.cut(layout.clone()).tile
    }

    /// Indices in the order in which a factor's own steps fall.
    fn ordered(&self, lie: &FactorLayout<'_>, indices: &[usize]) -> Vec<usize> {
        let mut order = indices.to_vec();
        if let FactorLayout::Strided(steps) = lie {
            order.sort_by_key(|i| std::cmp::Reverse(steps[*i]));
        }
        order
    }

    /// The output's indices of more than one value.
    fn output(&self) -> Vec<usize> {
        (0..self.rank).filter(|i| self.lengths[*i] > 1).collect()
    }

    /// Blocks that are matrices in the output: neighbouring indices of one role are rows, the last ones are columns.
    fn direct(&self, inner: &[usize]) -> Option<(f64, Layout)> {
        let output = self.output();
        let is = |list: &[usize], at: usize| list.contains(&output[at]);
        let mut first = output.len();
        while first > 0 && is(&self.roles.columns, first - 1) {
            first -= 1;
        }
        let columns = output[first..].to_vec();
        let (mut rows, mut at) = (vec![], 0);
        while at < first {
            let start = at;
            while at < first && is(&self.roles.rows, at) {
                at += 1;
            }
            if self.count(&output[start..at]) > self.count(&rows) {
                rows = output[start..at].to_vec();
            }
            at += usize::from(at == start);
        }
        if columns.is_empty() || rows.is_empty() != self.roles.rows.is_empty() {
            return None;
        }
        let layout = self.cut(Layout {
            rows,
            columns,
            inner: inner.to_vec(),
            many: vec![],
            tile: vec![1; self.lengths.len()],
            direct: true,
            left: FactorHandling::InPlace,
            right: FactorHandling::InPlace,
        });
        Some((self.cost(&layout), layout))
    }

    /// Blocks that are copied to their places.
    fn scattered(&self, rows: &[usize], columns: &[usize], inner: &[usize]) -> (f64, Layout) {
        let last = self.output().last().copied();
        let many = last.filter(|i| self.roles.batch.contains(i));
        let layout = self.cut(Layout {
            rows: rows.to_vec(),
            columns: columns.to_vec(),
            inner: inner.to_vec(),
            many: many.into_iter().collect(),
            tile: vec![1; self.lengths.len()],
            direct: false,
            left: FactorHandling::InPlace,
            right: FactorHandling::InPlace,
        });
        (self.cost(&layout), layout)
    }

    /// Chooses tiles and what becomes of the factors.
    fn cut(&self, mut layout: Layout) -> Layout {
        let (m, n) = (self.count(&layout.rows), self.count(&layout.columns));
        let mut block = Block {
            rows: m,
            columns: n,
            inner: self.count(&layout.inner),
            many: self.count(&layout.many).min(16),
        };
        if !layout.direct {
            block.rows = m.min(SIDE);
            // What one side lacks the other may have, and several matrices share a block.
            let most = SIDE * SIDE * 2;
            block.columns = n.min((most / (block.rows * block.many)).max(SIDE / 4));
            block.rows = m.min((most / (block.columns * block.many)).max(SIDE / 4));
        }
        self.tile(&mut layout, block);
        let handling = [true, false].map(|left| self.handling(&layout, left));
        [layout.left, layout.right] = handling;
        if handling.contains(&FactorHandling::Packed) {
            self.cut_packed(&mut layout, block);
        } else {
            self.cut_in_place(&mut layout, block);
        }
        layout
    }

    /// What becomes of a factor in blocks of these tiles.
    fn handling(&self, layout: &Layout, left: bool) -> FactorHandling {
        let (own, other) = match left {
            true => (&self.roles.rows, &self.roles.columns),
            false => (&self.roles.columns, &self.roles.rows),
        };
        let size = self.count(own) * self.count(&self.roles.inner) * self.count(&self.roles.batch);
        let blocks = |i: &usize| self.lengths[*i].div_ceil(layout.tile[*i]);
        let visits = || other.iter().map(blocks).product::<usize>();
        let steps = if left { &self.left } else { &self.right };
        if layout.stands(steps, left) {
            FactorHandling::InPlace
        } else if size <= HELD && (visits() > 1 || self.sparse(layout, left)) {
            FactorHandling::Copied
        } else {
            FactorHandling::Packed
        }
    }

    /// Cuts blocks so that those that are packed stay in the second cache.
    fn cut_packed(&self, layout: &mut Layout, mut block: Block) {
        let (m, n) = (self.count(&layout.rows), self.count(&layout.columns));
        block.inner = block.inner.div_ceil(block.inner.div_ceil(INNER));
        let most = (PACKED / (block.inner * block.many)).max(16);
        if layout.left == FactorHandling::Packed {
            block.rows = block.rows.min(most);
        }
        if layout.right == FactorHandling::Packed {
            block.columns = block.columns.min(most);
        }
        // Cut into more blocks than threads along the side that does not repeat the packing of the other.
        let of = |block: &Block| m.div_ceil(block.rows) * n.div_ceil(block.columns);
        let others = self.blocks(layout) / of(&block).max(1);
        while others * of(&block) < BLOCKS && block.work() > WORK {
            let packed = [layout.left, layout.right].map(|own| own == FactorHandling::Packed);
            let cut_rows = match packed {
                [true, false] => true,
                [false, true] => false,
                _ => block.rows >= block.columns,
            };
            if cut_rows && block.rows > 32 {
                block.rows = block.rows.div_ceil(2);
            } else if block.columns > 32 {
                block.columns = block.columns.div_ceil(2);
            } else {
                break;
            }
        }
        self.tile(layout, block);
        // A side that had no need of it before may be visited several times now.
        let again = |own: FactorHandling, left: bool| match own {
            FactorHandling::Packed => self.handling(layout, left),
            own => own,
        };
        (layout.left, layout.right) = (again(layout.left, true), again(layout.right, false));
    }

    /// Cuts blocks so that all threads have some.
    fn cut_in_place(&self, layout: &mut Layout, mut block: Block) {
        let (m, n) = (self.count(&layout.rows), self.count(&layout.columns));
        // A product with a vector is shared out by nobody.
        let shares = m > 1 && n > 1 && self.shares;
        // Lines of a matrix that a vector is added up of are long enough for the memory's own reading ahead.
        let along = match (&self.right, layout.right) {
            (FactorLayout::Strided(steps), FactorHandling::InPlace) if m == 1 => {
                merged(steps, &layout.columns, &layout.tile) == Some(1)
            }
            _ => false,
        };
        let least = if along { 4096 } else { 128 };
        // What is bound by memory is worth a block sooner.
        let work = if m == 1 || n == 1 { WORK / 16 } else { WORK };
        while !(layout.direct && shares)
            && self.blocks(layout) < BLOCKS
            && block.work() > work
            && block.rows + block.columns > least
        {
            if block.rows >= block.columns {
                block.rows = block.rows.div_ceil(2);
            } else {
                block.columns = block.columns.div_ceil(2);
            }
            self.tile(layout, block);
        }
    }

    fn tile(&self, layout: &mut Layout, block: Block) {
        layout.tile.fill(1);
        for (list, most) in [
            (&layout.rows, block.rows),
            (&layout.columns, block.columns),
            (&layout.inner, block.inner),
            (&layout.many, block.many),
        ] {
            tiles_of(list, self.lengths, most, &mut layout.tile);
        }
    }

    /// Number of blocks.
    fn blocks(&self, layout: &Layout) -> usize {
        let along = |i: usize| self.lengths[i].div_ceil(layout.tile[i]);
        (0..self.rank).map(along).product()
    }

    /// Whether a block of a factor would use a small part of each of its cache lines.
    fn sparse(&self, layout: &Layout, left: bool) -> bool {
        let roles = self.roles;
        let (lie, own) = if left {
            (&self.left, &roles.rows)
        } else {
            (&self.right, &roles.columns)
        };
        let FactorLayout::Strided(steps) = lie else {
            return false;
        };
        let indices = roles.batch.iter().chain(own).chain(&roles.inner);
        let nearest = indices.min_by_key(|i| steps[**i].unsigned_abs());
        nearest.is_some_and(|i| layout.tile[*i] < self.lengths[*i].min(LINE))
    }

    /// About how long it takes, in nanoseconds of one core.
    fn cost(&self, layout: &Layout) -> f64 {
        let roles = self.roles;
        let counts = [&roles.batch, &roles.rows, &roles.columns, &roles.inner];
        let [b, m, n, k] = counts.map(|list| self.count(list) as f64);
        let of = |list: &[usize]| list.iter().map(|i| layout.tile[*i] as f64).product::<f64>();
        let (mt, nt) = (of(&layout.rows), of(&layout.columns));
        // Columns are multiplied by whole vectors.
        let lanes = LINE as f64;
        let full = (mt / (mt + 8.0)) * (nt / (nt + lanes)) * (nt / (nt / lanes).ceil() / lanes);
        let mut cost = b * m * n * k / 120.0 / full;
        // Each product has a cost of its own.
        cost += b * m * n / (mt * nt) * 130.0;
        let copied = |left: bool, size: f64, visits: f64| match if left {
            layout.left
        } else {
            layout.right
        } {
            FactorHandling::InPlace => 0.0,
            FactorHandling::Copied => size * 0.6,
            FactorHandling::Packed if self.sparse(layout, left) => size * visits * 4.0,
            FactorHandling::Packed => size * visits * 0.5,
        };
        cost += copied(true, b * m * k, (n / nt).max(1.0));
        cost += copied(false, b * k * n, (m / mt).max(1.0));
        if !layout.direct {
            cost += b * m * n * 0.3;
        }
        cost
    }
}

/// Tiles of at most `most` points: whole inner indices, a part of one, one value of the outer ones.
fn tiles_of(indices: &[usize], lengths: &[usize], most: usize, tiles: &mut [usize]) {
    let mut left = most.max(1);
    for index in indices.iter().rev() {
        let n = lengths[*index];
        if n <= left {
            tiles[*index] = n;
            left /= n.max(1);
        } else {
            // Equal parts.
            tiles[*index] = n.div_ceil(n.div_ceil(left));
            break;
        }
    }
}
