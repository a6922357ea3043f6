//! Sums of products as matrix products.
//!
//! A sum whose body is a product of two factors (and numbers) becomes blocks of matrix products: indices of
//! both factors that are not summed are looped over, those of one are rows or columns. What would not gain
//! from it, or faults, is left to the strips. Must not know plans.
//!
//! ```text
//! [b, h, t, s | d]  a0[b, h, t, d] * a1[b, h, s, d] / sqrt(c)   b, h: loops   t: rows   s: columns   d: inner
//! ```

mod blocks;
mod factors;
mod guarded;
mod kept;
mod scaled;

use crate::pack::{Factor, Memory, Packer, Strided};
use crate::packed::{Packed, Part};
use crate::parallel;
use crate::segment::Segment;
use crate::{Chunk, memory};
use blocks::{Blocks, Ready, strides};
use ein_array::Array;
use ein_plan::schedule::access::merged;
use ein_plan::schedule::factors::factors;
use ein_plan::schedule::matmul::{LEAST_SIDE, LEAST_WORK, Matmul};
use ein_plan::schedule::tiling::layout::{FactorHandling, FactorLayout, Layout};
use ein_plan::schedule::tiling::search::{Roles, Sizes};
use ein_plan::{DType, Kernel};
use factors::{Factors, valued};
pub(crate) use kept::Kept;
use scaled::Scaled;

/// Parts in which a factor is copied as a whole.
const PARTS: usize = 32;

/// The product of a kernel in this form, if no point of it faults and the numbers beside the factors are ordinary ones.
pub(crate) fn run(
    kernel: &Kernel,
    form: &Matmul,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Array> {
    if kernel.guard.is_some() {
        return guarded::run(kernel, form, ranges, operands);
    }
    let fresh = Fresh { kernel, room: None };
    computed(kernel, ranges, operands, Which::Whole(form), fresh)
}

/// A block of rows of a product.
pub(crate) struct Block<'b> {
    /// The range of each index.
    pub whole: &'b [(u64, u64)],
    /// What is computed: the rest of the result is any numbers, and terms that are left out are not added.
    pub part: &'b [(u64, u64)],
    /// The role of each index in all blocks.
    pub form: &'b Matmul,
    /// What the blocks share.
    pub kept: &'b Kept,
}

/// The same of a block, in the place of `room`, if that is of its shape.
pub(crate) fn run_block(
    kernel: &Kernel,
    block: &Block<'_>,
    operands: &[Chunk<'_>],
    room: Option<Array>,
) -> Option<Array> {
    let fresh = Fresh { kernel, room };
    let output = &block.whole[..kernel.output_rank as usize];
    if block.part[..output.len()].iter().any(|(_, n)| *n == 0) {
        let shape: Vec<usize> = output.iter().map(|(_, n)| *n as usize).collect();
        return Some(fresh.room(&shape));
    }
    computed(kernel, block.part, operands, Which::Block(block), fresh)
}

/// Adds the product to a sum of its shape and type, block by block where it lies; whether it has: else nothing is changed.
pub(crate) fn add(
    kernel: &Kernel,
    form: &Matmul,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    sum: &mut Array,
) -> bool {
    kernel.output[..] == [sum.dtype()]
        && kernel.guard.is_none()
        && computed(kernel, ranges, operands, Which::Whole(form), Added(sum)).is_some()
}

/// What becomes of a product that is ready to be computed.
trait Use {
    type Made;
    /// `shape`: the result's. None: it is not to be had, or a point faults.
    fn of<T: Packed>(self, blocks: &Blocks<'_, '_, T>, shape: &[usize]) -> Option<Self::Made>;
}

/// An array of its own, in the place of another one if that fits.
struct Fresh<'k> {
    kernel: &'k Kernel,
    room: Option<Array>,
}

impl Fresh<'_> {
    /// An array of this shape, with any numbers.
    fn room(self, shape: &[usize]) -> Array {
        let dtype = self.kernel.output[0];
        match self.room {
            Some(room) if room.dtype() == dtype => room.refitted(shape),
            _ => memory::room(dtype, shape),
        }
    }
}

