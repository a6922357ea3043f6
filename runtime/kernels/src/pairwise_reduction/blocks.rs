//! Boxes of a kernel's output: blocks of rows and columns in registers, or lines.
//!
//! Must not know what is done with two elements.
//!
//! ```text
//! 10 rows, 100 columns of f32, AVX-512: panels of 64, 16, 16, 16 columns (the last has 4); rows 0..4, 4..8, 8, 9
//! ```

use super::PairwiseReduction;
use super::term::{Number, RUN, Rule, Seconds, line};
use crate::stream;
use crate::wide;
use ein_plan::schedule::access::distances;
use ein_plan::schedule::pairwise::PairwiseLoops;
use std::ops::Range;

/// Rows of a block.
const HIGH: usize = 4;
/// Bytes of the panels that are gone through for each few rows: they stay in the second cache.
const GROUP: usize = 1 << 18;

/// Columns that are added up together: their sums stay in the first cache.
pub(super) const SUMS: usize = 2048;

/// Columns, copied: panel by panel, term by term, lanes side by side. The last panel may have more lanes than columns.
pub(crate) struct Panels<T>(Vec<T>);

/// A box of the output.
pub(crate) struct Task<'t, T> {
    pub pairs: &'t PairwiseReduction,
    /// The length of each index in the box.
    pub lengths: Vec<usize>,
    pub x: &'t [T],
    pub y: &'t [T],
    /// Where the first elements lie.
    pub first: (i64, i64),
    pub panels: Option<&'t Panels<T>>,
    /// The box, in row-major order.
    pub to: &'t mut [T],
}

/// Panels for so many columns: the first column of each, and whether it is a wide one.
fn cut(columns: usize, wide: usize, narrow: usize) -> Vec<(usize, bool)> {
    let many = if wide::has_widest() {
        columns / wide
    } else {
        0
    };
    let panels = (0..many).map(|p| (p * wide, true));
    let rest = (many * wide..columns).step_by(narrow);
    panels.chain(rest.map(|first| (first, false))).collect()
}

