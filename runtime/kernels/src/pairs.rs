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

use crate::boxes::Boxes;
use crate::pack::merged;
use crate::program::Place;
use crate::segment::Segment;
use crate::strided_access::{StridedAccess, lie};
use crate::{Chunk, blas, memory, wide};
use blocks::{Panels, SUMS, Task};
use ein_array::Array;
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Reduction, Scalar};
use rayon::prelude::*;
use term::{Each, LINE, Number, part_of_line};

/// Fewest rows, and columns, that are worth blocks.
const LEAST_SIDE: usize = 4;
/// Fewest terms of a line.
const LEAST_LINE: usize = 16;
/// Fewest columns that rows are added up over, and most rows.
const LEAST_COLUMNS: usize = 1024;
const MOST_ROWS: usize = 1 << 20;
/// Most elements that are copied.
const MOST_COPIED: usize = 1 << 25;
/// Points that are worth a task of their own.
const TASK: usize = 1 << 19;
/// Rows that a task should have, so that panels are read often.
const ROWS: usize = 8;

/// What is made of two elements, and how that is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// Σ (x - y)²
    SumOfSquares,
    /// Σ |x - y|
    SumOfDistances,
    /// Σ x y
    SumOfProducts,
    /// max |x - y|
    LargestDistance,
    /// max (x + y)
    LargestSum,
    /// min (x + y)
    LeastSum,
}

/// How it is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PairsStrategy {
    /// Rows and columns in blocks, columns copied to panels.
    Blocks,
    /// Line by line of neighbouring terms.
    Lines,
    /// The same, a line's right elements being one.
    LinesToOne,
    /// All columns term by term: neighbouring columns of one row.
    Sums,
}

/// A kernel in this form.
#[derive(Clone, Debug)]
pub(crate) struct Pairs {
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
    way: PairsStrategy,
}

