//! Memory that the loops of a step take beside what they read and make.
//!
//! Counted are the copies that grow with a tensor: those of a factor that cannot be multiplied as it lies, of the columns of distances, of what a
//! running reduction goes through, groups and their keys, what a library operation needs to work in, and what a permutation is sorted in. Buffers of a fixed
//! size, a few for each thread, are not. Must not know how loops are carried out.
//!
//! ```text
//! x = solve(A, b), A f64[1500, 1500]     36 MB: a copy of A, and its factors
//! ```

use crate::dtype::DType;
use crate::function::Function;
use crate::kernel::{IndexId, Kernel, Node};
use crate::library::Library;
use crate::plan::{Operation, Plan, Step};
use crate::schedule::gathered_sum::first_of_row;
use crate::schedule::grouped::grouping;
use crate::schedule::pairwise::PairwiseLoops;
use crate::schedule::placed_matmul;
use crate::schedule::tiling::Tiling;
use crate::schedule::tiling::layout::FactorHandling;
use crate::schedule::{Grouped, LoopKind, Pairwise, Scan, Segments};
use crate::source::Source;

/// Library operations that are made at once, at most: the threads of a site, which a plan does not know.
const AT_ONCE: u64 = 8;
/// Most positions of the rows of a product of lists that have a sum each.
const NEAR: u64 = 1 << 20;

impl Plan {
    /// Bytes that a site works in while it makes the largest tuple of a step, beside operands and result.
    pub fn working_space(&self, step: &Step) -> u64 {
        if let Operation::Source {
            source: Source::Permutation,
            ..
        } = &step.operation
        {
            // Each number with its key.
            return step.kind.largest_tuple().saturating_mul(2);
        }
        let loops = self.loops.get(&step.result);
        let Some((loops, (kernel, lengths))) = loops.zip(self.largest_join(step)) else {
            return 0;
        };
        let bytes = match &loops.kind {
            LoopKind::Library => kernel
                .library()
                .map(|library| of_library(kernel, &library, &lengths)),
            LoopKind::Scan(scan) => Some(of_scan(kernel, scan, &lengths)),
            LoopKind::Grouped(grouped) => of_groups(kernel, grouped, &lengths),
            LoopKind::GatheredMatmul | LoopKind::ScatteredMatmul => {
                placed_matmul::working_space(kernel, &lengths)
            }
            LoopKind::GatheredSum => Some(of_points(kernel, &lengths)),
            LoopKind::Segments(segments) => Some(of_segments(segments, &lengths)),
            LoopKind::Matmul(matmul) => matmul
                .tiling
                .as_ref()
                .map(|tiling| of_product(kernel, tiling, &lengths)),
            LoopKind::Pairwise(pairwise) if pairwise.by == PairwiseLoops::Blocks => {
                Some(of_panels(kernel, pairwise, &lengths))
            }
            LoopKind::Elementwise
            | LoopKind::Gather
            | LoopKind::Scatter(_)
            | LoopKind::Lookup(_)
            | LoopKind::Pairwise(_)
            | LoopKind::RowReduce(_)
            | LoopKind::Patched
            | LoopKind::Selection
            | LoopKind::RowProduct
            | LoopKind::Inlined
            | LoopKind::Strips => None,
        };
        bytes.unwrap_or(0)
    }
}

fn product<'a>(indices: impl IntoIterator<Item = &'a IndexId>, lengths: &[usize]) -> u64 {
    let lengths = indices
        .into_iter()
        .map(|index| lengths[index.0 as usize] as u64);
    lengths.fold(1, u64::saturating_mul)
}

/// The memory of groups, in numbers of 64 bits: the values and the keys of points, of output points the keys, the totals and the places, and the
/// groups of the calls that are made at once, each with its key, where every point has a key of its own.
fn of_groups(kernel: &Kernel, grouped: &Grouped, lengths: &[usize]) -> Option<u64> {
    let (_, keys) = grouping(kernel)?;
    let depends = kernel.graph.dependencies()[keys.of_point.0 as usize];
    let rank = kernel.output_rank;
    let own: Vec<IndexId> = (0..rank)
        .map(IndexId)
        .filter(|i| !grouped.passed.contains(i))
        .collect();
    let scanned = grouped.scan.as_ref().map(|scan| scan.reduced);
    let tells = |i: &IndexId| scanned == Some(*i) || depends >> i.0 & 1 == 1;
    let reduced = (rank..lengths.len() as u32).map(IndexId);
    let told: Vec<IndexId> = reduced.filter(tells).collect();
    let outputs: Vec<IndexId> = (0..rank).map(IndexId).collect();
    let value = kernel.graph.dtype(kernel.root);
    let columns = kernel.reduction?.carrier(value).len() as u64;
    let (calls, each) = (product(&own, lengths), product(&told, lengths));
    let of_points = calls.saturating_mul(each).saturating_mul(columns + 1);
    let of_outputs = product(&outputs, lengths).saturating_mul(3);
    // A table of hashes is at most 7/8 full, and doubles; so do the totals beside it.
    let buckets = (each.saturating_mul(8) / 7).checked_next_power_of_two();
    let groups = buckets.unwrap_or(u64::MAX).saturating_mul(3);
    let groups = groups.saturating_mul(calls.min(AT_ONCE));
    let numbers = of_points.saturating_add(of_outputs).saturating_add(groups);
    Some(numbers.saturating_mul(8))
}