impl<T: Number> Task<'_, T> {
    /// Row-major steps of the box.
    fn steps(&self) -> Vec<i64> {
        let mut steps = vec![0; self.lengths.len()];
        let mut next = 1;
        for i in (0..self.pairs.rank).rev() {
            steps[i] = next;
            next *= self.lengths[i] as i64;
        }
        steps
    }

    fn along(&self, indices: &[usize], steps: &[i64]) -> Vec<usize> {
        distances(indices, &self.lengths, steps)
    }

    /// For every output point its place in the box, and where its left and right terms begin: batch, rows, columns from the
    /// outside in.
    pub(super) fn points(&self) -> Vec<(usize, usize, usize)> {
        let pairs = self.pairs;
        let order: Vec<usize> = [&pairs.batch, &pairs.rows, &pairs.columns]
            .into_iter()
            .flatten()
            .copied()
            .collect();
        let to = self.along(&order, &self.steps());
        let x = self.along(&order, &pairs.left.steps);
        let y = self.along(&order, &pairs.right.steps);
        let first = (self.first.0 as usize, self.first.1 as usize);
        let points = to.into_iter().zip(x).zip(y);
        points
            .map(|((to, x), y)| (to, first.0.wrapping_add(x), first.1.wrapping_add(y)))
            .collect()
    }

    /// Computes the box.
    #[inline(always)]
    pub(super) fn run<R: Rule, const BYTES: usize, const W: usize, const N: usize>(self, rule: R) {
        match self.pairs.way {
            PairwiseLoops::Blocks => self.blocks::<R, BYTES, W, N>(rule),
            PairwiseLoops::Lines | PairwiseLoops::LinesToOne => self.lines(rule),
            PairwiseLoops::Sums => self.sums(rule),
        }
    }

    #[inline(always)]
    fn lines<R: Rule>(self, rule: R) {
        let terms = self.terms();
        let far = stream::is_far(self.x)
            && (self.pairs.way == PairwiseLoops::LinesToOne || stream::is_far(self.y));
        for (at, x, y) in self.points() {
            let value = line(rule, far, &self.x[x..x + terms], self.seconds(y, 0..terms));
            self.to[at] = T::from_f64(value / self.pairs.divisor);
        }
    }

    /// The second elements of some terms of the line that begins there.
    #[inline(always)]
    pub(super) fn seconds(&self, begin: usize, terms: Range<usize>) -> Seconds<'_, T> {
        match self.pairs.way {
            PairwiseLoops::LinesToOne => Seconds::One(self.y[begin]),
            _ => Seconds::Each(&self.y[begin + terms.start..begin + terms.end]),
        }
    }

    /// Rows of neighbouring columns, added up.
    #[inline(always)]
    fn sums<R: Rule>(self, rule: R) {
        let pairs = self.pairs;
        let steps = [&pairs.left.steps, &pairs.right.steps, &self.steps()];
        let [xs, ys, _] = steps.map(|steps| self.along(&pairs.terms, steps));
        let [of_x, of_y, places] = steps.map(|steps| self.along(&pairs.batch, steps));
        let columns = pairs
            .columns
            .iter()
            .map(|i| self.lengths[*i])
            .product::<usize>();
        let (mut sums, mut totals) = (vec![T::default(); SUMS], vec![0.0; SUMS]);
        for ((x, y), at) in of_x.iter().zip(&of_y).zip(&places) {
            let x = (self.first.0 as usize).wrapping_add(*x);
            let y = (self.first.1 as usize).wrapping_add(*y);
            for first in (0..columns).step_by(SUMS) {
                let width = SUMS.min(columns - first);
                let (sums, totals) = (&mut sums[..width], &mut totals[..width]);
                let term = |x_at: &usize| self.x[x.wrapping_add(*x_at)];
                let row = |y_at: &usize| &self.y[y.wrapping_add(*y_at) + first..][..width];
                for (number, (xs, ys)) in xs.chunks(RUN).zip(ys.chunks(RUN)).enumerate() {
                    sums.fill(rule.start());
                    let ((fours, x), (rows, y)) = (xs.as_chunks::<4>(), ys.as_chunks::<4>());
                    for (four, rows) in fours.iter().zip(rows) {
                        let (x, [a, b, c, d]) =
                            (four.each_ref().map(term), rows.each_ref().map(row));
                        for ((((sum, a), b), c), d) in sums.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                            let half = rule.add(rule.add(*sum, x[0], *a), x[1], *b);
                            *sum = rule.add(rule.add(half, x[2], *c), x[3], *d);
                        }
                    }
                    for (x, y) in x.iter().map(term).zip(y.iter().map(row)) {
                        for (sum, y) in sums.iter_mut().zip(y) {
                            *sum = rule.add(*sum, x, *y);
                        }
                    }
                    for (total, sum) in totals.iter_mut().zip(sums.iter()) {
                        let sum = sum.to_f64();
                        *total = if number == 0 {
                            sum
                        } else {
                            rule.join(*total, sum)
                        };
                    }
                }
                for (to, total) in self.to[at + first..][..width].iter_mut().zip(totals.iter()) {
                    *to = T::from_f64(*total / pairs.divisor);
                }
            }
        }
    }

    /// Number of terms.
    pub(super) fn terms(&self) -> usize {
        let terms = self.pairs.terms.iter();
        terms.map(|i| self.lengths[*i]).product()
    }

    /// The columns of a value of the batch, as panels of these widths.
    pub(super) fn pack_to<const W: usize, const N: usize>(&self, batch: usize) -> Panels<T> {
        let steps = &self.pairs.right.steps;
        let columns = self.along(&self.pairs.columns, steps);
        let terms = self.along(&self.pairs.terms, steps);
        let first = (self.first.1 as usize).wrapping_add(batch);
        let mut values = vec![T::default(); columns.len().next_multiple_of(N) * terms.len()];
        for (start, wide) in cut(columns.len(), W, N) {
            let width = if wide { W } else { N };
            let panel = &mut values[start * terms.len()..][..width * terms.len()];
            for (lane, column) in columns[start..].iter().take(width).enumerate() {
                let from = first.wrapping_add(*column);
                for (to, term) in panel[lane..].iter_mut().step_by(width).zip(&terms) {
                    *to = self.y[from.wrapping_add(*term)];
                }
            }
        }
        Panels(values)
    }

    #[inline(always)]
    fn blocks<R: Rule, const BYTES: usize, const W: usize, const N: usize>(mut self, rule: R) {
        let pairs = self.pairs;
        let to = std::mem::take(&mut self.to);
        let steps = self.steps();
        let of_x = &pairs.left.steps;
        let terms = self.along(&pairs.terms, of_x);
        let rows = self.along(&pairs.rows, of_x);
        let places = self.along(&pairs.rows, &steps);
        let columns = self.along(&pairs.columns, &steps);
        let contiguous = columns.iter().enumerate().all(|(n, at)| n == *at);
        let batch = self.along(&pairs.batch, of_x);
        let others = self.along(&pairs.batch, &pairs.right.steps);
        let boxes = self.along(&pairs.batch, &steps);
        let panels = cut(columns.len(), W, N);
        let size = size_of::<T>() * W * terms.len();
        let group = (GROUP / size.max(1)).max(1);
        let run = terms.iter().enumerate().all(|(n, at)| n == *at);
        let mut strip = vec![T::default(); HIGH * terms.len()];
        for ((x, y), at) in batch.iter().zip(&others).zip(&boxes) {
            let own;
            let packed = match self.panels {
                Some(panels) => panels,
                None => {
                    own = self.pack_to::<W, N>(*y);
                    &own
                }
            };
            let first = (self.first.0 as usize).wrapping_add(*x);
            for panels in panels.chunks(group) {
                let mut row = 0;
                while row < rows.len() {
                    let high = if row + HIGH <= rows.len() { HIGH } else { 1 };
                    let from = |r: usize| first.wrapping_add(rows[row + r]);
                    let neighbours = |r: usize| &self.x[from(r)..][..terms.len()];
                    if run && high == HIGH {
                        let (a, b) = (neighbours(0).iter(), neighbours(1).iter());
                        let (c, d) = (neighbours(2).iter(), neighbours(3).iter());
                        let fours = strip.as_chunks_mut::<HIGH>().0.iter_mut();
                        for ((((four, a), b), c), d) in fours.zip(a).zip(b).zip(c).zip(d) {
                            *four = [*a, *b, *c, *d];
                        }
                    } else {
                        for r in 0..high {
                            let strip = strip[r..].iter_mut().step_by(high);
                            for (to, term) in strip.zip(&terms) {
                                *to = self.x[from(r).wrapping_add(*term)];
                            }
                        }
                    }
                    let strip = &strip[..high * terms.len()];
                    for (start, is_wide) in panels {
                        let panel = &packed.0[start * terms.len()..];
                        let mut put = Put {
                            to: &mut *to,
                            rows: &places[row..row + high],
                            first: *at,
                            columns: &columns[*start..],
                            contiguous,
                            divisor: pairs.divisor,
                        };
                        // Wide panels are cut for the widest vectors alone.
                        if const { BYTES == wide::WIDEST } && *is_wide {
                            match high == HIGH {
                                true => block::<T, R, HIGH, W>(rule, strip, panel, &mut put),
                                false => block::<T, R, 1, W>(rule, strip, panel, &mut put),
                            }
                        } else {
                            match high == HIGH {
                                true => block::<T, R, HIGH, N>(rule, strip, panel, &mut put),
                                false => block::<T, R, 1, N>(rule, strip, panel, &mut put),
                            }
                        }
                    }
                    row += high;
                }
            }
        }
    }
}