impl Use for Fresh<'_> {
    type Made = Array;
    fn of<T: Packed>(self, blocks: &Blocks<'_, '_, T>, shape: &[usize]) -> Option<Array> {
        let mut result = self.room(shape);
        if let Some(output) = T::slice_mut(result.data_mut()) {
            return blocks.run(output, false).then_some(result);
        }
        let mut wide = vec![T::default(); shape.iter().product()];
        if !blocks.run(&mut wide, false) {
            return None;
        }
        let mut segment = Segment::of(result.data_mut());
        for (at, x) in wide.iter().enumerate() {
            segment.set_float(at, x.to_f64());
        }
        Some(result)
    }
}

/// An addend of a sum.
struct Added<'s>(&'s mut Array);

impl Use for Added<'_> {
    type Made = ();
    fn of<T: Packed>(self, blocks: &Blocks<'_, '_, T>, shape: &[usize]) -> Option<()> {
        let Added(sum) = self;
        if sum.shape() != shape || !blocks.adds() {
            return None;
        }
        blocks
            .run(T::slice_mut(sum.data_mut())?, true)
            .then_some(())
    }
}

/// A part of a result that has other parts.
struct Inside<'s>(&'s mut Array);

impl Use for Inside<'_> {
    type Made = ();
    fn of<T: Packed>(self, blocks: &Blocks<'_, '_, T>, shape: &[usize]) -> Option<()> {
        let Inside(result) = self;
        debug_assert_eq!(result.shape(), shape, "a part of this result");
        blocks
            .run(T::slice_mut(result.data_mut())?, false)
            .then_some(())
    }
}

/// Which part of a kernel is computed.
#[derive(Clone, Copy)]
enum Which<'w> {
    /// All of it: what each index is was decided with the plan.
    Whole(&'w Matmul),
    /// A block of rows, which may be too small for matrix products.
    Block(&'w Block<'w>),
    /// A part of a product, however small.
    Part(&'w Block<'w>),
}

fn computed<U: Use>(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    which: Which<'_>,
    of: U,
) -> Option<U::Made> {
    if ranges.iter().any(|(_, n)| *n == 0) {
        return None;
    }
    match kernel.graph.dtype(kernel.root) {
        DType::F32 => typed::<f32, U>(kernel, ranges, operands, which, of),
        DType::F64 => typed::<f64, U>(kernel, ranges, operands, which, of),
        _ => None,
    }
}

