//! Sums of products of two rows, of which data say which ones they are.
//!
//! A row is read where it lies. Terms are added up in lanes, and the lanes of a stretch of a row in f64. A row outside of its operand is left to
//! strips, which find the lowest fault. Must not know plans.
//!
//! ```text
//! [e | h] sum x[a[e], h] * y[b[e], h]   of a = 3 0, b = 1 1   ->   x[3, ..] * y[1, ..], x[0, ..] * y[1, ..]
//! ```

use crate::Chunk;
use crate::line::{Elements, Sight, Value};
use crate::looked::Points;
use crate::wide::{self, Job};
use crate::{memory, parallel, stream};
use ein_array::{Array, Data};
use ein_plan::schedule::row_product::sides;
use ein_plan::{DType, Kernel};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Terms that are added up together.
const LANES: usize = 32;
/// Terms that a lane adds up before its sum goes on as f64.
const STRETCH: usize = 8 * LANES;
/// Points whose rows are looked up together.
const TOGETHER: usize = 256;
/// Points that are worth a task of their own.
const TASK: usize = 1 << 15;

/// The sums; `None` if a row is outside, or not where the loops of this kind find it.
pub(crate) fn run(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Vec<Array>> {
    let ranges = crate::signed(ranges);
    let rank = kernel.output_rank as usize;
    let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let indices = ((0..rank).collect(), (rank..ranges.len()).collect());
    let sight = Sight::of(kernel, &ranges, operands, indices);
    let mut column = memory::room(kernel.output[0], &lengths[..rank]);
    let width = lengths[rank..].iter().product();
    let inside = match (kernel.graph.dtype(kernel.root), column.data_mut()) {
        (DType::F32, Data::F32(to)) => of_type::<f32>(kernel, &sight, width, to)?,
        (DType::F64, Data::F64(to)) => of_type::<f64>(kernel, &sight, width, to)?,
        _ => return None,
    };
    inside.then_some(vec![column])
}

/// All points; whether all rows are inside.
fn of_type<T: Float>(
    kernel: &Kernel,
    sight: &Sight<'_, '_>,
    width: usize,
    to: &mut [T],
) -> Option<bool> {
    let dtype = kernel.graph.dtype(kernel.root);
    let (sides, differences) = sides(kernel)?;
    let side = |at: usize| {
        let (elements, along) = sight.elements::<T>(sides[at], dtype)?;
        (along == 1).then_some(elements)
    };
    let sides = [side(0)?, side(1)?];
    let inside = AtomicBool::new(true);
    let each = (TASK / width.max(1)).max(1);
    parallel::chunks_mut(to, each, |part, to| {
        let there = wide::run(Part {
            sides: &sides,
            width,
            points: part * each..part * each + to.len(),
            differences,
            to,
        });
        if !there {
            inside.store(false, Ordering::Relaxed);
        }
    });
    Some(inside.into_inner())
}

/// Floating-point numbers as they are stored.
trait Float: Value + std::ops::Add<Output = Self> + std::ops::Sub<Output = Self> + Into<f64> {
    fn stored(sum: f64) -> Self;
}

impl Float for f32 {
    fn stored(sum: f64) -> f32 {
        sum as f32
    }
}

impl Float for f64 {
    fn stored(sum: f64) -> f64 {
        sum
    }
}

/// Some points.
struct Part<'t, 'a, T> {
    sides: &'t [Elements<'a, T>; 2],
    width: usize,
    points: Range<usize>,
    /// True if terms are squares of differences, not products.
    differences: bool,
    to: &'t mut [T],
}

impl<T: Float> Job for Part<'_, '_, T> {
    /// True if all rows are inside.
    type Output = bool;
    #[inline(always)]
    fn run<const BYTES: usize>(self) -> bool {
        match self.differences {
            true => self.all(|a, b| (a - b).times(a - b)),
            false => self.all(T::times),
        }
    }
}

impl<T: Float> Part<'_, '_, T> {
    #[inline(always)]
    fn all(self, term: impl Fn(T, T) -> T + Copy) -> bool {
        let [a, b] = self.sides;
        let width = self.width;
        let [mut of_a, mut of_b] = [vec![], vec![]];
        let mut first = self.points.start;
        for to in self.to.chunks_mut(TOGETHER) {
            let points = Points::Neighbours(first, to.len());
            first += to.len();
            if a.firsts(points, &mut of_a).is_none() || b.firsts(points, &mut of_b).is_none() {
                return false;
            }
            for (at, to) in to.iter_mut().enumerate() {
                for (side, firsts) in [(a, &of_a), (b, &of_b)] {
                    if let Some(next) = firsts.get(at + 1) {
                        stream::ahead(side.all, *next..*next + width);
                    }
                }
                let (from, other) = (of_a[at], of_b[at]);
                let (a, b) = (&a.all[from..from + width], &b.all[other..other + width]);
                *to = T::stored(sum(a, b, term));
            }
        }
        true
    }
}

/// The sum of the terms of two rows.
#[inline(always)]
fn sum<T: Float>(a: &[T], b: &[T], term: impl Fn(T, T) -> T + Copy) -> f64 {
    let mut total = 0.0;
    for (a, b) in a.chunks(STRETCH).zip(b.chunks(STRETCH)) {
        let (a, last_a) = a.as_chunks::<LANES>();
        let (b, last_b) = b.as_chunks::<LANES>();
        let mut sums = [T::ZERO; LANES];
        for (a, b) in a.iter().zip(b) {
            for lane in 0..LANES {
                sums[lane] = sums[lane] + term(a[lane], b[lane]);
            }
        }
        for ((sum, a), b) in sums.iter_mut().zip(last_a).zip(last_b) {
            *sum = *sum + term(*a, *b);
        }
        let sums: [T; 16] = halved(sums);
        let sums: [T; 8] = halved(sums);
        let sums: [T; 4] = halved(sums);
        let sums: [T; 2] = halved(sums);
        total += (sums[0] + sums[1]).into();
    }
    total
}

/// The sums of two lanes each, half as many.
#[inline(always)]
fn halved<T: Float, const N: usize, const HALF: usize>(sums: [T; N]) -> [T; HALF] {
    std::array::from_fn(|lane| sums[lane] + sums[lane + HALF])
}
