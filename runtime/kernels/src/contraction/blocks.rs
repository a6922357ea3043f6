//! Walks through the blocks of a layout: packs what has to be packed, multiplies, copies to the output what is not there yet.
//!
//! Blocks are disjoint boxes of the output and have sizes that depend on the layout alone, so neither results nor faults
//! depend on the number of threads. Must not know how the layout was chosen.
//!
//! ```text
//! block 7: rows 240 x columns 144, inner 20: pack left, product into a scratch of 135 KiB, copy to out[3, .., 2, .., 5, ..]
//! ```
#![allow(unsafe_code)]

use super::scaled::Scaled;
use crate::pack::{Packer, Strided};
use crate::packed::{Packed, Part};
use crate::parallel;
use crate::product::{Goal, Matrix, Target};
use crate::strided::{Axis, Copying};
use ein_plan::schedule::tiling::layout::Layout;
use ein_plan::schedule::tiling::search::BLOCKS;
use std::sync::atomic::{AtomicBool, Ordering};

/// A factor, ready to be multiplied.
pub(super) enum Ready<'f, 'a, T: Packed> {
    /// Where it is, with the steps of a block's rows and columns.
    InPlace(&'f Strided<'a, T>, usize, usize),
    /// Copied or computed block by block, row by row, or column by column if that is true.
    Packed(Packer<'f, 'a, T>, bool),
}

/// All that a block needs.
pub(super) struct Blocks<'f, 'a, T: Packed> {
    pub layout: &'f Layout,
    pub lengths: &'f [usize],
    pub rank: usize,
    pub left: Ready<'f, 'a, T>,
    pub right: Ready<'f, 'a, T>,
    pub factor: T,
    /// The steps of a block's rows and columns in the output.
    pub steps: (usize, usize),
    /// Where the first element lies in the output, and the step of each of its indices.
    pub first: usize,
    pub strides: Vec<usize>,
    /// What rows are multiplied and divided by when all blocks are there.
    pub scaled: Option<Scaled<T>>,
}

/// What a task keeps between its blocks.
struct Scratch<T> {
    part: Part,
    left: Buffer<T>,
    right: Buffer<T>,
    result: Vec<T>,
}

/// A packed block and the part that it holds.
struct Buffer<T> {
    values: Vec<T>,
    holds: Part,
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Buffer {
            values: vec![],
            holds: Part::default(),
        }
    }
}

impl<T: Packed> Blocks<'_, '_, T> {
    /// Whether products can be added to what is there: blocks are matrices in the output, and no point can fault.
    pub(super) fn adds(&self) -> bool {
        let in_place = |side: &Ready<'_, '_, T>| matches!(side, Ready::InPlace(..));
        self.layout.direct && in_place(&self.left) && in_place(&self.right)
    }

    /// Computes all blocks of the output, or adds them to what is there if `more` ([`Blocks::adds`]); whether no point faulted.
    pub(super) fn run(&self, output: &mut [T], more: bool) -> bool {
        let sound = self.products(output, more);
        if let (true, Some(scaled)) = (sound, &self.scaled) {
            scaled.scale(output, self.first);
        }
        sound
    }

    fn products(&self, output: &mut [T], more: bool) -> bool {
        let counts: Vec<usize> = (0..self.rank)
            .map(|i| self.lengths[i].div_ceil(self.layout.tile[i]))
            .collect();
        let count: usize = counts.iter().product();
        let strides = &self.strides;
        let target = Target::new(&mut output[self.first..]);
        let sound = AtomicBool::new(true);
        let scratch = || Scratch {
            part: Part {
                start: vec![0; self.lengths.len()],
                size: vec![1; self.lengths.len()],
            },
            left: Buffer::default(),
            right: Buffer::default(),
            result: vec![],
        };
        let scattering = (!self.layout.direct).then(|| self.scattering(&self.layout.tile, strides));
        let block = |scratch: &mut Scratch<T>, number: usize, shared: bool| {
            if !sound.load(Ordering::Relaxed) {
                return;
            }
            let mut rest = number;
            for i in (0..self.rank).rev() {
                let start = rest % counts[i] * self.layout.tile[i];
                rest /= counts[i];
                scratch.part.start[i] = start;
                scratch.part.size[i] = self.layout.tile[i].min(self.lengths[i] - start);
            }
            let scattering = scattering.as_ref();
            if !self.block(scratch, (&target, more), strides, scattering, shared) {
                sound.store(false, Ordering::Relaxed);
            }
        };
        if let Some(same) = self.same(strides) {
            same.run((&target, more), count, self.factor);
            return true;
        }
        // Few large products are shared by the threads; of many, each has one thread.
        if count < BLOCKS && self.adds() {
            let mut scratch = scratch();
            (0..count).for_each(|number| block(&mut scratch, number, true));
        } else {
            let work: usize = self.layout.tile.iter().product();
            let least = (1usize << 19).div_ceil(work.max(1));
            let block = |scratch: &mut Scratch<T>, number| block(scratch, number, false);
            parallel::each_with(count, least, scratch, block);
        }
        sound.into_inner()
    }