fn typed<T: Packed, U: Use>(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
    which: Which<'_>,
    of: U,
) -> Option<U::Made> {
    let block = match which {
        Which::Whole(_) => None,
        Which::Block(block) | Which::Part(block) => Some(block),
    };
    let whole = crate::signed(block.map_or(ranges, |block| block.whole));
    let ranges = crate::signed(ranges);
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let rank = kernel.output_rank as usize;
    let shape: Vec<usize> = whole[..rank].iter().map(|(_, n)| *n as usize).collect();
    let outer = strides(&shape);
    let taken = |by_rows| {
        let found = factors(kernel, by_rows)?;
        let roles = match which {
            Which::Whole(form) => form.clone(),
            Which::Block(block) | Which::Part(block) => block.form.of_several(&lengths),
        };
        valued::<T>(kernel, operands, &ranges, (found, roles))
    };
    let mut factors = taken(block.is_some())?;
    let mut scaled = None;
    if !factors.of_rows.is_empty() {
        scaled = Scaled::<T>::of(&factors, operands, &ranges, &outer);
        if scaled.is_none() {
            factors = taken(false)?;
        }
    }
    let roles = factors.roles.roles(&lengths);
    let count = |list: &[usize]| list.iter().map(|i| lengths[*i]).product::<usize>();
    let (m, n, k) = (
        count(&roles.rows),
        count(&roles.columns),
        count(&roles.inner),
    );
    let small = m.max(n) < LEAST_SIDE || m.saturating_mul(n).saturating_mul(k) < LEAST_WORK;
    if matches!(which, Which::Block(_)) && small {
        return None;
    }

    let mut left = Factor::of(&factors.graph, factors.left.0, operands, &ranges);
    let mut right = Factor::of(&factors.graph, factors.right.0, operands, &ranges);
    if let Some(block) = block {
        let of = (factors.right.1, &roles);
        right = block.kept.turned(right, of, &whole, &ranges);
    }
    let lying = [lie(&left), lie(&right)];
    let (roles, layout, swapped) = laid_out(&factors.roles, roles, lying, &lengths, rank);
    if swapped {
        (factors.left, factors.right) = (factors.right, factors.left);
        (left, right) = (right, left);
    }
    let context = Context {
        factors: &factors,
        operands,
        ranges: &ranges,
        lengths: &lengths,
        layout: &layout,
    };
    let left = context.held(left, &roles, true)?;
    let right = context.held(right, &roles, false)?;
    let own = |list: &[usize]| {
        let nearest = list.iter().rev().find(|i| layout.tile[**i] > 1);
        nearest.map_or(1, |i| outer[*i])
    };
    let blocks = Blocks {
        layout: &layout,
        lengths: &lengths,
        rank,
        left: context.ready(&left, true),
        right: context.ready(&right, false),
        factor: T::from_f64(factors.number),
        steps: (own(&layout.rows), own(&layout.columns)),
        first: (whole.iter().zip(&ranges).zip(&outer))
            .map(|((whole, range), stride)| (range.0 - whole.0) as usize * stride)
            .sum(),
        strides: outer,
        scaled,
    };
    of.of(&blocks, &shape)
}

/// The blocks of a product whose factors lie like this, with the roles of the indices in them, and whether the factors change places: those of the
/// plan if they are for this tuple, else those that the plan's search finds.
fn laid_out(
    form: &Matmul,
    roles: Roles,
    [left, right]: [FactorLayout<'_>; 2],
    lengths: &[usize],
    rank: usize,
) -> (Roles, Layout, bool) {
    let shares = crate::blas::loaded().is_none();
    let placed = |swapped| match swapped {
        true => (roles.clone().turned(), right, left),
        false => (roles.clone(), left, right),
    };
    if let Some(tiling) = &form.tiling
        && let Some(layout) = tiling.layout(lengths, [left, right], shares)
    {
        return (placed(tiling.swapped).0, layout, tiling.swapped);
    }
    let swapped = roles.turns(left, lengths);
    let (roles, left, right) = placed(swapped);
    let sizes = Sizes {
        lengths,
        rank,
        roles: &roles,
        left,
        right,
        shares,
    };
    let layout = sizes.choose();
    (roles, layout, swapped)
}

fn lie<'s, T: Packed>(factor: &'s Factor<'_, T>) -> FactorLayout<'s> {
    match factor {
        Factor::Strided(strided) => FactorLayout::Strided(&strided.steps),
        Factor::Window(_) | Factor::Evaluated => FactorLayout::Made,
    }
}

/// What copies of the factors need.
struct Context<'c, 'a> {
    factors: &'c Factors,
    operands: &'a [Chunk<'a>],
    ranges: &'c [(i64, i64)],
    lengths: &'c [usize],
    layout: &'c Layout,
}