/// The factors of a product that are copied as a whole.
fn of_product(kernel: &Kernel, tiling: &Tiling, lengths: &[usize]) -> u64 {
    let size = kernel.graph.dtype(kernel.root).size() as u64;
    let sides = [(&tiling.rows, tiling.left), (&tiling.columns, tiling.right)];
    // Indices of no block are those of the batch, which a copy holds as well.
    let of_blocks = |index: &IndexId| {
        let blocks = [&tiling.rows, &tiling.columns, &tiling.inner];
        blocks.iter().any(|block| block.contains(index))
    };
    let all: Vec<IndexId> = (0..lengths.len() as u32).map(IndexId).collect();
    let batch = product(all.iter().filter(|index| !of_blocks(index)), lengths);
    let copies = sides.into_iter().map(|(side, handling)| match handling {
        FactorHandling::Copied => {
            let elements = product(side.iter().chain(&tiling.inner), lengths);
            elements.saturating_mul(batch).saturating_mul(size)
        }
        FactorHandling::InPlace | FactorHandling::Packed => 0,
    });
    copies.fold(0, u64::saturating_add)
}

/// The columns of a function of two elements, which are copied to panels.
fn of_panels(kernel: &Kernel, pairwise: &Pairwise, lengths: &[usize]) -> u64 {
    let size = kernel.graph.dtype(kernel.root).size() as u64;
    product(pairwise.columns.iter().chain(&pairwise.terms), lengths).saturating_mul(size)
}

/// The values that a running reduction goes through, if they are no operand as it lies.
fn of_scan(kernel: &Kernel, scan: &Scan, lengths: &[usize]) -> u64 {
    if matches!(kernel.graph.node(kernel.root), Node::Read { .. }) {
        return 0;
    }
    let outer = (0..kernel.output_rank)
        .map(IndexId)
        .filter(|index| *index != scan.output);
    let outer: Vec<IndexId> = outer.chain([scan.reduced]).collect();
    let size = kernel.graph.dtype(kernel.root).size() as u64;
    product(&outer, lengths).saturating_mul(size)
}

/// The working space of the calls of a library operation that are made at once, and their results if these are put together.
///
/// Figures in elements of the argument, an m × n matrix, as `ein-matrix` and `rustfft` were measured to take; a copy of the argument is among
/// them. `fft` takes six f64 for each pair of elements, whatever their type, and more where its length has a large prime factor.
fn of_library(kernel: &Kernel, library: &Library, lengths: &[usize]) -> u64 {
    let (m, n) = library.matrix(kernel, 0);
    let size = kernel.output[0].size() as u64;
    let (mn, k) = (m.saturating_mul(n), m.min(n));
    let square = k.saturating_mul(n);
    let batch = product(&library.batch, lengths);
    // Right sides of one matrix are solved together.
    let calls = product(&library.factored(), lengths);
    let sides = batch / calls.max(1);
    let elements = match library.operation {
        Function::Fft => m.saturating_mul(of_pair(m) * DType::F64.size() as u64) / size,
        Function::Solve => (2 * mn).saturating_add(m.saturating_mul(2 * sides)),
        Function::Logdet | Function::Cholesky | Function::Lu => 2 * mn + mn / 4,
        Function::Inv | Function::Eigh => 4 * mn + mn / 4,
        Function::Qr => 3 * mn + mn / 4,
        Function::Eig => 5 * mn + mn / 4,
        Function::Svd => 3 * mn + 4 * square + square / 2,
        // The marks of each thread; positions, values and numbers of rows as they are looked up; the order of the calls, and where each
        // row's begin.
        Function::ListedDot => {
            let marks = library.positions.unwrap_or(0).saturating_mul(5 * AT_ONCE);
            let [ends, others, a, b] = [0, 3, 1, 4].map(|list| library.matrix(kernel, list).0);
            let order = (4 * batch).saturating_add(ends).saturating_add(others);
            let bytes = marks.saturating_add(order.saturating_mul(8));
            return bytes.saturating_add(a.saturating_add(b).saturating_mul(4 + size));
        }
        // A sum for each position, of each thread, unless the places of a row are looked for, and positions and values as they are looked up.
        Function::ListedProduct | Function::ListedSums => {
            let own = library.own.first();
            let own = own.map_or(0, |own| kernel.indices[own.0 as usize].extent);
            let sums = library
                .positions
                .map_or(own, |positions| positions.min(NEAR));
            let sums = sums.saturating_mul(8 * AT_ONCE);
            let lists = library
                .matrix(kernel, 1)
                .0
                .saturating_add(library.matrix(kernel, 4).0);
            return sums.saturating_add(lists.saturating_mul(4 + size));
        }
        // A bit for each position, of each thread, and places row by row before they stand together.
        Function::ListedPlaces => {
            let marks = library
                .positions
                .unwrap_or(0)
                .div_ceil(8)
                .saturating_mul(AT_ONCE);
            let lists = library
                .matrix(kernel, 1)
                .0
                .saturating_add(library.matrix(kernel, 3).0);
            let places = product(&library.own, lengths).saturating_mul(size);
            return marks
                .saturating_add(lists.saturating_mul(4))
                .saturating_add(places);
        }
        // Each number with where it stands, where they are sorted before they are looked for.
        Function::Find => return batch.saturating_mul(16),
        // `argsort`, `sort` and `topk` sort where the result of a call is.
        _ => 0,
    };
    let output: Vec<IndexId> = (0..kernel.output_rank).map(IndexId).collect();
    let results = product(&output, lengths);
    let together = if calls > 1 { results } else { 0 };
    let working = elements.saturating_mul(calls.min(AT_ONCE));
    working.saturating_add(together).saturating_mul(size)
}