/// Where a block's results go.
struct Put<'p, T> {
    to: &'p mut [T],
    /// The place of each row, and of each column from the block's first one on.
    rows: &'p [usize],
    first: usize,
    columns: &'p [usize],
    contiguous: bool,
    divisor: f64,
}

impl<T: Number> Put<'_, T> {
    #[inline(always)]
    fn row<const W: usize>(&mut self, row: usize, values: &[T; W]) {
        let count = self.columns.len().min(W);
        let at = self.first + self.rows[row];
        if !self.contiguous {
            for (column, value) in self.columns.iter().zip(values) {
                self.to[at + column] = *value;
            }
        } else if count == W {
            self.to[at + self.columns[0]..][..W].copy_from_slice(values);
        } else {
            self.to[at + self.columns[0]..][..count].copy_from_slice(&values[..count]);
        }
    }

    #[inline(always)]
    fn wide_row<const W: usize>(&mut self, row: usize, values: &[f64; W]) {
        let mut narrow = [T::default(); W];
        for w in 0..W {
            narrow[w] = T::from_f64(values[w] / self.divisor);
        }
        self.row(row, &narrow);
    }
}

/// Adds up to [`RUN`] terms of `H` rows and `W` columns.
#[inline(always)]
fn terms<T: Number, R: Rule, const H: usize, const W: usize>(
    rule: R,
    x: &[[T; H]],
    y: &[[T; W]],
) -> [[T; W]; H] {
    let mut sums = [[rule.start::<T>(); W]; H];
    for (x, y) in x.iter().zip(y) {
        for h in 0..H {
            for w in 0..W {
                sums[h][w] = rule.add(sums[h][w], x[h], y[w]);
            }
        }
    }
    sums
}

/// One block: `strip` has the terms of its rows, `panel` those of its columns.
#[inline(always)]
fn block<T: Number, R: Rule, const H: usize, const W: usize>(
    rule: R,
    strip: &[T],
    panel: &[T],
    put: &mut Put<'_, T>,
) {
    let (x, y) = (strip.as_chunks::<H>().0, panel.as_chunks::<W>().0);
    let run = if T::WIDE { x.len().max(1) } else { RUN };
    let mut totals = [[0.0; W]; H];
    for (number, (x, y)) in x.chunks(run).zip(y.chunks(run)).enumerate() {
        let sums = terms::<T, R, H, W>(rule, x, y);
        if strip.len() <= run * H && put.divisor == 1.0 {
            for (h, sums) in sums.iter().enumerate() {
                put.row(h, sums);
            }
            return;
        }
        for h in 0..H {
            for w in 0..W {
                let sum = sums[h][w].to_f64();
                totals[h][w] = if number == 0 {
                    sum
                } else {
                    rule.join(totals[h][w], sum)
                };
            }
        }
    }
    for (h, totals) in totals.iter().enumerate() {
        put.wide_row(h, totals);
    }
}