    /// The blocks, if they are many products of one size that need no copies.
    fn same(&self, strides: &[usize]) -> Option<Same<'_, T>> {
        let layout = self.layout;
        let (Ready::InPlace(left, ..), Ready::InPlace(right, ..)) = (&self.left, &self.right)
        else {
            return None;
        };
        let of_block = layout.rows.iter().chain(&layout.columns);
        let mut of_block = of_block.chain(&layout.inner);
        if !layout.direct || !of_block.all(|i| layout.tile[*i] == self.lengths[*i]) {
            return None;
        }
        let loops = (0..self.rank)
            .filter(|i| layout.tile[*i] < self.lengths[*i])
            .map(|i| Loop {
                extent: self.lengths[i],
                steps: [left.steps[i], right.steps[i], strides[i] as i64],
            });
        let loops: Vec<Loop> = loops.collect();
        let count = |list: &[usize]| list.iter().map(|i| self.lengths[*i]).product();
        let zero = vec![0; self.lengths.len()];
        let whole = Part {
            start: zero.clone(),
            size: self.lengths.to_vec(),
        };
        let sizes = (
            count(&layout.rows),
            count(&layout.columns),
            count(&layout.inner),
        );
        let few: usize = loops.iter().map(|l| l.extent).product();
        (few >= BLOCKS).then(|| Same {
            sizes,
            loops,
            left: self.left.matrix(None, &whole, (0, 0), 0),
            right: self.right.matrix(None, &whole, (0, 0), 0),
            goal: Goal {
                offset: 0,
                row: self.steps.0,
                column: self.steps.1,
            },
        })
    }

    /// The copy of a block of these sizes to its place.
    fn scattering(&self, sizes: &[usize], strides: &[usize]) -> Copying {
        let layout = self.layout;
        let order = layout
            .many
            .iter()
            .chain(&layout.rows)
            .chain(&layout.columns);
        let (mut from, mut axes) = (1, vec![]);
        for index in order.rev() {
            axes.push(Axis {
                extent: sizes[*index],
                from,
                to: strides[*index] as isize,
            });
            from *= sizes[*index] as isize;
        }
        Copying::new(&axes)
    }

    /// One block; the part of the output's indices is set.
    fn block(
        &self,
        scratch: &mut Scratch<T>,
        (target, more): (&Target<T>, bool),
        strides: &[usize],
        scattering: Option<&Copying>,
        shared: bool,
    ) -> bool {
        let layout = self.layout;
        let part = &mut scratch.part;
        let (m, n) = (part.count(&layout.rows), part.count(&layout.columns));
        let many = part.count(&layout.many);
        let offset: usize = (0..self.rank).map(|i| part.start[i] * strides[i]).sum();
        let (into, goal) = if layout.direct {
            let (row, column) = self.steps;
            (
                None,
                Goal {
                    offset,
                    row,
                    column,
                },
            )
        } else {
            scratch.result.resize(many * m * n, T::default());
            let goal = Goal {
                offset: 0,
                row: n,
                column: 1,
            };
            (Some(Target::new(&mut scratch.result)), goal)
        };
        let tiles: usize = (layout.inner.iter())
            .map(|i| self.lengths[*i].div_ceil(layout.tile[*i]))
            .product();
        for tile in 0..tiles {
            let mut rest = tile;
            for i in layout.inner.iter().rev() {
                let count = self.lengths[*i].div_ceil(layout.tile[*i]);
                part.start[*i] = rest % count * layout.tile[*i];
                part.size[*i] = layout.tile[*i].min(self.lengths[*i] - part.start[*i]);
                rest /= count;
            }
            let k = part.count(&layout.inner);
            if !prepare(&self.left, part, &mut scratch.left)
                || !prepare(&self.right, part, &mut scratch.right)
            {
                return false;
            }
            for one in 0..many {
                let begin = layout.many.first().map(|i| (*i, part.start[*i]));
                if let Some((i, start)) = begin {
                    part.start[i] = start + one;
                }
                let left = self.left.matrix(Some(&scratch.left), part, (m, k), one);
                let right = self.right.matrix(Some(&scratch.right), part, (k, n), one);
                let goal = Goal {
                    offset: goal.offset + one * m * n,
                    ..goal
                };
                let into = into.as_ref().unwrap_or(target);
                let more = more || tile > 0;
                // SAFETY: a scratch is the task's own. Different numbers give blocks that are disjoint boxes of the
                // output, which is borrowed while this runs, so nobody else touches this one.
                unsafe { into.multiply(goal, (m, n, k), left, right, self.factor, more, shared) };
                if let Some((i, start)) = begin {
                    part.start[i] = start;
                }
            }
        }
        if !layout.direct {
            let usual = scattering.filter(|_| part.size[..self.rank] == layout.tile[..self.rank]);
            let own = usual
                .is_none()
                .then(|| self.scattering(&part.size, strides));
            if let Some(copying) = usual.or(own.as_ref()) {
                let last: usize = (0..self.rank)
                    .map(|i| (part.start[i] + part.size[i] - 1) * strides[i])
                    .sum();
                target.pointer(last);
                // SAFETY: the scratch holds this many elements, the box's first and last elements are inside the output
                // (asserted), and the box is this task's alone.
                unsafe { copying.copy(scratch.result.as_ptr(), target.pointer(offset)) };
            }
        }
        true
    }
}