/// The result, if the kernel has this form.
pub(crate) fn run(kernel: &Kernel, ranges: &[(u64, u64)], operands: &[Chunk<'_>]) -> Option<Array> {
    term_of(&kernel.graph, kernel.root, kernel.reduction?)?;
    let places: Vec<Place> = operands.iter().map(Place::of).collect();
    let ranges = crate::signed(ranges);
    let pairs = Pairs::of(kernel, &ranges, &places)?;
    let mut result = memory::room(pairs.dtype, &pairs.lengths[..pairs.rank]);
    match Segment::of(result.data_mut()) {
        Segment::F32(to) => pairs.all(&ranges, operands, to),
        Segment::F64(to) => pairs.all(&ranges, operands, to),
        _ => return None,
    }
    Some(result)
}

impl Pairs {
    /// A kernel over `ranges` in this form, its operands lying at `places`. Points of it cannot fault.
    pub(crate) fn of(kernel: &Kernel, ranges: &[(i64, i64)], places: &[Place]) -> Option<Pairs> {
        if kernel.guard.is_some() || ranges.iter().any(|(_, n)| *n == 0) {
            return None;
        }
        let reduction = kernel.reduction?;
        let (term, x, y) = term_of(&kernel.graph, kernel.root, reduction)?;
        let dtype = kernel.graph.dtype(kernel.root);
        if kernel.output != [dtype] || (reduction == Reduction::Mean && !kernel.finish) {
            return None;
        }
        let lengths: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
        let rank = kernel.output_rank as usize;
        let (mut left, mut right) = (
            lie(kernel, x, dtype, ranges, places)?,
            lie(kernel, y, dtype, ranges, places)?,
        );
        // Columns have the output's last index.
        let last = |own: &StridedAccess, other: &StridedAccess| {
            let free = |i: &usize| lengths[*i] > 1 && own.steps[*i] != 0 && other.steps[*i] == 0;
            (0..rank).rfind(free)
        };
        let reduced = (rank..lengths.len()).filter(|i| lengths[*i] > 1);
        let one = |lie: &StridedAccess| reduced.clone().all(|i| lie.steps[i] == 0);
        let (left_is_one, right_is_one) = (one(&left), one(&right));
        if left_is_one || !right_is_one && last(&left, &right) > last(&right, &left) {
            std::mem::swap(&mut left, &mut right);
        }
        let to_one = left_is_one != right_is_one;
        let (mut batch, mut rows, mut columns, mut terms) = (vec![], vec![], vec![], vec![]);
        for i in (0..lengths.len()).filter(|i| lengths[*i] > 1) {
            match (i < rank, left.steps[i] != 0, right.steps[i] != 0) {
                (true, true, true) => batch.push(i),
                (true, true, false) => rows.push(i),
                (true, false, true) => columns.push(i),
                (false, true, own) if own != to_one => terms.push(i),
                _ => return None,
            }
        }
        let count = |list: &[usize]| list.iter().map(|i| lengths[*i]).product::<usize>();
        let (m, n, k) = (count(&rows), count(&columns), count(&terms));
        let product = term == Term::SumOfProducts;
        let neighbours = |lie: &StridedAccess| merged(&lie.steps, &terms, &lengths) == Some(1);
        let mut steps = vec![1; lengths.len()];
        for i in (1..rank).rev() {
            steps[i - 1] = steps[i] * lengths[i] as i64;
        }
        let run = |steps: &[i64]| merged(steps, &columns, &lengths) == Some(1);
        let way = if to_one {
            let fits = !product && columns.is_empty() && k >= LEAST_LINE && neighbours(&left);
            fits.then_some(PairsStrategy::LinesToOne)?
        } else if m.min(n) >= LEAST_SIDE {
            // Other products are the business of contractions.
            (!product && n.checked_mul(k)? <= MOST_COPIED).then_some(PairsStrategy::Blocks)?
        } else if product && (m.min(n) > 1 || blas::loaded().is_some()) {
            return None;
        } else if k >= LEAST_LINE && !(product && n > 1) && neighbours(&left) && neighbours(&right)
        {
            // A matrix times a vector is a contraction's business too: several lines at a time are faster.
            PairsStrategy::Lines
        } else if m == 1 && n >= LEAST_COLUMNS && k <= MOST_ROWS && run(&right.steps) && run(&steps)
        {
            PairsStrategy::Sums
        } else {
            return None;
        };
        let reduced: usize = lengths[rank..].iter().product();
        Some(Pairs {
            term,
            dtype,
            divisor: match reduction {
                Reduction::Mean => reduced as f64,
                _ => 1.0,
            },
            left,
            right,
            batch,
            rows,
            columns,
            terms,
            lengths,
            rank,
            way,
        })
    }

    /// The fewest rows that should be computed together.
    pub(crate) fn least_rows(&self) -> usize {
        if self.way == PairsStrategy::Blocks {
            ROWS
        } else {
            1
        }
    }

    /// Whether it is taken line by line.
    pub(crate) fn by_lines(&self) -> bool {
        matches!(self.way, PairsStrategy::Lines | PairsStrategy::LinesToOne)
    }

    fn count(&self, indices: &[usize]) -> usize {
        indices.iter().map(|i| self.lengths[*i]).product()
    }

    /// All of it, by all threads.
    fn all<T: Number>(&self, ranges: &[(i64, i64)], operands: &[Chunk<'_>], to: &mut [T]) {
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
            PairsStrategy::Blocks => ROWS * columns,
            PairsStrategy::Lines | PairsStrategy::LinesToOne => 1,
            PairsStrategy::Sums => (columns / 4).min(SUMS),
        });
        let boxes = Boxes::new(extents, wanted);
        let (mut tasks, mut rest) = (Vec::with_capacity(boxes.count()), to);
        for number in 0..boxes.count() {
            let (head, tail) = rest.split_at_mut(boxes.rows(number).1);
            tasks.push((number, head));
            rest = tail;
        }
        tasks.into_par_iter().for_each(|(number, to)| {
            let mut own = ranges.to_vec();
            own[..self.rank].copy_from_slice(&boxes.ranges(number));
            self.part(&own, (operands, &[]), panels.as_ref(), to);
        });
    }

    /// A few long lines, each by all threads.
    fn few<T: Number>(&self, ranges: &[(i64, i64)], operands: &[Chunk<'_>], to: &mut [T]) {
        let task = self.task(ranges, (operands, &[]), None, to);
        let terms = task.terms();
        for (at, x, y) in task.points() {
            let parts: Vec<f64> = (task.x[x..x + terms].par_chunks(LINE).enumerate())
                .map(|(number, x)| {
                    let first = number * LINE;
                    let y = task.seconds(y, first..first + x.len());
                    wide::run(part_of_line(self.term, terms, x, y))
                })
                .collect();
            let joined = parts.into_iter().reduce(|a, b| self.term.join(a, b));
            task.to[at] = T::from_f64(joined.unwrap_or_default() / self.divisor);
        }
    }

    /// The columns as panels, if all boxes read the same ones.
    fn panels<T: Number>(&self, ranges: &[(i64, i64)], right: &Chunk<'_>) -> Option<Panels<T>> {
        if self.way != PairsStrategy::Blocks || !self.batch.is_empty() {
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
        Some(task.pack(0))
    }

    /// A box of the output, which `to` is, in row-major order. Of operands, `skipped` first elements (none: 0) are not there.
    fn part<T: Number>(
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

    fn task<'t, T: Number>(
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
    pairs: Pairs,
    /// The columns, if all boxes read the same ones: copied once.
    single: Option<Panels<f32>>,
    double: Option<Panels<f64>>,
}

impl Boxed {
    /// Over all `ranges`; `given` are the operands that are there.
    pub(crate) fn new(pairs: Pairs, ranges: &[(i64, i64)], given: &[Option<&Chunk<'_>>]) -> Boxed {
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

/// The form of a reduction's body, and its two elements.
fn term_of(graph: &Graph, root: NodeId, reduction: Reduction) -> Option<(Term, NodeId, NodeId)> {
    let two = |id: NodeId, function: Function| match graph.node(id) {
        Node::Apply(f, a) if *f == function => Some((a[0], *a.get(1)?)),
        _ => None,
    };
    let is_two = |id: NodeId| match graph.node(id) {
        Node::Constant(Scalar::Float(x)) => *x == 2.0,
        Node::Constant(Scalar::Int(x)) => *x == 2,
        _ => false,
    };
    let squared = || {
        let (a, b) = two(root, Function::Mul)
            .filter(|(a, b)| a == b)
            .or_else(|| two(root, Function::Pow).filter(|(_, power)| is_two(*power)))?;
        let _ = b;
        two(a, Function::Sub)
    };
    let distance = || match graph.node(root) {
        Node::Apply(Function::Abs, a) => two(a[0], Function::Sub),
        _ => None,
    };
    let sum = || two(root, Function::Add);
    let (term, (x, y)) = match reduction {
        Reduction::Sum | Reduction::Mean => squared()
            .map(|pair| (Term::SumOfSquares, pair))
            .or_else(|| Some((Term::SumOfDistances, distance()?)))
            .or_else(|| Some((Term::SumOfProducts, two(root, Function::Mul)?)))?,
        Reduction::Max => distance()
            .map(|pair| (Term::LargestDistance, pair))
            .or_else(|| Some((Term::LargestSum, sum()?)))?,
        Reduction::Min => (Term::LeastSum, sum()?),
        _ => return None,
    };
    Some((term, x, y))
}
