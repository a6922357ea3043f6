//! Reductions of a function of two elements: distances, sums of products, shortest ways.
//!
//! Both are elements of chunks as they are. Where each has output indices that the other lacks, rows of the left and columns
//! of the right one meet in blocks that stay in registers, lanes along the columns, which are copied to panels. Otherwise
//! lines of neighbours are reduced, lanes along the line. The order of a reduction depends on its length alone. Must not know
//! plans.
//!
//! ```text
//! [n, k | d] sum (a0[n, d] - a1[k, d])^2   rows n, columns k: blocks of 4 x 64, a1 copied
//! [i | d]    sum a0[i, d] * a1[i, d]       lines
//! [i | d]    sum (a0[i, d] - a1[i])^2      lines, each to one element
//! [j | d]    sum a0[d] * a1[d, j]          sums of rows
//! ```

mod blocks;
mod term;
mod widths;

use crate::boxes::Boxes;
use crate::parallel;
use crate::program::place_of;
use crate::segment::Segment;
use crate::{Chunk, blas, memory, wide};
use blocks::{Panels, SUMS, Task};
use ein_array::Array;
use ein_plan::schedule::access::{Place, StridedAccess, lie};
use ein_plan::schedule::pairwise::{Pairwise, PairwiseLoops, Term};
use ein_plan::{DType, IndexId, Kernel, Reduction};
use term::{LINE, joined, part_of_line};
use widths::{Each, Paneled};

/// Points that are worth a task of their own.
const TASK: usize = 1 << 19;
/// Rows that a task should have, so that panels are read often.
const ROWS: usize = 8;

/// A kernel in this form.
#[derive(Clone, Debug)]
pub(crate) struct PairwiseReduction {
    term: Term,
    dtype: DType,
    /// By how much results are divided.
    divisor: f64,
    left: StridedAccess,
    right: StridedAccess,
    /// Output indices of both, of the left one, of the right one; reduced ones.
    batch: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    terms: Vec<usize>,
    /// The length of each index over the whole, and how many are the output's.
    lengths: Vec<usize>,
    rank: usize,
    way: PairwiseLoops,
}