impl<'a> Context<'_, 'a> {
    fn packer<'f, T: Packed>(
        &'f self,
        factor: &'f Factor<'a, T>,
        left: bool,
        orders: [Vec<usize>; 2],
        usual: &[usize],
    ) -> Packer<'f, 'a, T> {
        let (node, mask) = match left {
            true => self.factors.left,
            false => self.factors.right,
        };
        let reads = (0..self.lengths.len()).filter(|i| mask >> i & 1 == 1);
        Packer::new(
            factor,
            (&self.factors.graph, node),
            self.operands,
            self.ranges,
            orders,
            reads.collect(),
            usual,
        )
    }

    /// The factor, or a dense copy of it if the layout wants one; `None` if a point faults.
    fn held<T: Packed>(
        &self,
        factor: Factor<'a, T>,
        roles: &Roles,
        left: bool,
    ) -> Option<Factor<'a, T>> {
        let layout = self.layout;
        let (way, own, block) = match left {
            true => (layout.left, &roles.rows, &layout.rows),
            false => (layout.right, &roles.columns, &layout.columns),
        };
        if way != FactorHandling::Copied {
            return Some(factor);
        }
        let others = own.iter().filter(|i| !block.contains(i));
        let outer: Vec<usize> = roles.batch.iter().chain(others).copied().collect();
        let orders = match left {
            true => orders(&outer, block, &layout.inner),
            false => orders(&outer, &layout.inner, block),
        };
        let mut whole = Part {
            start: vec![0; self.lengths.len()],
            size: vec![1; self.lengths.len()],
        };
        (orders[0].iter()).for_each(|i| whole.size[*i] = self.lengths[*i]);
        let packer = self.packer(&factor, left, orders, &whole.size);
        let order = packer.order.clone();
        let mut usual = whole.size.clone();
        let mut parts = 1;
        for index in &order {
            let wanted = PARTS / parts;
            usual[*index] = self.lengths[*index].div_ceil(wanted);
            parts *= self.lengths[*index].div_ceil(usual[*index]);
            if usual[*index] > 1 || parts > PARTS / 2 {
                break;
            }
        }
        let mut copy = memory::room(T::DTYPE, &[whole.count(&order)]);
        let values = T::slice_mut(copy.data_mut())?;
        if !packer.copy(&whole, values) {
            let mut tasks = vec![];
            let (mut rest, mut part) = (values, whole.clone());
            'parts: loop {
                for i in &order {
                    part.size[*i] = usual[*i].min(self.lengths[*i] - part.start[*i]);
                }
                let (head, tail) = rest.split_at_mut(part.count(&order));
                rest = tail;
                tasks.push((part.clone(), head));
                for i in order.iter().rev() {
                    part.start[*i] += part.size[*i];
                    if part.start[*i] < self.lengths[*i] {
                        continue 'parts;
                    }
                    part.start[*i] = 0;
                }
                break;
            }
            let pack = |(): &mut (), _, (part, to): (Part, &mut [T])| packer.pack(&part, to);
            if parallel::map_with(tasks, || (), pack).contains(&false) {
                return None;
            }
        }
        drop(packer);
        let shape: Vec<usize> = order.iter().map(|i| self.lengths[*i]).collect();
        let mut steps = vec![0; self.lengths.len()];
        for (index, step) in order.iter().zip(strides(&shape)) {
            steps[*index] = step as i64;
        }
        Some(Factor::Strided(Strided {
            data: Memory::Copy(copy),
            offset: 0,
            steps,
        }))
    }

    fn ready<'f, T: Packed>(&'f self, factor: &'f Factor<'a, T>, left: bool) -> Ready<'f, 'a, T> {
        let layout = self.layout;
        let (way, first, second) = match left {
            true => (layout.left, &layout.rows, &layout.inner),
            false => (layout.right, &layout.inner, &layout.columns),
        };
        match factor {
            Factor::Strided(strided) if way != FactorHandling::Packed => {
                let step = |list: &[usize]| {
                    merged(&strided.steps, list, &layout.tile).expect("the layout saw to it")
                };
                Ready::InPlace(strided, step(first), step(second))
            }
            _ => {
                let orders = orders(&layout.many, first, second);
                let own = orders[0].clone();
                let packer = self.packer(factor, left, orders, &layout.tile);
                let turned = packer.order != own;
                Ready::Packed(packer, turned)
            }
        }
    }
}

/// Both orders of some indices: those of rows before those of columns, and the other way round.
fn orders(outer: &[usize], rows: &[usize], columns: &[usize]) -> [Vec<usize>; 2] {
    [
        [outer, rows, columns].concat(),
        [outer, columns, rows].concat(),
    ]
}

#[cfg(test)]
mod tests;