/// A loop around products of one size: how often, and the steps of the left factor, the right one and the output.
struct Loop {
    extent: usize,
    steps: [i64; 3],
}

/// Many products of one size, none of which needs a copy.
struct Same<'m, T> {
    sizes: (usize, usize, usize),
    loops: Vec<Loop>,
    left: Matrix<'m, T>,
    right: Matrix<'m, T>,
    goal: Goal,
}

impl<T: Packed> Same<'_, T> {
    fn run(&self, (target, more): (&Target<T>, bool), count: usize, factor: T) {
        let (m, n, k) = self.sizes;
        let each = (1usize << 19)
            .div_ceil((m * n * k).max(1))
            .min(count.div_ceil(BLOCKS));
        parallel::each(count.div_ceil(each), |task| {
            let (first, end) = (task * each, count.min((task + 1) * each));
            let mut at = vec![0usize; self.loops.len()];
            let mut offsets =
                [self.left.offset, self.right.offset, self.goal.offset].map(|o| o as i64);
            let mut rest = first;
            for (at, l) in at.iter_mut().zip(&self.loops).rev() {
                *at = rest % l.extent;
                rest /= l.extent;
                for (offset, step) in offsets.iter_mut().zip(l.steps) {
                    *offset += step * *at as i64;
                }
            }
            for _ in first..end {
                let [a, b, c] = offsets.map(|offset| offset as usize);
                let left = Matrix {
                    offset: a,
                    ..self.left
                };
                let right = Matrix {
                    offset: b,
                    ..self.right
                };
                let goal = Goal {
                    offset: c,
                    ..self.goal
                };
                // SAFETY: different numbers are different boxes of the output, which is borrowed while this runs.
                unsafe { target.multiply(goal, self.sizes, left, right, factor, more, false) };
                for (at, l) in at.iter_mut().zip(&self.loops).rev() {
                    let last = *at + 1 == l.extent;
                    let times = if last { -(*at as i64) } else { 1 };
                    *at = if last { 0 } else { *at + 1 };
                    for (offset, step) in offsets.iter_mut().zip(l.steps) {
                        *offset += step * times;
                    }
                    if !last {
                        break;
                    }
                }
            }
        });
    }
}

/// Packs the part of a factor that is packed, unless the buffer has it; whether no point faulted.
fn prepare<T: Packed>(side: &Ready<'_, '_, T>, part: &Part, buffer: &mut Buffer<T>) -> bool {
    let Ready::Packed(packer, _) = side else {
        return true;
    };
    let own = |values: &[usize], holds: &[usize]| {
        !holds.is_empty() && packer.reads.iter().all(|i| values[*i] == holds[*i])
    };
    if own(&part.start, &buffer.holds.start) && own(&part.size, &buffer.holds.size) {
        return true;
    }
    buffer
        .values
        .resize(part.count(&packer.order), T::default());
    buffer.holds.clone_from(part);
    packer.pack(part, &mut buffer.values)
}

impl<T: Packed> Ready<'_, '_, T> {
    /// The matrix of a part with the given rows and columns; of a packed one, number `one` of those in the buffer.
    fn matrix<'m>(
        &'m self,
        buffer: Option<&'m Buffer<T>>,
        part: &Part,
        (rows, columns): (usize, usize),
        one: usize,
    ) -> Matrix<'m, T> {
        match self {
            Ready::InPlace(strided, row, column) => Matrix {
                data: strided.data.slice(),
                offset: strided.at(&part.start),
                row: *row,
                column: *column,
            },
            Ready::Packed(_, turned) => {
                let (row, column) = if *turned { (1, rows) } else { (columns, 1) };
                Matrix {
                    data: buffer.map_or(&[], |buffer| &buffer.values),
                    offset: one * rows * columns,
                    row,
                    column,
                }
            }
        }
    }
}

/// Distances between neighbours of a dense array.
pub(super) fn strides(lengths: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; lengths.len()];
    for d in (1..lengths.len()).rev() {
        strides[d - 1] = strides[d] * lengths[d];
    }
    strides
}