/// The result of a kernel in this form.
pub(crate) fn run(
    kernel: &Kernel,
    form: &Pairwise,
    ranges: &[(u64, u64)],
    operands: &[Chunk<'_>],
) -> Option<Array> {
    let places: Vec<Place> = operands.iter().map(place_of).collect();
    let ranges = crate::signed(ranges);
    let pairs = PairwiseReduction::of(kernel, form, &ranges, &places)?;
    let mut result = memory::room(pairs.dtype, &pairs.lengths[..pairs.rank]);
    match Segment::of(result.data_mut()) {
        Segment::F32(to) => pairs.all(&ranges, operands, to),
        Segment::F64(to) => pairs.all(&ranges, operands, to),
        _ => return None,
    }
    Some(result)
}

/// Returns whether the process has a library that is faster at sums of products.
pub(crate) fn leaves_to_blas(form: &Pairwise) -> bool {
    form.term == Term::SumOfProducts && blas::loaded().is_some()
}

impl PairwiseReduction {
    /// A kernel in this form over `ranges`, its operands lying at `places`.
    pub(crate) fn of(
        kernel: &Kernel,
        form: &Pairwise,
        ranges: &[(i64, i64)],
        places: &[Place],
    ) -> Option<PairwiseReduction> {
        let (x, y) = form.elements(kernel)?;
        let dtype = kernel.graph.dtype(kernel.root);
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let rank = kernel.output_rank as usize;
        let reduced: usize = lengths[rank..].iter().product();
        let several = |list: &[IndexId]| {
            let indices = list.iter().map(|index| index.0 as usize);
            indices.filter(|i| lengths[*i] > 1).collect()
        };
        Some(PairwiseReduction {
            term: form.term,
            dtype,
            divisor: match kernel.reduction {
                Some(Reduction::Mean) => reduced as f64,
                _ => 1.0,
            },
            left: lie(kernel, x, dtype, ranges, places)?,
            right: lie(kernel, y, dtype, ranges, places)?,
            batch: several(&form.batch),
            rows: several(&form.rows),
            columns: several(&form.columns),
            terms: several(&form.terms),
            lengths,
            rank,
            way: form.by,
        })
    }

    /// The fewest rows that should be computed together.
    pub(crate) fn least_rows(&self) -> usize {
        if self.way == PairwiseLoops::Blocks {
            ROWS
        } else {
            1
        }
    }

    /// Whether it is taken line by line.
    pub(crate) fn by_lines(&self) -> bool {
        matches!(self.way, PairwiseLoops::Lines | PairwiseLoops::LinesToOne)
    }

    fn count(&self, indices: &[usize]) -> usize {
        indices.iter().map(|i| self.lengths[*i]).product()
    }

    /// All of it, by all threads.
    fn all<T: Paneled>(&self, ranges: &[(i64, i64)], operands: &[Chunk<'_>], to: &mut [T]) {
        let terms = self.count(&self.terms);
        if self.by_lines() && to.len() < 16 && terms > 2 * LINE {
            return self.few(ranges, operands, to);
        }
        let panels = self.panels(ranges, &operands[self.right.operand]);
        let extents = &ranges[..self.rank];
        if self.rank == 0 {
            return self.part(ranges, (operands, &[]), panels.as_ref(), to);
        }
        let columns = self.count(&self.columns);
        let wanted = (TASK / terms.max(1)).max(match self.way {
            PairwiseLoops::Blocks => ROWS * columns,
            PairwiseLoops::Lines | PairwiseLoops::LinesToOne => 1,
            PairwiseLoops::Sums => (columns / 4).min(SUMS),
        });
        let boxes = Boxes::new(extents, wanted);
        let (mut tasks, mut rest) = (Vec::with_capacity(boxes.count()), to);
        for number in 0..boxes.count() {
            let (head, tail) = rest.split_at_mut(boxes.rows(number).1);
            tasks.push(head);
            rest = tail;
        }
        parallel::items(tasks, |number, to| {
            let mut own = ranges.to_vec();
            own[..self.rank].copy_from_slice(&boxes.ranges(number));
            self.part(&own, (operands, &[]), panels.as_ref(), to);
        });
    }

    /// A few long lines, each by all threads.
    fn few<T: Paneled>(&self, ranges: &[(i64, i64)], operands: &[Chunk<'_>], to: &mut [T]) {
        let task = self.task(ranges, (operands, &[]), None, to);
        let terms = task.terms();
        for (at, x, y) in task.points() {
            let line = &task.x[x..x + terms];
            let parts = parallel::map(terms.div_ceil(LINE), |number| {
                let part = number * LINE..terms.min((number + 1) * LINE);
                let y = task.seconds(y, part.clone());
                wide::run(part_of_line(self.term, terms, &line[part], y))
            });
            let joined = parts.into_iter().reduce(|a, b| joined(self.term, a, b));
            task.to[at] = T::from_f64(joined.unwrap_or_default() / self.divisor);
        }
    }

    /// The columns as panels, if all boxes read the same ones.
    fn panels<T: Paneled>(&self, ranges: &[(i64, i64)], right: &Chunk<'_>) -> Option<Panels<T>> {
        if self.way != PairwiseLoops::Blocks || !self.batch.is_empty() {
            return None;
        }
        let first = self.right.first(ranges, &[]);
        let task = Task {
            pairs: self,
            lengths: self.lengths.clone(),
            x: &[],
            y: T::slice(right.columns[self.right.column].data())?,
            first: (0, first),
            panels: None,
            to: &mut [],
        };
        Some(T::pack(&task, 0))
    }

    /// A box of the output, which `to` is, in row-major order. Of operands, `skipped` first elements (none: 0) are not there.
    fn part<T: Paneled>(
        &self,
        ranges: &[(i64, i64)],
        operands: (&[Chunk<'_>], &[i64]),
        panels: Option<&Panels<T>>,
        to: &mut [T],
    ) {
        let whole = |i: &usize| ranges[*i].1 as usize == self.lengths[*i];
        let panels = panels.filter(|_| self.columns.iter().all(whole));
        wide::run(Each(self.task(ranges, operands, panels, to)));
    }

    fn task<'t, T: Paneled>(
        &'t self,
        ranges: &[(i64, i64)],
        (operands, skipped): (&'t [Chunk<'_>], &[i64]),
        panels: Option<&'t Panels<T>>,
        to: &'t mut [T],
    ) -> Task<'t, T> {
        let first = |lie: &StridedAccess| lie.first(ranges, skipped);
        let data = |lie: &StridedAccess| {
            let array: &'t Array = operands[lie.operand].columns[lie.column];
            T::slice(array.data()).expect("a pair's operands have its type")
        };
        Task {
            pairs: self,
            lengths: ranges.iter().map(|(_, n)| *n as usize).collect(),
            x: data(&self.left),
            y: data(&self.right),
            first: (first(&self.left), first(&self.right)),
            panels,
            to,
        }
    }
}

/// A kernel in this form that is taken box by box.
pub(crate) struct Boxed {
    pairs: PairwiseReduction,
    /// The columns, if all boxes read the same ones: copied once.
    single: Option<Panels<f32>>,
    double: Option<Panels<f64>>,
}

impl Boxed {
    /// Over all `ranges`; `given` are the operands that are there.
    pub(crate) fn new(
        pairs: PairwiseReduction,
        ranges: &[(i64, i64)],
        given: &[Option<&Chunk<'_>>],
    ) -> Boxed {
        let right = given[pairs.right.operand];
        let double = pairs.dtype == DType::F64;
        Boxed {
            single: right
                .filter(|_| !double)
                .and_then(|right| pairs.panels(ranges, right)),
            double: right
                .filter(|_| double)
                .and_then(|right| pairs.panels(ranges, right)),
            pairs,
        }
    }

    /// A box of the output (see [`crate::drive::Driver::on`] for the operands).
    pub(crate) fn run(
        &self,
        ranges: &[(i64, i64)],
        operands: (&[Chunk<'_>], &[i64]),
        to: Segment<'_>,
    ) {
        match to {
            Segment::F32(to) => self.pairs.part(ranges, operands, self.single.as_ref(), to),
            Segment::F64(to) => self.pairs.part(ranges, operands, self.double.as_ref(), to),
            _ => {}
        }
    }
}