/// The rows and points of a gathered sum, a number of 64 bits each.
fn of_points(kernel: &Kernel, lengths: &[usize]) -> u64 {
    let row = first_of_row(kernel).unwrap_or(0) as u32;
    let reduced = kernel.output_rank..lengths.len() as u32;
    let points: Vec<IndexId> = (0..row).chain(reduced).map(IndexId).collect();
    product(&points, lengths).saturating_mul(8)
}

/// The ends of each segment, where its points end in turn, and the segment of each point.
fn of_segments(segments: &Segments, lengths: &[usize]) -> u64 {
    let ends = product(&segments.by, lengths).saturating_mul(24);
    ends.saturating_add(product(&[segments.reduced], lengths).saturating_mul(8))
}

/// Numbers of 64 bits that a Fourier transform of this length takes for each pair of elements. One of a large prime length goes through a longer
/// one of small factors.
fn of_pair(length: u64) -> u64 {
    const SMALL_PRIME: u64 = 1 << 10;
    let mut rest = length;
    for divisor in 2..SMALL_PRIME {
        while rest > 1 && rest.is_multiple_of(divisor) {
            rest /= divisor;
        }
    }
    match rest {
        0 | 1 => 6,
        rest if rest == length => 21,
        _ => 15,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::memory;
    use crate::plan::Plan;

    const PLAN: &str = "plan for 2 sites
kernel k0 (f64[40, 40], f64[40]) [i: 40] f64 = solve(a0[:1, :2], a1[:1], i)
kernel k1 (f32[30, 20]) [i: 30, n: 20 | m: 20] f64 = sum f64(a0[i, m]) if m <= n
r0 A: {} f64[40, 40] @ ONE = source A from iota
r1 b: {} f64[40] @ ONE = source b from iota
r2 x: {} f64[40] @ ONE = join k0(r0{}, r1{}) over [_]; free r0, r1
r3 z: {i: 30/2} f32[i, 20] @ PART(i) = source z from iota
r4 y: {i: 30/2} f64[i, 20] @ PART(i) = join k1(r3{i}) over [i, _, _]; free r3
output x = r2: f64[40]
output y = r4: f64[30, 20]
";

    #[test]
    fn sites_that_make_a_tuple_work_in_memory() {
        let mut plan: Plan = PLAN.parse().unwrap_or_else(|error| panic!("{error:?}"));
        plan.schedule();
        let working: Vec<u64> = plan
            .steps
            .iter()
            .map(|step| plan.working_space(step))
            .collect();
        // Two matrices and two vectors; the terms in f64.
        let (solved, scanned) = (8 * (2 * 1600 + 2 * 40), 8 * 15 * 20);
        assert_eq!(working, [0, 0, solved, 0, scanned]);
        // `x` is made at one site, `y` at both.
        let held = memory::by_step(&plan);
        assert_eq!(held[2], [8 * (1600 + 40 + 40) + solved, 0]);
        let tuples = 4 * 15 * 20 + 8 * 15 * 20;
        assert_eq!(held[4], [8 * 40 + tuples + scanned, tuples + scanned]);
    }
}
